/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice.c -- soft Dice over the classes of a sample, softmax included, alone or with cross entropy. With p = softmax(x), label t and sums over the cells of a sample that are not ignored:
 *
 *   I_c = sum p_c [t = c],   S_c = sum p_c + sum [t = c],   dice_c = (2 I_c + 1) / (S_c + 1),   loss = 1 - sum_c a_c dice_c   (+ cross entropy)
 *   g_c = dloss/dp_c = -a_c (2 [t = c] - dice_c) / (S_c + 1),   dloss/dx_k = p_k (g_k - sum_c p_c g_c)
 *
 * with a_c the class's share of the weights of classes 1 to C - 1. Two passes over the logits: sums, then the gradient, which computes softmax again rather than keep it. Of each class g takes
 * two values in a sample, with and without the label. Sums are in double, piece by piece, and added up in order. Those of a part of a sample are an operation of their own; the loss then takes
 * the sums of all parts as given.
 */
#include "cross_entropy.h"
#include "kern/kern.h"

/* Probabilities; a cell that is ignored has none, and no label, so that nothing follows from it. */
static double softmax(const hl_entropy_run *r, float *room, int64_t cells, hl_labels *label)
{
    const int64_t classes = r->p->classes;
    double entropy = r->p->super.dev->kern->softmax(room, classes, HL_SPAN, cells, label->t, hl_label_weights(r, label));
    for (int64_t i = 0; r->p->super.d.ignores && i < cells; i++) {
        if (!label->ignored[i]) continue;
        label->t[i] = -1;
        for (int64_t c = 0; c < classes; c++) room[c * HL_SPAN + i] = 0;
    }
    return entropy;
}

/* I_c and S_c of a span. */
static void add_span(const float *p, int64_t classes, int64_t cells, const float *label, double *common, double *all)
{
    for (int64_t c = 0; c < classes; c++, p += HL_SPAN) {
        double i = 0, s = 0;
        for (int64_t k = 0; k < cells; k++) {
            bool is = label[k] == (float)c;
            i += is ? (double)p[k] : 0;
            s += (double)p[k] + is;
        }
        common[c] += i;
        all[c] += s;
    }
}

static void sum_piece(void *arg, int64_t i)
{
    const hl_entropy_run *r = arg;
    const hl_entropy_plan *p = r->p;
    hl_range rows = hl_block_range(p->rows, p->sections, i % p->sections);
    double *common = p->part + i * 2 * p->classes, *all = common + p->classes, entropy = 0;
    float *room = p->room + i * p->classes * HL_SPAN;
    hl_labels label;
    memset(common, 0, (size_t)(2 * p->classes) * sizeof(*common));
    for (int64_t row = rows.lo; row < rows.hi; row++)
        for (int64_t w = 0, cells; (cells = hl_entropy_bring(r, i / p->sections, row, w, room, &label)) > 0; w += cells) {
            entropy += softmax(r, room, cells, &label);
            add_span(room, p->classes, cells, label.t, common, all);
        }
    p->sums[i] = entropy;
}

/* g_c of a cell: slope[c] where the label is another, slope[classes + c] where it is c. */
static float slope_of(const float *slope, int64_t classes, int64_t c, float label) { return slope[label == (float)c ? classes + c : c]; }

/* The likeliest class of each cell has its g taken from all others', which changes nothing but that its own p near 1 is not subtracted from 1; mean = sum_c p_c (g_c - g of it). */
static void find_means(const float *p, int64_t classes, int64_t cells, const float *label, const float *slope, float *top, float *mean)
{
    float most[HL_SPAN];
    for (int64_t k = 0; k < cells; k++) most[k] = -1, mean[k] = 0;
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++)
            if (p[c * HL_SPAN + k] > most[k]) most[k] = p[c * HL_SPAN + k], top[k] = slope_of(slope, classes, c, label[k]);
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++) mean[k] += p[c * HL_SPAN + k] * (slope_of(slope, classes, c, label[k]) - top[k]);
}

/* p becomes dx. `entropy`: what cross entropy's own is multiplied by, and by the cell's weight if there are any; where the class is the label that is minus the other classes' p. */
static void differentiate(float *p, int64_t classes, int64_t cells, const float *label, const float *weight, const float *slope, float scale, float entropy)
{
    float top[HL_SPAN] = {0}, mean[HL_SPAN], others[HL_SPAN] = {0};
    find_means(p, classes, cells, label, slope, top, mean);
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++) others[k] += label[k] == (float)c ? 0 : p[c * HL_SPAN + k];
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++) {
            float *at = &p[c * HL_SPAN + k], own = label[k] == (float)c ? -others[k] : *at;
            *at = scale * *at * (slope_of(slope, classes, c, label[k]) - top[k] - mean[k]) + entropy * (weight ? weight[k] : 1) * own;
        }
}

static void gradient_piece(void *arg, int64_t i)
{
    const hl_entropy_run *r = arg;
    const hl_entropy_plan *p = r->p;
    int64_t n = i / p->sections;
    hl_range rows = hl_block_range(p->rows, p->sections, i % p->sections);
    double weight = (r->weight ? r->weight[n] : 1) * r->scale;
    float *room = p->room + i * p->classes * HL_SPAN;
    float entropy = p->super.d.loss == HALO_LOSS_DICE_CE ? (float)(weight / hl_entropy_divisor(r, n)) : 0;
    hl_labels label;
    for (int64_t row = rows.lo; row < rows.hi; row++)
        for (int64_t w = 0, cells; (cells = hl_entropy_bring(r, n, row, w, room, &label)) > 0; w += cells) {
            softmax(r, room, cells, &label);
            differentiate(room, p->classes, cells, label.t, hl_label_weights(r, &label), p->slope + n * 2 * p->classes, (float)weight, entropy);
            hl_entropy_put_back(r, n, row, w, cells, room);
        }
}

/* The sums I and S of a sample from those of its pieces: [2][classes]. */
static void add_pieces(const hl_entropy_plan *p, int64_t n, double *sums)
{
    for (int64_t c = 0; c < 2 * p->classes; c++) {
        sums[c] = 0;
        for (int64_t i = n * p->sections; i < (n + 1) * p->sections; i++) sums[c] += p->part[i * 2 * p->classes + c];
    }
}

/* Loss of a sample, and the slopes of its classes. */
static double sample_loss(const hl_entropy_run *r, int64_t n, const double *sums)
{
    const hl_entropy_plan *p = r->p;
    const double *common = sums, *all = sums + p->classes;
    int64_t first = p->classes > 1;
    double loss = 1, entropy = 0, weights = 0, cells = (double)(p->rows * p->super.d.t[HALO_X].ext[HALO_W]);
    float *slope = p->slope + n * 2 * p->classes;
    for (int64_t i = n * p->sections; i < (n + 1) * p->sections; i++) entropy += p->sums[i];
    for (int64_t c = first; c < p->classes; c++) weights += r->of_class ? r->of_class[c] : 1;
    for (int64_t c = 0; c < p->classes; c++) {
        double share = c < first ? 0 : (r->of_class ? r->of_class[c] : 1) / weights, dice = (2 * common[c] + 1) / (all[c] + 1);
        slope[c] = (float)(share * dice / (all[c] + 1));
        slope[p->classes + c] = (float)(share * (dice - 2) / (all[c] + 1));
        loss -= share * dice;
    }
    return loss * cells / p->targets + (p->super.d.loss == HALO_LOSS_DICE_CE ? entropy / hl_entropy_divisor(r, n) : 0 * entropy);
}

int hl_dice_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *t = &d->t[HALO_T];
    bool part = hl_loss_targets(d) != (double)(t->ext[HALO_D] * t->ext[HALO_H] * t->ext[HALO_W]);
    if (part && !hl_has(d, HALO_STAT2)) return 0; /* which has not the sums of a sample */
    return hl_cross_entropy_candidates(dev, d, out);
}

halo_status hl_dice_make(halo_device *dev, const halo_op_desc *d, halo_plan **out)
{
    halo_plan *plan;
    halo_status st;
    HL_TRY(hl_cross_entropy_make(dev, d, &plan));
    hl_entropy_plan *p = (hl_entropy_plan *)plan;
    HL_GOTO(st, hl_calloc(dev->ctx, (size_t)(p->samples * p->sections * p->classes), 2 * sizeof(*p->part), "a loss", &p->part), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, (size_t)p->classes, 2 * sizeof(*p->total), "a loss", &p->total), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, (size_t)(p->samples * p->classes), 2 * sizeof(*p->slope), "a loss", &p->slope), free_plan);
    *out = plan;
    return HALO_OK;
free_plan:
    hl_cross_entropy_free(plan);
    return st;
}

halo_status hl_dice_run(halo_plan *plan, const halo_op_args *args)
{
    const hl_entropy_plan *p = (const hl_entropy_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&d->t[HALO_STAT]);
    const double *given = hl_has(d, HALO_STAT2) ? (const double *)args->ptr[HALO_STAT2] + hl_box_offset(&d->t[HALO_STAT2]) : NULL;
    hl_entropy_run r = hl_entropy_begin(p, args);
    hl_parallel(p->super.dev, p->samples * p->sections, sum_piece, &r);
    for (int64_t n = 0; n < p->samples; n++) {
        double weight = r.weight ? r.weight[n] : 1;
        add_pieces(p, n, p->total);
        stat[0] += weight * sample_loss(&r, n, given ? given + n * 2 * p->classes : p->total);
        stat[1] += weight;
    }
    if (r.dx) hl_parallel(p->super.dev, p->samples * p->sections, gradient_piece, &r);
    return HALO_OK;
}

static halo_status sums_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **plan)
{
    (void)choice;
    return hl_dice_make(dev, d, plan);
}

static halo_status sums_run(halo_plan *plan, const halo_op_args *args)
{
    const hl_entropy_plan *p = (const hl_entropy_plan *)plan;
    double *out = (double *)args->ptr[HALO_STAT2] + hl_box_offset(&p->super.d.t[HALO_STAT2]);
    hl_entropy_run r = hl_entropy_begin(p, args);
    hl_parallel(p->super.dev, p->samples * p->sections, sum_piece, &r);
    for (int64_t n = 0; n < p->samples; n++) add_pieces(p, n, out + n * 2 * p->classes);
    return HALO_OK;
}

const halo_op_class hl_cpu_loss_sums = {
    .kind = HALO_OP_LOSS_SUMS, .candidates = hl_cross_entropy_candidates, .plan = sums_make, .run = sums_run, .destroy = hl_cross_entropy_free};
