/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c -- network files, read through the public calls of halo.h alone. The grammar (doc/networks.md):
 *
 *     name: NAME                                    optional
 *     input: {channels: C, size: N or [D, H, W]}    either may come from the caller
 *     layers:                                       a list; each entry is
 *       - FORM                                      a word of the table in keys.c, or
 *       - FORM: {name: NAME, from: LAYER or [LAYER, ...], KEY: VALUE, ...}
 *
 * `from` names earlier layers or `input`; without it a layer continues the one above.
 */
#include "net/file.h"
#include "base/yaml.h"
#include "net/keys.h"

#include <stdio.h>

typedef struct reader {
    halo_context *ctx;
    const char *name; /* of the file */
    halo_network *net;
} reader;

static halo_status bad(const reader *r, int line, const char *format, ...) HALO_PRINTF(3, 4);

static halo_status bad(const reader *r, int line, const char *format, ...)
{
    char text[768];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: %s", r->name, line, text);
}

/* "unknown layer 'cnov', did you mean 'conv'?" */
static halo_status unknown(const reader *r, int line, const char *what, const char *word, const char *nearest)
{
    if (!nearest) return bad(r, line, "unknown %s '%.80s'", what, word);
    return bad(r, line, "unknown %s '%.80s', did you mean '%s'?", what, word, nearest);
}

static halo_status expect_scalar(const reader *r, const hl_yaml *value, const char *what)
{
    if (value->kind != HL_YAML_SCALAR || !*value->text)
        return bad(r, value->line, "%s must be one word", what);
    return HALO_OK;
}

/* -----------------------------------------------------------------------------------------------------------
 * layers */

static halo_status find_input(const reader *r, const hl_yaml *value, int *index)
{
    HL_TRY(expect_scalar(r, value, "a layer's name"));
    *index = halo_network_find(r->net, value->text);
    if (*index >= 0) return HALO_OK;
    const char *names[HL_LAYERS_MAX];
    for (int i = 0; i < r->net->layers; i++) names[i] = r->net->layer[i].name;
    return unknown(r, value->line, "earlier layer", value->text,
                   hl_nearest(value->text, names, (size_t)r->net->layers));
}

/* Fills draft->input; `from` is NULL where the key is absent. */
static halo_status read_inputs(const reader *r, const hl_layer_form *form, const hl_yaml *from, int line,
                               hl_layer *draft)
{
    bool list = from && from->kind == HL_YAML_LIST;
    size_t n = list ? from->items : 1;
    if (form->many && (!list || n < 2 || n > HL_INPUTS_MAX))
        return bad(r, line, "%s needs 'from: [...]' with 2 to %d layers", form->word, HL_INPUTS_MAX);
    if (!form->many && n != 1) return bad(r, line, "%s takes one input, 'from' has %zu", form->word, n);
    draft->inputs = (int)n;
    draft->input[0] = r->net->layers - 1;
    for (size_t i = 0; from && i < n; i++)
        HL_TRY(find_input(r, list ? from->item[i] : from, &draft->input[i]));
    return HALO_OK;
}

/* `like: LAYER` of a crop becomes its cells. */
static halo_status read_like(reader *r, const hl_layer_form *form, const hl_yaml *value, hl_layer *draft)
{
    int like;
    HL_TRY(find_input(r, value, &like));
    r->net->source_line = value->line;
    return hl_crop_like(r->net, form->word, draft->input[0], like, draft->crop);
}

static halo_status read_key(reader *r, const hl_layer_form *form, const hl_yaml *value, hl_layer *draft)
{
    char what[64];
    const hl_layer_key *key = hl_form_key(form, value->key);
    snprintf(what, sizeof(what), "key of %s", form->word);
    if (!key) return unknown(r, value->line, what, value->key, hl_key_nearest(form, value->key));
    if (key->type == HL_KEY_LAYER) return read_like(r, form, value, draft);
    if (hl_key_parse(key, value, draft)) return HALO_OK;
    hl_str expects = {0};
    hl_key_expects(key, &expects);
    halo_status st =
        value->kind == HL_YAML_SCALAR
            ? bad(r, value->line, "%s of %s is '%.80s', must be %s", key->name, form->word, value->text,
                  expects.s ? expects.s : "?")
            : bad(r, value->line, "%s of %s must be %s", key->name, form->word, expects.s ? expects.s : "?");
    hl_str_free(&expects);
    return st;
}

static halo_status read_defaults(const reader *r, const hl_layer_form *form, const hl_yaml *map, int line,
                                 hl_layer *draft)
{
    for (const hl_layer_key *k = form->keys; k->name; k++)
        if (!hl_yaml_find(map, k->name) && form->kind != HL_LAYER_CROP && !hl_key_default(form, k, draft))
            return bad(r, line, "%s needs '%s'", form->word, k->name);
    return HALO_OK;
}

/* Cells, or a layer to take them from: one of the two. */
static halo_status check_crop(const reader *r, const hl_layer_form *form, const hl_yaml *map, int line)
{
    if (form->kind != HL_LAYER_CROP || !hl_yaml_find(map, "cells") != !hl_yaml_find(map, "like")) return HALO_OK;
    return bad(r, line, "%s needs either 'cells' or 'like'", form->word);
}

/* `map` is NULL for a bare word. */
static halo_status read_draft(reader *r, const hl_layer_form *form, const hl_yaml *map, int line,
                              hl_layer *draft)
{
    const hl_yaml *from = hl_yaml_find(map, "from"), *name = hl_yaml_find(map, "name");
    *draft = (hl_layer){.kind = form->kind, .pool = form->pool, .act = form->act, .scope = form->scope};
    HL_TRY(check_crop(r, form, map, line));
    HL_TRY(read_inputs(r, form, from, from ? from->line : line, draft));
    if (name) HL_TRY(expect_scalar(r, name, "name"));
    for (size_t i = 0; map && i < map->items; i++)
        if (map->item[i] != from && map->item[i] != name) HL_TRY(read_key(r, form, map->item[i], draft));
    return read_defaults(r, form, map, line, draft);
}

static halo_status add_conv(halo_network *net, const char *name, const hl_layer *l)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = l->filters;
    memcpy(o.kernel, l->window.kernel, sizeof(o.kernel));
    memcpy(o.stride, l->window.stride, sizeof(o.stride));
    memcpy(o.dilation, l->window.dilation, sizeof(o.dilation));
    memcpy(o.padding, l->padding, sizeof(o.padding));
    memcpy(o.pad, l->pad, sizeof(o.pad));
    o.bias = l->bias;
    o.init = l->init;
    o.bias_init = l->init_bias;
    return halo_network_conv(net, l->input[0], name, &o, NULL);
}

static halo_status add_conv_transpose(halo_network *net, const char *name, const hl_layer *l)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    o.filters = l->filters;
    memcpy(o.kernel, l->window.kernel, sizeof(o.kernel));
    memcpy(o.stride, l->window.stride, sizeof(o.stride));
    memcpy(o.dilation, l->window.dilation, sizeof(o.dilation));
    memcpy(o.padding, l->padding, sizeof(o.padding));
    memcpy(o.pad, l->pad, sizeof(o.pad));
    memcpy(o.output_padding, l->output_padding, sizeof(o.output_padding));
    o.bias = l->bias;
    o.init = l->init;
    o.bias_init = l->init_bias;
    return halo_network_conv_transpose(net, l->input[0], name, &o, NULL);
}

static halo_status add_pool(halo_network *net, const char *name, const hl_layer *l)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    o.kind = l->pool;
    memcpy(o.kernel, l->window.kernel, sizeof(o.kernel));
    memcpy(o.stride, l->window.stride, sizeof(o.stride));
    memcpy(o.padding, l->padding, sizeof(o.padding));
    memcpy(o.pad, l->pad, sizeof(o.pad));
    o.count_pad = l->count_pad;
    return halo_network_pool(net, l->input[0], name, &o, NULL);
}

static halo_status add_norm(halo_network *net, const char *name, const hl_layer *l)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    o.eps = l->eps;
    o.momentum = l->momentum;
    o.gamma_init = l->init_gamma;
    o.scope = l->scope;
    o.groups = l->groups;
    return halo_network_norm(net, l->input[0], name, &o, NULL);
}

static halo_status add_dense(halo_network *net, const char *name, const hl_layer *l)
{
    halo_dense_options o = HALO_DENSE_OPTIONS_INIT;
    o.outputs = l->filters;
    o.bias = l->bias;
    o.init = l->init;
    o.bias_init = l->init_bias;
    return halo_network_dense(net, l->input[0], name, &o, NULL);
}

static halo_status add_flatten(halo_network *net, const char *name, const hl_layer *l)
{
    halo_flatten_options o = HALO_FLATTEN_OPTIONS_INIT;
    o.channels_last = l->channels_last;
    o.features = l->features;
    return halo_network_flatten(net, l->input[0], name, &o, NULL);
}

static halo_status add_layer(halo_network *net, const char *name, const hl_layer *l)
{
    switch (l->kind) {
    case HL_LAYER_CONV:
        return add_conv(net, name, l);
    case HL_LAYER_CONV_TRANSPOSE:
        return add_conv_transpose(net, name, l);
    case HL_LAYER_POOL:
        return add_pool(net, name, l);
    case HL_LAYER_NORM:
        return add_norm(net, name, l);
    case HL_LAYER_ACT:
        return halo_network_activation(net, l->input[0], name, l->act, l->slope, NULL);
    case HL_LAYER_DROPOUT:
        return halo_network_dropout(net, l->input[0], name, l->keep, NULL);
    case HL_LAYER_FLATTEN:
        return add_flatten(net, name, l);
    case HL_LAYER_DENSE:
        return add_dense(net, name, l);
    case HL_LAYER_ADD:
        return halo_network_add(net, l->input, l->inputs, name, NULL);
    case HL_LAYER_CONCAT:
        return halo_network_concat(net, l->input, l->inputs, name, NULL);
    case HL_LAYER_UPSAMPLE:
        return halo_network_upsample(net, l->input[0], name, l->window.stride, NULL);
    case HL_LAYER_CROP:
        return halo_network_crop(net, l->input[0], name, (const int64_t(*)[2])l->crop, NULL);
    case HL_LAYER_INPUT:
    case HL_LAYER_KINDS:
        break;
    }
    return HALO_ERR_USAGE; /* no form has these kinds */
}

static halo_status read_layer(reader *r, const hl_yaml *entry)
{
    const hl_yaml *map = entry->kind == HL_YAML_MAP && entry->items == 1 ? entry->item[0] : NULL;
    if (!map && entry->kind != HL_YAML_SCALAR)
        return bad(r, entry->line, "a layer is 'KIND: {key: value, ...}'");
    const char *word = map ? map->key : entry->text;
    const hl_layer_form *form = hl_form_find(word);
    if (!form) return unknown(r, entry->line, "layer", word, hl_form_nearest(word));
    if (map && map->kind != HL_YAML_MAP && !(map->kind == HL_YAML_SCALAR && !*map->text))
        return bad(r, map->line, "%s is followed by its keys: '%s: {key: value, ...}'", word, word);
    hl_layer draft;
    HL_TRY(read_draft(r, form, map, entry->line, &draft));
    const hl_yaml *name = hl_yaml_find(map, "name");
    r->net->source_line = entry->line;
    return add_layer(r->net, name ? name->text : NULL, &draft);
}

/* -------------------------------------------------------------------------------------------------------------
 * input */

typedef struct input_shape {
    int64_t channels, extents[3];
} input_shape; /* 0: not known yet */

static halo_status read_size(const reader *r, const hl_yaml *value, int64_t out[3])
{
    bool list = value->kind == HL_YAML_LIST;
    if (list && value->items != 3)
        return bad(r, value->line, "size must be one positive number or [D, H, W]");
    for (int d = 0; d < 3; d++)
        if (!hl_yaml_int(list ? value->item[d] : value, &out[d]) || out[d] < 1)
            return bad(r, value->line, "size must be one positive number or [D, H, W]");
    return HALO_OK;
}

static halo_status read_input(const reader *r, const hl_yaml *map, input_shape *shape)
{
    static const char *const keys[] = {"channels", "size"};
    if (map->kind != HL_YAML_MAP) return bad(r, map->line, "input is '{channels: C, size: [D, H, W]}'");
    for (size_t i = 0; i < map->items; i++) {
        const hl_yaml *value = map->item[i];
        if (strcmp(value->key, "size") == 0)
            HL_TRY(read_size(r, value, shape->extents));
        else if (strcmp(value->key, "channels") != 0)
            return unknown(r, value->line, "key of input", value->key,
                           hl_nearest(value->key, keys, HL_COUNT(keys)));
        else if (!hl_yaml_int(value, &shape->channels) || shape->channels < 1)
            return bad(r, value->line, "channels must be a positive number");
    }
    return HALO_OK;
}

static halo_status top_keys(const reader *r, const hl_yaml *root)
{
    static const char *const keys[] = {"name", "input", "layers"};
    if (root->kind != HL_YAML_MAP)
        return bad(r, root->line, "a network file is a map with the keys name, input, layers");
    for (size_t i = 0; i < root->items; i++) {
        const char *key = root->item[i]->key;
        bool known = false;
        for (size_t k = 0; k < HL_COUNT(keys); k++) known = known || strcmp(key, keys[k]) == 0;
        if (!known)
            return unknown(r, root->item[i]->line, "key of a network file", key,
                           hl_nearest(key, keys, HL_COUNT(keys)));
    }
    return HALO_OK;
}

/* Makes the network with its input layer; the caller's channels and extents go before the file's. */
static halo_status begin_network(reader *r, const hl_yaml *root, const input_shape *given)
{
    const hl_yaml *name = hl_yaml_find(root, "name"), *input = hl_yaml_find(root, "input");
    input_shape shape = {0};
    HL_TRY(top_keys(r, root));
    if (input) HL_TRY(read_input(r, input, &shape));
    if (given->channels) shape.channels = given->channels;
    if (given->extents[0]) memcpy(shape.extents, given->extents, sizeof(shape.extents));
    int line = input ? input->line : root->line;
    if (!input && !shape.channels) return bad(r, line, "a network file needs 'input: {channels: C, size: N}'");
    if (!shape.channels) return bad(r, line, "input needs 'channels'");
    if (!shape.extents[0]) return bad(r, line, "input needs 'size'");
    if (name) HL_TRY(expect_scalar(r, name, "name"));
    int64_t all[4] = {shape.channels, shape.extents[0], shape.extents[1], shape.extents[2]};
    return hl_graph_create(r->ctx, r->name, (int[2]){name ? name->line : line, line},
                           name ? name->text : "network", all, &r->net);
}

static halo_status read_layers(reader *r, const hl_yaml *root)
{
    const hl_yaml *layers = hl_yaml_find(root, "layers");
    if (!layers || layers->kind != HL_YAML_LIST || layers->items == 0)
        return bad(r, layers ? layers->line : root->line, "a network file needs 'layers:', a list");
    for (size_t i = 0; i < layers->items; i++) HL_TRY(read_layer(r, layers->item[i]));
    HL_TRY(hl_graph_check(r->net));
    r->net->source = NULL;
    return HALO_OK;
}

static halo_status read_network(halo_context *ctx, const char *name, const hl_yaml *root,
                                const input_shape *given, halo_network **net)
{
    reader r = {.ctx = ctx, .name = name};
    halo_status st = begin_network(&r, root, given);
    if (st == HALO_OK) st = read_layers(&r, root);
    if (st == HALO_OK)
        *net = r.net;
    else
        halo_network_destroy(r.net);
    return st;
}

/* Takes the tree away. */
static halo_status read_tree(halo_context *ctx, const char *name, hl_yaml *root, int64_t channels,
                             const int64_t *extents, halo_network **net)
{
    input_shape given = {.channels = channels};
    if (extents) memcpy(given.extents, extents, sizeof(given.extents));
    halo_status st = read_network(ctx, name, root, &given, net);
    hl_yaml_destroy(root);
    return st;
}

halo_status halo_network_parse(halo_context *ctx, const char *name, const char *text, size_t bytes,
                               int64_t channels, const int64_t *extents, halo_network **net)
{
    hl_yaml *root;
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, name, "name"));
    HL_TRY(hl_not_null(ctx, text, "text"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    HL_TRY(hl_yaml_parse(ctx, name, text, bytes, &root));
    return read_tree(ctx, name, root, channels, extents, net);
}

halo_status halo_network_load(halo_context *ctx, const char *path, int64_t channels, const int64_t *extents,
                              halo_network **net)
{
    hl_yaml *root;
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, path, "path"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    HL_TRY(hl_yaml_load(ctx, path, &root));
    return read_tree(ctx, path, root, channels, extents, net);
}
