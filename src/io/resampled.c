/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resampled.c -- the samples of a source at one spacing. Of n voxels at spacing s along an axis, n' = round(n s / s') at spacing s':
 *
 *     x'(i) = trilinear interpolation of x at (i + 1/2) s'/s - 1/2, held at the border       y'(i) = y at the nearest voxel
 *
 * which is what `halo convert --spacing` does (scans_pack.c). A box reads the voxels that it needs and no others.
 */
#include "io/convert.h"
#include "io/source.h"

#include <pthread.h>
#include <stdio.h>

typedef struct resampled {
    hl_source base;
    hl_source *all; /* owned */
    int64_t (*from)[3], (*ext)[3]; /* [samples] as they are, and as they are delivered */
    double (*ratio)[3];            /* s' / s */
    pthread_mutex_t lock; /* guards what follows */
    char *raw, *plain;
    size_t raw_room, plain_room;
} resampled;

/* Where cell i of an axis of n at this ratio lies. */
static double place(int64_t i, double ratio, int64_t n) { return fmin(fmax(((double)i + 0.5) * ratio - 0.5, 0), (double)(n - 1)); }

/* What of the sample the cells of a cut come from. */
static hl_cut source_cut(const resampled *r, int64_t sample, const hl_cut *cut)
{
    hl_cut c = {.at = {0, 0, 0}};
    for (int k = 0; k < 3; k++) {
        const int64_t n = r->from[sample][k];
        c.lo[k] = (int64_t)place(cut->lo[k], r->ratio[sample][k], n);
        int64_t last = hl_min64(n - 1, (int64_t)place(cut->lo[k] + cut->ext[k] - 1, r->ratio[sample][k], n) + 1);
        c.ext[k] = c.into[k] = last - c.lo[k] + 1;
    }
    return c;
}

typedef struct spot { int64_t lo; float high; } spot;

/* Cell i of an axis as a cell of what was read and the weight of the next; nearest: 0 or 1. */
static spot find(int64_t i, double ratio, int64_t n, int64_t first, int64_t read, bool nearest)
{
    double at = place(i, ratio, n) - (double)first;
    spot s = {.lo = hl_min64((int64_t)at, hl_max64(0, read - 2))};
    double high = read == 1 ? 0 : at - (double)s.lo;
    s.high = nearest ? (float)(high > 0.5) : (float)high;
    return s;
}

/* Sums over the corners whose weight is not 0, so that a class stays exact. */
static float corners(const float *v, const int64_t ext[3], const spot at[3])
{
    float sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        float weight = 1;
        int64_t cell = 0;
        for (int k = 0; k < 3; k++) {
            int up = corner >> k & 1;
            weight *= up ? at[k].high : 1 - at[k].high;
            cell = cell * ext[k] + at[k].lo + up;
        }
        if (weight != 0) sum += weight * v[cell];
    }
    return sum;
}

/* v [channels, read] to their places in out [channels, cut->into]. */
static void interpolate(const resampled *r, int64_t sample, const hl_cut *read, const hl_cut *cut, int64_t channels, const float *v, bool nearest, float *out)
{
    const double *ratio = r->ratio[sample];
    const int64_t *n = r->from[sample];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t d = 0; d < cut->ext[0]; d++)
            for (int64_t h = 0; h < cut->ext[1]; h++) {
                spot at[3] = {find(cut->lo[0] + d, ratio[0], n[0], read->lo[0], read->ext[0], nearest), find(cut->lo[1] + h, ratio[1], n[1], read->lo[1], read->ext[1], nearest)};
                float *row = out + ((c * cut->into[0] + cut->at[0] + d) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2];
                for (int64_t w = 0; w < cut->ext[2]; w++) {
                    at[2] = find(cut->lo[2] + w, ratio[2], n[2], read->lo[2], read->ext[2], nearest);
                    row[w] = corners(v + c * read->ext[0] * read->ext[1] * read->ext[2], read->ext, at);
                }
            }
}

static halo_status read_both(resampled *r, int64_t sample, const hl_cut *cut, int64_t channels, bool targets, float *out)
{
    hl_cut read = source_cut(r, sample, cut);
    int64_t n = channels * read.ext[0] * read.ext[1] * read.ext[2];
    HL_TRY(hl_scratch(r->base.ctx, &r->plain, &r->plain_room, (size_t)n * sizeof(float), "a part of a sample"));
    float *v = (float *)(void *)r->plain;
    if (targets) HL_TRY(r->all->ops->target(r->all, sample, &read, v));
    else {
        HL_TRY(hl_scratch(r->base.ctx, &r->raw, &r->raw_room, (size_t)n * hl_dtype_size(r->all->info.dtype), "a part of a sample"));
        HL_TRY(r->all->ops->read(r->all, sample, &read, r->raw));
        hl_to_float(r->all->info.dtype, r->raw, v, n);
    }
    r->base.count.data = r->all->count.data;
    r->base.count.other = r->all->count.other;
    interpolate(r, sample, &read, cut, channels, v, targets, out);
    return HALO_OK;
}

static halo_status read_cut(hl_source *base, int64_t sample, const hl_cut *cut, void *x)
{
    resampled *r = (resampled *)base;
    pthread_mutex_lock(&r->lock);
    halo_status st = read_both(r, sample, cut, base->info.ext[0], false, x);
    pthread_mutex_unlock(&r->lock);
    return st;
}

static halo_status read_target(hl_source *base, int64_t sample, const hl_cut *cut, float *y)
{
    resampled *r = (resampled *)base;
    pthread_mutex_lock(&r->lock);
    halo_status st = read_both(r, sample, cut, base->info.targets, true, y);
    pthread_mutex_unlock(&r->lock);
    return st;
}

static int64_t group_of(hl_source *base, int64_t sample)
{
    hl_source *all = ((resampled *)base)->all;
    return all->ops->group_of(all, sample);
}

static void id_of(hl_source *base, int64_t sample, char *out, size_t size)
{
    hl_source *all = ((resampled *)base)->all;
    all->ops->id_of(all, sample, out, size);
}

static const char *image_of(hl_source *base, int64_t sample)
{
    hl_source *all = ((resampled *)base)->all;
    return all->ops->image_of ? all->ops->image_of(all, sample) : NULL;
}

static void extents(hl_source *base, int64_t sample, int64_t ext[3]) { memcpy(ext, ((resampled *)base)->ext[sample], 3 * sizeof(*ext)); }

static void close_both(hl_source *base)
{
    resampled *r = (resampled *)base;
    hl_source_close(r->all);
    pthread_mutex_destroy(&r->lock);
    free(r->from);
    free(r->ext);
    free(r->ratio);
    free(r->raw);
    free(r->plain);
    hl_source_free(base);
}

static const hl_source_ops ops = {.name = "resampled", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_both, .image_of = image_of, .extents = extents};

static halo_status measure(resampled *r, const double spacing[3])
{
    int64_t samples = r->all->info.samples;
    HL_TRY(hl_calloc(r->base.ctx, (size_t)samples, sizeof(*r->from), "extents of samples", &r->from));
    HL_TRY(hl_calloc(r->base.ctx, (size_t)samples, sizeof(*r->ext), "extents of samples", &r->ext));
    HL_TRY(hl_calloc(r->base.ctx, (size_t)samples, sizeof(*r->ratio), "spacings of samples", &r->ratio));
    for (int64_t i = 0; i < samples; i++) {
        double s[3];
        HL_TRY(r->all->ops->spacing(r->all, i, s));
        hl_source_extents(r->all, i, r->from[i]);
        for (int k = 0; k < 3; k++) {
            r->ratio[i][k] = spacing[k] / s[k];
            r->ext[i][k] = hl_max64(1, (int64_t)llround((double)r->from[i][k] * s[k] / spacing[k]));
        }
    }
    return HALO_OK;
}

static halo_status copy_targets(resampled *r)
{
    const hl_source_info *i = &r->all->info;
    HL_TRY(hl_calloc(r->base.ctx, (size_t)hl_max64(1, i->targets), sizeof(*i->target), "targets", &r->base.info.target));
    if (i->targets) memcpy(r->base.info.target, i->target, (size_t)i->targets * sizeof(*i->target));
    return HALO_OK;
}

halo_status hl_resampled_open(hl_source *all, const double spacing[3], hl_source **source)
{
    resampled *r;
    hl_source_info *i;
    if (!all->ops->spacing) return hl_fail(all->ctx, HALO_ERR_USAGE, "'data.spacing' is of NIfTI images, whose voxels have one: %s", all->info.description);
    HL_TRY(hl_calloc(all->ctx, 1, sizeof(*r), "a resampled data set", &r));
    r->base.ops = &ops;
    r->base.ctx = all->ctx;
    r->all = all;
    i = &r->base.info;
    *i = all->info;
    i->target = NULL;
    i->dtype = HALO_F32;
    pthread_mutex_init(&r->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = copy_targets(r);
    if (st == HALO_OK) st = measure(r, spacing);
    if (st != HALO_OK) {
        r->all = NULL; /* the caller's still */
        close_both(&r->base);
        return st;
    }
    memcpy(r->base.box, r->ext[0], sizeof(r->base.box));
    snprintf(i->description, sizeof(i->description), "%.190s, resampled to %g x %g x %g", all->info.description, spacing[0], spacing[1], spacing[2]);
    *source = &r->base;
    return HALO_OK;
}
