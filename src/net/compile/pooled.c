/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooled.c -- a convolution, its activation and the pool behind them as one op, and the gradient of the last
 * two as one:
 *
 *   y = pool(act(conv(x))), saved: the winners (max) or a bit per cell (avg)        dz = act' . pool'(dy),
 * from y and what was saved
 *
 * so that the activation at full size, the largest value of most networks, neither exists nor passes through
 * memory. Where the windows lie side by side without padding, on the process's own cells, and each of the two
 * is the only reader of the one before; and where the device has a way for both directions in its favourite
 * layout.
 *
 * Where only backward can be, it alone is taken: for max pools whose activation's derivative is theirs
 * already (differentiate.c; a norm in front of the activation, say), and for averages over windows that
 * overlap, behind an activation of two values that the op before it computes: the pool saves the bits, and
 * the activation is not needed after it.
 */
#include "net/compile/compile.h"

/* The only reader of layer i's output; else -1. */
int hl_lone_reader(const hl_program *p, int i)
{
    int found = -1, readers = 0;
    if (i == p->net->layers - 1) return -1;
    for (int j = i + 1; j < p->net->layers; j++) {
        const hl_layer *l = hl_layer_of(p, j);
        for (int k = 0; k < l->inputs && p->live[j]; k++) {
            if (l->input[k] != i) continue;
            readers++;
            if (p->split[j] == p->split[i]) found = j;
        }
    }
    return readers == 1 ? found : -1;
}

static bool is_pool(const hl_program *p, int layer)
{
    return layer >= 0 && hl_layer_of(p, layer)->kind == HL_LAYER_POOL;
}

/* Windows of a pool that share nothing and lie within its input's block. */
static bool side_by_side(const hl_program *p, int pool)
{
    const hl_layer *l = hl_layer_of(p, pool);
    const hl_border need = hl_window_border(p, pool), grow = hl_window_grow(p, pool);
    halo_op_desc d = {.kind = HALO_OP_POOL_FWD};
    hl_set_window(p, pool, &d);
    for (int a = 0; a < 3; a++) {
        if (l->window.kernel[a] != l->window.stride[a] || l->window.dilation[a] != 1 || l->pad[a][0] ||
            l->pad[a][1])
            return false;
        if (d.window.pad_lo[a] != 0) return false;
        for (int side = 0; side < 2; side++)
            if (need.margin[a][side] || grow.margin[a][side]) return false;
    }
    return !need.any && !grow.any;
}

/* The activation in front of a pool, or -1; and the convolution whose op is the pool too, or -1. */
static int act_before(const hl_program *p, int pool)
{
    int x = hl_layer_of(p, pool)->input[0];
    return hl_layer_of(p, x)->kind == HL_LAYER_ACT ? x : -1;
}

int hl_pooled_by(const hl_program *p, int pool)
{
    int act = act_before(p, pool),
        conv = act >= 0 ? hl_layer_of(p, act)->input[0] : hl_layer_of(p, pool)->input[0];
    return p->pooled[conv] == pool ? conv : -1;
}

static bool differentiated(const hl_program *p, int pool)
{
    return p->opt.training && p->needs[hl_layer_of(p, pool)->input[0]];
}

static bool two_valued(halo_act act)
{
    return act == HALO_ACT_RELU || act == HALO_ACT_LEAKY_RELU;
}

halo_status hl_new_saved(hl_program *p, int pool)
{
    const hl_layer *l = hl_layer_of(p, pool);
    if (p->aux[pool] >= 0) return HALO_OK;
    HL_TRY(hl_value_like(p, p->y[pool], HL_VALUE_SAVED, pool, l->pool == HALO_POOL_MAX ? ".argmax" : ".signs",
                         &p->aux[pool]));
    bool small = l->window.kernel[0] * l->window.kernel[1] * l->window.kernel[2] <= 256;
    p->value[p->aux[pool]].dtype = small ? HALO_U8 : HALO_I32;
    return HALO_OK;
}

static void no_saved(hl_program *p, int pool)
{
    if (p->aux[pool] >= 0) p->value[p->aux[pool]].dead = true;
    p->aux[pool] = -1;
}

/* -------------------------------------------------------------------------------------------------------------------
 * ops */

halo_status hl_pooled_forward(hl_program *p, int conv, int act, int pool, hl_step **step)
{
    const hl_layer *l = hl_layer_of(p, pool);
    if (differentiated(p, pool) &&
        (l->pool == HALO_POOL_MAX || (act >= 0 && two_valued(hl_layer_of(p, act)->act))))
        HL_TRY(hl_new_saved(p, pool));
    HL_TRY(hl_forward_op(p, conv, act, step));
    hl_step *s = *step;
    s->desc.kind = HALO_OP_CONV_POOL_FWD;
    s->desc.pool = l->pool;
    memcpy(s->desc.pool_side, l->window.kernel, sizeof(s->desc.pool_side));
    s->use[HALO_Y] = hl_use_of(p->y[pool]);
    if (p->aux[pool] >= 0) s->use[HALO_AUX] = hl_use_of(p->aux[pool]);
    return HALO_OK;
}

/* into: the gradient of what comes before the activation */
static halo_status backward_op(hl_program *p, int pool, int into, hl_step **step)
{
    int act = act_before(p, pool);
    HL_TRY(hl_op_new(p, HALO_OP_ACT_POOL_BWD, HL_PHASE_BACKWARD, pool, step));
    hl_step *s = *step;
    hl_set_window(p, pool, &s->desc);
    s->use[HALO_DY] = hl_use_of(p->g[pool]);
    s->use[HALO_DX] = hl_use_of(into);
    if (p->aux[pool] >= 0) s->use[HALO_AUX] = hl_use_of(p->aux[pool]);
    if (act < 0) return HALO_OK;
    s->desc.act = hl_layer_of(p, act)->act;
    s->desc.slope = hl_layer_of(p, act)->slope;
    if (s->desc.pool == HALO_POOL_MAX) s->use[HALO_Y] = hl_use_of(p->y[pool]);
    return HALO_OK;
}

/* Who in front of the pool gets the gradient: the op that computes the activation, or else what the pool
 * reads. */
static int receiver(const hl_program *p, int pool)
{
    int act = act_before(p, pool), producer = act >= 0 ? hl_layer_of(p, act)->input[0] : -1;
    return producer >= 0 && p->fused[producer] == act ? producer : hl_layer_of(p, pool)->input[0];
}

bool hl_act_unpooled(const hl_program *p, int act)
{
    int pool = hl_lone_reader(p, act);
    return is_pool(p, pool) && p->unpools[pool];
}

halo_status hl_pooled_backward(hl_program *p, int pool)
{
    int to = receiver(p, pool), x = hl_layer_of(p, pool)->input[0];
    hl_step *s;
    if (p->g[x] != p->g[to]) p->value[p->g[x]].dead = true;
    return backward_op(p, pool, p->g[to], &s);
}

/* ----------------------------------------------------------------------------------------------------------------
 * choice */

/* Whether the device can, with the geometry as it is set. Steps are taken away again. */
static bool can(hl_program *p, int before)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    hl_step *s = &p->step[before];
    hl_step_operands(p, s);
    bool yes = hl_step_valid(s) && hl_op_candidates(p->dev, &s->desc, c) > 0;
    p->steps = before;
    return yes;
}

/* The device's favourite among the layouts in which it has a way for every convolution: its geometry is set.
 * False when there is none. Other layouts may fall out of the choice by what is fused for this one. */
static halo_status set_favourite(hl_program *p, bool *found)
{
    halo_layout layouts[HALO_LAYOUTS], input[HL_INPUT_LAYOUTS];
    int n = hl_program_layouts(p, layouts), before = p->steps;
    hl_step *s;
    *found = false;
    for (int i = 0; i < n && !*found; i++) {
        hl_input_layouts(p, layouts[i], input);
        HL_TRY(hl_set_geometry(p, layouts[i], input[0]));
        *found = true;
        for (int k = 0; k < p->net->layers && *found; k++) {
            if (!p->live[k] || hl_layer_of(p, k)->kind != HL_LAYER_CONV) continue;
            HL_TRY(hl_forward_op(p, k, p->fused[k], &s));
            *found = can(p, before);
        }
    }
    return HALO_OK;
}

/* Of a pool as an op of its own that saves, too: backward alone is fused. */
static halo_status pool_op(hl_program *p, int pool, hl_step **step)
{
    HL_TRY(hl_new_saved(p, pool));
    HL_TRY(hl_op_new(p, HALO_OP_POOL_FWD, HL_PHASE_FORWARD, pool, step));
    (*step)->use[HALO_X] = hl_use_window(p, pool, hl_input(p, pool, 0));
    (*step)->use[HALO_Y] = hl_use_of(p->y[pool]);
    (*step)->use[HALO_AUX] = hl_use_of(p->aux[pool]);
    hl_set_window(p, pool, &(*step)->desc);
    return HALO_OK;
}

/* conv < 0: backward alone. */
static halo_status ask(hl_program *p, int conv, int act, int pool, bool *yes)
{
    int before = p->steps;
    hl_step *s;
    *yes = true;
    if (conv >= 0)
        HL_TRY(hl_pooled_forward(p, conv, act, pool, &s));
    else
        HL_TRY(pool_op(p, pool, &s));
    HL_TRY(hl_set_geometry(p, p->layout, p->input_layout)); /* of the value that it made */
    *yes = can(p, before);
    if (*yes && differentiated(p, pool)) {
        HL_TRY(backward_op(p, pool, p->g[receiver(p, pool)], &s));
        *yes = can(p, before);
    }
    if (!*yes) no_saved(p, pool);
    return HALO_OK;
}

/* The gradient of the pool's input is written by the pool alone, and so is that of what its activation reads.
 */
static bool writes_alone(const hl_program *p, int pool, int act)
{
    return p->edge[pool * HL_INPUTS_MAX] != HL_EDGE_ADD &&
           (act < 0 || p->edge[act * HL_INPUTS_MAX] != HL_EDGE_ADD);
}

static halo_status fuse_conv(hl_program *p, int conv)
{
    int act = p->fused[conv], pool = hl_lone_reader(p, act >= 0 ? act : conv);
    bool yes;
    if (!is_pool(p, pool) || !side_by_side(p, pool) || !writes_alone(p, pool, act)) return HALO_OK;
    HL_TRY(ask(p, conv, act, pool, &yes));
    if (!yes) return HALO_OK;
    p->pooled[conv] = pool;
    p->unpools[pool] = differentiated(p, pool);
    return HALO_OK;
}

/* Windows of an average that reach no cell but those that its bits stand for; the bits of the block's cells
 * are all here. */
static bool bits_suffice(const hl_program *p, int pool)
{
    const hl_layer *l = hl_layer_of(p, pool);
    const hl_border grow = hl_window_grow(p, pool);
    const int64_t *s = l->window.stride;
    halo_op_desc d = {.kind = HALO_OP_POOL_FWD};
    hl_set_window(p, pool, &d);
    if (memcmp(l->window.kernel, s, sizeof(l->window.kernel)) == 0)
        return side_by_side(p, pool); /* padded ones would be taken for parts of a tensor */
    for (int a = 0; a < 3; a++) {
        if (l->window.dilation[a] != 1 || l->window.kernel[a] - d.window.pad_lo[a] > s[a] || s[a] > 8)
            return false;
        if (grow.margin[a][0] || grow.margin[a][1]) return false;
    }
    return !grow.any && s[0] * s[1] * s[2] <= 8;
}

static halo_status fuse_backward(hl_program *p, int pool)
{
    int act = act_before(p, pool);
    if (act < 0 || hl_lone_reader(p, act) != pool || !differentiated(p, pool) || !writes_alone(p, pool, act))
        return HALO_OK;
    bool max = hl_layer_of(p, pool)->pool == HALO_POOL_MAX, inside = receiver(p, pool) != act;
    if (max ? !p->early[act] || !side_by_side(p, pool)
            : !inside || !two_valued(hl_layer_of(p, act)->act) || !bits_suffice(p, pool))
        return HALO_OK;
    return ask(p, -1, act, pool, &p->unpools[pool]);
}

halo_status hl_fuse_pools(hl_program *p)
{
    bool found = false;
    if (!p->off.no_fuse) HL_TRY(set_favourite(p, &found));
    if (!found) return HALO_OK;
    for (int i = 0; i < p->net->layers; i++)
        if (p->live[i] && hl_layer_of(p, i)->kind == HL_LAYER_CONV) HL_TRY(fuse_conv(p, i));
    for (int i = 0; i < p->net->layers; i++)
        if (p->live[i] && is_pool(p, i) && hl_pooled_by(p, i) < 0) HL_TRY(fuse_backward(p, i));
    return HALO_OK;
}
