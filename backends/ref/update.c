/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c -- one optimiser step on a contiguous range of n weights. The formulas stand at halo_update_params in backend.h:
 * SGD and Nesterov as in Keras (Sutskever et al. 2013 for the latter), Adam (Kingma & Ba 2015) with epsilon outside the bias correction as in
 * TensorFlow, AdamW (Loshchilov & Hutter 2019), and LARC (You, Gitman & Ginsburg 2017), which multiplies the gradient first.
 */
#include "ref.h"

/* What one element needs, worked out once per run. */
typedef struct step {
    const halo_update_params *u;
    double g_factor, lr; /* grad_scale times LARC; Adam's lr with its bias correction is adam_lr */
    double adam_lr;
} step;

static double larc_factor(const halo_update_params *u, double w2, double g2)
{
    double w = sqrt(w2), g = sqrt(g2);
    if (w == 0 || g == 0) return u->larc_zero;
    double local = fmax(u->trust * w / (g + u->larc_eps), u->larc_min);
    return u->larc == HALO_LARC_CLIP ? fmin(local, 1) : local;
}

static step make_step(const halo_update_params *u, const halo_step_record *r, double factor, const hl_ref_view *stat, const hl_ref_view *stat2)
{
    const double scale = r->grad_scale * factor;
    double lr = r->lr * u->lr_factor, t = (double)r->t;
    step s = {.u = u,
              .g_factor = scale,
              .lr = lr,
              .adam_lr = lr * sqrt(1 - pow(u->beta2, t)) / (1 - pow(u->beta1, t))};
    if (u->larc != HALO_LARC_OFF) {
        double g2, w2;
        hl_ref_read_flat(stat, 0, 1, &g2);
        hl_ref_read_flat(stat2, 0, 1, &w2);
        s.g_factor *= larc_factor(u, w2, g2 * scale * scale);
    }
    return s;
}

static void update_one(const step *s, double g, double *w, double *m1, double *m2)
{
    const halo_update_params *u = s->u;
    g *= s->g_factor;
    if (u->kind != HALO_ADAMW) g += u->weight_decay * *w;
    if (u->kind == HALO_SGD || u->kind == HALO_NESTEROV) {
        *m1 = u->momentum * *m1 - s->lr * g;
        *w += u->kind == HALO_SGD ? *m1 : u->momentum * *m1 - s->lr * g;
        return;
    }
    double decay = u->kind == HALO_ADAMW ? s->lr * u->weight_decay * *w : 0;
    *m1 = u->beta1 * *m1 + (1 - u->beta1) * g;
    *m2 = u->beta2 * *m2 + (1 - u->beta2) * g * g;
    *w -= s->adam_lr * *m1 / (sqrt(*m2) + u->eps) + decay;
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    const halo_update_params *u = &d->update;
    bool adam = u->kind == HALO_ADAM || u->kind == HALO_ADAMW;
    if (!REF_HAVE(d, HALO_WT, HALO_DW) ||
        hl_operand_box_elements(&d->t[HALO_WT]) != hl_operand_box_elements(&d->t[HALO_DW]))
        return 0;
    if (d->t[HALO_M1].dtype == HALO_NONE && (adam || u->momentum != 0)) return 0;
    if (d->t[HALO_M2].dtype == HALO_NONE && adam) return 0;
    if (u->larc != HALO_LARC_OFF && !REF_HAVE(d, HALO_STAT, HALO_STAT2)) return 0;
    return hl_ref_offer(0, out);
}

static void read_or_zero(const hl_ref_view *v, int64_t i, int64_t count, double *out)
{
    if (v->op)
        hl_ref_read_flat(v, i, count, out);
    else
        memset(out, 0, (size_t)count * sizeof(*out));
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view wt = hl_ref_operand(plan, args, HALO_WT), dw = hl_ref_operand(plan, args, HALO_DW),
             m1 = hl_ref_operand(plan, args, HALO_M1);
    hl_ref_view m2 = hl_ref_operand(plan, args, HALO_M2), stat = hl_ref_operand(plan, args, HALO_STAT),
             stat2 = hl_ref_operand(plan, args, HALO_STAT2);
    hl_ref_view num = hl_ref_operand(plan, args, HALO_NUM);
    double number[HALO_NUMBERS] = {[HALO_NUM_FACTOR] = 1};
    if (num.op) hl_ref_read_flat(&num, 0, HALO_NUMBERS, number);
    if (number[HALO_NUM_SKIP] != 0) return HALO_OK;
    step s = make_step(&plan->d.update, args->record, number[HALO_NUM_FACTOR], &stat, &stat2);
    int64_t n = hl_operand_box_elements(wt.op);
    double w[REF_ROW], g[REF_ROW], m[REF_ROW], v[REF_ROW], sum = 0;
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t count = hl_min64(REF_ROW, n - i);
        hl_ref_read_flat(&wt, i, count, w);
        hl_ref_read_flat(&dw, i, count, g);
        read_or_zero(&m1, i, count, m);
        read_or_zero(&m2, i, count, v);
        for (int64_t j = 0; j < count; j++) update_one(&s, g[j], &w[j], &m[j], &v[j]);
        hl_ref_write_flat(&wt, i, count, w);
        if (m1.op) hl_ref_write_flat(&m1, i, count, m);
        if (m2.op) hl_ref_write_flat(&m2, i, count, v);
        hl_ref_read_flat(&wt, i, count, w); /* the norm of what was stored */
        for (int64_t j = 0; j < count; j++) sum += w[j] * w[j];
    }
    if (stat2.op) hl_ref_write_flat(&stat2, 0, 1, &sum);
    return HALO_OK;
}

REF_CLASS(hl_ref_update, HALO_OP_UPDATE, candidates, run);
