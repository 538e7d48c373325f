/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h -- one table of keys parses, overrides, documents, writes and tests every setting. A table describes the fields of one plain
 * struct by offset; the engine knows types and nothing of the meaning.
 *
 * Nested keys are dotted ("train.epochs"). A key may be both a word and a map ("reduce.average: gradients" and
 * "reduce.average: {parameters: 4}"): then both rows stand in the table.
 */
#ifndef HL_CONFIG_H
#define HL_CONFIG_H

#include "base/json.h"
#include "base/str.h"
#include "base/yaml.h"

#include <stddef.h>

enum { HL_TEXT_MAX = 512, HL_WORD_MAX = 64, HL_WORDS_MAX = 16, HL_MAP_MAX = 32 };

typedef struct hl_words { int n; char word[HL_WORDS_MAX][HL_WORD_MAX]; } hl_words;

/* Words of the user's own, and up to two values of each. */
typedef struct hl_map { int n; struct hl_map_item { int values; char word[HL_WORD_MAX], value[2][HL_WORD_MAX]; } item[HL_MAP_MAX]; } hl_map;

typedef enum hl_setting_type {
    HL_SETTING_TEXT = 0, /* char[HL_TEXT_MAX] */
    HL_SETTING_CHOICE,   /* int: index in `choices` */
    HL_SETTING_INT,      /* int64_t */
    HL_SETTING_NUMBER,   /* double */
    HL_SETTING_BOOL,     /* bool */
    HL_SETTING_SIZE,     /* int64_t[3]: one number or [D, H, W] */
    HL_SETTING_WORDS,    /* hl_words: one word or a list, each of `choices` when given */
    HL_SETTING_SECONDS,  /* double: 90, 90s, 15m, 2h, 1h30m */
    HL_SETTING_BYTES,    /* int64_t: 1048576, 64MiB, 16GiB, 2GB */
    HL_SETTING_MAP       /* hl_map: a word, a list of words, or a map whose values are a word or a list of two */
} hl_setting_type;

typedef struct hl_key {
    const char *name;
    hl_setting_type type;
    size_t offset;
    const char *fallback; /* default, in the words of a file */
    double low, high;     /* allowed range of numbers; both 0: any */
    const char *choices;  /* "adam|adamw|sgd" */
    const char *none;     /* a word that stands for "not set": numbers become -1, texts empty; NULL: not allowed */
    const char *help;
} hl_key;

/* Where a key was set last. */
typedef struct hl_where {
    const char *name; /* the file's, or "command line"; NULL: nowhere, it has its default */
    int line;         /* 0: none */
} hl_where;

typedef struct hl_keys {
    const hl_key *key;
    size_t n;
    const char *page; /* the command that lists all; NULL: halo help config */
    hl_where *where; /* [n], kept by who reads settings; NULL: nobody asks. Its names are those that were given, not copies */
} hl_keys;

/* Fills every field with its default. */
halo_status hl_config_defaults(halo_context *ctx, hl_keys keys, void *settings);

/* Applies a parsed file; `name` is the file's name in errors: "a.yaml:3: unknown key 'epoch' (did you mean 'epochs'?)". */
halo_status hl_config_apply(halo_context *ctx, hl_keys keys, void *settings, const char *name, const hl_yaml *map);

/* Applies one "key=value" of the command line; value is YAML. */
halo_status hl_config_override(halo_context *ctx, hl_keys keys, void *settings, const char *assignment);

/* The status of reading a configuration or network file: one that is no YAML, or says what cannot be, is wrong use like a wrong key, whereas the content of
 * a data file is not. */
static inline halo_status hl_config_status(halo_status st) { return st == HALO_ERR_FORMAT ? HALO_ERR_USAGE : st; }

/* Reads a file and applies it. */
halo_status hl_config_load(halo_context *ctx, hl_keys keys, void *settings, const char *path);

/* Numbers in their ranges and choices among theirs, of settings that were not read but filled in by a program; `name` as in hl_config_apply. */
halo_status hl_config_check(halo_context *ctx, hl_keys keys, const void *settings, const char *name);

/* "a.yaml:3: ", as messages about a key begin. */
void hl_where_add(const hl_where *where, hl_str *out);

/* The whole of it as a YAML file that reads back equal. */
void hl_config_write(hl_keys keys, const void *settings, hl_str *out);

/* The page of `halo help config`: key, type, default, meaning. */
void hl_config_help(hl_keys keys, hl_str *out);
/* The same as the member "keys" of an object that the caller has opened. */
void hl_config_help_json(hl_keys keys, hl_json *json);

/* The field of a row as the words of a file. */
void hl_config_value(const hl_key *key, const void *settings, hl_str *out);

/* The numbers that a key may have, in words, `from` before two bounds; a bound that nobody will meet is not named. */
void hl_key_range(const hl_key *key, const char *from, hl_str *out);

/* i-th word of "a|b|c" into out; false past the end. */
bool hl_choice(const char *choices, int i, char *out, size_t size);

#endif
