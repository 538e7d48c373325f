/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.c -- the loss of classes, softmax included. Of a cell with logits x[c] and class t, m = max_c x[c], z = sum_c exp(x[c] - m):
 *
 *   loss = m - x[t] + log z,   dloss/dx[c] = exp(x[c] - m) / z - [c = t]
 *
 * The derivative of class t is minus the sum of the others': near certainty its p - 1 would be the rounding of p alone.
 *
 * STAT and weights as in loss.c; the mean is over cells, whose classes may be weighted, or a class number left out. No exponent is above 0 and z is at least 1, so nothing overflows however large the logits are.
 */
#include "ref.h"

int hl_ref_cross_entropy_candidates(const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!REF_HAVE(d, HALO_X, HALO_T, HALO_STAT) || t->ext[HALO_N] != x->ext[HALO_N] || t->ext[HALO_C] != 1) return 0;
    if (memcmp(t->ext + HALO_D, x->ext + HALO_D, 3 * sizeof(int64_t)) != 0 || !hl_ref_like(&d->t[HALO_DX], x)) return 0;
    return hl_ref_offer(hl_ref_room(1, hl_ref_sample_size(x) + x->ext[HALO_C], hl_ref_sample_size(t)), out);
}

void hl_ref_class_weights(const halo_plan *plan, const halo_op_args *args, int64_t classes, double *out)
{
    hl_ref_view weights = hl_ref_operand(plan, args, HALO_WT);
    for (int64_t c = 0; c < classes; c++) out[c] = 1;
    if (weights.op) hl_ref_read_flat(&weights, 0, classes, out);
}

bool hl_ref_ignored(const halo_op_desc *d, double label) { return d->ignores && label == (double)d->ignore; }

double hl_ref_divisor(const halo_plan *plan, const halo_op_args *args, int64_t n)
{
    hl_ref_view divisors = hl_ref_operand(plan, args, HALO_X2);
    double divisor = hl_ref_targets(&plan->d);
    if (divisors.op) hl_ref_read_flat(&divisors, n, 1, &divisor);
    return divisor;
}

double hl_ref_cross_entropy_cell(double *x, int64_t classes, int64_t step, double label)
{
    double m = x[0], z = 0, others = 0;
    bool known = label >= 0 && label < (double)classes && label == floor(label);
    for (int64_t c = 1; c < classes; c++) m = x[c * step] > m || isnan(x[c * step]) ? x[c * step] : m;
    double loss = known ? m - x[(int64_t)label * step] : NAN;
    for (int64_t c = 0; c < classes; c++) z += x[c * step] = exp(x[c * step] - m);
    for (int64_t c = 0; c < classes; c++) others += known && c != (int64_t)label ? x[c * step] : 0;
    for (int64_t c = 0; c < classes; c++) x[c * step] = known ? (c == (int64_t)label ? -others : x[c * step]) / z : NAN;
    return loss + log(z);
}

/* As above, times the class's weight. */
static double weighted_cell(const halo_op_desc *d, const double *weight, double *x, int64_t classes, int64_t step, double label)
{
    bool ignored = hl_ref_ignored(d, label);
    double loss = ignored ? 0 : hl_ref_cross_entropy_cell(x, classes, step, label), w = isfinite(loss) && !ignored ? weight[(int64_t)label] : 1;
    for (int64_t c = 0; c < classes; c++) x[c * step] = ignored ? 0 : w * x[c * step];
    return w * loss;
}

halo_status hl_ref_cross_entropy(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), t = hl_ref_operand(plan, args, HALO_T), dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view weights = hl_ref_operand(plan, args, HALO_SW), stat = hl_ref_operand(plan, args, HALO_STAT);
    int64_t size = hl_ref_sample_size(x.op), cells = hl_ref_sample_size(t.op);
    double *xs = args->scratch, *ts = xs + size, *of_class = ts + cells, sums[2];
    hl_ref_read_flat(&stat, 0, 2, sums);
    hl_ref_class_weights(plan, args, size / cells, of_class);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        double weight = 1, loss = 0, divisor = hl_ref_divisor(plan, args, n);
        if (weights.op) hl_ref_read_flat(&weights, n, 1, &weight);
        hl_ref_unpack_box(&x, n, xs);
        hl_ref_unpack_box(&t, n, ts);
        for (int64_t i = 0; i < cells; i++) loss += weighted_cell(d, of_class, xs + i, size / cells, cells, ts[i]);
        sums[0] += weight * loss / divisor;
        sums[1] += weight;
        if (!dx.op) continue;
        for (int64_t i = 0; i < size; i++) xs[i] *= weight / divisor * args->record->loss_scale / args->record->weight_sum;
        hl_ref_pack_box(&dx, n, xs);
    }
    hl_ref_write_flat(&stat, 0, 2, sums);
    return HALO_OK;
}
