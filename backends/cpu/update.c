/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c -- one optimiser step on a contiguous range of weights, in one pass with the sum of squares of the new weights. The formulas stand at
 * halo_update_params in backend.h; what does not change from element to element (LARC's factor, Adam's bias corrections) is worked out here in double.
 */
#include "classes.h"
#include "kern/kern.h"

typedef struct update_plan {
    hl_cpu_plan super;
    int64_t n, parts;
    double *sums; /* [parts] */
} update_plan;

typedef struct update_run {
    const update_plan *p;
    hl_update_kern u;
    float *w, *m, *s;
    const float *g;
} update_run;

static bool is_adam(const halo_op_desc *d) { return d->update.kind == HALO_ADAM || d->update.kind == HALO_ADAMW; }

static bool state_valid(const halo_op_desc *d)
{
    const halo_role state[] = {HALO_M1, HALO_M2};
    for (int k = 0; k < 2; k++)
        if (hl_has(d, state[k]) && d->t[state[k]].dtype != HALO_F32) return false;
    if (!hl_has(d, HALO_M1) && (is_adam(d) || d->update.momentum != 0)) return false;
    return hl_has(d, HALO_M2) || !is_adam(d);
}

static int update_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (!hl_has_f32(d, HALO_WT) || !hl_has_f32(d, HALO_DW) || !state_valid(d)) return 0;
    int64_t n = hl_operand_box_elements(&d->t[HALO_WT]);
    if (hl_operand_box_elements(&d->t[HALO_DW]) != n) return 0;
    if (d->update.larc != HALO_LARC_OFF && (d->t[HALO_STAT].dtype != HALO_F64 || d->t[HALO_STAT2].dtype != HALO_F64)) return 0;
    if (hl_has(d, HALO_NUM) && (d->t[HALO_NUM].dtype != HALO_F64 || hl_operand_box_elements(&d->t[HALO_NUM]) != HALO_NUMBERS)) return 0;
    return hl_cpu_pointwise(dev, "cpu", n, out);
}

static void update_destroy(halo_plan *plan)
{
    if (plan) free(((update_plan *)plan)->sums);
    free(plan);
}

static halo_status update_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    update_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    p->n = hl_operand_box_elements(&d->t[HALO_WT]);
    p->parts = hl_parts(p->super.dev, p->n);
    halo_status st = hl_calloc(dev->ctx, (size_t)p->parts, sizeof(*p->sums), "an update", &p->sums);
    if (st != HALO_OK)
        update_destroy((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

static double larc_factor(const halo_update_params *u, double w2, double g2)
{
    double w = sqrt(w2), g = sqrt(g2);
    if (w == 0 || g == 0) return u->larc_zero;
    double local = fmax(u->trust * w / (g + u->larc_eps), u->larc_min);
    return u->larc == HALO_LARC_CLIP ? fmin(local, 1) : local;
}

static hl_update_kern constants(const halo_update_params *u, const halo_step_record *r, double factor, const double *stat, const double *stat2)
{
    const double given = r->grad_scale * factor;
    double lr = r->lr * u->lr_factor, scale = given, t = (double)r->t;
    if (u->larc != HALO_LARC_OFF) scale *= larc_factor(u, stat2[0], stat[0] * given * given);
    return (hl_update_kern){
        .kind = u->kind,
        .scale = (float)scale,
        .momentum = (float)u->momentum,
        .lr = (float)lr,
        .decay = (float)(u->kind == HALO_ADAMW ? lr * u->weight_decay : u->weight_decay),
        .beta1 = (float)u->beta1,
        .beta2 = (float)u->beta2,
        .rest1 = (float)(1 - u->beta1),
        .rest2 = (float)(1 - u->beta2),
        .eps = (float)u->eps,
        .rate = (float)(lr * sqrt(1 - pow(u->beta2, t)) / (1 - pow(u->beta1, t))),
    };
}

static void update_part(void *arg, int64_t i)
{
    const update_run *r = arg;
    const update_plan *p = r->p;
    hl_range e = hl_block_range(p->n, p->parts, i);
    p->sums[i] = p->super.dev->kern->update(&r->u, r->w + e.lo, r->g + e.lo, r->m ? r->m + e.lo : NULL, r->s ? r->s + e.lo : NULL,
                                            e.hi - e.lo);
}

static float *vector(const halo_op_desc *d, const halo_op_args *args, halo_role role)
{
    return hl_has(d, role) ? HL_BOX(float, &d->t[role], args->ptr[role]) : NULL;
}

static halo_status update_do(halo_plan *plan, const halo_op_args *args)
{
    const update_plan *p = (const update_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    const double *number = hl_has(d, HALO_NUM) ? HL_BOX(double, &d->t[HALO_NUM], args->ptr[HALO_NUM]) : NULL;
    if (number && number[HALO_NUM_SKIP] != 0) return HALO_OK;
    const double *stat = hl_has(d, HALO_STAT) ? HL_BOX(double, &d->t[HALO_STAT], args->ptr[HALO_STAT]) : NULL;
    double *stat2 = hl_has(d, HALO_STAT2) ? HL_BOX(double, &d->t[HALO_STAT2], args->ptr[HALO_STAT2]) : NULL, sum = 0;
    update_run r = {.p = p, .u = constants(&d->update, args->record, number ? number[HALO_NUM_FACTOR] : 1, stat, stat2)};
    r.w = vector(d, args, HALO_WT);
    r.g = vector(d, args, HALO_DW);
    r.m = vector(d, args, HALO_M1);
    r.s = is_adam(d) ? vector(d, args, HALO_M2) : NULL;
    hl_parallel(p->super.dev, p->parts, update_part, &r);
    for (int64_t i = 0; i < p->parts; i++) sum += p->sums[i];
    if (stat2) stat2[0] = sum;
    return HALO_OK;
}

const halo_op_class hl_cpu_update = {
    .kind = HALO_OP_UPDATE, .candidates = update_candidates, .plan = update_make, .run = update_do, .destroy = update_destroy};
