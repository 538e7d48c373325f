/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.cu -- box to box. f32, f16 and bf16 among each other go through f32, which holds both exactly; all else through double. To f16 and bf16 round to
 * nearest even, to integers round to nearest and saturate.
 */
#include "words.cuh"

template <class A, class B> HL_KERNEL(HL_BLOCK) copy_cells(hl_cells c, const A *from, B *to, int accumulate)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<2> at = hl_at<2>(c, i);
        float v = hl_load(from, at.a[1]);
        hl_store(to, at.a[0], accumulate ? hl_load(to, at.a[0]) + v : v);
    }
}

static __device__ inline double load_any(int type, const void *p, int64_t i)
{
    switch (type) {
    case HALO_F32: return ((const float *)p)[i];
    case HALO_F64: return ((const double *)p)[i];
    case HALO_F16: return __half2float(((const __half *)p)[i]);
    case HALO_BF16: return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    case HALO_U8: return ((const uint8_t *)p)[i];
    case HALO_I16: return ((const int16_t *)p)[i];
    case HALO_I32: return ((const int32_t *)p)[i];
    default: return 0;
    }
}

static __device__ inline double whole(double v, double low, double high)
{
    double r = rint(v);
    return r > high ? high : r >= low ? r : low;
}

static __device__ inline void store_any(int type, void *p, int64_t i, double v)
{
    switch (type) {
    case HALO_F32: ((float *)p)[i] = (float)v; break;
    case HALO_F64: ((double *)p)[i] = v; break;
    case HALO_F16: ((__half *)p)[i] = __float2half_rn((float)v); break;
    case HALO_BF16: ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn((float)v); break;
    case HALO_U8: ((uint8_t *)p)[i] = (uint8_t)whole(v, 0, 255); break;
    case HALO_I16: ((int16_t *)p)[i] = (int16_t)whole(v, -32768, 32767); break;
    case HALO_I32: ((int32_t *)p)[i] = (int32_t)whole(v, -2147483648.0, 2147483647.0); break;
    default: break;
    }
}

HL_KERNEL(HL_BLOCK) copy_any(hl_cells c, int from_type, int to_type, const void *from, void *to, int accumulate)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<2> at = hl_at<2>(c, i);
        double v = load_any(from_type, from, at.a[1]);
        if (accumulate) v += load_any(to_type, to, at.a[0]);
        store_any(to_type, to, at.a[0], v);
    }
}

/* ---------------------------------------------------------------------------------------------------- channel blocks */

typedef struct hl_blocks {
    int64_t ext[HL_CELL_DIMS], from[HL_CELL_DIMS], to[HL_CELL_DIMS], from_block, to_block;
    int64_t channels; /* with lanes to clear */
    int from_type, to_type, accumulate;
} hl_blocks;

static __device__ inline int64_t blocked_offset(const int64_t s[HL_CELL_DIMS], int64_t block, const int64_t i[HL_CELL_DIMS])
{
    return i[0] * s[0] + i[1] / block * s[1] + i[1] % block + i[2] * s[2] + i[3] * s[3] + i[4] * s[4];
}

HL_KERNEL(HL_BLOCK) copy_blocked(hl_blocks b, int64_t total, const void *from, void *to)
{
    for (int64_t i = HL_INDEX; i < total; i += HL_STRIDE) {
        int64_t at[HL_CELL_DIMS], rest = i;
        for (int k = HL_CELL_DIMS - 1; k >= 0; k--) {
            int64_t e = k == 1 ? b.channels : b.ext[k];
            at[k] = rest % e;
            rest /= e;
        }
        int64_t o = b.to_block > 1 ? blocked_offset(b.to, b.to_block, at) : at[0] * b.to[0] + at[1] * b.to[1] + at[2] * b.to[2] + at[3] * b.to[3] + at[4] * b.to[4];
        double v = 0;
        if (at[1] < b.ext[1])
            v = load_any(b.from_type, from,
                         b.from_block > 1 ? blocked_offset(b.from, b.from_block, at)
                                          : at[0] * b.from[0] + at[1] * b.from[1] + at[2] * b.from[2] + at[3] * b.from[3] + at[4] * b.from[4]);
        if (b.accumulate) v += load_any(b.to_type, to, o);
        store_any(b.to_type, to, o, v);
    }
}

static cudaError_t convert_blocked(cudaStream_t stream, const hl_copying *c, const void *from, void *to)
{
    hl_blocks b = {};
    int64_t total = 1;
    for (int k = 0; k < HL_CELL_DIMS; k++) b.ext[k] = c->ext[k], b.from[k] = c->from[k], b.to[k] = c->to[k];
    b.from_block = c->from_block, b.to_block = c->to_block, b.from_type = c->from_type, b.to_type = c->to_type, b.accumulate = c->accumulate;
    b.channels = c->clear_lanes ? (c->ext[1] + c->to_block - 1) / c->to_block * c->to_block : c->ext[1];
    for (int k = 0; k < HL_CELL_DIMS; k++) total *= k == 1 ? b.channels : b.ext[k];
    return HL_LAUNCH(copy_blocked, hl_grid(total), HL_BLOCK, 0, stream, b, total, from, to);
}

/* -------------------------------------------------------------------------------------------------------------- choice */

static bool is_short(halo_dtype t) { return t == HALO_F32 || t == HALO_F16 || t == HALO_BF16; }

template <class A> static cudaError_t convert_from(cudaStream_t stream, const hl_copying *c, const A *from, void *to)
{
    HL_BY_TYPE(c->to_type, HL_LAUNCH((copy_cells<A, T>), hl_grid(c->cells.total), HL_BLOCK, 0, stream, c->cells, from, (T *)to, c->accumulate));
}

extern "C" cudaError_t hl_cuda_convert(cudaStream_t stream, const hl_copying *c, const void *from, void *to)
{
    if (c->blocked) return convert_blocked(stream, c, from, to);
    if (!is_short(c->from_type) || !is_short(c->to_type))
        return HL_LAUNCH(copy_any, hl_grid(c->cells.total), HL_BLOCK, 0, stream, c->cells, (int)c->from_type, (int)c->to_type, from, to, c->accumulate);
    HL_BY_TYPE(c->from_type, convert_from(stream, c, (const T *)from, to));
}

/* ------------------------------------------------------------------------------------------------------------- windows */

template <class T> HL_KERNEL(HL_BLOCK) copy_window(hl_window_copy c, const T *from, T *to)
{
    for (int64_t i = HL_INDEX; i < c.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(c.places, i);
        int64_t o = hl_offset_of(c.to.stride, p);
        bool inside = true;
        for (int k = 0; k < HL_CELL_DIMS; k++) {
            p.i[k] += c.shift[k];
            inside = inside && p.i[k] >= 0 && p.i[k] < c.from.ext[k];
        }
        float v = inside ? hl_load(from, hl_offset_of(c.from.stride, p)) : 0;
        hl_store(to, o, c.accumulate ? hl_load(to, o) + v : v);
    }
}

extern "C" cudaError_t hl_cuda_copy_window(cudaStream_t stream, halo_dtype type, const hl_window_copy *c, const void *from, void *to)
{
    HL_BY_TYPE(type, HL_LAUNCH(copy_window<T>, hl_grid(c->places.total), HL_BLOCK, 0, stream, *c, (const T *)from, (T *)to));
}
