/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c -- statistics of norms as sums that ranks can add up, and back. */
#include "ref.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_STAT) ? hl_ref_offer(0, out) : 0;
}

static void to_sums(double s[3], double r)
{
    double a = s[0] * (s[1] - r);
    s[2] += a * (s[1] - r);
    s[1] = a;
}

static void from_sums(double s[3], double r)
{
    double a = s[1];
    if (s[0] == 0) s[0] = 1;
    s[1] = r + a / s[0];
    s[2] -= a * a / s[0];
    if (s[2] < 0) s[2] = 0;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view stat = hl_ref_operand(plan, args, HALO_STAT), mean = hl_ref_operand(plan, args, HALO_RUN);
    for (int64_t i = 0; i < hl_operand_box_elements(stat.op) / 3; i++) {
        double s[3], r = 0;
        hl_ref_read_flat(&stat, 3 * i, 3, s);
        if (mean.op) hl_ref_read_flat(&mean, i, 1, &r);
        if (plan->d.reverse)
            from_sums(s, r);
        else
            to_sums(s, r);
        hl_ref_write_flat(&stat, 3 * i, 3, s);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_norm_merge, HALO_OP_NORM_MERGE, candidates, run);
