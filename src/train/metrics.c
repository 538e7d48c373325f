/* SPDX-License-Identifier: Apache-2.0 */
#include "train/metrics.h"


struct hl_metrics {
    halo_context *ctx;
    int targets;
    hl_target *target;
    int64_t n;
    size_t row_cap, value_cap;
    int64_t *group;
    double *value; /* [n][2][targets]: truth, prediction */
    size_t group_cap;
};

halo_status hl_metrics_create(halo_context *ctx, int targets, const hl_target *target, hl_metrics **out)
{
    hl_metrics *m;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "metrics", &m));
    m->ctx = ctx;
    m->targets = targets;
    halo_status st = hl_calloc(ctx, (size_t)targets, sizeof(*target), "metrics", &m->target);
    if (st != HALO_OK) {
        free(m);
        return st;
    }
    memcpy(m->target, target, (size_t)targets * sizeof(*target));
    *out = m;
    return HALO_OK;
}

void hl_metrics_destroy(hl_metrics *m)
{
    if (!m) return;
    free(m->target);
    free(m->group);
    free(m->value);
    free(m);
}

double hl_physical(const hl_target *t, double stored)
{
    if (isfinite(t->mean) && isfinite(t->std)) return t->mean + stored * t->std;
    if (isfinite(t->low) && isfinite(t->high)) return 0.5 * (t->low + t->high) + stored * 0.5 * (t->high - t->low);
    return stored;
}

halo_status hl_metrics_add(hl_metrics *m, int64_t group, const float *truth, const float *prediction)
{
    size_t t = (size_t)m->targets, n = (size_t)m->n;
    HL_TRY(hl_grow(m->ctx, &m->group, &m->group_cap, n + 1, sizeof(*m->group), "metrics"));
    HL_TRY(hl_grow(m->ctx, &m->value, &m->value_cap, (n + 1) * 2 * t, sizeof(*m->value), "metrics"));
    double *v = m->value + n * 2 * t;
    for (size_t i = 0; i < t; i++) {
        v[i] = hl_physical(&m->target[i], (double)truth[i]);
        v[t + i] = hl_physical(&m->target[i], (double)prediction[i]);
    }
    m->group[n] = group;
    m->n++;
    return HALO_OK;
}

int64_t hl_metrics_samples(const hl_metrics *m) { return m->n; }

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hl_constant_error(double *truth, int64_t n)
{
    qsort(truth, (size_t)n, sizeof(*truth), by_value);
    double median = n % 2 ? truth[n / 2] : 0.5 * (truth[n / 2 - 1] + truth[n / 2]), sum = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs(truth[i] - median);
    return sum / (double)n;
}

static double correlation(const double *x, const double *y, int64_t n)
{
    double mx = 0, my = 0, sxx = 0, syy = 0, sxy = 0;
    for (int64_t i = 0; i < n; i++) { /* Welford, so that large offsets cost no digits */
        double dx = x[i] - mx, dy = y[i] - my;
        mx += dx / (double)(i + 1);
        my += dy / (double)(i + 1);
        sxx += dx * (x[i] - mx);
        syy += dy * (y[i] - my);
        sxy += dx * (y[i] - my);
    }
    return sxx > 0 && syy > 0 ? fmax(-1, fmin(1, sxy / sqrt(sxx * syy))) : NAN;
}

static hl_score score_one(double *truth, const double *guess, int64_t n)
{
    hl_score s = {0};
    for (int64_t i = 0; i < n; i++) s.error += fabs(truth[i] - guess[i]);
    s.error /= (double)n;
    s.correlation = correlation(truth, guess, n);
    s.constant_error = hl_constant_error(truth, n); /* last: sorts */
    return s;
}

/* Averages rows of equal group in the order of their first appearance; returns the number of groups. `slot` has room for n. */
static int64_t average_groups(const hl_metrics *m, int target, double *truth, double *guess, int64_t *slot_group, double *count)
{
    size_t t = (size_t)m->targets;
    int64_t groups = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const double *v = m->value + (size_t)i * 2 * t;
        int64_t g = groups - 1; /* samples of one universe usually stand together: search backwards */
        while (g >= 0 && slot_group[g] != m->group[i]) g--;
        if (g < 0) {
            g = groups++;
            slot_group[g] = m->group[i];
            truth[g] = guess[g] = count[g] = 0;
        }
        truth[g] += v[target];
        guess[g] += v[t + (size_t)target];
        count[g]++;
    }
    for (int64_t g = 0; g < groups; g++) {
        truth[g] /= count[g];
        guess[g] /= count[g];
    }
    return groups;
}

halo_status hl_metrics_score(const hl_metrics *m, bool per_group, hl_score *score, int64_t *items)
{
    if (m->n == 0) return hl_fail(m->ctx, HALO_ERR_USAGE, "no sample was evaluated");
    double *work;
    int64_t *groups, n = m->n;
    halo_status st = HALO_OK;
    HL_TRY(hl_calloc(m->ctx, (size_t)n * 3, sizeof(*work), "metrics", &work));
    HL_GOTO(st, hl_calloc(m->ctx, (size_t)n, sizeof(*groups), "metrics", &groups), free_work);
    for (int k = 0; k < m->targets; k++) {
        double *truth = work, *guess = work + m->n;
        if (per_group) n = average_groups(m, k, truth, guess, groups, work + 2 * m->n);
        else
            for (int64_t i = 0; i < n; i++) {
                truth[i] = m->value[(size_t)(i * 2 * m->targets + k)];
                guess[i] = m->value[(size_t)(i * 2 * m->targets + m->targets + k)];
            }
        score[k] = score_one(truth, guess, n);
    }
    if (items) *items = n;
    free(groups);
free_work:
    free(work);
    return st;
}

bool hl_unconstrained(const hl_score *s) { return !(s->error < 0.95 * s->constant_error); }
