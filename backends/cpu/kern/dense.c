/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense.c -- the two loops of a dense layer with few samples: a row of weights times up to HL_DOTS vectors, and up to HL_DOTS vectors, each times a number,
 * added up. Every value that comes from memory is used HL_DOTS times.
 */
#include "kern.h"
#include "vec.h"

static inline float sum_of(hl_vf v)
{
    float sum = 0;
    for (int l = 0; l < HL_VL; l++) sum += v[l];
    return sum;
}

static void dots4(const float *w, const float *x, int64_t stride, int64_t n, float *out)
{
    hl_vf s[HL_DOTS] = {{0}}, t[HL_DOTS] = {{0}};
    int64_t i = 0;
    for (; i + 2 * HL_VL <= n; i += 2 * HL_VL) {
        hl_vf a = hl_load(w + i), b = hl_load(w + i + HL_VL);
        for (int k = 0; k < HL_DOTS; k++) {
            s[k] += a * hl_load(x + k * stride + i);
            t[k] += b * hl_load(x + k * stride + i + HL_VL);
        }
    }
    for (int k = 0; k < HL_DOTS; k++) {
        out[k] = sum_of(s[k] + t[k]);
        for (int64_t j = i; j < n; j++) out[k] += w[j] * x[k * stride + j];
    }
}

static float dot(const float *a, const float *b, int64_t n)
{
    hl_vf s[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * HL_VL <= n; i += 4 * HL_VL)
        for (int k = 0; k < 4; k++) s[k] += hl_load(a + i + k * HL_VL) * hl_load(b + i + k * HL_VL);
    for (; i + HL_VL <= n; i += HL_VL) s[0] += hl_load(a + i) * hl_load(b + i);
    float sum = sum_of((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

void HL_K(dots)(const float *w, const float *x, int64_t stride, int64_t n, int count, float *out)
{
    if (count == HL_DOTS)
        dots4(w, x, stride, n, out);
    else
        for (int k = 0; k < count; k++) out[k] = dot(w, x + k * stride, n);
}

void HL_K(combine)(const float *a, int64_t astride, const float *x, int64_t stride, int count, bool accumulate, float *y, int64_t n)
{
    if (count == HL_DOTS) {
        float a0 = a[0], a1 = a[astride], a2 = a[2 * astride], a3 = a[3 * astride];
        const float *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        if (!accumulate) memset(y, 0, (size_t)n * sizeof(*y));
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] += (a0 * x[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
        return;
    }
    for (int k = 0; k < count; k++, x += stride, a += astride) {
        float a0 = *a;
        if (k > 0 || accumulate) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) y[i] += a0 * x[i];
        } else {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) y[i] = a0 * x[i];
        }
    }
}
