/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c -- statistics of norms as sums that ranks can add up, and back: what merge.cu does, checked. */
#include "cuda.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!hl_cuda_vector(d, HALO_STAT, HALO_F64, false) || !hl_cuda_vector(d, HALO_RUN, HALO_F32, true)) return 0;
    return hl_cuda_offer("cuda", 0, out);
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const hl_cuda_plan *p = (const hl_cuda_plan *)plan;
    HL_CUDA(p->dev, hl_cuda_merge_statistics(p->dev->compute, hl_operand_box_elements(&p->d.t[HALO_STAT]) / 3, hl_cuda_ptr(p, args, HALO_STAT), hl_cuda_ptr(p, args, HALO_RUN), p->d.reverse));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_norm_merge, HALO_OP_NORM_MERGE, candidates, hl_cuda_plan_plain, run);
