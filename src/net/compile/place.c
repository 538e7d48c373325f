/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c -- how wide a margin each activation is stored with, and what the margin holds.
 *
 * A window with kernel k, stride s, dilation l and padding p before reads, of an input of n cells for m
 * outputs, low  = max(0, p)          cells before the first and high = max(0, (m-1) s - p + l (k-1) + 1 - n)
 * after the last. Where the axis is periodic the margin holds the cells of the other side (WRAP), always.
 * Where it is padded with zeros, convolutions read a margin of zeros (ZERO) if the device's kernels like that
 * better than testing bounds. Pools never see zero padding as cells: for them a margin of zeros is as good as
 * none.
 *
 * A value's margin has one content per axis. Where consumers disagree WRAP stays, and the others are told of
 * no margin in that axis, which the contract has them read as zero.
 *
 * The same arithmetic for the gradients: dx[q] sums over the outputs p with p s - pad + k l = q. On a
 * periodic axis whose windows tile it evenly (s divides n, so that m s = n) dy continues periodically, and dx
 * of the box follows from dy with a WRAP margin; else dx is formed on box and margin and its margin is folded
 * back (MARGIN, reverse).
 */
#include "net/compile/compile.h"

#include "tensor/block.h"

enum { FEW_CHANNELS = 8 }; /* less than a block of any layout */

static bool periodic(const hl_layer *l, int axis)
{
    return l->padding[axis] == HALO_PAD_PERIODIC;
}

static const hl_layer *input_of(const hl_program *p, const hl_layer *l)
{
    return hl_layer_of(p, l->input[0]);
}

void hl_window_margin(const hl_program *p, int layer, int64_t out[3][2])
{
    const hl_layer *l = hl_layer_of(p, layer), *x = input_of(p, l);
    for (int a = 0; a < 3; a++) {
        hl_window1 w = {l->window.kernel[a], l->window.stride[a], l->pad[a][0], l->window.dilation[a]};
        hl_range need = hl_window_need((hl_range){0, l->out[1 + a]}, w);
        out[a][0] = hl_max64(0, -need.lo);
        out[a][1] = hl_max64(0, need.hi - x->out[1 + a]);
    }
}

bool hl_wraps_evenly(const hl_program *p, int layer, int axis)
{
    const hl_layer *l = hl_layer_of(p, layer);
    return periodic(l, axis) && l->out[1 + axis] * l->window.stride[axis] == input_of(p, l)->out[1 + axis];
}

bool hl_widen_margin(hl_value *v, const int64_t by[3][2], const halo_margin_mode mode[3])
{
    for (int a = 0; a < 3; a++) {
        bool has = v->margin[a][0] || v->margin[a][1], wants = by[a][0] || by[a][1];
        if (has && wants && v->mode[a] != mode[a]) return false;
    }
    for (int a = 0; a < 3; a++) {
        if (by[a][0] || by[a][1]) v->mode[a] = mode[a];
        for (int side = 0; side < 2; side++) v->margin[a][side] = hl_max64(v->margin[a][side], by[a][side]);
    }
    return true;
}

/* Whether zero padding is written out as a margin. Measured on the cpu backend: it makes convolutions of few channels, whose lines begin and end at
 * odd places, 8 to 15 % faster; from a block of channels on kernels know the edges themselves, and the cells that a margin adds cost 1 to 2 %. */
static bool zero_margins(const hl_program *p, int64_t channels) { return p->dev->wants_margins && channels < FEW_CHANNELS; }

/* The margin that a layer would like to find around its input, one mode at a time. */
static void wanted(const hl_program *p, int layer, halo_margin_mode mode, int64_t out[3][2])
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_window_margin(p, layer, out);
    for (int a = 0; a < 3; a++) {
        bool zero = !periodic(l, a) && l->kind == HL_LAYER_CONV && zero_margins(p, input_of(p, l)->out[0]);
        if (mode == HALO_MARGIN_WRAP ? !periodic(l, a) : !zero) out[a][0] = out[a][1] = 0;
    }
}

/* WRAP first, then ZERO where nothing wraps. */
static void place_mode(hl_program *p, halo_margin_mode mode)
{
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        if (!p->live[i] || (l->kind != HL_LAYER_CONV && l->kind != HL_LAYER_POOL)) continue;
        hl_value *x = &p->value[p->y[l->input[0]]];
        int64_t margin[3][2];
        wanted(p, i, mode, margin);
        for (int a = 0; a < 3; a++)
            if ((x->margin[a][0] || x->margin[a][1]) && x->mode[a] != mode) margin[a][0] = margin[a][1] = 0;
        const halo_margin_mode modes[3] = {mode, mode, mode};
        HL_BUG_UNLESS(hl_widen_margin(x, margin, modes));
    }
}

halo_status hl_pass_place(hl_program *p)
{
    place_mode(p, HALO_MARGIN_WRAP);
    place_mode(p, HALO_MARGIN_ZERO);
    return HALO_OK;
}

hl_use hl_use_window(const hl_program *p, int layer, int value)
{
    const hl_layer *l = hl_layer_of(p, layer);
    const hl_value *v = &p->value[value];
    hl_use u = hl_use_of(value);
    hl_window_margin(p, layer, u.margin);
    for (int a = 0; a < 3; a++) {
        bool truth =
            v->mode[a] == HALO_MARGIN_WRAP ? periodic(l, a) : !periodic(l, a) && l->kind == HL_LAYER_CONV;
        for (int side = 0; side < 2; side++)
            u.margin[a][side] = truth ? hl_min64(u.margin[a][side], v->margin[a][side]) : 0;
    }
    return u;
}

void hl_window_grow(const hl_program *p, int layer, int64_t grow[3][2])
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_window_margin(p, layer, grow);
    for (int a = 0; a < 3; a++)
        if (!periodic(l, a) || (l->kind == HL_LAYER_CONV && hl_wraps_evenly(p, layer, a)))
            grow[a][0] = grow[a][1] = 0;
}

void hl_gradient_margin(const hl_program *p, int layer, int64_t out[3][2], halo_margin_mode mode[3])
{
    const hl_layer *l = hl_layer_of(p, layer);
    int64_t grow[3][2];
    hl_window_grow(p, layer, grow);
    for (int a = 0; a < 3; a++) {
        hl_window1 w = {l->window.kernel[a], l->window.stride[a], l->pad[a][0], l->window.dilation[a]};
        int64_t m = l->out[1 + a], first = -grow[a][0], last = input_of(p, l)->out[1 + a] - 1 + grow[a][1];
        int64_t low = w.l * (w.k - 1) - w.p - first,
                high = last + w.p; /* first p = ceil(-low / s), last p = floor(high / s) */
        mode[a] = hl_wraps_evenly(p, layer, a) ? HALO_MARGIN_WRAP : HALO_MARGIN_ZERO;
        out[a][0] = hl_max64(0, low) / w.s;
        out[a][1] = hl_max64(0, high / w.s - (m - 1));
        if (mode[a] == HALO_MARGIN_ZERO && !zero_margins(p, l->out[0])) out[a][0] = out[a][1] = 0;
    }
}
