/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c -- what becomes of a step's gradients, from their square sums and the loss: a few numbers, by one thread. */
#include "classes.h"

static int decide_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (d->t[HALO_X].dtype != HALO_F64 || d->t[HALO_NUM].dtype != HALO_F64 || hl_operand_box_elements(&d->t[HALO_NUM]) != HALO_NUMBERS) return 0;
    return hl_cpu_pointwise(dev, "cpu", 1, out);
}

static halo_status decide_do(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &((const hl_cpu_plan *)plan)->d;
    const double *x = HL_BOX(double, &d->t[HALO_X], args->ptr[HALO_X]);
    double *num = HL_BOX(double, &d->t[HALO_NUM], args->ptr[HALO_NUM]), squares = 0, bad = 0, largest = 0;
    for (int64_t i = 0; i < hl_operand_box_elements(&d->t[HALO_X]); i += 3) {
        squares += x[i];
        bad += x[i + 1];
        largest = fmax(largest, x[i + 2]);
    }
    double norm = sqrt(squares) * fabs(args->record->grad_scale);
    num[HALO_NUM_FACTOR] = d->clip_norm > 0 && norm > d->clip_norm ? d->clip_norm / norm : 1;
    num[HALO_NUM_SKIP] = !isfinite(num[HALO_NUM_LOSS]) || !isfinite(squares) || bad != 0;
    num[HALO_NUM_SQUARES] = squares;
    num[HALO_NUM_BAD] = bad;
    num[HALO_NUM_LARGEST] = largest;
    return HALO_OK;
}

const halo_op_class hl_cpu_decide = {
    .kind = HALO_OP_DECIDE, .candidates = decide_candidates, .plan = hl_cpu_plan_plain, .run = decide_do, .destroy = hl_cpu_plan_free};
