/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c -- weighted mean losses with their gradient, and sums of squares.
 *
 *   loss_n = 1/T sum_t f(x[n,t] - target[n,t]);  STAT[0] += sum_n sw[n] loss_n, STAT[1] += sum_n sw[n];  dx = sw[n]/T f' loss_scale / weight_sum
 *   relative mse: f = d^2, loss_n and dx over the mean square of the sample's targets, which is summed up first
 *   STAT = sum x^2, count of values that are not finite
 *
 * Each piece of work (sample, section) leaves its sum in a place of its own; they are added up in order. The losses of classes are in cross_entropy.c and dice.c.
 */
#include "classes.h"
#include "kern/kern.h"
#include "runs.h"

typedef struct loss_plan {
    hl_cpu_plan super;
    hl_run_sets runs; /* of one sample; for sums of squares of everything */
    int64_t stride[3];
    int64_t samples, sections;
    double targets;
    double *sums; /* [samples][sections]; of squares [sections][SQUARES] */
    double *norm; /* [samples] relative mse: what is divided by; NULL: nothing is */
} loss_plan;

typedef struct loss_run {
    const loss_plan *p;
    const float *x, *t;
    float *dx;
    const double *weight;
    double scale, delta;
} loss_run;

static void loss_destroy(halo_plan *plan)
{
    if (plan && ((hl_cpu_plan *)plan)->d.kind == HALO_OP_LOSS && hl_loss_of_classes(((hl_cpu_plan *)plan)->d.loss)) {
        hl_cross_entropy_free(plan);
        return;
    }
    if (plan) {
        free(((loss_plan *)plan)->sums);
        free(((loss_plan *)plan)->norm);
    }
    free(plan);
}

/* X, T and DX as operands of one layout, one sample each: as they are, or as vectors of features. Returns how many, 0 when they do not fit. */
static int operands_of(const halo_op_desc *d, halo_operand op[3])
{
    const halo_role role[] = {HALO_X, HALO_T, HALO_DX};
    int n = hl_has(d, HALO_DX) ? 3 : 2;
    bool same = true, rows = true;
    halo_operand plain[3];
    for (int k = 0; k < n; k++) {
        if (!hl_has_f32(d, role[k]) || d->t[role[k]].ext[HALO_N] != d->t[HALO_X].ext[HALO_N]) return 0;
        op[k] = d->t[role[k]];
        same = same && op[k].layout == op[0].layout && hl_same_extents(&op[k], &op[0]);
        rows = rows && hl_vector_rows(&op[k], &plain[k]) && plain[k].ext[HALO_W] == plain[0].ext[HALO_W];
    }
    if (rows) memcpy(op, plain, sizeof(plain));
    return same || rows ? n : 0;
}

static int loss_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    halo_operand op[3];
    if (d->loss == HALO_LOSS_CROSS_ENTROPY) return hl_cross_entropy_candidates(dev, d, out);
    if (hl_loss_of_classes(d->loss)) return hl_dice_candidates(dev, d, out);
    if (operands_of(d, op) == 0 || d->t[HALO_STAT].dtype != HALO_F64) return 0;
    if (hl_has(d, HALO_SW) && d->t[HALO_SW].dtype != HALO_F64) return 0;
    if (d->loss == HALO_LOSS_RELATIVE_MSE && hl_loss_targets(d) * (double)d->t[HALO_X].ext[HALO_N] != (double)hl_operand_box_elements(&d->t[HALO_X])) return 0; /* a part has not its sum */
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[HALO_X]), out);
}

double hl_loss_targets(const halo_op_desc *d)
{
    double n = 1;
    for (int k = HALO_C; k < HALO_DIMS; k++) n *= (double)d->global_ext[k];
    return n > 0 ? n : (double)(hl_operand_box_elements(&d->t[HALO_T]) / d->t[HALO_T].ext[HALO_N]);
}

enum { SQUARES = 3 }; /* a sum of squares, how many are not finite, the largest magnitude */

static halo_status room_for_sums(loss_plan *p)
{
    int64_t elements = hl_runs_elements(&p->runs.set[0]), all = hl_parts(p->super.dev, elements * p->samples);
    p->sections = hl_div_up(all, p->samples);
    if (p->super.d.kind == HALO_OP_LOSS && p->super.d.loss == HALO_LOSS_RELATIVE_MSE)
        HL_TRY(hl_calloc(p->super.dev->super.ctx, (size_t)p->samples, sizeof(*p->norm), "a loss", &p->norm));
    return hl_calloc(p->super.dev->super.ctx, (size_t)(p->samples * p->sections), SQUARES * sizeof(*p->sums), "a loss", &p->sums);
}

static halo_status loss_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    loss_plan *p;
    halo_operand op[3];
    const halo_operand *ops[3];
    (void)choice;
    if (d->loss == HALO_LOSS_CROSS_ENTROPY) return hl_cross_entropy_make(dev, d, out);
    if (hl_loss_of_classes(d->loss)) return hl_dice_make(dev, d, out);
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    int n = operands_of(d, op);
    p->samples = op[0].ext[HALO_N];
    p->targets = hl_loss_targets(d);
    for (int k = 0; k < n; k++) {
        p->stride[k] = hl_operand_strides(&op[k]).s[HALO_N];
        op[k].ext[HALO_N] = 1;
        ops[k] = &op[k];
    }
    p->runs = hl_runs_make(ops, n, true);
    halo_status st = room_for_sums(p);
    if (st != HALO_OK)
        loss_destroy((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

/* Relative mse: sums of squares of targets. */
static void square_piece(void *arg, int64_t i)
{
    const loss_run *r = arg;
    const loss_plan *p = r->p;
    int64_t n = i / p->sections, at[HL_RUN_OPERANDS], count, bad = 0;
    float largest = 0;
    double sum = 0;
    for (int s = 0; s < p->runs.sets; s++) {
        const hl_runs *runs = &p->runs.set[s];
        hl_walk w = hl_walk_begin(runs, hl_runs_part(runs, hl_runs_unit(runs), p->sections, i % p->sections));
        while ((count = hl_walk_next(&w, INT64_MAX, at)) > 0) sum += p->super.dev->kern->sumsq(r->t + n * p->stride[1] + at[1], count, &bad, &largest);
    }
    p->sums[i] = bad ? NAN : sum;
}

static void find_norms(loss_run *r)
{
    const loss_plan *p = r->p;
    hl_parallel(p->super.dev, p->samples * p->sections, square_piece, r);
    for (int64_t n = 0; n < p->samples; n++) {
        double sum = 0;
        for (int64_t s = 0; s < p->sections; s++) sum += p->sums[n * p->sections + s];
        p->norm[n] = isnan(sum) ? sum : fmax(sum / p->targets, HL_LEAST_SQUARE);
    }
}

static void loss_piece(void *arg, int64_t i)
{
    const loss_run *r = arg;
    const loss_plan *p = r->p;
    const halo_op_desc *d = &p->super.d;
    int64_t n = i / p->sections, at[HL_RUN_OPERANDS], count;
    double weight = (r->weight ? r->weight[n] : 1) / (p->norm ? p->norm[n] : 1), sum = 0;
    float scale = (float)(weight / p->targets * r->scale);
    for (int s = 0; s < p->runs.sets; s++) {
        const hl_runs *runs = &p->runs.set[s];
        hl_walk w = hl_walk_begin(runs, hl_runs_part(runs, hl_runs_unit(runs), p->sections, i % p->sections));
        while ((count = hl_walk_next(&w, INT64_MAX, at)) > 0)
            sum += p->super.dev->kern->loss(d->loss, (float)r->delta, r->x + n * p->stride[0] + at[0], r->t + n * p->stride[1] + at[1],
                                            r->dx ? r->dx + n * p->stride[2] + at[2] : NULL, scale, count);
    }
    p->sums[i] = weight * (sum / p->targets);
}

static halo_status loss_do(halo_plan *plan, const halo_op_args *args)
{
    const loss_plan *p = (const loss_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    if (d->loss == HALO_LOSS_CROSS_ENTROPY) return hl_cross_entropy_run(plan, args);
    if (hl_loss_of_classes(d->loss)) return hl_dice_run(plan, args);
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&d->t[HALO_STAT]), loss = 0, weight = 0;
    loss_run r = {.p = p, .x = args->ptr[HALO_X], .t = args->ptr[HALO_T], .dx = hl_has(d, HALO_DX) ? args->ptr[HALO_DX] : NULL};
    if (hl_has(d, HALO_SW)) r.weight = (const double *)args->ptr[HALO_SW] + hl_box_offset(&d->t[HALO_SW]);
    if (r.dx) r.scale = args->record->loss_scale / args->record->weight_sum;
    r.delta = args->record->delta > 0 ? args->record->delta : d->delta;
    if (p->norm) find_norms(&r);
    hl_parallel(p->super.dev, p->samples * p->sections, loss_piece, &r);
    for (int64_t i = 0; i < p->samples * p->sections; i++) loss += p->sums[i];
    for (int64_t n = 0; n < p->samples; n++) weight += r.weight ? r.weight[n] : 1;
    stat[0] += loss;
    stat[1] += weight;
    return HALO_OK;
}

const halo_op_class hl_cpu_loss = {
    .kind = HALO_OP_LOSS, .candidates = loss_candidates, .plan = loss_make, .run = loss_do, .destroy = loss_destroy};

/* ------------------------------------------------------------------------------------------------------ sums of squares */

static int sumsq_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (!hl_has_f32(d, HALO_X) || d->t[HALO_STAT].dtype != HALO_F64) return 0;
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[HALO_X]), out);
}

static halo_status sumsq_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    loss_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    const halo_operand *x = &p->super.d.t[HALO_X];
    p->samples = 1;
    p->runs = hl_runs_make(&x, 1, true);
    halo_status st = room_for_sums(p);
    if (st != HALO_OK)
        loss_destroy((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

static void sumsq_piece(void *arg, int64_t i)
{
    const loss_run *r = arg;
    const loss_plan *p = r->p;
    int64_t at[HL_RUN_OPERANDS], count, bad = 0;
    float largest = 0;
    double sum = 0;
    for (int s = 0; s < p->runs.sets; s++) {
        const hl_runs *runs = &p->runs.set[s];
        hl_walk w = hl_walk_begin(runs, hl_runs_part(runs, hl_runs_unit(runs), p->sections, i));
        while ((count = hl_walk_next(&w, INT64_MAX, at)) > 0) sum += p->super.dev->kern->sumsq(r->x + at[0], count, &bad, &largest);
    }
    p->sums[SQUARES * i] = sum;
    p->sums[SQUARES * i + 1] = (double)bad;
    p->sums[SQUARES * i + 2] = (double)largest;
}

static halo_status sumsq_do(halo_plan *plan, const halo_op_args *args)
{
    const loss_plan *p = (const loss_plan *)plan;
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&p->super.d.t[HALO_STAT]), sum = 0, bad = 0, largest = 0;
    loss_run r = {.p = p, .x = args->ptr[HALO_X]};
    hl_parallel(p->super.dev, p->sections, sumsq_piece, &r);
    for (int64_t i = 0; i < p->sections; i++) {
        sum += p->sums[SQUARES * i];
        bad += p->sums[SQUARES * i + 1];
        largest = fmax(largest, p->sums[SQUARES * i + 2]);
    }
    stat[0] = sum;
    stat[1] = bad;
    stat[2] = largest;
    return HALO_OK;
}

const halo_op_class hl_cpu_sumsq = {
    .kind = HALO_OP_SUMSQ, .candidates = sumsq_candidates, .plan = sumsq_make, .run = sumsq_do, .destroy = loss_destroy};
