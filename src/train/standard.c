/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard.c -- mean and standard deviation of a training set, for `data.zscore: set`: one pass over all samples as they are when their z-score is due,
 * that is after the transforms listed before it. Samples are merged by Chan, Golub and LeVeque (1983), see voxels.c:
 *
 *     d = mean_b - mean,  mean <- mean + d n_b / n,  S <- S + S_b + d^2 n_a n_b / n,  std = sqrt(S / n)
 *
 * The ranks that hold the first samples together read all of them, each its own cells, and tell the others: with whole samples that is rank 0, and the result does
 * not depend on how many there are. Of patches it is the volumes that are measured, by the first rank of them.
 */
#include "io/cutter.h"
#include "train/run.h"

static hl_moments moments_of(const float *x, int64_t n)
{
    hl_moments m = {.n = (double)n};
    for (int64_t i = 0; i < n; i++) m.mean += (double)x[i];
    m.mean /= m.n;
    for (int64_t i = 0; i < n; i++) m.sum += ((double)x[i] - m.mean) * ((double)x[i] - m.mean);
    return m;
}

/* Transforms before the first z-score, of the cells that are this rank's own. */
static hl_loader_options loader_options(const hl_run *run)
{
    hl_loader_options o = {.batch = 1, .ranks = 1, .prefetch = (int)run->set.data.prefetch};
    const int64_t *in = run->net->layer[0].out + 1;
    hl_run_transforms(&run->set, &o);
    for (int i = 0; i < o.transforms; i++)
        if (o.transform[i] == HL_STANDARD) o.transforms = i;
    for (int k = 0; k < 3; k++) {
        hl_range own = hl_grid_range(&run->grid, k, in[k]);
        o.x.lo[k] = own.lo;
        o.x.ext[k] = hl_range_len(own);
    }
    o.own = o.x;
    o.y = (hl_cells){.ext = {1, 1, 1}}; /* no use for them */
    return o;
}

/* On any rank of the group: its own message is enough, the others end without one. */
static bool any_failed(const hl_run *run, halo_status st)
{
    double failed = st != HALO_OK;
    return hl_comm_max(run->team->group, &failed, 1) != HALO_OK || failed > 0;
}

static halo_status measure_own(hl_run *run, hl_moments *m)
{
    hl_loader_options o = loader_options(run);
    hl_source *source = run->source[HL_TRAIN];
    const hl_loaded *b = NULL;
    hl_loader *loader = NULL;
    halo_status st = hl_loader_create(run->ctx, source, &o, &loader);
    if (st == HALO_OK) st = hl_loader_start(loader, 0, 0);
    for (;;) {
        if (st == HALO_OK) st = hl_run_next(run, loader, &b);
        if (any_failed(run, st) || !b) break;
        *m = hl_moments_merge(*m, moments_of(b->x, source->info.ext[0] * o.x.ext[0] * o.x.ext[1] * o.x.ext[2]));
    }
    hl_loader_destroy(loader);
    return st;
}

/* Of volumes of any extents, slab by slab. */
static halo_status measure_volumes(hl_run *run, hl_moments *m)
{
    hl_source *source = run->source[HL_TRAIN];
    hl_loader_options o = loader_options(run);
    hl_cutter *cutter = NULL;
    halo_status st = HALO_OK;
    if (run->team->group->rank == 0) st = hl_cutter_create(source, &o, &cutter);
    for (int64_t i = 0; i < source->info.samples && cutter && st == HALO_OK; i++) {
        hl_moments one;
        st = hl_cutter_moments(cutter, i, o.transforms, &one);
        if (st == HALO_OK) *m = hl_moments_merge(*m, one);
    }
    hl_cutter_destroy(cutter);
    return st;
}

/* Of the first group of ranks. */
static halo_status measure(hl_run *run, double out[2])
{
    halo_context *group = run->team->group;
    hl_moments m = {0}, *all = NULL;
    halo_status st = hl_run_patches(&run->set) ? measure_volumes(run, &m) : measure_own(run, &m);
    if (any_failed(run, st)) return st;
    HL_TRY(hl_calloc(run->ctx, (size_t)group->ranks, sizeof(*all), "moments", &all));
    st = hl_comm_gather(group, &m, sizeof(m), all);
    for (int r = 1; r < group->ranks; r++) all[0] = hl_moments_merge(all[0], all[r]);
    out[0] = all[0].mean;
    out[1] = sqrt(all[0].sum / all[0].n);
    free(all);
    if (st == HALO_OK && !(out[1] > 0))
        st = hl_fail(run->ctx, HALO_ERR_USAGE, "'data.zscore: set': all values of the training data are %g, so that they have no z-score", out[0]);
    return st;
}

halo_status hl_run_standardise(hl_run *run)
{
    double x[2] = {0, 0};
    if (hl_settings_zscore(&run->set) != HL_ZSCORE_OF_SET) return HALO_OK;
    if (!run->source[HL_TRAIN])
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.zscore: set' was measured by the training run: give its directory or a checkpoint");
    HL_AGREE(run->ctx, run->grid.data_at == 0 ? measure(run, x) : HALO_OK);
    HL_TRY(hl_comm_broadcast(run->ctx, x, sizeof(x), 0));
    hl_settings_set_zscore(&run->set, x[0], x[1]);
    HL_INFO(run->ctx, "the training data has mean %g and standard deviation %g", x[0], x[1]);
    return HALO_OK;
}
