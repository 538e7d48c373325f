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
 * the extents of a volume are, where every 2^k-th voxel would be one plane of it. The number i is that of the whole volume, so that ranks that see parts of it
 * keep together what one rank keeps.
 */
#include "comm/comm.h"
#include "train/metrics.h"

enum { KEEP_MOST = 1 << 20 };

typedef struct kept { uint32_t key; float truth; } kept;

typedef struct channel {
    struct sums { double n, error, mean_x, mean_y, sxx, syy, sxy; } sums;
    kept *kept;
    int64_t count;
    int level; /* keys below 2^(32 - level) are kept */
} channel;

struct hl_voxel_metrics {
    halo_context *ctx;
    int targets;
    hl_target *target;
    int64_t ext[3], voxels;
    double cells; /* of one channel, added */
    channel *channel;
};

halo_status hl_voxel_metrics_create(halo_context *ctx, int targets, const hl_target *target, const int64_t ext[3], hl_voxel_metrics **out)
{
    hl_voxel_metrics *m;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "metrics", &m));
    m->ctx = ctx;
    m->targets = targets;
    memcpy(m->ext, ext, sizeof(m->ext));
    m->voxels = ext[0] * ext[1] * ext[2];
    HL_GOTO(st, hl_calloc(ctx, (size_t)targets, sizeof(*m->target), "metrics", &m->target), destroy);
    HL_GOTO(st, hl_calloc(ctx, (size_t)targets, sizeof(*m->channel), "metrics", &m->channel), destroy);
    memcpy(m->target, target, (size_t)targets * sizeof(*target));
    for (int t = 0; t < targets; t++) HL_GOTO(st, hl_calloc(ctx, KEEP_MOST, sizeof(kept), "metrics", &m->channel[t].kept), destroy);
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

enum { LEVELS = 33 };

static uint64_t limit_of(int level) { return UINT64_C(1) << 32 >> level; }

static void thin_out(channel *c, int level)
{
    int64_t n = 0;
    c->level = level;
    for (int64_t i = 0; i < c->count; i++)
        if (c->kept[i].key < limit_of(level)) c->kept[n++] = c->kept[i];
    c->count = n;
}

static void keep(channel *c, int64_t number, double truth)
{
    uint32_t key = (uint32_t)((uint64_t)number * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    if (key >= limit_of(c->level)) return;
    if (c->count == KEEP_MOST) thin_out(c, c->level + 1);
    if (key < limit_of(c->level)) c->kept[c->count++] = (kept){key, (float)truth};
}

static void merge(struct sums *a, const struct sums *b)
{
    if (b->n == 0) return;
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
    struct sums b = {.n = (double)voxels};
    for (int64_t i = 0; i < voxels; i++) {
        double x = hl_physical(target, (double)truth[i]), y = hl_physical(target, (double)prediction[i]);
        b.mean_x += x / b.n;
        b.mean_y += y / b.n;
        b.error += fabs(x - y);
    }
    for (int64_t i = 0; i < voxels; i++) {
        double x = hl_physical(target, (double)truth[i]) - b.mean_x, y = hl_physical(target, (double)prediction[i]) - b.mean_y;
        b.sxx += x * x;
        b.syy += y * y;
        b.sxy += x * y;
    }
    merge(&c->sums, &b);
}

/* `first`: the number of the sample's first voxel. */
static void keep_truths(const hl_voxel_metrics *m, channel *c, const hl_target *target, int64_t first, const hl_cells *box, const float *truth)
{
    for (int64_t d = 0; d < box->ext[0]; d++)
        for (int64_t h = 0; h < box->ext[1]; h++) {
            int64_t row = first + ((box->lo[0] + d) * m->ext[1] + box->lo[1] + h) * m->ext[2] + box->lo[2];
            for (int64_t w = 0; w < box->ext[2]; w++) keep(c, row + w, hl_physical(target, (double)*truth++));
        }
}

void hl_voxel_metrics_add(hl_voxel_metrics *m, int64_t sample, const hl_cells *box, const float *truth, const float *prediction)
{
    int64_t voxels = box->ext[0] * box->ext[1] * box->ext[2];
    for (int t = 0; t < m->targets; t++) {
        add_one(&m->channel[t], &m->target[t], voxels, truth + t * voxels, prediction + t * voxels);
        keep_truths(m, &m->channel[t], &m->target[t], sample * m->voxels, box, truth + t * voxels);
    }
    m->cells += (double)voxels;
}

/* ------------------------------------------------------------------------------------------------------ ranks */

/* The lowest level at which all ranks together keep no more than there is room for: that of one rank. */
static halo_status agree_on_level(channel *c, halo_context *ctx)
{
    double count[LEVELS] = {0};
    for (int k = 0; k < LEVELS; k++)
        if (k < c->level) count[k] = KEEP_MOST + 1.0;
    for (int64_t i = 0; i < c->count; i++)
        for (int k = c->level; k < LEVELS && c->kept[i].key < limit_of(k); k++) count[k]++;
    HL_TRY(hl_comm_sum(ctx, count, LEVELS));
    int level = c->level;
    while (level < LEVELS - 1 && count[level] > KEEP_MOST) level++;
    thin_out(c, level);
    return HALO_OK;
}

/* What the others keep is added: no more than KEEP_MOST in all, but as many places as the most of any rank times their number on the way. */
static halo_status gather_kept(channel *c, halo_context *ctx)
{
    kept *mine = NULL, *all = NULL;
    HL_TRY(agree_on_level(c, ctx));
    double most = (double)c->count;
    HL_TRY(hl_comm_max(ctx, &most, 1));
    size_t n = (size_t)most;
    halo_status st = hl_calloc(ctx, n + 1, sizeof(*mine), "metrics", &mine);
    if (st == HALO_OK) st = hl_calloc(ctx, (n + 1) * (size_t)ctx->ranks, sizeof(*all), "metrics", &all);
    st = hl_agree(ctx, st);
    if (st == HALO_OK) {
        memcpy(mine + 1, c->kept, (size_t)c->count * sizeof(*mine));
        mine[0].key = (uint32_t)c->count; /* the first tells how many there are */
        st = hl_comm_gather(ctx, mine, (n + 1) * sizeof(*mine), all);
    }
    c->count = 0;
    for (int r = 0; r < ctx->ranks && st == HALO_OK; r++) {
        const kept *of = all + (size_t)r * (n + 1);
        memcpy(c->kept + c->count, of + 1, of->key * sizeof(*of));
        c->count += of->key;
    }
    free(all);
    free(mine);
    return st;
}

static halo_status merge_channel(channel *c, halo_context *ctx)
{
    struct sums *all = NULL;
    HL_AGREE(ctx, hl_calloc(ctx, (size_t)ctx->ranks, sizeof(*all), "metrics", &all));
    halo_status st = hl_comm_gather(ctx, &c->sums, sizeof(c->sums), all);
    c->sums = (struct sums){0};
    for (int r = 0; r < ctx->ranks; r++) merge(&c->sums, &all[r]);
    free(all);
    return st == HALO_OK ? gather_kept(c, ctx) : st;
}

halo_status hl_voxel_metrics_merge(hl_voxel_metrics *m, halo_context *ctx)
{
    if (ctx->ranks == 1) return HALO_OK;
    for (int t = 0; t < m->targets; t++) HL_TRY(merge_channel(&m->channel[t], ctx));
    return hl_comm_sum(ctx, &m->cells, 1);
}

bool hl_voxel_metrics_counts(const hl_voxel_metrics *m) { return m->cells > 0; }

halo_status hl_voxel_metrics_score(hl_voxel_metrics *m, hl_score *score, int64_t *samples)
{
    double *work;
    if (m->cells == 0) return hl_fail(m->ctx, HALO_ERR_USAGE, "no sample was evaluated");
    HL_TRY(hl_calloc(m->ctx, KEEP_MOST, sizeof(*work), "metrics", &work));
    for (int t = 0; t < m->targets; t++) {
        const channel *c = &m->channel[t];
        for (int64_t i = 0; i < c->count; i++) work[i] = (double)c->kept[i].truth;
        const struct sums *s = &c->sums;
        score[t].error = s->error / s->n;
        score[t].constant_error = hl_constant_error(work, c->count);
        score[t].correlation = s->sxx > 0 && s->syy > 0 ? fmax(-1, fmin(1, s->sxy / sqrt(s->sxx * s->syy))) : NAN;
    }
    free(work);
    *samples = (int64_t)(m->cells / (double)m->voxels);
    return HALO_OK;
}
