/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c -- ridge regression from the features of features.c to the targets.
 *
 *   w = argmin |x w - y|^2 + n lambda |w|^2
 *
 * Features and targets are standardised with the training set's means and deviations; lambda is chosen for
 * each target by the error on the validation set. Errors are those of `halo evaluate`: mean |prediction -
 * truth| in physical units on the test set, beside the best constant's.
 */
#include "synth/baseline.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "io/convert.h"
#include "io/io.h"
#include "synth/features.h"
#include "synth/ridge.h"

enum { TRAIN = 0, VALIDATION, TEST, PARTS };

static const char *const part_name[PARTS] = {"train", "val", "test"};
static const double lambdas[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0};

typedef struct table { /* samples of one part */
    int64_t n;
    double *x; /* [n, features] */
    double *y; /* [n, targets] physical */
} table;

typedef struct fitting {
    halo_context *ctx;
    int features, targets;
    char name[HL_BASELINE_TARGETS_MAX][64];
    table part[PARTS];
    double *mean, *deviation;               /* [features] of the training set */
    double *target_mean, *target_deviation; /* [targets] */
    double *gram, *moment, *scratch, *w;
} fitting;

/* ----------------------------------------------------------------------------------------------- samples */

static double physical(const hl_target *t, double stored)
{
    if (isfinite(t->mean) && isfinite(t->std)) return t->mean + stored * t->std;
    if (isfinite(t->low) && isfinite(t->high))
        return 0.5 * (t->low + t->high) + stored * 0.5 * (t->high - t->low);
    return stored;
}

static halo_status check_shape(fitting *f, const hl_source *source, const char *path)
{
    const hl_source_info *info = &source->info;

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

static halo_status read_one(const fitting *f, hl_source *source, int64_t sample, reading *r, double *x,
                            double *y)
{
    const hl_source_info *info = &source->info;

    HL_TRY(source->ops->read(source, sample, r->raw, r->y));
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
static halo_status read_samples(fitting *f, hl_source *source, const int64_t *sample, int64_t n, table *out)
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

static halo_status count_features(fitting *f, const hl_source_info *info)
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
static halo_status open_source(fitting *f, const char *path, int64_t crop, hl_source **source, int64_t **all)
{
    hl_source_options o = {.path = path, .format = "auto", .crop = {crop, crop, crop}};
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

static halo_status read_part(fitting *f, const char *path, int64_t crop, table *out)
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
static halo_status read_split(fitting *f, const char *path, int64_t crop, uint64_t seed)
{
    hl_source *source;
    int64_t *all, *order = NULL, *picked = NULL;
    halo_status st;

    HL_TRY(open_source(f, path, crop, &source, &all));
    int64_t groups = source->info.groups, edge[PARTS + 1] = {0, groups * 8 / 10, groups * 9 / 10, groups};
    HL_GOTO(st, hl_calloc(f->ctx, (size_t)groups, sizeof(*order), "groups", &order), close_source);
    HL_GOTO(st, hl_calloc(f->ctx, (size_t)source->info.samples, sizeof(*picked), "samples", &picked),
            close_source);
    for (int64_t i = 0; i < groups; i++) all[i] = -1; /* from here on: the part that a group is in */
    hl_permutation(seed, 0, groups, order);           /* order[rank] = group */
    for (int p = 0; p < PARTS; p++) {
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

static halo_status read_parts(fitting *f, const char *dir, int64_t crop, uint64_t seed)
{
    for (int p = 0; p < PARTS; p++) {
        char *path;
        HL_TRY(find_part(f->ctx, dir, part_name[p], &path));
        if (!path && p == TRAIN) return read_split(f, dir, crop, seed);
        if (!path) return hl_fail(f->ctx, HALO_ERR_IO, "'%s' has 'train' but no '%s'", dir, part_name[p]);
        halo_status st = read_part(f, path, crop, &f->part[p]);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------- fit */

/* Mean and deviation of each column of v[n, m]; a column without deviation gets infinity, which makes it 0
 * when standardised. */
static void column_moments(const double *v, int64_t n, int m, double *mean, double *deviation)
{
    for (int j = 0; j < m; j++) {
        double average = 0.0, square = 0.0;
        for (int64_t i = 0; i < n; i++) {
            double d = v[i * m + j] - average;
            average += d / (double)(i + 1);
            square += d * (v[i * m + j] - average);
        }
        double s = sqrt(square / (double)n);
        mean[j] = average;
        deviation[j] = s > 1e-12 * (1.0 + fabs(average)) ? s : INFINITY;
    }
}

static void standardise(double *v, int64_t n, int m, const double *mean, const double *deviation)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < m; j++) v[i * m + j] = (v[i * m + j] - mean[j]) / deviation[j];
}

/* gram = x'x and moment = x'y of the standardised training set. */
static void accumulate(fitting *f)
{
    const table *t = &f->part[TRAIN];
    int m = f->features;

#pragma omp parallel for schedule(dynamic, 1)
    for (int a = 0; a < m; a++) {
        for (int b = 0; b <= a; b++) {
            double sum = 0.0;
            for (int64_t i = 0; i < t->n; i++) sum += t->x[i * m + a] * t->x[i * m + b];
            f->gram[a * m + b] = f->gram[b * m + a] = sum;
        }
        for (int j = 0; j < f->targets; j++) {
            double sum = 0.0;
            for (int64_t i = 0; i < t->n; i++)
                sum +=
                    t->x[i * m + a] * (t->y[i * f->targets + j] - f->target_mean[j]) / f->target_deviation[j];
            f->moment[a * f->targets + j] = sum;
        }
    }
}

static double predict(const fitting *f, const table *t, int64_t i, int target)
{
    double sum = 0.0;
    for (int a = 0; a < f->features; a++) sum += t->x[i * f->features + a] * f->w[a * f->targets + target];
    return isfinite(f->target_deviation[target]) ? f->target_mean[target] + f->target_deviation[target] * sum
                                                 : f->target_mean[target];
}

static double mean_error(const fitting *f, const table *t, int target)
{
    double sum = 0.0;
    for (int64_t i = 0; i < t->n; i++) sum += fabs(predict(f, t, i, target) - t->y[i * f->targets + target]);
    return sum / (double)t->n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean |truth - median|. `truth` is the caller's copy and gets sorted. */
static double constant_error(double *truth, int64_t n)
{
    double sum = 0.0;
    qsort(truth, (size_t)n, sizeof(*truth), by_value);
    for (int64_t i = 0; i < n; i++) sum += fabs(truth[i] - 0.5 * (truth[n / 2] + truth[(n - 1) / 2]));
    return sum / (double)n;
}

static halo_status score(const fitting *f, int target, hl_baseline_target *out)
{
    const table *t = &f->part[TEST];
    double *value, sp = 0.0, st = 0.0, spp = 0.0, stt = 0.0, spt = 0.0, n = (double)t->n;

    HL_TRY(hl_calloc(f->ctx, (size_t)t->n, sizeof(*value), "truths", &value));
    for (int64_t i = 0; i < t->n;
         i++) { /* relative to the training mean, which keeps the sums well conditioned */
        double p = predict(f, t, i, target) - f->target_mean[target],
               y = t->y[i * f->targets + target] - f->target_mean[target];
        value[i] = y;
        sp += p;
        st += y;
        spp += p * p;
        stt += y * y;
        spt += p * y;
    }
    out->error = mean_error(f, t, target);
    out->constant_error = constant_error(value, t->n);
    out->correlation = (spt - sp * st / n) / sqrt((spp - sp * sp / n) * (stt - st * st / n));
    free(value);
    return HALO_OK;
}

/* Every lambda; each target keeps the one that is best on the validation set. */
static halo_status choose_and_score(fitting *f, hl_baseline *b)
{
    double best[HL_BASELINE_TARGETS_MAX];

    for (int t = 0; t < f->targets; t++) best[t] = INFINITY;
    for (size_t l = 0; l < HL_COUNT(lambdas); l++) {
        double penalty = lambdas[l] * (double)f->part[TRAIN].n;
        if (!hl_ridge_solve(f->features, f->targets, f->gram, f->moment, penalty, f->scratch, f->w)) continue;
        for (int t = 0; t < f->targets; t++) {
            double error = mean_error(f, &f->part[VALIDATION], t);
            if (!(error < best[t])) continue;
            best[t] = error;
            HL_TRY(score(f, t, &b->target[t]));
            b->target[t].lambda = lambdas[l];
        }
    }
    return HALO_OK;
}

static halo_status allocate(fitting *f)
{
    size_t m = (size_t)f->features, t = (size_t)f->targets;
    HL_TRY(hl_calloc(f->ctx, m, sizeof(double), "a regression", &f->mean));
    HL_TRY(hl_calloc(f->ctx, m, sizeof(double), "a regression", &f->deviation));
    HL_TRY(hl_calloc(f->ctx, t, sizeof(double), "a regression", &f->target_mean));
    HL_TRY(hl_calloc(f->ctx, t, sizeof(double), "a regression", &f->target_deviation));
    HL_TRY(hl_calloc(f->ctx, m * m, sizeof(double), "a regression", &f->gram));
    HL_TRY(hl_calloc(f->ctx, m * m, sizeof(double), "a regression", &f->scratch));
    HL_TRY(hl_calloc(f->ctx, m * t, sizeof(double), "a regression", &f->moment));
    return hl_calloc(f->ctx, m * t, sizeof(double), "a regression", &f->w);
}

static halo_status fit(fitting *f, hl_baseline *b)
{
    for (int p = 0; p < PARTS; p++)
        if (f->part[p].n < 2)
            return hl_fail(f->ctx, HALO_ERR_USAGE, "%" PRId64 " samples for '%s': too few for a regression",
                           f->part[p].n, part_name[p]);
    HL_TRY(allocate(f));
    column_moments(f->part[TRAIN].x, f->part[TRAIN].n, f->features, f->mean, f->deviation);
    column_moments(f->part[TRAIN].y, f->part[TRAIN].n, f->targets, f->target_mean, f->target_deviation);
    for (int p = 0; p < PARTS; p++)
        standardise(f->part[p].x, f->part[p].n, f->features, f->mean, f->deviation);
    accumulate(f);
    return choose_and_score(f, b);
}

static void release(fitting *f)
{
    for (int p = 0; p < PARTS; p++) {
        free(f->part[p].x);
        free(f->part[p].y);
    }
    free(f->mean);
    free(f->deviation);
    free(f->target_mean);
    free(f->target_deviation);
    free(f->gram);
    free(f->moment);
    free(f->scratch);
    free(f->w);
}

halo_status hl_baseline_fit(halo_context *ctx, const char *path, int64_t crop, uint64_t seed,
                            hl_baseline *result)
{
    fitting *f;
    hl_baseline b = {0};
    double start = hl_now();

    HL_TRY(hl_calloc(ctx, 1, sizeof(*f), "a regression", &f));
    f->ctx = ctx;
    halo_status st = read_parts(f, path, crop, seed);
    if (st == HALO_OK) st = fit(f, &b);
    if (st == HALO_OK) {
        b.targets = f->targets;
        b.features = f->features;
        b.train = f->part[TRAIN].n;
        b.validation = f->part[VALIDATION].n;
        b.test = f->part[TEST].n;
        b.seconds = hl_now() - start;
        for (int t = 0; t < f->targets; t++)
            snprintf(b.target[t].name, sizeof(b.target[t].name), "%s", f->name[t]);
        *result = b;
    }
    release(f);
    free(f);
    return st;
}

/* ------------------------------------------------------------------------------------------------ output */

void hl_baseline_table(const hl_baseline *b, hl_str *out)
{
    hl_str_addf(out,
                "ridge regression on %d features: %" PRId64 " training, %" PRId64 " validation, %" PRId64
                " test samples, %.1f s\n\n",
                b->features, b->train, b->validation, b->test, b->seconds);
    hl_str_addf(out, "%-16s %12s %12s %8s %12s\n", "target", "error", "constant", "ratio", "correlation");
    for (int t = 0; t < b->targets; t++) {
        const hl_baseline_target *r = &b->target[t];
        hl_str_addf(out, "%-16s %12.5g %12.5g %8.3f %12.3f%s\n", r->name, r->error, r->constant_error,
                    r->error / r->constant_error, r->correlation,
                    r->error > 0.95 * r->constant_error ? "  not constrained" : "");
    }
}

void hl_baseline_json(const hl_baseline *b, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_int(j, "features", b->features);
    hl_json_int(j, "train", b->train);
    hl_json_int(j, "validation", b->validation);
    hl_json_int(j, "test", b->test);
    hl_json_number(j, "seconds", b->seconds);
    hl_json_array(j, "targets");
    for (int t = 0; t < b->targets; t++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", b->target[t].name);
        hl_json_number(j, "error", b->target[t].error);
        hl_json_number(j, "constant_error", b->target[t].constant_error);
        hl_json_number(j, "correlation", b->target[t].correlation);
        hl_json_number(j, "lambda", b->target[t].lambda);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    hl_json_end_object(j);
}
