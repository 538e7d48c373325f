/* SPDX-License-Identifier: Apache-2.0 */
/* build.c -- the public calls that add layers: options become a hl_layer, which hl_graph_append checks,
 * shapes and keeps. */
#include "net/graph.h"

#include <stdio.h>

/* A draft with kind, name and inputs; without a name hl_graph_append makes one. */
static halo_status begin(halo_network *net, hl_layer_kind kind, const char *name, const int *inputs, int n,
                         hl_layer *draft)
{
    HL_TRY(hl_not_null(NULL, net, "net"));
    *draft = (hl_layer){.kind = kind, .inputs = n};
    if (name && (!*name || strlen(name) >= HL_NAME_MAX))
        return hl_graph_fail(net, HALO_ERR_USAGE, "'%.80s' cannot name a layer: 1 to %d characters", name,
                             HL_NAME_MAX - 1);
    if (name) snprintf(draft->name, sizeof(draft->name), "%s", name);
    for (int i = 0; i < n; i++) draft->input[i] = inputs[i];
    return HALO_OK;
}

/* Options come with the size that the caller was compiled with. */
static halo_status check_options(const halo_network *net, const char *type, const void *options,
                                 size_t expected)
{
    size_t size = 0;
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_not_null(net->ctx, options, "options"));
    memcpy(&size, options, sizeof(size));
    if (size != expected)
        return hl_graph_fail(net, HALO_ERR_USAGE,
                             "%s has size %zu, this library expects %zu: start from its _INIT", type, size,
                             expected);
    return HALO_OK;
}
#define CHECK_OPTIONS(net, type, options) check_options(net, #type, options, sizeof(type))

static void copy_window(hl_layer *l, const int64_t kernel[3], const int64_t stride[3],
                        const halo_padding padding[3], const int64_t pad[3][2])
{
    for (int d = 0; d < 3; d++) {
        l->window.kernel[d] = kernel[d];
        l->window.stride[d] = stride[d];
        l->window.dilation[d] = 1;
        l->padding[d] = padding[d];
        for (int side = 0; side < 2; side++) l->pad[d][side] = pad[d][side];
    }
}

halo_status halo_network_conv(halo_network *net, int input, const char *name, const halo_conv_options *o,
                              int *layer)
{
    hl_layer l;
    HL_TRY(CHECK_OPTIONS(net, halo_conv_options, o));
    HL_TRY(begin(net, HL_LAYER_CONV, name, &input, 1, &l));
    copy_window(&l, o->kernel, o->stride, o->padding, o->pad);
    memcpy(l.window.dilation, o->dilation, sizeof(l.window.dilation));
    l.filters = o->filters;
    l.bias = o->bias;
    l.init = o->init;
    l.init_bias = o->bias_init;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_conv_transpose(halo_network *net, int input, const char *name,
                                        const halo_conv_transpose_options *o, int *layer)
{
    hl_layer l;
    HL_TRY(CHECK_OPTIONS(net, halo_conv_transpose_options, o));
    HL_TRY(begin(net, HL_LAYER_CONV_TRANSPOSE, name, &input, 1, &l));
    copy_window(&l, o->kernel, o->stride, o->padding, o->pad);
    memcpy(l.window.dilation, o->dilation, sizeof(l.window.dilation));
    memcpy(l.output_padding, o->output_padding, sizeof(l.output_padding));
    l.filters = o->filters;
    l.bias = o->bias;
    l.init = o->init;
    l.init_bias = o->bias_init;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_upsample(halo_network *net, int input, const char *name, const int64_t factor[3], int *layer)
{
    hl_layer l;
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(begin(net, HL_LAYER_UPSAMPLE, name, &input, 1, &l));
    for (int d = 0; d < 3; d++) {
        l.window.stride[d] = factor ? factor[d] : 2;
        l.window.kernel[d] = l.window.stride[d] == 2 ? 4 : 1;
        l.window.dilation[d] = 1;
    }
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_pool(halo_network *net, int input, const char *name, const halo_pool_options *o,
                              int *layer)
{
    const halo_pool_options defaults = HALO_POOL_OPTIONS_INIT;
    hl_layer l;
    if (!o) o = &defaults;
    HL_TRY(CHECK_OPTIONS(net, halo_pool_options, o));
    HL_TRY(begin(net, HL_LAYER_POOL, name, &input, 1, &l));
    copy_window(&l, o->kernel, o->stride, o->padding, o->pad);
    l.pool = o->kind;
    l.count_pad = o->kind == HALO_POOL_AVG && o->count_pad;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_norm(halo_network *net, int input, const char *name, const halo_norm_options *o,
                              int *layer)
{
    const halo_norm_options defaults = HALO_NORM_OPTIONS_INIT;
    hl_layer l;
    if (!o) o = &defaults;
    HL_TRY(CHECK_OPTIONS(net, halo_norm_options, o));
    HL_TRY(begin(net, HL_LAYER_NORM, name, &input, 1, &l));
    l.eps = o->eps;
    l.scope = o->scope;
    if (o->scope == HALO_NORM_BATCH) l.momentum = o->momentum; /* what has no meaning is not kept */
    if (o->scope == HALO_NORM_GROUP) l.groups = o->groups;
    l.init_gamma = o->gamma_init;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_activation(halo_network *net, int input, const char *name, halo_act act,
                                    double slope, int *layer)
{
    hl_layer l;
    HL_TRY(begin(net, HL_LAYER_ACT, name, &input, 1, &l));
    l.act = act;
    l.slope = act == HALO_ACT_LEAKY_RELU || act == HALO_ACT_SCALE ? slope : 0;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_dropout(halo_network *net, int input, const char *name, double keep, int *layer)
{
    hl_layer l;
    HL_TRY(begin(net, HL_LAYER_DROPOUT, name, &input, 1, &l));
    l.keep = keep;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_flatten(halo_network *net, int input, const char *name,
                                 const halo_flatten_options *o, int *layer)
{
    const halo_flatten_options defaults = HALO_FLATTEN_OPTIONS_INIT;
    hl_layer l;
    if (!o) o = &defaults;
    HL_TRY(CHECK_OPTIONS(net, halo_flatten_options, o));
    HL_TRY(begin(net, HL_LAYER_FLATTEN, name, &input, 1, &l));
    l.channels_last = o->channels_last;
    l.features = o->features;
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_dense(halo_network *net, int input, const char *name, const halo_dense_options *o,
                               int *layer)
{
    hl_layer l;
    HL_TRY(CHECK_OPTIONS(net, halo_dense_options, o));
    HL_TRY(begin(net, HL_LAYER_DENSE, name, &input, 1, &l));
    l.filters = o->outputs;
    l.bias = o->bias;
    l.init = o->init;
    l.init_bias = o->bias_init;
    return hl_graph_append(net, &l, layer);
}

static halo_status join(halo_network *net, hl_layer_kind kind, const int *inputs, int n, const char *name,
                        int *layer)
{
    hl_layer l;
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_not_null(net->ctx, inputs, "inputs"));
    if (n < 2 || n > HL_INPUTS_MAX)
        return hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': %d inputs, must be 2 to %d",
                             name ? name : hl_layer_kind_name(kind), n, HL_INPUTS_MAX);
    HL_TRY(begin(net, kind, name, inputs, n, &l));
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_add(halo_network *net, const int *inputs, int n, const char *name, int *layer)
{
    return join(net, HL_LAYER_ADD, inputs, n, name, layer);
}

halo_status halo_network_concat(halo_network *net, const int *inputs, int n, const char *name, int *layer)
{
    return join(net, HL_LAYER_CONCAT, inputs, n, name, layer);
}

halo_status halo_network_crop(halo_network *net, int input, const char *name, const int64_t cells[3][2],
                              int *layer)
{
    hl_layer l;
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_not_null(net->ctx, cells, "cells"));
    HL_TRY(begin(net, HL_LAYER_CROP, name, &input, 1, &l));
    memcpy(l.crop, cells, sizeof(l.crop));
    return hl_graph_append(net, &l, layer);
}

halo_status halo_network_crop_like(halo_network *net, int input, int like, const char *name, int *layer)
{
    int64_t cells[3][2];
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_crop_like(net, name ? name : hl_layer_kind_name(HL_LAYER_CROP), input, like, cells));
    return halo_network_crop(net, input, name, cells, layer);
}
