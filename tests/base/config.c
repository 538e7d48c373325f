/* SPDX-License-Identifier: Apache-2.0 */
/* config.c -- the settings engine: every type, every complaint, and a text that reads back equal. */
#include "base/config.h"
#include "tests/tap.h"

typedef struct sample {
    char text[HL_TEXT_MAX];
    int choice, average;
    int64_t whole, optional, steps, size[3], bytes;
    double number, seconds;
    bool flag;
    hl_words words;
} sample;

#define AT(f) offsetof(sample, f)
static const hl_key rows[] = {
    {"text", HL_SETTING_TEXT, AT(text), "abc", 0, 0, NULL, "none", "a text"},
    {"choice", HL_SETTING_CHOICE, AT(choice), "two", 0, 0, "one|two|three", NULL, "a choice"},
    {"deep.whole", HL_SETTING_INT, AT(whole), "3", 1, 10, NULL, NULL, "a whole number"},
    {"deep.optional", HL_SETTING_INT, AT(optional), "none", 1, 1e9, NULL, "none", "maybe a number"},
    {"deep.number", HL_SETTING_NUMBER, AT(number), "1e-3", 0, 1, NULL, NULL, "a number"},
    {"size", HL_SETTING_SIZE, AT(size), "64", 1, 1e9, NULL, "auto", "extents"},
    {"flag", HL_SETTING_BOOL, AT(flag), "no", 0, 0, NULL, NULL, "a switch"},
    {"words", HL_SETTING_WORDS, AT(words), "[log1p]", 0, 0, "log1p|z-score", NULL, "words"},
    {"time", HL_SETTING_SECONDS, AT(seconds), "none", 0, 0, NULL, "none", "a time"},
    {"limit", HL_SETTING_BYTES, AT(bytes), "none", 0, 0, NULL, "none", "a size"},
    {"average", HL_SETTING_CHOICE, AT(average), "gradients", 0, 0, "gradients|parameters", NULL, "a word or a map"},
    {"average.parameters", HL_SETTING_INT, AT(steps), "none", 1, 1e9, NULL, "none", "see average"},
};
static const hl_keys keys = {.key = rows, .n = HL_COUNT(rows)};

static halo_context *ctx;

static halo_status apply(sample *s, const char *text)
{
    hl_yaml *root;
    HL_TRY(hl_yaml_parse(ctx, "a.yaml", text, strlen(text), &root));
    halo_status st = hl_config_apply(ctx, keys, s, "a.yaml", root);
    hl_yaml_destroy(root);
    return st;
}

static void values(void)
{
    sample s = {0};
    tap_ok(hl_config_defaults(ctx, keys, &s) == HALO_OK, "defaults apply");
    tap_ok(strcmp(s.text, "abc") == 0 && s.choice == 1 && s.whole == 3 && s.optional == -1 && s.number == 1e-3 && s.size[2] == 64 && !s.flag &&
               s.words.n == 1 && s.seconds == -1 && s.bytes == -1 && s.average == 0,
           "defaults have their values");
    tap_ok(apply(&s, "text: none\nchoice: three\ndeep: {whole: 7, optional: 9, number: 0.25}\nsize: [1, 2, 3]\nflag: yes\n"
                     "words: [z-score, log1p]\ntime: 1h30m\nlimit: 16GiB\naverage: {parameters: 4}\n") == HALO_OK,
           "a file of every type applies");
    tap_ok(!*s.text && s.choice == 2 && s.whole == 7 && s.optional == 9 && s.number == 0.25 && s.size[0] == 1 && s.size[2] == 3 && s.flag,
           "scalars, nesting and lists have their values");
    tap_ok(s.words.n == 2 && strcmp(s.words.word[1], "log1p") == 0, "lists of words keep their order");
    tap_ok(s.seconds == 5400 && s.bytes == (int64_t)16 << 30, "times and sizes have units");
    tap_ok(s.average == 1 && s.steps == 4, "a map under a word chooses the word");
    tap_ok(hl_config_override(ctx, keys, &s, "deep.whole=5") == HALO_OK && s.whole == 5, "key=value overrides a nested key");
    tap_ok(hl_config_override(ctx, keys, &s, "size=32") == HALO_OK && s.size[1] == 32, "one number is all three extents");
    tap_ok(hl_config_override(ctx, keys, &s, "words=z-score") == HALO_OK && s.words.n == 1, "one word is a list of one");
}

static void round_trip(void)
{
    sample s = {0}, again = {0};
    hl_str text = {0};
    (void)hl_config_defaults(ctx, keys, &s);
    (void)apply(&s, "text: 'it: is # odd \"quoted\"'\ndeep: {number: 0.1}\nsize: [4, 5, 6]\naverage: {parameters: 2}\nwords: []\ntime: 90s");
    hl_config_write(keys, &s, &text);
    (void)hl_config_defaults(ctx, keys, &again);
    tap_ok(apply(&again, text.s) == HALO_OK, "a written configuration reads back");
    tap_ok(memcmp(&s, &again, sizeof(s)) == 0, "and is equal");
    hl_str_free(&text);
}

static void complains(const char *text, const char *message)
{
    sample s = {0};
    (void)hl_config_defaults(ctx, keys, &s);
    sample before = s;
    halo_status st = apply(&s, text);
    tap_ok(st == HALO_ERR_USAGE && strstr(halo_error_message(ctx), message), "'%.30s' is refused: %s", text, halo_error_message(ctx));
    (void)before;
}

static void complaints(void)
{
    complains("chioce: one", "a.yaml:1: unknown key 'chioce' (did you mean 'choice'?)");
    complains("deep:\n  whole: 3\n  numbr: 1", "a.yaml:3: unknown key 'deep.numbr' (did you mean 'deep.number'?)");
    complains("choice: tow", "(did you mean 'two'?)");
    complains("deep: {whole: 11}", "'deep.whole' is 11, must be from 1 to 10");
    complains("deep: {whole: 1.5}", "must be a whole number, not '1.5'");
    complains("deep: {optional: x}", "must be a whole number or none, not 'x'");
    complains("deep: 3", "'deep' must be a map of keys");
    complains("size: [1, 2]", "not a list of 2");
    complains("size: {a: 1}", "must be one value");
    complains("flag: maybe", "must be true or false");
    complains("words: [log2]", "cannot be 'log2'");
    complains("time: soon", "a time such as");
    complains("limit: 12 parsecs", "a size such as");
    complains("deep: {number: .nan}", "must be a number");
    complains("- a\n- b", "must be a map of keys");
    sample s = {0};
    tap_ok(hl_config_override(ctx, keys, &s, "nothing") == HALO_ERR_USAGE, "an override without = is refused");
    tap_ok(hl_config_override(ctx, keys, &s, "deep.whole=[1") != HALO_OK, "an override of broken YAML is refused");
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) return 1;
    values();
    round_trip();
    complaints();
    halo_context_destroy(ctx);
    return tap_done();
}
