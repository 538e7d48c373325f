/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crop.c -- a range of the cells: y[q] = x[q + lo], dx[p] = dy[p - lo] inside the range and 0 outside it.
 *
 * Both are copies between y and a range of cells of x. In block algebra a crop is a window of one cell with the padding -lo: output q needs input
 * q + lo, so the range of a block of y may begin in the margin of its block of x, and in backward what was copied there is sent to the neighbour. Where dx
 * is written rather than added to, all of it is cleared first.
 */
#include "net/compile/compile.h"

/* The part of a value like the layer's input that the layer keeps. */
static hl_use kept(const hl_program *p, int layer, int value)
{
    halo_op_desc desc;
    hl_use u = hl_use_of(value);
    hl_set_window(p, layer, &desc);
    for (int a = 0; a < 3; a++) {
        u.lo[a] = -desc.window.pad_lo[a];
        u.ext[a] = p->value[p->y[layer]].ext[HALO_D + a];
    }
    return u;
}

halo_status hl_forward_crop(hl_program *p, int layer)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = kept(p, layer, hl_input(p, layer, 0));
    s->use[HALO_X].near = hl_window_border(p, layer).any;
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    return HALO_OK;
}

static halo_status clear(hl_program *p, int layer, int value)
{
    hl_step *s;
    HL_TRY(hl_step_new(p, HL_STEP_CLEAR, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_Y] = hl_use_of(value);
    return HALO_OK;
}

halo_status hl_backward_crop(hl_program *p, int layer)
{
    const hl_border grow = hl_window_grow(p, layer);
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_grow_sink(p, layer, &grow, &k));
    if (!k.accumulate) HL_TRY(clear(p, layer, k.value));
    HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(p->g[layer]);
    s->use[HALO_Y] = kept(p, layer, k.value);
    s->desc.accumulate = k.accumulate;
    HL_TRY(hl_fold(p, layer, k.value, &grow));
    return hl_close_sink(p, layer, &k);
}
