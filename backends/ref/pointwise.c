/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c -- operations whose output cell depends on the same cell alone: activation and its gradient (from the output y), addition,
 * dropout (y = x / keep where hl_dropout_keeps(global index), else 0). A piece of a row is read before it is written, so in place works.
 */
#include "ref.h"

#include "tensor/dropout.h"

double hl_ref_activate(halo_act act, double slope, double x)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: return x > 0 ? x : slope * x;
    case HALO_ACT_RELU: return x > 0 ? x : x * 0; /* NaN stays NaN */
    case HALO_ACT_TANH: return tanh(x);
    case HALO_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case HALO_ACT_SCALE: return slope * x;
    case HALO_ACT_NONE: break;
    }
    return x;
}

double hl_ref_derivative(halo_act act, double slope, double y)
{
    switch (act) {
    case HALO_ACT_LEAKY_RELU: return y > 0 ? 1 : slope;
    case HALO_ACT_RELU: return y > 0 ? 1 : 0;
    case HALO_ACT_TANH: return 1 - y * y;
    case HALO_ACT_SIGMOID: return y * (1 - y);
    case HALO_ACT_SCALE: return slope;
    case HALO_ACT_NONE: break;
    }
    return 1;
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_Y) && hl_same_extents(&d->t[HALO_X], &d->t[HALO_Y]) ? hl_ref_offer(0, out) : 0;
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    double a[REF_ROW];
    for (hl_ref_row r = hl_ref_rows(y.op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(&x, &r, a);
        for (int64_t i = 0; i < r.count; i++) a[i] = hl_ref_activate(plan->d.act, plan->d.slope, a[i]);
        hl_ref_write(&y, &r, a);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_act_fwd, HALO_OP_ACT_FWD, forward_candidates, forward_run);

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_Y, HALO_DY, HALO_DX)) return 0;
    return hl_ref_like(&d->t[HALO_Y], &d->t[HALO_DX]) && hl_ref_like(&d->t[HALO_DY], &d->t[HALO_DX]) ? hl_ref_offer(0, out) : 0;
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view y = hl_ref_operand(plan, args, HALO_Y), dy = hl_ref_operand(plan, args, HALO_DY),
             dx = hl_ref_operand(plan, args, HALO_DX);
    double a[REF_ROW], g[REF_ROW], old[REF_ROW] = {0};
    for (hl_ref_row r = hl_ref_rows(dx.op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(&y, &r, a);
        hl_ref_read(&dy, &r, g);
        if (plan->d.accumulate) hl_ref_read(&dx, &r, old);
        for (int64_t i = 0; i < r.count; i++) g[i] = old[i] + g[i] * hl_ref_derivative(plan->d.act, plan->d.slope, a[i]);
        hl_ref_write(&dx, &r, g);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_act_bwd, HALO_OP_ACT_BWD, backward_candidates, backward_run);

static int add_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_X2, HALO_Y)) return 0;
    return hl_ref_like(&d->t[HALO_X], &d->t[HALO_Y]) && hl_ref_like(&d->t[HALO_X2], &d->t[HALO_Y]) ? hl_ref_offer(0, out) : 0;
}

static halo_status add_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), x2 = hl_ref_operand(plan, args, HALO_X2),
             y = hl_ref_operand(plan, args, HALO_Y);
    double a[REF_ROW], b[REF_ROW];
    for (hl_ref_row r = hl_ref_rows(y.op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(&x, &r, a);
        hl_ref_read(&x2, &r, b);
        for (int64_t i = 0; i < r.count; i++) a[i] += b[i];
        hl_ref_write(&y, &r, a);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_add, HALO_OP_ADD, add_candidates, add_run);

static int dropout_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    return d->keep > 0 ? forward_candidates(dev, d, out) : 0;
}

/* Position of the row's first cell in the global tensor. */
static uint64_t global_index(const halo_op_desc *d, const halo_step_record *record, const hl_ref_row *r)
{
    uint64_t index = 0;
    for (int k = HALO_N; k < HALO_DIMS; k++) {
        uint64_t at = (uint64_t)(d->global_lo[k] + r->i[k] + (k == HALO_N ? record->first_sample : 0));
        index = (k == HALO_N ? 0 : index * (uint64_t)d->global_ext[k]) + at;
    }
    return index;
}

static halo_status dropout_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    const halo_step_record *record = args->record;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    double a[REF_ROW];
    for (hl_ref_row r = hl_ref_rows(y.op); hl_ref_more(&r); hl_ref_next(&r)) {
        uint64_t index = global_index(d, record, &r);
        hl_ref_read(&x, &r, a);
        for (int64_t i = 0; i < r.count; i++)
            a[i] = hl_dropout_keeps(record->seed, record->step, d->layer, index + (uint64_t)i, d->keep)
                       ? a[i] / d->keep
                       : 0;
        hl_ref_write(&y, &r, a);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_dropout, HALO_OP_DROPOUT, dropout_candidates, dropout_run);
