/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winograd_weights.c -- the gradient of 3^3 weights, stride 1, by Winograd's F(3^3, m^3), m = 2 or 4: a tile
 * of m^3 cells of dy meets the a^3 cells of x (a = m + 2) whose products with it make the 27 sums, at the
 * same points as forward:
 *
 *   U[p][t][i] = B' x_t,  V[p][t][o] = G dy_t,  S[p][i][o] = sum over tiles t of U V,  dw[o][i] = A' S, once
 * at the end
 *
 * Tiles go in batches that fit the last-level cache: all threads transform a batch, wait, and share out its
 * points; S of a point is always added up in the order of the tiles, whoever does it, so that thread counts
 * do not change a bit. Memory: a^3 in out floats for S, beside a batch. (Lavin & Gray 2016, section 4.1
 * treats the gradient as F(3, m) too.)
 */
#include "winograd.h"

enum {
    LEAST_CHANNELS = 16,
    BATCH = 6 << 20,  /* bytes of U and V */
    LEAST_TILES = 16, /* of a batch: S is read and written for each */
    MOST_TILES = 512, /* summed up in one chain: roundings grow with its length */
};

struct hl_wino_weights {
    const hl_cpu_device *dev;
    const hl_wino_kern *kern;
    const hl_conv_kern *sums;
    int m;
    bool bias, accumulate;
    hl_conv_shape s;
    hl_strides xs, ys;
    int64_t dw_origin, db_origin;
    int64_t points, in_blocks, out_blocks;
    int64_t tiles[3], all, batch;
    int64_t x_valid[3][2], y_valid[3][2];
};

typedef struct job {
    const float *x, *dy;
    float *u, *v, *s, *lines, *dw, *db; /* lines: bias sums of each plane of dy */
} job;

/* Channel block b of tile t, its first cell `shift` before the tile's, side cells wide, into points at `to`,
 * `step` apart. */
static void transform(const hl_wino_weights *p, bool gradient, const float *from, int64_t t, int64_t b,
                      float *to, int64_t step)
{
    float cube[HL_WINO_POINTS * 16];
    const int64_t *k = p->tiles, per = k[0] * k[1] * k[2], side = gradient ? p->m : p->m + 2;
    const hl_strides *s = gradient ? &p->ys : &p->xs;
    const int64_t(*valid)[2] = (const int64_t(*)[2])(gradient ? p->y_valid : p->x_valid);
    int64_t at[3] = {t % per / (k[1] * k[2]) * p->m, t / k[2] % k[1] * p->m, t % k[2] * p->m};
    bool inside = true;
    for (int i = 0; i < 3; i++) {
        if (!gradient) at[i] -= p->s.w.pad_lo[i];
        inside = inside && at[i] >= valid[i][0] && at[i] + side <= valid[i][1];
    }
    const float *cells = from + hl_offset(s, t / per, b * s->block, at[0], at[1], at[2]);
    int64_t d = s->s[HALO_D], h = s->s[HALO_H];
    if (!inside) {
        hl_wino_cut(s, valid, side, cells, at, cube);
        cells = cube, d = side * side * s->block, h = side * s->block;
    }
    (gradient ? p->kern->gradient : p->kern->input)(p->m, cells, d, h, to, step);
}

/* By every thread of a team: tiles [t0, t1). u, v: [point][channel block][tile of the batch][lanes]. */
static void run_batch(const hl_wino_weights *p, const job *j, int64_t t0, int64_t t1)
{
    int64_t block = p->kern->block, both = p->in_blocks + p->out_blocks, slab = p->batch * block;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < (t1 - t0) * both; i++) {
        int64_t t = i % (t1 - t0), b = i / (t1 - t0);
        if (b < p->in_blocks)
            transform(p, false, j->x, t0 + t, b, j->u + b * slab + t * block, p->in_blocks * slab);
        else
            transform(p, true, j->dy, t0 + t, b - p->in_blocks, j->v + (b - p->in_blocks) * slab + t * block,
                      p->out_blocks * slab);
    }
#pragma omp for schedule(static)
    for (int64_t q = 0; q < p->points * p->out_blocks; q++) {
        int64_t point = q / p->out_blocks, o = q % p->out_blocks;
        const float *v = j->v + q * slab, *u = j->u + point * p->in_blocks * slab;
        for (int64_t i = 0; i < p->in_blocks; i++)
            p->kern->correlate(u + i * slab, v, t1 - t0, t0 > 0,
                               j->s + ((point * p->out_blocks + o) * p->in_blocks + i) * block * block);
    }
}

/* dw of channel i and out block o. */
static void finish_kernels(const hl_wino_weights *p, const job *j, int64_t o, int64_t i)
{
    float g[27 * 16];
    int64_t block = p->kern->block, outs = hl_min64(block, p->s.out - o * block);
    const float *s = j->s + (o * p->in_blocks + i / block) * block * block + i % block * block;
    p->kern->kernels(p->m, s, p->out_blocks * p->in_blocks * block * block, g);
    for (int64_t l = 0; l < outs; l++) {
        float *to = j->dw + ((o * block + l) * p->s.in + i) * 27;
        for (int t = 0; t < 27; t++) to[t] = p->accumulate ? to[t] + g[t * block + l] : g[t * block + l];
    }
}

/* Sums of one plane (sample, out block, d) of dy. */
static void sum_plane(const hl_wino_weights *p, const job *j, int64_t i)
{
    int64_t block = p->kern->block, depth = p->s.y.ext[HALO_D], d = i % depth, o = i / depth % p->out_blocks,
            n = i / depth / p->out_blocks;
    hl_conv_corr c = {.dw = j->lines + i * block,
                      .nd = 1,
                      .nh = p->s.y.ext[HALO_H],
                      .nw = p->s.y.ext[HALO_W],
                      .dy_h = p->ys.s[HALO_H]};
    c.dy = j->dy + hl_offset(&p->ys, n, o * block, d, 0, 0);
    memset(c.dw, 0, (size_t)block * sizeof(float));
    p->sums->sum(&c);
}

static int64_t planes(const hl_wino_weights *p)
{
    return p->bias ? p->s.n * p->out_blocks * p->s.y.ext[HALO_D] : 0;
}

static void finish_bias(const hl_wino_weights *p, const job *j)
{
    int64_t block = p->kern->block, depth = p->s.y.ext[HALO_D];
    for (int64_t c = 0; c < p->s.out; c++) {
        double sum = 0;
        for (int64_t n = 0; n < p->s.n; n++)
            for (int64_t d = 0; d < depth; d++)
                sum += (double)j->lines[((n * p->out_blocks + c / block) * depth + d) * block + c % block];
        j->db[c] = p->accumulate ? (float)(j->db[c] + sum) : (float)sum;
    }
}

static int64_t u_floats(const hl_wino_weights *p)
{
    return p->points * p->batch * p->in_blocks * p->kern->block;
}
static int64_t v_floats(const hl_wino_weights *p)
{
    return p->points * p->batch * p->out_blocks * p->kern->block;
}
static int64_t s_floats(const hl_wino_weights *p)
{
    return p->points * p->in_blocks * p->out_blocks * p->kern->block * p->kern->block;
}

static size_t scratch_of(const hl_wino_weights *p)
{
    return (size_t)(u_floats(p) + v_floats(p) + s_floats(p) + planes(p) * p->kern->block) * sizeof(float) +
           64;
}

void hl_wino_weights_run(const hl_wino_weights *p, const halo_op_args *args)
{
    job j = {.x = (const float *)args->ptr[HALO_X] + hl_box_offset(&p->s.x),
             .dy = (const float *)args->ptr[HALO_DY] + hl_box_offset(&p->s.y),
             .dw = (float *)args->ptr[HALO_DW] + p->dw_origin,
             .db = p->bias ? (float *)args->ptr[HALO_DB] + p->db_origin : NULL,
             .u = (float *)hl_round_up((int64_t)(intptr_t)args->scratch, 64)};
    j.v = j.u + u_floats(p);
    j.s = j.v + v_floats(p);
    j.lines = j.s + s_floats(p);
#pragma omp parallel num_threads(p->dev->threads)
    {
        for (int64_t t = 0; t < p->all; t += p->batch) run_batch(p, &j, t, hl_min64(t + p->batch, p->all));
#pragma omp for schedule(static)
        for (int64_t k = 0; k < p->out_blocks * p->s.in; k++) finish_kernels(p, &j, k / p->s.in, k % p->s.in);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < planes(p); i++) sum_plane(p, &j, i);
    }
    if (p->bias) finish_bias(p, &j);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * plan */

static bool set_up(hl_wino_weights *p, const hl_cpu_device *dev, const halo_op_desc *desc, int m)
{
    *p = (hl_wino_weights){.dev = dev, .m = m, .accumulate = desc->accumulate, .bias = hl_has(desc, HALO_DB)};
    if (!hl_conv_shape_of(desc, HALO_X, HALO_DY, &p->s) || !hl_wino_window(&p->s.w) ||
        p->s.x.layout != p->s.y.layout)
        return false;
    p->sums = hl_conv_kern_for(dev, p->s.y.layout);
    p->kern = hl_wino_kern_find(dev->isa, (int)hl_layout_block(p->s.y.layout));
    if (!p->kern || !p->sums || (dev->winograd > 0 && p->s.in < LEAST_CHANNELS)) return false;
    p->xs = hl_operand_strides(&p->s.x);
    p->ys = hl_operand_strides(&p->s.y);
    p->dw_origin = hl_box_offset(&desc->t[HALO_DW]);
    if (p->bias) p->db_origin = hl_box_offset(&desc->t[HALO_DB]);
    p->points = hl_wino_points(m);
    p->in_blocks = hl_div_up(p->s.in, p->kern->block);
    p->out_blocks = hl_div_up(p->s.out, p->kern->block);
    p->all = p->s.n;
    for (int i = 0; i < 3; i++) {
        int64_t n = p->s.y.ext[HALO_D + i], pad = p->s.w.pad_lo[i];
        p->tiles[i] = hl_div_up(n, m);
        p->all *= p->tiles[i];
        p->y_valid[i][1] = n;
        p->x_valid[i][0] = hl_max64(-p->s.x.margin[i][0], -pad);
        p->x_valid[i][1] = hl_min64(p->s.x.ext[HALO_D + i] + p->s.x.margin[i][1], n + 2 - pad);
    }
    int64_t tile = p->points * (p->in_blocks + p->out_blocks) * p->kern->block * (int64_t)sizeof(float);
    p->batch = hl_min64(p->all, hl_max64(LEAST_TILES, hl_min64(MOST_TILES, BATCH / tile)));
    return true;
}

/* S is read and written for each batch, and transformed at the end: that takes outputs enough. */
static bool pays(const hl_wino_weights *p)
{
    return hl_operand_box_elements(&p->s.y) / p->s.out >= (p->m == 4 ? 1024 : 256);
}

int hl_wino_weights_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    int n = 0, cap = abs(dev->winograd);
    for (int m = 4; m >= 2; m -= 2) {
        hl_wino_weights p;
        if (m > cap || !set_up(&p, dev, desc, m) || (dev->winograd > 0 && !pays(&p))) continue;
        hl_cpu_candidate(&dev->super, m == 4 ? "winograd-f4" : "winograd-f2",
                         (double)(p.points * p.out_blocks), &out[n]);
        out[n].id = HL_WINO_ID + m;
        out[n].scratch = scratch_of(&p);
        n++;
    }
    return n;
}

halo_status hl_wino_weights_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                                 hl_wino_weights **out)
{
    hl_wino_weights *p;
    HL_TRY(hl_calloc(dev->super.ctx, 1, sizeof(*p), "convolution plan", &p));
    HL_BUG_UNLESS(set_up(p, dev, desc, choice->id - HL_WINO_ID));
    *out = p;
    return HALO_OK;
}

void hl_wino_weights_free(hl_wino_weights *p)
{
    free(p);
}
