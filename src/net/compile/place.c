/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c -- how wide a margin each activation is stored with, and what the margin holds.
 *
 * A window with kernel k, stride s, dilation l and padding p before reads, of an input of n cells for m
 * outputs, low  = max(0, p)          cells before the first and high = max(0, (m-1) s - p + l (k-1) + 1 - n)
 * after the last; on a block of either the block algebra says how many (hl_sweep_need). Where the axis is cut the
 * margin holds what the neighbouring processes sent (KEEP), and there is none at the border of an axis that is not
 * periodic. Else, where the axis is periodic the margin holds the cells of the other side (WRAP), always.
 * Where it is padded with zeros, convolutions read a margin of zeros (ZERO) if the device's kernels like that
 * better than testing bounds. Pools never see zero padding as cells: for them a margin of zeros is as good as
 * none.
 *
 * A value's margin has one content per axis. Where consumers disagree WRAP stays, and the others are told of
 * no margin in that axis, which the contract has them read as zero. On a cut axis there is nothing to disagree about.
 *
 * The same arithmetic for the gradients: dx[q] sums over the outputs p with p s - pad + k l = q. On a cut axis dy has
 * a margin of its neighbours' values for convolutions; pools form dx on box and margin, and the margin is sent back
 * and added. On a periodic axis that is not cut and whose windows tile it evenly (s divides n, so that m s = n) dy
 * continues periodically, and dx of the box follows from dy with a WRAP margin; else dx is formed on box and margin
 * and its margin is folded back (MARGIN, reverse; between processes a transfer).
 */
#include "net/compile/compile.h"

#include "tensor/block.h"

enum { FEW_CHANNELS = 8 }; /* less than a block of any layout */

bool hl_is_transposed(const hl_layer *l)
{
    return l->kind == HL_LAYER_CONV_TRANSPOSE || l->kind == HL_LAYER_UPSAMPLE;
}

bool hl_has_window(const hl_layer *l)
{
    return l->kind == HL_LAYER_CONV || hl_is_transposed(l) || l->kind == HL_LAYER_POOL || l->kind == HL_LAYER_CROP;
}

static bool periodic(const hl_layer *l, int axis)
{
    return l->padding[axis] == HALO_PAD_PERIODIC;
}

static const hl_layer *input_of(const hl_program *p, const hl_layer *l)
{
    return hl_layer_of(p, l->input[0]);
}

hl_sweep hl_layer_sweep(const hl_program *p, int layer, int axis, int64_t parts, int64_t index)
{
    const hl_layer *l = hl_layer_of(p, layer), *x = input_of(p, l);
    const hl_layer *of_long = hl_is_transposed(l) ? l : x, *of_short = hl_is_transposed(l) ? x : l;
    hl_window1 w = {l->window.kernel[axis], l->window.stride[axis], l->pad[axis][0], l->window.dilation[axis]};
    if (l->kind == HL_LAYER_CROP) w = (hl_window1){1, 1, -l->crop[axis][0], 1};
    return hl_sweep_of(w, of_long->out[1 + axis], of_short->out[1 + axis], periodic(l, axis), parts, index);
}

/* Whether the layer works on blocks that are cut along this axis. */
static bool cut(const hl_program *p, int layer, int axis)
{
    return p->split[layer] && p->grid.part[axis] > 1;
}

/* Of this process, or one that is `step` places further along the axis. */
static hl_sweep sweep_of(const hl_program *p, int layer, int axis, int64_t step)
{
    int64_t parts = cut(p, layer, axis) ? p->grid.part[axis] : 1;
    return hl_layer_sweep(p, layer, axis, parts, parts > 1 ? (p->grid.at[axis] + step + parts) % parts : 0);
}

typedef void (*sweep_margin)(const hl_sweep *s, int64_t margin[2]);

/* What this process has as margin along a cut axis, and what its neighbours get from it; true if any process of the grid has such a margin. */
static bool cut_margin(const hl_program *p, int layer, int axis, sweep_margin of, hl_border *b)
{
    int64_t parts = p->grid.part[axis], at = p->grid.at[axis], m[2];
    bool any = false, wraps = false;
    for (int64_t i = 0; i < parts; i++) {
        hl_sweep s = hl_layer_sweep(p, layer, axis, parts, i);
        of(&s, m);
        any = any || m[0] || m[1];
        wraps = s.wraps;
        if (i == at) memcpy(b->margin[axis], m, sizeof(m));
        if (i == (at + parts - 1) % parts && (at > 0 || wraps)) b->near[axis][0] = m[1];
        if (i == (at + 1) % parts && (at + 1 < parts || wraps)) b->near[axis][1] = m[0];
    }
    return any;
}

/* Cells beyond the box that the outputs read, those of zero padding counted; of axes that are not cut. */
static void whole_margin(const hl_program *p, int layer, int axis, int64_t margin[2])
{
    hl_sweep s = sweep_of(p, layer, axis, 0);
    hl_range need = hl_window_need(s.y, s.w);
    margin[0] = hl_max64(0, s.x.lo - need.lo);
    margin[1] = hl_max64(0, need.hi - s.x.hi);
}

hl_border hl_window_border(const hl_program *p, int layer)
{
    const bool transposed = hl_is_transposed(hl_layer_of(p, layer));
    hl_border b = {.mode = {0}};
    for (int a = 0; a < 3; a++) {
        if (cut(p, layer, a)) {
            b.mode[a] = HALO_MARGIN_KEEP;
            b.any = cut_margin(p, layer, a, transposed ? hl_sweep_reach : hl_sweep_need, &b) || b.any;
        } else if (!transposed) {
            b.mode[a] = periodic(hl_layer_of(p, layer), a) ? HALO_MARGIN_WRAP : HALO_MARGIN_ZERO;
            whole_margin(p, layer, a, b.margin[a]);
        }
    }
    return b;
}

bool hl_widen_margin(hl_value *v, const hl_border *b)
{
    for (int a = 0; a < 3; a++) {
        bool has = v->margin[a][0] || v->margin[a][1], wants = b->margin[a][0] || b->margin[a][1];
        if (has && wants && v->mode[a] != b->mode[a]) return false;
    }
    v->near_any = v->near_any || b->any;
    for (int a = 0; a < 3; a++) {
        bool wants = b->margin[a][0] || b->margin[a][1];
        if (wants || b->mode[a] == HALO_MARGIN_KEEP) v->mode[a] = b->mode[a];
        for (int side = 0; side < 2; side++) {
            v->margin[a][side] = hl_max64(v->margin[a][side], b->margin[a][side]);
            v->near[a][side] = hl_max64(v->near[a][side], b->near[a][side]);
        }
    }
    return true;
}

hl_border hl_border_of(const hl_value *v)
{
    hl_border b = {.any = v->near_any};
    memcpy(b.margin, v->margin, sizeof(b.margin));
    memcpy(b.near, v->near, sizeof(b.near));
    memcpy(b.mode, v->mode, sizeof(b.mode));
    return b;
}

/* Whether zero padding is written out as a margin. Measured on the cpu backend: it makes convolutions of few channels, whose lines begin and end at
 * odd places, 8 to 15 % faster; from a block of channels on kernels know the edges themselves, and the cells that a margin adds cost 1 to 2 %. */
static bool zero_margins(const hl_program *p, int64_t channels) { return p->dev->wants_margins && channels < FEW_CHANNELS; }

static void no_margin(hl_border *b, int axis)
{
    memset(b->margin[axis], 0, sizeof(b->margin[axis]));
    memset(b->near[axis], 0, sizeof(b->near[axis]));
}

/* The margin that a layer would like to find around its input: cells that exist (KEEP and WRAP), or zeros. */
static hl_border wanted(const hl_program *p, int layer, bool zeros)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_border b = hl_window_border(p, layer);
    for (int a = 0; a < 3; a++) {
        bool zero = b.mode[a] == HALO_MARGIN_ZERO;
        if (zero != zeros || (zero && (l->kind != HL_LAYER_CONV || !zero_margins(p, input_of(p, l)->out[0])))) no_margin(&b, a);
    }
    return b;
}

/* What exists first, then zeros where nothing wraps. */
static void place(hl_program *p, bool zeros)
{
    for (int i = 0; i < p->net->layers; i++) {
        if (!p->live[i] || !hl_has_window(hl_layer_of(p, i))) continue;
        hl_value *x = &p->value[hl_input(p, i, 0)];
        hl_border b = wanted(p, i, zeros);
        for (int a = 0; a < 3; a++)
            if ((x->margin[a][0] || x->margin[a][1]) && x->mode[a] != b.mode[a]) no_margin(&b, a);
        HL_BUG_UNLESS(hl_widen_margin(x, &b));
    }
}

halo_status hl_pass_place(hl_program *p)
{
    HL_TRY(hl_distribute(p));
    place(p, false);
    place(p, true);
    return HALO_OK;
}

hl_use hl_use_bordered(int value, const hl_border *b)
{
    hl_use u = hl_use_of(value);
    memcpy(u.margin, b->margin, sizeof(u.margin));
    u.near = b->any;
    return u;
}

hl_use hl_use_window(const hl_program *p, int layer, int value)
{
    const hl_layer *l = hl_layer_of(p, layer);
    const hl_value *v = &p->value[value];
    const hl_border b = hl_window_border(p, layer);
    hl_use u = hl_use_of(value);
    u.near = b.any;
    for (int a = 0; a < 3; a++) {
        bool truth = v->mode[a] == b.mode[a] && (b.mode[a] != HALO_MARGIN_ZERO || l->kind == HL_LAYER_CONV);
        for (int side = 0; side < 2; side++) u.margin[a][side] = truth ? hl_min64(b.margin[a][side], v->margin[a][side]) : 0;
    }
    return u;
}

/* Whether the gradient along an axis is formed on box and margin. */
static bool grows(const hl_program *p, int layer, int axis)
{
    const hl_layer *l = hl_layer_of(p, layer);
    hl_sweep s = sweep_of(p, layer, axis, 0);
    if (hl_is_transposed(l)) return false;
    if (l->kind == HL_LAYER_CONV) return s.wraps && !hl_sweep_even(&s);
    return s.wraps || cut(p, layer, axis);
}

hl_border hl_window_grow(const hl_program *p, int layer)
{
    hl_border b = hl_window_border(p, layer);
    b.any = false;
    for (int a = 0; a < 3; a++) {
        hl_border ignored = {.any = false};
        if (!grows(p, layer, a))
            no_margin(&b, a);
        else if (cut(p, layer, a))
            b.any = cut_margin(p, layer, a, hl_sweep_need, &ignored) || b.any;
    }
    return b;
}

/* Of an axis that is not cut: as reach, but for a dx that is formed on `grow` cells more, and with the cells of zero padding where they are written out. */
static void whole_reach(const hl_program *p, int layer, int axis, const int64_t grow[2], hl_border *out)
{
    hl_sweep s = sweep_of(p, layer, axis, 0);
    const hl_window1 w = s.w;
    int64_t low = w.l * (w.k - 1) - w.p + grow[0], high = s.n - 1 + grow[1] + w.p; /* first p = ceil(-low / s), last p = floor(high / s) */
    bool wrap = hl_sweep_even(&s);
    out->mode[axis] = wrap ? HALO_MARGIN_WRAP : HALO_MARGIN_ZERO;
    if (!wrap && !zero_margins(p, hl_layer_of(p, layer)->out[0])) return;
    out->margin[axis][0] = hl_max64(0, low) / w.s;
    out->margin[axis][1] = hl_max64(0, high / w.s - (s.m - 1));
}

hl_border hl_gradient_margin(const hl_program *p, int layer)
{
    const bool transposed = hl_is_transposed(hl_layer_of(p, layer));
    const hl_border grow = hl_window_grow(p, layer);
    hl_border b = {.mode = {0}};
    for (int a = 0; a < 3; a++) {
        if (!cut(p, layer, a)) {
            if (!transposed) whole_reach(p, layer, a, grow.margin[a], &b);
            continue;
        }
        b.mode[a] = HALO_MARGIN_KEEP;
        if (!grows(p, layer, a)) b.any = cut_margin(p, layer, a, transposed ? hl_sweep_need : hl_sweep_reach, &b) || b.any;
    }
    return b;
}

void hl_set_window(const hl_program *p, int layer, halo_op_desc *desc)
{
    const hl_layer *l = hl_layer_of(p, layer);
    desc->window = l->window;
    for (int a = 0; a < 3; a++) {
        hl_sweep s = sweep_of(p, layer, a, 0);
        desc->window.pad_lo[a] = hl_sweep_pad(&s);
    }
    desc->pool = l->pool;
    desc->count_pad = l->count_pad;
}
