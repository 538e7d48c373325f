/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c -- what one run of an operation costs whatever way it is done: floating-point operations of the direct algorithm (a multiply-add is 2;
 * taps that fall on padding count, as everywhere in the literature) and the least bytes that must pass through memory: each operand's box once,
 * twice where it is read and written.
 */
#include "backend/backend.h"

static double cells(const halo_op_desc *d, halo_role role)
{
    return d->t[role].dtype == HALO_NONE ? 0 : (double)hl_operand_box_elements(&d->t[role]);
}

static double taps(const halo_op_desc *d)
{
    return (double)d->window.kernel[0] * (double)d->window.kernel[1] * (double)d->window.kernel[2];
}

/* out cells, each a sum over `in` channels and the window. */
static double conv_flops(const halo_op_desc *d, halo_role in, halo_role out)
{
    return 2 * cells(d, out) * (double)d->t[in].ext[HALO_C] * taps(d);
}

/* in and out are [N, features] */
static double linear_flops(const halo_op_desc *d, halo_role in, halo_role out)
{
    return 2 * cells(d, out) * cells(d, in) / (double)d->t[in].ext[HALO_N];
}

static double update_flops(const halo_op_desc *d)
{
    bool adam = d->update.kind == HALO_ADAM || d->update.kind == HALO_ADAMW;
    return cells(d, HALO_WT) * ((adam ? 13 : 5) + 2);
}

/* Each output stands for a window of those of the convolution. */
static double conv_pool_flops(const halo_op_desc *d)
{
    double cells_of_window = (double)(d->pool_side[0] * d->pool_side[1] * d->pool_side[2]);
    return cells_of_window * (conv_flops(d, HALO_X, HALO_Y) + cells(d, HALO_Y) * (d->t[HALO_B].dtype ? 2 : 1));
}

static double flops(const halo_op_desc *d)
{
    switch (d->kind) {
    case HALO_OP_CONV_FWD: return conv_flops(d, HALO_X, HALO_Y) + (d->t[HALO_B].dtype ? cells(d, HALO_Y) : 0);
    case HALO_OP_CONV_BWD_DATA: return conv_flops(d, HALO_DX, HALO_DY) + (d->t[HALO_B].dtype ? cells(d, HALO_DX) : 0);
    case HALO_OP_CONV_BWD_WEIGHTS:
        return conv_flops(d, HALO_X, HALO_DY) + (d->t[HALO_DB].dtype ? cells(d, HALO_DY) : 0);
    case HALO_OP_POOL_FWD: return cells(d, HALO_Y) * taps(d);
    case HALO_OP_POOL_BWD: return cells(d, HALO_DY) * (d->pool == HALO_POOL_AVG ? taps(d) : 1);
    case HALO_OP_NORM_STATS: return 4 * cells(d, HALO_X);
    case HALO_OP_NORM_APPLY: return 4 * cells(d, HALO_X);
    case HALO_OP_NORM_BWD_STATS: return 5 * cells(d, HALO_X);
    case HALO_OP_NORM_BWD_APPLY: return 6 * cells(d, HALO_X);
    case HALO_OP_LINEAR_FWD: return linear_flops(d, HALO_X, HALO_Y);
    case HALO_OP_LINEAR_BWD_DATA: return linear_flops(d, HALO_DX, HALO_DY);
    case HALO_OP_LINEAR_BWD_WEIGHTS: return linear_flops(d, HALO_X, HALO_DY);
    case HALO_OP_ACT_FWD:
    case HALO_OP_DROPOUT: return cells(d, HALO_Y);
    case HALO_OP_ACT_BWD: return 2 * cells(d, HALO_DX);
    case HALO_OP_ADD: return cells(d, HALO_Y);
    case HALO_OP_BIAS_BWD: return cells(d, HALO_DY);
    case HALO_OP_CONV_POOL_FWD: return conv_pool_flops(d);
    case HALO_OP_ACT_POOL_BWD: return cells(d, HALO_DY) * (d->pool == HALO_POOL_AVG ? 2 * taps(d) : 2);
    case HALO_OP_LOSS: return 5 * cells(d, HALO_X);
    case HALO_OP_LOSS_SUMS: return 4 * cells(d, HALO_X);
    case HALO_OP_UPSAMPLE_FWD: return 6 * cells(d, HALO_Y); /* two products and a sum along each axis */
    case HALO_OP_UPSAMPLE_BWD: return 6 * cells(d, HALO_DY);
    case HALO_OP_PREPARE: return 2 * d->transforms * cells(d, HALO_Y);
    case HALO_OP_SUMSQ: return 2 * cells(d, HALO_X);
    case HALO_OP_DECIDE: return cells(d, HALO_X);
    case HALO_OP_NORM_MERGE: return 2 * cells(d, HALO_STAT);
    case HALO_OP_UPDATE: return update_flops(d);
    case HALO_OP_COPY: return d->accumulate ? cells(d, HALO_Y) : 0;
    case HALO_OP_UNFLATTEN: return d->accumulate ? cells(d, HALO_DX) : 0;
    case HALO_OP_CONV_IMAGE:
    case HALO_OP_MARGIN:
    case HALO_OP_FLATTEN:
    case HALO_OP_CAST:
    case HALO_OP_KINDS: break;
    }
    return 0;
}

static bool read_and_written(const halo_op_desc *d, halo_role role)
{
    if (d->kind == HALO_OP_UPDATE) return role == HALO_WT || role == HALO_M1 || role == HALO_M2;
    if (!d->accumulate) return false;
    if (d->kind == HALO_OP_NORM_BWD_APPLY) return role == HALO_DW || role == HALO_DB;
    return role == HALO_DX || role == HALO_DW || role == HALO_DB || (role == HALO_Y && d->kind == HALO_OP_COPY);
}

/* Cells of the margin alone. */
static double margin_cells(const halo_operand *op)
{
    double box = 1, all = 1;
    for (int i = 0; i < HALO_DIMS; i++) {
        box *= (double)op->ext[i];
        all *= (double)(op->ext[i] + (i >= HALO_D ? op->margin[i - HALO_D][0] + op->margin[i - HALO_D][1] : 0));
    }
    return all - box;
}

hl_cost hl_op_cost(const halo_op_desc *desc)
{
    hl_cost cost = {flops(desc), 0};
    if (desc->kind == HALO_OP_MARGIN) {
        cost.bytes = 2 * margin_cells(&desc->t[HALO_Y]) * (double)hl_dtype_size(desc->t[HALO_Y].dtype);
        return cost;
    }
    for (int role = 0; role < HALO_ROLES; role++) {
        double bytes = cells(desc, (halo_role)role) * (double)hl_dtype_size(desc->t[role].dtype);
        cost.bytes += read_and_written(desc, (halo_role)role) ? 2 * bytes : bytes;
    }
    return cost;
}
