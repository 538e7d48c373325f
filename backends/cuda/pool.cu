/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.cu -- max and average pooling. Own kernels and not cuDNN's: backward has no x or y but the place of the largest cell, a byte per window, and a
 * window may end in a margin. Backward is a gather over the windows that a cell is in: no additions compete, the order is fixed.
 */
#include "words.cuh"

static __device__ inline int64_t cell_of(const hl_pooling &w, int k, int64_t p, int64_t tap) { return p * w.stride[k] - w.pad[k] + tap * w.dilation[k]; }

/* Cells of output p's window along axis k that exist. */
static __device__ inline int64_t inside(const hl_pooling &w, int k, int64_t p)
{
    int64_t n = 0;
#pragma unroll 1
    for (int64_t t = 0; t < w.kernel[k]; t++) {
        int64_t q = cell_of(w, k, p, t);
        n += q >= w.lo[k] && q < w.hi[k];
    }
    return n;
}

static __device__ inline float divisor(const hl_pooling &w, int64_t d, int64_t h, int64_t v)
{
    int64_t n = inside(w, 0, d) * inside(w, 1, h) * inside(w, 2, v);
    return (float)(n > 0 && w.count_pad ? w.kernel[0] * w.kernel[1] * w.kernel[2] : n);
}

static __device__ inline void put_tap(const hl_pooling &w, void *aux, int64_t at, int64_t tap)
{
    if (w.wide)
        ((int32_t *)aux)[at] = (int32_t)tap;
    else
        ((uint8_t *)aux)[at] = (uint8_t)tap;
}

static __device__ inline int64_t get_tap(const hl_pooling &w, const void *aux, int64_t at)
{
    return w.wide ? (int64_t)((const int32_t *)aux)[at] : (int64_t)((const uint8_t *)aux)[at];
}

template <class T> HL_KERNEL(HL_BLOCK) pool_forward(hl_cells places, hl_pooling w, hl_view xv, hl_view yv, hl_view av, const T *x, T *y, void *aux)
{
    for (int64_t i = HL_INDEX; i < places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(places, i);
        const int64_t base = p.i[0] * xv.stride[0] + p.i[1] * xv.stride[1];
        float best = 0, sum = 0;
        int64_t arg = -1;
#pragma unroll 1
        for (int64_t a = 0; a < w.kernel[0]; a++) {
            int64_t d = cell_of(w, 0, p.i[2], a);
            if (d < w.lo[0] || d >= w.hi[0]) continue;
#pragma unroll 1
            for (int64_t b = 0; b < w.kernel[1]; b++) {
                int64_t h = cell_of(w, 1, p.i[3], b);
                if (h < w.lo[1] || h >= w.hi[1]) continue;
#pragma unroll 1
                for (int64_t c = 0; c < w.kernel[2]; c++) {
                    int64_t v = cell_of(w, 2, p.i[4], c);
                    if (v < w.lo[2] || v >= w.hi[2]) continue;
                    float value = hl_load(x, base + d * xv.stride[2] + h * xv.stride[3] + v * xv.stride[4]);
                    sum += value;
                    if (arg >= 0 && !(value > best)) continue;
                    best = value;
                    arg = (a * w.kernel[1] + b) * w.kernel[2] + c;
                }
            }
        }
        float m = w.max ? 1 : divisor(w, p.i[2], p.i[3], p.i[4]);
        hl_store(y, hl_offset_of(yv.stride, p), w.max ? best : m > 0 ? sum / m : 0);
        if (aux && w.max) put_tap(w, aux, hl_offset_of(av.stride, p), arg < 0 ? 0 : arg);
    }
}

/* Of an average: bit k says whether cell p stride + k, k < stride, of the box is above 0. A pass of its own, over cells that the one before has left in the caches. */
template <class T> HL_KERNEL(HL_BLOCK) pool_signs(hl_cells places, hl_pooling w, hl_view xv, hl_view av, const T *x, uint8_t *aux)
{
    for (int64_t i = HL_INDEX; i < places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(places, i);
        const T *first = x + p.i[0] * xv.stride[0] + p.i[1] * xv.stride[1];
        int bits = 0, bit = 0;
#pragma unroll 1
        for (int64_t a = 0; a < w.stride[0]; a++)
#pragma unroll 1
            for (int64_t b = 0; b < w.stride[1]; b++)
#pragma unroll 1
                for (int64_t c = 0; c < w.stride[2]; c++, bit++) {
                    int64_t d = p.i[2] * w.stride[0] + a, h = p.i[3] * w.stride[1] + b, v = p.i[4] * w.stride[2] + c;
                    bool inside_box = d < xv.ext[2] && h < xv.ext[3] && v < xv.ext[4];
                    if (inside_box && hl_load(first, d * xv.stride[2] + h * xv.stride[3] + v * xv.stride[4]) > 0) bits |= 1 << bit;
                }
        aux[hl_offset_of(av.stride, p)] = (uint8_t)bits;
    }
}

template <class T>
static cudaError_t forward(cudaStream_t stream, const hl_cells *places, const hl_pooling *w, const hl_view *xv, const hl_view *yv, const hl_view *av, const T *x, T *y, void *aux)
{
    cudaError_t e = HL_LAUNCH(pool_forward<T>, hl_grid(places->total), HL_BLOCK, 0, stream, *places, *w, *xv, *yv, *av, x, y, aux);
    if (e != cudaSuccess || !aux || w->max) return e;
    return HL_LAUNCH(pool_signs<T>, hl_grid(places->total), HL_BLOCK, 0, stream, *places, *w, *xv, *av, x, (uint8_t *)aux);
}

extern "C" cudaError_t hl_cuda_pool_forward(cudaStream_t stream, halo_dtype type, const hl_cells *places, const hl_pooling *w, const hl_view *xv, const hl_view *yv, const hl_view *av,
                                            const void *x, void *y, void *aux)
{
    HL_BY_TYPE(type, forward(stream, places, w, xv, yv, av, (const T *)x, (T *)y, aux));
}

/* The output along axis k whose tap t is cell q; -1: none. */
static __device__ inline int64_t window_of(const hl_pooling &w, int k, int64_t q, int64_t t, int64_t outputs)
{
    int64_t at = q + w.pad[k] - t * w.dilation[k];
    if (at < 0 || at % w.stride[k] != 0) return -1;
    at /= w.stride[k];
    return at < outputs ? at : -1;
}

/* The derivative of the activation at cell q, whose sign is with window q / stride. */
static __device__ inline float sign_slope(const hl_pooling &w, const hl_view &dyv, const hl_view &av, const void *aux, const hl_place &q)
{
    hl_place own = q;
    int64_t bit = 0;
    for (int k = 0; k < 3; k++) {
        int64_t at = q.i[2 + k] / w.stride[k];
        own.i[2 + k] = at < dyv.ext[2 + k] ? at : dyv.ext[2 + k] - 1;
        bit = bit * w.stride[k] + q.i[2 + k] % w.stride[k];
    }
    return hl_slope_of(w.act, w.slope, get_tap(w, aux, hl_offset_of(av.stride, own)) >> bit & 1 ? 1.f : -1.f);
}

template <class T>
HL_KERNEL(HL_BLOCK) pool_backward(hl_cells places, hl_pooling w, hl_view dyv, hl_view dxv, hl_view av, const T *dy, const void *aux, T *dx, int accumulate)
{
    for (int64_t i = HL_INDEX; i < places.total; i += HL_STRIDE) {
        hl_place q = hl_place_of(places, i), p = q;
        int64_t o = hl_offset_of(dxv.stride, q);
        float sum = accumulate ? hl_load(dx, o) : 0;
#pragma unroll 1
        for (int64_t a = 0; a < w.kernel[0]; a++) {
            p.i[2] = window_of(w, 0, q.i[2], a, dyv.ext[2]);
            if (p.i[2] < 0) continue;
#pragma unroll 1
            for (int64_t b = 0; b < w.kernel[1]; b++) {
                p.i[3] = window_of(w, 1, q.i[3], b, dyv.ext[3]);
                if (p.i[3] < 0) continue;
#pragma unroll 1
                for (int64_t c = 0; c < w.kernel[2]; c++) {
                    p.i[4] = window_of(w, 2, q.i[4], c, dyv.ext[4]);
                    if (p.i[4] < 0) continue;
                    int64_t tap = (a * w.kernel[1] + b) * w.kernel[2] + c;
                    if (w.max && get_tap(w, aux, hl_offset_of(av.stride, p)) != tap) continue;
                    float v = hl_load(dy, hl_offset_of(dyv.stride, p));
                    sum += w.max ? v : v / divisor(w, p.i[2], p.i[3], p.i[4]);
                }
            }
        }
        hl_store(dx, o, w.signs ? sum * sign_slope(w, dyv, av, aux, q) : sum);
    }
}

extern "C" cudaError_t hl_cuda_pool_backward(cudaStream_t stream, halo_dtype type, const hl_cells *places, const hl_pooling *w, const hl_view *dyv, const hl_view *dxv,
                                             const hl_view *av, const void *dy, const void *aux, void *dx, int accumulate)
{
    HL_BY_TYPE(type, HL_LAUNCH(pool_backward<T>, hl_grid(places->total), HL_BLOCK, 0, stream, *places, *w, *dyv, *dxv, *av, (const T *)dy, aux, (T *)dx, accumulate));
}

/* ---------------------------------------------------------------------------------------- with the activation before it */

template <class T> HL_KERNEL(HL_BLOCK) act_pool_forward(hl_act_pooling a, const T *z, const float *bias, T *y, uint8_t *aux)
{
    for (int64_t i = HL_INDEX; i < a.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(a.places, i);
        const T *first = z + p.i[0] * a.z.stride[0] + p.i[1] * a.z.stride[1] + p.i[2] * a.side[0] * a.z.stride[2] + p.i[3] * a.side[1] * a.z.stride[3] +
                         p.i[4] * a.side[2] * a.z.stride[4];
        float b = bias ? bias[p.i[1]] : 0, best = 0, sum = 0;
        int tap = 0, arg = 0, bits = 0;
#pragma unroll 1
        for (int64_t d = 0; d < a.side[0]; d++)
#pragma unroll 1
            for (int64_t h = 0; h < a.side[1]; h++) {
                const T *row = first + d * a.z.stride[2] + h * a.z.stride[3];
#pragma unroll 1
                for (int64_t w = 0; w < a.side[2]; w++, tap++) {
                    float v = hl_activate(a.act, a.slope, hl_load(row, w * a.z.stride[4]) + b);
                    sum += v;
                    if (tap < 8 && v > 0) bits |= 1 << tap;
                    if (tap == 0 || v > best) best = v, arg = tap;
                }
            }
        hl_store(y, hl_offset_of(a.y.stride, p), a.max ? best : sum / (float)tap);
        if (aux) aux[hl_offset_of(a.aux.stride, p)] = (uint8_t)(a.max ? arg : bits);
    }
}

extern "C" cudaError_t hl_cuda_act_pool_forward(cudaStream_t stream, halo_dtype type, const hl_act_pooling *p, const void *z, const float *bias, void *y, uint8_t *aux)
{
    HL_BY_TYPE(type, HL_LAUNCH(act_pool_forward<T>, hl_grid(p->places.total), HL_BLOCK, 0, stream, *p, (const T *)z, bias, (T *)y, aux));
}

template <class T> HL_KERNEL(HL_BLOCK) act_pool_backward(hl_act_pooling a, hl_view dyv, const T *dy, const T *y, const uint8_t *aux, T *dx)
{
    const float cells = (float)(a.side[0] * a.side[1] * a.side[2]);
    for (int64_t i = HL_INDEX; i < a.places.total; i += HL_STRIDE) {
        hl_place q = hl_place_of(a.places, i), p = q;
        int64_t tap = 0;
        bool there = true;
        for (int k = 0; k < 3; k++) {
            int64_t at = q.i[2 + k] + a.pad[k];
            there = there && at >= 0 && at / a.side[k] < dyv.ext[2 + k];
            p.i[2 + k] = at / a.side[k];
            tap = tap * a.side[k] + at % a.side[k];
        }
        float v = 0;
        if (there) {
            int saved = aux ? aux[hl_offset_of(a.aux.stride, p)] : 0;
            float out = y ? hl_load(y, hl_offset_of(a.y.stride, p)) : 0, e = hl_load(dy, hl_offset_of(dyv.stride, p));
            if (!a.max)
                v = e * hl_slope_of(a.act, a.slope, tap < 8 && (saved >> tap & 1) ? 1.f : -1.f) / cells;
            else if (saved == tap)
                v = e * hl_slope_of(a.act, a.slope, out);
        }
        hl_store(dx, hl_offset_of(a.z.stride, q), v);
    }
}

extern "C" cudaError_t hl_cuda_act_pool_backward(cudaStream_t stream, halo_dtype type, const hl_act_pooling *p, const hl_view *dyv, const void *dy, const void *y, const uint8_t *aux,
                                                 void *dx)
{
    HL_BY_TYPE(type, HL_LAUNCH(act_pool_backward<T>, hl_grid(p->places.total), HL_BLOCK, 0, stream, *p, *dyv, (const T *)dy, (const T *)y, aux, (T *)dx));
}
