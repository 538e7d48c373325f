/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c -- what becomes of a step's gradients: what decide.cu does, checked. */
#include "cuda.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!hl_cuda_vector(d, HALO_X, HALO_F64, false) || !hl_cuda_vector(d, HALO_NUM, HALO_F64, false) || hl_operand_box_elements(&d->t[HALO_NUM]) != HALO_NUMBERS) return 0;
    return hl_cuda_offer("cuda", 0, out);
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const hl_cuda_plan *p = (const hl_cuda_plan *)plan;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(p->dev, args->record, &record));
    HL_CUDA(p->dev, hl_cuda_decide_step(p->dev->compute, hl_operand_box_elements(&p->d.t[HALO_X]) / 3, p->d.clip_norm, hl_cuda_ptr(p, args, HALO_X), hl_cuda_ptr(p, args, HALO_NUM),
                                        record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_decide, HALO_OP_DECIDE, candidates, hl_cuda_plan_plain, run);
