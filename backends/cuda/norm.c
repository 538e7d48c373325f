/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c -- batch, group and instance normalisation, statistics apart so that they can be merged across ranks in between.
 *
 *   STAT [g][f] = count m, mean mu, M2 = sum (x - mu)^2;  y = act(gamma[c] xhat + beta[c]),  xhat = (x - mu) / sqrt(M2/m + eps)
 *   STAT2 [g][c] = A = sum dy, B = sum dy xhat
 *   dx = (gamma[c] dy - S/m - xhat T/m) / sqrt(M2/m + eps),  S = sum over the feature's channels of gamma A, T of gamma B
 *   dgamma[c] = sum_g B,  dbeta[c] = sum_g A
 *
 * (Ioffe & Szegedy 2015; Wu & He 2018.) Not cuDNN's: its calls know neither boxes nor statistics merged across ranks.
 */
#include "groups.h"

typedef struct norm_plan {
    hl_cuda_plan super;
    hl_norming n;
    hl_groups g;
    hl_cells cells;
} norm_plan;

static int64_t features_of(const halo_op_desc *d) { return d->groups > 0 ? d->groups : d->t[HALO_X].ext[HALO_C]; }

static bool fits(const halo_op_desc *d)
{
    return hl_cuda_activation(d, HALO_X) && d->t[HALO_X].ext[HALO_C] % features_of(d) == 0 && hl_cuda_vector(d, HALO_STAT, HALO_F64, true) &&
           hl_cuda_vector(d, HALO_STAT2, HALO_F64, true) && hl_cuda_vector(d, HALO_WT, HALO_F32, true) && hl_cuda_vector(d, HALO_B, HALO_F32, true) &&
           hl_cuda_vector(d, HALO_RUN, HALO_F32, true) && hl_cuda_vector(d, HALO_DW, HALO_F32, true) && hl_cuda_vector(d, HALO_DB, HALO_F32, true);
}

static hl_norming norming_of(const halo_op_desc *d)
{
    const int64_t *e = d->t[HALO_X].ext;
    return (hl_norming){.groups = d->per_sample ? e[HALO_N] : 1,
                        .features = features_of(d),
                        .channels = e[HALO_C],
                        .eps = d->eps,
                        .momentum = d->momentum,
                        .inference = d->inference,
                        .unbiased = d->unbiased,
                        .accumulate = d->accumulate};
}

static size_t table_bytes(const hl_norming *n) { return (size_t)(n->groups * n->channels) * HL_NORM_ROW * sizeof(float); }

static halo_status make(halo_device *dev, const halo_op_desc *d, norm_plan **out)
{
    norm_plan *p;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    p->n = norming_of(d);
    *out = p;
    return HALO_OK;
}

/* Operands, then the row of the table, then the sample's number. */
static void pointwise_cells(norm_plan *p, const halo_role *roles, int n)
{
    const halo_op_desc *d = &p->super.d;
    int64_t s[3][HALO_DIMS];
    const int64_t row[HALO_DIMS] = {d->per_sample ? p->n.channels : 0, 1, 0, 0, 0}, *stride[HL_CELL_OPERANDS];
    for (int i = 0; i < n; i++) {
        HL_BUG_UNLESS(hl_cuda_strides(&d->t[roles[i]], s[i]));
        stride[i] = s[i];
    }
    stride[n] = row;
    stride[n + 1] = hl_cuda_sample;
    hl_cuda_cells(d->t[HALO_X].ext, stride, n + 2, &p->cells);
}

/* ---------------------------------------------------------------------------------------------------------- statistics */

static void stats_groups(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *x = &d->t[HALO_X];
    hl_cuda_groups_channels(&x, 1, d->per_sample, features_of(d), g);
}

static int stats_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!fits(d) || !hl_has(d, HALO_STAT)) return 0;
    stats_groups(d, &g);
    return hl_cuda_offer("cuda", hl_cuda_groups_bytes(&g), out);
}

static halo_status stats_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    norm_plan *p;
    (void)choice;
    HL_TRY(make(dev, d, &p));
    stats_groups(d, &p->g);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status stats_run(halo_plan *plan, const halo_op_args *args)
{
    const norm_plan *p = (const norm_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_norm_sums(s->dev->compute, s->d.t[HALO_X].dtype, &p->g, hl_cuda_ptr(s, args, HALO_X), args->scratch, hl_cuda_ptr(s, args, HALO_STAT), record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_norm_stats, HALO_OP_NORM_STATS, stats_candidates, stats_plan, stats_run);

/* --------------------------------------------------------------------------------------------------------------- apply */

static int apply_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    bool run = hl_has(d, HALO_RUN), per_channel = !d->per_sample && d->groups <= 0;
    if (!fits(d) || !hl_has(d, HALO_WT) || !hl_has(d, HALO_B) || !hl_cuda_like(d, HALO_Y, HALO_X, false)) return 0;
    if ((run && !per_channel) || (d->inference ? !run : !hl_has(d, HALO_STAT))) return 0;
    hl_norming n = norming_of(d);
    return hl_cuda_offer("cuda", table_bytes(&n), out);
}

static halo_status apply_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    norm_plan *p;
    (void)choice;
    HL_TRY(make(dev, d, &p));
    pointwise_cells(p, (const halo_role[]){HALO_Y, HALO_X}, 2);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status apply_run(halo_plan *plan, const halo_op_args *args)
{
    const norm_plan *p = (const norm_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    cudaStream_t stream = s->dev->compute;
    double *stat = hl_cuda_ptr(s, args, HALO_STAT);
    float *run = hl_cuda_ptr(s, args, HALO_RUN), *table = args->scratch;
    HL_CUDA(s->dev, hl_cuda_norm_table(stream, &p->n, stat, run, hl_cuda_ptr(s, args, HALO_WT), hl_cuda_ptr(s, args, HALO_B), table));
    HL_CUDA(s->dev, hl_cuda_norm_write(stream, s->d.t[HALO_X].dtype, &p->cells, hl_cuda_ptr(s, args, HALO_Y), hl_cuda_ptr(s, args, HALO_X), table, s->d.act, s->d.slope));
    if (run && !s->d.inference) HL_CUDA(s->dev, hl_cuda_norm_running(stream, &p->n, stat, run));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_norm_apply, HALO_OP_NORM_APPLY, apply_candidates, apply_plan, apply_run);

/* ------------------------------------------------------------------------------------------------------------ backward */

static void back_groups(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *op[] = {&d->t[HALO_X], &d->t[HALO_DY]};
    hl_cuda_groups_channels(op, 2, d->per_sample, op[0]->ext[HALO_C], g);
}

static bool back_fits(const halo_op_desc *d)
{
    return fits(d) && hl_has(d, HALO_STAT) && hl_has(d, HALO_STAT2) && hl_cuda_like(d, HALO_DY, HALO_X, false);
}

static int back_stats_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!back_fits(d)) return 0;
    back_groups(d, &g);
    return hl_cuda_offer("cuda", hl_cuda_groups_bytes(&g), out);
}

static halo_status back_stats_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    norm_plan *p;
    (void)choice;
    HL_TRY(make(dev, d, &p));
    back_groups(d, &p->g);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status back_stats_run(halo_plan *plan, const halo_op_args *args)
{
    const norm_plan *p = (const norm_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_norm_back_sums(s->dev->compute, s->d.t[HALO_X].dtype, &p->g, &p->n, hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_DY),
                                           hl_cuda_ptr(s, args, HALO_STAT), args->scratch, hl_cuda_ptr(s, args, HALO_STAT2), record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_norm_bwd_stats, HALO_OP_NORM_BWD_STATS, back_stats_candidates, back_stats_plan, back_stats_run);

static int back_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!back_fits(d) || !hl_has(d, HALO_WT) || !hl_cuda_like(d, HALO_DX, HALO_X, true)) return 0;
    hl_norming n = norming_of(d);
    return hl_cuda_offer("cuda", table_bytes(&n), out);
}

static halo_status back_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    norm_plan *p;
    (void)choice;
    HL_TRY(make(dev, d, &p));
    if (hl_has(d, HALO_DX)) pointwise_cells(p, (const halo_role[]){HALO_DX, HALO_X, HALO_DY}, 3);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status back_run(halo_plan *plan, const halo_op_args *args)
{
    const norm_plan *p = (const norm_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    cudaStream_t stream = s->dev->compute;
    double *stat2 = hl_cuda_ptr(s, args, HALO_STAT2);
    float *dw = hl_cuda_ptr(s, args, HALO_DW), *db = hl_cuda_ptr(s, args, HALO_DB), *table = args->scratch;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    if (hl_has(&s->d, HALO_DX)) {
        int64_t samples = s->d.per_sample ? 0 : s->d.t[HALO_X].ext[HALO_N];
        HL_CUDA(s->dev, hl_cuda_norm_back_table(stream, &p->n, hl_cuda_ptr(s, args, HALO_STAT), stat2, hl_cuda_ptr(s, args, HALO_WT), table));
        HL_CUDA(s->dev, hl_cuda_norm_back_write(stream, s->d.t[HALO_X].dtype, &p->cells, hl_cuda_ptr(s, args, HALO_DX), hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_DY),
                                                table, samples, record));
    }
    if (dw || db) HL_CUDA(s->dev, hl_cuda_norm_back_vectors(stream, &p->n, stat2, dw, db));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_norm_bwd_apply, HALO_OP_NORM_BWD_APPLY, back_candidates, back_plan, back_run);
