/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transposed.c -- transposed convolutions: the convolution from the layer's output y (the larger tensor) to its input x, turned round.
 *
 *     forward           y = act(b + sum_k w[c,f,k] x[p]),  p s - pad + k l = q      CONV_BWD_DATA: its DY is x, its DX is y
 *     backward data     dx[p] = sum_k w[c,f,k] dy[p s - pad + k l]                  CONV_FWD:      its X is dy, its Y is dx
 *     backward weights  dw[c,f,k] = sum_p x[p] dy[p s - pad + k l]                  CONV_BWD_WEIGHTS: its X is dy, its DY is x
 *     bias              db[f] = sum dy                                              BIAS_BWD
 *
 * So the block algebra is that of a convolution with x and y exchanged (tensor/block.h): outputs q of a block need the inputs hl_sweep_reach, cut to
 * x's extent, and both backward passes of the inputs p of a block need hl_sweep_need of dy, cut to y's. What lies beyond a tensor is zero here, never
 * written out: no output waits for a margin of zeros, and on one process no margin is read at all.
 */
#include "net/compile/compile.h"

halo_status hl_transposed_op(hl_program *p, int layer, hl_step **step)
{
    HL_TRY(hl_op_new(p, HALO_OP_CONV_BWD_DATA, HL_PHASE_FORWARD, layer, step));
    (*step)->use[HALO_DY] = hl_use_window(p, layer, hl_input(p, layer, 0));
    hl_set_window(p, layer, &(*step)->desc);
    return HALO_OK;
}

/* dy with the cells of neighbouring blocks that the layer's windows reach into. */
static hl_use use_gradient(const hl_program *p, int layer, int dy)
{
    const hl_border b = hl_gradient_margin(p, layer);
    return hl_use_bordered(dy, &b);
}

/* The op's weight gradients alone: its DY is the layer's input, of which no bias has a gradient. */
static halo_status weights(hl_program *p, int layer, int dy)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_CONV_BWD_WEIGHTS, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = use_gradient(p, layer, dy);
    s->use[HALO_DY] = hl_use_of(hl_input(p, layer, 0));
    hl_set_window(p, layer, &s->desc);
    HL_TRY(hl_use_gradients(p, s));
    s->use[HALO_DB].value = -1;
    return HALO_OK;
}

static halo_status bias(hl_program *p, int layer, int dy)
{
    hl_step *s;
    if (!hl_layer_of(p, layer)->bias) return HALO_OK;
    HL_TRY(hl_op_new(p, HALO_OP_BIAS_BWD, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_DY] = hl_use_of(dy);
    HL_TRY(hl_use_gradients(p, s));
    s->use[HALO_DW].value = -1;
    return HALO_OK;
}

static halo_status data(hl_program *p, int layer, int dy)
{
    hl_step *s;
    hl_sink k;
    HL_TRY(hl_open_sink(p, layer, false, &k));
    HL_TRY(hl_op_new(p, HALO_OP_CONV_FWD, HL_PHASE_BACKWARD, layer, &s));
    s->use[HALO_X] = use_gradient(p, layer, dy);
    s->use[HALO_Y] = hl_use_of(k.value);
    hl_set_window(p, layer, &s->desc);
    HL_TRY(hl_use_weights(p, s));
    return hl_close_sink(p, layer, &k);
}

halo_status hl_backward_transposed(hl_program *p, int layer)
{
    int dy;
    HL_TRY(hl_through_act(p, layer, &dy));
    const hl_border b = hl_gradient_margin(p, layer);
    HL_BUG_UNLESS(hl_widen_margin(&p->value[dy], &b)); /* of cut axes alone, where all margins are the same */
    HL_TRY(hl_forms_gradients(p, layer) ? weights(p, layer, dy) : hl_no_gradients(p, layer));
    if (hl_forms_gradients(p, layer)) HL_TRY(bias(p, layer, dy));
    return hl_wanted(p, layer, 0) ? data(p, layer, dy) : HALO_OK;
}
