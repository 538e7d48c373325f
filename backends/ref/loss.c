/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c -- weighted mean losses and their gradient in one go; and the sum of squares. cross_entropy.c and dice.c have the losses of classes.
 *
 *   loss_n = 1/T sum_t f(x[n,t] - target[n,t]),   STAT[0] += sum_n sw[n] loss_n,  STAT[1] += sum_n sw[n]
 *   dx[n,t] = sw[n]/T f'(x - target) loss_scale / weight_sum
 *   f(d): mse d^2; mae |d|; huber (1964) d^2/2 for |d| <= delta, else delta (|d| - delta/2); relative mse d^2 / mean of the sample's target^2
 */
#include "ref.h"

static double penalty(halo_loss loss, double delta, double r)
{
    double a = fabs(r);
    if (loss == HALO_LOSS_MAE) return a;
    if (loss != HALO_LOSS_HUBER) return r * r;
    return a <= delta ? r * r / 2 : delta * (a - delta / 2);
}

static double slope(halo_loss loss, double delta, double r)
{
    double sign = (double)((r > 0) - (r < 0));
    if (loss == HALO_LOSS_MAE) return isnan(r) ? r : sign;
    if (loss != HALO_LOSS_HUBER) return 2 * r;
    return fabs(r) <= delta || isnan(r) ? r : delta * sign;
}

/* What a sample's loss is divided by: its targets' mean square where the loss is relative to that. */
static double norm_of(const halo_op_desc *d, const double *t, int64_t size)
{
    double sum = 0;
    if (d->loss != HALO_LOSS_RELATIVE_MSE) return 1;
    for (int64_t i = 0; i < size; i++) sum += t[i] * t[i];
    return fmax(sum / (double)size, HL_LEAST_SQUARE);
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    const halo_operand *x = &d->t[HALO_X];
    if (d->loss == HALO_LOSS_CROSS_ENTROPY) return hl_ref_cross_entropy_candidates(d, out);
    if (hl_loss_of_classes(d->loss)) return hl_ref_dice_candidates(d, out);
    if (!REF_HAVE(d, HALO_X, HALO_T, HALO_STAT) || d->t[HALO_T].ext[HALO_N] != x->ext[HALO_N]) return 0;
    if (hl_ref_sample_size(x) != hl_ref_sample_size(&d->t[HALO_T]) || !hl_ref_like(&d->t[HALO_DX], x)) return 0;
    if (d->loss == HALO_LOSS_RELATIVE_MSE && hl_ref_targets(d) != (double)hl_ref_sample_size(x)) return 0; /* a part of a sample has not its sum */
    return hl_ref_offer(hl_ref_room(2, hl_ref_sample_size(x), 0), out);
}

double hl_ref_targets(const halo_op_desc *d)
{
    double n = 1;
    for (int k = HALO_C; k < HALO_DIMS; k++) n *= (double)d->global_ext[k];
    return n > 0 ? n : (double)hl_ref_sample_size(&d->t[HALO_T]);
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    if (d->loss == HALO_LOSS_CROSS_ENTROPY) return hl_ref_cross_entropy(plan, args);
    if (hl_loss_of_classes(d->loss)) return hl_ref_dice(plan, args);
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), t = hl_ref_operand(plan, args, HALO_T),
             dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view weights = hl_ref_operand(plan, args, HALO_SW), stat = hl_ref_operand(plan, args, HALO_STAT);
    int64_t size = hl_ref_sample_size(x.op);
    double *xs = args->scratch, *ts = xs + size, sums[2];
    const double targets = hl_ref_targets(d), delta = args->record->delta > 0 ? args->record->delta : d->delta;
    hl_ref_read_flat(&stat, 0, 2, sums);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        double weight = 1, loss = 0;
        if (weights.op) hl_ref_read_flat(&weights, n, 1, &weight);
        hl_ref_unpack_box(&x, n, xs);
        hl_ref_unpack_box(&t, n, ts);
        double part = weight / norm_of(d, ts, size);
        for (int64_t i = 0; i < size; i++) {
            double r = xs[i] - ts[i];
            loss += penalty(d->loss, delta, r);
            xs[i] = dx.op ? slope(d->loss, delta, r) * part / targets * args->record->loss_scale / args->record->weight_sum : 0;
        }
        sums[0] += part * loss / targets;
        sums[1] += weight;
        if (dx.op) hl_ref_pack_box(&dx, n, xs);
    }
    hl_ref_write_flat(&stat, 0, 2, sums);
    return HALO_OK;
}

REF_CLASS(hl_ref_loss, HALO_OP_LOSS, candidates, run);

static int sumsq_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_STAT) ? hl_ref_offer(0, out) : 0;
}

static halo_status sumsq_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), stat = hl_ref_operand(plan, args, HALO_STAT);
    double a[REF_ROW], sums[3] = {0, 0, 0};
    for (hl_ref_row r = hl_ref_rows(x.op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(&x, &r, a);
        for (int64_t i = 0; i < r.count; i++) {
            sums[0] += a[i] * a[i];
            sums[1] += !isfinite(a[i]);
            if (isfinite(a[i])) sums[2] = fmax(sums[2], fabs(a[i]));
        }
    }
    hl_ref_write_flat(&stat, 0, 3, sums);
    return HALO_OK;
}

REF_CLASS(hl_ref_sumsq, HALO_OP_SUMSQ, sumsq_candidates, sumsq_run);
