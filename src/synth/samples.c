/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c -- reads a data set in three parts, each sample straight into its features, in parallel over
 * samples. */
#include "synth/samples.h"

#include <stdio.h>

#include "base/file.h"
#include "io/convert.h"
#include "io/io.h"
#include "synth/features.h"
#include "tensor/operand.h"

const char *hl_sample_part(int part)
{
    static const char *const name[HL_SAMPLE_PARTS] = {"train", "val", "test"};
    return name[part];
}

/* ----------------------------------------------------------------------------------------------- samples */

static double physical(const hl_target *t, double stored)
{
    if (isfinite(t->mean) && isfinite(t->std)) return t->mean + stored * t->std;
    if (isfinite(t->low) && isfinite(t->high))
        return 0.5 * (t->low + t->high) + stored * 0.5 * (t->high - t->low);
    return stored;
}

static halo_status check_shape(hl_sample_tables *f, const hl_source *source, const char *path)
{
    const hl_source_info *info = &source->info;

    if (hl_target_volumes(info))
        return hl_fail(f->ctx, HALO_ERR_SHAPE, "'%s' has volumes for targets: a baseline takes numbers", path);
    if (info->targets < 1 || info->targets > HL_BASELINE_TARGETS_MAX)
        return hl_fail(f->ctx, HALO_ERR_SHAPE, "'%s' has %d targets: a baseline takes 1 to %d", path,
                       info->targets, HL_BASELINE_TARGETS_MAX);
    if (f->targets != 0 && f->targets != info->targets)
        return hl_fail(f->ctx, HALO_ERR_SHAPE, "'%s' has %d targets, the training set has %d", path,
                       info->targets, f->targets);
    f->targets = info->targets;
    for (int t = 0; t < f->targets; t++) snprintf(f->name[t], sizeof(f->name[t]), "%s", info->target[t].name);
    return HALO_OK;
}

typedef struct reading { /* one thread's buffers */
    hl_features *features;
    void *raw;
    float *x, *y;
} reading;

static halo_status reading_open(halo_context *ctx, const hl_source_info *info, reading *r)
{
    size_t cells = (size_t)(info->ext[0] * info->ext[1] * info->ext[2] * info->ext[3]);

    HL_TRY(hl_features_create(ctx, info->ext, &r->features));
    HL_TRY(hl_calloc(ctx, cells, hl_dtype_size(info->dtype), "a sample", &r->raw));
    HL_TRY(hl_calloc(ctx, cells, sizeof(float), "a sample", &r->x));
    return hl_calloc(ctx, (size_t)info->targets, sizeof(float), "targets", &r->y);
}

static void reading_close(reading *r)
{
    hl_features_destroy(r->features);
    free(r->raw);
    free(r->x);
    free(r->y);
}

static halo_status read_one(const hl_sample_tables *f, hl_source *source, int64_t sample, reading *r,
                            double *x, double *y)
{
    const hl_source_info *info = &source->info;

    HL_TRY(hl_source_read(source, sample, NULL, r->raw, NULL, r->y));
    hl_to_float(info->dtype, r->raw, r->x, info->ext[0] * info->ext[1] * info->ext[2] * info->ext[3]);
    hl_features_of(r->features, r->x, x);
    for (int t = 0; t < f->targets; t++) y[t] = physical(&info->target[t], (double)r->y[t]);
    for (int i = 0; i < f->features; i++)
        if (!isfinite(x[i]))
            return hl_fail(f->ctx, HALO_ERR_NONFINITE, "sample %" PRId64 " of '%s' is not finite", sample,
                           info->description);
    return HALO_OK;
}

/* Features of the samples sample[0 .. n). */
static halo_status read_samples(hl_sample_tables *f, hl_source *source, const int64_t *sample, int64_t n,
                                hl_sample_table *out)
{
    halo_status failed = HALO_OK;

    out->n = n;
    HL_TRY(hl_calloc(f->ctx, (size_t)(n * f->features), sizeof(double), "features", &out->x));
    HL_TRY(hl_calloc(f->ctx, (size_t)(n * f->targets), sizeof(double), "targets", &out->y));
#pragma omp parallel
    {
        reading r = {0};
        halo_status st = reading_open(f->ctx, &source->info, &r);
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = 0; i < n; i++)
            if (st == HALO_OK)
                st = read_one(f, source, sample[i], &r, out->x + i * f->features, out->y + i * f->targets);
        if (st != HALO_OK) __atomic_store_n(&failed, st, __ATOMIC_RELAXED);
        reading_close(&r);
    }
    return failed;
}

static halo_status count_features(hl_sample_tables *f, const hl_source_info *info)
{
    hl_features *features;
    HL_TRY(hl_features_create(f->ctx, info->ext, &features));
    int n = hl_features_count(features);
    hl_features_destroy(features);
    if (f->features != 0 && f->features != n)
        return hl_fail(f->ctx, HALO_ERR_SHAPE, "'%s' differs from the training set in the shape of a sample",
                       info->description);
    f->features = n;
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------- parts */

/* Opens a data set and lists its samples. The caller closes *source and frees *all. */
static halo_status open_source(hl_sample_tables *f, const char *path, const int64_t crop[3], hl_source **source,
                               int64_t **all)
{
    hl_source_options o = {.path = path, .format = "auto", .crop = {crop[0], crop[1], crop[2]}};
    hl_source *s;
    halo_status st;

    HL_TRY(hl_source_open(f->ctx, &o, &s));
    HL_GOTO(st, check_shape(f, s, path), close_source);
    HL_GOTO(st, count_features(f, &s->info), close_source);
    HL_GOTO(st, hl_calloc(f->ctx, (size_t)s->info.samples, sizeof(**all), "sample numbers", all),
            close_source);
    for (int64_t i = 0; i < s->info.samples; i++) (*all)[i] = i;
    *source = s;
    return HALO_OK;
close_source:
    hl_source_close(s);
    return st;
}

static halo_status read_part(hl_sample_tables *f, const char *path, const int64_t crop[3], hl_sample_table *out)
{
    hl_source *source;
    int64_t *all;

    HL_TRY(open_source(f, path, crop, &source, &all));
    halo_status st = read_samples(f, source, all, source->info.samples, out);
    free(all);
    hl_source_close(source);
    return st;
}

/* 80 : 10 : 10 by universes, in the permutation of `seed`. */
static halo_status read_split(hl_sample_tables *f, const hl_baseline_data *data)
{
    hl_source *source;
    int64_t *all, *order = NULL, *picked = NULL;
    halo_status st;

    HL_TRY(open_source(f, data->path, data->crop, &source, &all));
    int64_t groups = source->info.groups,
            edge[HL_SAMPLE_PARTS + 1] = {0, groups * 8 / 10, groups * 9 / 10, groups};
    HL_GOTO(st, hl_calloc(f->ctx, (size_t)groups, sizeof(*order), "groups", &order), close_source);
    HL_GOTO(st, hl_calloc(f->ctx, (size_t)source->info.samples, sizeof(*picked), "samples", &picked),
            close_source);
    for (int64_t i = 0; i < groups; i++) all[i] = -1; /* from here on: the part that a group is in */
    hl_permutation(data->seed, 0, groups, order);           /* order[rank] = group */
    for (int p = 0; p < HL_SAMPLE_PARTS; p++) {
        int64_t n = 0;
        for (int64_t i = edge[p]; i < edge[p + 1]; i++) all[order[i]] = p;
        for (int64_t i = 0; i < source->info.samples; i++)
            if (all[source->ops->group_of(source, i)] == p) picked[n++] = i;
        HL_GOTO(st, read_samples(f, source, picked, n, &f->part[p]), close_source);
        for (int64_t i = edge[p]; i < edge[p + 1]; i++) all[order[i]] = -1;
    }
close_source:
    free(order);
    free(picked);
    free(all);
    hl_source_close(source);
    return st;
}

/* DIR/train or DIR/train.h5; *found NULL when there is neither. Freed by the caller. */
static halo_status find_part(halo_context *ctx, const char *dir, const char *name, char **found)
{
    static const char *const suffix[] = {"", ".h5", ".hdf5"};
    char file[32];

    *found = NULL;
    for (size_t i = 0; i < HL_COUNT(suffix); i++) {
        char *path;
        snprintf(file, sizeof(file), "%s%s", name, suffix[i]);
        HL_TRY(hl_path_join(ctx, dir, file, &path));
        if (hl_file_exists(path)) {
            *found = path;
            return HALO_OK;
        }
        free(path);
    }
    return HALO_OK;
}

static halo_status read_directory(hl_sample_tables *f, const hl_baseline_data *data)
{
    for (int p = 0; p < HL_SAMPLE_PARTS; p++) {
        char *path;
        HL_TRY(find_part(f->ctx, data->path, hl_sample_part(p), &path));
        if (!path && p == HL_SAMPLE_TRAIN) return read_split(f, data);
        if (!path)
            return hl_fail(f->ctx, HALO_ERR_IO, "'%s' has 'train' but no '%s'", data->path, hl_sample_part(p));
        halo_status st = read_part(f, path, data->crop, &f->part[p]);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

halo_status hl_sample_tables_read(hl_sample_tables *f, const hl_baseline_data *data)
{
    if (data->path) return read_directory(f, data);
    for (int p = 0; p < HL_SAMPLE_PARTS; p++) HL_TRY(read_part(f, data->part[p], data->crop, &f->part[p]));
    return HALO_OK;
}

void hl_sample_tables_free(hl_sample_tables *t)
{
    for (int p = 0; p < HL_SAMPLE_PARTS; p++) {
        free(t->part[p].x);
        free(t->part[p].y);
    }
}
