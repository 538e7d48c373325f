/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice.c -- soft Dice over the classes of a sample, softmax included, alone or with cross entropy. With p = softmax(x) [C, cells], label t and sums over the cells of a sample:
 *
 *   I_c = sum p_c [t = c],   S_c = sum p_c + sum [t = c] + 1,   dice_c = (2 I_c + 1) / S_c,   loss = 1 - mean of dice_c over c = 1 .. C - 1   (+ cross entropy)
 *   g_c = dloss/dp_c = -(2 [t = c] - dice_c) / S_c / (C - 1),   dloss/dx_k = p_k (g_k - sum_c p_c g_c)
 *
 * Class 0 is the background, which would drown the others; where it is the only class it counts. The 1 is a voxel: a class that a sample has not, and the network does not see, has Dice 1.
 * (Milletari, Navab & Ahmadi, "V-Net", 2016, with the plain sums of Isensee et al., "nnU-Net", 2021.)
 */
#include "ref.h"

/* Sums become dice_c and S_c: dice[c], dice[classes + c]. Returns the loss. */
static double sum_up(const double *q, const double *t, int64_t classes, int64_t cells, double *dice)
{
    int64_t first = classes > 1;
    double loss = 1;
    for (int64_t c = 0; c < classes; c++) {
        double common = 0, all = 1;
        for (int64_t i = 0; i < cells; i++) {
            double is = t[i] == (double)c, p = q[c * cells + i] + is;
            common += p * is;
            all += p + is;
        }
        dice[c] = (2 * common + 1) / all;
        dice[classes + c] = all;
        if (c >= first) loss -= dice[c] / (double)(classes - first);
    }
    return loss;
}

/* q, the derivatives of cross entropy, become those of the loss; `entropy`: with its own mean. */
static void differentiate(double *q, const double *t, int64_t classes, int64_t cells, const double *dice, double entropy)
{
    int64_t first = classes > 1;
    for (int64_t i = 0; i < cells; i++) {
        double mean = 0;
        for (int k = 0; k < 2; k++)
            for (int64_t c = 0; c < classes; c++) {
                double is = t[i] == (double)c, p = q[c * cells + i] + is, g = c < first ? 0 : -(2 * is - dice[c]) / dice[classes + c] / (double)(classes - first);
                if (k == 0) mean += p * g;
                else q[c * cells + i] = p * (g - mean) + entropy * q[c * cells + i];
            }
    }
}

int hl_ref_dice_candidates(const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!hl_ref_cross_entropy_candidates(d, out) || hl_ref_targets(d) != (double)hl_ref_sample_size(t)) return 0; /* a part of a sample has not its sums */
    return hl_ref_offer(hl_ref_room(1, hl_ref_sample_size(x) + 2 * x->ext[HALO_C], hl_ref_sample_size(t)), out);
}

halo_status hl_ref_dice(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), t = hl_ref_operand(plan, args, HALO_T), dx = hl_ref_operand(plan, args, HALO_DX);
    hl_ref_view weights = hl_ref_operand(plan, args, HALO_SW), stat = hl_ref_operand(plan, args, HALO_STAT);
    int64_t size = hl_ref_sample_size(x.op), cells = hl_ref_sample_size(t.op), classes = size / cells;
    double *xs = args->scratch, *ts = xs + size, *dice = ts + cells, sums[2], with = d->loss == HALO_LOSS_DICE_CE;
    hl_ref_read_flat(&stat, 0, 2, sums);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        double weight = 1, entropy = 0;
        if (weights.op) hl_ref_read_flat(&weights, n, 1, &weight);
        hl_ref_unpack_box(&x, n, xs);
        hl_ref_unpack_box(&t, n, ts);
        for (int64_t i = 0; i < cells; i++) entropy += hl_ref_cross_entropy_cell(xs + i, classes, cells, ts[i]);
        double loss = sum_up(xs, ts, classes, cells, dice) + (with != 0 ? entropy / (double)cells : 0 * entropy); /* a label that is no class spoils it too */
        sums[0] += weight * loss;
        sums[1] += weight;
        if (!dx.op) continue;
        differentiate(xs, ts, classes, cells, dice, with / (double)cells);
        for (int64_t i = 0; i < size; i++) xs[i] *= weight * args->record->loss_scale / args->record->weight_sum;
        hl_ref_pack_box(&dx, n, xs);
    }
    hl_ref_write_flat(&stat, 0, 2, sums);
    return HALO_OK;
}
