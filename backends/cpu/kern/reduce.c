/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c -- losses with their gradients, sums of squares with a count of values that are not finite. Sums are in double. */
#include "kern.h"
#include "vec.h"

#include <math.h>
#include <string.h>

/* Loss and derivative of d = x - t. */
static inline float mse(float d) { return d * d; }
static inline float mse_slope(float d) { return 2.0f * d; }
static inline float mae(float d) { return fabsf(d); }
static inline float mae_slope(float d) { return d > 0 ? 1.0f : d < 0 ? -1.0f : d; } /* 0 at 0, NaN at NaN */
static inline float huber(float delta, float d)
{
    float a = fabsf(d);
    return a <= delta ? 0.5f * d * d : delta * (a - 0.5f * delta);
}
static inline float huber_slope(float delta, float d) { return d > delta ? delta : d < -delta ? -delta : d; }

#define LOSS(value, slope)                                                                                   \
    do {                                                                                                     \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) {                             \
            float d = x[i] - t[i];                                                                           \
            sum += (double)(value);                                                                          \
        }                                                                                                    \
        if (!dx) break;                                                                                      \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                                \
            float d = x[i] - t[i];                                                                           \
            dx[i] = (slope)*scale;                                                                           \
        }                                                                                                    \
    } while (0)

static double loss_span(halo_loss kind, float delta, const float *x, const float *t, float *dx, float scale, int64_t n)
{
    double sum = 0;
    switch (kind) {
    case HALO_LOSS_RELATIVE_MSE: /* whose scale is its own */
    case HALO_LOSS_MSE: LOSS(mse(d), mse_slope(d)); break;
    case HALO_LOSS_MAE: LOSS(mae(d), mae_slope(d)); break;
    case HALO_LOSS_HUBER: LOSS(huber(delta, d), huber_slope(delta, d)); break;
    case HALO_LOSS_CROSS_ENTROPY:
    case HALO_LOSS_DICE:
    case HALO_LOSS_DICE_CE: break; /* cross_entropy.c */
    }
    return sum;
}

/* A stretch at a time, so that the gradient finds x and t in cache. */
double HL_K(loss)(halo_loss kind, float delta, const float *x, const float *t, float *dx, float scale, int64_t n)
{
    enum { SPAN = 2048 };
    double sum = 0;
    for (int64_t i = 0; i < n; i += SPAN)
        sum += loss_span(kind, delta, x + i, t + i, dx ? dx + i : NULL, scale, n - i < SPAN ? n - i : SPAN);
    return sum;
}

/* All ones in the lanes that hold infinity or NaN: exponent all ones. */
static inline hl_vi not_finite(hl_vf v)
{
    const hl_vi exponent = hl_splat_i(0x7f800000);
    return ((hl_vi)v & exponent) == exponent;
}

static float largest_lane(hl_vi magnitude)
{
    int most = 0;
    for (int l = 0; l < HL_VL; l++) most = magnitude[l] > most ? magnitude[l] : most;
    float x;
    memcpy(&x, &most, sizeof(x));
    return x;
}

/* Magnitudes are compared as the whole numbers that their bits are. */
double HL_K(sumsq)(const float *x, int64_t n, int64_t *bad, float *largest)
{
    const hl_vi magnitude = hl_splat_i(0x7fffffff);
    enum { SPAN = 1 << 16 }; /* elements between folds of the lanes' 32-bit counts */
    double sum = 0;
    int64_t i = 0;
    while (n - i >= HL_VL) {
        int64_t end = n - i < SPAN ? n : i + SPAN;
        hl_vd s0 = {0}, s1 = {0};
        hl_vi count = {0}, most = {0};
        for (; i + HL_VL <= end; i += HL_VL) {
            hl_vd a = hl_load_d(x + i), b = hl_load_d(x + i + HL_VDL);
            s0 += a * a;
            s1 += b * b;
            hl_vf v = hl_load(x + i);
            hl_vi wrong = not_finite(v), m = (hl_vi)v & magnitude & ~wrong;
            count -= wrong;
            hl_vi more = m > most;
            most = (m & more) | (most & ~more);
        }
        sum += hl_vd_sum(s0 + s1);
        for (int l = 0; l < HL_VL; l++) *bad += count[l];
        *largest = fmaxf(*largest, largest_lane(most));
    }
    for (; i < n; i++) {
        sum += (double)x[i] * x[i];
        if (isfinite(x[i]))
            *largest = fmaxf(*largest, fabsf(x[i]));
        else
            ++*bad;
    }
    return sum;
}
