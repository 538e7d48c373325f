/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h -- the one table of layers and their settings: it checks what the building calls are given, and it
 * parses, writes and documents network files. A *form* is a word of network files ("conv", "max_pool",
 * "relu"); several forms may be one layer kind. A key is a field of hl_layer.
 */
#ifndef HL_NET_KEYS_H
#define HL_NET_KEYS_H

#include "base/str.h"
#include "base/yaml.h"
#include "net/graph.h"

typedef enum hl_key_type {
    HL_KEY_COUNT = 0, /* int64_t */
    HL_KEY_NUMBER,    /* double */
    HL_KEY_BOOL,      /* bool */
    HL_KEY_WORD,      /* an enum: index into words */
    HL_KEY_EXTENTS,   /* int64_t[3], written as one number or [D, H, W] */
    HL_KEY_PADDING,   /* hl_layer.padding and .pad */
    HL_KEY_SIDES,     /* int64_t[3][2]: one number for all sides, or three of numbers and pairs [before, behind] */
    HL_KEY_LAYER      /* no field: an earlier layer, which the reader of files turns into the key before it */
} hl_key_type;

typedef struct hl_layer_key {
    const char *name;
    hl_key_type type;
    size_t offset;        /* in hl_layer */
    const char *fallback; /* default as text; "=kernel": what that key has; NULL: must be given */
    double lo, hi;        /* both allowed unless open */
    bool open_lo, open_hi;
    const char *const *words; /* NULL-ended */
    const char *help;
} hl_layer_key;

typedef struct hl_layer_form {
    const char *word;
    hl_layer_kind kind;
    halo_pool pool;           /* where kind is pool */
    halo_act act;             /* where kind is act */
    halo_norm_scope scope;    /* where kind is norm */
    bool many;                /* 2 to 16 inputs; else one */
    const hl_layer_key *keys; /* ended by a NULL name */
    const char *help;
} hl_layer_form;

/* Ended by a NULL word. */
extern const hl_layer_form hl_layer_forms[];

const hl_layer_form *hl_form_find(const char *word);    /* NULL if there is none */
const hl_layer_form *hl_form_of(const hl_layer *layer); /* NULL for the input */
const hl_layer_key *hl_form_key(const hl_layer_form *form, const char *name);
const char *hl_form_nearest(const char *word); /* or NULL */
const char *hl_key_nearest(const hl_layer_form *form,
                           const char *name); /* "name" and "from" included; or NULL */

/* Sets the key from a value; false when it is not of the type (what is: hl_key_expects). Ranges are checked
 * by hl_layer_in_range. */
bool hl_key_parse(const hl_layer_key *key, const hl_yaml *value, hl_layer *layer);
/* Sets the key to its default; the key that a "=..." names must be set already. False when it must be given.
 */
bool hl_key_default(const hl_layer_form *form, const hl_layer_key *key, hl_layer *layer);
/* "a number from 0 to 1, 0 excluded"; freed by the caller of hl_str_free. */
void hl_key_expects(const hl_layer_key *key, hl_str *out);
/* The value as text of a network file. */
void hl_key_format(const hl_layer_key *key, const hl_layer *layer, hl_str *out);

/* Every key of the layer's form is in its range; else an error that names layer, key, value and range. */
halo_status hl_layer_in_range(const struct halo_network *net, const hl_layer *layer);

/* The whole table as text, for `halo help network` and doc/networks.md. */
void hl_network_help(hl_str *out);

#endif
