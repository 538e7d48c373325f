/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- samples as they are stored become the network's input: turned, shifted, transformed. Rows of the output gather their cells one by one. */
#include "ref.h"

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_STAT, HALO_Y) || d->transforms > HALO_MAX_TRANSFORMS || d->t[HALO_STAT].dtype != HALO_F64) return 0;
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    int64_t first;
    bool same = x->ext[HALO_N] == y->ext[HALO_N] && x->ext[HALO_C] == y->ext[HALO_C] && hl_ref_sample_size(x) == hl_ref_sample_size(y);
    return same && x->layout == HALO_NCDHW && hl_operand_dense(x, &first) ? hl_ref_offer(0, out) : 0;
}

/* Element of a channel of the stored sample from which cell i of the box is taken. */
static int64_t taken_from(const double *number, const int64_t ext[3], const int64_t i[3])
{
    int64_t e[3], j[3];
    for (int k = 0; k < 3; k++) {
        int a = (int)number[HALO_SAMPLE_AXIS + k];
        e[a] = ext[k];
        j[a] = ((number[HALO_SAMPLE_FLIP + k] != 0 ? ext[k] - 1 - i[k] : i[k]) + (int64_t)number[HALO_SAMPLE_SHIFT + a]) % ext[k];
    }
    return (j[0] * e[1] + j[1]) * e[2] + j[2];
}

static double transformed(const halo_op_desc *d, const double *number, double v)
{
    for (int t = 0; t < d->transforms; t++) {
        const double a = number[HALO_SAMPLE_CONSTANT + 2 * t], b = number[HALO_SAMPLE_CONSTANT + 2 * t + 1];
        switch (d->transform[t]) {
        case HALO_TRANSFORM_LOG1P: v = log1p(v); break;
        case HALO_TRANSFORM_STANDARD: v = (v - a) / b; break;
        default: v = ((v < a ? a : v > b ? b : v) - a) / (b - a); break;
        }
    }
    return v;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y), stat = hl_ref_operand(plan, args, HALO_STAT);
    const int64_t *ext = y.op->ext + HALO_D, *stored = x.op->ext + HALO_D;
    double row[REF_ROW], number[HALO_SAMPLE_NUMBERS];
    for (hl_ref_row r = hl_ref_rows(y.op); hl_ref_more(&r); hl_ref_next(&r)) {
        for (int k = 0; k < HALO_SAMPLE_NUMBERS; k++) number[k] = hl_ref_get(&stat, 0, 0, 0, 0, r.i[HALO_N] * HALO_SAMPLE_NUMBERS + k);
        for (int64_t w = 0; w < r.count; w++) {
            row[w] = 0;
            if (number[HALO_SAMPLE_THERE] == 0) continue;
            int64_t at = taken_from(number, ext, (const int64_t[]){r.i[HALO_D], r.i[HALO_H], r.i[HALO_W] + w});
            row[w] = transformed(&plan->d, number, hl_ref_get(&x, r.i[HALO_N], r.i[HALO_C], at / stored[2] / stored[1], at / stored[2] % stored[1], at % stored[2]));
        }
        hl_ref_write(&y, &r, row);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_prepare, HALO_OP_PREPARE, candidates, run);
