/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsample.cu -- linear upsampling by two, which takes two cells along an axis (tensor/upsample.h), and its adjoint. Along an axis cell p of x is read by the outputs
 * with 2 p - 1 <= u <= 2 p + 2, u = q + pad_lo - 1, so backward each cell of dx gathers from four.
 */
#include "words.cuh"

struct taps {
    int64_t cell[2];
    float weight[2];
};

static __device__ inline int64_t clamped(const hl_upsampling &u, int a, int64_t p)
{
    return p < u.volume[a][0] ? u.volume[a][0] : p >= u.volume[a][1] ? u.volume[a][1] - 1 : p;
}

static __device__ inline taps taps_of(const hl_upsampling &u, int a, int64_t q)
{
    taps t;
    if (u.stride[a] == 1) {
        t.cell[0] = t.cell[1] = q + u.pad_lo[a];
        t.weight[0] = 1, t.weight[1] = 0;
        return t;
    }
    int64_t at = q + u.pad_lo[a] - 1, i = at >= 0 ? at / 2 : -((1 - at) / 2);
    bool odd = at - 2 * i != 0;
    t.cell[0] = clamped(u, a, odd ? i : i - 1);
    t.cell[1] = clamped(u, a, odd ? i + 1 : i);
    t.weight[0] = odd ? 0.75f : 0.25f;
    t.weight[1] = odd ? 0.25f : 0.75f;
    return t;
}

template <class T> HL_KERNEL(HL_BLOCK) upsample_forward(hl_upsampling u, const T *x, T *y)
{
    for (int64_t i = HL_INDEX; i < u.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(u.places, i);
        const T *from = x + p.i[0] * u.x.stride[0] + p.i[1] * u.x.stride[1];
        taps d = taps_of(u, 0, p.i[2]), h = taps_of(u, 1, p.i[3]), w = taps_of(u, 2, p.i[4]);
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            float weight = d.weight[k >> 2 & 1] * h.weight[k >> 1 & 1] * w.weight[k & 1];
            if (weight > 0) sum += weight * hl_load(from, d.cell[k >> 2 & 1] * u.x.stride[2] + h.cell[k >> 1 & 1] * u.x.stride[3] + w.cell[k & 1] * u.x.stride[4]);
        }
        hl_store(y, hl_offset_of(u.y.stride, p), sum);
    }
}

/* How much output q of an axis takes of cell p; 0 where there is no such output. */
static __device__ inline float share(const hl_upsampling &u, int a, int64_t q, int64_t p)
{
    int64_t at = q + u.pad_lo[a] - (u.stride[a] == 2);
    if (q < u.lo[a] || q >= u.hi[a] || at < u.stride[a] * u.volume[a][0] || at >= u.stride[a] * u.volume[a][1]) return 0;
    taps t = taps_of(u, a, q);
    return (t.cell[0] == p ? t.weight[0] : 0) + (t.cell[1] == p ? t.weight[1] : 0);
}

/* The first output that may take of cell p, and how many may. */
static __device__ inline int64_t first_of(const hl_upsampling &u, int a, int64_t p) { return u.stride[a] == 1 ? p - u.pad_lo[a] : 2 * p - u.pad_lo[a]; }
static __device__ inline int count_of(const hl_upsampling &u, int a) { return u.stride[a] == 1 ? 1 : 4; }

template <class T> HL_KERNEL(HL_BLOCK) upsample_backward(hl_upsampling u, const T *dy, T *dx, int accumulate)
{
    for (int64_t i = HL_INDEX; i < u.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(u.places, i);
        const T *from = dy + p.i[0] * u.y.stride[0] + p.i[1] * u.y.stride[1];
        int64_t o = hl_offset_of(u.x.stride, p), first[3];
        float sum = accumulate ? hl_load(dx, o) : 0;
        for (int a = 0; a < 3; a++) first[a] = first_of(u, a, p.i[2 + a]);
#pragma unroll 1
        for (int d = 0; d < count_of(u, 0); d++) {
            float wd = share(u, 0, first[0] + d, p.i[2]);
#pragma unroll 1
            for (int h = 0; wd > 0 && h < count_of(u, 1); h++) {
                float wh = wd * share(u, 1, first[1] + h, p.i[3]);
#pragma unroll 1
                for (int w = 0; wh > 0 && w < count_of(u, 2); w++) {
                    float ww = wh * share(u, 2, first[2] + w, p.i[4]);
                    if (ww > 0) sum += ww * hl_load(from, (first[0] + d) * u.y.stride[2] + (first[1] + h) * u.y.stride[3] + (first[2] + w) * u.y.stride[4]);
                }
            }
        }
        hl_store(dx, o, sum);
    }
}

extern "C" cudaError_t hl_cuda_upsample_forward(cudaStream_t stream, halo_dtype type, const hl_upsampling *u, const void *x, void *y)
{
    HL_BY_TYPE(type, HL_LAUNCH(upsample_forward<T>, hl_grid(u->places.total), HL_BLOCK, 0, stream, *u, (const T *)x, (T *)y));
}

extern "C" cudaError_t hl_cuda_upsample_backward(cudaStream_t stream, halo_dtype type, const hl_upsampling *u, const void *dy, void *dx, int accumulate)
{
    HL_BY_TYPE(type, HL_LAUNCH(upsample_backward<T>, hl_grid(u->places.total), HL_BLOCK, 0, stream, *u, (const T *)dy, (T *)dx, accumulate));
}
