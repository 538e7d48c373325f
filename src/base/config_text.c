/* SPDX-License-Identifier: Apache-2.0 */
/* config_text.c -- a table of keys as text: the fields as a file that reads back equal, and the page that documents the keys. */
#include "base/config.h"

#include <stdio.h>

void hl_key_range(const hl_key *key, const char *from, hl_str *out)
{
    const double far = 1e12;
    bool high = key->high < far;
    if (key->low > 0 && key->low <= 1e-6) hl_str_add(out, "above 0");
    else if (!high) hl_str_addf(out, "%.10g or more", key->low);
    else hl_str_addf(out, "%s%.10g to %.10g", from, key->low, key->high);
}

static void write_text(const char *text, hl_str *out)
{
    bool plain = *text && !strpbrk(text, "#'\"{}[]&*!|>%@`,:\\\n\t") && text[0] != '-' && text[0] != '?' && text[0] != ' ' &&
                 text[strlen(text) - 1] != ' ';
    if (plain) {
        hl_str_add(out, text);
        return;
    }
    hl_str_add(out, "\"");
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\') hl_str_addf(out, "\\%c", *p);
        else if (*p == '\n') hl_str_add(out, "\\n");
        else if (*p == '\t') hl_str_add(out, "\\t");
        else hl_str_addn(out, p, 1);
    }
    hl_str_add(out, "\"");
}

static void write_words(const hl_words *w, hl_str *out)
{
    hl_str_add(out, "[");
    for (int i = 0; i < w->n; i++) {
        if (i) hl_str_add(out, ", ");
        write_text(w->word[i], out);
    }
    hl_str_add(out, "]");
}

static void write_map(const hl_map *m, hl_str *out)
{
    bool map = m->n > 0 && m->item[0].values > 0;
    hl_str_add(out, map ? "{" : "[");
    for (int i = 0; i < m->n; i++) {
        const struct hl_map_item *e = &m->item[i];
        if (i) hl_str_add(out, ", ");
        write_text(e->word, out);
        if (e->values) hl_str_add(out, e->values > 1 ? ": [" : ": ");
        for (int k = 0; k < e->values; k++) {
            if (k) hl_str_add(out, ", ");
            write_text(e->value[k], out);
        }
        if (e->values > 1) hl_str_add(out, "]");
    }
    hl_str_add(out, map ? "}" : "]");
}

void hl_config_value(const hl_key *key, const void *settings, hl_str *out)
{
    const void *field = (const char *)settings + key->offset;
    const int64_t *n = field;
    char word[HL_WORD_MAX] = "?";
    switch (key->type) {
    case HL_SETTING_TEXT:
        if (key->none && !*(const char *)field) hl_str_add(out, key->none);
        else write_text(field, out);
        break;
    case HL_SETTING_CHOICE:
        (void)hl_choice(key->choices, *(const int *)field, word, sizeof(word));
        hl_str_add(out, word);
        break;
    case HL_SETTING_BOOL: hl_str_add(out, *(const bool *)field ? "true" : "false"); break;
    case HL_SETTING_INT:
    case HL_SETTING_BYTES:
        if (key->none && *n < 0) hl_str_add(out, key->none);
        else hl_str_addf(out, "%" PRId64, *n);
        break;
    case HL_SETTING_NUMBER:
    case HL_SETTING_SECONDS:
        if (key->none && *(const double *)field < 0) hl_str_add(out, key->none);
        else hl_str_number(out, *(const double *)field);
        break;
    case HL_SETTING_SIZE:
        if (key->none && n[0] == 0) hl_str_add(out, key->none);
        else if (n[0] == n[1] && n[1] == n[2]) hl_str_addf(out, "%" PRId64, n[0]);
        else hl_str_addf(out, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", n[0], n[1], n[2]);
        break;
    case HL_SETTING_WORDS: write_words(field, out); break;
    case HL_SETTING_MAP: write_map(field, out); break;
    }
}

/* Row i, or, where it is a word that names one of the rows below it, that one: "{parameters: 4}". Returns the next row that is not below i. */
static size_t write_row(hl_keys keys, const void *settings, size_t i, hl_str *out)
{
    const hl_key *key = &keys.key[i], *named = NULL;
    size_t n = strlen(key->name), next = i + 1;
    hl_str word = {0};
    hl_config_value(key, settings, &word);
    for (; next < keys.n && strncmp(keys.key[next].name, key->name, n) == 0 && keys.key[next].name[n] == '.'; next++)
        if (word.s && strcmp(keys.key[next].name + n + 1, word.s) == 0) named = &keys.key[next];
    if (named) {
        hl_str_addf(out, "{%s: ", word.s);
        hl_config_value(named, settings, out);
        hl_str_add(out, "}");
    } else hl_str_add(out, word.s ? word.s : "");
    hl_str_free(&word);
    return next;
}

/* The rows below `prefix` from row i on, indented; returns the next row. Rows of a section stand together in the table. */
static size_t write_section(hl_keys keys, const void *settings, size_t i, const char *prefix, int depth, hl_str *out)
{
    size_t n = strlen(prefix);
    while (i < keys.n && strncmp(keys.key[i].name, prefix, n) == 0) {
        const char *rest = keys.key[i].name + n, *dot = strchr(rest, '.');
        if (!dot) {
            hl_str_addf(out, "%*s%s: ", depth * 2, "", rest);
            i = write_row(keys, settings, i, out);
            hl_str_add(out, "\n");
            continue;
        }
        char below[HL_TEXT_MAX];
        snprintf(below, sizeof(below), "%.*s", (int)(dot + 1 - keys.key[i].name), keys.key[i].name);
        hl_str_addf(out, "%*s%.*s:\n", depth * 2, "", (int)(dot - rest), rest);
        i = write_section(keys, settings, i, below, depth + 1, out);
    }
    return i;
}

void hl_config_write(hl_keys keys, const void *settings, hl_str *out) { (void)write_section(keys, settings, 0, "", 0, out); }

static void type_text(const hl_key *key, hl_str *out)
{
    static const char *const names[] = {"text", "", "whole number", "number", "true | false", "number or [D, H, W]", "list", "time", "size", "list or map"};
    char word[HL_WORD_MAX];
    if (key->type == HL_SETTING_WORDS && key->choices) hl_str_add(out, "list of ");
    if (!key->choices) hl_str_add(out, names[key->type]);
    for (int i = 0; key->choices && hl_choice(key->choices, i, word, sizeof(word)); i++) hl_str_addf(out, "%s%s", i ? " | " : "", word);
    if (key->none) hl_str_addf(out, " | %s", key->none);
}

void hl_config_help_json(hl_keys keys, hl_json *j)
{
    hl_json_array(j, "keys");
    for (size_t i = 0; i < keys.n; i++) {
        const hl_key *k = &keys.key[i];
        hl_str type = {0};
        type_text(k, &type);
        hl_json_object(j, NULL);
        hl_json_string(j, "name", k->name);
        hl_json_string(j, "type", type.s ? type.s : "");
        if (k->low != 0 || k->high != 0) {
            hl_json_number(j, "low", k->low);
            hl_json_number(j, "high", k->high);
        }
        hl_json_string(j, "default", k->fallback);
        hl_json_string(j, "help", k->help);
        hl_json_end_object(j);
        hl_str_free(&type);
    }
    hl_json_end_array(j);
}

void hl_config_help(hl_keys keys, hl_str *out)
{
    for (size_t i = 0; i < keys.n; i++) {
        const hl_key *k = &keys.key[i];
        hl_str_addf(out, "  %s: ", k->name);
        type_text(k, out);
        if (k->low != 0 || k->high != 0) {
            hl_str_add(out, " (");
            hl_key_range(k, "", out);
            hl_str_add(out, ")");
        }
        hl_str_addf(out, "\n      default %s\n", *k->fallback ? k->fallback : "empty");
        hl_str_fold(out, k->help, 6, 92);
    }
}
