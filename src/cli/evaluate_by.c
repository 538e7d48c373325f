/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_by.c -- see evaluate_by.h. Each number is a part of the samples, whose scores the evaluation keeps beside those of all. */
#include "cli/evaluate_by.h"

#include <stdio.h>

enum { VALUES_MOST = 64 };

struct hl_by {
    halo_context *ctx;
    char column[64];
    double value[VALUES_MOST];
    int64_t samples[VALUES_MOST]; /* that have it */
    hl_parts parts;
    int *of_sample;
};

static int by_value(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static int find(const hl_by *b, double value)
{
    for (int i = 0; i < b->parts.n; i++)
        if (b->value[i] == value) return i;
    return -1;
}

static halo_status tell_apart(hl_by *b, const double *of_sample, int64_t samples)
{
    for (int64_t i = 0; i < samples; i++) {
        if (find(b, of_sample[i]) >= 0) continue;
        if (!isfinite(of_sample[i])) return hl_fail(b->ctx, HALO_ERR_USAGE, "'%s' of sample %" PRId64 " is %g, no number", b->column, i, of_sample[i]);
        if (b->parts.n == VALUES_MOST) return hl_fail(b->ctx, HALO_ERR_USAGE, "'%s' has more than %d different numbers", b->column, VALUES_MOST);
        b->value[b->parts.n++] = of_sample[i];
    }
    qsort(b->value, (size_t)b->parts.n, sizeof(*b->value), by_value);
    for (int64_t i = 0; i < samples; i++) b->samples[b->of_sample[i] = find(b, of_sample[i])]++;
    return HALO_OK;
}

halo_status hl_by_open(halo_context *ctx, hl_source *source, const char *column, hl_by **by)
{
    hl_by *b;
    double *of_sample = NULL;
    const int64_t samples = source->info.samples;
    if (!source->ops->column) return hl_fail(ctx, HALO_ERR_USAGE, "'--by %s': data of the format '%s' have no such numbers, only halo's own layout", column, source->ops->name);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*b), "scores", &b));
    b->ctx = ctx;
    snprintf(b->column, sizeof(b->column), "%s", column);
    halo_status st = hl_calloc(ctx, (size_t)samples, sizeof(*of_sample), "numbers of samples", &of_sample);
    if (st == HALO_OK) st = hl_calloc(ctx, (size_t)samples, sizeof(*b->of_sample), "numbers of samples", &b->of_sample);
    if (st == HALO_OK) st = source->ops->column(source, column, of_sample);
    if (st == HALO_OK) st = tell_apart(b, of_sample, samples);
    free(of_sample);
    b->parts.of_sample = b->of_sample;
    if (st == HALO_OK) *by = b;
    else hl_by_close(b);
    return st;
}

void hl_by_close(hl_by *b)
{
    if (!b) return;
    free(b->of_sample);
    free(b);
}

const hl_parts *hl_by_parts(const hl_by *b) { return b ? &b->parts : NULL; }

static void table_of_numbers(const hl_by *b, const hl_evaluation *e, hl_str *out)
{
    hl_str_addf(out, "\n%-12s %8s %-16s %12s %12s %14s %12s\n", b->column, "samples", "target", "error", "constant", "error/constant", "correlation");
    for (int k = 0; k < b->parts.n; k++)
        for (int t = 0; t < e->targets; t++) {
            const hl_score *s = &e->part[k].score[t];
            hl_str_addf(out, "%-12.6g %8" PRId64 " %-16s %12.5g %12.5g %14.3f %12.3f\n", b->value[k], b->samples[k], e->target[t].name, s->error, s->constant_error, s->error / s->constant_error,
                        s->correlation);
        }
}

static void table_of_classes(const hl_by *b, const hl_evaluation *e, hl_str *out)
{
    hl_str_addf(out, "\n%-12s %8s %12s %12s %14s %18s\n", b->column, "samples", "wrong", "constant", "wrong/constant", "dice, from 1 on");
    for (int k = 0; k < b->parts.n; k++) {
        const hl_score *s = e->part[k].score;
        double dice = e->part[k].of_class ? hl_foreground_dice(e->part[k].of_class, e->classes, false) : NAN;
        hl_str_addf(out, "%-12.6g %8" PRId64 " %12.5g %12.5g %14.3f %18.3f\n", b->value[k], b->samples[k], s->error, s->constant_error, s->error / s->constant_error, dice);
    }
}

void hl_by_table(const hl_by *b, const hl_evaluation *e, hl_str *out)
{
    if (e->classes) table_of_classes(b, e, out);
    else table_of_numbers(b, e, out);
}

void hl_by_json(const hl_by *b, const hl_evaluation *e, hl_json *j)
{
    hl_json_string(j, "by", b->column);
    hl_json_array(j, "parts");
    for (int k = 0; k < b->parts.n; k++)
        for (int t = 0; t < e->targets; t++) {
            const hl_score *s = &e->part[k].score[t];
            hl_json_object(j, NULL);
            hl_json_number(j, "value", b->value[k]);
            hl_json_int(j, "samples", b->samples[k]);
            hl_json_string(j, "target", e->target[t].name);
            hl_json_number(j, "error", s->error);
            hl_json_number(j, "constant_error", s->constant_error);
            hl_json_number(j, "correlation", s->correlation);
            if (e->part[k].of_class) hl_class_scores_json(e->classes, e->part[k].of_class, j);
            hl_json_end_object(j);
        }
    hl_json_end_array(j);
}
