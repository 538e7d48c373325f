/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c -- libyaml's events made into a small tree. Recursion is bounded by the depth limit, memory by the
 * node and byte limits, so that no text, however hostile, costs more than a few megabytes; keys that stand
 * twice are found by sorting, not by comparing all pairs.
 */
#include "base/yaml.h"
#include "base/file.h"
#include "base/str.h"

#include <locale.h>
#include <stdio.h>
#include <strings.h>
#include <yaml.h>

enum { MOST_BYTES = 1 << 20, MOST_DEPTH = 32, MOST_NODES = 100000 };

typedef struct reader {
    halo_context *ctx;
    const char *name;
    yaml_parser_t parser;
    size_t nodes;
} reader;

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

static halo_status bad(const reader *r, int line, const char *what)
{
    return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: %s", r->name, line, what);
}

static halo_status parser_error(const reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "unknown problem";
    if (p->error == YAML_MEMORY_ERROR)
        return hl_fail(r->ctx, HALO_ERR_NOMEM, "out of memory: parsing '%s'", r->name);
    if (p->error == YAML_READER_ERROR)
        return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s: not text at byte %zu: %s", r->name, p->problem_offset,
                       problem);
    if (p->context)
        return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: not YAML: %s %s (line %d)", r->name,
                       line_of(p->problem_mark), problem, p->context, line_of(p->context_mark));
    return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: not YAML: %s", r->name, line_of(p->problem_mark),
                   problem);
}

static halo_status next(reader *r, yaml_event_t *event)
{
    if (!yaml_parser_parse(&r->parser, event)) return parser_error(r);
    return HALO_OK;
}

void hl_yaml_destroy(hl_yaml *node)
{
    if (!node) return;
    for (size_t i = 0; i < node->items; i++) hl_yaml_destroy(node->item[i]);
    free(node->item);
    free(node->key);
    free(node->text);
    free(node);
}

/* The capacity of item[] is the smallest power of two that holds `items`. */
static halo_status append(reader *r, hl_yaml *parent, hl_yaml *child)
{
    if ((parent->items & (parent->items - 1)) == 0) {
        size_t cap = parent->items ? 2 * parent->items : 1;
        hl_yaml **more = realloc(parent->item, cap * sizeof(hl_yaml *));
        if (!more) return hl_fail(r->ctx, HALO_ERR_NOMEM, "out of memory: parsing '%s'", r->name);
        parent->item = more;
    }
    parent->item[parent->items++] = child;
    return HALO_OK;
}

static halo_status new_node(reader *r, hl_yaml_kind kind, int line, hl_yaml **node)
{
    if (++r->nodes > MOST_NODES) return bad(r, line, "more than 100000 values");
    HL_TRY(hl_calloc(r->ctx, 1, sizeof(**node), "a YAML value", node));
    (*node)->kind = kind;
    (*node)->line = line;
    return HALO_OK;
}

static halo_status copy_text(reader *r, const yaml_event_t *event, char **out)
{
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return bad(r, line_of(event->start_mark), "a NUL character in a string");
    return hl_strdup(r->ctx, text, out);
}

/* Anchors and tags: the event kinds keep them in different places. */
static halo_status plain_data_only(reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
    if (event->type == YAML_MAPPING_START_EVENT)
        anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
    int line = line_of(event->start_mark);
    if (event->type == YAML_ALIAS_EVENT) return bad(r, line, "aliases (*name) are not supported");
    if (anchor) return bad(r, line, "anchors (&name) are not supported");
    if (tag) return bad(r, line, "tags (!name) are not supported");
    return HALO_OK;
}

static int by_key(const void *a, const void *b)
{
    const hl_yaml *x = *(hl_yaml *const *)a, *y = *(hl_yaml *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static halo_status keys_differ(reader *r, const hl_yaml *map)
{
    if (map->items < 2) return HALO_OK;
    hl_yaml **sorted;
    HL_TRY(hl_calloc(r->ctx, map->items, sizeof(hl_yaml *), "the keys of a map", &sorted));
    memcpy(sorted, map->item, map->items * sizeof(hl_yaml *));
    qsort(sorted, map->items, sizeof(hl_yaml *), by_key);
    halo_status st = HALO_OK;
    for (size_t i = 1; i < map->items && st == HALO_OK; i++)
        if (strcmp(sorted[i]->key, sorted[i - 1]->key) == 0)
            st = hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: key '%s' stands twice, first at line %d", r->name,
                         sorted[i]->line, sorted[i]->key, sorted[i - 1]->line);
    free(sorted);
    return st;
}

static halo_status read_node(reader *r, const yaml_event_t *event, int depth, hl_yaml **out);

/* The items of a list, up to its end event. */
static halo_status read_list(reader *r, hl_yaml *list, int depth)
{
    for (;;) {
        yaml_event_t event;
        hl_yaml *child = NULL;
        HL_TRY(next(r, &event));
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        halo_status st = end ? HALO_OK : read_node(r, &event, depth + 1, &child);
        yaml_event_delete(&event);
        if (end || st != HALO_OK) return st;
        if ((st = append(r, list, child)) != HALO_OK) {
            hl_yaml_destroy(child);
            return st;
        }
    }
}

static halo_status read_key(reader *r, const yaml_event_t *event, char **key)
{
    HL_TRY(plain_data_only(r, event));
    if (event->type != YAML_SCALAR_EVENT)
        return bad(r, line_of(event->start_mark), "a key must be a word, not a list or map");
    return copy_text(r, event, key);
}

/* One `key: value`; *end at the map's end event. */
static halo_status read_pair(reader *r, hl_yaml *map, int depth, bool *end)
{
    yaml_event_t event;
    char *key = NULL;
    hl_yaml *child = NULL;
    HL_TRY(next(r, &event));
    *end = event.type == YAML_MAPPING_END_EVENT;
    int line = line_of(event.start_mark);
    halo_status st = *end ? HALO_OK : read_key(r, &event, &key);
    yaml_event_delete(&event);
    if (*end || st != HALO_OK) return st;
    HL_GOTO(st, next(r, &event), free_key);
    st = read_node(r, &event, depth + 1, &child);
    yaml_event_delete(&event);
    if (st != HALO_OK) goto free_key;
    child->key = key;
    child->line = line; /* a value may begin on the line below its key */
    if ((st = append(r, map, child)) != HALO_OK) hl_yaml_destroy(child);
    return st;
free_key:
    free(key);
    return st;
}

static halo_status read_map(reader *r, hl_yaml *map, int depth)
{
    for (bool end = false; !end;) HL_TRY(read_pair(r, map, depth, &end));
    return keys_differ(r, map);
}

static halo_status read_node(reader *r, const yaml_event_t *event, int depth, hl_yaml **out)
{
    int line = line_of(event->start_mark);
    HL_TRY(plain_data_only(r, event));
    if (depth > MOST_DEPTH) return bad(r, line, "nested deeper than 32 levels");
    hl_yaml_kind kind = event->type == YAML_SCALAR_EVENT           ? HL_YAML_SCALAR
                        : event->type == YAML_SEQUENCE_START_EVENT ? HL_YAML_LIST
                                                                   : HL_YAML_MAP;
    hl_yaml *node;
    HL_TRY(new_node(r, kind, line, &node));
    halo_status st;
    if (kind == HL_YAML_SCALAR) {
        node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        st = copy_text(r, event, &node->text);
    } else {
        st = kind == HL_YAML_LIST ? read_list(r, node, depth) : read_map(r, node, depth);
    }
    if (st != HALO_OK)
        hl_yaml_destroy(node);
    else
        *out = node;
    return st;
}

/* The events of one document around its root; libyaml grants their order. */
static halo_status read_stream(reader *r, hl_yaml **root)
{
    for (;;) {
        yaml_event_t event;
        HL_TRY(next(r, &event));
        yaml_event_type_t type = event.type;
        halo_status st = HALO_OK;
        if (type == YAML_DOCUMENT_START_EVENT && *root)
            st = bad(r, line_of(event.start_mark), "a second document");
        else if (type == YAML_ALIAS_EVENT || type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
                 type == YAML_MAPPING_START_EVENT)
            st = read_node(r, &event, 1, root);
        yaml_event_delete(&event);
        if (st != HALO_OK || type == YAML_STREAM_END_EVENT) return st;
    }
}

static bool is_empty(const hl_yaml *node)
{
    return !node || (node->kind == HL_YAML_SCALAR && !node->quoted && !*node->text);
}

halo_status hl_yaml_parse(halo_context *ctx, const char *name, const char *text, size_t bytes, hl_yaml **out)
{
    if (bytes > MOST_BYTES)
        return hl_fail(ctx, HALO_ERR_FORMAT, "%s: %zu bytes, more than the limit of 1 MiB", name, bytes);
    reader r = {.ctx = ctx, .name = name};
    if (!yaml_parser_initialize(&r.parser))
        return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: parsing '%s'", name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    hl_yaml *root = NULL;
    halo_status st = read_stream(&r, &root);
    yaml_parser_delete(&r.parser);
    if (st == HALO_OK && is_empty(root)) {
        hl_yaml_destroy(root);
        root = NULL;
        st = new_node(&r, HL_YAML_MAP, 1, &root);
    }
    if (st == HALO_OK)
        *out = root;
    else
        hl_yaml_destroy(root);
    return st;
}

halo_status hl_yaml_load(halo_context *ctx, const char *path, hl_yaml **root)
{
    char *text;
    size_t bytes;
    HL_TRY(hl_file_read(ctx, path, MOST_BYTES, &text, &bytes));
    halo_status st = hl_yaml_parse(ctx, path, text, bytes, root);
    free(text);
    return st;
}

hl_yaml *hl_yaml_find(const hl_yaml *map, const char *key)
{
    if (!map || map->kind != HL_YAML_MAP) return NULL;
    for (size_t i = 0; i < map->items; i++)
        if (strcmp(map->item[i]->key, key) == 0) return map->item[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------
 * scalars */

static bool plain(const hl_yaml *node)
{
    return node && node->kind == HL_YAML_SCALAR && !node->quoted && *node->text;
}

bool hl_yaml_int(const hl_yaml *node, int64_t *out)
{
    if (!plain(node)) return false;
    const char *s = node->text;
    bool negative = *s == '-';
    if (*s == '-' || *s == '+') s++;
    int64_t value = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (!hl_mul64(value, 10, &value) || !hl_add64(value, negative ? '0' - *s : *s - '0', &value))
            return false;
    }
    *out = value;
    return true;
}

/* strtod and printf follow the caller's locale; files do not. */
static locale_t enter_c_locale(locale_t *old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *old = c ? uselocale(c) : (locale_t)0;
    return c;
}

static void leave_c_locale(locale_t c, locale_t old)
{
    if (!c) return;
    uselocale(old);
    freelocale(c);
}

bool hl_yaml_number(const hl_yaml *node, double *out)
{
    if (!plain(node) || node->text[strspn(node->text, "0123456789+-.eE")] != '\0') return false;
    char *end;
    locale_t old, c = enter_c_locale(&old);
    double value = strtod(node->text, &end);
    leave_c_locale(c, old);
    if (*end != '\0' || !isfinite(value)) return false;
    *out = value;
    return true;
}

void hl_yaml_number_text(double value, char out[32])
{
    locale_t old, c = enter_c_locale(&old);
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value) break;
    }
    leave_c_locale(c, old);
}

bool hl_yaml_bool(const hl_yaml *node, bool *out)
{
    static const char *const words[][2] = {{"no", "yes"}, {"false", "true"}, {"off", "on"}, {"none", "none"}};
    if (!plain(node)) return false;
    for (size_t i = 0; i < HL_COUNT(words); i++)
        for (int value = 0; value < 2; value++)
            if (strcasecmp(node->text, words[i][value]) == 0) {
                *out = value == 1;
                return true;
            }
    return false;
}
