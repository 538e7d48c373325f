/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.cu -- sums over groups of cells: squares with a count of what is not finite and the largest of the rest, and plain sums. Blocks leave their parts, one thread per group adds them. */
#include "words.cuh"

template <class T> HL_KERNEL(HL_BLOCK) square_parts(hl_groups g, const T *x, double *partial)
{
    HL_SHARED(double, shared, HL_BLOCK * 2);
    double v[2] = {0, 0}, *to = partial + blockIdx.x * HL_GROUP_SUMS;
    float most = 0;
    int64_t end = hl_part_end(g, g.cells.total);
    for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
        float a = hl_load(x, hl_at<1>(g.cells, i).a[0]);
        v[0] += (double)a * a;
        v[1] += !isfinite(a);
        if (isfinite(a)) most = fmaxf(most, fabsf(a));
    }
    hl_block_sum<2>(v, shared);
    shared[threadIdx.x] = most;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < HL_BLOCK; i++) most = fmaxf(most, (float)shared[i]);
    to[0] = v[0], to[1] = v[1], to[2] = most;
}

HL_KERNEL(32) square_total(hl_groups g, const double *partial, double *stat)
{
    if (threadIdx.x < 2) stat[threadIdx.x] = hl_parts_sum(g, partial, 0, (int)threadIdx.x);
    if (threadIdx.x != 2) return;
    double most = 0;
    for (int64_t i = 0; i < g.parts; i++) most = fmax(most, partial[i * HL_GROUP_SUMS + 2]);
    stat[2] = most;
}

template <class T> static cudaError_t square_launch(cudaStream_t stream, const hl_groups *g, const T *x, double *partial)
{
    return HL_LAUNCH(square_parts<T>, dim3((unsigned)g->parts), HL_BLOCK, 0, stream, *g, x, HL_SPAN(partial, g->parts * HL_GROUP_SUMS));
}

static cudaError_t squares(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial)
{
    HL_BY_TYPE(type, square_launch(stream, g, (const T *)x, partial));
}

extern "C" cudaError_t hl_cuda_sum_squares(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial, double *stat)
{
    cudaError_t e = squares(stream, type, g, x, partial);
    return e != cudaSuccess ? e : HL_LAUNCH(square_total, 1, 32, 0, stream, *g, (const double *)partial, HL_SPAN(stat, 3));
}

template <class T> HL_KERNEL(HL_BLOCK) cell_parts(hl_groups g, const T *x, double *partial)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t column = blockIdx.y; column < g.columns; column += gridDim.y) {
        hl_share s = hl_share_of(g, column, g.cells.total);
        int64_t start = hl_sum_start(g, s.sum, 0);
        double v[1] = {0};
        for (int64_t i = s.begin; i < s.end; i += s.step) v[0] += hl_load(x, start + hl_at<1>(g.cells, i).a[0]);
        hl_share_sum<1>(g, v, shared);
        if (s.tells) *hl_partial(g, partial, s) = v[0];
    }
}

template <class T> HL_KERNEL(HL_BLOCK) cell_totals(hl_groups g, const double *partial, T *sum, int accumulate)
{
    for (int64_t q = HL_INDEX; q < g.groups; q += HL_STRIDE) hl_store(sum, q, (float)((accumulate ? (double)hl_load(sum, q) : 0) + hl_parts_sum(g, partial, q, 0)));
}

static cudaError_t cells(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial)
{
    HL_BY_TYPE(type, HL_LAUNCH(cell_parts<T>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, (const T *)x, HL_SPAN(partial, hl_partials(g))));
}

static cudaError_t totals(cudaStream_t stream, halo_dtype type, const hl_groups *g, const double *partial, void *sum, int accumulate)
{
    HL_BY_TYPE(type, HL_LAUNCH(cell_totals<T>, hl_grid(g->groups), HL_BLOCK, 0, stream, *g, partial, HL_SPAN((T *)sum, g->groups), accumulate));
}

extern "C" cudaError_t hl_cuda_sum_cells(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *dy, double *partial, halo_dtype sum_type, void *sum, int accumulate)
{
    cudaError_t e = cells(stream, type, g, dy, partial);
    return e != cudaSuccess ? e : totals(stream, sum_type, g, partial, sum, accumulate);
}
