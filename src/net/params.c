/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.c -- which parameters a layer has, in the order in which checkpoints and models hold them:
 *
 *     conv    weights (filters, C, kd, kh, kw)   bias (filters)
 *     conv_transpose   weights (C, filters, kd, kh, kw)   bias (filters)
 *     dense   weights (outputs, F)               bias (outputs)
 *     norm    gamma (C)   beta (C)   running_mean (C)   running_variance (C); the last two are not trained, and batch norms alone have them
 */
#include "net/graph.h"

#include <stdio.h>

typedef struct shape {
    int ndim;
    int64_t dim[5];
} shape;

static halo_status add(const struct halo_network *net, const hl_layer *l, int layer, const char *name,
                       halo_role role, shape s, hl_param_info *list, int *n)
{
    hl_param_info p = {
        .layer = layer, .ndim = s.ndim, .count = 1, .trainable = role != HALO_RUN, .role = role};
    p.decay = strcmp(name, "weights") == 0;
    snprintf(p.name, sizeof(p.name), "%s/%s", l->name, name);
    memcpy(p.dim, s.dim, sizeof(p.dim));
    for (int i = 0; i < s.ndim; i++)
        if (!hl_mul64(p.count, s.dim[i], &p.count))
            return hl_graph_fail(net, HALO_ERR_SHAPE, "layer '%s': too many %s: %s", l->name, name,
                                 hl_shape_print(s.dim, s.ndim).s);
    list[(*n)++] = p;
    return HALO_OK;
}

halo_status hl_layer_params(const struct halo_network *net, const hl_layer *l, int layer,
                            hl_param_info out[4], int *n)
{
    *n = 0;
    bool transposed = l->kind == HL_LAYER_CONV_TRANSPOSE;
    if (l->kind != HL_LAYER_CONV && !transposed && l->kind != HL_LAYER_DENSE && l->kind != HL_LAYER_NORM) return HALO_OK;
    int64_t in = net->layer[l->input[0]].out[0];
    const int64_t *k = l->window.kernel;
    shape vector = {1, {l->out[0]}}, matrix = {2, {l->out[0], in}},
          kernel = {5, {transposed ? in : l->out[0], transposed ? l->out[0] : in, k[0], k[1], k[2]}};
    if (l->kind == HL_LAYER_NORM) {
        static const char *const names[4] = {"gamma", "beta", "running_mean", "running_variance"};
        static const halo_role roles[4] = {HALO_WT, HALO_B, HALO_RUN, HALO_RUN};
        for (int i = 0; i < (hl_per_sample(l) ? 2 : 4); i++) HL_TRY(add(net, l, layer, names[i], roles[i], vector, out, n));
        return HALO_OK;
    }
    HL_TRY(add(net, l, layer, "weights", HALO_WT, l->kind == HL_LAYER_DENSE ? matrix : kernel, out, n));
    return l->bias ? add(net, l, layer, "bias", HALO_B, vector, out, n) : HALO_OK;
}

halo_status hl_graph_params(const struct halo_network *net, hl_param_info **list, int *n)
{
    hl_param_info *all = NULL;
    size_t cap = 0;
    int count = 0, more;
    halo_status st = HALO_OK;
    for (int i = 0; i < net->layers; i++) {
        HL_GOTO(st, hl_grow(net->ctx, &all, &cap, (size_t)count + 4, sizeof(*all), "the parameters' names"),
                free_all);
        HL_GOTO(st, hl_layer_params(net, &net->layer[i], i, all + count, &more), free_all);
        count += more;
    }
    *list = all;
    *n = count;
    return HALO_OK;
free_all:
    free(all);
    return st;
}

int64_t hl_graph_param_count(const struct halo_network *net)
{
    return net->parameters;
}
