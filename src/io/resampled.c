/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resampled.c -- the samples of a source at one spacing, as `halo convert --spacing` makes them (resample.h). A box reads the voxels that it needs and no others.
 */
#include "io/convert.h"
#include "io/resample.h"
#include "io/wrapped.h"

#include <pthread.h>
#include <stdio.h>

typedef struct resampled {
    hl_wrapped super;
    int64_t (*from)[3], (*ext)[3]; /* [samples] as they are, and as they are delivered */
    double (*ratio)[3];            /* s' / s */
    pthread_mutex_t lock; /* guards what follows */
    char *raw, *plain, *lines;
    size_t raw_room, plain_room, lines_room;
} resampled;

/* What of the sample the cells of a cut come from. */
static hl_cut source_cut(const resampled *r, int64_t sample, const hl_cut *cut)
{
    hl_cut c = {.at = {0, 0, 0}};
    for (int k = 0; k < 3; k++) {
        const int64_t n = r->from[sample][k];
        c.lo[k] = (int64_t)hl_resample_place(cut->lo[k], r->ratio[sample][k], n);
        int64_t last = hl_min64(n - 1, (int64_t)hl_resample_place(cut->lo[k] + cut->ext[k] - 1, r->ratio[sample][k], n) + 1);
        c.ext[k] = c.into[k] = last - c.lo[k] + 1;
    }
    return c;
}

/* Where the cells of a cut lie along each axis, one axis behind the other. */
static halo_status make_lines(resampled *r, int64_t sample, const hl_cut *read, const hl_cut *cut, bool nearest, hl_spot *line[3])
{
    HL_TRY(hl_scratch(r->super.base.ctx, &r->lines, &r->lines_room, (size_t)(cut->ext[0] + cut->ext[1] + cut->ext[2]) * sizeof(hl_spot), "places of cells"));
    line[0] = (hl_spot *)(void *)r->lines;
    for (int k = 0; k < 3; k++) {
        hl_resample_line(cut->lo[k], cut->ext[k], r->ratio[sample][k], r->from[sample][k], read->lo[k], read->ext[k], nearest, line[k]);
        if (k < 2) line[k + 1] = line[k] + cut->ext[k];
    }
    return HALO_OK;
}

/* v [channels, read] to their places in out [channels, cut->into]. */
static halo_status interpolate(resampled *r, int64_t sample, const hl_cut *read, const hl_cut *cut, int64_t channels, const float *v, bool nearest, float *out)
{
    hl_spot *line[3];
    HL_TRY(make_lines(r, sample, read, cut, nearest, line));
    for (int64_t c = 0; c < channels; c++, v += read->ext[0] * read->ext[1] * read->ext[2])
        for (int64_t d = 0; d < cut->ext[0]; d++)
            for (int64_t h = 0; h < cut->ext[1]; h++) {
                float *row = out + ((c * cut->into[0] + cut->at[0] + d) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2];
                hl_resample_row(v, read->ext, line[0][d], line[1][h], line[2], cut->ext[2], row);
            }
    return HALO_OK;
}

static halo_status read_both(resampled *r, int64_t sample, const hl_cut *cut, int64_t channels, bool targets, float *out)
{
    hl_source *all = r->super.inner;
    hl_cut read = source_cut(r, sample, cut);
    int64_t n = channels * read.ext[0] * read.ext[1] * read.ext[2];
    HL_TRY(hl_scratch(r->super.base.ctx, &r->plain, &r->plain_room, (size_t)n * sizeof(float), "a part of a sample"));
    float *v = (float *)(void *)r->plain;
    if (targets) HL_TRY(all->ops->target(all, sample, &read, v));
    else {
        HL_TRY(hl_scratch(r->super.base.ctx, &r->raw, &r->raw_room, (size_t)n * hl_dtype_size(all->info.dtype), "a part of a sample"));
        HL_TRY(all->ops->read(all, sample, &read, r->raw));
        hl_to_float(all->info.dtype, r->raw, v, n);
    }
    hl_wrapped_count(&r->super.base);
    return interpolate(r, sample, &read, cut, channels, v, targets, out);
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

static void extents(hl_source *base, int64_t sample, int64_t ext[3]) { memcpy(ext, ((resampled *)base)->ext[sample], 3 * sizeof(*ext)); }

static void close_both(hl_source *base)
{
    resampled *r = (resampled *)base;
    pthread_mutex_destroy(&r->lock);
    free(r->from);
    free(r->ext);
    free(r->ratio);
    free(r->raw);
    free(r->plain);
    free(r->lines);
    hl_wrapped_close(base);
}

static const hl_source_ops ops = {.name = "resampled", .read = read_cut, .target = read_target, .group_of = hl_wrapped_group_of, .id_of = hl_wrapped_id_of, .close = close_both,
                                  .image_of = hl_wrapped_image_of, .extents = extents};

static halo_status measure(resampled *r, const double spacing[3])
{
    hl_source *all = r->super.inner;
    int64_t samples = all->info.samples;
    HL_TRY(hl_calloc(r->super.base.ctx, (size_t)samples, sizeof(*r->from), "extents of samples", &r->from));
    HL_TRY(hl_calloc(r->super.base.ctx, (size_t)samples, sizeof(*r->ext), "extents of samples", &r->ext));
    HL_TRY(hl_calloc(r->super.base.ctx, (size_t)samples, sizeof(*r->ratio), "spacings of samples", &r->ratio));
    for (int64_t i = 0; i < samples; i++) {
        double s[3];
        HL_TRY(all->ops->spacing(all, i, s));
        hl_source_extents(all, i, r->from[i]);
        for (int k = 0; k < 3; k++) {
            r->ratio[i][k] = spacing[k] / s[k];
            r->ext[i][k] = hl_resample_extent(r->from[i][k], s[k], spacing[k]);
        }
    }
    return HALO_OK;
}

halo_status hl_resampled_open(hl_source *all, const double spacing[3], hl_source **source)
{
    resampled *r;
    if (!all->ops->spacing) return hl_fail(all->ctx, HALO_ERR_USAGE, "'data.spacing' is of NIfTI images, whose voxels have one: %s", all->info.description);
    HL_TRY(hl_wrapped_new(all, &ops, sizeof(*r), &r));
    hl_source *s = &r->super.base;
    s->info.dtype = HALO_F32;
    pthread_mutex_init(&r->lock, NULL); /* the default kind cannot fail on Linux */
    r->super.inner = all;
    halo_status st = measure(r, spacing);
    if (st != HALO_OK) {
        r->super.inner = NULL; /* the caller's still */
        close_both(s);
        return st;
    }
    memcpy(s->box, r->ext[0], sizeof(s->box));
    snprintf(s->info.description, sizeof(s->info.description), "%.190s, resampled to %g x %g x %g", all->info.description, spacing[0], spacing[1], spacing[2]);
    *source = s;
    return HALO_OK;
}
