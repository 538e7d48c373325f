/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.c -- softmax and its loss over cells that lie side by side, class after class: every loop runs along the cells.
 *
 *   m = max_c x[c],  z = sum_c exp(x[c] - m),  loss = m - x[t] + log z,  dx[c] = exp(x[c] - m) / z - [c = t] = - sum_(k != t) exp(x[k] - m) / z where c = t
 *
 * z lies between 1 and the number of classes: a float holds it as well as the exponentials are known. Losses are summed in double; the logarithm is taken of
 * the product of some z, which is far from the largest double. Cells may have weights; one of weight 0 has loss 0 whatever its logits are.
 */
#include "elementary.h"
#include "kern.h"

#include <math.h>

enum { MOST = 64 }; /* cells at once */

/* NaN stays: once m is one, nothing is above it. */
static void largest(const float *x, int64_t classes, int64_t step, int64_t n, float *m)
{
    for (int64_t i = 0; i < n; i++) m[i] = x[i];
    for (int64_t c = 1; c < classes; c++) {
        const float *row = x + c * step;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) m[i] = row[i] > m[i] || row[i] != row[i] ? row[i] : m[i];
    }
}

static void exponentials(float *x, int64_t classes, int64_t step, int64_t n, const float *m, float *z)
{
    for (int64_t i = 0; i < n; i++) z[i] = 0;
    for (int64_t c = 0; c < classes; c++) {
        float *row = x + c * step;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            row[i] = hl_exp(row[i] - m[i]);
            z[i] += row[i];
        }
    }
}

/* sum_i log z[i] */
static double logarithms(const float *z, int64_t n)
{
    enum { TOGETHER = 8 }; /* 2^31 classes at most: 2^248 */
    double sum = 0;
    for (int64_t i = 0; i < n; i += TOGETHER) {
        double product = 1;
        for (int64_t k = i; k < n && k < i + TOGETHER; k++) product *= (double)z[k];
        sum += log(product);
    }
    return sum;
}

static bool is_class(float t, int64_t classes) { return t >= 0 && t < (float)classes && t == (float)(int64_t)t; }

/* Each times its cell's weight. */
static double weighted_logarithms(const float *z, const float *weight, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += weight[i] > 0 ? (double)weight[i] * log((double)z[i]) : 0;
    return sum;
}

/* Logits to exp(x - m), and z; returns the loss. */
static double cells_exponentials(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight, float *z)
{
    float m[MOST];
    double sum = 0;
    largest(x, classes, step, n, m);
    for (int64_t i = 0; i < n; i++) {
        double loss = is_class(t[i], classes) ? (double)m[i] - (double)x[(int64_t)t[i] * step + i] : (double)NAN;
        sum += !weight ? loss : weight[i] > 0 ? (double)weight[i] * loss : 0;
    }
    exponentials(x, classes, step, n, m, z);
    return sum + (weight ? weighted_logarithms(z, weight, n) : logarithms(z, n));
}

/* x[c] *= z; the sum of those that are not the label's, so that what the label's own lacks of 1 is known when it is nearly 1. */
static void scaled(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *z, float *others)
{
    for (int64_t i = 0; i < n; i++) others[i] = 0;
    for (int64_t c = 0; c < classes; c++) {
        float *row = x + c * step;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            row[i] *= z[i];
            others[i] += (float)c == t[i] ? 0.0f : row[i];
        }
    }
}

static double cells_loss(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight, float scale, bool derivative)
{
    float z[MOST], others[MOST];
    double sum = cells_exponentials(x, classes, step, n, t, weight, z);
    if (!derivative) return sum;
    for (int64_t i = 0; i < n; i++) z[i] = is_class(t[i], classes) ? scale * (weight ? weight[i] : 1) / z[i] : NAN;
    scaled(x, classes, step, n, t, z, others);
    for (int64_t i = 0; i < n; i++)
        if (is_class(t[i], classes)) x[(int64_t)t[i] * step + i] = -others[i];
    return sum;
}

double HL_K(cross_entropy)(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight, float scale, bool derivative)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += MOST)
        sum += cells_loss(x + i, classes, step, n - i < MOST ? n - i : MOST, t + i, weight ? weight + i : NULL, scale, derivative);
    return sum;
}

double HL_K(softmax)(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight)
{
    float z[MOST], others[MOST];
    double sum = 0;
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < MOST ? n - i : MOST;
        sum += cells_exponentials(x + i, classes, step, m, t + i, weight ? weight + i : NULL, z);
        for (int64_t k = 0; k < m; k++) z[k] = 1 / z[k];
        scaled(x + i, classes, step, m, t + i, z, others);
    }
    return sum;
}
