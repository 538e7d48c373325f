/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice.c -- soft Dice over the classes of a sample, softmax included, alone or with cross entropy. With p = softmax(x), label t and sums over the cells of a sample:
 *
 *   I_c = sum p_c [t = c],   S_c = sum p_c + sum [t = c] + 1,   dice_c = (2 I_c + 1) / S_c,   loss = 1 - mean of dice_c over c = 1 .. C - 1   (+ cross entropy)
 *   g_c = dloss/dp_c = -(2 [t = c] - dice_c) / S_c / (C - 1),   dloss/dx_k = p_k (g_k - sum_c p_c g_c)
 *
 * Two passes over the logits: sums, then the gradient, which computes softmax again rather than keep it. Of each class g takes two values in a sample, with and without the label. Sums are in
 * double, piece by piece, and added up in order.
 */
#include "cross_entropy.h"
#include "kern/kern.h"

static double softmax(const hl_entropy_run *r, float *room, int64_t cells, const float *label)
{
    return r->p->super.dev->kern->softmax(room, r->p->classes, HL_SPAN, cells, label);
}

/* I_c and S_c - 1 of a span. */
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
    float *room = p->room + i * p->classes * HL_SPAN, label[HL_SPAN];
    memset(common, 0, (size_t)(2 * p->classes) * sizeof(*common));
    for (int64_t row = rows.lo; row < rows.hi; row++)
        for (int64_t w = 0, cells; (cells = hl_entropy_bring(r, i / p->sections, row, w, room, label)) > 0; w += cells) {
            entropy += softmax(r, room, cells, label);
            add_span(room, p->classes, cells, label, common, all);
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

/* p becomes dx. `entropy`: what cross entropy's own is multiplied by; where the class is the label that is minus the other classes' p. */
static void differentiate(float *p, int64_t classes, int64_t cells, const float *label, const float *slope, float scale, float entropy)
{
    float top[HL_SPAN] = {0}, mean[HL_SPAN], others[HL_SPAN] = {0};
    find_means(p, classes, cells, label, slope, top, mean);
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++) others[k] += label[k] == (float)c ? 0 : p[c * HL_SPAN + k];
    for (int64_t c = 0; c < classes; c++)
        for (int64_t k = 0; k < cells; k++) {
            float *at = &p[c * HL_SPAN + k], own = label[k] == (float)c ? -others[k] : *at;
            *at = scale * *at * (slope_of(slope, classes, c, label[k]) - top[k] - mean[k]) + entropy * own;
        }
}

static void gradient_piece(void *arg, int64_t i)
{
    const hl_entropy_run *r = arg;
    const hl_entropy_plan *p = r->p;
    int64_t n = i / p->sections;
    hl_range rows = hl_block_range(p->rows, p->sections, i % p->sections);
    double weight = (r->weight ? r->weight[n] : 1) * r->scale;
    float *room = p->room + i * p->classes * HL_SPAN, label[HL_SPAN];
    float entropy = p->super.d.loss == HALO_LOSS_DICE_CE ? (float)(weight / p->targets) : 0;
    for (int64_t row = rows.lo; row < rows.hi; row++)
        for (int64_t w = 0, cells; (cells = hl_entropy_bring(r, n, row, w, room, label)) > 0; w += cells) {
            softmax(r, room, cells, label);
            differentiate(room, p->classes, cells, label, p->slope + n * 2 * p->classes, (float)weight, entropy);
            hl_entropy_put_back(r, n, row, w, cells, room);
        }
}

/* Loss of a sample from the sums of its pieces, and the slopes of its classes. */
static double sample_loss(const hl_entropy_plan *p, int64_t n)
{
    int64_t first = p->classes > 1, begin = n * p->sections;
    double loss = 1, entropy = 0, count = (double)(p->classes - first);
    float *slope = p->slope + n * 2 * p->classes;
    for (int64_t i = begin; i < begin + p->sections; i++) entropy += p->sums[i];
    for (int64_t c = 0; c < p->classes; c++) {
        double common = 0, all = 1;
        for (int64_t i = begin; i < begin + p->sections; i++) {
            common += p->part[i * 2 * p->classes + c];
            all += p->part[(i * 2 + 1) * p->classes + c];
        }
        double dice = (2 * common + 1) / all;
        slope[c] = c < first ? 0 : (float)(dice / all / count);
        slope[p->classes + c] = c < first ? 0 : (float)((dice - 2) / all / count);
        if (c >= first) loss -= dice / count;
    }
    return loss + (p->super.d.loss == HALO_LOSS_DICE_CE ? entropy / p->targets : 0 * entropy);
}

int hl_dice_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *t = &d->t[HALO_T];
    if (hl_loss_targets(d) != (double)(t->ext[HALO_D] * t->ext[HALO_H] * t->ext[HALO_W])) return 0; /* a part of a sample has not its sums */
    return hl_cross_entropy_candidates(dev, d, out);
}

halo_status hl_dice_make(halo_device *dev, const halo_op_desc *d, halo_plan **out)
{
    halo_plan *plan;
    halo_status st;
    HL_TRY(hl_cross_entropy_make(dev, d, &plan));
    hl_entropy_plan *p = (hl_entropy_plan *)plan;
    HL_GOTO(st, hl_calloc(dev->ctx, (size_t)(p->samples * p->sections * p->classes), 2 * sizeof(*p->part), "a loss", &p->part), free_plan);
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
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&p->super.d.t[HALO_STAT]);
    hl_entropy_run r = hl_entropy_begin(p, args);
    hl_parallel(p->super.dev, p->samples * p->sections, sum_piece, &r);
    for (int64_t n = 0; n < p->samples; n++) {
        double weight = r.weight ? r.weight[n] : 1;
        stat[0] += weight * sample_loss(p, n);
        stat[1] += weight;
    }
    if (r.dx) hl_parallel(p->super.dev, p->samples * p->sections, gradient_piece, &r);
    return HALO_OK;
}
