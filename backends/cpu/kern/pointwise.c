/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c -- element by element: activations, sums, products. Each loop is bound by memory, so it only has to be vector code with
 * no condition inside. `omp simd` says that iterations are independent; x and y being the same address is no dependence.
 */
#include "elementary.h"
#include "kern.h"

#define EACH(i, n, statement)                                                                                \
    do {                                                                                                     \
        _Pragma("omp simd") for (int64_t i = 0; i < (n); i++) statement;                                     \
    } while (0)

void HL_K(act_fwd)(halo_act act, float slope, const float *x, float *y, int64_t n)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: EACH(i, n, y[i] = x[i] > 0 ? x[i] : slope * x[i]); return;
    case HALO_ACT_RELU: EACH(i, n, y[i] = x[i] <= 0 ? 0.0f : x[i]); return; /* NaN stays */
    case HALO_ACT_TANH: EACH(i, n, y[i] = hl_tanh(x[i])); return;
    case HALO_ACT_SIGMOID: EACH(i, n, y[i] = hl_logistic(x[i])); return;
    case HALO_ACT_SCALE: EACH(i, n, y[i] = slope * x[i]); return;
    case HALO_ACT_NONE: EACH(i, n, y[i] = x[i]); return;
    }
}

#define BACK(factor)                                                                                         \
    do {                                                                                                     \
        if (accumulate)                                                                                      \
            EACH(i, n, dx[i] += dy[i] * (factor));                                                           \
        else                                                                                                 \
            EACH(i, n, dx[i] = dy[i] * (factor));                                                            \
    } while (0)

void HL_K(act_bwd)(halo_act act, float slope, const float *y, const float *dy, float *dx, bool accumulate, int64_t n)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: BACK(y[i] > 0 ? 1.0f : slope); return;
    case HALO_ACT_RELU: BACK(y[i] > 0 ? 1.0f : 0.0f); return;
    case HALO_ACT_TANH: BACK(1.0f - y[i] * y[i]); return;
    case HALO_ACT_SIGMOID: BACK(y[i] * (1.0f - y[i])); return;
    case HALO_ACT_SCALE: BACK(slope); return;
    case HALO_ACT_NONE: BACK(1.0f); return;
    }
}

void HL_K(add)(const float *x, const float *x2, float *y, int64_t n) { EACH(i, n, y[i] = x[i] + x2[i]); }
void HL_K(mul)(const float *x, const float *m, float *y, int64_t n) { EACH(i, n, y[i] = x[i] * m[i]); }
void HL_K(triad)(float *a, const float *b, const float *c, float s, int64_t n) { EACH(i, n, a[i] = b[i] + s * c[i]); }
