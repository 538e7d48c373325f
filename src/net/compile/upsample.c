/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsample.c -- linear enlargement: one op forward, its adjoint backward.
 *
 * In block algebra it is the transposed convolution with a kernel of 4, stride 2 and padding 1 (tensor/upsample.h): outputs of a block take the cells of x that this one's windows reach, inputs of a
 * block take the dy that they need. What lies beyond the volume is the last cell, not zero, so the op is told where the volume ends.
 */
#include "net/compile/compile.h"

/* Where the layer's input, or the gradient of that, lies in the volume. */
static void set_volume(const hl_program *p, int layer, halo_op_desc *desc)
{
    const hl_value *x = &p->value[hl_input(p, layer, 0)];
    hl_set_window(p, layer, desc);
    memcpy(desc->global_lo + HALO_D, x->lo, sizeof(x->lo));
    memcpy(desc->global_ext + HALO_D, x->whole, sizeof(x->whole));
}

halo_status hl_forward_upsample(hl_program *p, int layer)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_UPSAMPLE_FWD, HL_PHASE_FORWARD, layer, &s));
    s->use[HALO_X] = hl_use_window(p, layer, hl_input(p, layer, 0));
    s->use[HALO_Y] = hl_use_of(p->y[layer]);
    set_volume(p, layer, &s->desc);
    return HALO_OK;
}

halo_status hl_backward_upsample(hl_program *p, int layer)
{
    const hl_border b = hl_gradient_margin(p, layer);
    hl_step *s;
    hl_sink k;
    if (!hl_wanted(p, layer, 0)) return HALO_OK;
    HL_BUG_UNLESS(hl_widen_margin(&p->value[p->g[layer]], &b)); /* of cut axes alone, where all margins are the same */
    HL_TRY(hl_open_sink(p, layer, true, &k));
    HL_TRY(hl_op_new(p, HALO_OP_UPSAMPLE_BWD, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_DY] = hl_use_bordered(p->g[layer], &b);
    s->use[HALO_DX] = hl_use_of(k.value);
    s->desc.accumulate = k.accumulate;
    set_volume(p, layer, &s->desc);
    return hl_close_sink(p, layer, &k);
}
