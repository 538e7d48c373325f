/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c -- max and average pooling and their gradients on any boxes of one layout. The window of output p has the cells q = p s - pad + k l;
 * "inside" are those in x's box and margin.
 *
 *   max: y = x[q*], q* the first largest inside, AUX = k*;   dx[q] (+)= sum over p with q*(p) = q of dy[p]
 *   avg: y = sum_{q inside} x[q] / m;                        dx[q] (+)= sum over p, k with p s - pad + k l = q of dy[p] / m(p)
 *
 * Forward, work is dealt by rows (n, channel block, d, h) of y. A row's windows share their taps in d and h; along w all windows between `full` have
 * all taps, the few at the ends have a shorter list. Backward, it is dealt by rows of dx, each collecting from the rows of dy whose windows reach it:
 * nothing is written by two threads, and sums have one order. The rows of dy and AUX that neighbouring dx rows share are in cache by then.
 *
 * An average in front of which stands an activation of two values: forward, AUX gets a bit for each of the stride cells that belong to an output, from
 * rows that are in cache; backward (the averages of HALO_OP_ACT_POOL_BWD that act_pool.c does not take), the rows of dy that reach a row of dx are added
 * up first, and then the few windows that have a cell: no cell of dx is read.
 */
#include "classes.h"
#include "kern/kern.h"

typedef struct pool_plan {
    hl_cpu_plan super;
    const halo_operand *x, *y; /* the wide and the pooled side: X Y, or DX DY */
    halo_role xr, yr;
    hl_strides xt, yt, at;
    int64_t x_first, y_first, a_first;
    int64_t blocks, lanes, last_lanes;
    int64_t taps;        /* of a whole window */
    hl_range full;       /* outputs along w with all taps inside (forward) or in the box (backward) */
    hl_range outputs[3]; /* those of y's box; backward, that reach into dx's */
    int64_t *offset;     /* [parts][taps] */
    int32_t *index;      /* [parts][taps], and after that [parts][outputs along w][lanes] */
    int32_t *which;
    float *sums; /* [parts][sum_floats]: averages with an activation */
    int64_t sum_floats;
} pool_plan;

typedef struct pool_run {
    const pool_plan *p;
    float *x, *y;
    void *aux;
    int64_t rows, parts;
} pool_run;

/* ------------------------------------------------------------------------------------------------------------ windows */

static int64_t cell_of(const pool_plan *p, int k, int64_t out, int64_t tap)
{
    const halo_window *w = &p->super.d.window;
    return out * w->stride[k] - w->pad_lo[k] + tap * w->dilation[k];
}

static bool inside(const pool_plan *p, int k, int64_t cell)
{
    return cell >= -p->x->margin[k][0] && cell < p->x->ext[HALO_D + k] + p->x->margin[k][1];
}

static int64_t taps_inside(const pool_plan *p, int k, int64_t out)
{
    int64_t n = 0;
    for (int64_t t = 0; t < p->super.d.window.kernel[k]; t++) n += inside(p, k, cell_of(p, k, out, t));
    return n;
}

/* 1/m of an average: all cells of the window with count_pad, else those inside; 0 when there is none. */
static float factor_of(const pool_plan *p, int64_t taps_inside_window)
{
    if (taps_inside_window == 0) return 0;
    return 1.0f / (float)(p->super.d.count_pad ? p->taps : taps_inside_window);
}

/* Outputs along w whose first and last taps are within [lo, hi). */
static hl_range full_outputs(const pool_plan *p, hl_range outputs, int64_t lo, int64_t hi)
{
    hl_range r = outputs;
    while (r.lo < r.hi && cell_of(p, 2, r.lo, 0) < lo) r.lo++;
    while (r.hi > r.lo && cell_of(p, 2, r.hi - 1, p->super.d.window.kernel[2] - 1) >= hi) r.hi--;
    return r;
}

static int64_t x_at(const pool_plan *p, int64_t n, int64_t block, int64_t d, int64_t h)
{
    const int64_t *s = p->xt.s;
    return p->x_first + n * s[HALO_N] + block * s[HALO_C] + d * s[HALO_D] + h * s[HALO_H];
}

static int64_t y_at(const pool_plan *p, int64_t n, int64_t block, int64_t d, int64_t h)
{
    const int64_t *s = p->yt.s;
    return p->y_first + n * s[HALO_N] + block * s[HALO_C] + d * s[HALO_D] + h * s[HALO_H];
}

static int64_t a_at(const pool_plan *p, int64_t n, int64_t block, int64_t d, int64_t h)
{
    const int64_t *s = p->at.s;
    return p->a_first + n * s[HALO_N] + block * s[HALO_C] + d * s[HALO_D] + h * s[HALO_H];
}

static int64_t lanes_of(const pool_plan *p, int64_t block) { return block == p->blocks - 1 ? p->last_lanes : p->lanes; }

/* Row i of (n, block, d, h). */
typedef struct place { int64_t n, block, d, h, lanes; } place;

static place place_of(const pool_plan *p, const halo_operand *op, int64_t i)
{
    int64_t eh = op->ext[HALO_H], ed = op->ext[HALO_D], outer = i / eh / ed;
    place r = {outer / p->blocks, outer % p->blocks, i / eh % ed, i % eh, 0};
    r.lanes = lanes_of(p, r.block);
    return r;
}

/* ------------------------------------------------------------------------------------------------------------ forward */

/* The taps of output (d, h, w) that are inside, as offsets from the row (0, 0) of x at the first tap's w. With `any`, those along w are not checked. */
static hl_pool_taps taps_of(const pool_plan *p, int64_t d, int64_t h, int64_t w, bool any, int64_t *offset, int32_t *index)
{
    const halo_window *win = &p->super.d.window;
    hl_pool_taps t = {0, offset, index};
    for (int64_t kd = 0; kd < win->kernel[0]; kd++) {
        int64_t qd = cell_of(p, 0, d, kd);
        if (!inside(p, 0, qd)) continue;
        for (int64_t kh = 0; kh < win->kernel[1]; kh++) {
            int64_t qh = cell_of(p, 1, h, kh);
            if (!inside(p, 1, qh)) continue;
            for (int64_t kw = 0; kw < win->kernel[2]; kw++) {
                if (!any && !inside(p, 2, cell_of(p, 2, w, kw))) continue;
                offset[t.count] = qd * p->xt.s[HALO_D] + qh * p->xt.s[HALO_H] + kw * win->dilation[2] * p->xt.s[HALO_W];
                index[t.count++] = (int32_t)((kd * win->kernel[1] + kh) * win->kernel[2] + kw);
            }
        }
    }
    return t;
}

static void put_aux(const pool_run *r, int64_t to, int64_t lanes, int64_t cells, const int32_t *which)
{
    const pool_plan *p = r->p;
    int64_t step = p->at.s[HALO_W];
    bool dense = step == lanes;
    for (int64_t j = 0; j < (dense ? 1 : cells); j++) {
        int64_t count = dense ? lanes * cells : lanes;
        if (p->super.d.t[HALO_AUX].dtype == HALO_U8)
            p->super.dev->kern->narrow_u8(which + j * lanes, (uint8_t *)r->aux + to + j * step, count);
        else
            memcpy((int32_t *)r->aux + to + j * step, which + j * lanes, (size_t)count * sizeof(*which));
    }
}

/* A stretch of windows with the same taps. */
static void windows(const pool_run *r, place at, hl_pool_taps taps, int64_t w, int64_t cells, int32_t *which)
{
    const pool_plan *p = r->p;
    const hl_kern *kern = p->super.dev->kern;
    int64_t step = p->super.d.window.stride[2] * p->xt.s[HALO_W], ystep = p->yt.s[HALO_W];
    const float *x = r->x + x_at(p, at.n, at.block, 0, 0) + cell_of(p, 2, w, 0) * p->xt.s[HALO_W];
    float *y = r->y + y_at(p, at.n, at.block, at.d, at.h) + w * ystep;
    if (taps.count == 0) {
        for (int64_t j = 0; j < cells; j++) memset(y + j * ystep, 0, (size_t)at.lanes * sizeof(*y));
        memset(which, 0, (size_t)(cells * at.lanes) * sizeof(*which));
    } else if (p->super.d.pool == HALO_POOL_MAX) {
        kern->pool_max(x, step, cells, at.lanes, taps, y, ystep, r->aux ? which : NULL);
    } else { /* avg */
        kern->pool_sum(x, step, cells, at.lanes, taps, factor_of(p, taps.count), y, ystep);
    }
    if (r->aux && p->super.d.pool == HALO_POOL_MAX) put_aux(r, a_at(p, at.n, at.block, at.d, at.h) + w * p->at.s[HALO_W], at.lanes, cells, which);
}

/* Bits of the stride cells of outputs [w, w + cells) of a row, of which `have` along w exist. */
static void put_signs(const pool_run *r, place at, int64_t w, int64_t cells, int64_t have)
{
    const pool_plan *p = r->p;
    const int64_t *s = p->super.d.window.stride;
    int64_t offset[8];
    int32_t index[8];
    hl_pool_taps t = {0, offset, index};
    hl_pool_saved run = {.cells = cells, .lanes = at.lanes, .x_step = s[2] * p->xt.s[HALO_W], .aux_step = p->at.s[HALO_W]};
    for (int64_t d = 0; d < hl_min64(s[0], p->x->ext[HALO_D] - at.d * s[0]); d++)
        for (int64_t h = 0; h < hl_min64(s[1], p->x->ext[HALO_H] - at.h * s[1]); h++)
            for (int64_t k = 0; k < have; k++) {
                offset[t.count] = d * p->xt.s[HALO_D] + h * p->xt.s[HALO_H] + k * p->xt.s[HALO_W];
                index[t.count++] = (int32_t)((d * s[1] + h) * s[2] + k);
            }
    const float *x = r->x + (t.count ? x_at(p, at.n, at.block, at.d * s[0], at.h * s[1]) + w * run.x_step : 0);
    p->super.dev->kern->signs(&run, t, x, (uint8_t *)r->aux + a_at(p, at.n, at.block, at.d, at.h) + w * run.aux_step);
}

static void forward_signs(const pool_run *r, place at)
{
    const pool_plan *p = r->p;
    int64_t stride = p->super.d.window.stride[2], width = p->y->ext[HALO_W], whole = hl_min64(width, p->x->ext[HALO_W] / stride);
    if (whole > 0) put_signs(r, at, 0, whole, stride);
    for (int64_t w = whole; w < width; w++) put_signs(r, at, w, 1, hl_max64(0, p->x->ext[HALO_W] - w * stride));
}

static void forward_row(const pool_run *r, place at, int64_t *offset, int32_t *index, int32_t *which)
{
    const pool_plan *p = r->p;
    int64_t width = p->y->ext[HALO_W];
    for (int64_t w = 0; w < width; w++) {
        bool full = w >= p->full.lo && w < p->full.hi;
        int64_t cells = full ? p->full.hi - w : 1;
        windows(r, at, taps_of(p, at.d, at.h, w, full, offset, index), w, cells, which);
        w += cells - 1;
    }
    if (r->aux && p->super.d.pool == HALO_POOL_AVG) forward_signs(r, at);
}

static void forward_part(void *arg, int64_t i)
{
    const pool_run *r = arg;
    const pool_plan *p = r->p;
    int32_t *which = p->which + i * p->y->ext[HALO_W] * p->lanes;
    hl_range rows = hl_block_range(r->rows, r->parts, i);
    for (int64_t row = rows.lo; row < rows.hi; row++)
        forward_row(r, place_of(p, p->y, row), p->offset + i * p->taps, p->index + i * p->taps, which);
}

/* ----------------------------------------------------------------------------------------------------------- backward */

static void get_aux(const pool_run *r, int64_t from, int64_t lanes, int64_t cells, int32_t *which)
{
    const pool_plan *p = r->p;
    int64_t step = p->at.s[HALO_W];
    bool dense = step == lanes;
    for (int64_t j = 0; j < (dense ? 1 : cells); j++) {
        int64_t count = dense ? lanes * cells : lanes;
        if (p->super.d.t[HALO_AUX].dtype == HALO_U8)
            p->super.dev->kern->widen_u8((const uint8_t *)r->aux + from + j * step, which + j * lanes, count);
        else
            memcpy(which + j * lanes, (const int32_t *)r->aux + from + j * step, (size_t)count * sizeof(*which));
    }
}

/* Windows w .. w + cells - 1 of one row give to their taps first .. first + taps - 1 along w. */
static void give(const pool_run *r, place at, int64_t od, int64_t oh, int64_t tap, int64_t w, int64_t cells, int64_t kw, int64_t taps,
                 const int32_t *which)
{
    const pool_plan *p = r->p;
    const hl_kern *kern = p->super.dev->kern;
    const halo_window *win = &p->super.d.window;
    int64_t sw = p->xt.s[HALO_W], step = win->stride[2] * sw, kstep = win->dilation[2] * sw;
    float *dx = r->x + x_at(p, at.n, at.block, at.d, at.h) + cell_of(p, 2, w, kw) * sw;
    const float *dy = r->y + y_at(p, at.n, at.block, od, oh) + w * p->yt.s[HALO_W];
    if (p->super.d.pool == HALO_POOL_MAX) {
        kern->pool_max_bwd(dx, step, kstep, (int)taps, (int32_t)(tap + kw), cells, at.lanes, dy, p->yt.s[HALO_W],
                           which + (w - p->outputs[2].lo) * at.lanes);
        return;
    }
    int64_t count = taps_inside(p, 0, od) * taps_inside(p, 1, oh) * taps_inside(p, 2, w);
    kern->pool_sum_bwd(dx, step, kstep, (int)taps, factor_of(p, count), cells, at.lanes, dy, p->yt.s[HALO_W]);
}

/* Everything that row (od, oh) of dy gives to the row `at` of dx, to which it is taps (kd, kh). */
static void collect_row(const pool_run *r, place at, int64_t od, int64_t oh, int64_t tap, int32_t *which)
{
    const pool_plan *p = r->p;
    hl_range outs = p->outputs[2];
    int64_t kernel = p->super.d.window.kernel[2], width = p->x->ext[HALO_W];
    if (p->super.d.pool == HALO_POOL_MAX) {
        int64_t from = a_at(p, at.n, at.block, od, oh) + outs.lo * p->at.s[HALO_W];
        get_aux(r, from, at.lanes, hl_range_len(outs), which);
    }
    for (int64_t w = outs.lo; w < outs.hi; w++) {
        if (w == p->full.lo && p->full.hi > w) {
            give(r, at, od, oh, tap, w, p->full.hi - w, 0, kernel, which);
            w = p->full.hi - 1;
            continue;
        }
        for (int64_t kw = 0; kw < kernel; kw++) {
            int64_t q = cell_of(p, 2, w, kw);
            if (q >= 0 && q < width) give(r, at, od, oh, tap, w, 1, kw, 1, which);
        }
    }
}

/* The output whose tap k covers cell q, or -1 .. there is none: *out is written when there is one. */
static bool output_of(const pool_plan *p, int k, int64_t q, int64_t tap, int64_t *out)
{
    const halo_window *w = &p->super.d.window;
    int64_t at = q + w->pad_lo[k] - tap * w->dilation[k];
    if (at % w->stride[k] != 0) return false;
    *out = at / w->stride[k];
    return *out >= p->outputs[k].lo && *out < p->outputs[k].hi;
}

/* The sum of the rows of dy whose windows reach the row `at` of dx, each divided by its windows' cells, into t; false when there are none. */
static bool sum_rows(const pool_run *r, place at, hl_unaverage *u, float *t)
{
    const pool_plan *p = r->p;
    const halo_window *win = &p->super.d.window;
    int64_t od, oh, cells[HL_AVERAGE_ROWS], width = p->y->ext[HALO_W];
    const float *row[HL_AVERAGE_ROWS];
    u->rows = 0;
    for (int64_t kd = win->kernel[0] - 1; kd >= 0; kd--)
        for (int64_t kh = win->kernel[1] - 1; kh >= 0; kh--) {
            if (!output_of(p, 0, at.d, kd, &od) || !output_of(p, 1, at.h, kh, &oh)) continue;
            row[u->rows] = r->y + y_at(p, at.n, at.block, od, oh);
            cells[u->rows++] = taps_inside(p, 0, od) * taps_inside(p, 1, oh);
        }
    for (int64_t w = 0; w < width && u->rows; w += u->cells) {
        int64_t inner = taps_inside(p, 2, w);
        u->cells = 1;
        while (w + u->cells < width && taps_inside(p, 2, w + u->cells) == inner) u->cells++;
        for (int i = 0; i < u->rows; i++) {
            u->row[i] = row[i] + w * u->y_step;
            u->factor[i] = factor_of(p, cells[i] * inner);
        }
        p->super.dev->kern->sum_rows(u, t + w * at.lanes);
    }
    return u->rows > 0;
}

/* A row of dx of averages and an activation: cells past those that AUX has bits for are 0 (signed_valid). t has zeros on both sides. */
static void average_row(const pool_run *r, place at, float *t)
{
    const pool_plan *p = r->p;
    const halo_window *win = &p->super.d.window;
    const int64_t *s = win->stride;
    float *dx = r->x + x_at(p, at.n, at.block, at.d, at.h);
    int64_t od = at.d / s[0], oh = at.h / s[1], width = p->x->ext[HALO_W], whole = hl_min64(p->y->ext[HALO_W], width / s[2]), done = 0;
    hl_unaverage u = {.lanes = at.lanes, .y_step = p->yt.s[HALO_W], .taps = (int)s[2], .tap_step = p->xt.s[HALO_W], .aux_step = p->at.s[HALO_W]};
    float *sums = t + hl_div_up(win->kernel[2], s[2]) * at.lanes;
    if (od < p->y->ext[HALO_D] && oh < p->y->ext[HALO_H] && sum_rows(r, at, &u, sums)) {
        memset(t, 0, (size_t)(sums - t) * sizeof(*t));
        memset(sums + p->y->ext[HALO_W] * at.lanes, 0, (size_t)(sums - t) * sizeof(*t));
        for (int64_t k = 0; k < s[2]; k++) { /* windows w + i with 0 <= k + pad - i s < kernel */
            int64_t q = k + win->pad_lo[2];
            u.from[k] = (int)(q < win->kernel[2] ? -((win->kernel[2] - 1 - q) / s[2]) : hl_div_up(q - win->kernel[2] + 1, s[2]));
            u.count[k] = (int)hl_max64(0, q / s[2] - u.from[k] + 1);
        }
        const uint8_t *aux = (const uint8_t *)r->aux + a_at(p, at.n, at.block, od, oh);
        u.x_step = s[2] * u.tap_step;
        u.first = (int32_t)((at.d % s[0] * s[1] + at.h % s[1]) * s[2]);
        u.slope = p->super.d.act == HALO_ACT_RELU ? 0.0f : (float)p->super.d.slope;
        u.cells = whole;
        p->super.dev->kern->unaverage(&u, sums, aux, dx);
        done = whole * s[2];
        u.cells = 1;
        u.taps = (int)hl_min64(width - done, s[2] - 1);
        if (whole < p->y->ext[HALO_W] && u.taps > 0) {
            p->super.dev->kern->unaverage(&u, sums + whole * at.lanes, aux + whole * u.aux_step, dx + done * u.tap_step);
            done += u.taps;
        }
    }
    for (; done < width; done++) memset(dx + done * u.tap_step, 0, (size_t)at.lanes * sizeof(*dx));
}

static void backward_row(const pool_run *r, place at, int32_t *which)
{
    const pool_plan *p = r->p;
    const halo_window *win = &p->super.d.window;
    float *dx = r->x + x_at(p, at.n, at.block, at.d, at.h);
    int64_t sw = p->xt.s[HALO_W], width = p->x->ext[HALO_W], od, oh;
    bool dense = sw == at.lanes;
    for (int64_t w = 0; !p->super.d.accumulate && w < (dense ? 1 : width); w++)
        memset(dx + w * sw, 0, (size_t)(at.lanes * (dense ? width : 1)) * sizeof(*dx));
    for (int64_t kd = win->kernel[0] - 1; kd >= 0; kd--) {
        if (!output_of(p, 0, at.d, kd, &od)) continue;
        for (int64_t kh = win->kernel[1] - 1; kh >= 0; kh--)
            if (output_of(p, 1, at.h, kh, &oh)) collect_row(r, at, od, oh, (kd * win->kernel[1] + kh) * win->kernel[2], which);
    }
}

static void backward_part(void *arg, int64_t i)
{
    const pool_run *r = arg;
    const pool_plan *p = r->p;
    int32_t *which = p->which + i * hl_range_len(p->outputs[2]) * p->lanes;
    hl_range rows = hl_block_range(r->rows, r->parts, i);
    if (p->super.d.kind == HALO_OP_ACT_POOL_BWD)
        for (int64_t row = rows.lo; row < rows.hi; row++) average_row(r, place_of(p, p->x, row), p->sums + i * p->sum_floats);
    else
        for (int64_t row = rows.lo; row < rows.hi; row++) backward_row(r, place_of(p, p->x, row), which);
}

/* --------------------------------------------------------------------------------------------------------------- class */

static bool window_valid(const halo_window *w)
{
    int64_t taps = 1;
    for (int k = 0; k < 3; k++)
        if (w->kernel[k] < 1 || w->stride[k] < 1 || w->dilation[k] < 1 || !hl_mul64(taps, w->kernel[k], &taps)) return false;
    return taps <= INT32_MAX;
}

/* AUX is there where the gradient needs it, and fits. */
static bool aux_valid(const pool_plan *p, bool forward)
{
    const halo_op_desc *d = &p->super.d;
    const halo_operand *a = &d->t[HALO_AUX];
    if (a->dtype == HALO_NONE) return d->kind != HALO_OP_ACT_POOL_BWD && (d->pool == HALO_POOL_AVG || forward);
    if (d->pool == HALO_POOL_AVG) {
        const int64_t *s = d->window.stride;
        if (a->dtype != HALO_U8 || s[0] > 8 || s[1] > 8 || s[2] > 8 || s[0] * s[1] * s[2] > 8) return false;
    }
    bool type = a->dtype == HALO_I32 || (a->dtype == HALO_U8 && (p->taps <= 256 || d->pool == HALO_POOL_AVG));
    return type && hl_operand_valid(a) && a->layout == p->y->layout && hl_same_extents(a, p->y);
}

/* The outputs along dimension k that matter: y's box, never its margin (split pools add up in an exchange); backward, those of them whose windows
 * reach into dx's box. */
static hl_range outputs_of(const pool_plan *p, int k, bool forward)
{
    hl_range r = {0, p->y->ext[HALO_D + k]};
    if (forward) return r;
    while (r.lo < r.hi && cell_of(p, k, r.lo, p->super.d.window.kernel[k] - 1) < 0) r.lo++;
    while (r.hi > r.lo && cell_of(p, k, r.hi - 1, 0) >= p->x->ext[HALO_D + k]) r.hi--;
    return r;
}

static void shape(pool_plan *p, bool forward)
{
    const halo_op_desc *d = &p->super.d;
    p->xr = forward ? HALO_X : HALO_DX;
    p->yr = forward ? HALO_Y : HALO_DY;
    p->x = &d->t[p->xr];
    p->y = &d->t[p->yr];
    p->xt = hl_operand_strides(p->x);
    p->yt = hl_operand_strides(p->y);
    p->at = hl_operand_strides(&d->t[HALO_AUX]);
    p->x_first = hl_box_offset(p->x);
    p->y_first = hl_box_offset(p->y);
    p->a_first = hl_has(d, HALO_AUX) ? hl_box_offset(&d->t[HALO_AUX]) : 0;
    p->lanes = p->x->layout == HALO_NDHWC ? p->x->ext[HALO_C] : hl_layout_block(p->x->layout);
    p->blocks = hl_div_up(p->x->ext[HALO_C], p->lanes);
    p->last_lanes = p->x->ext[HALO_C] - (p->blocks - 1) * p->lanes;
    p->taps = d->window.kernel[0] * d->window.kernel[1] * d->window.kernel[2];
    for (int k = 0; k < 3; k++) p->outputs[k] = outputs_of(p, k, forward);
    int64_t width = p->x->ext[HALO_W], low = forward ? p->x->margin[2][0] : 0, high = forward ? p->x->margin[2][1] : 0;
    p->full = full_outputs(p, p->outputs[2], -low, width + high);
    if (p->full.lo >= p->full.hi) p->full = (hl_range){INT64_MAX, INT64_MAX};
}

/* Averages behind an activation of two values whose windows reach no cell without a bit. */
static bool signed_valid(const halo_op_desc *d)
{
    const halo_window *w = &d->window;
    for (int k = 0; k < 3; k++)
        if (w->dilation[k] != 1 || w->kernel[k] - w->pad_lo[k] > w->stride[k]) return false;
    if (hl_div_up(w->kernel[0], w->stride[0]) * hl_div_up(w->kernel[1], w->stride[1]) > HL_AVERAGE_ROWS) return false;
    return d->pool == HALO_POOL_AVG && !d->accumulate && (d->act == HALO_ACT_RELU || d->act == HALO_ACT_LEAKY_RELU);
}

static int pool_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    bool forward = d->kind == HALO_OP_POOL_FWD;
    halo_role xr = forward ? HALO_X : HALO_DX, yr = forward ? HALO_Y : HALO_DY;
    const halo_operand *x = &d->t[xr], *y = &d->t[yr], *rows = forward ? y : x;
    if (!hl_has_f32(d, xr) || !hl_has_f32(d, yr) || x->layout != y->layout || !window_valid(&d->window)) return 0;
    if (x->ext[HALO_N] != y->ext[HALO_N] || x->ext[HALO_C] != y->ext[HALO_C]) return 0;
    if (d->kind == HALO_OP_ACT_POOL_BWD && !signed_valid(d)) return 0;
    pool_plan p = {.super = {hl_cpu(dev), *d}};
    shape(&p, forward);
    if (!aux_valid(&p, forward)) return 0;
    int64_t n = rows->ext[HALO_N] * p.blocks * rows->ext[HALO_D] * rows->ext[HALO_H];
    hl_cpu_candidate(dev, "cpu", (double)n, out);
    int64_t parts = hl_min64(n, hl_parts(hl_cpu(dev), hl_operand_box_elements(x)));
    out->efficiency = (double)n / ((double)hl_cpu(dev)->threads * (double)hl_div_up(n, hl_max64(parts, 1)));
    return 1;
}

static void pool_destroy(halo_plan *plan)
{
    pool_plan *p = (pool_plan *)plan;
    if (!p) return;
    free(p->offset);
    free(p->index);
    free(p->which);
    free(p->sums);
    free(p);
}

static halo_status pool_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    pool_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    shape(p, d->kind == HALO_OP_POOL_FWD);
    size_t parts = (size_t)p->super.dev->threads, row = (size_t)(hl_range_len(p->outputs[2]) * p->lanes);
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_calloc(dev->ctx, parts * (size_t)p->taps, sizeof(*p->offset), "pooling windows", &p->offset), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, parts * (size_t)p->taps, sizeof(*p->index), "pooling windows", &p->index), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, parts * row, sizeof(*p->which), "pooling rows", &p->which), free_plan);
    if (d->kind == HALO_OP_ACT_POOL_BWD) {
        p->sum_floats = hl_round_up((p->y->ext[HALO_W] + 2 * hl_div_up(d->window.kernel[2], d->window.stride[2])) * p->lanes, 16);
        HL_GOTO(st, hl_calloc(dev->ctx, parts * (size_t)p->sum_floats, sizeof(*p->sums), "pooling rows", &p->sums), free_plan);
    }
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    pool_destroy((halo_plan *)p);
    return st;
}

static halo_status pool_do(halo_plan *plan, const halo_op_args *args)
{
    pool_plan *p = (pool_plan *)plan;
    bool forward = p->super.d.kind == HALO_OP_POOL_FWD;
    const int64_t *e = forward ? p->y->ext : p->x->ext;
    pool_run r = {.p = p, .x = args->ptr[p->xr], .y = args->ptr[p->yr]};
    r.aux = hl_has(&p->super.d, HALO_AUX) ? args->ptr[HALO_AUX] : NULL;
    r.rows = e[HALO_N] * p->blocks * e[HALO_D] * e[HALO_H];
    r.parts = hl_min64(r.rows, hl_parts(p->super.dev, hl_operand_box_elements(p->x)));
    hl_parallel(p->super.dev, r.parts, forward ? forward_part : backward_part, &r);
    return HALO_OK;
}

#define POOL(name, op)                                                                                       \
    const halo_op_class name = {                                                                             \
        .kind = op, .candidates = pool_candidates, .plan = pool_make, .run = pool_do, .destroy = pool_destroy}

POOL(hl_cpu_pool_fwd, HALO_OP_POOL_FWD);
POOL(hl_cpu_pool_bwd, HALO_OP_POOL_BWD);
POOL(hl_cpu_act_average_bwd, HALO_OP_ACT_POOL_BWD);
