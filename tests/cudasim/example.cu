/* SPDX-License-Identifier: Apache-2.0 */
/* example.cu -- kernels for the simulator's own tests: what a backend's look like, and then each defect that
 * the simulator should catch. */
#include "backends/cuda/kernel.h"
#include "example.hpp"

HL_KERNEL(256) scale(float *y, const float *x, float a, int64_t n)
{
    for (int64_t i = HL_INDEX; i < n; i += HL_STRIDE) y[i] = a * x[i];
}

HL_KERNEL(64)
fill_box(float *y, int64_t e0, int64_t e1, int64_t e2, int64_t s0, int64_t s1, int64_t s2, float v)
{
    for (int64_t i = HL_INDEX; i < e0 * e1 * e2; i += HL_STRIDE)
        y[i / (e1 * e2) * s0 + i / e2 % e1 * s1 + i % e2 * s2] = v;
}

template <class T, class U> HL_KERNEL(128) cast(T *y, const U *x, int64_t n)
{
    for (int64_t i = HL_INDEX; i < n; i += HL_STRIDE) y[i] = __float2half_rn(x[i]);
}

/* The sum of all x is added to *out: registers, lanes, warps through shared memory, blocks by an atomic */
HL_KERNEL(256) sum(float *out, const float *x, int64_t n)
{
    HL_SHARED(float, part, 32);
    float v = 0;
    for (int64_t i = HL_INDEX; i < n; i += HL_STRIDE) v += x[i];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x == 0) atomicAdd(out, v);
}

HL_KERNEL(256) transpose(float *y, const float *x, int rows, int columns)
{
    HL_SHARED_DYNAMIC(float, tile);
    int r = (int)(blockIdx.y * blockDim.y + threadIdx.y), c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (r < rows && c < columns) tile[threadIdx.y * blockDim.x + threadIdx.x] = x[r * columns + c];
    __syncthreads();
    r = (int)(blockIdx.y * blockDim.y + threadIdx.x);
    c = (int)(blockIdx.x * blockDim.x + threadIdx.y);
    if (r < rows && c < columns) y[c * rows + r] = tile[threadIdx.x * blockDim.x + threadIdx.y];
}

HL_KERNEL(64) votes(float *y)
{
    unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x % 2);
    int any = __any_sync(0xffffffffu, threadIdx.x == 40), all = __all_sync(0xffffffffu, threadIdx.x < 32);
    float up = __shfl_up_sync(0xffffffffu, (float)threadIdx.x, 1),
          zero = __shfl_sync(0xffffffffu, (float)threadIdx.x, 0);
    y[threadIdx.x] =
        (odd == 0xaaaaaaaau ? 1000000.f : 0.f) + 100000.f * any + 10000.f * all + 100.f * up + zero;
}

/* --- defects */

HL_KERNEL(64) past_end(float *y, int64_t n, int64_t by)
{
    int64_t i = HL_INDEX;
    if (i < n) y[i] = 1;
    if (i == n) y[i + by - 1] = 1;
}

HL_KERNEL(64) early_return(float *y)
{
    if (threadIdx.x < 7) return;
    __syncthreads();
    y[threadIdx.x] = 1;
}

HL_KERNEL(64) divergent(float *y)
{
    if (threadIdx.x < 32) __syncthreads();
    y[threadIdx.x] = 1;
    if (threadIdx.x >= 32) y[threadIdx.x] += __shfl_sync(0xffffffffu, 1.f, 0);
}

HL_KERNEL(48) lonely_shuffle(float *y)
{
    y[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.f, 1); /* the second warp has 16 lanes */
}

struct hiding {
    float *p;
};

HL_KERNEL(1) hidden_pointer(float *y, hiding h)
{
    y[0] = h.p[0];
}

HL_KERNEL(32) fresh_shared(float *y)
{
    HL_SHARED(float, acc, 1);
    if (threadIdx.x > 0) return;
    acc[0] += 1; /* nobody made it zero */
    y[blockIdx.x] = acc[0];
}

/* Threads read what others wrote, and nothing makes them wait */
HL_KERNEL(64) no_barrier(float *y)
{
    HL_SHARED(float, line, 64);
    line[threadIdx.x] = (float)threadIdx.x;
    y[threadIdx.x] = line[63 - threadIdx.x];
}

HL_KERNEL(33) past_shared(float *y)
{
    HL_SHARED(float, line, 32);
    line[threadIdx.x] = 1;
    y[threadIdx.x] = line[threadIdx.x];
}

HL_KERNEL(64) uses_dynamic(float *y)
{
    HL_SHARED_DYNAMIC(float, line);
    y[0] = line[0] = 1;
}

/* --- launches */

static unsigned blocks(int64_t n, int threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

cudaError_t example_scale(cudaStream_t s, float *y, const float *x, float a, int64_t n)
{
    return HL_LAUNCH(scale, blocks(n, 256), 256, 0, s, HL_SPAN(y, n), HL_SPAN(x, n), a, n);
}

cudaError_t example_scale_rest(cudaStream_t s, float *y, const float *x, float a, int64_t n)
{
    return HL_LAUNCH(scale, blocks(n, 256), 256, 0, s, y, x, a, n);
}

cudaError_t example_fill_box(cudaStream_t s, float *y, const int64_t *e, const int64_t *st, float v)
{
    return HL_LAUNCH(fill_box, 2, 64, 0, s, HL_BOX(y, 3, e, st), e[0], e[1], e[2], st[0], st[1], st[2], v);
}

cudaError_t example_cast(cudaStream_t s, void *y, const float *x, int64_t n)
{
    return HL_LAUNCH((cast<__half, float>), blocks(n, 128), 128, 0, s, HL_SPAN((__half *)y, n), HL_SPAN(x, n),
                     n);
}

cudaError_t example_sum(cudaStream_t s, float *out, const float *x, int64_t n)
{
    return HL_LAUNCH(sum, 3, 256, 0, s, HL_SPAN(out, 1), HL_SPAN(x, n), n);
}

cudaError_t example_transpose(cudaStream_t s, float *y, const float *x, int rows, int columns)
{
    dim3 grid(blocks(columns, 16), blocks(rows, 16)), block(16, 16);
    return HL_LAUNCH(transpose, grid, block, 16 * 16 * sizeof(float), s, y, x, rows, columns);
}

cudaError_t example_votes(cudaStream_t s, float *y)
{
    return HL_LAUNCH(votes, 1, 64, 0, s, HL_SPAN(y, 64));
}

cudaError_t example_past_end(cudaStream_t s, float *y, int64_t n, int64_t by)
{
    return HL_LAUNCH(past_end, blocks(n + 1, 64), 64, 0, s, HL_SPAN(y, n), n, by);
}

cudaError_t example_early_return(cudaStream_t s, float *y)
{
    return HL_LAUNCH(early_return, 1, 64, 0, s, y);
}

cudaError_t example_divergent(cudaStream_t s, float *y)
{
    return HL_LAUNCH(divergent, 1, 64, 0, s, y);
}

cudaError_t example_lonely_shuffle(cudaStream_t s, float *y)
{
    return HL_LAUNCH(lonely_shuffle, 1, 48, 0, s, y);
}

cudaError_t example_hidden_pointer(cudaStream_t s, float *y)
{
    hiding h = {y};
    return HL_LAUNCH(hidden_pointer, 1, 1, 0, s, y, h);
}

cudaError_t example_fresh_shared(cudaStream_t s, float *y)
{
    return HL_LAUNCH(fresh_shared, 2, 32, 0, s, HL_SPAN(y, 2));
}

cudaError_t example_no_barrier(cudaStream_t s, float *y)
{
    return HL_LAUNCH(no_barrier, 1, 64, 0, s, HL_SPAN(y, 64));
}

cudaError_t example_past_shared(cudaStream_t s, float *y)
{
    return HL_LAUNCH(past_shared, 1, 33, 0, s, y);
}

cudaError_t example_too_many_threads(cudaStream_t s, float *y)
{
    return HL_LAUNCH(uses_dynamic, 1, 1025, 16, s, y);
}

cudaError_t example_too_much_shared(cudaStream_t s, float *y, size_t bytes)
{
    return HL_LAUNCH(uses_dynamic, 1, 1, bytes, s, y);
}

const void *example_kernel(void)
{
    return (const void *)uses_dynamic;
}
