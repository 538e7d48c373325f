/* SPDX-License-Identifier: Apache-2.0 */
/* view.c -- operands of any type, layout and box as rows or samples of doubles. The only place of this backend that knows addresses. */
#include "ref.h"

#include "tensor/half.h"

hl_ref_view hl_ref_operand(const halo_plan *plan, const halo_op_args *args, halo_role role)
{
    const halo_operand *op = &plan->d.t[role];
    hl_ref_view v = {.op = op->dtype == HALO_NONE ? NULL : op};
    if (!v.op) return v;
    v.s = hl_operand_strides(op);
    v.base = args->ptr[role];
    return v;
}

/* `step` elements between neighbours. */
static void load(halo_dtype type, const char *base, int64_t first, int64_t step, int64_t count, double *out)
{
#define HL_LOAD(TYPE, EXPR)                                                                                  \
    {                                                                                                        \
        const TYPE *p = (const TYPE *)(const void *)base + first;                                            \
        for (int64_t i = 0; i < count; i++, p += step) out[i] = (double)(EXPR);                              \
    }                                                                                                        \
    break
    switch (type) {
    case HALO_F32: HL_LOAD(float, *p);
    case HALO_F64: HL_LOAD(double, *p);
    case HALO_F16: HL_LOAD(uint16_t, hl_f32_from_f16(*p));
    case HALO_BF16: HL_LOAD(uint16_t, hl_f32_from_bf16(*p));
    case HALO_U8: HL_LOAD(uint8_t, *p);
    case HALO_I16: HL_LOAD(int16_t, *p);
    case HALO_I32: HL_LOAD(int32_t, *p);
    case HALO_NONE: break;
    }
#undef HL_LOAD
}

/* Nearest integer, saturated; NaN gives the low end. */
static double whole(double x, double low, double high)
{
    double r = nearbyint(x);
    return r > high ? high : r >= low ? r : low;
}

static void store(halo_dtype type, char *base, int64_t first, int64_t step, int64_t count, const double *in)
{
#define HL_STORE(TYPE, EXPR)                                                                                 \
    {                                                                                                        \
        TYPE *p = (TYPE *)(void *)base + first;                                                              \
        for (int64_t i = 0; i < count; i++, p += step) *p = (TYPE)(EXPR);                                    \
    }                                                                                                        \
    break
    switch (type) {
    case HALO_F32: HL_STORE(float, in[i]);
    case HALO_F64: HL_STORE(double, in[i]);
    case HALO_F16: HL_STORE(uint16_t, hl_f16_from_f32((float)in[i]));
    case HALO_BF16: HL_STORE(uint16_t, hl_bf16_from_f32((float)in[i]));
    case HALO_U8: HL_STORE(uint8_t, whole(in[i], 0, UINT8_MAX));
    case HALO_I16: HL_STORE(int16_t, whole(in[i], INT16_MIN, INT16_MAX));
    case HALO_I32: HL_STORE(int32_t, whole(in[i], INT32_MIN, INT32_MAX));
    case HALO_NONE: break;
    }
#undef HL_STORE
}

static int64_t cell(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    const int64_t *lo = v->op->lo;
    return hl_offset(&v->s, n + lo[HALO_N], c + lo[HALO_C], d + lo[HALO_D], h + lo[HALO_H], w + lo[HALO_W]);
}

double hl_ref_get(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    double value = 0;
    load(v->op->dtype, v->base, cell(v, n, c, d, h, w), 1, 1, &value);
    return value;
}

void hl_ref_set(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w, double value)
{
    store(v->op->dtype, v->base, cell(v, n, c, d, h, w), 1, 1, &value);
}

hl_ref_row hl_ref_rows_of(const halo_operand *op, int64_t n, int64_t samples, int64_t c, int64_t channels)
{
    hl_ref_row r = {.lo = {n, c, 0, 0, 0},
                 .hi = {n + samples, c + channels, op->ext[HALO_D], op->ext[HALO_H], op->ext[HALO_W]}};
    memcpy(r.i, r.lo, sizeof(r.i));
    r.count = hl_min64(REF_ROW, r.hi[HALO_W]);
    return r;
}

hl_ref_row hl_ref_rows(const halo_operand *op) { return hl_ref_rows_of(op, 0, op->ext[HALO_N], 0, op->ext[HALO_C]); }

void hl_ref_next(hl_ref_row *r)
{
    r->i[HALO_W] += r->count;
    for (int k = HALO_W; k > HALO_N && r->i[k] >= r->hi[k]; k--) {
        r->i[k] = r->lo[k];
        r->i[k - 1]++;
    }
    r->count = hl_min64(REF_ROW, r->hi[HALO_W] - r->i[HALO_W]);
}

void hl_ref_read(const hl_ref_view *v, const hl_ref_row *r, double *out)
{
    const int64_t *i = r->i;
    load(v->op->dtype, v->base, cell(v, i[0], i[1], i[2], i[3], i[4]), v->s.s[HALO_W], r->count, out);
}

void hl_ref_write(const hl_ref_view *v, const hl_ref_row *r, const double *in)
{
    const int64_t *i = r->i;
    store(v->op->dtype, v->base, cell(v, i[0], i[1], i[2], i[3], i[4]), v->s.s[HALO_W], r->count, in);
}

/* The range [lo, lo + ext) of w, zero outside box and margin. */
static void read_line(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t lo, int64_t ext,
                      double *out)
{
    const halo_operand *op = v->op;
    int64_t first = hl_max64(lo, -op->margin[2][0]), end = hl_min64(lo + ext, op->ext[HALO_W] + op->margin[2][1]);
    memset(out, 0, (size_t)ext * sizeof(*out));
    if (end > first)
        load(op->dtype, v->base, cell(v, n, c, d, h, first), v->s.s[HALO_W], end - first, out + (first - lo));
}

void hl_ref_unpack(const hl_ref_view *v, int64_t n, const int64_t lo[3], const int64_t ext[3], double *out)
{
    const halo_operand *op = v->op;
    for (int64_t c = 0; c < op->ext[HALO_C]; c++)
        for (int64_t d = lo[0]; d < lo[0] + ext[0]; d++)
            for (int64_t h = lo[1]; h < lo[1] + ext[1]; h++, out += ext[2]) {
                bool inside = d >= -op->margin[0][0] && d < op->ext[HALO_D] + op->margin[0][1] &&
                              h >= -op->margin[1][0] && h < op->ext[HALO_H] + op->margin[1][1];
                if (inside)
                    read_line(v, n, c, d, h, lo[2], ext[2], out);
                else
                    memset(out, 0, (size_t)ext[2] * sizeof(*out));
            }
}

void hl_ref_unpack_box(const hl_ref_view *v, int64_t n, double *out)
{
    for (hl_ref_row r = hl_ref_rows_of(v->op, n, 1, 0, v->op->ext[HALO_C]); hl_ref_more(&r); out += r.count, hl_ref_next(&r))
        hl_ref_read(v, &r, out);
}

void hl_ref_pack_box(const hl_ref_view *v, int64_t n, const double *in)
{
    for (hl_ref_row r = hl_ref_rows_of(v->op, n, 1, 0, v->op->ext[HALO_C]); hl_ref_more(&r); in += r.count, hl_ref_next(&r))
        hl_ref_write(v, &r, in);
}

int64_t hl_ref_sample_size(const halo_operand *op)
{
    return op->ext[HALO_C] * op->ext[HALO_D] * op->ext[HALO_H] * op->ext[HALO_W];
}

void hl_ref_read_flat(const hl_ref_view *v, int64_t i, int64_t count, double *out)
{
    load(v->op->dtype, v->base, cell(v, 0, 0, 0, 0, 0) + i, 1, count, out);
}

void hl_ref_write_flat(const hl_ref_view *v, int64_t i, int64_t count, const double *in)
{
    store(v->op->dtype, v->base, cell(v, 0, 0, 0, 0, 0) + i, 1, count, in);
}
