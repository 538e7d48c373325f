/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c -- upload and download: dense host array [n][c][d][h][w] of any type <-> the box of an operand of any type and layout.
 *
 * Work is dealt by rows (n, c, d, h); a row goes through a small buffer of double (rows.h). Upload clears the padding lanes of the last channel block
 * when the box reaches the allocation's last channel.
 */
#include "rows.h"
#include "tensor/half.h"

enum { CHUNK = 256 };

static double whole(double v, double low, double high)
{
    double r = rint(v);
    return r > high ? high : r >= low ? r : low;
}

void hl_row_load(halo_dtype type, const void *base, int64_t first, int64_t stride, int n, double *out)
{
#define LOAD(T, expr)                                                                                        \
    {                                                                                                        \
        const T *p = (const T *)base + first;                                                                \
        for (int i = 0; i < n; i++) {                                                                        \
            T v = p[i * stride];                                                                             \
            out[i] = (expr);                                                                                 \
        }                                                                                                    \
    }                                                                                                        \
    return
    switch (type) {
    case HALO_F32: LOAD(float, v);
    case HALO_F64: LOAD(double, v);
    case HALO_F16: LOAD(uint16_t, hl_f32_from_f16(v));
    case HALO_BF16: LOAD(uint16_t, hl_f32_from_bf16(v));
    case HALO_U8: LOAD(uint8_t, v);
    case HALO_I16: LOAD(int16_t, v);
    case HALO_I32: LOAD(int32_t, v);
    case HALO_NONE: break;
    }
#undef LOAD
    HL_BUG_UNLESS(!"a type that holds values");
}

void hl_row_store(halo_dtype type, void *base, int64_t first, int64_t stride, int n, const double *in)
{
#define STORE(T, expr)                                                                                       \
    {                                                                                                        \
        T *p = (T *)base + first;                                                                            \
        for (int i = 0; i < n; i++) {                                                                        \
            double v = in[i];                                                                                \
            p[i * stride] = (T)(expr);                                                                       \
        }                                                                                                    \
    }                                                                                                        \
    return
    switch (type) {
    case HALO_F32: STORE(float, v);
    case HALO_F64: STORE(double, v);
    case HALO_F16: STORE(uint16_t, hl_f16_from_f32((float)v));
    case HALO_BF16: STORE(uint16_t, hl_bf16_from_f32((float)v));
    case HALO_U8: STORE(uint8_t, whole(v, 0, UINT8_MAX));
    case HALO_I16: STORE(int16_t, whole(v, INT16_MIN, INT16_MAX));
    case HALO_I32: STORE(int32_t, whole(v, INT32_MIN, INT32_MAX));
    case HALO_NONE: break;
    }
#undef STORE
    HL_BUG_UNLESS(!"a type that holds values");
}

typedef struct transfer {
    halo_operand op;
    hl_strides t;
    int64_t channels; /* box channels, and on upload the padding lanes to clear */
} transfer;

static void row_of(const transfer *x, int64_t row, int64_t *host, int64_t *device, int64_t *channel)
{
    const int64_t *e = x->op.ext, *lo = x->op.lo;
    int64_t h = row % e[HALO_H], d = row / e[HALO_H] % e[HALO_D], nc = row / e[HALO_H] / e[HALO_D];
    int64_t c = nc % x->channels, n = nc / x->channels;
    *host = (((n * e[HALO_C] + c) * e[HALO_D] + d) * e[HALO_H] + h) * e[HALO_W];
    *device = hl_offset(&x->t, lo[HALO_N] + n, lo[HALO_C] + c, lo[HALO_D] + d, lo[HALO_H] + h, lo[HALO_W]);
    *channel = c;
}

static int64_t rows_of(const transfer *x) { return x->op.ext[HALO_N] * x->channels * x->op.ext[HALO_D] * x->op.ext[HALO_H]; }

halo_status hl_cpu_upload(halo_device *dev, const halo_operand *op, void *ptr, halo_dtype host_dtype, const void *host)
{
    transfer x = {*op, hl_operand_strides(op), op->ext[HALO_C]};
    (void)dev; /* without OpenMP */
    int64_t block = hl_layout_block(op->layout);
    if (op->lo[HALO_C] + op->ext[HALO_C] == op->alloc[HALO_C]) x.channels = hl_round_up(x.channels, block);
    int64_t rows = rows_of(&x), width = op->ext[HALO_W];
#pragma omp parallel for num_threads(hl_cpu(dev)->threads) schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        int64_t from, to, c;
        double buffer[CHUNK] = {0};
        row_of(&x, row, &from, &to, &c);
        for (int64_t w = 0; w < width; w += CHUNK) {
            int n = (int)hl_min64(CHUNK, width - w);
            if (c < op->ext[HALO_C]) hl_row_load(host_dtype, host, from + w, 1, n, buffer);
            hl_row_store(op->dtype, ptr, to + w * x.t.s[HALO_W], x.t.s[HALO_W], n, buffer);
        }
    }
    return HALO_OK;
}

halo_status hl_cpu_download(halo_device *dev, const halo_operand *op, const void *ptr, halo_dtype host_dtype, void *host)
{
    transfer x = {*op, hl_operand_strides(op), op->ext[HALO_C]};
    (void)dev; /* without OpenMP */
    int64_t rows = rows_of(&x), width = op->ext[HALO_W];
#pragma omp parallel for num_threads(hl_cpu(dev)->threads) schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        int64_t to, from, c;
        double buffer[CHUNK];
        row_of(&x, row, &to, &from, &c);
        for (int64_t w = 0; w < width; w += CHUNK) {
            int n = (int)hl_min64(CHUNK, width - w);
            hl_row_load(op->dtype, ptr, from + w * x.t.s[HALO_W], x.t.s[HALO_W], n, buffer);
            hl_row_store(host_dtype, host, to + w, 1, n, buffer);
        }
    }
    return HALO_OK;
}
