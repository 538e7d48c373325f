/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice.c -- soft Dice over the classes of a sample, softmax included, alone or with cross entropy. With p = softmax(x) [C, cells], label t and sums over the cells of a sample that are not
 * ignored:
 *
 *   I_c = sum p_c [t = c],   S_c = sum p_c + sum [t = c],   dice_c = (2 I_c + 1) / (S_c + 1),   loss = 1 - sum_c a_c dice_c   (+ cross entropy)
 *   g_c = dloss/dp_c = -a_c (2 [t = c] - dice_c) / (S_c + 1),   dloss/dx_k = p_k (g_k - sum_c p_c g_c)
 *
 * with a_c the class's weight among those of classes 1 to C - 1, 1 / (C - 1) where none are given. Class 0 is the background, which would drown the others; where it is the only class it counts.
 * The 1 is a voxel: a class that a sample has not, and the network does not see, has Dice 1. (Milletari, Navab & Ahmadi, "V-Net", 2016, with the plain sums of Isensee et al., "nnU-Net", 2021.)
 *
 * Of a part of a sample the sums I and S are an operation of their own, so that the parts' can be added before anything follows from them.
 */
#include "ref.h"

/* One sample at work: q, the derivatives of cross entropy [classes][cells]; labels; per class I, S, dice, a, and the weight of cross entropy. */
typedef struct sample {
    int64_t classes, cells;
    double *q, *t, *common, *all, *dice, *share, *weight;
    double entropy;
} sample;

static int64_t room_of(const halo_op_desc *d)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    return hl_ref_room(1, hl_ref_sample_size(x) + 5 * x->ext[HALO_C], hl_ref_sample_size(t));
}

static sample begin(const halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    int64_t size = hl_ref_sample_size(&d->t[HALO_X]), cells = hl_ref_sample_size(&d->t[HALO_T]), classes = size / cells, first = classes > 1;
    sample s = {.classes = classes, .cells = cells, .q = args->scratch};
    s.t = s.q + size;
    s.common = s.t + cells;
    s.all = s.common + classes;
    s.dice = s.all + classes;
    s.share = s.dice + classes;
    s.weight = s.share + classes;
    hl_ref_class_weights(plan, args, classes, s.weight);
    double sum = 0;
    for (int64_t c = first; c < classes; c++) sum += s.weight[c];
    for (int64_t c = 0; c < classes; c++) s.share[c] = c < first ? 0 : s.weight[c] / sum;
    return s;
}

/* Of a cell's cross entropy: 0 where it is ignored, NaN where its label is no class. */
static double weight_of(const sample *s, double label)
{
    if (label == -1) return 0;
    return label >= 0 && label < (double)s->classes && label == floor(label) ? s->weight[(int64_t)label] : NAN;
}

/* Sample n: its cells, of which those that are ignored have no label and no probability; the sums of its classes, and of its cross entropies. */
static void take(const halo_plan *plan, const halo_op_args *args, int64_t n, sample *s)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), t = hl_ref_operand(plan, args, HALO_T);
    hl_ref_unpack_box(&x, n, s->q);
    hl_ref_unpack_box(&t, n, s->t);
    s->entropy = 0;
    for (int64_t i = 0; i < s->cells; i++) {
        bool ignored = hl_ref_ignored(&plan->d, s->t[i]);
        double loss = ignored ? 0 : hl_ref_cross_entropy_cell(s->q + i, s->classes, s->cells, s->t[i]);
        for (int64_t c = 0; ignored && c < s->classes; c++) s->q[c * s->cells + i] = 0;
        if (ignored) s->t[i] = -1;
        s->entropy += ignored ? 0 : weight_of(s, s->t[i]) * loss;
    }
    for (int64_t c = 0; c < s->classes; c++) {
        s->common[c] = s->all[c] = 0;
        for (int64_t i = 0; i < s->cells; i++) {
            double is = s->t[i] == (double)c, p = s->q[c * s->cells + i] + is;
            s->common[c] += p * is;
            s->all[c] += p + is;
        }
    }
}

/* From the sums, 1 - the weighted mean. */
static double dice_loss(sample *s)
{
    double loss = 1;
    for (int64_t c = 0; c < s->classes; c++) {
        s->dice[c] = (2 * s->common[c] + 1) / (s->all[c] + 1);
        loss -= s->share[c] * s->dice[c];
    }
    return loss;
}

static double label_is(const sample *s, int64_t i, int64_t c) { return s->t[i] == (double)c; }
static double share_of(const sample *s, int64_t i, int64_t c) { return s->q[c * s->cells + i] + label_is(s, i, c); }
static double slope_of(const sample *s, int64_t i, int64_t c) { return -s->share[c] * (2 * label_is(s, i, c) - s->dice[c]) / (s->all[c] + 1); }

static int64_t likeliest(const sample *s, int64_t i)
{
    int64_t top = 0;
    for (int64_t c = 1; c < s->classes; c++)
        if (share_of(s, i, c) > share_of(s, i, top)) top = c;
    return top;
}

/* q become the derivatives of the loss; `entropy`: with those of cross entropy times this. The likeliest class's g is taken from all g, which changes no derivative but keeps that class's p
 * near 1 from being taken from 1. */
static void differentiate(sample *s, double entropy)
{
    for (int64_t i = 0; i < s->cells; i++) {
        double base = slope_of(s, i, likeliest(s, i)), mean = 0, weight = weight_of(s, s->t[i]);
        for (int64_t c = 0; c < s->classes; c++) mean += share_of(s, i, c) * (slope_of(s, i, c) - base);
        for (int64_t c = 0; c < s->classes; c++) {
            double *q = &s->q[c * s->cells + i];
            *q = share_of(s, i, c) * (slope_of(s, i, c) - base - mean) + entropy * weight * *q;
        }
    }
}

int hl_ref_dice_candidates(const halo_op_desc *d, halo_candidate *out)
{
    bool part = hl_ref_targets(d) != (double)hl_ref_sample_size(&d->t[HALO_T]);
    if (!hl_ref_cross_entropy_candidates(d, out) || (part && d->t[HALO_STAT2].dtype == HALO_NONE)) return 0;
    return hl_ref_offer(room_of(d), out);
}

halo_status hl_ref_dice(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX), weights = hl_ref_operand(plan, args, HALO_SW);
    hl_ref_view stat = hl_ref_operand(plan, args, HALO_STAT), given = hl_ref_operand(plan, args, HALO_STAT2);
    sample s = begin(plan, args);
    double sums[2], with = d->loss == HALO_LOSS_DICE_CE, part = (double)s.cells / hl_ref_targets(d);
    hl_ref_read_flat(&stat, 0, 2, sums);
    for (int64_t n = 0; n < d->t[HALO_X].ext[HALO_N]; n++) {
        double weight = 1, divisor = hl_ref_divisor(plan, args, n);
        if (weights.op) hl_ref_read_flat(&weights, n, 1, &weight);
        take(plan, args, n, &s);
        if (given.op) hl_ref_read_flat(&given, 2 * s.classes * n, 2 * s.classes, s.common); /* I, then S */
        double loss = part * dice_loss(&s) + (with != 0 ? s.entropy / divisor : 0 * s.entropy); /* a label that is no class spoils it too */
        sums[0] += weight * loss;
        sums[1] += weight;
        if (!dx.op) continue;
        differentiate(&s, with / divisor);
        for (int64_t i = 0; i < s.classes * s.cells; i++) s.q[i] *= weight * args->record->loss_scale / args->record->weight_sum;
        hl_ref_pack_box(&dx, n, s.q);
    }
    hl_ref_write_flat(&stat, 0, 2, sums);
    return HALO_OK;
}

static int sums_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!REF_HAVE(d, HALO_X, HALO_T, HALO_STAT2) || t->ext[HALO_N] != x->ext[HALO_N] || t->ext[HALO_C] != 1) return 0;
    return memcmp(t->ext + HALO_D, x->ext + HALO_D, 3 * sizeof(int64_t)) == 0 ? hl_ref_offer(room_of(d), out) : 0;
}

static halo_status sums_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view out = hl_ref_operand(plan, args, HALO_STAT2);
    sample s = begin(plan, args);
    for (int64_t n = 0; n < plan->d.t[HALO_X].ext[HALO_N]; n++) {
        take(plan, args, n, &s);
        hl_ref_write_flat(&out, 2 * s.classes * n, 2 * s.classes, s.common);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_loss_sums, HALO_OP_LOSS_SUMS, sums_candidates, sums_run);
