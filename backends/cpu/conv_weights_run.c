/* SPDX-License-Identifier: Apache-2.0 */
/* conv_weights_run.c -- runs backward weights (conv_weights.c). */
#include "conv_weights.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* One item: block pairs [out0, out1) x [in0, in1), part `split` of the rows, sums in `part`. */
typedef struct item {
    int64_t out0, out1, in0, in1, split;
    float *part;
} item;

typedef struct rows {
    int64_t n, d0, d1, h0, h1;
} rows;

static const float *x_at(const hl_weights *p, const float *x, int64_t n, int64_t block, int64_t d, int64_t h, int64_t w)
{
    int64_t c = p->blocked ? block * p->block_in : 0;
    return x + hl_offset(&p->xs, n, c, d, h, w);
}

/* Outputs [lo, hi) of [from, to) whose input o * stride + off is readable. */
static hl_range clip(int64_t from, int64_t to, int64_t stride, int64_t off, const int64_t valid[2])
{
    while (from < to && from * stride + off < valid[0]) from++;
    while (to > from && (to - 1) * stride + off >= valid[1]) to--;
    return (hl_range){from, to};
}

/* One kernel call over the rows, cut to what may be read. */
static void run_call(const hl_weights *p, const weights_call *k, const rows *r, const float *x, const float *dy, int64_t in_block, float *sums)
{
    const halo_window *w = &p->s.w;
    hl_range d = clip(r->d0, r->d1, w->stride[0], k->d, p->valid[0]), h = clip(r->h0, r->h1, w->stride[1], k->h, p->valid[1]);
    hl_range q = {0, p->s.y.ext[HALO_W]};
    int64_t xd = d.lo * w->stride[0] + k->d, xh = h.lo * w->stride[1] + k->h;
    hl_conv_corr c = {.at = k->at,
                      .dw_at = k->dw_at,
                      .dw = sums + k->dw,
                      .dw_row = k->dw_row,
                      .dw_col = k->dw_col,
                      .nd = d.hi - d.lo,
                      .nh = h.hi - h.lo,
                      .nw = q.hi,
                      .x_d = w->stride[0] * p->xs.s[HALO_D],
                      .x_h = w->stride[1] * p->xs.s[HALO_H],
                      .x_w = w->stride[2] * p->xs.s[HALO_W],
                      .dy_d = p->ys.s[HALO_D],
                      .dy_h = p->ys.s[HALO_H]};
    if (k->slide)
        q = clip(0, q.hi + k->taps - 1, 1, k->w, p->valid[2]);
    else
        q = clip(0, q.hi, w->stride[2], k->w, p->valid[2]);
    if (c.nd < 1 || c.nh < 1 || q.hi <= q.lo) return;
    c.dy = dy + d.lo * c.dy_d + h.lo * c.dy_h;
    if (k->slide) {
        c.x0 = q.lo;
        c.x1 = q.hi;
        c.x = x_at(p, x, r->n, in_block, xd, xh, k->w) + k->x;
    } else {
        c.nw = q.hi - q.lo;
        c.dy += q.lo * p->ys.s[HALO_W];
        c.x = x_at(p, x, r->n, in_block, xd, xh, q.lo * w->stride[2] + k->w) + k->x;
    }
    k->fn(&c);
}

static void sum_bias(const hl_weights *p, const rows *r, const float *dy, float *sum)
{
    hl_conv_corr c = {.dw = sum, .nd = r->d1 - r->d0, .nh = r->h1 - r->h0, .nw = p->s.y.ext[HALO_W], .dy_d = p->ys.s[HALO_D], .dy_h = p->ys.s[HALO_H]};
    c.dy = dy + r->d0 * c.dy_d + r->h0 * c.dy_h;
    p->kern->sum(&c);
}

static void run_rows(const hl_weights *p, const item *a, const rows *r, const float *x, const float *dy)
{
    const int64_t lanes = p->kern->lanes;
    float *sums = a->part, *bias = a->part + p->group_out * p->group_in * p->block_floats;
    for (int64_t o = a->out0; o < a->out1; o++) {
        const float *g = dy + hl_offset(&p->ys, r->n, o * lanes, 0, 0, 0);
        for (int64_t i = a->in0; i < a->in1; i++, sums += p->block_floats) {
            int64_t live = p->s.in - i * p->block_in;
            for (int k = 0; k < p->ncalls; k++)
                if (p->call[k].lane < live) run_call(p, &p->call[k], r, x, g, i, sums);
        }
        if (p->bias && a->in0 == 0) sum_bias(p, r, g, bias + (o - a->out0) * lanes);
    }
}

/* Rows are dealt to the splits as lines of (n, d, h); a split's lines are taken in blocks that lie in one sample. */
static void run_split(const hl_weights *p, const item *a, const float *x, const float *dy)
{
    const int64_t nd = p->s.y.ext[HALO_D], nh = p->s.y.ext[HALO_H];
    hl_range lines = hl_block_range(p->s.n * nd * nh, p->splits, a->split);
    memset(a->part, 0, (size_t)p->part_floats * sizeof(float));
    while (lines.lo < lines.hi) {
        int64_t n = lines.lo / (nd * nh), d = lines.lo / nh % nd, h = lines.lo % nh, left = lines.hi - lines.lo;
        rows r = {n, d, d + 1, h, hl_min64(nh, h + hl_min64(p->rows_h, left))};
        if (h == 0 && r.h1 == nh) r.d1 = hl_min64(nd, d + hl_max64(1, hl_min64(p->rows_d, left / nh)));
        run_rows(p, a, &r, x, dy);
        lines.lo += (r.d1 - r.d0) * (r.h1 - r.h0);
    }
}

/* ------------------------------------------------------------------------------------------------------------------ results */

/* One block pair, or the bias of an out block, from the parts of all splits into the first, in order. */
static void add_parts(const hl_weights *p, float *first, int64_t floats)
{
    for (int64_t s = 1; s < p->splits; s++) {
        const float *from = first + s * p->part_floats;
        for (int64_t i = 0; i < floats; i++) first[i] += from[i];
    }
}

static void store_pair(const hl_weights *p, int64_t o, int64_t i, const float *sums, float *dw)
{
    const int64_t lanes = p->kern->lanes, row = p->s.in * p->taps;
    int64_t terms = hl_min64(p->block_in, p->s.in - i * p->block_in) * p->taps;
    p->kern->spread(sums, terms, hl_min64(lanes, p->s.out - o * lanes), dw + o * lanes * row + i * p->block_in * p->taps, row, p->accumulate);
}

static void store_bias(const hl_weights *p, int64_t o, const float *sums, float *db)
{
    const int64_t lanes = p->kern->lanes;
    for (int64_t l = 0; l < lanes && o * lanes + l < p->s.out; l++) {
        float *to = db + o * lanes + l;
        *to = p->accumulate ? *to + sums[l] : sums[l];
    }
}

/* Pair `index` of an item (the bias of its out block goes with the first input block). */
static void finish_pair(const hl_weights *p, const item *a, int64_t index, float *dw, float *db)
{
    int64_t wide = a->in1 - a->in0, o = a->out0 + index / wide, i = a->in0 + index % wide;
    if (o >= a->out1) return;
    float *sums = a->part + index * p->block_floats;
    add_parts(p, sums, p->block_floats);
    store_pair(p, o, i, sums, dw);
    if (!p->bias || i != 0) return;
    float *bias = a->part + p->group_out * p->group_in * p->block_floats + (o - a->out0) * p->kern->lanes;
    add_parts(p, bias, p->kern->lanes);
    store_bias(p, o, bias, db);
}

static item item_of(const hl_weights *p, int64_t index)
{
    int64_t g = index / p->splits, o = g / p->in_groups * p->group_out, i = g % p->in_groups * p->group_in;
    return (item){o, hl_min64(p->out_blocks, o + p->group_out), i, hl_min64(p->in_blocks, i + p->group_in), index % p->splits, NULL};
}

static void run_unsplit(const hl_weights *p, const float *x, const float *dy, float *dw, float *db, float *parts)
{
    int64_t items = p->out_groups * p->in_groups;
#pragma omp parallel num_threads(p->dev->threads)
    {
#ifdef _OPENMP
        float *part = parts + omp_get_thread_num() * p->part_floats;
#else
        float *part = parts;
#endif
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < items; i++) {
            item a = item_of(p, i);
            a.part = part;
            run_split(p, &a, x, dy);
            for (int64_t k = 0; k < p->group_out * p->group_in; k++) finish_pair(p, &a, k, dw, db);
        }
    }
}

static void run_parts(const hl_weights *p, const float *x, const float *dy, float *dw, float *db, float *parts)
{
    int64_t items = p->out_groups * p->in_groups * p->splits, pairs = p->group_out * p->group_in, all = p->out_groups * p->in_groups * pairs;
#pragma omp parallel num_threads(p->dev->threads)
    {
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < items; i++) {
            item a = item_of(p, i);
            a.part = parts + i * p->part_floats;
            run_split(p, &a, x, dy);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < all; i++) {
            item a = item_of(p, i / pairs * p->splits);
            a.part = parts + i / pairs * p->splits * p->part_floats;
            finish_pair(p, &a, i % pairs, dw, db);
        }
    }
}

/* --------------------------------------------------------------------------------------------------------------------- run */

size_t hl_weights_scratch(const hl_weights *p)
{
    int64_t parts = p->splits > 1 ? p->out_groups * p->in_groups * p->splits : p->dev->threads;
    return (size_t)(p->pad_floats + parts * p->part_floats) * sizeof(float) + 64;
}

void hl_weights_run(const hl_weights *p, const float *x, const float *dy, float *dw, float *db, void *scratch)
{
    float *padded = (float *)hl_round_up((int64_t)(intptr_t)scratch, 64), *parts = padded + p->pad_floats;
    if (p->pad) hl_conv_pad(p->dev, &p->s.x, &p->x, x, padded);
    x = (p->pad ? padded : x) + p->x_origin;
    dy += p->y_origin;
    if (p->splits > 1)
        run_parts(p, x, dy, dw, db, parts);
    else
        run_unsplit(p, x, dy, dw, db, parts);
}
