/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c -- sums of squares with a count of what is not finite, and biases' gradients. */
#include "groups.h"

typedef struct reduce_plan {
    hl_cuda_plan super;
    hl_groups g;
} reduce_plan;

static void squares_of(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *x = &d->t[HALO_X];
    *g = (hl_groups){.groups = 1, .minor = 1};
    HL_BUG_UNLESS(hl_cuda_cells_of(&x, 1, &g->cells));
    hl_cuda_groups_part(g, 1);
}

static int squares_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!hl_cuda_activation(d, HALO_X) || !hl_cuda_vector(d, HALO_STAT, HALO_F64, false)) return 0;
    squares_of(d, &g);
    return hl_cuda_offer("cuda", hl_cuda_groups_bytes(&g), out);
}

static halo_status squares_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    reduce_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    squares_of(d, &p->g);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status squares_run(halo_plan *plan, const halo_op_args *args)
{
    const reduce_plan *p = (const reduce_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_sum_squares(s->dev->compute, s->d.t[HALO_X].dtype, &p->g, hl_cuda_ptr(s, args, HALO_X), args->scratch, hl_cuda_ptr(s, args, HALO_STAT)));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_sumsq, HALO_OP_SUMSQ, squares_candidates, squares_plan, squares_run);

static void channels_of(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *dy = &d->t[HALO_DY];
    hl_cuda_groups_channels(&dy, 1, false, dy->ext[HALO_C], g);
    g->samples = 0;
}

static int bias_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!hl_cuda_activation(d, HALO_DY) || !hl_cuda_parameters(d, HALO_DB, d->t[HALO_DY].dtype, false)) return 0;
    channels_of(d, &g);
    return hl_cuda_offer("cuda", hl_cuda_groups_bytes(&g), out);
}

static halo_status bias_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    reduce_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    channels_of(d, &p->g);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status bias_run(halo_plan *plan, const halo_op_args *args)
{
    const reduce_plan *p = (const reduce_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_sum_cells(s->dev->compute, s->d.t[HALO_DY].dtype, &p->g, hl_cuda_ptr(s, args, HALO_DY), args->scratch, s->d.t[HALO_DB].dtype, hl_cuda_ptr(s, args, HALO_DB),
                                      s->d.accumulate));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_bias_bwd, HALO_OP_BIAS_BWD, bias_candidates, bias_plan, bias_run);
