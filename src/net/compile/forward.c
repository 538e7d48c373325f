/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c -- the forward ops of each kind of layer, and the loss. */
#include "net/compile/compile.h"

static void set_act(const hl_program *p, int act, halo_op_desc *desc)
{
    if (act < 0) return;
    desc->act = hl_layer_of(p, act)->act;
    desc->slope = hl_layer_of(p, act)->slope;
}

/* Uses a parameter of the layer in a role; absent ones are left out. */
static halo_status use_param(hl_program *p, hl_step *s, halo_role role, halo_role in_op, int array)
{
    int param = hl_layer_param(p, s->layer, role), value;
    if (param < 0) return HALO_OK;
    HL_TRY(hl_param_value(p, param, array, &value));
    s->use[in_op] = hl_use_of(value);
    return HALO_OK;
}

static halo_status conv_op(hl_program *p, int layer, hl_step **step)
{
    HL_TRY(hl_op_new(p, HALO_OP_CONV_FWD, HL_PHASE_FORWARD, layer, step));
    (*step)->use[HALO_X] = hl_use_window(p, layer, hl_input(p, layer, 0));
    hl_set_window(p, layer, &(*step)->desc);
    return HALO_OK;
}

static halo_status dense_op(hl_program *p, int layer, hl_step **step)
{
    HL_TRY(hl_op_new(p, HALO_OP_LINEAR_FWD, HL_PHASE_FORWARD, layer, step));
    (*step)->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    return HALO_OK;
}

void hl_set_norm(const hl_layer *l, halo_op_desc *desc)
{
    desc->eps = l->eps;
    desc->momentum = l->momentum;
    desc->per_sample = hl_per_sample(l);
    desc->groups = l->scope == HALO_NORM_GROUP ? l->groups : 0;
}

bool hl_fixed_norm(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    return l->kind == HL_LAYER_NORM && !hl_per_sample(l) && !hl_model_trains(p->model, layer);
}

/* Evaluation and frozen norms have running statistics; norms of single samples have none and measure them there too. */
static bool measures(const hl_program *p, int layer)
{
    return hl_per_sample(hl_layer_of(p, layer)) || (p->opt.training && !hl_fixed_norm(p, layer));
}

static halo_status norm_op(hl_program *p, int layer, hl_step **step)
{
    HL_TRY(hl_op_new(p, HALO_OP_NORM_APPLY, HL_PHASE_FORWARD, layer, step));
    halo_op_desc *desc = &(*step)->desc;
    (*step)->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    if (measures(p, layer)) (*step)->use[HALO_STAT] = hl_use_of(p->stat[layer]);
    HL_TRY(use_param(p, *step, HALO_RUN, HALO_RUN, HL_MASTER));
    hl_set_norm(hl_layer_of(p, layer), desc);
    desc->inference = !measures(p, layer);
    desc->unbiased = true;
    return HALO_OK;
}

/* count, mean and squared deviations of each group of samples and features */
static halo_status new_statistics(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    HL_TRY(hl_value_new(p, HL_VALUE_STATISTICS, layer, ".statistics", &p->stat[layer]));
    hl_value *v = &p->value[p->stat[layer]];
    v->dtype = HALO_F64;
    v->ext[HALO_W] = 3 * hl_norm_features(l) * (hl_per_sample(l) ? p->value[p->y[layer]].ext[HALO_N] : 1);
    v->operand = hl_operand_flat(v->dtype, v->ext[HALO_W]);
    return HALO_OK;
}

halo_status hl_forward_op(hl_program *p, int layer, int act, hl_step **step)
{
    hl_layer_kind kind = hl_layer_of(p, layer)->kind;
    if (kind == HL_LAYER_NORM && measures(p, layer) && p->stat[layer] < 0) HL_TRY(new_statistics(p, layer));
    HL_TRY(kind == HL_LAYER_CONV             ? conv_op(p, layer, step)
           : kind == HL_LAYER_CONV_TRANSPOSE ? hl_transposed_op(p, layer, step)
           : kind == HL_LAYER_DENSE          ? dense_op(p, layer, step)
                                             : norm_op(p, layer, step));
    hl_step *s = *step;
    HL_TRY(use_param(p, s, HALO_WT, HALO_WT, HL_MASTER));
    HL_TRY(use_param(p, s, HALO_B, HALO_B, HL_MASTER));
    s->use[kind == HL_LAYER_CONV_TRANSPOSE ? HALO_DX : HALO_Y] = hl_use_of(p->y[act >= 0 ? act : layer]);
    set_act(p, act, &s->desc);
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------- per kind */

static halo_status forward_nothing(hl_program *p, int layer)
{
    (void)p, (void)layer;
    return HALO_OK;
}

static halo_status forward_fusable(hl_program *p, int layer)
{
    hl_step *s;
    if (p->pooled[layer] >= 0) return hl_pooled_forward(p, layer, p->fused[layer], p->pooled[layer], &s);
    return hl_forward_op(p, layer, p->fused[layer], &s);
}

static halo_status forward_norm(hl_program *p, int layer)
{
    hl_step *s;
    if (!measures(p, layer)) return forward_fusable(p, layer);
    HL_TRY(hl_forward_op(p, layer, p->fused[layer], &s)); /* makes the statistics' value */
    hl_step apply = *s;
    p->steps--;
    HL_TRY(hl_op_new(p, HALO_OP_NORM_STATS, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = apply.use[HALO_X];
    s->use[HALO_STAT] = apply.use[HALO_STAT];
    hl_set_norm(hl_layer_of(p, layer), &s->desc);
    HL_TRY(hl_op_new(p, HALO_OP_NORM_APPLY, HL_PHASE_FORWARD, layer, &s));
    *s = apply;
    return HALO_OK;
}

static halo_status forward_act(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    if (p->fused[l->input[0]] == layer) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_ACT_FWD, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    set_act(p, layer, &s->desc);
    return HALO_OK;
}

/* Maximum: the index of the winner is saved for backward. */
static halo_status forward_pool(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    if (hl_pooled_by(p, layer) >= 0) return HALO_OK;
    if (p->unpools[layer] || (p->needs[l->input[0]] && l->pool == HALO_POOL_MAX)) HL_TRY(hl_new_saved(p, layer));
    HL_TRY(hl_op_new(p, HALO_OP_POOL_FWD, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_window(p, layer, hl_input(p, layer, 0));
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    if (p->aux[layer] >= 0) s->use[HALO_AUX] = hl_use_of(p->aux[layer]);
    hl_set_window(p, layer, &s->desc);
    return HALO_OK;
}

void hl_set_global(const hl_program *p, int layer, halo_op_desc *desc)
{
    const hl_layer *l = hl_layer_of(p, layer);
    const hl_value *y = &p->value[p->y[layer]];
    memcpy(desc->global_ext, y->ext, 2 * sizeof(*desc->global_ext));
    memcpy(desc->global_ext + HALO_D, y->whole, sizeof(y->whole));
    memcpy(desc->global_lo + HALO_D, y->lo, sizeof(y->lo));
    desc->global_ext[HALO_N] /= l->rows;
    desc->global_ext[HALO_C] *= l->rows;
}

static halo_status forward_dropout(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    if (p->y[layer] == hl_input(p, layer, 0)) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_DROPOUT, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_samples(p, layer, hl_input(p, layer, 0));
    s->use[HALO_Y] = hl_use_samples(p, layer, p->y[layer]);
    s->desc.keep = l->keep;
    s->desc.layer = (uint64_t)layer;
    hl_set_global(p, layer, &s->desc);
    return HALO_OK;
}

static halo_status forward_flatten(hl_program *p, int layer)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_FLATTEN, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(hl_input(p, layer, 0));
    s->use[HALO_Y] = hl_use_samples(p, layer, p->y[layer]);
    s->desc.channels_last = hl_layer_of(p, layer)->channels_last;
    return HALO_OK;
}

/* ((x0 + x1) + x2) + ...; one input alone is copied. */
static halo_status forward_add(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    for (int k = l->inputs == 1 ? 0 : 1; k < l->inputs; k++) {
        HL_TRY(hl_op_new(p, l->inputs == 1 ? HALO_OP_COPY : HALO_OP_ADD, HL_PHASE_FORWARD, layer, &s));
        s->use[HALO_X] = hl_use_of(k <= 1 ? hl_input(p, layer, 0) : p->y[layer]);
        if (l->inputs > 1) s->use[HALO_X2] = hl_use_of(hl_input(p, layer, k));
        s->use[HALO_Y] = hl_use_of(p->y[layer]);
    }
    return HALO_OK;
}

/* Channels side by side. Where one's begin inside a channel block they are joined in a plain value, which
 * then is copied as a whole. */
static halo_status forward_concat(hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    int joined = p->y[layer];
    int64_t at = 0;
    hl_step *s;
    if (!hl_concat_aligned(p, layer)) {
        HL_TRY(hl_value_like(p, p->y[layer], HL_VALUE_ACTIVATION, layer, ".joined", &joined));
        p->value[joined].cls = HL_CLASS_PLAIN;
    }
    for (int k = 0; k < l->inputs; k++) {
        HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_FORWARD, layer, &s));
        s->use[HALO_X] = hl_use_of(hl_input(p, layer, k));
        s->use[HALO_Y] = hl_use_of(joined);
        s->use[HALO_Y].c_lo = at;
        s->use[HALO_Y].c_ext = p->value[hl_input(p, layer, k)].ext[HALO_C];
        at += s->use[HALO_Y].c_ext;
    }
    if (joined == p->y[layer]) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(joined);
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    return HALO_OK;
}

bool hl_concat_aligned(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    int64_t at = 0;
    for (int k = 0; k < l->inputs; k++) {
        if (!hl_aligned_channels(p, p->value[p->y[layer]].cls, at)) return false;
        at += hl_layer_of(p, l->input[k])->out[0];
    }
    return true;
}

const hl_lower_fn hl_lower_forward[HL_LAYER_KINDS] = {
    [HL_LAYER_INPUT] = forward_nothing,   [HL_LAYER_CONV] = forward_fusable,
    [HL_LAYER_POOL] = forward_pool,       [HL_LAYER_NORM] = forward_norm,
    [HL_LAYER_ACT] = forward_act,         [HL_LAYER_DROPOUT] = forward_dropout,
    [HL_LAYER_FLATTEN] = forward_flatten, [HL_LAYER_DENSE] = forward_fusable,
    [HL_LAYER_ADD] = forward_add,         [HL_LAYER_CONCAT] = forward_concat,
    [HL_LAYER_CONV_TRANSPOSE] = forward_fusable, [HL_LAYER_CROP] = hl_forward_crop,
    [HL_LAYER_UPSAMPLE] = hl_forward_upsample,
};

/* The sums that dice is made of, of this process's part of the samples; ranks add them up (statistics.c). */
static halo_status lower_sums(hl_program *p, int *sums)
{
    hl_step *s;
    HL_TRY(hl_weigh_sums(p, sums));
    HL_TRY(hl_op_new(p, HALO_OP_LOSS_SUMS, HL_PHASE_LOSS, -1, &s));
    s->use[HALO_X] = hl_use_of(p->y[p->net->layers - 1]);
    s->use[HALO_T] = hl_use_of(p->target);
    s->use[HALO_STAT2] = hl_use_of(*sums);
    s->desc.ignores = p->opt.ignores;
    s->desc.ignore = p->opt.ignore;
    return HALO_OK;
}

halo_status hl_lower_loss(hl_program *p)
{
    int last = p->net->layers - 1, sums = -1;
    hl_step *s;
    HL_TRY(hl_weigh_prepare(p));
    if (p->split[last] && (p->opt.loss == HALO_LOSS_DICE || p->opt.loss == HALO_LOSS_DICE_CE)) HL_TRY(lower_sums(p, &sums));
    HL_TRY(hl_op_new(p, HALO_OP_LOSS, HL_PHASE_LOSS, -1, &s));
    if (sums >= 0) s->use[HALO_STAT2] = hl_use_of(sums);
    if (p->class_weights) s->use[HALO_WT] = hl_use_of(p->class_weight);
    if (p->divisor >= 0) s->use[HALO_X2] = hl_use_of(p->divisor);
    s->desc.ignores = hl_loss_of_classes(p->opt.loss) && p->opt.ignores;
    s->desc.ignore = p->opt.ignore;
    s->use[HALO_X] = hl_use_of(p->y[last]);
    s->use[HALO_T] = hl_use_of(p->target);
    s->use[HALO_SW] = hl_use_of(p->weight);
    s->use[HALO_STAT] = (hl_use){.value = p->numbers, .ext = {0, 0, 2}}; /* loss and weight */
    if (p->g[last] >= 0) s->use[HALO_DX] = hl_use_of(p->g[last]);
    if (p->split[last]) {
        hl_set_global(p, last, &s->desc);
        s->desc.global_ext[HALO_C] = p->value[p->target].ext[HALO_C]; /* of targets: class numbers are one channel */
    }
    s->desc.loss = p->opt.loss;
    s->desc.delta = p->opt.huber_delta > 0 ? p->opt.huber_delta : 1;
    return HALO_OK;
}
