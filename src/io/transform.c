/* SPDX-License-Identifier: Apache-2.0 */
/* transform.c -- per-sample normalisation; see pipeline.h for the formulas. Two passes for the variance: a
 * running sum of squares loses it. */
#include "io/pipeline.h"

const char *hl_transform_name(hl_transform kind)
{
    switch (kind) {
    case HL_LOG1P:
        return "log1p";
    case HL_OVER_MEAN:
        return "over-mean";
    case HL_ZSCORE:
        return "z-score";
    case HL_STANDARD:
        return "standard";
    case HL_CLIP:
        return "window";
    default:
        return "unknown";
    }
}

/* x - x is 0 for finite x and NaN otherwise: a block of 4096 is judged by one sum, which vectorises; the
 * index is searched only after a hit. */
int64_t hl_first_nonfinite(const float *x, int64_t n)
{
    for (int64_t lo = 0; lo < n; lo += 4096) {
        int64_t hi = hl_min64(n, lo + 4096);
        float s = 0;
        for (int64_t i = lo; i < hi; i++) s += x[i] - x[i];
        if (s == 0) continue;
        for (int64_t i = lo; i < hi; i++)
            if (!isfinite(x[i])) return i;
    }
    return n;
}

static double mean_of(const float *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (double)x[i];
    return s / (double)n;
}

static bool log1p_all(float *x, int64_t n, int64_t *bad)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] > -1.0f)) {
            *bad = i;
            return false;
        }
        x[i] = (float)log1p((double)x[i]);
    }
    return true;
}

void hl_standardise(float *x, int64_t n, double mean, double std)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)(((double)x[i] - mean) / std);
}

void hl_clip(float *x, int64_t n, double lo, double hi)
{
    float low = (float)lo, high = (float)hi, scale = (float)(1 / (hi - lo));
    for (int64_t i = 0; i < n; i++) x[i] = ((x[i] < low ? low : x[i] > high ? high : x[i]) - low) * scale;
}

bool hl_transform_whole(hl_transform kind)
{
    return kind == HL_OVER_MEAN || kind == HL_ZSCORE;
}

hl_moments hl_moments_of(const float *x, int64_t n)
{
    hl_moments m = {.n = (double)n};
    if (n == 0) return m;
    m.mean = mean_of(x, n);
    for (int64_t i = 0; i < n; i++) m.sum += ((double)x[i] - m.mean) * ((double)x[i] - m.mean);
    return m;
}

hl_moments hl_moments_merge(hl_moments a, hl_moments b)
{
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    double all = a.n + b.n, d = b.mean - a.mean;
    return (hl_moments){.n = all, .mean = a.mean + d * b.n / all, .sum = a.sum + b.sum + d * d * a.n * b.n / all};
}

bool hl_transform_by(hl_transform kind, hl_moments all, float *x, int64_t n)
{
    if (kind == HL_OVER_MEAN) {
        if (all.mean == 0) return false;
        for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / all.mean);
        return true;
    }
    double std = sqrt(all.sum / all.n);
    if (!(std > 0)) return false;
    hl_standardise(x, n, all.mean, std);
    return true;
}

bool hl_transform_apply(hl_transform kind, float *x, int64_t n, int64_t *bad)
{
    *bad = -1;
    if (n == 0) return true;
    if (kind == HL_LOG1P) return log1p_all(x, n, bad);
    if (kind == HL_OVER_MEAN) return hl_transform_by(kind, (hl_moments){.n = (double)n, .mean = mean_of(x, n)}, x, n);
    return kind == HL_ZSCORE && hl_transform_by(kind, hl_moments_of(x, n), x, n);
}

bool hl_transform_run(const hl_loader_options *o, hl_transform kind, float *x, int64_t n, int64_t *bad)
{
    if (kind == HL_STANDARD) hl_standardise(x, n, o->mean, o->std);
    else if (kind == HL_CLIP) hl_clip(x, n, o->window[0], o->window[1]);
    else return hl_transform_apply(kind, x, n, bad);
    return true;
}

void hl_log1p_table(halo_dtype type, float *table)
{
    int32_t n = type == HALO_U8 ? 256 : 65536;
    for (int32_t i = 0; i < n; i++) {
        double v = type == HALO_U8 ? (double)i : (double)(int16_t)(uint16_t)i;
        table[i] = v > -1 ? (float)log1p(v) : NAN;
    }
}

bool hl_log1p_lookup(halo_dtype type, const float *table, const void *x, float *y, int64_t n, int64_t *bad)
{
    if (type == HALO_U8) {
        const uint8_t *v = x;
        for (int64_t i = 0; i < n; i++) y[i] = table[v[i]];
    } else {
        const int16_t *v = x;
        for (int64_t i = 0; i < n; i++) y[i] = table[(uint16_t)v[i]];
    }
    *bad = hl_first_nonfinite(y, n);
    return *bad == n;
}

bool hl_take_class(const hl_loader_options *o, float *y)
{
    const float whole = rintf(*y) + 0.0f; /* -0 is 0 */
    const bool known = (whole >= 0 && whole < (float)o->classes) || (o->ignores && whole == (float)o->ignore);
    if (!known || !(fabsf(*y - whole) <= 1e-3f)) return false;
    *y = whole;
    return true;
}
