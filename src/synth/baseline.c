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
#include "synth/ridge.h"
#include "synth/samples.h"

static const double lambdas[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0};

typedef struct fitting {
    hl_sample_tables samples;
    double *mean, *deviation;               /* [features] of the training set */
    double *target_mean, *target_deviation; /* [targets] */
    double *gram, *moment, *scratch, *w;
} fitting;

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
    const hl_sample_table *t = &f->samples.part[HL_SAMPLE_TRAIN];
    int m = f->samples.features;

#pragma omp parallel for schedule(dynamic, 1)
    for (int a = 0; a < m; a++) {
        for (int b = 0; b <= a; b++) {
            double sum = 0.0;
            for (int64_t i = 0; i < t->n; i++) sum += t->x[i * m + a] * t->x[i * m + b];
            f->gram[a * m + b] = f->gram[b * m + a] = sum;
        }
        for (int j = 0; j < f->samples.targets; j++) {
            double sum = 0.0;
            for (int64_t i = 0; i < t->n; i++)
                sum += t->x[i * m + a] * (t->y[i * f->samples.targets + j] - f->target_mean[j]) /
                       f->target_deviation[j];
            f->moment[a * f->samples.targets + j] = sum;
        }
    }
}

static double predict(const fitting *f, const hl_sample_table *t, int64_t i, int target)
{
    double sum = 0.0;
    for (int a = 0; a < f->samples.features; a++)
        sum += t->x[i * f->samples.features + a] * f->w[a * f->samples.targets + target];
    return isfinite(f->target_deviation[target]) ? f->target_mean[target] + f->target_deviation[target] * sum
                                                 : f->target_mean[target];
}

static double mean_error(const fitting *f, const hl_sample_table *t, int target)
{
    double sum = 0.0;
    for (int64_t i = 0; i < t->n; i++)
        sum += fabs(predict(f, t, i, target) - t->y[i * f->samples.targets + target]);
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
    const hl_sample_table *t = &f->samples.part[HL_SAMPLE_TEST];
    double *value, sp = 0.0, st = 0.0, spp = 0.0, stt = 0.0, spt = 0.0, n = (double)t->n;

    HL_TRY(hl_calloc(f->samples.ctx, (size_t)t->n, sizeof(*value), "truths", &value));
    for (int64_t i = 0; i < t->n;
         i++) { /* relative to the training mean, which keeps the sums well conditioned */
        double p = predict(f, t, i, target) - f->target_mean[target],
               y = t->y[i * f->samples.targets + target] - f->target_mean[target];
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

    for (int t = 0; t < f->samples.targets; t++) best[t] = INFINITY;
    for (size_t l = 0; l < HL_COUNT(lambdas); l++) {
        double penalty = lambdas[l] * (double)f->samples.part[HL_SAMPLE_TRAIN].n;
        if (!hl_ridge_solve(f->samples.features, f->samples.targets, f->gram, f->moment, penalty, f->scratch,
                            f->w))
            continue;
        for (int t = 0; t < f->samples.targets; t++) {
            double error = mean_error(f, &f->samples.part[HL_SAMPLE_VALIDATION], t);
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
    size_t m = (size_t)f->samples.features, t = (size_t)f->samples.targets;
    HL_TRY(hl_calloc(f->samples.ctx, m, sizeof(double), "a regression", &f->mean));
    HL_TRY(hl_calloc(f->samples.ctx, m, sizeof(double), "a regression", &f->deviation));
    HL_TRY(hl_calloc(f->samples.ctx, t, sizeof(double), "a regression", &f->target_mean));
    HL_TRY(hl_calloc(f->samples.ctx, t, sizeof(double), "a regression", &f->target_deviation));
    HL_TRY(hl_calloc(f->samples.ctx, m * m, sizeof(double), "a regression", &f->gram));
    HL_TRY(hl_calloc(f->samples.ctx, m * m, sizeof(double), "a regression", &f->scratch));
    HL_TRY(hl_calloc(f->samples.ctx, m * t, sizeof(double), "a regression", &f->moment));
    return hl_calloc(f->samples.ctx, m * t, sizeof(double), "a regression", &f->w);
}

static halo_status fit(fitting *f, hl_baseline *b)
{
    for (int p = 0; p < HL_SAMPLE_PARTS; p++)
        if (f->samples.part[p].n < 2)
            return hl_fail(f->samples.ctx, HALO_ERR_USAGE,
                           "%" PRId64 " samples for '%s': too few for a regression", f->samples.part[p].n,
                           hl_sample_part(p));
    HL_TRY(allocate(f));
    column_moments(f->samples.part[HL_SAMPLE_TRAIN].x, f->samples.part[HL_SAMPLE_TRAIN].n,
                   f->samples.features, f->mean, f->deviation);
    column_moments(f->samples.part[HL_SAMPLE_TRAIN].y, f->samples.part[HL_SAMPLE_TRAIN].n, f->samples.targets,
                   f->target_mean, f->target_deviation);
    for (int p = 0; p < HL_SAMPLE_PARTS; p++)
        standardise(f->samples.part[p].x, f->samples.part[p].n, f->samples.features, f->mean, f->deviation);
    accumulate(f);
    return choose_and_score(f, b);
}

static void release(fitting *f)
{
    hl_sample_tables_free(&f->samples);
    free(f->mean);
    free(f->deviation);
    free(f->target_mean);
    free(f->target_deviation);
    free(f->gram);
    free(f->moment);
    free(f->scratch);
    free(f->w);
}

halo_status hl_baseline_fit(halo_context *ctx, const hl_baseline_data *data, hl_baseline *result)
{
    fitting *f;
    hl_baseline b = {0};
    double start = hl_now();

    HL_TRY(hl_calloc(ctx, 1, sizeof(*f), "a regression", &f));
    f->samples.ctx = ctx;
    halo_status st = hl_sample_tables_read(&f->samples, data);
    if (st == HALO_OK) st = fit(f, &b);
    if (st == HALO_OK) {
        b.targets = f->samples.targets;
        b.features = f->samples.features;
        b.train = f->samples.part[HL_SAMPLE_TRAIN].n;
        b.validation = f->samples.part[HL_SAMPLE_VALIDATION].n;
        b.test = f->samples.part[HL_SAMPLE_TEST].n;
        b.seconds = hl_now() - start;
        for (int t = 0; t < f->samples.targets; t++)
            snprintf(b.target[t].name, sizeof(b.target[t].name), "%s", f->samples.name[t]);
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
