/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c -- statistics of norms as sums that ranks can add up, and back: a few numbers, by one thread. */
#include "classes.h"

static int merge_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (d->t[HALO_STAT].dtype != HALO_F64 || (hl_has(d, HALO_RUN) && !hl_has_f32(d, HALO_RUN))) return 0;
    return hl_cpu_pointwise(dev, "cpu", 1, out);
}

static void merge_one(double *s, double r, bool back)
{
    if (!back) {
        double a = s[0] * (s[1] - r);
        s[2] += a * (s[1] - r);
        s[1] = a;
        return;
    }
    double a = s[1];
    if (s[0] == 0) s[0] = 1;
    s[1] = r + a / s[0];
    s[2] -= a * a / s[0];
    if (s[2] < 0) s[2] = 0; /* NaN stays */
}

static halo_status merge_do(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &((const hl_cpu_plan *)plan)->d;
    double *stat = HL_BOX(double, &d->t[HALO_STAT], args->ptr[HALO_STAT]);
    const float *mean = hl_has(d, HALO_RUN) ? HL_BOX(float, &d->t[HALO_RUN], args->ptr[HALO_RUN]) : NULL;
    for (int64_t i = 0; i < hl_operand_box_elements(&d->t[HALO_STAT]) / 3; i++) merge_one(stat + 3 * i, mean ? (double)mean[i] : 0, d->reverse);
    return HALO_OK;
}

const halo_op_class hl_cpu_norm_merge = {
    .kind = HALO_OP_NORM_MERGE, .candidates = merge_candidates, .plan = hl_cpu_plan_plain, .run = merge_do, .destroy = hl_cpu_plan_free};
