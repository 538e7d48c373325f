/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.cu -- batch, group and instance normalisation; the formulas stand in norm.c.
 *
 * Moments in one pass over x: sums of x - k and of its square in f64, k the group's first element, so that a mean far from zero costs no digits. What
 * does not change within a group and channel is worked out once, in f64, and put into a table of floats that the pointwise kernels read; the
 * mean is two floats there, of which the second is what the first lacks.
 */
#include "words.cuh"

/* ---------------------------------------------------------------------------------------------------------- statistics */

template <class T> HL_KERNEL(HL_BLOCK) moment_parts(hl_groups g, const T *x, double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK * 2);
    int64_t cells = hl_sum_cells(g, record);
    for (int64_t column = blockIdx.y; column < g.columns; column += gridDim.y) {
        hl_share s = hl_share_of(g, column, cells);
        int64_t start = hl_sum_start(g, s.sum, 0);
        double v[2] = {0, 0}, k = hl_load(x, hl_group_start(g, s.sum / g.per, 0));
        for (int64_t i = s.begin; i < s.end; i += s.step) {
            double a = hl_load(x, start + hl_at<1>(g.cells, i).a[0]) - k;
            v[0] += a;
            v[1] += a * a;
        }
        hl_share_sum<2>(g, v, shared);
        if (s.tells) {
            double *to = hl_partial(g, partial, s);
            to[0] = v[0], to[1] = v[1];
        }
    }
}

template <class T> HL_KERNEL(HL_BLOCK) moment_totals(hl_groups g, const T *x, const double *partial, double *stat, const halo_step_record *record)
{
    double count = (double)(hl_sum_cells(g, record) * g.per);
    for (int64_t q = HL_INDEX; q < g.groups; q += HL_STRIDE) {
        double s = hl_parts_sum(g, partial, q, 0), squares = hl_parts_sum(g, partial, q, 1), k = hl_load(x, hl_group_start(g, q, 0));
        double m2 = count > 0 ? squares - s * s / count : 0;
        stat[q * 3] = count;
        stat[q * 3 + 1] = count > 0 ? k + s / count : 0;
        stat[q * 3 + 2] = m2 < 0 ? 0 : m2; /* NaN stays */
    }
}

template <class T>
static cudaError_t norm_sums(cudaStream_t stream, const hl_groups *g, const T *x, double *partial, double *stat, const halo_step_record *record)
{
    cudaError_t e = HL_LAUNCH(moment_parts<T>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, x, HL_SPAN(partial, hl_partials(g)), HL_SPAN(record, 1));
    if (e != cudaSuccess) return e;
    return HL_LAUNCH(moment_totals<T>, hl_grid(g->groups), HL_BLOCK, 0, stream, *g, x, (const double *)partial, HL_SPAN(stat, g->groups * 3), HL_SPAN(record, 1));
}

extern "C" cudaError_t hl_cuda_norm_sums(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial, double *stat, const halo_step_record *record)
{
    HL_BY_TYPE(type, norm_sums(stream, g, (const T *)x, partial, stat, record));
}

/* --------------------------------------------------------------------------------------------------------------- apply */

/* Rows: mean, its rest, gamma / sqrt(var + eps), beta */
HL_KERNEL(HL_BLOCK) norm_table(hl_norming n, const double *stat, const float *run, const float *gamma, const float *beta, float *table)
{
#pragma unroll 1
    for (int64_t i = HL_INDEX; i < n.groups * n.channels; i += HL_STRIDE) {
        int64_t c = i % n.channels, q = i / n.channels * n.features + c / (n.channels / n.features);
        double mean = n.inference ? run[c] : stat[q * 3 + 1], var = n.inference ? run[n.channels + c] : stat[q * 3 + 2] / stat[q * 3];
        float *row = table + i * HL_NORM_ROW;
        row[0] = (float)mean;
        row[1] = (float)(mean - (double)row[0]);
        row[2] = (float)((double)gamma[c] / sqrt(var + n.eps));
        row[3] = beta[c];
    }
}

extern "C" cudaError_t hl_cuda_norm_table(cudaStream_t stream, const hl_norming *n, const double *stat, const float *run, const float *gamma, const float *beta, float *table)
{
    return HL_LAUNCH(norm_table, hl_grid(n->groups * n->channels), HL_BLOCK, 0, stream, *n, stat, run, HL_SPAN(gamma, n->channels), HL_SPAN(beta, n->channels),
                     HL_SPAN(table, n->groups * n->channels * HL_NORM_ROW));
}

template <class T> HL_KERNEL(HL_BLOCK) norm_write(hl_cells c, T *y, const T *x, const float *table, int act, float slope)
{
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<3> at = hl_at<3>(c, i);
        const float *row = table + at.a[2] * HL_NORM_ROW;
        float v = (hl_load(x, at.a[1]) - row[0] - row[1]) * row[2] + row[3];
        hl_store(y, at.a[0], hl_activate(act, slope, v));
    }
}

extern "C" cudaError_t hl_cuda_norm_write(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, const float *table, halo_act act, double slope)
{
    HL_BY_TYPE(type, HL_LAUNCH(norm_write<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)y, (const T *)x, table, (int)act, (float)slope));
}

HL_KERNEL(HL_BLOCK) norm_running(hl_norming n, const double *stat, float *run)
{
#pragma unroll 1
    for (int64_t c = HL_INDEX; c < n.channels; c += HL_STRIDE) {
        double count = stat[c * 3], var = stat[c * 3 + 2] / (n.unbiased && count > 1 ? count - 1 : count);
        run[c] = (float)(n.momentum * run[c] + (1 - n.momentum) * stat[c * 3 + 1]);
        run[n.channels + c] = (float)(n.momentum * run[n.channels + c] + (1 - n.momentum) * var);
    }
}

extern "C" cudaError_t hl_cuda_norm_running(cudaStream_t stream, const hl_norming *n, const double *stat, float *run)
{
    return HL_LAUNCH(norm_running, hl_grid(n->channels), HL_BLOCK, 0, stream, *n, HL_SPAN(stat, n->channels * 3), HL_SPAN(run, n->channels * 2));
}

/* ------------------------------------------------------------------------------------------------------------ backward */

/* Groups here are (g, channel), a sum each; their moments those of (g, feature). */
template <class T>
HL_KERNEL(HL_BLOCK) back_parts(hl_groups g, hl_norming n, const T *x, const T *dy, const double *stat, double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK * 2);
    int64_t cells = hl_sum_cells(g, record);
    for (int64_t column = blockIdx.y; column < g.columns; column += gridDim.y) {
        hl_share s = hl_share_of(g, column, cells);
        int64_t q = s.sum, x0 = hl_sum_start(g, q, 0), y0 = hl_sum_start(g, q, 1), c = q % n.channels, m = q / n.channels * n.features + c / (n.channels / n.features);
        double v[2] = {0, 0}, mean = stat[m * 3 + 1];
        float inv = (float)(1 / sqrt(stat[m * 3 + 2] / stat[m * 3] + n.eps)), high = (float)mean, low = (float)(mean - (double)high);
        for (int64_t i = s.begin; i < s.end; i += s.step) {
            hl_offsets<2> at = hl_at<2>(g.cells, i);
            float e = hl_load(dy, y0 + at.a[1]), xhat = (hl_load(x, x0 + at.a[0]) - high - low) * inv;
            v[0] += e;
            v[1] += (double)e * xhat;
        }
        hl_share_sum<2>(g, v, shared);
        if (s.tells) {
            double *to = hl_partial(g, partial, s);
            to[0] = v[0], to[1] = v[1];
        }
    }
}

HL_KERNEL(HL_BLOCK) back_totals(hl_groups g, const double *partial, double *stat2)
{
    for (int64_t q = HL_INDEX; q < g.groups; q += HL_STRIDE) {
        stat2[q * 2] = hl_parts_sum(g, partial, q, 0);
        stat2[q * 2 + 1] = hl_parts_sum(g, partial, q, 1);
    }
}

template <class T>
static cudaError_t back_sums(cudaStream_t stream, const hl_groups *g, const hl_norming *n, const T *x, const T *dy, const double *stat, double *partial, double *stat2,
                             const halo_step_record *record)
{
    cudaError_t e = HL_LAUNCH(back_parts<T>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, *n, x, dy, stat, HL_SPAN(partial, hl_partials(g)), HL_SPAN(record, 1));
    return e != cudaSuccess ? e : HL_LAUNCH(back_totals, hl_grid(g->groups), HL_BLOCK, 0, stream, *g, (const double *)partial, HL_SPAN(stat2, g->groups * 2));
}

extern "C" cudaError_t hl_cuda_norm_back_sums(cudaStream_t stream, halo_dtype type, const hl_groups *g, const hl_norming *n, const void *x, const void *dy, const double *stat,
                                              double *partial, double *stat2, const halo_step_record *record)
{
    HL_BY_TYPE(type, back_sums(stream, g, n, (const T *)x, (const T *)dy, stat, partial, stat2, record));
}

/* Rows, r = 1 / sqrt(var + eps): mean, its rest, r, gamma r, r S / m, r T / m */
HL_KERNEL(HL_BLOCK) back_table(hl_norming n, const double *stat, const double *stat2, const float *gamma, float *table)
{
    int64_t per = n.channels / n.features;
#pragma unroll 1
    for (int64_t i = HL_INDEX; i < n.groups * n.channels; i += HL_STRIDE) {
        int64_t g = i / n.channels, c = i % n.channels, f = c / per, q = g * n.features + f;
        double s = 0, t = 0, m = stat[q * 3], mean = stat[q * 3 + 1], r = 1 / sqrt(stat[q * 3 + 2] / m + n.eps);
        for (int64_t k = f * per; k < (f + 1) * per; k++) {
            s += (double)gamma[k] * stat2[(g * n.channels + k) * 2];
            t += (double)gamma[k] * stat2[(g * n.channels + k) * 2 + 1];
        }
        float *row = table + i * HL_NORM_ROW;
        row[0] = (float)mean;
        row[1] = (float)(mean - (double)row[0]);
        row[2] = (float)r;
        row[3] = (float)((double)gamma[c] * r);
        row[4] = (float)(r * s / m);
        row[5] = (float)(r * t / m);
    }
}

extern "C" cudaError_t hl_cuda_norm_back_table(cudaStream_t stream, const hl_norming *n, const double *stat, const double *stat2, const float *gamma, float *table)
{
    int64_t rows = n->groups * n->channels;
    return HL_LAUNCH(back_table, hl_grid(rows), HL_BLOCK, 0, stream, *n, stat, HL_SPAN(stat2, rows * 2), HL_SPAN(gamma, n->channels), HL_SPAN(table, rows * HL_NORM_ROW));
}

template <class T>
HL_KERNEL(HL_BLOCK) back_write(hl_cells c, T *dx, const T *x, const T *dy, const float *table, int64_t samples, const halo_step_record *record)
{
    int64_t there = samples > 0 ? hl_there(record, samples) : INT64_MAX;
    for (int64_t i = HL_INDEX; i < c.total; i += HL_STRIDE) {
        hl_offsets<5> at = hl_at<5>(c, i);
        const float *row = table + at.a[3] * HL_NORM_ROW;
        float xhat = (hl_load(x, at.a[1]) - row[0] - row[1]) * row[2], v = row[3] * hl_load(dy, at.a[2]) - row[4] - xhat * row[5];
        hl_store(dx, at.a[0], at.a[4] < there ? v : 0);
    }
}

extern "C" cudaError_t hl_cuda_norm_back_write(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *dx, const void *x, const void *dy, const float *table,
                                               int64_t samples, const halo_step_record *record)
{
    HL_BY_TYPE(type, HL_LAUNCH(back_write<T>, hl_grid(c->total), HL_BLOCK, 0, stream, *c, (T *)dx, (const T *)x, (const T *)dy, table, samples, HL_SPAN(record, 1)));
}

HL_KERNEL(HL_BLOCK) back_vectors(hl_norming n, const double *stat2, float *dw, float *db)
{
    for (int64_t c = HL_INDEX; c < n.channels; c += HL_STRIDE) {
        double a = 0, b = 0;
        for (int64_t g = 0; g < n.groups; g++) {
            a += stat2[(g * n.channels + c) * 2];
            b += stat2[(g * n.channels + c) * 2 + 1];
        }
        if (dw) dw[c] = (float)(b + (n.accumulate ? (double)dw[c] : 0));
        if (db) db[c] = (float)(a + (n.accumulate ? (double)db[c] : 0));
    }
}

extern "C" cudaError_t hl_cuda_norm_back_vectors(cudaStream_t stream, const hl_norming *n, const double *stat2, float *dw, float *db)
{
    return HL_LAUNCH(back_vectors, hl_grid(n->channels), HL_BLOCK, 0, stream, *n, HL_SPAN(stat2, n->groups * n->channels * 2), HL_SPAN(dw, n->channels), HL_SPAN(db, n->channels));
}
