/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c -- the life of a graph: names, appending, questions about it. What each layer computes of its
 * input's shape is in infer.c. */
#include "net/graph.h"
#include "net/keys.h"

#include <stdio.h>

const char *hl_layer_kind_name(hl_layer_kind kind)
{
    static const char *const names[HL_LAYER_KINDS] = {
        [HL_LAYER_INPUT] = "input",     [HL_LAYER_CONV] = "conv",   [HL_LAYER_POOL] = "pool",
        [HL_LAYER_NORM] = "norm",       [HL_LAYER_ACT] = "act",     [HL_LAYER_DROPOUT] = "dropout",
        [HL_LAYER_FLATTEN] = "flatten", [HL_LAYER_DENSE] = "dense", [HL_LAYER_ADD] = "add",
        [HL_LAYER_CONCAT] = "concat",   [HL_LAYER_CONV_TRANSPOSE] = "conv_transpose",
        [HL_LAYER_CROP] = "crop",       [HL_LAYER_UPSAMPLE] = "upsample",
    };
    return kind < HL_LAYER_KINDS ? names[kind] : "layer";
}

hl_shape_text hl_shape_print(const int64_t *shape, int n)
{
    hl_shape_text t = {{0}};
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof(t.s); i++)
        at += (size_t)snprintf(t.s + at, sizeof(t.s) - at, "%s%" PRId64, i ? " x " : "", shape[i]);
    return t;
}

halo_status hl_graph_fail(const struct halo_network *net, halo_status status, const char *format, ...)
{
    char text[768];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (!net->source) return hl_fail(net->ctx, status, "network '%s': %s", net->name, text);
    return hl_fail(net->ctx, status, "%s:%d: %s", net->source, net->source_line, text);
}

/* -------------------------------------------------------------------------------------------------------------
 * names */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_name_char(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

static bool is_name(const char *s)
{
    if (!is_letter(*s) || strlen(s) >= HL_NAME_MAX) return false;
    while (is_name_char(*s)) s++;
    return *s == '\0';
}

int halo_network_find(const halo_network *net, const char *name)
{
    for (int i = 0; net && name && i < net->layers; i++)
        if (strcmp(net->layer[i].name, name) == 0) return i;
    return -1;
}

static halo_status check_name(const halo_network *net, const char *name)
{
    if (!is_name(name))
        return hl_graph_fail(net, HALO_ERR_USAGE,
                             "'%.80s' cannot name a layer: a letter, then letters, digits, '_', '-' and '.', "
                             "at most %d in all",
                             name, HL_NAME_MAX - 1);
    if (halo_network_find(net, name) >= 0)
        return hl_graph_fail(net, HALO_ERR_USAGE, "there is a layer '%s' already", name);
    return HALO_OK;
}

/* The kind and the first free number from how many there are on: "conv3". */
static void make_name(const halo_network *net, hl_layer *layer)
{
    int number = 1;
    for (int i = 0; i < net->layers; i++) number += net->layer[i].kind == layer->kind;
    do snprintf(layer->name, sizeof(layer->name), "%s%d", hl_layer_kind_name(layer->kind), number++);
    while (halo_network_find(net, layer->name) >= 0);
}

/* ----------------------------------------------------------------------------------------------------------
 * building */

static halo_status check_network_name(const struct halo_network *net, const char *name)
{
    if (name && is_name(name)) return HALO_OK;
    const char *rule = "cannot name a network: a letter, then letters, digits, '_', '-' and '.'";
    if (!net->source) return hl_fail(net->ctx, HALO_ERR_USAGE, "'%.80s' %s", name ? name : "", rule);
    return hl_graph_fail(net, HALO_ERR_USAGE, "'%.80s' %s", name ? name : "", rule);
}

halo_status hl_graph_create(halo_context *ctx, const char *source, const int line[2], const char *name,
                            const int64_t shape[4], halo_network **out)
{
    halo_network *net;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*net), "a network", &net));
    net->ctx = ctx;
    net->source = source;
    if (source) net->source_line = line[0];
    hl_layer input = {
        .kind = HL_LAYER_INPUT, .name = "input", .out = {shape[0], shape[1], shape[2], shape[3]}};
    halo_status st = HALO_OK;
    HL_GOTO(st, check_network_name(net, name), destroy_net);
    snprintf(net->name, sizeof(net->name), "%s", name);
    if (source) net->source_line = line[1];
    HL_GOTO(st, hl_graph_append(net, &input, NULL), destroy_net);
    *out = net;
    return HALO_OK;
destroy_net:
    halo_network_destroy(net);
    return st;
}

halo_status halo_network_create(halo_context *ctx, const char *name, int64_t channels,
                                const int64_t extents[3], halo_network **net)
{
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, extents, "extents"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    return hl_graph_create(ctx, NULL, NULL, name, (int64_t[4]){channels, extents[0], extents[1], extents[2]},
                           net);
}

void halo_network_destroy(halo_network *net)
{
    if (!net) return;
    free(net->layer);
    free(net);
}

static halo_status count_parameters(const halo_network *net, const hl_layer *layer, int64_t *total)
{
    hl_param_info info[4];
    int n;
    HL_TRY(hl_layer_params(net, layer, net->layers, info, &n));
    *total = net->parameters;
    for (int i = 0; i < n; i++)
        if (info[i].trainable && (!hl_add64(*total, info[i].count, total) || *total > INT64_MAX / 64))
            return hl_graph_fail(net, HALO_ERR_SHAPE, "layer '%s': too many parameters", layer->name);
    return HALO_OK;
}

halo_status hl_graph_append(struct halo_network *net, hl_layer *layer, int *index)
{
    int64_t parameters;
    if (net->layers >= HL_LAYERS_MAX)
        return hl_graph_fail(net, HALO_ERR_USAGE, "more than %d layers", HL_LAYERS_MAX);
    if (*layer->name)
        HL_TRY(check_name(net, layer->name));
    else
        make_name(net, layer);
    if (layer->kind != HL_LAYER_INPUT) HL_TRY(hl_layer_in_range(net, layer));
    HL_TRY(hl_graph_infer(net, layer));
    HL_TRY(count_parameters(net, layer, &parameters));
    HL_TRY(hl_grow(net->ctx, &net->layer, &net->cap, (size_t)net->layers + 1, sizeof(hl_layer), "layers"));
    layer->line = net->source ? net->source_line : 0;
    net->layer[net->layers] = *layer;
    net->parameters = parameters;
    if (index) *index = net->layers;
    net->layers++;
    return HALO_OK;
}

halo_status hl_graph_check(const struct halo_network *net)
{
    bool used[HL_LAYERS_MAX] = {false};
    if (net->layers < 2) return hl_graph_fail(net, HALO_ERR_USAGE, "there are no layers");
    for (int i = 0; i < net->layers; i++)
        for (int k = 0; k < net->layer[i].inputs; k++) used[net->layer[i].input[k]] = true;
    for (int i = 0; i < net->layers - 1; i++)
        if (!used[i])
            return hl_graph_fail(net, HALO_ERR_USAGE,
                                 "layer '%s' is the input of no other, and not the last one",
                                 net->layer[i].name);
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------
 * questions */

int halo_network_layers(const halo_network *net)
{
    return net ? net->layers : 0;
}

int64_t halo_network_parameters(const halo_network *net)
{
    return net ? net->parameters : 0;
}

const char *halo_network_layer_name(const halo_network *net, int layer)
{
    return net && layer >= 0 && layer < net->layers ? net->layer[layer].name : NULL;
}

halo_status halo_network_layer_shape(const halo_network *net, int layer, int64_t shape[4])
{
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_not_null(net->ctx, shape, "shape"));
    if (layer < 0 || layer >= net->layers)
        return hl_graph_fail(net, HALO_ERR_USAGE, "there is no layer %d", layer);
    memcpy(shape, net->layer[layer].out, sizeof(net->layer[layer].out));
    return HALO_OK;
}
