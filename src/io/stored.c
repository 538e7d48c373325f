/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.c -- what a device is told of a sample that it prepares, and whether it can be prepared at all.
 *
 * Every transform rises or falls with the value, and so does the chain of them: it is defined and finite for all values of a sample where it is so for the least and the largest. So one pass over the values as
 * they are stored, and the chain on two numbers, find what the loader's own transforms find by looking at each. A mean and a deviation take one pass more each, through the transforms before them, by
 * pieces that stay in cache; their sums are those of transform.c in the same order, so that the constants have the same bits.
 */
#include "io/stored.h"
#include "io/convert.h"

enum { PIECE = 4096 };

halo_transform hl_transform_stored(hl_transform kind)
{
    return kind == HL_LOG1P ? HALO_TRANSFORM_LOG1P : kind == HL_CLIP ? HALO_TRANSFORM_WINDOW : HALO_TRANSFORM_STANDARD;
}

void hl_stored_turn(hl_symmetry s, const int64_t shift[3], double *number)
{
    number[HALO_SAMPLE_THERE] = 1;
    for (int k = 0; k < 3; k++) {
        number[HALO_SAMPLE_AXIS + k] = s.axis[k];
        number[HALO_SAMPLE_FLIP + k] = s.flip[k];
        number[HALO_SAMPLE_SHIFT + k] = (double)shift[k];
    }
}

/* n values after the first k transforms, which are known to be defined for them. */
static void through(const hl_loader_options *o, int k, const double *number, float *x, int64_t n)
{
    int64_t bad;
    for (int t = 0; t < k; t++) {
        const double *c = number + HALO_SAMPLE_CONSTANT + 2 * t;
        if (o->transform[t] == HL_LOG1P) hl_transform_apply(HL_LOG1P, x, n, &bad);
        else if (o->transform[t] == HL_CLIP) hl_clip(x, n, c[0], c[1]);
        else hl_standardise(x, n, c[0], c[1]);
    }
}

/* Sum of x - about, or of its square, after the first k transforms. */
static double sum_of(const hl_loader_options *o, int k, const double *number, halo_dtype type, const void *x, int64_t n, double about, bool squared)
{
    float v[PIECE];
    double sum = 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t m = hl_min64(PIECE, n - at);
        hl_to_float(type, (const char *)x + (size_t)at * hl_dtype_size(type), v, m);
        through(o, k, number, v, m);
        for (int64_t i = 0; i < m; i++) {
            const double d = (double)v[i] - about;
            sum += squared ? d * d : d;
        }
    }
    return sum;
}

static bool range_of(halo_dtype type, const void *x, int64_t n, float range[2])
{
    float v[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t m = hl_min64(PIECE, n - at);
        hl_to_float(type, (const char *)x + (size_t)at * hl_dtype_size(type), v, m);
        if ((type == HALO_F32 || type == HALO_F64) && hl_first_nonfinite(v, m) < m) return false;
        float lo = v[0], hi = v[0];
        for (int64_t i = 1; i < m; i++) lo = v[i] < lo ? v[i] : lo, hi = v[i] > hi ? v[i] : hi;
        range[0] = at > 0 && range[0] < lo ? range[0] : lo;
        range[1] = at > 0 && range[1] > hi ? range[1] : hi;
    }
    return true;
}

bool hl_stored_constants(const hl_loader_options *o, halo_dtype type, const void *x, int64_t n, double *number)
{
    float range[2];
    if (!range_of(type, x, n, range)) return false;
    for (int k = 0; k < o->transforms; k++) {
        const hl_transform kind = o->transform[k];
        double *c = number + HALO_SAMPLE_CONSTANT + 2 * k;
        int64_t bad;
        c[0] = kind == HL_STANDARD ? o->mean : kind == HL_CLIP ? o->window[0] : 0;
        c[1] = kind == HL_STANDARD ? o->std : kind == HL_CLIP ? o->window[1] : 1;
        if (kind == HL_OVER_MEAN) c[1] = sum_of(o, k, number, type, x, n, 0, false) / (double)n;
        if (kind == HL_ZSCORE) c[0] = sum_of(o, k, number, type, x, n, 0, false) / (double)n;
        if (kind == HL_ZSCORE) c[1] = sqrt(sum_of(o, k, number, type, x, n, c[0], true) / (double)n);
        if (c[1] == 0 || !isfinite(c[0]) || !isfinite(c[1])) return false;
        if (kind == HL_LOG1P && !hl_transform_apply(HL_LOG1P, range, 2, &bad)) return false;
        if (kind == HL_CLIP) hl_clip(range, 2, c[0], c[1]);
        if (kind != HL_LOG1P && kind != HL_CLIP) hl_standardise(range, 2, c[0], c[1]);
        if (!isfinite(range[0]) || !isfinite(range[1])) return false;
    }
    return true;
}
