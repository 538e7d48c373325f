/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c -- max and average pooling and their gradients. The window of output p has the cells q = p s - pad + k l; "inside" are those in x's box
 * and margin.
 *
 *   max: y = x[q*], q* the first largest inside, AUX = k*;         dx[q] = sum over p with p s - pad + k*(p) l = q of dy[p]
 *   avg: y = sum_{q inside} x[q] / m;                              dx[q] = sum over p, k with p s - pad + k l = q of dy[p] / m(p)
 *   m = cells of the window with count_pad, else cells inside. Nothing inside: y = 0.
 */
#include "ref.h"

/* The cells of x (or dx) that exist, as a dense region. */
typedef struct region { int64_t lo[3], ext[3]; } region;

static region with_margin(const halo_operand *op)
{
    region r;
    for (int k = 0; k < 3; k++) {
        r.lo[k] = -op->margin[k][0];
        r.ext[k] = op->ext[HALO_D + k] + op->margin[k][0] + op->margin[k][1];
    }
    return r;
}

static int64_t volume(const int64_t e[3]) { return e[0] * e[1] * e[2]; }

/* Where tap k along axis j of output p lies in the region, or -1 when it is not there. */
static int64_t axis_cell(const halo_window *w, const region *r, int j, int64_t p, int64_t k)
{
    int64_t q = p * w->stride[j] - w->pad_lo[j] + k * w->dilation[j] - r->lo[j];
    return q < r->ext[j] ? q : -1; /* below 0: not there, either */
}

/* Index in the region of tap t of output p, or -1. */
static int64_t tap_cell(const halo_window *w, const region *r, const int64_t p[3], int64_t t)
{
    int64_t k[3] = {t / w->kernel[2] / w->kernel[1], t / w->kernel[2] % w->kernel[1], t % w->kernel[2]}, index = 0;
    for (int j = 0; j < 3; j++) {
        int64_t q = axis_cell(w, r, j, p[j], k[j]);
        if (q < 0) return -1;
        index = index * r->ext[j] + q;
    }
    return index;
}

/* What to divide an average by; 0 when the window has no cell inside. */
static double divisor(const halo_op_desc *d, const region *r, const int64_t p[3])
{
    int64_t inside = 1;
    for (int j = 0; j < 3; j++) {
        int64_t along = 0;
        for (int64_t k = 0; k < d->window.kernel[j]; k++) along += axis_cell(&d->window, r, j, p[j], k) >= 0;
        inside *= along;
    }
    return (double)(inside > 0 && d->count_pad ? volume(d->window.kernel) : inside);
}

static bool fits(const halo_op_desc *d, const halo_operand *x, const halo_operand *y)
{
    for (int k = 0; k < 3; k++)
        if (d->window.kernel[k] < 1 || d->window.stride[k] < 1 || d->window.dilation[k] < 1) return false;
    return x->ext[HALO_N] == y->ext[HALO_N] && x->ext[HALO_C] == y->ext[HALO_C] && hl_ref_like(&d->t[HALO_AUX], y);
}

static int64_t next_point(const region *r, int64_t p[3])
{
    for (int j = 2; j >= 0; j--) {
        if (++p[j] < r->lo[j] + r->ext[j]) return 1;
        p[j] = r->lo[j];
    }
    return 0;
}

/* What was seen of a window so far, in the order of its taps. */
typedef struct seen {
    double best, sum;
    int64_t arg; /* -1: nothing */
} seen;

/* The taps of one row: x at their cells of the row, first the number of the first. */
static void see_row(const halo_window *w, const region *r, int64_t p, int64_t first, const double *x, seen *s)
{
    for (int64_t k = 0; k < w->kernel[2]; k++) {
        int64_t q = axis_cell(w, r, 2, p, k);
        if (q < 0) continue;
        s->sum += x[q];
        if (s->arg >= 0 && !(x[q] > s->best)) continue;
        s->best = x[q];
        s->arg = first + k;
    }
}

static double pool_point(const halo_op_desc *d, const region *r, const int64_t p[3], const double *x, double *arg)
{
    const halo_window *w = &d->window;
    seen s = {.arg = -1};
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            int64_t qd = axis_cell(w, r, 0, p[0], i), qh = axis_cell(w, r, 1, p[1], j);
            if (qd >= 0 && qh >= 0) see_row(w, r, p[2], (i * w->kernel[1] + j) * w->kernel[2], x + (qd * r->ext[1] + qh) * r->ext[2], &s);
        }
    *arg = (double)hl_max64(s.arg, 0);
    if (d->pool == HALO_POOL_MAX) return s.best;
    double m = divisor(d, r, p);
    return m > 0 ? s.sum / m : 0;
}

/* Bits of an average's cells p stride + k. */
static double signs_at(const halo_op_desc *d, const region *r, const int64_t p[3], const double *x)
{
    const int64_t *s = d->window.stride, *ext = d->t[HALO_X].ext + HALO_D;
    int64_t bits = 0;
    for (int64_t k = 0; k < s[0] * s[1] * s[2] && k < 8; k++) {
        const int64_t q[3] = {p[0] * s[0] + k / s[2] / s[1], p[1] * s[1] + k / s[2] % s[1], p[2] * s[2] + k % s[2]};
        if (q[0] >= ext[0] || q[1] >= ext[1] || q[2] >= ext[2]) continue;
        if (x[((q[0] - r->lo[0]) * r->ext[1] + q[1] - r->lo[1]) * r->ext[2] + q[2] - r->lo[2]] > 0) bits |= 1 << k;
    }
    return (double)bits;
}

static bool bits_fit(const halo_op_desc *d)
{
    const int64_t *s = d->window.stride;
    return d->t[HALO_AUX].dtype == HALO_U8 && s[0] <= 8 && s[1] <= 8 && s[2] <= 8 && volume(s) <= 8;
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_Y) || !fits(d, &d->t[HALO_X], &d->t[HALO_Y])) return 0;
    if (d->pool == HALO_POOL_AVG && d->t[HALO_AUX].dtype != HALO_NONE && !bits_fit(d)) return 0;
    region r = with_margin(&d->t[HALO_X]);
    int64_t c = d->t[HALO_X].ext[HALO_C];
    return hl_ref_offer(hl_ref_room(c, volume(r.ext), hl_ref_room(2 * c, volume(d->t[HALO_Y].ext + HALO_D), 0)), out);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y),
             aux = hl_ref_operand(plan, args, HALO_AUX);
    region r = with_margin(x.op), out = {.ext = {y.op->ext[HALO_D], y.op->ext[HALO_H], y.op->ext[HALO_W]}};
    int64_t cells = volume(r.ext), points = hl_ref_sample_size(y.op), at;
    double *xs = args->scratch, *ys = xs + x.op->ext[HALO_C] * cells, *argmax = ys + points;
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        hl_ref_unpack(&x, n, r.lo, r.ext, xs);
        for (at = 0; at < points;) {
            int64_t p[3] = {0, 0, 0}, c = at / volume(out.ext);
            do {
                ys[at] = pool_point(&plan->d, &r, p, xs + c * cells, &argmax[at]);
                if (plan->d.pool == HALO_POOL_AVG && aux.op) argmax[at] = signs_at(&plan->d, &r, p, xs + c * cells);
                at++;
            } while (next_point(&out, p));
        }
        hl_ref_pack_box(&y, n, ys);
        if (aux.op) hl_ref_pack_box(&aux, n, argmax);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_pool_fwd, HALO_OP_POOL_FWD, forward_candidates, forward_run);

/* arg: the winner's tap, of max. */
static void scatter_point(const halo_op_desc *d, const region *r, const int64_t p[3], double dy, double arg, double *dx)
{
    bool max = d->pool == HALO_POOL_MAX;
    int64_t taps = volume(d->window.kernel), q, first = max ? (int64_t)arg : 0, end = max ? hl_min64(first + 1, taps) : taps;
    double m = max ? 1 : divisor(d, r, p);
    for (int64_t t = hl_max64(first, 0); t < end; t++)
        if ((q = tap_cell(&d->window, r, p, t)) >= 0) dx[q] += dy / m;
}

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_DY, HALO_DX) || !fits(d, &d->t[HALO_DX], &d->t[HALO_DY])) return 0;
    if (d->pool == HALO_POOL_MAX && d->t[HALO_AUX].dtype == HALO_NONE) return 0;
    region r = with_margin(&d->t[HALO_DX]);
    const int64_t *dx = d->t[HALO_DX].ext;
    int64_t box = hl_ref_room(dx[HALO_C], volume(dx + HALO_D), 0), points = hl_ref_room(dx[HALO_C], volume(d->t[HALO_DY].ext + HALO_D), 0);
    return hl_ref_offer(hl_ref_room(1, volume(r.ext), hl_ref_room(2, points, box)), out);
}

/* The gradient of a channel is collected in box and margin (what an average is divided by depends on both); its box is what counts. */
static void take_box(const region *r, const int64_t box[3], const double *from, double *dx)
{
    for (int64_t d = 0; d < box[0]; d++)
        for (int64_t h = 0; h < box[1]; h++, dx += box[2]) {
            const double *row = from + ((d - r->lo[0]) * r->ext[1] + h - r->lo[1]) * r->ext[2] - r->lo[2];
            for (int64_t w = 0; w < box[2]; w++) dx[w] += row[w];
        }
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX), dy = hl_ref_operand(plan, args, HALO_DY),
             aux = hl_ref_operand(plan, args, HALO_AUX);
    region r = with_margin(dx.op), out = {.ext = {dy.op->ext[HALO_D], dy.op->ext[HALO_H], dy.op->ext[HALO_W]}};
    const int64_t *box = dx.op->ext + HALO_D;
    int64_t cells = volume(r.ext), points = hl_ref_sample_size(dy.op), at;
    bool max = plan->d.pool == HALO_POOL_MAX;
    double *one = args->scratch, *dys = one + cells, *argmax = dys + points, *xs = argmax + points;
    for (int64_t n = 0; n < dx.op->ext[HALO_N]; n++) {
        hl_ref_unpack_box(&dy, n, dys);
        if (max) hl_ref_unpack_box(&aux, n, argmax);
        if (plan->d.accumulate) hl_ref_unpack_box(&dx, n, xs);
        else memset(xs, 0, (size_t)hl_ref_sample_size(dx.op) * sizeof(*xs));
        for (at = 0; at < points;) {
            int64_t p[3] = {0, 0, 0}, c = at / volume(out.ext);
            memset(one, 0, (size_t)cells * sizeof(*one));
            do {
                scatter_point(&plan->d, &r, p, dys[at], max ? argmax[at] : 0, one);
                at++;
            } while (next_point(&out, p));
            take_box(&r, box, one, xs + c * volume(box));
        }
        hl_ref_pack_box(&dx, n, xs);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_pool_bwd, HALO_OP_POOL_BWD, backward_candidates, backward_run);

/* ---------------------------------------------------------------------------------- with the activation in front of it */

static bool side_by_side(const halo_window *w)
{
    for (int k = 0; k < 3; k++)
        if (w->kernel[k] < 1 || w->stride[k] != w->kernel[k] || w->dilation[k] != 1) return false;
    return true;
}

static bool two_valued(halo_act act) { return act == HALO_ACT_RELU || act == HALO_ACT_LEAKY_RELU; }

/* An average over windows that overlap or have padding. */
static bool signed_average(const halo_op_desc *d)
{
    const halo_window *w = &d->window;
    for (int k = 0; k < 3; k++)
        if (w->dilation[k] != 1 || w->kernel[k] - w->pad_lo[k] > w->stride[k]) return false;
    return d->pool == HALO_POOL_AVG && two_valued(d->act) && bits_fit(d);
}

static int act_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    bool max = d->pool == HALO_POOL_MAX, constant = d->act == HALO_ACT_NONE || d->act == HALO_ACT_SCALE;
    if (!REF_HAVE(d, HALO_DY, HALO_DX) || !fits(d, &d->t[HALO_DX], &d->t[HALO_DY]) || d->accumulate) return 0;
    if (!side_by_side(&d->window)) return signed_average(d) ? hl_ref_offer(0, out) : 0;
    if (!hl_ref_like(&d->t[HALO_Y], &d->t[HALO_DY]) || (!max && !constant && !two_valued(d->act))) return 0;
    bool aux = d->t[HALO_AUX].dtype == HALO_U8, y = d->t[HALO_Y].dtype != HALO_NONE;
    if (!aux && (max || !constant)) return 0;
    if (max && !constant && !y) return 0;
    return volume(d->window.kernel) <= (max ? 256 : constant ? INT32_MAX : 8) ? hl_ref_offer(0, out) : 0;
}

/* Of the cell that is tap t of a window with this output and this saved. */
static double act_share(const halo_op_desc *d, double y, int64_t saved, int64_t t)
{
    if (d->pool == HALO_POOL_MAX) return t == saved ? hl_ref_derivative(d->act, d->slope, y) : 0;
    return hl_ref_derivative(d->act, d->slope, t < 8 && saved >> t & 1 ? 1 : -1) / (double)volume(d->window.kernel);
}

/* All windows that have cell q, and its bit, which is with window q / stride. */
static double overlap_gradient(const halo_op_desc *d, const hl_ref_view v[3], int64_t n, int64_t c, const int64_t q[3])
{
    const halo_window *w = &d->window;
    const region box = with_margin(&d->t[HALO_DX]);
    double sum = 0;
    int64_t own[3], tap = 0, p[3], y[3];
    for (int k = 0; k < 3; k++) {
        y[k] = v[0].op->ext[HALO_D + k];
        own[k] = hl_min64(q[k] / w->stride[k], y[k] - 1);
        tap = tap * w->stride[k] + q[k] % w->stride[k];
    }
    for (p[0] = 0; p[0] < y[0]; p[0]++)
        for (p[1] = 0; p[1] < y[1]; p[1]++)
            for (p[2] = 0; p[2] < y[2]; p[2]++) {
                bool has = true;
                for (int k = 0; k < 3; k++) {
                    int64_t at = q[k] + w->pad_lo[k] - p[k] * w->stride[k];
                    has = has && at >= 0 && at < w->kernel[k];
                }
                if (has) sum += hl_ref_get(&v[0], n, c, p[0], p[1], p[2]) / divisor(d, &box, p);
            }
    int64_t bits = (int64_t)hl_ref_get(&v[2], n, c, own[0], own[1], own[2]);
    return sum * hl_ref_derivative(d->act, d->slope, bits >> tap & 1 ? 1 : -1);
}

static double act_gradient(const halo_op_desc *d, const hl_ref_view v[3], int64_t n, int64_t c, const int64_t q[3])
{
    int64_t p[3], tap = 0;
    for (int k = 0; k < 3; k++) {
        int64_t at = q[k] + d->window.pad_lo[k], side = d->window.kernel[k];
        if (at < 0 || at / side >= v[0].op->ext[HALO_D + k]) return 0;
        p[k] = at / side;
        tap = tap * side + at % side;
    }
    double y = v[1].op ? hl_ref_get(&v[1], n, c, p[0], p[1], p[2]) : 0;
    int64_t saved = v[2].op ? (int64_t)hl_ref_get(&v[2], n, c, p[0], p[1], p[2]) : 0;
    return hl_ref_get(&v[0], n, c, p[0], p[1], p[2]) * act_share(d, y, saved, tap);
}

static halo_status act_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view v[3] = {hl_ref_operand(plan, args, HALO_DY), hl_ref_operand(plan, args, HALO_Y), hl_ref_operand(plan, args, HALO_AUX)};
    const int64_t *e = dx.op->ext;
    const bool apart = side_by_side(&plan->d.window);
    for (int64_t n = 0; n < e[HALO_N]; n++)
        for (int64_t c = 0; c < e[HALO_C]; c++)
            for (int64_t i = 0; i < volume(e + HALO_D); i++) {
                const int64_t q[3] = {i / e[HALO_W] / e[HALO_H], i / e[HALO_W] % e[HALO_H], i % e[HALO_W]};
                double g = (apart ? act_gradient : overlap_gradient)(&plan->d, v, n, c, q);
                hl_ref_set(&dx, n, c, q[0], q[1], q[2], g);
            }
    return HALO_OK;
}

REF_CLASS(hl_ref_act_pool_bwd, HALO_OP_ACT_POOL_BWD, act_candidates, act_run);
