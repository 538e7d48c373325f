/* SPDX-License-Identifier: Apache-2.0 */
/*
 * voxels.c -- scores of targets that are volumes, in one pass and bounded memory.
 *
 * A sample gives its sums about its own means; they are merged into the totals by Chan, Golub and LeVeque (Algorithms for computing the sample variance,
 * 1983), so that large offsets cost no digits:
 *
 *     d = mean_b - mean_a,   mean = mean_a + d n_b / n,   S_xy = S_xy,a + S_xy,b + d_x d_y n_a n_b / n
 *
 * The median that the best constant sits on needs the truths themselves. Voxel i (counted over all samples) is kept while the upper bits of
 * i * 2^64 / golden ratio are below a limit, which is halved whenever the store is full: multiples of an irrational number are spread evenly, whatever
 * the extents of a volume are, where every 2^k-th voxel would be one plane of it.
 */
#include "train/metrics.h"

enum { KEEP_MOST = 1 << 20 };

typedef struct kept { uint32_t key; float truth; } kept;

typedef struct channel {
    double n, error, mean_x, mean_y, sxx, syy, sxy;
    kept *kept;
    int64_t count, seen;
    uint64_t limit; /* keys below it are kept; 2^32: all */
} channel;

struct hl_voxel_metrics {
    halo_context *ctx;
    int targets;
    hl_target *target;
    int64_t voxels, samples;
    channel *channel;
};

halo_status hl_voxel_metrics_create(halo_context *ctx, int targets, const hl_target *target, int64_t voxels, hl_voxel_metrics **out)
{
    hl_voxel_metrics *m;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "metrics", &m));
    m->ctx = ctx;
    m->targets = targets;
    m->voxels = voxels;
    HL_GOTO(st, hl_calloc(ctx, (size_t)targets, sizeof(*m->target), "metrics", &m->target), destroy);
    HL_GOTO(st, hl_calloc(ctx, (size_t)targets, sizeof(*m->channel), "metrics", &m->channel), destroy);
    memcpy(m->target, target, (size_t)targets * sizeof(*target));
    for (int t = 0; t < targets; t++) {
        m->channel[t].limit = UINT64_C(1) << 32;
        HL_GOTO(st, hl_calloc(ctx, KEEP_MOST, sizeof(kept), "metrics", &m->channel[t].kept), destroy);
    }
    *out = m;
    return HALO_OK;
destroy:
    hl_voxel_metrics_destroy(m);
    return st;
}

void hl_voxel_metrics_destroy(hl_voxel_metrics *m)
{
    if (!m) return;
    for (int t = 0; m->channel && t < m->targets; t++) free(m->channel[t].kept);
    free(m->channel);
    free(m->target);
    free(m);
}

static void thin_out(channel *c)
{
    int64_t n = 0;
    c->limit /= 2;
    for (int64_t i = 0; i < c->count; i++)
        if (c->kept[i].key < c->limit) c->kept[n++] = c->kept[i];
    c->count = n;
}

static void keep(channel *c, double truth)
{
    uint32_t key = (uint32_t)((uint64_t)c->seen++ * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    if (key >= c->limit) return;
    if (c->count == KEEP_MOST) thin_out(c);
    if (key < c->limit) c->kept[c->count++] = (kept){key, (float)truth};
}

static void merge(channel *a, const channel *b)
{
    double n = a->n + b->n, dx = b->mean_x - a->mean_x, dy = b->mean_y - a->mean_y, share = a->n * b->n / n;
    a->sxx += b->sxx + dx * dx * share;
    a->syy += b->syy + dy * dy * share;
    a->sxy += b->sxy + dx * dy * share;
    a->mean_x += dx * b->n / n;
    a->mean_y += dy * b->n / n;
    a->error += b->error;
    a->n = n;
}

static void add_one(channel *c, const hl_target *target, int64_t voxels, const float *truth, const float *prediction)
{
    channel b = {.n = (double)voxels};
    for (int64_t i = 0; i < voxels; i++) {
        double x = hl_physical(target, (double)truth[i]), y = hl_physical(target, (double)prediction[i]);
        b.mean_x += x / b.n;
        b.mean_y += y / b.n;
        b.error += fabs(x - y);
        keep(c, x);
    }
    for (int64_t i = 0; i < voxels; i++) {
        double x = hl_physical(target, (double)truth[i]) - b.mean_x, y = hl_physical(target, (double)prediction[i]) - b.mean_y;
        b.sxx += x * x;
        b.syy += y * y;
        b.sxy += x * y;
    }
    merge(c, &b);
}

void hl_voxel_metrics_add(hl_voxel_metrics *m, const float *truth, const float *prediction)
{
    for (int t = 0; t < m->targets; t++)
        add_one(&m->channel[t], &m->target[t], m->voxels, truth + t * m->voxels, prediction + t * m->voxels);
    m->samples++;
}

halo_status hl_voxel_metrics_score(hl_voxel_metrics *m, hl_score *score, int64_t *samples)
{
    double *work;
    if (m->samples == 0) return hl_fail(m->ctx, HALO_ERR_USAGE, "no sample was evaluated");
    HL_TRY(hl_calloc(m->ctx, KEEP_MOST, sizeof(*work), "metrics", &work));
    for (int t = 0; t < m->targets; t++) {
        const channel *c = &m->channel[t];
        for (int64_t i = 0; i < c->count; i++) work[i] = (double)c->kept[i].truth;
        score[t].error = c->error / c->n;
        score[t].constant_error = hl_constant_error(work, c->count);
        score[t].correlation = c->sxx > 0 && c->syy > 0 ? fmax(-1, fmin(1, c->sxy / sqrt(c->sxx * c->syy))) : NAN;
    }
    free(work);
    *samples = m->samples;
    return HALO_OK;
}
