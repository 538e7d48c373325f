/* SPDX-License-Identifier: Apache-2.0 */
/* words.cuh -- what our kernels share: loads and stores by type, from an index to places, activations, sums of a block. */
#ifndef HL_CUDA_WORDS_CUH
#define HL_CUDA_WORDS_CUH

#include "kernel.h"
#include "kernels.h"

enum { HL_BLOCK = 256 };

/* ------------------------------------------------------------------------------------------------------------- values */

static __device__ inline float hl_load(const float *p, int64_t i) { return p[i]; }
static __device__ inline float hl_load(const __half *p, int64_t i) { return __half2float(p[i]); }
static __device__ inline float hl_load(const __nv_bfloat16 *p, int64_t i) { return __bfloat162float(p[i]); }
static __device__ inline void hl_store(float *p, int64_t i, float v) { p[i] = v; }
static __device__ inline void hl_store(__half *p, int64_t i, float v) { p[i] = __float2half_rn(v); }
static __device__ inline void hl_store(__nv_bfloat16 *p, int64_t i, float v) { p[i] = __float2bfloat16_rn(v); }

/* CALL with T as the type; a type that a plan should have refused is an error. */
#define HL_BY_TYPE(type, CALL)                                                                               \
    switch (type) {                                                                                          \
    case HALO_F32: {                                                                                         \
        typedef float T;                                                                                     \
        return CALL;                                                                                         \
    }                                                                                                        \
    case HALO_F16: {                                                                                         \
        typedef __half T;                                                                                    \
        return CALL;                                                                                         \
    }                                                                                                        \
    case HALO_BF16: {                                                                                        \
        typedef __nv_bfloat16 T;                                                                             \
        return CALL;                                                                                         \
    }                                                                                                        \
    default: return cudaErrorInvalidValue;                                                                   \
    }

static inline unsigned hl_grid(int64_t n)
{
    int64_t blocks = (n + HL_BLOCK - 1) / HL_BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks > 16384 ? 16384 : blocks);
}

/* ------------------------------------------------------------------------------------------------------------- places */

static __device__ inline uint32_t hl_high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

/* i becomes i / ext[k]; the remainder is returned. */
static __device__ inline int64_t hl_split(const hl_cells &c, int k, int64_t &i)
{
    int64_t q;
    if (c.few) {
        uint32_t u = (uint32_t)i;
        q = (int64_t)((hl_high(u, c.multiplier[k]) + u) >> c.shift[k]);
    } else {
        q = i / c.ext[k];
    }
    int64_t rest = i - q * c.ext[k];
    i = q;
    return rest;
}

template <int N> struct hl_offsets {
    int64_t a[N];
};

/* Where cell i is in the first N operands. */
template <int N> static __device__ inline hl_offsets<N> hl_at(const hl_cells &c, int64_t i)
{
    hl_offsets<N> o;
#pragma unroll
    for (int a = 0; a < N; a++) o.a[a] = 0;
#pragma unroll
    for (int k = HL_CELL_DIMS - 1; k > 0; k--) {
        if (k >= c.dims) continue;
        int64_t at = hl_split(c, k, i);
#pragma unroll
        for (int a = 0; a < N; a++) o.a[a] += at * c.stride[a][k];
    }
#pragma unroll
    for (int a = 0; a < N; a++) o.a[a] += i * c.stride[a][0];
    return o;
}

struct hl_place {
    int64_t i[HL_CELL_DIMS]; /* n c d h w */
};

static __device__ inline hl_place hl_place_of(const hl_cells &c, int64_t i)
{
    hl_place p;
    int64_t at[HL_CELL_DIMS];
#pragma unroll
    for (int k = HL_CELL_DIMS - 1; k > 0; k--) at[k] = hl_split(c, k, i);
    p.i[0] = i;
    p.i[1] = c.last ? at[4] : at[1];
#pragma unroll
    for (int k = 2; k < HL_CELL_DIMS; k++) p.i[k] = c.last ? at[k - 1] : at[k];
    return p;
}

static __device__ inline int64_t hl_offset_of(const int64_t stride[HL_CELL_DIMS], const hl_place &p)
{
    int64_t o = 0;
#pragma unroll
    for (int k = 0; k < HL_CELL_DIMS; k++) o += stride[k] * p.i[k];
    return o;
}

/* Of n samples, those that are there. */
static __device__ inline int64_t hl_there(const halo_step_record *record, int64_t n)
{
    return record->batch > 0 ? n - n / record->batch * record->padding : n;
}

/* -------------------------------------------------------------------------------------------------------- activations */

static __device__ inline float hl_activate(int act, float slope, float x)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: return x > 0 ? x : slope * x;
    case HALO_ACT_RELU: return x > 0 ? x : x * 0; /* NaN stays NaN */
    case HALO_ACT_TANH: return tanhf(x);
    case HALO_ACT_SIGMOID: return 1 / (1 + expf(-x));
    case HALO_ACT_SCALE: return slope * x;
    default: return x;
    }
}

/* From the output y. */
static __device__ inline float hl_slope_of(int act, float slope, float y)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: return y > 0 ? 1 : slope;
    case HALO_ACT_RELU: return y > 0 ? 1 : 0;
    case HALO_ACT_TANH: return 1 - y * y;
    case HALO_ACT_SIGMOID: return y * (1 - y);
    case HALO_ACT_SCALE: return slope;
    default: return 1;
    }
}

/* --------------------------------------------------------------------------------------------------------------- sums */

/* Sums of v over the block, in thread 0's v; the order of additions is fixed. shared: HL_BLOCK * K doubles. All threads come here. */
template <int K> static __device__ inline void hl_block_sum(double (&v)[K], double *shared)
{
    const int rows = 16, t = (int)threadIdx.x;
    for (int k = 0; k < K; k++) shared[t * K + k] = v[k];
    __syncthreads();
    if (t < rows)
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int j = 0; j < HL_BLOCK / rows; j++) sum += shared[(t * (HL_BLOCK / rows) + j) * K + k];
            v[k] = sum;
        }
    __syncthreads();
    if (t < rows)
        for (int k = 0; k < K; k++) shared[t * K + k] = v[k];
    __syncthreads();
    if (t == 0)
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int j = 0; j < rows; j++) sum += shared[j * K + k];
            v[k] = sum;
        }
    __syncthreads();
}

/* Where sum s begins in operand a. */
static __device__ inline int64_t hl_sum_start(const hl_groups &g, int64_t s, int a)
{
    return s / g.minor * g.major_step[a] + s % g.minor * g.minor_step[a];
}

static __device__ inline int64_t hl_group_start(const hl_groups &g, int64_t q, int a) { return hl_sum_start(g, q * g.per, a); }

/* Cells of a sum that are there. */
static __device__ inline int64_t hl_sum_cells(const hl_groups &g, const halo_step_record *record)
{
    return g.samples > 0 ? g.cells.total / g.samples * hl_there(record, g.samples) : g.cells.total;
}

/* One block per part and column; columns beyond the grid's y come in turns. */
static inline dim3 hl_group_grid(const hl_groups *g)
{
    return dim3((unsigned)g->parts, (unsigned)(g->columns < 65535 ? g->columns : 65535));
}

static inline int64_t hl_partials(const hl_groups *g) { return g->groups * g->per * g->parts * HL_GROUP_SUMS; }

/* This block's part of [0, cells). */
static __device__ inline int64_t hl_part_begin(const hl_groups &g, int64_t cells) { return cells * blockIdx.x / g.parts; }
static __device__ inline int64_t hl_part_end(const hl_groups &g, int64_t cells) { return cells * (blockIdx.x + 1) / g.parts; }

/* A thread's cells of its block's part: begin, begin + step, ... before end, of a sum. Threads that are neighbours take neighbouring sums, g.lanes of them, and
 * then neighbouring cells. One thread per sum tells what its block found. */
struct hl_share {
    int64_t sum, begin, end, step;
    bool tells;
};

static __device__ inline hl_share hl_share_of(const hl_groups &g, int64_t column, int64_t cells)
{
    const int lanes = (int)g.lanes, rows = HL_BLOCK / lanes, row = (int)threadIdx.x / lanes;
    const int64_t at = column % g.chunks * lanes + (int)threadIdx.x % lanes;
    const bool there = row < rows && at < g.minor;
    hl_share s;
    s.sum = column / g.chunks * g.minor + (there ? at : 0);
    s.end = hl_part_end(g, cells);
    s.begin = there ? hl_part_begin(g, cells) + row : s.end;
    s.step = rows;
    s.tells = there && row == 0;
    return s;
}

/* Sums of v over the threads of a sum, in the v of the one that tells; the order of additions is fixed. shared: HL_BLOCK * K doubles. All threads come here. */
template <int K> static __device__ inline void hl_share_sum(const hl_groups &g, double (&v)[K], double *shared)
{
    const int lanes = (int)g.lanes, rows = HL_BLOCK / lanes, t = (int)threadIdx.x;
    if (lanes == 1) {
        hl_block_sum<K>(v, shared);
        return;
    }
    for (int k = 0; k < K; k++) shared[k * HL_BLOCK + t] = v[k];
    __syncthreads();
    for (int k = 0; k < K && t < lanes; k++)
        for (int row = 1; row < rows; row++) v[k] += shared[k * HL_BLOCK + row * lanes + t];
    __syncthreads();
}

/* Where a sum's block leaves what it found. */
static __device__ inline double *hl_partial(const hl_groups &g, double *partial, const hl_share &s) { return partial + (s.sum * g.parts + blockIdx.x) * HL_GROUP_SUMS; }

/* Number k of group q over its sums and their parts. */
static __device__ inline double hl_parts_sum(const hl_groups &g, const double *partial, int64_t q, int k)
{
    double sum = 0;
    const int64_t n = g.per * g.parts;
    for (int64_t i = 0; i < n; i++) sum += partial[(q * n + i) * HL_GROUP_SUMS + k];
    return sum;
}

#endif
