/* SPDX-License-Identifier: Apache-2.0 */
/* config.c -- a table of keys reads settings: from a file, from key=value, from its own defaults; config_text.c writes them. */
#include "base/config.h"

#include <stdio.h>

typedef struct place { /* where a value stands, for messages */
    halo_context *ctx;
    hl_where where;
} place;

void hl_where_add(const hl_where *where, hl_str *out)
{
    if (where->line > 0) hl_str_addf(out, "%s:%d: ", where->name, where->line);
    else if (where->name) hl_str_addf(out, "%s: ", where->name);
}

static halo_status complain(const place *at, const char *format, ...) HALO_PRINTF(2, 3);
static halo_status complain(const place *at, const char *format, ...)
{
    char text[HL_TEXT_MAX * 2];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    hl_str where = {0};
    hl_where_add(&at->where, &where);
    halo_status st = hl_fail(at->ctx, HALO_ERR_USAGE, "%s%s", where.s ? where.s : "", text);
    hl_str_free(&where);
    return st;
}

bool hl_choice(const char *choices, int i, char *out, size_t size)
{
    for (; i > 0; i--) {
        choices = strchr(choices, '|');
        if (!choices) return false;
        choices++;
    }
    size_t n = strcspn(choices, "|");
    if (n + 1 > size) return false;
    memcpy(out, choices, n);
    out[n] = '\0';
    return true;
}

static int choice_index(const char *choices, const char *word)
{
    char name[HL_WORD_MAX];
    for (int i = 0; hl_choice(choices, i, name, sizeof(name)); i++)
        if (strcmp(name, word) == 0) return i;
    return -1;
}

/* ------------------------------------------------------------------------------------------- one value of each type */

/* "1h30m", "90", "2.5h" */
static bool parse_seconds(const char *text, double *out)
{
    double total = 0;
    if (!*text) return false;
    while (*text) {
        char *end;
        double x = strtod(text, &end);
        if (end == text || !(x >= 0) || !isfinite(x)) return false;
        double unit = *end == 'h' ? 3600 : *end == 'm' ? 60 : *end == 'd' ? 86400 : *end == 's' || !*end ? 1 : 0;
        if (unit == 0) return false;
        total += x * unit;
        text = *end ? end + 1 : end;
    }
    *out = total;
    return true;
}

static bool parse_bytes(const char *text, int64_t *out)
{
    static const struct { const char *unit; double factor; } units[] = {
        {"", 1}, {"B", 1}, {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.},
        {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    char *end;
    double x = strtod(text, &end);
    if (end == text || !(x >= 0)) return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < HL_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && x * units[i].factor < 9e18) {
            *out = (int64_t)(x * units[i].factor);
            return true;
        }
    return false;
}

static bool in_range(const hl_key *key, double x) { return key->low == 0 && key->high == 0 ? true : x >= key->low && x <= key->high; }

static halo_status out_of_range(const place *at, const hl_key *key, const char *text)
{
    hl_str range = {0};
    hl_key_range(key, "from ", &range);
    halo_status st = complain(at, "'%s' is %s, must be %s", key->name, text, range.s ? range.s : "");
    hl_str_free(&range);
    return st;
}

static halo_status expected(const place *at, const hl_key *key, const char *what, const hl_yaml *v)
{
    const char *got = v->kind == HL_YAML_MAP ? "a map" : v->kind == HL_YAML_LIST ? "a list" : v->text, *quote = v->kind == HL_YAML_SCALAR ? "'" : "";
    return complain(at, "'%s' must be %s%s%s, not %s%s%s", key->name, what, key->none ? " or " : "", key->none ? key->none : "", quote, got, quote);
}

static halo_status set_choice(const place *at, const hl_key *key, const hl_yaml *v, int *out)
{
    const char *names[HL_WORDS_MAX * 2];
    char words[HL_WORDS_MAX * 2][HL_WORD_MAX];
    int i = choice_index(key->choices, v->text);
    if (i >= 0) {
        *out = i;
        return HALO_OK;
    }
    size_t n = 0;
    while (n < HL_COUNT(names) && hl_choice(key->choices, (int)n, words[n], sizeof(words[n]))) {
        names[n] = words[n];
        n++;
    }
    const char *near = hl_nearest(v->text, names, n);
    if (near) return complain(at, "'%s' cannot be '%s' (did you mean '%s'?); one of %s", key->name, v->text, near, key->choices);
    return complain(at, "'%s' cannot be '%s'; one of %s", key->name, v->text, key->choices);
}

static halo_status set_int(const place *at, const hl_key *key, const hl_yaml *v, int64_t *out)
{
    int64_t x;
    if (!hl_yaml_int(v, &x)) return expected(at, key, "a whole number", v);
    if (!in_range(key, (double)x)) return out_of_range(at, key, v->text);
    *out = x;
    return HALO_OK;
}

static halo_status set_size(const place *at, const hl_key *key, const hl_yaml *v, int64_t out[3])
{
    int64_t x[3];
    if (v->kind == HL_YAML_LIST) {
        if (v->items != 3) return complain(at, "'%s' must be one number or [D, H, W], not a list of %zu", key->name, v->items);
        for (int i = 0; i < 3; i++) HL_TRY(set_int(at, key, v->item[i], &x[i]));
    } else {
        HL_TRY(set_int(at, key, v, &x[0]));
        x[1] = x[2] = x[0];
    }
    memcpy(out, x, sizeof(x));
    return HALO_OK;
}

static halo_status add_word(const place *at, const hl_key *key, const hl_yaml *v, hl_words *out)
{
    int ignored;
    if (v->kind != HL_YAML_SCALAR) return expected(at, key, "a word or a list of words", v);
    if (key->choices) HL_TRY(set_choice(at, key, v, &ignored));
    if (out->n == HL_WORDS_MAX || strlen(v->text) >= HL_WORD_MAX)
        return complain(at, "'%s' takes at most %d words of %d characters", key->name, HL_WORDS_MAX, HL_WORD_MAX - 1);
    memcpy(out->word[out->n++], v->text, strlen(v->text) + 1);
    return HALO_OK;
}

static halo_status set_words(const place *at, const hl_key *key, const hl_yaml *v, hl_words *out)
{
    hl_words w = {0};
    if (v->kind == HL_YAML_LIST)
        for (size_t i = 0; i < v->items; i++) HL_TRY(add_word(at, key, v->item[i], &w));
    else if (v->kind != HL_YAML_SCALAR || *v->text) HL_TRY(add_word(at, key, v, &w));
    *out = w;
    return HALO_OK;
}

static halo_status copy_word(const place *at, const hl_key *key, const hl_yaml *v, char out[HL_WORD_MAX])
{
    const char *text = v->kind == HL_YAML_SCALAR ? v->text : NULL;
    if (!text) return expected(at, key, "words, or a map of them", v);
    if (strlen(text) >= HL_WORD_MAX) return complain(at, "'%s': '%.80s...' is longer than %d characters", key->name, text, HL_WORD_MAX - 1);
    memcpy(out, text, strlen(text) + 1);
    return HALO_OK;
}

static halo_status set_item(const place *at, const hl_key *key, const hl_yaml *v, struct hl_map_item *item)
{
    if (!v->key) return copy_word(at, key, v, item->word);
    if (strlen(v->key) >= HL_WORD_MAX) return complain(at, "'%s': '%.80s...' is longer than %d characters", key->name, v->key, HL_WORD_MAX - 1);
    memcpy(item->word, v->key, strlen(v->key) + 1);
    item->values = v->kind == HL_YAML_LIST ? 2 : 1;
    if (v->kind == HL_YAML_SCALAR) return copy_word(at, key, v, item->value[0]);
    if (v->kind != HL_YAML_LIST || v->items != 2) return complain(at, "'%s.%s' must be a word or a list of two", key->name, v->key);
    HL_TRY(copy_word(at, key, v->item[0], item->value[0]));
    return copy_word(at, key, v->item[1], item->value[1]);
}

static halo_status set_map(const place *at, const hl_key *key, const hl_yaml *v, hl_map *out)
{
    hl_map m = {0};
    bool one = v->kind == HL_YAML_SCALAR;
    size_t n = one ? *v->text != '\0' : v->items;
    if (n > HL_MAP_MAX) return complain(at, "'%s' takes at most %d entries", key->name, HL_MAP_MAX);
    for (size_t i = 0; i < n; i++)
        HL_TRY(one ? copy_word(at, key, v, m.item[m.n++].word) : set_item(at, key, v->item[i], &m.item[m.n++]));
    *out = m;
    return HALO_OK;
}

static halo_status set_none(const hl_key *key, void *field)
{
    switch (key->type) {
    case HL_SETTING_TEXT: *(char *)field = '\0'; break;
    case HL_SETTING_INT:
    case HL_SETTING_BYTES: *(int64_t *)field = -1; break;
    case HL_SETTING_NUMBER:
    case HL_SETTING_SECONDS: *(double *)field = -1; break;
    case HL_SETTING_SIZE: memset(field, 0, 3 * sizeof(int64_t)); break;
    case HL_SETTING_WORDS: memset(field, 0, sizeof(hl_words)); break;
    case HL_SETTING_MAP: memset(field, 0, sizeof(hl_map)); break;
    case HL_SETTING_CHOICE:
    case HL_SETTING_BOOL: HL_BUG_UNLESS(!"a choice or switch has no none");
    }
    return HALO_OK;
}

static halo_status set_scalar(const place *at, const hl_key *key, const hl_yaml *v, void *field)
{
    double x;
    switch (key->type) {
    case HL_SETTING_TEXT:
        if (strlen(v->text) >= HL_TEXT_MAX) return complain(at, "'%s' is longer than %d characters", key->name, HL_TEXT_MAX - 1);
        memcpy(field, v->text, strlen(v->text) + 1);
        return HALO_OK;
    case HL_SETTING_CHOICE: return set_choice(at, key, v, field);
    case HL_SETTING_INT: return set_int(at, key, v, field);
    case HL_SETTING_NUMBER:
        if (!hl_yaml_number(v, &x) || !isfinite(x)) return expected(at, key, "a number", v);
        if (!in_range(key, x)) return out_of_range(at, key, v->text);
        *(double *)field = x;
        return HALO_OK;
    case HL_SETTING_BOOL: return hl_yaml_bool(v, field) ? HALO_OK : expected(at, key, "true or false", v);
    case HL_SETTING_SECONDS:
        if (!parse_seconds(v->text, field)) return expected(at, key, "a time such as 90s, 15m or 1h30m", v);
        return HALO_OK;
    case HL_SETTING_BYTES:
        if (!parse_bytes(v->text, field)) return expected(at, key, "a size such as 64MiB or 16GiB", v);
        return HALO_OK;
    case HL_SETTING_SIZE: return set_size(at, key, v, field);
    case HL_SETTING_WORDS: return set_words(at, key, v, field);
    case HL_SETTING_MAP: return set_map(at, key, v, field);
    }
    return HALO_OK;
}

static halo_status set_key(const place *at, const hl_key *key, const hl_yaml *v, void *settings)
{
    void *field = (char *)settings + key->offset;
    if (key->none && v->kind == HL_YAML_SCALAR && strcmp(v->text, key->none) == 0) return set_none(key, field);
    if (v->kind == HL_YAML_LIST && key->type == HL_SETTING_SIZE) return set_size(at, key, v, field);
    if (v->kind == HL_YAML_LIST && key->type == HL_SETTING_WORDS) return set_words(at, key, v, field);
    if (key->type == HL_SETTING_MAP) return set_map(at, key, v, field);
    if (v->kind != HL_YAML_SCALAR) return expected(at, key, "one value", v);
    return set_scalar(at, key, v, field);
}

/* ------------------------------------------------------------------------------------------------------- the table */

static const hl_key *find(hl_keys keys, const char *name)
{
    for (size_t i = 0; i < keys.n; i++)
        if (strcmp(keys.key[i].name, name) == 0) return &keys.key[i];
    return NULL;
}

/* Is there any key below `name`? */
static bool is_section(hl_keys keys, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < keys.n; i++)
        if (strncmp(keys.key[i].name, name, n) == 0 && keys.key[i].name[n] == '.') return true;
    return false;
}

/* "epochs" where "train.epochs" is meant: the commonest slip of all. */
static const char *same_ending(hl_keys keys, const char *name)
{
    const char *word = strrchr(name, '.');
    word = word ? word + 1 : name;
    for (size_t i = 0; i < keys.n; i++) {
        const char *dot = strrchr(keys.key[i].name, '.');
        if (dot && strcmp(dot + 1, word) == 0) return keys.key[i].name;
    }
    return NULL;
}

static halo_status unknown(const place *at, hl_keys keys, const char *name)
{
    const char **names;
    HL_TRY(hl_calloc(at->ctx, keys.n, sizeof(*names), "key names", &names));
    for (size_t i = 0; i < keys.n; i++) names[i] = keys.key[i].name;
    const char *near = same_ending(keys, name);
    if (!near) near = hl_nearest(name, names, keys.n);
    halo_status st = near ? complain(at, "unknown key '%s' (did you mean '%s'?)", name, near)
                          : complain(at, "unknown key '%s'; '%s' lists all", name, keys.page ? keys.page : "halo help config");
    free(names);
    return st;
}

static void note(const place *at, hl_keys keys, const hl_key *key)
{
    if (keys.where) keys.where[key - keys.key] = at->where;
}

/* Setting "reduce.average.parameters" makes "reduce.average" the word "parameters". */
static halo_status choose_parent(const place *at, hl_keys keys, const char *name, void *settings)
{
    char parent[HL_TEXT_MAX];
    const char *dot = strrchr(name, '.');
    if (!dot) return HALO_OK;
    snprintf(parent, sizeof(parent), "%.*s", (int)(dot - name), name);
    const hl_key *key = find(keys, parent);
    int i = key && key->type == HL_SETTING_CHOICE ? choice_index(key->choices, dot + 1) : -1;
    if (i < 0 || strcmp(at->where.name, "default") == 0) return HALO_OK;
    *(int *)((char *)settings + key->offset) = i;
    note(at, keys, key);
    return HALO_OK;
}

static halo_status apply_node(place at, hl_keys keys, const char *name, const hl_yaml *v, void *settings)
{
    at.where.line = v->line;
    const hl_key *key = find(keys, name);
    if (v->kind == HL_YAML_MAP && is_section(keys, name)) {
        for (size_t i = 0; i < v->items; i++) {
            char full[HL_TEXT_MAX];
            at.where.line = v->item[i]->line;
            if (snprintf(full, sizeof(full), "%s.%s", name, v->item[i]->key) >= (int)sizeof(full))
                return complain(&at, "a key is longer than %d characters", HL_TEXT_MAX - 1);
            HL_TRY(apply_node(at, keys, full, v->item[i], settings));
        }
        return HALO_OK;
    }
    if (!key && is_section(keys, name)) return complain(&at, "'%s' must be a map of keys", name);
    if (!key) return unknown(&at, keys, name);
    HL_TRY(set_key(&at, key, v, settings));
    note(&at, keys, key);
    return choose_parent(&at, keys, name, settings);
}

halo_status hl_config_apply(halo_context *ctx, hl_keys keys, void *settings, const char *name, const hl_yaml *map)
{
    place at = {ctx, {name, map->line}};
    if (map->kind != HL_YAML_MAP) return complain(&at, "a configuration must be a map of keys");
    for (size_t i = 0; i < map->items; i++) HL_TRY(apply_node(at, keys, map->item[i]->key, map->item[i], settings));
    return HALO_OK;
}

halo_status hl_config_load(halo_context *ctx, hl_keys keys, void *settings, const char *path)
{
    hl_yaml *root;
    HL_TRY(hl_config_status(hl_yaml_load(ctx, path, &root)));
    halo_status st = hl_config_apply(ctx, keys, settings, path, root);
    hl_yaml_destroy(root);
    return st;
}

static halo_status apply_text(place at, hl_keys keys, void *settings, const char *name, const char *value)
{
    hl_yaml *root;
    hl_str text = {0};
    hl_str_addf(&text, "v: %s", value);
    if (text.failed) return hl_fail(at.ctx, HALO_ERR_NOMEM, "out of memory: an override");
    halo_status st = hl_yaml_parse(at.ctx, at.where.name, text.s, text.len, &root);
    hl_str_free(&text);
    if (st != HALO_OK) return hl_config_status(st);
    if (root->kind == HL_YAML_MAP && root->items == 1) {
        root->item[0]->line = 0;
        st = apply_node(at, keys, name, root->item[0], settings);
    } else st = complain(&at, "'%s' must be one value", name);
    hl_yaml_destroy(root);
    return st;
}

halo_status hl_config_override(halo_context *ctx, hl_keys keys, void *settings, const char *assignment)
{
    place at = {ctx, {"command line", 0}};
    char name[HL_TEXT_MAX];
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment) return complain(&at, "'%s' is not key=value", assignment);
    if ((size_t)(equals - assignment) >= sizeof(name)) return complain(&at, "a key is longer than %d characters", HL_TEXT_MAX - 1);
    memcpy(name, assignment, (size_t)(equals - assignment));
    name[equals - assignment] = '\0';
    return apply_text(at, keys, settings, name, equals[1] ? equals + 1 : "''");
}

halo_status hl_config_defaults(halo_context *ctx, hl_keys keys, void *settings)
{
    keys.where = NULL;
    for (size_t i = 0; i < keys.n; i++) {
        place at = {ctx, {"default", 0}};
        HL_TRY(apply_text(at, keys, settings, keys.key[i].name, *keys.key[i].fallback ? keys.key[i].fallback : "''"));
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------ values of a program's own */

static halo_status check_number(const place *at, const hl_key *key, double x)
{
    if ((key->none && x == -1) || (isfinite(x) && in_range(key, x))) return HALO_OK;
    hl_str text = {0};
    hl_str_number(&text, x);
    halo_status st = out_of_range(at, key, text.s ? text.s : "");
    hl_str_free(&text);
    return st;
}

static halo_status check_key(const place *at, const hl_key *key, const void *field)
{
    char word[HL_WORD_MAX];
    const int64_t *n = field;
    int i;
    switch (key->type) {
    case HL_SETTING_CHOICE:
        i = *(const int *)field;
        if (i >= 0 && hl_choice(key->choices, i, word, sizeof(word))) return HALO_OK;
        return complain(at, "'%s' is %d, must be the number of one of %s", key->name, i, key->choices);
    case HL_SETTING_INT: return check_number(at, key, (double)*n);
    case HL_SETTING_NUMBER: return check_number(at, key, *(const double *)field);
    case HL_SETTING_SIZE:
        if (key->none && n[0] == 0) return HALO_OK;
        for (int d = 0; d < 3; d++) HL_TRY(check_number(at, key, (double)n[d]));
        return HALO_OK;
    case HL_SETTING_TEXT:
    case HL_SETTING_BOOL:
    case HL_SETTING_WORDS:
    case HL_SETTING_SECONDS:
    case HL_SETTING_BYTES:
    case HL_SETTING_MAP: return HALO_OK; /* without ranges */
    }
    return HALO_OK;
}

halo_status hl_config_check(halo_context *ctx, hl_keys keys, const void *settings, const char *name)
{
    place at = {ctx, {name, 0}};
    for (size_t i = 0; i < keys.n; i++) HL_TRY(check_key(&at, &keys.key[i], (const char *)settings + keys.key[i].offset));
    return HALO_OK;
}
