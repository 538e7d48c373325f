/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c -- the backward ops of each kind of layer. Weights before data: a group of gradients is
 * complete, and its reduction can start, as early as possible.
 *
 * Gradients of periodic windows that do not tile their axis evenly, and of periodic pools, are formed on the
 * box and its margin, and the margin is folded back into the cells that it stands for (grow and MARGIN
 * reverse).
 */
#include "net/compile/compile.h"

static hl_edge edge_of(const hl_program *p, int layer, int k)
{
    return p->edge[layer * HL_INPUTS_MAX + k];
}

bool hl_wanted(const hl_program *p, int layer, int k)
{
    hl_edge e = edge_of(p, layer, k);
    return e == HL_EDGE_WRITE || e == HL_EDGE_ADD;
}

halo_status hl_open_sink(hl_program *p, int layer, bool op_adds, hl_sink *out)
{
    int g = hl_input_gradient(p, layer, 0);
    bool add = edge_of(p, layer, 0) == HL_EDGE_ADD;
    *out = (hl_sink){.value = g, .sum = -1, .accumulate = add};
    if (!add || op_adds) return HALO_OK;
    out->sum = g;
    out->accumulate = false;
    return hl_value_like(p, g, HL_VALUE_GRADIENT, layer, ".part", &out->value);
}

static halo_status add_copy(hl_program *p, int layer, int from, int to, bool accumulate)
{
    return hl_add_copy(p, HL_PHASE_BACKWARD, layer, from, to, accumulate);
}

halo_status hl_close_sink(hl_program *p, int layer, const hl_sink *k)
{
    return k->sum < 0 ? HALO_OK : add_copy(p, layer, k->value, k->sum, true);
}

halo_status hl_use_gradients(hl_program *p, hl_step *s)
{
    const halo_role of[2] = {HALO_WT, HALO_B}, in[2] = {HALO_DW, HALO_DB};
    for (int i = 0; i < 2; i++) {
        int param = hl_layer_param(p, s->layer, of[i]), value;
        if (param < 0) continue;
        HL_TRY(hl_param_value(p, param, HL_GRADIENT, &value));
        s->use[in[i]] = hl_use_of(value);
    }
    s->desc.accumulate = p->opt.accumulate;
    return HALO_OK;
}

halo_status hl_use_weights(hl_program *p, hl_step *s)
{
    int value;
    HL_TRY(hl_param_value(p, hl_layer_param(p, s->layer, HALO_WT), HL_MASTER, &value));
    s->use[HALO_WT] = hl_use_of(value);
    return HALO_OK;
}

halo_status hl_through_act(hl_program *p, int layer, int *dy)
{
    int act = p->fused[layer];
    hl_step *s;
    *dy = p->g[layer];
    if (act < 0 || p->early[act] || hl_act_unpooled(p, act)) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_ACT_BWD, HL_PHASE_BACKWARD, act, &s));
    s->use[HALO_Y] = hl_use_of(p->y[act]);
    s->use[HALO_DY] = hl_use_of(p->g[act]);
    s->use[HALO_DX] = hl_use_of(*dy);
    s->desc.act = hl_layer_of(p, act)->act;
    s->desc.slope = hl_layer_of(p, act)->slope;
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------- folded margins */

static bool any(const int64_t m[3][2])
{
    for (int i = 0; i < 6; i++)
        if (m[i / 2][i % 2]) return true;
    return false;
}

static halo_status clear_margin(hl_program *p, int layer, int value, const hl_border *grow)
{
    hl_step *s;
    if (!any(grow->margin)) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_MARGIN, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_Y] = hl_use_of(value);
    memcpy(s->use[HALO_Y].margin, grow->margin, sizeof(s->use[HALO_Y].margin));
    return HALO_OK;
}

/* Margins of periodic axes are added to the cells of this process that they stand for... */
static halo_status fold_here(hl_program *p, int layer, int value, const hl_border *grow)
{
    hl_step *s;
    bool here = false;
    for (int a = 0; a < 3; a++) here = here || (grow->mode[a] != HALO_MARGIN_KEEP && (grow->margin[a][0] || grow->margin[a][1]));
    if (!here) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_MARGIN, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_Y] = hl_use_of(value);
    memcpy(s->use[HALO_Y].margin, grow->margin, sizeof(s->use[HALO_Y].margin));
    s->desc.reverse = true;
    for (int i = 0; i < 6; i++) s->desc.margin_mode[i / 2][i % 2] = grow->mode[i / 2] == HALO_MARGIN_KEEP ? HALO_MARGIN_KEEP : HALO_MARGIN_WRAP;
    return HALO_OK;
}

/* ...and then those of cut axes to the cells of the neighbours. */
halo_status hl_fold(hl_program *p, int layer, int value, const hl_border *grow)
{
    hl_transfer t = {.kind = HL_TRANSFER_FOLD, .layer = layer, .from = value, .to = value};
    HL_TRY(fold_here(p, layer, value, grow));
    if (!grow->any) return HALO_OK;
    memcpy(t.margin, grow->margin, sizeof(t.margin));
    memcpy(t.near, grow->near, sizeof(t.near));
    return hl_transfer_new(p, &t, HL_PHASE_BACKWARD);
}

/* Makes room for a gradient that is formed on box and margin. So far only other windows of this kind have
 * asked for its margin: those who will read it come later in backward. */
halo_status hl_grow_sink(hl_program *p, int layer, const hl_border *grow, const hl_sink *k)
{
    hl_border b = *grow;
    for (int a = 0; a < 3; a++)
        if (b.mode[a] != HALO_MARGIN_KEEP) b.mode[a] = HALO_MARGIN_WRAP;
    HL_BUG_UNLESS(hl_widen_margin(&p->value[k->value], &b));
    return k->accumulate ? clear_margin(p, layer, k->value, grow) : HALO_OK;
}

static void use_grown(hl_step *s, const hl_sink *k, const hl_border *grow)
{
    s->use[HALO_DX] = hl_use_of(k->value);
    memcpy(s->use[HALO_DX].grow, grow->margin, sizeof(s->use[HALO_DX].grow));
    s->desc.accumulate = k->accumulate;
    for (int a = 0; a < 3; a++) s->desc.window.pad_lo[a] -= grow->margin[a][0];
}

/* ----------------------------------------------------------------------------------------------- per kind */

static halo_status backward_nothing(hl_program *p, int layer)
{
    (void)p, (void)layer;
    return HALO_OK;
}

static halo_status conv_weights(hl_program *p, int layer, int dy)
{
    hl_step *s;
    if (!hl_forms_gradients(p, layer)) return hl_no_gradients(p, layer);
    HL_TRY(hl_op_new(p, HALO_OP_CONV_BWD_WEIGHTS, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_window(p, layer, hl_input(p, layer, 0));
    s->use[HALO_DY] = hl_use_of(dy);
    hl_set_window(p, layer, &s->desc);
    return hl_use_gradients(p, s);
}

/* dy with the margin that backward-data reads; a copy of it where its margin already holds something else. */
static halo_status with_margin(hl_program *p, int layer, int dy, hl_use *use)
{
    const hl_border b = hl_gradient_margin(p, layer);
    int value = dy;
    if (!hl_widen_margin(&p->value[dy], &b)) {
        HL_TRY(hl_value_like(p, dy, HL_VALUE_GRADIENT, layer, ".wrapped", &value));
        HL_BUG_UNLESS(hl_widen_margin(&p->value[value], &b));
        HL_TRY(add_copy(p, layer, dy, value, false));
    }
    *use = hl_use_bordered(value, &b);
    return HALO_OK;
}

static halo_status conv_data(hl_program *p, int layer, int dy)
{
    const hl_border grow = hl_window_grow(p, layer);
    hl_use use;
    hl_step *s;
    hl_sink k;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_grow_sink(p, layer, &grow, &k));
    HL_TRY(with_margin(p, layer, dy, &use));
    HL_TRY(hl_op_new(p, HALO_OP_CONV_BWD_DATA, HL_PHASE_BACKWARD, layer, &s));
    hl_set_window(p, layer, &s->desc);
    s->use[HALO_DY] = use;
    use_grown(s, &k, &grow);
    HL_TRY(hl_use_weights(p, s));
    HL_TRY(hl_fold(p, layer, k.value, &grow));
    return hl_close_sink(p, layer, &k);
}

static halo_status backward_conv(hl_program *p, int layer)
{
    int dy;
    HL_TRY(hl_through_act(p, layer, &dy));
    HL_TRY(conv_weights(p, layer, dy));
    return hl_wanted(p, layer, 0) ? conv_data(p, layer, dy) : HALO_OK;
}

static halo_status dense_weights(hl_program *p, int layer, int dy)
{
    hl_step *s;
    if (!hl_forms_gradients(p, layer)) return hl_no_gradients(p, layer);
    HL_TRY(hl_op_new(p, HALO_OP_LINEAR_BWD_WEIGHTS, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    s->use[HALO_DY] = hl_use_of(dy);
    return hl_use_gradients(p, s);
}

static halo_status backward_dense(hl_program *p, int layer)
{
    int dy;
    hl_step *s;
    HL_TRY(hl_through_act(p, layer, &dy));
    HL_TRY(dense_weights(p, layer, dy));
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    hl_sink k;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_op_new(p, HALO_OP_LINEAR_BWD_DATA, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_DY] = hl_use_of(dy);
    s->use[HALO_DX] = hl_use_of(k.value);
    s->desc.accumulate = k.accumulate;
    return hl_use_weights(p, s);
}

/* Two sums over the batch (which ranks will add up) or over each sample, then dx from them. */
static halo_status norm_sums(hl_program *p, int layer, int dy)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    HL_TRY(hl_value_new(p, HL_VALUE_STATISTICS, layer, ".sums", &p->stat2[layer]));
    p->value[p->stat2[layer]].dtype = HALO_F64;
    p->value[p->stat2[layer]].ext[HALO_W] = 2 * l->out[0] * (hl_per_sample(l) ? p->value[p->y[layer]].ext[HALO_N] : 1);
    HL_TRY(hl_op_new(p, HALO_OP_NORM_BWD_STATS, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    s->use[HALO_DY] = hl_use_of(dy);
    s->use[HALO_STAT] = hl_use_of(p->stat[layer]);
    s->use[HALO_STAT2] = hl_use_of(p->stat2[layer]);
    hl_set_norm(l, &s->desc);
    return HALO_OK;
}

static halo_status backward_norm(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    int dy;
    hl_step *s;
    hl_sink k = {.value = -1, .sum = -1};
    HL_TRY(hl_through_act(p, layer, &dy));
    HL_TRY(norm_sums(p, layer, dy));
    /* Not every backend leaves dx out where nobody wants it; in place it costs no storage. */
    if (hl_wanted(p, layer, 0))
        HL_TRY(hl_open_sink(p, layer, false, &k));
    else
        HL_TRY(hl_value_like(p, dy, HL_VALUE_GRADIENT, layer, ".unused", &k.value));
    HL_TRY(hl_op_new(p, HALO_OP_NORM_BWD_APPLY, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    s->use[HALO_DY] = hl_use_of(dy);
    s->use[HALO_STAT] = hl_use_of(p->stat[layer]);
    s->use[HALO_STAT2] = hl_use_of(p->stat2[layer]);
    s->use[HALO_DX] = hl_use_of(k.value);
    hl_set_norm(l, &s->desc);
    HL_TRY(hl_use_gradients(p, s));
    HL_TRY(hl_use_weights(p, s));
    return hl_close_sink(p, layer, &k);
}

static halo_status backward_act(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0) || p->fused[l->input[0]] == layer) return HALO_OK;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_op_new(p, HALO_OP_ACT_BWD, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    s->use[HALO_DY] = hl_use_of(p->g[layer]);
    s->use[HALO_DX] = hl_use_of(k.value);
    s->desc.act = l->act;
    s->desc.slope = l->slope;
    s->desc.accumulate = k.accumulate;
    return HALO_OK;
}

/* The derivative of the activation in front of a max pool, at the winners. */
static halo_status early_act(hl_program *p, int layer, int *dy)
{
    const hl_layer *act = hl_layer_of(p, hl_layer_of(p, layer)->input[0]);
    hl_step *s;
    *dy = p->g[layer];
    if (!p->early[hl_layer_of(p, layer)->input[0]]) return HALO_OK;
    HL_TRY(hl_value_like(p, p->g[layer], HL_VALUE_GRADIENT, layer, ".winners", dy));
    HL_TRY(hl_op_new(p, HALO_OP_ACT_BWD, HL_PHASE_BACKWARD, hl_layer_of(p, layer)->input[0], &s));
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    s->use[HALO_DY] = hl_use_of(p->g[layer]);
    s->use[HALO_DX] = hl_use_of(*dy);
    s->desc.act = act->act;
    s->desc.slope = act->slope;
    return HALO_OK;
}

static halo_status backward_pool(hl_program *p, int layer)
{
    const hl_border grow = hl_window_grow(p, layer);
    int dy;
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    if (p->unpools[layer]) return hl_pooled_backward(p, layer);
    HL_TRY(early_act(p, layer, &dy));
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_grow_sink(p, layer, &grow, &k));
    HL_TRY(hl_op_new(p, HALO_OP_POOL_BWD, HL_PHASE_BACKWARD, layer, &s));
    hl_set_window(p, layer, &s->desc);
    s->use[HALO_DY] = hl_use_of(dy);
    if (p->aux[layer] >= 0) s->use[HALO_AUX] = hl_use_of(p->aux[layer]);
    use_grown(s, &k, &grow);
    HL_TRY(hl_fold(p, layer, k.value, &grow));
    return hl_close_sink(p, layer, &k);
}

static halo_status backward_dropout(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    if (p->y[layer] == hl_input(p, layer, 0))
        return add_copy(p, layer, p->g[layer], p->g[l->input[0]], edge_of(p, layer, 0) == HL_EDGE_ADD);
    HL_TRY(hl_open_sink(p, layer, false, &k));
    HL_TRY(hl_op_new(p, HALO_OP_DROPOUT, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_samples(p, layer, p->g[layer]);
    s->use[HALO_Y] = hl_use_samples(p, layer, k.value);
    s->desc.keep = l->keep;
    s->desc.layer = (uint64_t)layer;
    hl_set_global(p, layer, &s->desc);
    return hl_close_sink(p, layer, &k);
}

static halo_status backward_flatten(hl_program *p, int layer)
{
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_op_new(p, HALO_OP_UNFLATTEN, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_DY] = hl_use_samples(p, layer, p->g[layer]);
    s->use[HALO_DX] = hl_use_of(k.value);
    s->desc.channels_last = hl_layer_of(p, layer)->channels_last;
    s->desc.accumulate = k.accumulate;
    return HALO_OK;
}

static halo_status backward_add(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    for (int k = 0; k < l->inputs; k++)
        if (hl_wanted(p, layer, k))
            HL_TRY(add_copy(p, layer, p->g[layer], hl_input_gradient(p, layer, k), edge_of(p, layer, k) == HL_EDGE_ADD));
    return HALO_OK;
}

static halo_status backward_concat(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    int64_t at = 0;
    int joined = p->g[layer];
    if (!hl_concat_aligned(p, layer)) {
        HL_TRY(hl_value_like(p, p->g[layer], HL_VALUE_GRADIENT, layer, ".joined", &joined));
        p->value[joined].cls = HL_CLASS_PLAIN;
        HL_TRY(add_copy(p, layer, p->g[layer], joined, false));
    }
    for (int k = 0; k < l->inputs; k++) {
        int64_t channels = hl_layer_of(p, l->input[k])->out[0];
        if (hl_wanted(p, layer, k)) {
            HL_TRY(add_copy(p, layer, joined, hl_input_gradient(p, layer, k), edge_of(p, layer, k) == HL_EDGE_ADD));
            hl_use *from = &p->step[p->steps - 1].use[HALO_X];
            from->c_lo = at;
            from->c_ext = channels;
        }
        at += channels;
    }
    return HALO_OK;
}

const hl_lower_fn hl_lower_backward[HL_LAYER_KINDS] = {
    [HL_LAYER_INPUT] = backward_nothing,   [HL_LAYER_CONV] = backward_conv,
    [HL_LAYER_POOL] = backward_pool,       [HL_LAYER_NORM] = backward_norm,
    [HL_LAYER_ACT] = backward_act,         [HL_LAYER_DROPOUT] = backward_dropout,
    [HL_LAYER_FLATTEN] = backward_flatten, [HL_LAYER_DENSE] = backward_dense,
    [HL_LAYER_ADD] = backward_add,         [HL_LAYER_CONCAT] = backward_concat,
    [HL_LAYER_CONV_TRANSPOSE] = hl_backward_transposed, [HL_LAYER_CROP] = hl_backward_crop,
    [HL_LAYER_UPSAMPLE] = hl_backward_upsample,
};
