/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c -- what becomes of a step's gradients, from their square sums and the loss. */
#include "ref.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_NUM) ? hl_ref_offer(0, out) : 0;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), num = hl_ref_operand(plan, args, HALO_NUM);
    double v[HALO_NUMBERS], one[3];
    const double clip = plan->d.clip_norm;
    hl_ref_read_flat(&num, 0, HALO_NUMBERS, v);
    v[HALO_NUM_SQUARES] = v[HALO_NUM_BAD] = v[HALO_NUM_LARGEST] = 0;
    for (int64_t i = 0; i < hl_operand_box_elements(x.op); i += 3) {
        hl_ref_read_flat(&x, i, 3, one);
        v[HALO_NUM_SQUARES] += one[0];
        v[HALO_NUM_BAD] += one[1];
        v[HALO_NUM_LARGEST] = fmax(v[HALO_NUM_LARGEST], one[2]);
    }
    double norm = sqrt(v[HALO_NUM_SQUARES]) * fabs(args->record->grad_scale);
    v[HALO_NUM_SKIP] = !isfinite(v[HALO_NUM_LOSS]) || !isfinite(v[HALO_NUM_SQUARES]) || v[HALO_NUM_BAD] != 0;
    v[HALO_NUM_FACTOR] = clip > 0 && norm > clip ? clip / norm : 1;
    hl_ref_write_flat(&num, 0, HALO_NUMBERS, v);
    return HALO_OK;
}

REF_CLASS(hl_ref_decide, HALO_OP_DECIDE, candidates, run);
