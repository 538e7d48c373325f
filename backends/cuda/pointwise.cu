/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.cu -- operations whose output cell depends on the same cell alone. One pass over memory each: bias and activation go together, and in
 * place, because a convolution's own pass has just left y in the caches.
 */
#include "words.cuh"

#include "base/rng.h"

template <class T> HL_KERNEL(HL_BLOCK) act_forward(hl_cells c, T *y, const T *x, int act, float slope)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<2> at = hl_at<2>(c, i);
        hl_store(y, at.a[0], hl_activate(act, slope, hl_load(x, at.a[1])));
    }
}

extern "C" cudaError_t hl_cuda_act_forward(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, halo_act act, double slope)
{
    HL_BY_TYPE(type, HL_LAUNCH(act_forward<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)y, (const T *)x, (int)act, (float)slope));
}

template <class T> HL_KERNEL(HL_BLOCK) act_backward(hl_cells c, T *dx, const T *y, const T *dy, int act, float slope, int accumulate)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<3> at = hl_at<3>(c, i);
        float v = hl_load(dy, at.a[2]) * hl_slope_of(act, slope, hl_load(y, at.a[1]));
        hl_store(dx, at.a[0], accumulate ? hl_load(dx, at.a[0]) + v : v);
    }
}

extern "C" cudaError_t hl_cuda_act_backward(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *dx, const void *y, const void *dy, halo_act act, double slope,
                                            int accumulate)
{
    HL_BY_TYPE(type, HL_LAUNCH(act_backward<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)dx, (const T *)y, (const T *)dy, (int)act, (float)slope, accumulate));
}

template <class T> HL_KERNEL(HL_BLOCK) sum_two(hl_cells c, T *y, const T *x, const T *x2)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<3> at = hl_at<3>(c, i);
        hl_store(y, at.a[0], hl_load(x, at.a[1]) + hl_load(x2, at.a[2]));
    }
}

extern "C" cudaError_t hl_cuda_sum_two(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, const void *x2)
{
    HL_BY_TYPE(type, HL_LAUNCH(sum_two<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)y, (const T *)x, (const T *)x2));
}

template <class T> HL_KERNEL(HL_BLOCK) bias_act(hl_cells c, T *y, const float *bias, int act, float slope)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<2> at = hl_at<2>(c, i);
        float b = bias ? bias[at.a[1]] : 0;
        hl_store(y, at.a[0], hl_activate(act, slope, hl_load(y, at.a[0]) + b));
    }
}

extern "C" cudaError_t hl_cuda_bias_act(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const float *bias, halo_act act, double slope)
{
    HL_BY_TYPE(type, HL_LAUNCH(bias_act<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)y, bias, (int)act, (float)slope));
}

/* ------------------------------------------------------------------------------------------------------------ dropout */

/* Philox 4x32-10 as in base/rng.h, word i of the numbers of (index / 4, step, layer). */
static __device__ inline uint32_t random_word(uint64_t seed, uint64_t step, uint64_t layer, uint64_t index)
{
    uint64_t counter = index / 4, other = step << 24 | layer;
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)other, (uint32_t)(other >> 32)};
    uint32_t k0 = (uint32_t)seed ^ (uint32_t)HL_STREAM_DROPOUT * 0x85ebca6bu, k1 = (uint32_t)(seed >> 32) + (uint32_t)HL_STREAM_DROPOUT;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    uint32_t word = (uint32_t)(index % 4);
    return word < 2 ? (word == 0 ? c[0] : c[1]) : (word == 2 ? c[2] : c[3]);
}

template <class T> HL_KERNEL(HL_BLOCK) drop(hl_dropping d, T *y, const T *x, const halo_step_record *record)
{
    uint64_t first = d.first + (uint64_t)record->first_sample * d.per_sample;
    double limit = d.keep * 4294967296.0;
    float keep = (float)d.keep;
    for (int64_t i = HL_INDEX; i < d.cells.total; i += HL_STRIDE) {
        hl_offsets<3> at = hl_at<3>(d.cells, i);
        uint32_t word = random_word(record->seed, record->step, d.layer, first + (uint64_t)at.a[2]);
        hl_store(y, at.a[0], (double)word < limit ? hl_load(x, at.a[1]) / keep : 0);
    }
}

extern "C" cudaError_t hl_cuda_drop(cudaStream_t stream, halo_dtype type, const hl_dropping *d, void *y, const void *x, const halo_step_record *record)
{
    HL_BY_TYPE(type, HL_LAUNCH(drop<T>, hl_grid(d->cells.total), HL_BLOCK, 0, stream, *d, (T *)y, (const T *)x, HL_SPAN(record, 1)));
}
