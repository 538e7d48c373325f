/* SPDX-License-Identifier: Apache-2.0 */
/* loss.cu -- losses with their gradients, a block per part of a sample; then one thread adds the parts in order. The formulas stand in loss.c. */
#include "words.cuh"

static __device__ inline float penalty(const hl_losing &l, float delta, float r)
{
    float a = fabsf(r);
    if (l.loss == HALO_LOSS_MAE) return a;
    if (l.loss == HALO_LOSS_MSE) return r * r;
    return a <= delta ? r * r / 2 : delta * (a - delta / 2);
}

static __device__ inline float gradient(const hl_losing &l, float delta, float r)
{
    float sign = (float)(r > 0) - (float)(r < 0);
    if (l.loss == HALO_LOSS_MSE) return 2 * r;
    if (l.loss == HALO_LOSS_MAE) return isnan(r) ? r : sign;
    return fabsf(r) <= delta || isnan(r) ? r : delta * sign;
}

template <class T>
HL_KERNEL(HL_BLOCK) lose_parts(hl_groups g, hl_losing l, const T *x, const T *t, const double *weight, T *dx, double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t x0 = hl_group_start(g, n, 0), t0 = hl_group_start(g, n, 1), d0 = hl_group_start(g, n, 2), end = hl_part_end(g, g.cells.total);
        float scale = (float)((weight ? weight[n] : 1) / l.targets * record->loss_scale / record->weight_sum), delta = (float)(record->delta > 0 ? record->delta : l.delta);
        double v[1] = {0};
        for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
            hl_offsets<3> at = hl_at<3>(g.cells, i);
            float r = hl_load(x, x0 + at.a[0]) - hl_load(t, t0 + at.a[1]);
            v[0] += penalty(l, delta, r);
            if (dx) hl_store(dx, d0 + at.a[2], gradient(l, delta, r) * scale);
        }
        hl_block_sum<1>(v, shared);
        if (threadIdx.x == 0) partial[(n * g.parts + blockIdx.x) * HL_GROUP_SUMS] = v[0];
    }
}

/* Of the cell whose logits are x[0], x[step], ... */
template <class T> static __device__ inline double lose_cell(const hl_losing &l, const T *x, float label, T *dx, float scale)
{
    float m = hl_load(x, 0), z = 0;
    bool known = label >= 0 && label < (float)l.classes && label == floorf(label);
    int64_t mine = known ? (int64_t)label : 0;
    for (int64_t c = 1; c < l.classes; c++) {
        float v = hl_load(x, c * l.x_step);
        m = v > m || isnan(v) ? v : m;
    }
    for (int64_t c = 0; c < l.classes; c++) z += expf(hl_load(x, c * l.x_step) - m);
    double loss = (double)(m - hl_load(x, mine * l.x_step)) + (double)logf(z);
    for (int64_t c = 0; dx && c < l.classes; c++) {
        float p = expf(hl_load(x, c * l.x_step) - m) / z - (float)(c == mine);
        hl_store(dx, c * l.dx_step, known ? p * scale : NAN);
    }
    return known ? loss : (double)NAN;
}

template <class T>
HL_KERNEL(HL_BLOCK) lose_classes(hl_groups g, hl_losing l, const T *x, const T *t, const double *weight, T *dx, double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t x0 = hl_group_start(g, n, 0), t0 = hl_group_start(g, n, 1), d0 = hl_group_start(g, n, 2), end = hl_part_end(g, g.cells.total);
        float scale = (float)((weight ? weight[n] : 1) / l.targets * record->loss_scale / record->weight_sum);
        double v[1] = {0};
        for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
            hl_offsets<3> at = hl_at<3>(g.cells, i);
            v[0] += lose_cell(l, x + x0 + at.a[0], hl_load(t, t0 + at.a[1]), dx ? dx + d0 + at.a[2] : dx, scale);
        }
        hl_block_sum<1>(v, shared);
        if (threadIdx.x == 0) partial[(n * g.parts + blockIdx.x) * HL_GROUP_SUMS] = v[0];
    }
}

HL_KERNEL(32) lose_total(hl_groups g, double targets, const double *weight, const double *partial, double *stat)
{
    if (threadIdx.x != 0) return;
    double loss = 0, sum = 0;
    for (int64_t n = 0; n < g.groups; n++) {
        double w = weight ? weight[n] : 1;
        loss += w * hl_parts_sum(g, partial, n, 0) / targets;
        sum += w;
    }
    stat[0] += loss;
    stat[1] += sum;
}

template <class T>
static cudaError_t lose(cudaStream_t stream, const hl_groups *g, const hl_losing *l, const T *x, const T *t, const double *weight, T *dx, double *partial, double *stat,
                        const halo_step_record *record)
{
    cudaError_t e = l->loss == HALO_LOSS_CROSS_ENTROPY
                        ? HL_LAUNCH(lose_classes<T>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, *l, x, t, weight, dx, HL_SPAN(partial, g->groups * g->parts * HL_GROUP_SUMS), HL_SPAN(record, 1))
                        : HL_LAUNCH(lose_parts<T>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, *l, x, t, weight, dx, HL_SPAN(partial, g->groups * g->parts * HL_GROUP_SUMS), HL_SPAN(record, 1));
    return e != cudaSuccess ? e : HL_LAUNCH(lose_total, 1, 32, 0, stream, *g, l->targets, weight, (const double *)partial, HL_SPAN(stat, 2));
}

extern "C" cudaError_t hl_cuda_lose(cudaStream_t stream, halo_dtype type, const hl_groups *g, const hl_losing *l, const void *x, const void *t, const double *weight, void *dx,
                                    double *partial, double *stat, const halo_step_record *record)
{
    HL_BY_TYPE(type, lose(stream, g, l, (const T *)x, (const T *)t, weight, (T *)dx, partial, stat, record));
}
