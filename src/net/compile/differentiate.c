/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differentiate.c -- reverse-mode differentiation of the layer steps (Linnainmaa 1976; Griewank & Walther
 * 2008): a gradient for the output of every layer that some weight influences, a backward step per layer in
 * reverse order.
 *
 * dx of a value with several consumers is the sum of their contributions: the first in backward order writes,
 * the others accumulate. The gradient of a sum is the gradient of its terms, so an add whose input nobody
 * else reads passes its own gradient on: one value, no step. The network's input has no gradient, and so the
 * first convolution has no backward-data.
 *
 * Of an activation whose one reader is a max pool only the winners have a gradient, and a winner's value is
 * the pool's output: act'(y) is applied to the pool's small gradient instead of the activation's large one,
 * and the large output is not needed in backward at all.
 */
#include "net/compile/compile.h"

static bool has_weights(const hl_layer *l)
{
    return l->kind == HL_LAYER_CONV || l->kind == HL_LAYER_CONV_TRANSPOSE || l->kind == HL_LAYER_DENSE || l->kind == HL_LAYER_NORM;
}

static void find_needs(hl_program *p)
{
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        p->needs[i] = has_weights(l) && hl_model_trains(p->model, i);
        for (int k = 0; k < l->inputs; k++) p->needs[i] = p->needs[i] || p->needs[l->input[k]];
        p->needs[i] = p->needs[i] && p->live[i];
    }
}

/* The derivative of a norm by running statistics is not among the operations of backends. */
static halo_status check_frozen_norms(const hl_program *p)
{
    for (int i = 0; i < p->net->layers; i++)
        if (p->needs[i] && hl_fixed_norm(p, i))
            return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "'freeze' holds batch norm '%s', but what comes before it is trained: freeze that too, or not the norm",
                           hl_layer_of(p, i)->name);
    return HALO_OK;
}

/* Live consumers of each layer's output, an edge counted as often as it is there. */
static void count_consumers(const hl_program *p, int *count)
{
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        for (int k = 0; k < l->inputs && p->live[i]; k++) count[l->input[k]]++;
    }
}

/* In the layer's own form, or the other. */
static halo_status new_gradient(hl_program *p, int layer, bool own)
{
    return own ? hl_value_like(p, p->y[layer], HL_VALUE_GRADIENT, layer, ".gradient", &p->g[layer])
               : hl_value_like(p, p->other[layer], HL_VALUE_GRADIENT, layer, ".other_gradient", &p->g_other[layer]);
}

static void find_early(hl_program *p, const int *consumers)
{
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *pool = hl_layer_of(p, i);
        if (!p->live[i] || pool->kind != HL_LAYER_POOL || pool->pool != HALO_POOL_MAX) continue;
        int a = pool->input[0];
        const hl_layer *act = hl_layer_of(p, a);
        p->early[a] = act->kind == HL_LAYER_ACT && consumers[a] == 1 && consumers[act->input[0]] == 1 && p->split[a] == p->split[i];
    }
}

/* A dropout that is left out shares its input's value; it passes gradients on as an add of one term. */
static bool passes_on(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    return l->kind == HL_LAYER_ADD || p->early[layer] ||
           (l->kind == HL_LAYER_DROPOUT && p->y[layer] == p->y[l->input[0]]);
}

/* All consumers have been here: a gradient that came in the other form alone needs a value in the layer's own. */
static halo_status own_form(hl_program *p, int layer)
{
    p->g_first[layer] = p->g[layer] >= 0;
    return p->g_other[layer] >= 0 && p->g[layer] < 0 ? new_gradient(p, layer, true) : HALO_OK;
}

static halo_status differentiate_layer(hl_program *p, int layer, const int *consumers)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *step;
    HL_TRY(own_form(p, layer));
    for (int k = 0; k < l->inputs; k++) {
        int x = l->input[k];
        hl_edge *edge = &p->edge[layer * HL_INPUTS_MAX + k];
        if (!p->needs[x]) continue;
        const bool own = p->split[x] == p->split[layer];
        const int g = own ? p->g[x] : p->g_other[x];
        if (passes_on(p, layer) && consumers[x] == 1 && own) {
            *edge = HL_EDGE_ALIAS;
            p->g[x] = p->g[layer];
        } else if (g < 0) {
            *edge = HL_EDGE_WRITE;
            HL_TRY(new_gradient(p, x, own));
        } else {
            *edge = HL_EDGE_ADD;
        }
    }
    return hl_step_new(p, HL_STEP_LAYER, HL_PHASE_BACKWARD, layer, &step);
}

halo_status hl_pass_differentiate(hl_program *p)
{
    if (!p->opt.training) return HALO_OK;
    find_needs(p);
    HL_TRY(check_frozen_norms(p));
    int *consumers;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->net->layers, sizeof(*consumers), "consumer counts", &consumers));
    count_consumers(p, consumers);
    find_early(p, consumers);
    halo_status st = HALO_OK;
    int last = p->net->layers - 1;
    if (p->needs[last]) st = new_gradient(p, last, true);
    for (int i = last; i > 0 && st == HALO_OK; i--)
        if (p->needs[i]) st = differentiate_layer(p, i, consumers);
    free(consumers);
    return st;
}
