/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c -- the YAML tree: what is read, what is refused and with which line, conversions of scalars. */
#include "base/yaml.h"
#include "base/rng.h"
#include "base/str.h"
#include "tests/tap.h"

#include <locale.h>

static halo_context *ctx;

static hl_yaml *parse(const char *text)
{
    hl_yaml *root = NULL;
    return hl_yaml_parse(ctx, "a.yaml", text, strlen(text), &root) == HALO_OK ? root : NULL;
}

static void refuses(const char *text, const char *message)
{
    hl_yaml *root = NULL;
    halo_status st = hl_yaml_parse(ctx, "a.yaml", text, strlen(text), &root);
    const char *said = st == HALO_OK ? "(accepted)" : halo_error_message(ctx);
    tap_ok(st == HALO_ERR_FORMAT && !root && strncmp(said, message, strlen(message)) == 0, "refused: %s",
           said);
    hl_yaml_destroy(root);
}

static void check_tree(void)
{
    hl_yaml *root = parse("# first line is a comment\n"
                          "network: cosmoflow\n"
                          "size: [128, 64, 32]\n"
                          "data:\n"
                          "  train: a/b\n"
                          "  quoted: '1'\n"
                          "  empty:\n"
                          "tail: {lr: 1e-3, on: yes}\n");
    tap_ok(root && root->kind == HL_YAML_MAP && root->items == 4, "a map of four keys");
    if (!root) return;
    hl_yaml *size = hl_yaml_find(root, "size"), *data = hl_yaml_find(root, "data"),
            *tail = hl_yaml_find(root, "tail");
    int64_t n = 0;
    tap_ok(size && size->kind == HL_YAML_LIST && size->items == 3 && size->line == 3 &&
               hl_yaml_int(size->item[1], &n) && n == 64,
           "a list keeps its order");
    tap_ok(data && data->kind == HL_YAML_MAP && data->line == 4, "a nested map has the line of its key");
    hl_yaml *train = hl_yaml_find(data, "train"), *quoted = hl_yaml_find(data, "quoted"),
            *empty = hl_yaml_find(data, "empty");
    tap_ok(train && strcmp(train->text, "a/b") == 0 && train->line == 5 && strcmp(train->key, "train") == 0,
           "a scalar: key, text, line");
    tap_ok(quoted && quoted->quoted && !hl_yaml_int(quoted, &n), "a quoted number is a string");
    tap_ok(empty && empty->kind == HL_YAML_SCALAR && !*empty->text && !empty->quoted,
           "a key without value is an empty scalar");
    tap_ok(tail && tail->items == 2 && tail->item[0]->line == 8, "a flow map");
    tap_ok(!hl_yaml_find(root, "nothing") && !hl_yaml_find(size, "size") && !hl_yaml_find(NULL, "a"),
           "absent keys are NULL");
    hl_yaml_destroy(root);
}

static void check_empty(void)
{
    const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n"};
    for (size_t i = 0; i < HL_COUNT(texts); i++) {
        hl_yaml *root = parse(texts[i]);
        tap_ok(root && root->kind == HL_YAML_MAP && root->items == 0, "empty document %zu is an empty map",
               i);
        hl_yaml_destroy(root);
    }
}

static void check_refusals(void)
{
    refuses("a: 1\nb: 2\na: 3\n", "a.yaml:3: key 'a' stands twice, first at line 1");
    refuses("x:\n  b: 1\n  c: 2\n  b: 3\n", "a.yaml:4: key 'b' stands twice, first at line 2");
    refuses("a: &here 1\nb: *here\n", "a.yaml:1: anchors");
    refuses("a: 1\nb: *here\n", "a.yaml:2: aliases");
    refuses("a: !!str 1\n", "a.yaml:1: tags");
    refuses("a: 1\n---\nb: 2\n", "a.yaml:2: a second document");
    refuses("a: 1\n? [x, y]\n: 2\n", "a.yaml:2: a key must be a word");
    refuses("a: \"b\\0c\"\n", "a.yaml:1: a NUL character");
    refuses("a: [1, 2\nb: 3\n", "a.yaml:2: not YAML: ");
    refuses("a:\n\t- 1\n", "a.yaml:2: not YAML: ");
    refuses("a: \xff\xfe\n", "a.yaml: not text at byte ");
    char deep[200];
    memset(deep, '[', 33), memset(deep + 33, ']', 33), deep[66] = '\0';
    refuses(deep, "a.yaml:1: nested deeper than 32 levels");
    deep[32] = ' ', deep[33] = ' ';
    hl_yaml *root = parse(deep);
    tap_ok(root != NULL, "32 levels are read");
    hl_yaml_destroy(root);
}

static void check_limits(void)
{
    hl_str s = {0};
    for (int i = 0; i < 100001; i++) hl_str_add(&s, "- 1\n");
    refuses(s.s, "a.yaml:100000: more than 100000 values");
    for (int i = 0; i < 170000; i++) hl_str_add(&s, "- 1\n");
    refuses(s.s, "a.yaml: 1080004 bytes, more than the limit of 1 MiB");
    hl_str_free(&s);
    for (int i = 0; i < 50000; i++) hl_str_addf(&s, "k%d: 1\n", i);
    hl_yaml *root = parse(s.s);
    tap_ok(root && root->items == 50000, "50000 keys of one map are told apart quickly");
    hl_yaml_destroy(root);
    hl_str_free(&s);
    tap_ok(hl_yaml_load(ctx, "no/such/file.yaml", &root) == HALO_ERR_IO &&
               strstr(halo_error_message(ctx), "no/such/file.yaml"),
           "a missing file is named: %s", halo_error_message(ctx));
}

/* One scalar as each type; an expectation that is NAN or absent means refused. */
static void check_scalar(const char *text, bool is_int, int64_t i, bool is_number, double d, int as_bool)
{
    hl_yaml node = {.kind = HL_YAML_SCALAR, .text = (char *)(uintptr_t)text};
    int64_t got_i = 0;
    double got_d = 0;
    bool got_b = false;
    bool int_ok = hl_yaml_int(&node, &got_i), number_ok = hl_yaml_number(&node, &got_d),
         bool_ok = hl_yaml_bool(&node, &got_b);
    tap_ok(int_ok == is_int && (!is_int || got_i == i) && number_ok == is_number &&
               (!is_number || got_d == d) && (as_bool < 0 ? !bool_ok : bool_ok && got_b == (as_bool == 1)),
           "scalar '%s'", text);
}

static void check_scalars(void)
{
    check_scalar("0", true, 0, true, 0, -1);
    check_scalar("-17", true, -17, true, -17, -1);
    check_scalar("+5", true, 5, true, 5, -1);
    check_scalar("9223372036854775807", true, INT64_MAX, true, 9223372036854775808.0, -1);
    check_scalar("-9223372036854775808", true, INT64_MIN, true, -9223372036854775808.0, -1);
    check_scalar("9223372036854775808", false, 0, true, 9223372036854775808.0, -1);
    check_scalar("1e-3", false, 0, true, 1e-3, -1);
    check_scalar(".5", false, 0, true, 0.5, -1);
    check_scalar("1e999", false, 0, false, 0, -1);
    check_scalar("nan", false, 0, false, 0, -1);
    check_scalar("0x10", false, 0, false, 0, -1);
    check_scalar("1 2", false, 0, false, 0, -1);
    check_scalar("-", false, 0, false, 0, -1);
    check_scalar("", false, 0, false, 0, -1);
    check_scalar("yes", false, 0, false, 0, 1);
    check_scalar("True", false, 0, false, 0, 1);
    check_scalar("no", false, 0, false, 0, 0);
    check_scalar("none", false, 0, false, 0, 0);
    check_scalar("maybe", false, 0, false, 0, -1);
}

static bool number_survives(double value)
{
    char text[32];
    double back;
    hl_yaml_number_text(value, text);
    hl_yaml node = {.kind = HL_YAML_SCALAR, .text = text};
    return hl_yaml_number(&node, &back) && back == value;
}

static void check_numbers(void)
{
    bool all = true;
    for (uint64_t i = 0; i < 2000; i++) {
        double u = hl_rng_uniform(1, HL_STREAM_TEST, i, 0),
               e = 600 * (hl_rng_uniform(1, HL_STREAM_TEST, i, 1) - 0.5);
        all = all && number_survives((u - 0.5) * pow(10, e));
    }
    tap_ok(all, "2000 random numbers survive writing and reading");
    char text[32];
    hl_yaml_number_text(0.01, text);
    tap_ok(strcmp(text, "0.01") == 0, "0.01 is written '%s'", text);
    const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    bool found = false;
    for (size_t i = 0; i < HL_COUNT(locales) && !found; i++)
        found = setlocale(LC_NUMERIC, locales[i]) != NULL;
    if (found)
        tap_ok(number_survives(0.25), "numbers do not depend on the caller's locale");
    else
        tap_skip("no locale with a decimal comma here");
    setlocale(LC_NUMERIC, "C");
}

/* Any text gives a tree or an error, never more: a thousand mutations of a good one. */
static void check_mutations(void)
{
    static const char good[] = "a: {b: [1, 2, 'x'], c: \"d\\n\"}\nlist:\n  - one\n  - two: 3\n    four: |\n  "
                               "    text\n  - >-\n    folded\n# end\n";
    static const char spice[] = "{}[]:,-?&*!|>'\"%@`#\n\t \\0\xc3\x00";
    int read = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        char text[sizeof(good)];
        memcpy(text, good, sizeof(good));
        for (uint64_t k = 0; k <= i % 4; k++)
            text[hl_rng_below(i, HL_STREAM_TEST, k, 0, sizeof(good) - 1)] =
                spice[hl_rng_below(i, HL_STREAM_TEST, k, 1, sizeof(spice) - 1)];
        hl_yaml *root = NULL;
        if (hl_yaml_parse(ctx, "m", text, sizeof(good) - 1, &root) == HALO_OK) read++;
        hl_yaml_destroy(root);
    }
    tap_ok(read > 100 && read < 4900, "5000 mutations: %d are still YAML, none breaks the reader", read);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    check_tree();
    check_empty();
    check_refusals();
    check_limits();
    check_scalars();
    check_numbers();
    check_mutations();
    halo_context_destroy(ctx);
    return tap_done();
}
