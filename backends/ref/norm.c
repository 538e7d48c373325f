/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c -- batch, group and instance normalisation, with the statistics apart so that they can be merged across ranks in between.
 *
 * Groups of samples g (G = 1, or one per sample) and features f (one per channel, or `groups` runs of channels):
 *   STAT [g][f] = count m, mean mu, M2 = sum (x - mu)^2                       two passes
 *   y = act(gamma[c] xhat + beta[c]),  xhat = (x - mu) / sqrt(M2/m + eps)
 *   STAT2 [g][c] = A = sum dy, B = sum dy xhat
 *   dx = (gamma[c] dy - S/m - xhat T/m) / sqrt(M2/m + eps),  S = sum over the feature's channels of gamma A, T of gamma B
 *   dgamma[c] = sum_g B,  dbeta[c] = sum_g A
 * (Ioffe & Szegedy 2015; Wu & He 2018.)
 */
#include "ref.h"

/* How the statistics are indexed. */
typedef struct shape {
    int64_t g, f, c, per_f, samples; /* groups, features, channels, channels per feature, samples per group that are there */
} shape;

static shape shape_of(const halo_op_desc *d, const halo_step_record *record)
{
    const int64_t *e = d->t[HALO_X].ext;
    int64_t there = e[HALO_N] - (d->per_sample ? 0 : hl_padding_samples(record, e[HALO_N]));
    shape s = {.g = d->per_sample ? there : 1, .f = d->groups > 0 ? d->groups : e[HALO_C], .c = e[HALO_C]};
    s.per_f = s.c / s.f;
    s.samples = d->per_sample ? 1 : there;
    return s;
}

static bool fits(const halo_op_desc *d) { return d->groups <= 0 || d->t[HALO_X].ext[HALO_C] % d->groups == 0; }

/* Mean and 1/sqrt(var + eps). */
typedef struct moments { double m, mean, inv; } moments;

static moments moments_of(const halo_op_desc *d, const hl_ref_view *stat, int64_t group)
{
    double v[3];
    hl_ref_read_flat(stat, group * 3, 3, v);
    return (moments){v[0], v[1], 1 / sqrt(v[2] / v[0] + d->eps)};
}

static moments running(const halo_op_desc *d, const hl_ref_view *run, int64_t c, int64_t channels)
{
    moments k = {.m = 1};
    double var;
    hl_ref_read_flat(run, c, 1, &k.mean);
    hl_ref_read_flat(run, channels + c, 1, &var);
    k.inv = 1 / sqrt(var + d->eps);
    return k;
}

/* ------------------------------------------------------------------------------------------------------------- stats */

/* Sum of (x - mean)^power over a range, in long double: so many terms would cost digits, and other ones in another order. */
static double power_sum(const hl_ref_view *x, hl_ref_row r, double mean, int power)
{
    double a[REF_ROW];
    long double sum = 0;
    for (; hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(x, &r, a);
        for (int64_t i = 0; i < r.count; i++) sum += power == 1 ? a[i] - mean : (a[i] - mean) * (a[i] - mean);
    }
    return (double)sum;
}

static int stats_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_STAT) && fits(d) ? hl_ref_offer(0, out) : 0;
}

/* v = the moments of both sets (Chan, Golub & LeVeque 1983). */
static void add_moments(double v[3], const double more[3])
{
    double n = v[0] + more[0], d = more[1] - v[1];
    if (more[0] == 0) return;
    v[1] += d * more[0] / n;
    v[2] += more[2] + d * d * v[0] * more[0] / n;
    v[0] = n;
}

static halo_status stats_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), stat = hl_ref_operand(plan, args, HALO_STAT);
    shape s = shape_of(&plan->d, args->record);
    double count = (double)(hl_ref_sample_size(x.op) / s.c * s.per_f * s.samples);
    for (int64_t g = 0; g < s.g; g++)
        for (int64_t f = 0; f < s.f; f++) {
            hl_ref_row r = hl_ref_rows_of(x.op, g, s.samples, f * s.per_f, s.per_f);
            double mean = count > 0 ? power_sum(&x, r, 0, 1) / count : 0, v[3] = {0}, here[3] = {count, mean, power_sum(&x, r, mean, 2)};
            if (plan->d.accumulate) hl_ref_read_flat(&stat, (g * s.f + f) * 3, 3, v);
            add_moments(v, here);
            hl_ref_write_flat(&stat, (g * s.f + f) * 3, 3, v);
        }
    return HALO_OK;
}

REF_CLASS(hl_ref_norm_stats, HALO_OP_NORM_STATS, stats_candidates, stats_run);

/* ------------------------------------------------------------------------------------------------------------- apply */

static int apply_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    bool run = d->t[HALO_RUN].dtype != HALO_NONE, per_channel = !d->per_sample && d->groups <= 0;
    if (!REF_HAVE(d, HALO_X, HALO_WT, HALO_B, HALO_Y) || !fits(d) || !hl_ref_like(&d->t[HALO_Y], &d->t[HALO_X])) return 0;
    if (run && !per_channel) return 0;
    if (d->inference ? !run : d->t[HALO_STAT].dtype == HALO_NONE) return 0;
    return hl_ref_offer(0, out);
}

static void update_running(const halo_op_desc *d, const hl_ref_view *stat, const hl_ref_view *run, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        double v[3], old[2];
        hl_ref_read_flat(stat, c * 3, 3, v);
        hl_ref_read_flat(run, c, 1, &old[0]);
        hl_ref_read_flat(run, channels + c, 1, &old[1]);
        double var = v[2] / (d->unbiased && v[0] > 1 ? v[0] - 1 : v[0]);
        old[0] = d->momentum * old[0] + (1 - d->momentum) * v[1];
        old[1] = d->momentum * old[1] + (1 - d->momentum) * var;
        hl_ref_write_flat(run, c, 1, &old[0]);
        hl_ref_write_flat(run, channels + c, 1, &old[1]);
    }
}

static halo_status apply_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y),
             stat = hl_ref_operand(plan, args, HALO_STAT);
    hl_ref_view gamma = hl_ref_operand(plan, args, HALO_WT), beta = hl_ref_operand(plan, args, HALO_B),
             run = hl_ref_operand(plan, args, HALO_RUN);
    shape s = shape_of(d, args->record);
    double a[REF_ROW], w, b;
    for (hl_ref_row r = hl_ref_rows(x.op); hl_ref_more(&r); hl_ref_next(&r)) {
        int64_t c = r.i[HALO_C], g = d->per_sample ? r.i[HALO_N] : 0;
        moments k = d->inference ? running(d, &run, c, s.c) : moments_of(d, &stat, g * s.f + c / s.per_f);
        hl_ref_read_flat(&gamma, c, 1, &w);
        hl_ref_read_flat(&beta, c, 1, &b);
        hl_ref_read(&x, &r, a);
        for (int64_t i = 0; i < r.count; i++) a[i] = hl_ref_activate(d->act, d->slope, w * (a[i] - k.mean) * k.inv + b);
        hl_ref_write(&y, &r, a);
    }
    if (run.op && !d->inference) update_running(d, &stat, &run, s.c);
    return HALO_OK;
}

REF_CLASS(hl_ref_norm_apply, HALO_OP_NORM_APPLY, apply_candidates, apply_run);

/* ---------------------------------------------------------------------------------------------------------- backward */

static int backward_stats_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_DY, HALO_STAT, HALO_STAT2) || !fits(d)) return 0;
    return hl_ref_like(&d->t[HALO_DY], &d->t[HALO_X]) ? hl_ref_offer(0, out) : 0;
}

static halo_status backward_stats_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), dy = hl_ref_operand(plan, args, HALO_DY);
    hl_ref_view stat = hl_ref_operand(plan, args, HALO_STAT), stat2 = hl_ref_operand(plan, args, HALO_STAT2);
    shape s = shape_of(d, args->record);
    double a[REF_ROW], e[REF_ROW];
    for (int64_t g = 0; g < s.g; g++)
        for (int64_t c = 0; c < s.c; c++) {
            moments k = moments_of(d, &stat, g * s.f + c / s.per_f);
            long double sums[2] = {0, 0};
            for (hl_ref_row r = hl_ref_rows_of(x.op, g, s.samples, c, 1); hl_ref_more(&r); hl_ref_next(&r)) {
                hl_ref_read(&x, &r, a);
                hl_ref_read(&dy, &r, e);
                for (int64_t i = 0; i < r.count; i++) {
                    sums[0] += e[i];
                    sums[1] += e[i] * (a[i] - k.mean) * k.inv;
                }
            }
            double v[2] = {0};
            if (d->accumulate) hl_ref_read_flat(&stat2, (g * s.c + c) * 2, 2, v);
            hl_ref_write_flat(&stat2, (g * s.c + c) * 2, 2, (double[]){v[0] + (double)sums[0], v[1] + (double)sums[1]});
        }
    return HALO_OK;
}

REF_CLASS(hl_ref_norm_bwd_stats, HALO_OP_NORM_BWD_STATS, backward_stats_candidates, backward_stats_run);

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_DY, HALO_STAT, HALO_STAT2, HALO_WT) || !fits(d)) return 0;
    return hl_ref_like(&d->t[HALO_DY], &d->t[HALO_X]) && hl_ref_like(&d->t[HALO_DX], &d->t[HALO_X]) ? hl_ref_offer(0, out) : 0;
}

/* sums[0], sums[1] = S, T of a feature. */
static void feature_sums(const shape *s, const hl_ref_view *stat2, const hl_ref_view *gamma, int64_t g, int64_t f,
                         double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int64_t c = f * s->per_f; c < (f + 1) * s->per_f; c++) {
        double v[2], w;
        hl_ref_read_flat(stat2, (g * s->c + c) * 2, 2, v);
        hl_ref_read_flat(gamma, c, 1, &w);
        sums[0] += w * v[0];
        sums[1] += w * v[1];
    }
}

static void backward_weights(const halo_op_desc *d, const shape *s, const hl_ref_view *stat2, const hl_ref_view *out,
                             int which)
{
    if (!out->op) return;
    for (int64_t c = 0; c < s->c; c++) {
        double sum = 0, v[2];
        if (d->accumulate) hl_ref_read_flat(out, c, 1, &sum);
        for (int64_t g = 0; g < s->g; g++) {
            hl_ref_read_flat(stat2, (g * s->c + c) * 2, 2, v);
            sum += v[which];
        }
        hl_ref_write_flat(out, c, 1, &sum);
    }
}

static void backward_data(const halo_op_desc *d, const shape *s, const hl_ref_view *x, const hl_ref_view *dy,
                          const hl_ref_view *dx, const hl_ref_view *stat, const hl_ref_view *stat2, const hl_ref_view *gamma)
{
    double a[REF_ROW], e[REF_ROW], sums[2], w;
    for (hl_ref_row r = hl_ref_rows(x->op); hl_ref_more(&r); hl_ref_next(&r)) {
        int64_t c = r.i[HALO_C], g = d->per_sample ? r.i[HALO_N] : 0;
        bool none = !d->per_sample && r.i[HALO_N] >= s->samples;
        moments k = moments_of(d, stat, g * s->f + c / s->per_f);
        feature_sums(s, stat2, gamma, g, c / s->per_f, sums);
        hl_ref_read_flat(gamma, c, 1, &w);
        hl_ref_read(x, &r, a);
        hl_ref_read(dy, &r, e);
        for (int64_t i = 0; i < r.count; i++) {
            double xhat = (a[i] - k.mean) * k.inv;
            e[i] = none ? 0 : (w * e[i] - sums[0] / k.m - xhat * sums[1] / k.m) * k.inv;
        }
        hl_ref_write(dx, &r, e);
    }
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), dy = hl_ref_operand(plan, args, HALO_DY),
             dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view stat = hl_ref_operand(plan, args, HALO_STAT), stat2 = hl_ref_operand(plan, args, HALO_STAT2);
    hl_ref_view gamma = hl_ref_operand(plan, args, HALO_WT), dw = hl_ref_operand(plan, args, HALO_DW),
             db = hl_ref_operand(plan, args, HALO_DB);
    shape s = shape_of(d, args->record);
    if (dx.op) backward_data(d, &s, &x, &dy, &dx, &stat, &stat2, &gamma);
    backward_weights(d, &s, &stat2, &dw, 1);
    backward_weights(d, &s, &stat2, &db, 0);
    return HALO_OK;
}

REF_CLASS(hl_ref_norm_bwd_apply, HALO_OP_NORM_BWD_APPLY, backward_candidates, backward_run);
