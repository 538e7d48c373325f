/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c -- one optimiser step in one pass over weights, gradient and state, with the sum of squares of the new weights on the way (LARC's next
 * step needs it). The formulas are in backend.h at halo_update_params. SPAN elements at a time, so that the sum's second look finds them in cache.
 */
#include "kern.h"

#include <math.h>

enum { SPAN = 1024 };

static void sgd(const hl_update_kern *u, float *w, const float *g, float *v, int64_t n)
{
    float momentum = u->momentum, lr = u->lr, decay = u->decay, scale = u->scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] - lr * (scale * g[i] + decay * w[i]);
        w[i] += v[i];
    }
}

static void sgd_plain(const hl_update_kern *u, float *w, const float *g, int64_t n)
{
    float lr = u->lr, decay = u->decay, scale = u->scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) w[i] -= lr * (scale * g[i] + decay * w[i]);
}

static void nesterov(const hl_update_kern *u, float *w, const float *g, float *v, int64_t n)
{
    float momentum = u->momentum, lr = u->lr, decay = u->decay, scale = u->scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float step = lr * (scale * g[i] + decay * w[i]);
        v[i] = momentum * v[i] - step;
        w[i] += momentum * v[i] - step;
    }
}

/* `l2` goes into the gradient (adam), `shrink` straight into the weight (adamw). */
static void adam(const hl_update_kern *u, float l2, float shrink, float *w, const float *g, float *m, float *s, int64_t n)
{
    float b1 = u->beta1, b2 = u->beta2, c1 = u->rest1, c2 = u->rest2, rate = u->rate, eps = u->eps, scale = u->scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float grad = scale * g[i] + l2 * w[i];
        m[i] = b1 * m[i] + c1 * grad;
        s[i] = b2 * s[i] + c2 * grad * grad;
        w[i] -= rate * m[i] / (sqrtf(s[i]) + eps) + shrink * w[i];
    }
}

static void step(const hl_update_kern *u, float *w, const float *g, float *m, float *s, int64_t n)
{
    switch (u->kind) {
    case HALO_SGD:
        if (m)
            sgd(u, w, g, m, n);
        else
            sgd_plain(u, w, g, n);
        return;
    case HALO_NESTEROV:
        if (m)
            nesterov(u, w, g, m, n);
        else
            sgd_plain(u, w, g, n);
        return;
    case HALO_ADAM: adam(u, u->decay, 0.0f, w, g, m, s, n); return;
    case HALO_ADAMW: adam(u, 0.0f, u->decay, w, g, m, s, n); return;
    }
}

double HL_K(update)(const hl_update_kern *u, float *w, const float *g, float *m, float *s, int64_t n)
{
    double sum = 0;
    int64_t bad = 0;
    float largest = 0;
    for (int64_t i = 0; i < n; i += SPAN) {
        int64_t count = n - i < SPAN ? n - i : SPAN;
        step(u, w + i, g + i, m ? m + i : NULL, s ? s + i : NULL, count);
        sum += HL_K(sumsq)(w + i, count, &bad, &largest);
    }
    return sum;
}
