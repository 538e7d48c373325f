/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c -- scores of predicted classes, from counts alone: the confusion matrix n[t][p] of cells of class t that are taken for p, and for each case (a sample that is a volume) and class the
 * cells that are of it (a), that are taken for it (b), and both (c). Over all cells (`global`: a, b, c from the matrix), and per case, the mean over cases:
 *
 *     Dice = 2 c / (a + b)      IoU = c / (a + b - c)      volume error = (b - a) / a          accuracy = sum_k n[k][k] / cells,   the best constant's = max a / cells
 *
 * (Dice, "Measures of the amount of ecologic association between species", 1945; Bilic et al., "The Liver Tumor Segmentation Benchmark (LiTS)", 2023.) A class that is neither in a case nor found
 * in it has Dice and IoU 1 there, as in that benchmark, and one that is only found has 0; volume errors are those of the cases that have the class. Over all cells what is nowhere has no score, NaN.
 * Cells whose truth is ignored are not counted.
 *
 * Counts are whole numbers, so that the order in which ranks are added does not matter: ranks that share a volume, or have different ones, get what one rank gets.
 */
#include "train/metrics.h"

#include "comm/comm.h"

enum { OF, FOUND, BOTH, COUNTS }; /* a, b, c */

struct hl_class_metrics {
    halo_context *ctx;
    int classes;
    int64_t cases, ignore; /* 0: not told apart; -1: none */
    double *count;         /* [classes][classes] n, [cases][classes][COUNTS], [2] cells that counted, cells */
    int64_t counts;
};

halo_status hl_class_metrics_create(halo_context *ctx, int classes, int64_t cases, int64_t ignore, hl_class_metrics **out)
{
    hl_class_metrics *m;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "metrics", &m));
    *m = (hl_class_metrics){.ctx = ctx, .classes = classes, .cases = cases, .ignore = ignore};
    m->counts = (int64_t)classes * classes + cases * classes * COUNTS + 2;
    halo_status st = hl_calloc(ctx, (size_t)m->counts, sizeof(*m->count), "metrics", &m->count);
    if (st != HALO_OK) hl_class_metrics_destroy(m);
    else *out = m;
    return st;
}

void hl_class_metrics_destroy(hl_class_metrics *m)
{
    if (!m) return;
    free(m->count);
    free(m);
}

static double *of_case(const hl_class_metrics *m, int64_t sample, int k)
{
    return m->count + (int64_t)m->classes * m->classes + (sample * m->classes + k) * COUNTS;
}

static double *cells_of(const hl_class_metrics *m) { return m->count + m->counts - 2; }

void hl_class_metrics_add(hl_class_metrics *m, int64_t sample, int64_t cells, const float *truth, const float *prediction)
{
    HL_BUG_UNLESS(m->cases == 0 || (sample >= 0 && sample < m->cases));
    for (int64_t i = 0; i < cells; i++) {
        int64_t t = (int64_t)truth[i], p = (int64_t)prediction[i];
        if (t == m->ignore) continue;
        HL_BUG_UNLESS(t >= 0 && t < m->classes && p >= 0 && p < m->classes); /* the loader looks at labels */
        m->count[t * m->classes + p]++;
        cells_of(m)[0]++;
        if (m->cases == 0) continue;
        of_case(m, sample, (int)t)[OF]++;
        of_case(m, sample, (int)p)[FOUND]++;
        if (t == p) of_case(m, sample, (int)t)[BOTH]++;
    }
    cells_of(m)[1] += (double)cells;
}

halo_status hl_class_metrics_merge(hl_class_metrics *m, halo_context *ctx) { return hl_comm_sum(ctx, m->count, m->counts); }

static hl_overlap overlap(const double n[COUNTS], double nowhere)
{
    double either = n[OF] + n[FOUND] - n[BOTH];
    return (hl_overlap){.dice = either > 0 ? 2 * n[BOTH] / (n[OF] + n[FOUND]) : nowhere, .iou = either > 0 ? n[BOTH] / either : nowhere,
                        .volume_error = n[OF] > 0 ? (n[FOUND] - n[OF]) / n[OF] : NAN};
}

static void count_class(const hl_class_metrics *m, int k, double n[COUNTS])
{
    memset(n, 0, COUNTS * sizeof(*n));
    for (int j = 0; j < m->classes; j++) {
        n[OF] += m->count[k * m->classes + j];
        n[FOUND] += m->count[j * m->classes + k];
    }
    n[BOTH] = m->count[k * m->classes + k];
}

hl_overlap hl_class_metrics_case(const hl_class_metrics *m, int64_t sample, int k) { return overlap(of_case(m, sample, k), 1); }

/* Of which any cell was counted. */
static bool seen(const hl_class_metrics *m, int64_t sample)
{
    for (int k = 0; k < m->classes; k++)
        if (of_case(m, sample, k)[OF] > 0) return true;
    return false;
}

static void average_cases(const hl_class_metrics *m, int k, hl_class_score *s)
{
    hl_overlap sum = {0};
    double n = 0;
    for (int64_t i = 0; i < m->cases; i++) {
        if (!seen(m, i)) continue;
        n++;
        hl_overlap one = hl_class_metrics_case(m, i, k);
        bool has = of_case(m, i, k)[OF] > 0;
        sum.dice += one.dice;
        sum.iou += one.iou;
        sum.volume_error += has ? one.volume_error : 0;
        s->cases += has;
    }
    double with = (double)s->cases;
    s->per_case = (hl_overlap){.dice = n > 0 ? sum.dice / n : NAN, .iou = n > 0 ? sum.iou / n : NAN, .volume_error = with > 0 ? sum.volume_error / with : NAN};
}

bool hl_class_metrics_counts(const hl_class_metrics *m) { return cells_of(m)[0] > 0; }

halo_status hl_class_metrics_score(const hl_class_metrics *m, hl_score *score, hl_class_score *of_class, double *cells)
{
    const double *all = cells_of(m);
    double right = 0, most = 0;
    if (all[0] == 0) return hl_fail(m->ctx, HALO_ERR_USAGE, all[1] == 0 ? "no sample was evaluated" : "all cells that were evaluated have the label that is ignored");
    for (int k = 0; k < m->classes; k++) {
        double n[COUNTS];
        count_class(m, k, n);
        right += n[BOTH];
        most = fmax(most, n[OF]);
        of_class[k].global = overlap(n, NAN);
        of_class[k].cases = 0;
        average_cases(m, k, &of_class[k]);
    }
    *score = (hl_score){.error = 1 - right / all[0], .constant_error = 1 - most / all[0], .correlation = NAN};
    *cells = all[1];
    return HALO_OK;
}

double hl_class_metrics_confused(const hl_class_metrics *m, int truth, int prediction) { return m->count[truth * m->classes + prediction]; }

double hl_foreground_dice(const hl_class_score *of_class, int classes, bool per_case)
{
    double sum = 0;
    for (int k = 1; k < classes; k++) sum += per_case ? of_class[k].per_case.dice : of_class[k].global.dice;
    return sum / (classes - 1);
}

void hl_classes_of(const float *logits, int64_t samples, int classes, int64_t cells, float *out)
{
    for (int64_t n = 0; n < samples; n++, logits += classes * cells, out += cells)
        for (int64_t i = 0; i < cells; i++) {
            int best = 0;
            for (int k = 1; k < classes; k++)
                if (logits[k * cells + i] > logits[best * cells + i]) best = k;
            out[i] = (float)best;
        }
}
