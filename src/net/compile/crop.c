/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crop.c -- a range of the cells: y[q] = x[q + lo], dx[p] = dy[p - lo] inside the range and 0 outside it.
 *
 * Both are copies between y and a range of cells of x. Where dx is written rather than added to, the cells outside are cleared first: seen from
 * the range they are a margin of zeros, as wide as what is cut off, which is what MARGIN writes. In block algebra a crop is a window of one cell with the
 * padding -lo: output q needs input q + lo, so a block of the output wants no margin, only that its input's block is where it is.
 */
#include "net/compile/compile.h"

/* The part of a value like the layer's input that the layer keeps. */
static hl_use kept(const hl_program *p, int layer, int value)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_use u = hl_use_of(value);
    for (int a = 0; a < 3; a++) {
        u.lo[a] = l->crop[a][0];
        u.ext[a] = l->out[1 + a];
    }
    return u;
}

halo_status hl_forward_crop(hl_program *p, int layer)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = kept(p, layer, p->y[hl_layer_of(p, layer)->input[0]]);
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    return HALO_OK;
}

static halo_status clear_outside(hl_program *p, int layer, int value)
{
    static const int64_t nothing[3][2];
    const hl_layer *l = hl_layer_of(p, layer);
    hl_step *s;
    if (memcmp(l->crop, nothing, sizeof(nothing)) == 0) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_MARGIN, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_Y] = kept(p, layer, value);
    memcpy(s->use[HALO_Y].margin, l->crop, sizeof(l->crop));
    for (int i = 0; i < 6; i++) s->desc.margin_mode[i / 2][i % 2] = HALO_MARGIN_ZERO;
    return HALO_OK;
}

halo_status hl_backward_crop(hl_program *p, int layer)
{
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    HL_TRY(hl_open_sink(p, layer, true, &k));
    if (!k.accumulate) HL_TRY(clear_outside(p, layer, k.value));
    HL_TRY(hl_op_new(p, HALO_OP_COPY, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = hl_use_of(p->g[layer]);
    s->use[HALO_Y] = kept(p, layer, k.value);
    s->desc.accumulate = k.accumulate;
    return hl_close_sink(p, layer, &k);
}
