/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.c -- the loss of classes, softmax included. Of a cell with logits x[c] and class t, m = max_c x[c], z = sum_c exp(x[c] - m):
 *
 *   loss = m - x[t] + log z,   dloss/dx[c] = exp(x[c] - m) / z - [c = t]
 *
 * STAT and weights as in loss.c, the mean is over cells. No exponent is above 0 and z is at least 1, so nothing overflows however large the logits are.
 */
#include "ref.h"

int hl_ref_cross_entropy_candidates(const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!REF_HAVE(d, HALO_X, HALO_T, HALO_STAT) || t->ext[HALO_N] != x->ext[HALO_N] || t->ext[HALO_C] != 1) return 0;
    if (memcmp(t->ext + HALO_D, x->ext + HALO_D, 3 * sizeof(int64_t)) != 0 || !hl_ref_like(&d->t[HALO_DX], x)) return 0;
    return hl_ref_offer(hl_ref_room(1, hl_ref_sample_size(x), hl_ref_sample_size(t)), out);
}

double hl_ref_cross_entropy_cell(double *x, int64_t classes, int64_t step, double label)
{
    double m = x[0], z = 0;
    bool known = label >= 0 && label < (double)classes && label == floor(label);
    for (int64_t c = 1; c < classes; c++) m = x[c * step] > m || isnan(x[c * step]) ? x[c * step] : m;
    double loss = known ? m - x[(int64_t)label * step] : NAN;
    for (int64_t c = 0; c < classes; c++) z += x[c * step] = exp(x[c * step] - m);
    for (int64_t c = 0; c < classes; c++) x[c * step] = known ? x[c * step] / z - (c == (int64_t)label) : NAN;
    return loss + log(z);
}

halo_status hl_ref_cross_entropy(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), t = hl_ref_operand(plan, args, HALO_T), dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view weights = hl_ref_operand(plan, args, HALO_SW), stat = hl_ref_operand(plan, args, HALO_STAT);
    int64_t size = hl_ref_sample_size(x.op), cells = hl_ref_sample_size(t.op);
    double *xs = args->scratch, *ts = xs + size, sums[2];
    hl_ref_read_flat(&stat, 0, 2, sums);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        double weight = 1, loss = 0;
        if (weights.op) hl_ref_read_flat(&weights, n, 1, &weight);
        hl_ref_unpack_box(&x, n, xs);
        hl_ref_unpack_box(&t, n, ts);
        for (int64_t i = 0; i < cells; i++) loss += hl_ref_cross_entropy_cell(xs + i, size / cells, cells, ts[i]);
        sums[0] += weight * loss / hl_ref_targets(d);
        sums[1] += weight;
        if (!dx.op) continue;
        for (int64_t i = 0; i < size; i++) xs[i] *= weight / hl_ref_targets(d) * args->record->loss_scale / args->record->weight_sum;
        hl_ref_pack_box(&dx, n, xs);
    }
    hl_ref_write_flat(&stat, 0, 2, sums);
    return HALO_OK;
}
