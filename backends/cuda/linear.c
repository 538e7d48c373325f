/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c -- dense layers by cuBLAS; i features in, o out, w (o, i).
 *
 *   y[n,o] = act(b[o] + sum_i w[o,i] x[n,i])     dx[n,i] = sum_o w[o,i] dy[n,o]     dw[o,i] = sum_n dy[n,o] x[n,i], db[o] = sum_n dy[n,o]
 *
 * Operands are f32 or 16-bit with sums in f32; w is of the activations' type, or an image of it is (image.c); dw of its own.
 * cuBLAS counts columns first, so each of ours is its transpose there: x is (i x n), w (i x o), y (o x n), and nothing needs to be transposed in memory.
 */
#include "conv.h"

/* Rows of features: o x n or i x n to cuBLAS, `row` from column to column. */
typedef struct rows {
    int count, row;
} rows;

typedef struct linear_plan {
    hl_cuda_plan super;
    rows in, out;
    int samples, image;
    halo_dtype type;
    hl_cells y; /* y, feature's number */
    hl_groups db;
} linear_plan;

static bool rows_of(const halo_op_desc *d, halo_role role, rows *r)
{
    int64_t count, step, row;
    const halo_operand *op = &d->t[role];
    if (!hl_cuda_activation(d, role) || !hl_cuda_features(op, &count, &step, &row) || step != 1) return false;
    row = hl_max64(row, count);
    if (row > INT32_MAX || op->ext[HALO_N] > INT32_MAX) return false;
    *r = (rows){(int)count, (int)row};
    return true;
}

static bool shape_of(const halo_op_desc *d, halo_role in, halo_role out, rows *i, rows *o)
{
    const halo_dtype type = d->t[in].dtype;
    if (!rows_of(d, in, i) || !rows_of(d, out, o) || d->t[in].ext[HALO_N] != d->t[out].ext[HALO_N] || d->t[out].dtype != type) return false;
    halo_role weights = d->kind == HALO_OP_LINEAR_BWD_WEIGHTS ? HALO_DW : HALO_WT;
    if (!hl_cuda_parameters(d, weights, type, false) || hl_operand_box_elements(&d->t[weights]) != (int64_t)i->count * o->count) return false;
    return hl_cuda_vector(d, HALO_B, HALO_F32, true) && hl_cuda_parameters(d, HALO_DB, type, true);
}

/* Sums of the columns of dy. */
static void bias_groups(const halo_op_desc *d, const rows *out, hl_groups *g)
{
    const int64_t ext[HALO_DIMS] = {d->t[HALO_DY].ext[HALO_N], 1, 1, 1, 1}, s[HALO_DIMS] = {out->row, 0, 0, 0, 0}, *stride = s;
    *g = (hl_groups){.groups = out->count, .minor = out->count, .minor_step = {1}};
    hl_cuda_cells(ext, &stride, 1, &g->cells);
    hl_cuda_groups_part(g, 1);
}

static halo_status make(halo_device *dev, const halo_op_desc *d, halo_role in, halo_role out, halo_plan **plan)
{
    linear_plan *p;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(shape_of(d, in, out, &p->in, &p->out));
    p->samples = (int)d->t[in].ext[HALO_N];
    p->type = d->t[in].dtype;
    if (d->kind != HALO_OP_LINEAR_BWD_WEIGHTS) p->image = hl_cuda_image(d->t[HALO_WT].dtype, p->type, HALO_NCDHW);
    const int64_t ext[HALO_DIMS] = {p->samples, 1, 1, 1, p->out.count}, y[HALO_DIMS] = {p->out.row, 0, 0, 0, 1}, o[HALO_DIMS] = {0, 0, 0, 0, 1};
    const int64_t *stride[] = {y, o};
    hl_cuda_cells(ext, stride, 2, &p->y);
    if (hl_has(d, HALO_DB)) bias_groups(d, &p->out, &p->db);
    *plan = (halo_plan *)p;
    return HALO_OK;
}

static cudaDataType_t type_of(halo_dtype type) { return type == HALO_F16 ? CUDA_R_16F : type == HALO_BF16 ? CUDA_R_16BF : CUDA_R_32F; }

/* c (m x n) = op(a) (m x k) op(b) (k x n) + beta c; a and b of the activations' type. */
static halo_status multiply(const linear_plan *p, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *a, int lda, const void *b, int ldb, bool add,
                            halo_dtype c_type, void *c, int ldc)
{
    const float one = 1, beta = add ? 1 : 0;
    hl_cuda_device *dev = p->super.dev;
    const cudaDataType_t type = type_of(p->type);
    const cublasComputeType_t sums = dev->tf32 && p->type == HALO_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    HL_BLAS(dev, cublasGemmEx(dev->blas, ta, tb, m, n, k, &one, a, type, lda, b, type, ldb, &beta, c, type_of(c_type), ldc, sums, CUBLAS_GEMM_DEFAULT));
    return HALO_OK;
}

/* The weights as they are, or their image. */
static const void *weights_of(const linear_plan *p, const halo_op_args *args) { return p->image ? args->ptr[HALO_WT] : hl_cuda_ptr(&p->super, args, HALO_WT); }

static int offer(const halo_op_desc *d, halo_role in, size_t scratch, halo_candidate *out)
{
    int n = hl_cuda_offer("cublas", scratch, out);
    if (d->kind == HALO_OP_LINEAR_BWD_WEIGHTS) return n;
    out->image = hl_cuda_image(d->t[HALO_WT].dtype, d->t[in].dtype, HALO_NCDHW);
    if (out->image) out->image_bytes = (size_t)hl_operand_box_elements(&d->t[HALO_WT]) * hl_dtype_size(d->t[in].dtype);
    return n;
}

/* ------------------------------------------------------------------------------------------------------------- forward */

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    rows i, o;
    (void)dev;
    return shape_of(d, HALO_X, HALO_Y, &i, &o) ? offer(d, HALO_X, 0, out) : 0;
}

static halo_status forward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, HALO_X, HALO_Y, out);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    const linear_plan *p = (const linear_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    void *y = hl_cuda_ptr(s, args, HALO_Y);
    HL_TRY(multiply(p, CUBLAS_OP_T, CUBLAS_OP_N, p->out.count, p->samples, p->in.count, weights_of(p, args), p->in.count, hl_cuda_ptr(s, args, HALO_X), p->in.row, false,
                    p->type, y, p->out.row));
    if (hl_has(&s->d, HALO_B) || s->d.act != HALO_ACT_NONE)
        HL_CUDA(s->dev, hl_cuda_bias_act(s->dev->compute, p->type, &p->y, y, hl_cuda_ptr(s, args, HALO_B), s->d.act, s->d.slope));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_linear_fwd, HALO_OP_LINEAR_FWD, forward_candidates, forward_plan, forward_run);

/* ------------------------------------------------------------------------------------------------------- backward data */

static int data_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    rows i, o;
    (void)dev;
    return shape_of(d, HALO_DX, HALO_DY, &i, &o) ? offer(d, HALO_DX, 0, out) : 0;
}

static halo_status data_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, HALO_DX, HALO_DY, out);
}

static halo_status data_run(halo_plan *plan, const halo_op_args *args)
{
    const linear_plan *p = (const linear_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    return multiply(p, CUBLAS_OP_N, CUBLAS_OP_N, p->in.count, p->samples, p->out.count, weights_of(p, args), p->in.count, hl_cuda_ptr(s, args, HALO_DY), p->out.row,
                    s->d.accumulate, p->type, hl_cuda_ptr(s, args, HALO_DX), p->in.row);
}

HL_CUDA_CLASS(hl_cuda_linear_bwd_data, HALO_OP_LINEAR_BWD_DATA, data_candidates, data_plan, data_run);

/* ---------------------------------------------------------------------------------------------------- backward weights */

static int weights_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    rows i, o;
    hl_groups g = {0};
    (void)dev;
    if (!shape_of(d, HALO_X, HALO_DY, &i, &o)) return 0;
    if (hl_has(d, HALO_DB)) bias_groups(d, &o, &g);
    return offer(d, HALO_X, hl_cuda_groups_bytes(&g), out);
}

static halo_status weights_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, HALO_X, HALO_DY, out);
}

static halo_status weights_run(halo_plan *plan, const halo_op_args *args)
{
    const linear_plan *p = (const linear_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const void *dy = hl_cuda_ptr(s, args, HALO_DY);
    HL_TRY(multiply(p, CUBLAS_OP_N, CUBLAS_OP_T, p->in.count, p->out.count, p->samples, hl_cuda_ptr(s, args, HALO_X), p->in.row, dy, p->out.row, s->d.accumulate,
                    s->d.t[HALO_DW].dtype, hl_cuda_ptr(s, args, HALO_DW), p->in.count));
    if (hl_has(&s->d, HALO_DB)) HL_CUDA(s->dev, hl_cuda_sum_cells(s->dev->compute, p->type, &p->db, dy, args->scratch, s->d.t[HALO_DB].dtype, hl_cuda_ptr(s, args, HALO_DB), s->d.accumulate));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_linear_bwd_weights, HALO_OP_LINEAR_BWD_WEIGHTS, weights_candidates, weights_plan, weights_run);
