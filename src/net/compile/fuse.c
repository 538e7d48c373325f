/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c -- which activation layers are computed by the op before them: convolution, dense layer or norm,
 * then an activation that is its only reader. A pair is fused when the device has a candidate for the fused
 * description in every layout in which it has one for the plain op, so that the choice of layout stays free.
 * The gradient of an activation needs its output alone, so nothing more has to be saved.
 */
#include "net/compile/compile.h"

int hl_program_layouts(const hl_program *p, halo_layout out[HALO_LAYOUTS])
{
    int n = 0;
    for (const halo_layout *l = p->dev->layouts; *l != HALO_LAYOUTS && n < HALO_LAYOUTS; l++)
        if (p->opt.layout == HALO_LAYOUTS || p->opt.layout == *l) out[n++] = *l;
    return n;
}

int hl_input_layouts(const hl_program *p, halo_layout layout, halo_layout out[HL_INPUT_LAYOUTS])
{
    int64_t block = hl_layout_block(layout);
    if (p->value[p->y[0]].ext[HALO_C] >= block || p->value[p->y[0]].cls != HL_CLASS_INPUT) {
        out[0] = layout;
        return 1;
    }
    out[0] = HALO_NDHWC;
    out[1] = HALO_NCDHW;
    out[2] = layout; /* lanes of zeros: for networks that differentiate down to the input's few channels */
    return 3;
}

bool hl_aligned_channels(const hl_program *p, hl_layout_class cls, int64_t at)
{
    halo_layout layouts[HALO_LAYOUTS];
    int n = hl_program_layouts(p, layouts);
    for (int i = 0; i < n && cls != HL_CLASS_PLAIN; i++)
        if (at % hl_layout_block(layouts[i]) != 0) return false;
    return true;
}

/* The only reader of layer i's output, when that is an activation; else -1. */
static int lone_activation(const hl_program *p, int i)
{
    int j = hl_lone_reader(p, i);
    return j >= 0 && hl_layer_of(p, j)->kind == HL_LAYER_ACT ? j : -1;
}

/* -1: the device has no candidate for the plain op; else whether it has one with the activation inside. */
static halo_status ask(hl_program *p, int layer, int act, int *answer)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    int before = p->steps;
    hl_step *s;
    bool has[2];
    for (int with = 0; with < 2; with++) {
        HL_TRY(hl_forward_op(p, layer, with ? act : -1, &s));
        HL_TRY(hl_set_geometry(p, p->layout, p->input_layout)); /* of the values that it made */
        hl_step_operands(p, s);
        has[with] = hl_step_valid(s) && hl_op_candidates(p->dev, &s->desc, c) > 0;
        p->steps = before;
    }
    *answer = has[0] ? has[1] : -1;
    return HALO_OK;
}

static halo_status fuse_layer(hl_program *p, int layer, int act)
{
    halo_layout layouts[HALO_LAYOUTS], input[HL_INPUT_LAYOUTS];
    int n = hl_program_layouts(p, layouts), answer;
    bool any = false;
    for (int i = 0; i < n; i++) {
        hl_input_layouts(p, layouts[i], input);
        HL_TRY(hl_set_geometry(p, layouts[i], input[0]));
        HL_TRY(ask(p, layer, act, &answer));
        if (answer == 0) return HALO_OK;
        any = any || answer == 1;
    }
    if (any) p->fused[layer] = act;
    return HALO_OK;
}

halo_status hl_fuse(hl_program *p)
{
    for (int i = 0; i < p->net->layers && !p->off.no_fuse; i++) {
        hl_layer_kind kind = hl_layer_of(p, i)->kind;
        if (!p->live[i] || (kind != HL_LAYER_CONV && kind != HL_LAYER_CONV_TRANSPOSE && kind != HL_LAYER_DENSE && kind != HL_LAYER_NORM))
            continue;
        int act = lone_activation(p, i);
        if (act >= 0) HL_TRY(fuse_layer(p, i, act));
    }
    return hl_fuse_pools(p);
}
