/* SPDX-License-Identifier: Apache-2.0 */
/* update.c -- one optimiser step on a contiguous range of weights: what update.cu does, checked. */
#include "cuda.h"

typedef struct update_plan {
    hl_cuda_plan super;
    int64_t n;
} update_plan;

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    const halo_update_params *u = &d->update;
    bool adam = u->kind == HALO_ADAM || u->kind == HALO_ADAMW, larc = u->larc != HALO_LARC_OFF;
    if (!hl_cuda_vector(d, HALO_WT, HALO_F32, false) || !hl_cuda_vector(d, HALO_DW, HALO_F32, false)) return 0;
    if (hl_operand_box_elements(&d->t[HALO_WT]) != hl_operand_box_elements(&d->t[HALO_DW])) return 0;
    if (!hl_cuda_vector(d, HALO_M1, HALO_F32, !adam && u->momentum == 0) || !hl_cuda_vector(d, HALO_M2, HALO_F32, !adam)) return 0;
    if (!hl_cuda_vector(d, HALO_STAT, HALO_F64, !larc) || !hl_cuda_vector(d, HALO_STAT2, HALO_F64, !larc)) return 0;
    if (!hl_cuda_vector(d, HALO_NUM, HALO_F64, true)) return 0;
    return hl_cuda_offer("cuda", HL_UPDATE_CONSTANTS * sizeof(float) + HL_UPDATE_BLOCKS * sizeof(double), out);
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    update_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    p->n = hl_operand_box_elements(&d->t[HALO_WT]);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const update_plan *p = (const update_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_update_weights(s->dev->compute, &s->d.update, p->n, hl_cuda_ptr(s, args, HALO_WT), hl_cuda_ptr(s, args, HALO_DW), hl_cuda_ptr(s, args, HALO_M1),
                                           hl_cuda_ptr(s, args, HALO_M2), hl_cuda_ptr(s, args, HALO_NUM), hl_cuda_ptr(s, args, HALO_STAT), hl_cuda_ptr(s, args, HALO_STAT2), args->scratch, record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_update, HALO_OP_UPDATE, candidates, make, run);
