/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard.c -- mean and standard deviation of a training set, for `data.zscore: set`: one pass over all samples as they are when their z-score is due,
 * that is after the transforms listed before it. Samples are merged by Chan, Golub and LeVeque (1983), see voxels.c:
 *
 *     d = mean_b - mean,  mean <- mean + d n_b / n,  S <- S + S_b + d^2 n_a n_b / n,  std = sqrt(S / n)
 *
 * Rank 0 reads and tells the others, so that the result does not depend on how many there are.
 */
#include "train/run.h"

typedef struct moments { double n, mean, sum; } moments;

static void add_sample(moments *m, const float *x, int64_t n)
{
    moments b = {.n = (double)n};
    for (int64_t i = 0; i < n; i++) b.mean += (double)x[i];
    b.mean /= b.n;
    for (int64_t i = 0; i < n; i++) b.sum += ((double)x[i] - b.mean) * ((double)x[i] - b.mean);
    double all = m->n + b.n, d = b.mean - m->mean;
    m->sum += b.sum + d * d * m->n * b.n / all;
    m->mean += d * b.n / all;
    m->n = all;
}

/* Transforms before the first z-score. */
static hl_loader_options loader_options(const hl_run *run)
{
    hl_loader_options o = {.batch = 1, .ranks = 1, .prefetch = (int)run->set.data.prefetch};
    hl_run_transforms(&run->set, &o);
    for (int i = 0; i < o.transforms; i++)
        if (o.transform[i] == HL_STANDARD) o.transforms = i;
    return o;
}

static halo_status measure(hl_run *run, double out[2])
{
    hl_loader_options o = loader_options(run);
    hl_source *source = run->source[HL_TRAIN];
    const int64_t *e = source->info.ext;
    const hl_loaded *b;
    moments m = {0};
    hl_loader *loader;
    halo_status st;
    HL_TRY(hl_loader_create(run->ctx, source, &o, &loader));
    HL_GOTO(st, hl_loader_start(loader, 0, 0), destroy);
    for (;;) {
        HL_GOTO(st, hl_loader_next(loader, &b), destroy);
        if (!b) break;
        add_sample(&m, b->x, e[0] * e[1] * e[2] * e[3]);
    }
    out[0] = m.mean;
    out[1] = sqrt(m.sum / m.n);
    if (!(out[1] > 0))
        st = hl_fail(run->ctx, HALO_ERR_USAGE, "'data.zscore: set': all values of the training data are %g, so that they have no z-score", m.mean);
destroy:
    hl_loader_destroy(loader);
    return st;
}

halo_status hl_run_standardise(hl_run *run)
{
    double x[2] = {0, 0};
    if (hl_settings_zscore(&run->set) != HL_ZSCORE_OF_SET) return HALO_OK;
    if (!run->source[HL_TRAIN])
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.zscore: set' was measured by the training run: give its directory or a checkpoint");
    HL_AGREE(run->ctx, run->ctx->rank == 0 ? measure(run, x) : HALO_OK);
    HL_TRY(hl_comm_broadcast(run->ctx, x, sizeof(x), 0));
    hl_settings_set_zscore(&run->set, x[0], x[1]);
    HL_INFO(run->ctx, "the training data has mean %g and standard deviation %g", x[0], x[1]);
    return HALO_OK;
}
