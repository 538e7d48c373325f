/* SPDX-License-Identifier: Apache-2.0 */
/* bias.c -- db[c] = sum over n d h w of dy. */
#include "ref.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_DY, HALO_DB) ? hl_ref_offer(0, out) : 0;
}

static double channel_sum(const hl_ref_view *dy, int64_t c)
{
    double a[REF_ROW], sum = 0;
    for (hl_ref_row r = hl_ref_rows_of(dy->op, 0, dy->op->ext[HALO_N], c, 1); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(dy, &r, a);
        for (int64_t i = 0; i < r.count; i++) sum += a[i];
    }
    return sum;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dy = hl_ref_operand(plan, args, HALO_DY), db = hl_ref_operand(plan, args, HALO_DB);
    for (int64_t c = 0; c < dy.op->ext[HALO_C]; c++) {
        double sum = 0;
        if (plan->d.accumulate) hl_ref_read_flat(&db, c, 1, &sum);
        sum += channel_sum(&dy, c);
        hl_ref_write_flat(&db, c, 1, &sum);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_bias_bwd, HALO_OP_BIAS_BWD, candidates, run);
