/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.cu -- one optimiser step: a thread works out in f64 what all elements share (LARC's factor, Adam's bias corrections), from the norms and the step
 * record on the device; then one pass over weights and state, with the sum of squares of the new weights; then that sum. The formulas stand at
 * halo_update_params in backend.h.
 */
#include "words.cuh"

typedef struct constants {
    float scale, lr, rate, decay, momentum, beta1, beta2, rest1, rest2, eps;
} constants;

static_assert(sizeof(constants) <= HL_UPDATE_CONSTANTS * sizeof(float), "the constants have their place in scratch");

static __device__ inline double larc_factor(const halo_update_params &u, double w2, double g2)
{
    double w = sqrt(w2), g = sqrt(g2);
    if (w == 0 || g == 0) return u.larc_zero;
    double local = fmax(u.trust * w / (g + u.larc_eps), u.larc_min);
    return u.larc == HALO_LARC_CLIP ? fmin(local, 1.0) : local;
}

HL_KERNEL(32) update_constants(halo_update_params u, const double *number, const double *stat, const double *stat2, float *out, const halo_step_record *record)
{
    if (threadIdx.x != 0) return;
    const double given = record->grad_scale * (number ? number[HALO_NUM_FACTOR] : 1);
    double lr = record->lr * u.lr_factor, scale = given, t = (double)record->t;
    if (u.larc != HALO_LARC_OFF) scale *= larc_factor(u, stat2[0], stat[0] * given * given);
    constants k;
    k.scale = (float)scale;
    k.lr = (float)lr;
    k.rate = (float)(lr * sqrt(1 - pow(u.beta2, t)) / (1 - pow(u.beta1, t)));
    k.decay = (float)(u.kind == HALO_ADAMW ? lr * u.weight_decay : u.weight_decay);
    k.momentum = (float)u.momentum;
    k.beta1 = (float)u.beta1;
    k.beta2 = (float)u.beta2;
    k.rest1 = (float)(1 - u.beta1);
    k.rest2 = (float)(1 - u.beta2);
    k.eps = (float)u.eps;
    *(constants *)(void *)out = k;
}

/* The new weight; m and v are the state. */
static __device__ inline float step_one(int kind, const constants &k, float w, float g, float *m, float *v)
{
    g *= k.scale;
    if (kind != HALO_ADAMW) g += k.decay * w;
    if (kind == HALO_SGD || kind == HALO_NESTEROV) {
        *m = k.momentum * *m - k.lr * g;
        return kind == HALO_SGD ? w + *m : w + (k.momentum * *m - k.lr * g);
    }
    float decay = kind == HALO_ADAMW ? k.decay * w : 0;
    *m = k.beta1 * *m + k.rest1 * g;
    *v = k.beta2 * *v + k.rest2 * g * g;
    return w - (k.rate * *m / (sqrtf(*v) + k.eps) + decay);
}

HL_KERNEL(HL_BLOCK) update_step(int kind, int64_t n, float *w, const float *g, float *m1, float *m2, const float *shares, double *sums, const double *number)
{
    HL_SHARED(double, shared, HL_BLOCK);
    const constants k = *(const constants *)(const void *)shares;
    bool skip = number && number[HALO_NUM_SKIP] != 0;
    double v[1] = {0};
    for (int64_t i = HL_INDEX; !skip && i < n; i += HL_STRIDE) {
        float m = m1 ? m1[i] : 0, s = m2 ? m2[i] : 0, new_w = step_one(kind, k, w[i], g[i], &m, &s);
        w[i] = new_w;
        if (m1) m1[i] = m;
        if (m2) m2[i] = s;
        v[0] += (double)new_w * new_w;
    }
    hl_block_sum<1>(v, shared);
    if (threadIdx.x == 0) sums[blockIdx.x] = v[0];
}

HL_KERNEL(32) update_norm(int64_t blocks, const double *sums, double *stat2, const double *number)
{
    if (threadIdx.x != 0 || (number && number[HALO_NUM_SKIP] != 0)) return;
    double sum = 0;
    for (int64_t i = 0; i < blocks; i++) sum += sums[i];
    stat2[0] = sum;
}

extern "C" cudaError_t hl_cuda_update_weights(cudaStream_t stream, const halo_update_params *u, int64_t n, float *w, const float *g, float *m1, float *m2, const double *number,
                                              const double *stat, double *stat2, void *scratch, const halo_step_record *record)
{
    float *shares = (float *)scratch;
    double *sums = (double *)(void *)(shares + HL_UPDATE_CONSTANTS);
    unsigned most = HL_UPDATE_BLOCKS, blocks = hl_grid(n) < most ? hl_grid(n) : most;
    bool adam = u->kind == HALO_ADAM || u->kind == HALO_ADAMW;
    cudaError_t e = HL_LAUNCH(update_constants, 1, 32, 0, stream, *u, HL_SPAN(number, HALO_NUMBERS), stat, (const double *)stat2, HL_SPAN(shares, HL_UPDATE_CONSTANTS), HL_SPAN(record, 1));
    if (e != cudaSuccess) return e;
    e = HL_LAUNCH(update_step, blocks, HL_BLOCK, 0, stream, (int)u->kind, n, HL_SPAN(w, n), HL_SPAN(g, n), HL_SPAN(m1, n), HL_SPAN(adam ? m2 : (float *)0, n),
                  (const float *)shares, HL_SPAN(sums, blocks), HL_SPAN(number, HALO_NUMBERS));
    if (e != cudaSuccess || !stat2) return e;
    return HL_LAUNCH(update_norm, 1, 32, 0, stream, (int64_t)blocks, (const double *)sums, HL_SPAN(stat2, 1), HL_SPAN(number, HALO_NUMBERS));
}
