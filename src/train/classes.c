/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c -- scores of predicted classes, in one pass and three counts per class: cells that are of it (a), that are taken for it (b), and both (c).
 *
 *     accuracy = sum c / cells,   the best constant's = max a / cells,   Dice of a class = 2 c / (a + b)     (Dice, "Measures of the amount of ecologic
 *                                                                                                     association between species", 1945)
 *
 * Counts are whole numbers, so that the order in which ranks are added does not matter.
 */
#include "train/metrics.h"

#include "comm/comm.h"

struct hl_class_metrics {
    halo_context *ctx;
    int classes;
    double *count; /* [3][classes]: a, b, c */
};

halo_status hl_class_metrics_create(halo_context *ctx, int classes, hl_class_metrics **out)
{
    hl_class_metrics *m;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "metrics", &m));
    m->ctx = ctx;
    m->classes = classes;
    halo_status st = hl_calloc(ctx, 3 * (size_t)classes, sizeof(*m->count), "metrics", &m->count);
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

void hl_class_metrics_add(hl_class_metrics *m, int64_t cells, const float *truth, const float *prediction)
{
    double *a = m->count, *b = a + m->classes, *c = b + m->classes;
    for (int64_t i = 0; i < cells; i++) {
        int64_t t = (int64_t)truth[i], p = (int64_t)prediction[i];
        HL_BUG_UNLESS(t >= 0 && t < m->classes && p >= 0 && p < m->classes); /* the loader looks at labels */
        a[t]++;
        b[p]++;
        c[t] += t == p;
    }
}

halo_status hl_class_metrics_merge(hl_class_metrics *m, halo_context *ctx) { return hl_comm_sum(ctx, m->count, 3 * m->classes); }

halo_status hl_class_metrics_score(const hl_class_metrics *m, hl_score *score, double *dice, double *cells)
{
    const double *a = m->count, *b = a + m->classes, *c = b + m->classes;
    double right = 0, most = 0, all = 0;
    for (int k = 0; k < m->classes; k++) {
        all += a[k];
        right += c[k];
        most = fmax(most, a[k]);
        dice[k] = a[k] + b[k] > 0 ? 2 * c[k] / (a[k] + b[k]) : NAN;
    }
    if (all == 0) return hl_fail(m->ctx, HALO_ERR_USAGE, "no sample was evaluated");
    *score = (hl_score){.error = 1 - right / all, .constant_error = 1 - most / all, .correlation = NAN};
    *cells = all;
    return HALO_OK;
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
