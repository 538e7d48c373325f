/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.c -- activations, addition, dropout: geometry for pointwise.cu. */
#include "cuda.h"

typedef struct pointwise_plan {
    hl_cuda_plan super;
    hl_cells cells;
    hl_dropping drop;
} pointwise_plan;

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_role *roles, int n, halo_plan **out)
{
    pointwise_plan *p;
    const halo_operand *op[HL_CELL_OPERANDS];
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    for (int i = 0; i < n; i++) op[i] = &p->super.d.t[roles[i]];
    HL_BUG_UNLESS(hl_cuda_cells_of(op, n, &p->cells));
    *out = (halo_plan *)p;
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------------- activation */

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return hl_cuda_activation(d, HALO_Y) && hl_cuda_like(d, HALO_X, HALO_Y, false) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status forward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, (const halo_role[]){HALO_Y, HALO_X}, 2, out);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    const pointwise_plan *p = (const pointwise_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_act_forward(s->dev->compute, s->d.t[HALO_Y].dtype, &p->cells, hl_cuda_ptr(s, args, HALO_Y), hl_cuda_ptr(s, args, HALO_X), s->d.act, s->d.slope));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_act_fwd, HALO_OP_ACT_FWD, forward_candidates, forward_plan, forward_run);

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!hl_cuda_activation(d, HALO_DX) || !hl_cuda_like(d, HALO_Y, HALO_DX, false) || !hl_cuda_like(d, HALO_DY, HALO_DX, false)) return 0;
    return hl_cuda_offer("cuda", 0, out);
}

static halo_status backward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, (const halo_role[]){HALO_DX, HALO_Y, HALO_DY}, 3, out);
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    const pointwise_plan *p = (const pointwise_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_act_backward(s->dev->compute, s->d.t[HALO_DX].dtype, &p->cells, hl_cuda_ptr(s, args, HALO_DX), hl_cuda_ptr(s, args, HALO_Y),
                                         hl_cuda_ptr(s, args, HALO_DY), s->d.act, s->d.slope, s->d.accumulate));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_act_bwd, HALO_OP_ACT_BWD, backward_candidates, backward_plan, backward_run);

/* ------------------------------------------------------------------------------------------------------------ addition */

static int add_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!hl_cuda_activation(d, HALO_Y) || !hl_cuda_like(d, HALO_X, HALO_Y, false) || !hl_cuda_like(d, HALO_X2, HALO_Y, false)) return 0;
    return hl_cuda_offer("cuda", 0, out);
}

static halo_status add_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, (const halo_role[]){HALO_Y, HALO_X, HALO_X2}, 3, out);
}

static halo_status add_run(halo_plan *plan, const halo_op_args *args)
{
    const pointwise_plan *p = (const pointwise_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_sum_two(s->dev->compute, s->d.t[HALO_Y].dtype, &p->cells, hl_cuda_ptr(s, args, HALO_Y), hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_X2)));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_add, HALO_OP_ADD, add_candidates, add_plan, add_run);

/* ------------------------------------------------------------------------------------------------------------- dropout */

static int dropout_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out) { return d->keep > 0 ? forward_candidates(dev, d, out) : 0; }

static halo_status dropout_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    pointwise_plan *p;
    int64_t x[HALO_DIMS], y[HALO_DIMS], index[HALO_DIMS], size = 1;
    const int64_t *stride[] = {y, x, index};
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(hl_cuda_strides(&d->t[HALO_X], x) && hl_cuda_strides(&d->t[HALO_Y], y));
    p->drop = (hl_dropping){.layer = d->layer, .keep = d->keep};
    for (int k = HALO_DIMS - 1; k >= 0; k--) {
        index[k] = size;
        p->drop.first += (uint64_t)size * (uint64_t)d->global_lo[k];
        if (k > 0) size *= d->global_ext[k];
    }
    p->drop.per_sample = (uint64_t)size;
    hl_cuda_cells(d->t[HALO_Y].ext, stride, 3, &p->drop.cells);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status dropout_run(halo_plan *plan, const halo_op_args *args)
{
    const pointwise_plan *p = (const pointwise_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_drop(s->dev->compute, s->d.t[HALO_Y].dtype, &p->drop, hl_cuda_ptr(s, args, HALO_Y), hl_cuda_ptr(s, args, HALO_X), record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_dropout, HALO_OP_DROPOUT, dropout_candidates, dropout_plan, dropout_run);
