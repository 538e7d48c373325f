/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h -- a YAML document as a small tree with line numbers. The only place that knows libyaml. Anchors and aliases, tags and several
 * documents are refused: a configuration is plain data.
 */
#ifndef HL_YAML_H
#define HL_YAML_H

#include "base/base.h"

typedef enum hl_yaml_kind { HL_YAML_SCALAR = 0, HL_YAML_LIST, HL_YAML_MAP } hl_yaml_kind;

typedef struct hl_yaml hl_yaml;
struct hl_yaml {
    hl_yaml_kind kind;
    int line;         /* 1-based */
    char *key;        /* inside a map; NULL else */
    char *text;       /* scalar */
    bool quoted;      /* scalar was quoted: "1" is a string */
    hl_yaml **item;   /* list and map, in file order */
    size_t items;
};

/* `name` appears in errors as 'name:line'. text need not end in NUL. The caller destroys *root. Limits: 1 MiB, depth 32, 100000 nodes. A key that
 * stands twice in a map is an error. An empty document gives an empty map. */
halo_status hl_yaml_parse(halo_context *ctx, const char *name, const char *text, size_t bytes, hl_yaml **root);
halo_status hl_yaml_load(halo_context *ctx, const char *path, hl_yaml **root);
void hl_yaml_destroy(hl_yaml *node);

hl_yaml *hl_yaml_find(const hl_yaml *map, const char *key); /* NULL if absent or not a map */

/* Scalar conversions; false when the text is not such a value (the caller says what was expected). "no/none/false", "yes/true" as usual. */
bool hl_yaml_int(const hl_yaml *node, int64_t *out);
bool hl_yaml_number(const hl_yaml *node, double *out);
bool hl_yaml_bool(const hl_yaml *node, bool *out);

/* The shortest decimal text that hl_yaml_number reads back equal, whatever the locale of the caller. */
void hl_yaml_number_text(double value, char out[32]);

#endif
