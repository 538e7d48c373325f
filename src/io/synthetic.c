/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic.c -- volumes from no file, for smoke tests and benches: a pure function of (seed, sample number,
 * cell), so that ranks, readers and resumed runs agree without talking. What is to be learned is really in
 * the volume:
 *
 *     x[c, cell] = 2 (1 + 0.3 t1) (1 + a n[c, cell] + 0.4 t2 b[c, block])    a = 0.35 (1 + 0.6 t0),  n, b
 * uniform in (-1, 1)
 *
 * with targets t0 (width), t1 (mean), t2 (power at the scale of blocks, an eighth of the box); targets from
 * the fourth on are the values of b in the blocks 0, 1, ... of channel 0. x is positive, so that every
 * transform is defined on it. Targets that are volumes are the blocks without the noise: y[k, cell] = t2 b[k mod C, block].
 *
 * With K classes t2 is 1 and the target of a cell, or of the sample from the first block, is the class floor(K (1 + b[0, block]) / 2).
 */
#include "base/rng.h"
#include "io/source.h"

#include <stdio.h>

#define BLOCKS 8 /* per axis */

typedef struct synthetic_source {
    hl_source base;
    uint64_t seed;
    int64_t first; /* of the samples, in the endless row of samples of this seed */
    int64_t classes;
} synthetic_source;

enum { WHAT_TARGETS = 0, WHAT_BLOCKS, WHAT_CELLS }; /* low bits of the second counter, above it the channel */

static double symmetric(uint32_t v)
{
    return ((double)v + 0.5) * 0x1p-31 - 1.0;
}

/* The uniform number `index` of a kind; four come from one call. */
static double number_of(const synthetic_source *s, int64_t sample, int kind, int64_t channel, int64_t index)
{
    uint64_t second = (uint64_t)sample << 2 | (uint64_t)kind,
             first = (uint64_t)channel << 40 | (uint64_t)index >> 2;
    return symmetric(hl_philox(s->seed, HL_STREAM_SYNTHETIC, first, second).v[index & 3]);
}

static int64_t block_of(int64_t i, int64_t n)
{
    return i * BLOCKS / n;
}

/* n cells of a row of `row` cells, from its cell `at` on; `first` is the number of its first cell. */
static void fill_row(const synthetic_source *s, int64_t sample, int64_t channel, int64_t first, int64_t row, int64_t at,
                     float *x, int64_t n, const double *block, double mean, double width)
{
    uint64_t second = (uint64_t)sample << 2 | WHAT_CELLS;
    hl_random r = {{0}};
    for (int64_t i = 0; i < n; i++) {
        int64_t index = first + at + i;
        if (i == 0 || (index & 3) == 0)
            r = hl_philox(s->seed, HL_STREAM_SYNTHETIC, (uint64_t)channel << 40 | (uint64_t)index >> 2,
                          second);
        x[i] = (float)(mean * (1 + width * symmetric(r.v[index & 3]) + block[block_of(at + i, row)]));
    }
}

/* Row (i, j) of a cut in channel c of its array. */
static float *row_of(const hl_cut *p, float *out, int64_t c, int64_t i, int64_t j)
{
    return out + ((c * p->into[0] + p->at[0] + i) * p->into[1] + p->at[1] + j) * p->into[2] + p->at[2];
}

static void fill(const synthetic_source *s, int64_t sample, const hl_cut *p, float *x, const double t[3])
{
    const int64_t *e = s->base.info.ext;
    for (int64_t c = 0; c < e[0]; c++)
        for (int64_t d = p->lo[0]; d < p->lo[0] + p->ext[0]; d++)
            for (int64_t h = p->lo[1]; h < p->lo[1] + p->ext[1]; h++) {
                double block[BLOCKS];
                int64_t corner = (block_of(d, e[1]) * BLOCKS + block_of(h, e[2])) * BLOCKS,
                        row = (d * e[2] + h) * e[3];
                for (int b = 0; b < BLOCKS; b++)
                    block[b] = 0.4 * t[2] * number_of(s, sample, WHAT_BLOCKS, c, corner + b);
                fill_row(s, sample, c, row, e[3], p->lo[2], row_of(p, x, c, d - p->lo[0], h - p->lo[1]), p->ext[2], block,
                         2 * (1 + 0.3 * t[1]), 0.35 * (1 + 0.6 * t[0]));
            }
}

/* Numbers are below 1. */
static double class_of(const synthetic_source *s, double number) { return floor(0.5 * (1 + number) * (double)s->classes); }

static void fill_target(const synthetic_source *s, int64_t sample, const hl_cut *p, float *y, double strength)
{
    const hl_source_info *info = &s->base.info;
    const int64_t *e = info->target_ext;
    for (int64_t k = 0; k < info->targets; k++)
        for (int64_t d = p->lo[0]; d < p->lo[0] + p->ext[0]; d++)
            for (int64_t h = p->lo[1]; h < p->lo[1] + p->ext[1]; h++) {
                double block[BLOCKS];
                float *row = row_of(p, y, k, d - p->lo[0], h - p->lo[1]);
                int64_t corner = (block_of(d, e[0]) * BLOCKS + block_of(h, e[1])) * BLOCKS;
                for (int b = 0; b < BLOCKS; b++) {
                    double x = number_of(s, sample, WHAT_BLOCKS, k % info->ext[0], corner + b);
                    block[b] = s->classes ? class_of(s, x) : strength * x;
                }
                for (int64_t w = 0; w < p->ext[2]; w++) row[w] = (float)block[block_of(p->lo[2] + w, e[2])];
            }
}

static void numbers_of(const synthetic_source *s, int64_t sample, double t[3])
{
    for (int k = 0; k < 3; k++) t[k] = (double)(float)number_of(s, sample, WHAT_TARGETS, 0, k);
    if (s->classes) t[2] = 1;
}

static halo_status read_cut(hl_source *source, int64_t sample, const hl_cut *cut, void *x)
{
    const synthetic_source *s = (const synthetic_source *)source;
    double t[3];
    numbers_of(s, sample + s->first, t);
    fill(s, sample + s->first, cut, x, t);
    return HALO_OK;
}

static halo_status read_target(hl_source *source, int64_t sample, const hl_cut *cut, float *y)
{
    const synthetic_source *s = (const synthetic_source *)source;
    double t[3];
    sample += s->first;
    numbers_of(s, sample, t);
    if (hl_target_volumes(&source->info)) {
        fill_target(s, sample, cut, y, t[2]);
        return HALO_OK;
    }
    if (s->classes) {
        y[0] = (float)class_of(s, number_of(s, sample, WHAT_BLOCKS, 0, 0));
        return HALO_OK;
    }
    for (int k = 0; k < source->info.targets; k++)
        y[k] = (float)(k < 3 ? t[k] : number_of(s, sample, WHAT_BLOCKS, 0, k - 3));
    return HALO_OK;
}

static int64_t group_of(hl_source *s, int64_t sample)
{
    (void)s;
    return sample;
}

static void id_of(hl_source *s, int64_t sample, char *out, size_t size)
{
    snprintf(out, size, "synthetic#%" PRId64, sample + ((const synthetic_source *)s)->first);
}

static const hl_source_ops synthetic_ops = {
    .name = "synthetic", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = hl_source_free};

static halo_status set_targets(synthetic_source *s, const hl_source_options *o)
{
    static const char *const names[3] = {"width", "mean", "clumping"};
    hl_source_info *info = &s->base.info;
    HL_TRY(hl_source_targets(&s->base, o, "synthetic", "y", o->outputs ? o->outputs : 3));
    for (int k = 0; k < 3; k++)
        if (o->target_ext[k] > 0) info->target_ext[k] = o->target_ext[k];
    for (int t = 0; t < info->targets; t++) {
        if (hl_target_volumes(info)) snprintf(info->target[t].name, sizeof(info->target[t].name), "blocks_%d", t);
        else if (t < 3) snprintf(info->target[t].name, sizeof(info->target[t].name), "%s", names[t]);
        info->target[t].low = -1;
        info->target[t].high = 1;
    }
    if (s->classes) { /* numbers that stand for nothing else */
        snprintf(info->target[0].name, sizeof(info->target[0].name), "class");
        info->target[0].low = info->target[0].high = NAN;
    }
    return HALO_OK;
}

static halo_status set_info(synthetic_source *s, const hl_source_options *o)
{
    hl_source_info *info = &s->base.info;
    int64_t cells = 1;
    info->ext[0] = o->channels ? o->channels : 1;
    for (int k = 0; k < 3; k++) info->ext[k + 1] = o->size[k] ? o->size[k] : 32;
    for (int k = 0; k < 4; k++)
        if (info->ext[k] < 1 || !hl_mul64(cells, info->ext[k], &cells) || cells >= INT64_C(1) << 40)
            return hl_fail(s->base.ctx, HALO_ERR_SHAPE, "synthetic samples of that size make no sense");
    HL_TRY(set_targets(s, o));
    info->samples = info->groups = o->group_count         ? o->group_count
                                   : o->synthetic_samples ? o->synthetic_samples
                                                          : 256;
    s->first = o->group_first;
    info->dtype = HALO_F32;
    info->whole_periodic = true;
    if (info->samples < 1 || s->first < 0)
        return hl_fail(s->base.ctx, HALO_ERR_USAGE, "%" PRId64 " synthetic samples", info->samples);
    snprintf(info->description, sizeof(info->description),
             "%" PRId64 " synthetic sample%s of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64,
             info->samples, HL_S(info->samples), info->ext[0], info->ext[1], info->ext[2], info->ext[3]);
    return HALO_OK;
}

halo_status hl_synthetic_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    synthetic_source *s = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "a source", &s));
    s->base.ops = &synthetic_ops;
    s->base.ctx = ctx;
    s->seed = o->seed;
    s->classes = o->classes;
    halo_status st = set_info(s, o);
    if (st == HALO_OK)
        *source = &s->base;
    else
        hl_source_free(&s->base);
    return st;
}
