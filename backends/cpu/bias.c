/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bias.c -- db[c] (+)= sum over n d h w of dy, as count times mean of what the norms' statistics find: one pass over dy at the speed of memory, with
 * the order of additions given by the number of threads alone. Samples that are none have a dy of 0 and may be left out as there.
 */
#include "classes.h"

typedef struct bias_plan {
    hl_cpu_plan super;
    halo_plan *sums;
    double *stat; /* [channels][3] */
} bias_plan;

/* The description of the statistics. */
static halo_op_desc stats_of(const halo_op_desc *d)
{
    halo_op_desc s = {.kind = HALO_OP_NORM_STATS};
    s.t[HALO_X] = d->t[HALO_DY];
    s.t[HALO_STAT] = hl_operand_flat(HALO_F64, 3 * d->t[HALO_DY].ext[HALO_C]);
    return s;
}

static int bias_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    halo_op_desc s = stats_of(d);
    if (!hl_has_f32(d, HALO_DY) || d->t[HALO_DB].dtype != HALO_F32) return 0;
    return hl_cpu_norm_stats.candidates(dev, &s, out);
}

static void bias_destroy(halo_plan *plan)
{
    bias_plan *p = (bias_plan *)plan;
    if (!p) return;
    hl_cpu_norm_stats.destroy(p->sums);
    free(p->stat);
    free(p);
}

static halo_status bias_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    bias_plan *p;
    halo_op_desc s = stats_of(d);
    halo_status st;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    HL_GOTO(st, hl_calloc(dev->ctx, 3 * (size_t)d->t[HALO_DY].ext[HALO_C], sizeof(*p->stat), "sums of a bias", &p->stat), free_plan);
    HL_GOTO(st, hl_cpu_norm_stats.plan(dev, &s, choice, &p->sums), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    bias_destroy((halo_plan *)p);
    return st;
}

static halo_status bias_run(halo_plan *plan, const halo_op_args *args)
{
    const bias_plan *p = (const bias_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    halo_op_args sums = {.record = args->record, .queue = args->queue};
    float *db = (float *)args->ptr[HALO_DB] + hl_box_offset(&d->t[HALO_DB]);
    sums.ptr[HALO_X] = args->ptr[HALO_DY];
    sums.ptr[HALO_STAT] = p->stat;
    HL_TRY(hl_cpu_norm_stats.run(p->sums, &sums));
    for (int64_t c = 0; c < d->t[HALO_DY].ext[HALO_C]; c++) {
        double sum = p->stat[3 * c] * p->stat[3 * c + 1];
        db[c] = (float)(d->accumulate ? (double)db[c] + sum : sum);
    }
    return HALO_OK;
}

const halo_op_class hl_cpu_bias_bwd = {
    .kind = HALO_OP_BIAS_BWD, .candidates = bias_candidates, .plan = bias_make, .run = bias_run, .destroy = bias_destroy};
