/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c -- the first pass: a value for the output of every layer that the network's output depends on, a
 * forward step per layer, and the layout class of each value.
 *
 * Extents are those of the graph (inferred, with checked arithmetic, when a layer is added) with the batch in
 * front; here their product is checked. Behind a flatten that cuts a sample into rows each row counts as a
 * sample. Layers without influence on the output get nothing. In evaluation dropout is the identity and its
 * output is its input's value.
 */
#include "net/compile/compile.h"

static halo_status check_extents(hl_program *p, int layer, const int64_t ext[HALO_DIMS])
{
    int64_t n = (int64_t)hl_dtype_size(HALO_F64);
    bool fits = true;
    for (int i = 0; i < HALO_DIMS; i++) {
        if (ext[i] < 1)
            return hl_fail(p->ctx, HALO_ERR_SHAPE, "layer '%s': extent %" PRId64 " is not positive",
                           hl_layer_of(p, layer)->name, ext[i]);
        fits = fits && hl_mul64(n, ext[i], &n);
    }
    if (fits) return HALO_OK;
    return hl_fail(p->ctx, HALO_ERR_SHAPE,
                   "layer '%s': a tensor of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                   " is too large to index",
                   hl_layer_of(p, layer)->name, ext[0], ext[1], ext[2], ext[3], ext[4]);
}

static void find_live(hl_program *p)
{
    p->live[p->net->layers - 1] = true;
    p->live[0] = true;
    for (int i = p->net->layers - 1; i >= 0; i--) {
        const hl_layer *l = hl_layer_of(p, i);
        for (int k = 0; k < l->inputs && p->live[i]; k++) p->live[l->input[k]] = true;
    }
}

/* Vectors are plain. What pointwise layers and pools make of the input alone keeps its few channels and so
 * its class. */
static hl_layout_class class_of(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    if (l->kind == HL_LAYER_FLATTEN || l->kind == HL_LAYER_DENSE) return HL_CLASS_PLAIN;
    if (l->kind == HL_LAYER_INPUT) return HL_CLASS_INPUT;
    if (l->kind == HL_LAYER_CONV || l->kind == HL_LAYER_CONV_TRANSPOSE) return HL_CLASS_PROGRAM;
    hl_layout_class cls = p->value[p->y[l->input[0]]].cls;
    for (int k = 1; k < l->inputs; k++)
        if (p->value[p->y[l->input[k]]].cls != cls) cls = HL_CLASS_PROGRAM;
    return cls;
}

/* Where an add or concat joins the input with convolutions' outputs, the whole family of the input joins the
 * program's layout. */
static void unite_classes(hl_program *p)
{
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        if (!p->live[i] || l->kind == HL_LAYER_CONV || l->kind == HL_LAYER_CONV_TRANSPOSE ||
            l->kind == HL_LAYER_DENSE || l->kind == HL_LAYER_FLATTEN)
            continue;
        for (int k = 0; k < l->inputs; k++) {
            if (p->value[p->y[l->input[k]]].cls == p->value[p->y[i]].cls) continue;
            for (int v = 0; v < p->values; v++)
                if (p->value[v].cls == HL_CLASS_INPUT) p->value[v].cls = HL_CLASS_PROGRAM;
            return;
        }
    }
}

static halo_status add_layer(hl_program *p, int i)
{
    const hl_layer *l = hl_layer_of(p, i);
    hl_step *step;
    if (l->kind == HL_LAYER_DROPOUT && (!p->opt.training || l->keep >= 1)) {
        p->y[i] = p->y[l->input[0]];
        return HALO_OK;
    }
    int64_t ext[HALO_DIMS] = {0, l->out[0], l->out[1], l->out[2], l->out[3]};
    if (!hl_mul64(p->opt.batch, l->rows, &ext[HALO_N])) ext[HALO_N] = INT64_MAX; /* too large as well */
    HL_TRY(check_extents(p, i, ext));
    HL_TRY(
        hl_value_new(p, l->kind == HL_LAYER_INPUT ? HL_VALUE_INPUT : HL_VALUE_ACTIVATION, i, "", &p->y[i]));
    memcpy(p->value[p->y[i]].ext, ext, sizeof(ext));
    p->value[p->y[i]].cls = class_of(p, i);
    if (l->kind == HL_LAYER_INPUT) {
        p->value[p->y[i]].forever = true;
        return HALO_OK;
    }
    return hl_step_new(p, HL_STEP_LAYER, HL_PHASE_FORWARD, i, &step);
}

static halo_status add_loss(hl_program *p)
{
    const hl_value *out = &p->value[p->y[p->net->layers - 1]];
    const bool classes = hl_loss_of_classes(p->opt.loss); /* their numbers are one channel: no layout has anything to gain */
    const hl_layout_class cls = classes ? HL_CLASS_PLAIN : out->cls; /* else the loss runs over both side by side */
    int64_t ext[HALO_DIMS];
    hl_step *step;
    memcpy(ext, out->ext, sizeof(ext));
    if (classes && ext[HALO_C] < 2)
        return hl_fail(p->ctx, HALO_ERR_SHAPE, "network '%s' has 1 output: a loss of classes needs one for each class, two at least", p->net->name);
    if (classes) ext[HALO_C] = 1;
    HL_TRY(hl_value_new(p, HL_VALUE_TARGET, -1, "targets", &p->target));
    memcpy(p->value[p->target].ext, ext, sizeof(ext));
    p->value[p->target].cls = cls;
    HL_TRY(hl_value_new(p, HL_VALUE_TARGET, -1, "sample weights", &p->weight));
    p->value[p->weight].ext[HALO_W] = ext[HALO_N];
    HL_TRY(hl_value_new(p, HL_VALUE_STATISTICS, -1, "numbers", &p->numbers));
    p->value[p->numbers].ext[HALO_W] = HALO_NUMBERS;
    p->value[p->target].forever = p->value[p->weight].forever = p->value[p->numbers].forever = true;
    return hl_step_new(p, HL_STEP_LAYER, HL_PHASE_LOSS, -1, &step);
}

halo_status hl_pass_shape(hl_program *p)
{
    find_live(p);
    for (int i = 0; i < p->net->layers; i++)
        if (p->live[i]) HL_TRY(add_layer(p, i));
    unite_classes(p);
    return add_loss(p);
}
