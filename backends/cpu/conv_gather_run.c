/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_gather_run.c -- runs a gather (conv_gather.c).
 *
 * Borders: an output line (d, h) near the border of the readable cells takes the list without the rows that would be read outside, which stand for
 * zeros. Along w, a tile that would read outside gets its inputs from a copy of the cells it needs, zeros filled in: the copy is a few kilobytes and is
 * used by all its output vectors. The kernels themselves know no borders.
 */
#include "conv_gather.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* What a thread works with. */
typedef struct worker {
    const hl_gather *g;
    const gather_phase *p;
    const float *in, *image, *bias; /* in: first cell of the box */
    float *out;
    hl_conv_row *rows, *edge_rows; /* [max_rows] of a line near the border; of a tile at the edge */
    int32_t *which;                /* [max_rows] their numbers in the phase's list */
    float *edge, *tile, *strip;
    bool stream;
    int block0;         /* pooling: the first block of `out`, which is the strip then, and begins with the cell ... */
    int64_t d0, h0;
    float *pooled;      /* and what it becomes */
    uint8_t *aux;
} worker;

/* A box of output positions, and the part of the weights that meets it. */
typedef struct task {
    int64_t n, d0, d1, h0, h1;
    int group0, group1;
    int64_t row0, row1;
    bool first, last; /* chunk: starts from bias or zero; ends with the activation */
} task;

/* One output line, or several short ones. */
typedef struct line {
    const hl_conv_row *rows;
    int64_t nrows, row0;
    const int32_t *which; /* NULL: the rows are row0, row0 + 1, ... of the phase */
    const float *x;       /* what position 0 reads first, but for the rows' own offsets */
    float *y;
} line;

/* ------------------------------------------------------------------------------------------------------------- activations */

static float activate(halo_act act, float slope, float v)
{
    switch (act) {
    case HALO_ACT_TANH: return tanhf(v);
    case HALO_ACT_SIGMOID: return 1.0f / (1.0f + expf(-v));
    case HALO_ACT_SCALE: return slope * v;
    default: return v;
    }
}

/* The rarer activations, on a finished tile; padding lanes stay zero. */
static void activate_tile(const hl_gather *g, const hl_conv_tile *t, int64_t block, int ov, int np, bool list)
{
    int64_t lanes = g->kern->lanes;
    for (int o = 0; o < ov; o++)
        for (int p = 0; p < np; p++) {
            float *y = t->y + o * t->y_vec + (list ? t->y_at[p] : p * t->y_step);
            int64_t live = hl_min64(lanes, g->out.ext[HALO_C] - (block + o) * lanes);
            for (int64_t l = 0; l < live; l++) y[l] = activate(g->act, g->slope, y[l]);
        }
}

/* ------------------------------------------------------------------------------------------------------------------- tiles */

/* y = act(y + sum), vector after vector of a tile's. */
static void add_tile(const worker *k, const hl_conv_tile *t, int ov, int np, bool list)
{
    const hl_kern *kern = k->g->dev->kern;
    const int64_t lanes = k->g->kern->lanes, together = !list && t->y_step == lanes ? np : 1;
    for (int o = 0; o < ov; o++)
        for (int p = 0; p < np; p += (int)together) {
            float *y = t->y + o * t->y_vec + (list ? t->y_at[p] : p * t->y_step);
            kern->add(y, k->tile + (o * np + p) * lanes, y, together * lanes);
            if (t->leaky) kern->act_fwd(HALO_ACT_LEAKY_RELU, t->slope, y, y, together * lanes);
        }
}

/* A tile that is computed in the thread's own memory first: one whose block has lanes that are not ours, of which `live` are; and a later chunk of rows,
 * which is summed from zero and then added to what is there: chains of thousands of roundings would break the bound. */
static void own_tile(const worker *k, const hl_conv_tile *t, hl_conv_tile_fn *fn, int ov, int64_t live, int np, bool list)
{
    const int64_t lanes = k->g->kern->lanes;
    const bool add = t->start == HL_START_LOAD;
    int64_t at[HL_TILE_P];
    hl_conv_tile own = *t;
    for (int p = 0; p < np; p++) at[p] = p * lanes;
    own.y = k->tile;
    own.y_at = at;
    own.y_step = lanes;
    own.y_vec = np * lanes;
    own.stream = false;
    if (add) {
        own.start = HL_START_ZERO;
        own.leaky = false;
    }
    fn(&own);
    if (add && live == lanes) {
        add_tile(k, t, ov, np, list);
        return;
    }
    for (int o = 0; o < ov; o++)
        for (int p = 0; p < np; p++) {
            float *y = t->y + o * t->y_vec + (list ? t->y_at[p] : p * t->y_step);
            const float *sum = k->tile + (o * np + p) * lanes;
            for (int64_t l = 0; l < live; l++) {
                float v = add ? y[l] + sum[l] : sum[l];
                y[l] = add && t->leaky && !(v > 0) ? v * t->slope : v;
            }
        }
}

/* All groups of the task on one tile; t has everything but what depends on the group. */
static void tile_groups(const worker *k, const task *a, hl_conv_tile *t, enum hl_conv_step step, int np)
{
    const hl_gather *g = k->g;
    const int64_t lanes = g->kern->lanes;
    float *y = t->y;
    bool list = step == HL_STEP_LIST, rare = a->last && g->act >= HALO_ACT_TANH;
    for (int i = a->group0; i < a->group1; i++) {
        const gather_group *o = &g->group[i];
        hl_conv_tile_fn *fn = g->kern->tile[step][o->ov][np];
        t->w = k->image + o->block * g->w_vec;
        t->bias = k->bias + o->block * lanes;
        t->y = y + (o->block - k->block0) * t->y_vec;
        t->stream = k->stream && a->first && a->last && !o->shared;
        if (o->shared)
            own_tile(k, t, fn, 1, g->out.ext[HALO_C] - o->block * lanes, np, list);
        else if (t->start == HL_START_LOAD && !a->first)
            own_tile(k, t, fn, o->ov, lanes, np, list);
        else
            fn(t);
        if (rare) activate_tile(g, t, o->block, o->ov, np, list);
    }
    t->y = y;
}

static hl_conv_tile start_tile(const worker *k, const task *a, const line *l, const int64_t *x_at, const int64_t *y_at)
{
    const hl_gather *g = k->g;
    return (hl_conv_tile){.x = l->x,
                          .rows = l->rows,
                          .nrows = l->nrows,
                          .w_vec = g->w_vec,
                          .y = l->y,
                          .y_step = k->p->dim[2].out_step * g->os.s[HALO_W],
                          .y_vec = g->os.s[HALO_C],
                          .x_at = x_at,
                          .y_at = y_at,
                          .start = !a->first || g->accumulate ? HL_START_LOAD : k->bias ? HL_START_BIAS : HL_START_ZERO,
                          .leaky = a->last && (g->act == HALO_ACT_LEAKY_RELU || g->act == HALO_ACT_RELU),
                          .slope = g->act == HALO_ACT_RELU ? 0.0f : g->slope};
}

/* Copies what positions [w, w + np) of a line read, with zeros for the cells outside, and points the tile at the copies. */
static void copy_edge(const worker *k, const line *l, int64_t w, int np, hl_conv_tile *t)
{
    const hl_gather *g = k->g;
    const int64_t step = k->p->dim[2].in_step, unit = g->unit;
    float *to = k->edge;
    for (int64_t r = 0; r < l->nrows; r++) {
        const gather_source *s = &k->p->source[l->which ? l->which[r] : l->row0 + r];
        const float *from = l->x + l->rows[r].x + w * step * unit;
        const size_t bytes = (size_t)s->lanes * sizeof(float);
        int64_t cells = (np - 1) * step + s->span, first = w * step + s->w;
        for (int64_t c = 0; c < cells; c++) {
            if (first + c >= g->valid[2][0] && first + c < g->valid[2][1])
                memcpy(to + c * unit, from + c * unit, bytes);
            else
                memset(to + c * unit, 0, bytes);
        }
        k->edge_rows[r] = (hl_conv_row){to - k->edge, l->rows[r].w, l->rows[r].n};
        to += cells * unit;
    }
    t->x = k->edge;
    t->rows = k->edge_rows;
}

static void run_tiles(const worker *k, const task *a, const line *l)
{
    const hl_gather *g = k->g;
    const gather_phase *p = k->p;
    const int64_t n = p->dim[2].n, step = p->dim[2].in_step * g->unit;
    const int64_t y_step = p->dim[2].out_step * g->os.s[HALO_W], tiles = hl_div_up(n, p->tile[2]);
    int64_t x_at[HL_TILE_LIST], y_at[HL_TILE_LIST];
    for (int i = 0; i < HL_TILE_LIST; i++) {
        x_at[i] = i * step;
        y_at[i] = i * y_step;
    }
    hl_conv_tile t = start_tile(k, a, l, x_at, y_at);
    hl_range r = {0, 0};
    for (int64_t i = 0, size = n / tiles, larger = n % tiles; i < tiles; i++) {
        r = (hl_range){r.hi, r.hi + size + (i < larger)};
        int np = (int)(r.hi - r.lo);
        t.x = l->x + r.lo * step;
        t.y = l->y + r.lo * y_step;
        t.rows = l->rows;
        bool left = r.lo < p->low[2], right = r.hi > p->high[2];
        enum hl_conv_step step_kind = p->step;
        if (p->cut)
            step_kind = (enum hl_conv_step)(HL_STEP_LANES + left + 2 * right);
        else if (left || right)
            copy_edge(k, l, r.lo, np, &t);
        tile_groups(k, a, &t, step_kind, np);
    }
}

/* The end of a chunk of rows that begins at `from`: not more than `terms` terms, or one row. */
static int64_t chunk_end(const hl_conv_row *rows, int64_t from, int64_t nrows, int64_t terms)
{
    int64_t sum = 0, end = from;
    for (; end < nrows; end++) {
        if (end > from && rows[end].n > terms - sum) break;
        sum += rows[end].n;
    }
    return end;
}

/* One line: all rows at once, or group by group in chunks of them. */
static void run_line(const worker *k, const task *a, const line *l)
{
    const int64_t most = k->g->line_terms;
    if (most == INT64_MAX || l->nrows < 2) {
        run_tiles(k, a, l);
        return;
    }
    task part = *a;
    for (int i = a->group0; i < a->group1; i++) {
        part.group0 = i;
        part.group1 = i + 1;
        for (int64_t r = 0, end; r < l->nrows; r = end) {
            end = chunk_end(l->rows, r, l->nrows, most);
            line sub = *l;
            sub.rows = l->rows + r;
            sub.nrows = end - r;
            if (l->which)
                sub.which = l->which + r;
            else
                sub.row0 = l->row0 + r;
            part.first = a->first && r == 0;
            part.last = a->last && end == l->nrows;
            run_tiles(k, &part, &sub);
        }
    }
}

/* nd by nh whole lines as one tile. */
static void run_lines(const worker *k, const task *a, const line *l, int64_t nd, int64_t nh)
{
    const hl_gather *g = k->g;
    const hl_gather_dim *dim = k->p->dim;
    int64_t x_at[HL_TILE_LIST], y_at[HL_TILE_LIST];
    int np = 0;
    for (int64_t d = 0; d < nd; d++)
        for (int64_t h = 0; h < nh; h++)
            for (int64_t w = 0; w < dim[2].n; w++, np++) {
                x_at[np] = hl_offset(&g->is, 0, 0, d * dim[0].in_step, h * dim[1].in_step, w * dim[2].in_step);
                y_at[np] = hl_offset(&g->os, 0, 0, d * dim[0].out_step, h * dim[1].out_step, w * dim[2].out_step);
            }
    hl_conv_tile t = start_tile(k, a, l, x_at, y_at);
    tile_groups(k, a, &t, HL_STEP_LIST, np);
}

/* ------------------------------------------------------------------------------------------------------------------- lines */

/* The task's rows that are readable from output line (d, h). */
static void list_line(const worker *k, const task *a, int64_t d, int64_t h, line *l)
{
    const gather_phase *p = k->p;
    const int64_t(*valid)[2] = k->g->valid;
    int64_t xd = d * p->dim[0].in_step, xh = h * p->dim[1].in_step, kept = 0;
    l->row0 = a->row0;
    l->rows = p->row + a->row0;
    l->nrows = a->row1 - a->row0;
    l->which = NULL;
    if (d >= p->low[0] && d < p->high[0] && h >= p->low[1] && h < p->high[1]) return;
    for (int64_t r = a->row0; r < a->row1; r++) {
        const gather_source *s = &p->source[r];
        if (xd + s->d < valid[0][0] || xd + s->d >= valid[0][1] || xh + s->h < valid[1][0] || xh + s->h >= valid[1][1]) continue;
        k->rows[kept] = p->row[r];
        k->which[kept++] = (int32_t)r;
    }
    l->rows = k->rows;
    l->which = k->which;
    l->nrows = kept;
}

static void run_task(const worker *k, const task *a)
{
    const hl_gather *g = k->g;
    const gather_phase *p = k->p;
    const hl_gather_dim *dim = p->dim;
    bool lines = p->tile[0] * p->tile[1] > 1;
    line l;
    for (int64_t d = a->d0; d < a->d1; d += p->tile[0])
        for (int64_t h = a->h0; h < a->h1; h += p->tile[1]) {
            list_line(k, a, d, h, &l);
            l.x = k->in + hl_offset(&g->is, a->n, 0, d * dim[0].in_step, h * dim[1].in_step, 0);
            l.y = k->out + hl_offset(&g->os, a->n, 0, dim[0].out0 + d * dim[0].out_step - k->d0, dim[1].out0 + h * dim[1].out_step - k->h0, dim[2].out0);
            if (lines)
                run_lines(k, a, &l, hl_min64(p->tile[0], a->d1 - d), hl_min64(p->tile[1], a->h1 - h));
            else
                run_line(k, a, &l);
        }
}

/* All chunks of rows, one after another over the task's positions. */
static void run_chunks(const worker *k, task *a)
{
    const gather_phase *p = k->p;
    a->row1 = 0;
    do {
        a->row0 = a->row1;
        a->row1 = chunk_end(p->row, a->row0, p->nrows, k->g->chunk_terms);
        a->first = a->row0 == 0;
        a->last = a->row1 == p->nrows;
        run_task(k, a);
    } while (a->row1 < p->nrows);
}

/* The task's cells, which are in the strip, into the outputs. */
static void pool_strip(const worker *k, const task *a)
{
    const hl_gather *g = k->g;
    const int64_t *side = g->pool.side, rows = (a->h1 - a->h0) / side[1], width = g->out.ext[HALO_W] / side[2];
    const gather_group *last = &g->group[a->group1 - 1];
    for (int64_t b = k->block0; b < last->block + last->ov; b++)
        for (int64_t h = 0; h < rows; h++) {
            const int64_t at[HALO_DIMS] = {a->n, b * g->kern->lanes, a->d0 / side[0], a->h0 / side[1] + h, 0};
            const float *z = k->strip + (b - k->block0) * g->os.s[HALO_C] + h * side[1] * g->os.s[HALO_H];
            hl_conv_pool_row(&g->pool, g->dev->kern, z, width, at, k->pooled, k->aux);
        }
}

static void run_pooled(worker *k, const task *all)
{
    const int64_t *side = k->g->pool.side, high = k->g->strip * side[1];
    task a = *all;
    k->out = k->strip;
    k->block0 = (int)k->g->group[all->group0].block;
    for (a.d0 = all->d0; a.d0 < all->d1; a.d0 += side[0])
        for (a.h0 = all->h0; a.h0 < all->h1; a.h0 += high) {
            a.d1 = a.d0 + side[0];
            a.h1 = hl_min64(a.h0 + high, all->h1);
            k->d0 = a.d0;
            k->h0 = a.h0;
            run_chunks(k, &a);
            pool_strip(k, &a);
        }
}

static void run_item(worker *k, int64_t item)
{
    gather_item i = hl_gather_item(k->g, item);
    k->p = i.phase;
    task a = {.n = i.n, .d0 = i.d.lo, .d1 = i.d.hi, .h0 = i.h.lo, .h1 = i.h.hi, .group0 = i.group0, .group1 = i.group1};
    if (k->g->pool.cells)
        run_pooled(k, &a);
    else
        run_chunks(k, &a);
}

/* --------------------------------------------------------------------------------------------------------------------- run */

static worker start_worker(const hl_gather *g, char *scratch, int thread)
{
    char *at = scratch + thread * hl_round_up(g->thread_bytes, 64);
    int64_t rows = hl_round_up(g->max_rows * (int64_t)sizeof(hl_conv_row), 64);
    worker k = {.g = g, .rows = (hl_conv_row *)at, .edge_rows = (hl_conv_row *)(at + rows)};
    k.edge = (float *)(at + 2 * rows);
    k.tile = k.edge + g->edge_floats;
    k.strip = k.tile + g->tile_floats;
    k.which = (int32_t *)(k.strip + g->strip_floats);
    return k;
}

void hl_gather_run(const hl_gather *g, const float *in, const float *image, const float *bias, float *out, uint8_t *aux, void *scratch)
{
    float *own_bias = (float *)hl_round_up((int64_t)(intptr_t)scratch, 64), *padded = own_bias + hl_round_up(g->bias_floats, 16);
    char *threads = (char *)(padded + g->pad_floats);
    if (g->pad) hl_conv_pad(g->dev, &g->in, &g->padded, in, padded);
    const float *x = (g->pad ? padded : in) + g->in_origin;
    int64_t items = 0;
    for (int i = 0; i < g->phases; i++) items += g->phase[i].items;
    if (bias)
        for (int64_t i = 0; i < g->bias_floats; i++) own_bias[i] = i < g->out.ext[HALO_C] ? bias[i] : 0.0f;
#pragma omp parallel num_threads(g->dev->threads)
    {
#ifdef _OPENMP
        int thread = omp_get_thread_num();
#else
        int thread = 0;
#endif
        worker k = start_worker(g, threads, thread);
        k.in = x;
        k.image = image;
        k.bias = bias ? own_bias : NULL;
        k.out = out + g->out_origin;
        k.pooled = out;
        k.aux = aux;
        k.stream = g->stream && (uintptr_t)k.out % ((size_t)g->kern->lanes * sizeof(float)) == 0;
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < items; i++) run_item(&k, i);
        if (k.stream) g->kern->fence();
    }
}
