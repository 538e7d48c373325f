/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.c -- norms over ranks: what each rank found of its own share is merged between the operation that finds statistics and the one that uses them.
 * Those of batch norm are of the samples of all ranks; those of group and instance norm of a sample, which the ranks of a spatial group may hold together.
 *
 * Forward, of every channel, with r the running mean (the same bits everywhere; near the mean, so that little is lost by cancellation):
 *     n = sum n_k,   a = sum n_k (mu_k - r),   q = sum (M2_k + n_k (mu_k - r)^2)        over ranks k: one sum of 3 C doubles
 *     mu = r + a/n,  M2 = q - a^2/n                                                    (Chan, Golub & LeVeque 1983)
 * Backward: A = sum dy and B = sum dy xhat are added, 2 C doubles. The gradients of gamma and beta that follow from them are already those of all ranks:
 * one rank keeps them and the others clear theirs, so that the sum of gradients counts them once. All ranks get equal bits, running statistics included.
 *
 * Dice of samples that ranks hold together is made of sums, which are added in the same way.
 */
#include "net/ir.h"

#include "base/clock.h"
#include "base/trace.h"

static bool is_norm(const hl_step *s)
{
    halo_op_kind k = s->desc.kind;
    return s->kind == HL_STEP_OP && (k == HALO_OP_NORM_STATS || k == HALO_OP_NORM_BWD_STATS || k == HALO_OP_NORM_BWD_APPLY);
}

/* Of samples that ranks hold together: it is there where the network's output is split. */
static bool is_loss(const hl_step *s) { return s->kind == HL_STEP_OP && s->desc.kind == HALO_OP_LOSS_SUMS; }

/* Batch norms are of all samples, unless parameters are averaged: then of those of this rank or group. */
static bool over_data(const hl_program *p, const hl_step *s) { return p->reducer && p->average == 0 && !s->desc.per_sample; }

/* The ranks whose statistics are merged; NULL: none but this one's. */
halo_context *hl_statistics_scope(const hl_program *p, const hl_step *s)
{
    if (is_loss(s)) return p->opt.team->group;
    const bool split = p->split[s->layer];
    if (!over_data(p, s)) return split ? p->opt.team->group : NULL;
    return split || !hl_grid_split(&p->grid) ? p->ctx : p->opt.team->peers;
}

/* Of gradients that several ranks have alike one is counted. */
bool hl_statistics_count(const hl_program *p, const hl_step *s)
{
    return over_data(p, s) ? p->ctx->rank == 0 : hl_grid_number(&p->grid) == 0;
}

halo_status hl_statistics_prepare(hl_program *p)
{
    int64_t most = 0;
    const int64_t gathered = hl_grid_group(&p->grid);
    for (int i = p->phase[HL_PHASE_FORWARD]; i < p->phase[HL_PHASE_BACKWARD + 1]; i++) {
        const hl_step *s = &p->step[i];
        if (is_loss(s)) most = hl_max64(most, hl_operand_box_elements(&s->desc.t[HALO_STAT2]));
        if (!is_norm(s)) continue;
        int64_t numbers = hl_operand_box_elements(&s->desc.t[HALO_STAT]);
        most = hl_max64(most, s->desc.per_sample ? numbers * (gathered + 1) : 2 * numbers);
        if (s->use[HALO_STAT2].value >= 0) most = hl_max64(most, hl_operand_box_elements(&s->desc.t[HALO_STAT2]));
    }
    free(p->statistics);
    p->statistics = NULL;
    return most > 0 ? hl_calloc(p->ctx, (size_t)most, sizeof(*p->statistics), "norm statistics", &p->statistics) : HALO_OK;
}

double hl_program_merge_seconds(hl_program *p, bool reset)
{
    double seconds = p->merge_seconds;
    if (reset) p->merge_seconds = 0;
    return seconds;
}

bool hl_program_merges(const hl_program *p)
{
    for (int i = p->phase[HL_PHASE_FORWARD]; i < p->phase[HL_PHASE_BACKWARD + 1]; i++)
        if (is_loss(&p->step[i]) || (is_norm(&p->step[i]) && hl_statistics_scope(p, &p->step[i]))) return true;
    return hl_program_weighs(p) && p->reducer && p->average == 0;
}

static halo_status download(hl_program *p, const halo_operand *o, const void *from, double *to)
{
    HL_TRY(hl_wait_for_step(p));
    return p->dev->ops->download(p->dev, o, from, HALO_F64, to);
}

/* The layer's running mean; 0 without one. */
static halo_status running_mean(hl_program *p, const hl_step *s, int64_t channels, double *mean)
{
    int param = hl_layer_param(p, s->layer, HALO_RUN);
    memset(mean, 0, (size_t)channels * sizeof(*mean));
    if (param < 0) return HALO_OK;
    halo_operand o = hl_operand_flat(hl_model_array_dtype(p->model, param, HL_MASTER), 2 * channels);
    return download(p, &o, hl_model_address(p->model, param, HL_MASTER), mean);
}

static halo_status merge_batch(hl_program *p, hl_step *s, halo_context *scope)
{
    const halo_operand *o = &s->desc.t[HALO_STAT];
    int64_t channels = s->desc.t[HALO_X].ext[HALO_C];
    double *v = p->statistics, *r = v + 3 * channels;
    HL_TRY(running_mean(p, s, channels, r));
    HL_TRY(download(p, o, s->args.ptr[HALO_STAT], v));
    for (int64_t c = 0; c < channels; c++) {
        double n = v[3 * c], a = n * (v[3 * c + 1] - r[c]);
        v[3 * c + 2] += a * (v[3 * c + 1] - r[c]);
        v[3 * c + 1] = a;
    }
    HL_TRY(hl_comm_sum(scope, v, 3 * channels));
    for (int64_t c = 0; c < channels; c++) {
        if (v[3 * c] == 0) v[3 * c] = 1; /* no rank could read its samples: that is what the step fails for, not a mean of nothing */
        double n = v[3 * c], a = v[3 * c + 1], m2 = v[3 * c + 2] - a * a / n;
        v[3 * c + 1] = r[c] + a / n;
        v[3 * c + 2] = m2 < 0 ? 0 : m2; /* NaN stays */
    }
    return p->dev->ops->upload(p->dev, o, s->args.ptr[HALO_STAT], HALO_F64, v);
}

/* a = the moments of both; empty ones count nothing. */
static void add_moments(double a[3], const double b[3])
{
    double n = a[0] + b[0], d = b[1] - a[1];
    if (b[0] == 0) return;
    a[1] += d * b[0] / n;
    a[2] += b[2] + d * d * a[0] * b[0] / n;
    a[0] = n;
}

/* Of each sample by itself: few ranks hold one, so everybody gets everything and adds it up in the same order. */
static halo_status merge_samples(hl_program *p, hl_step *s, halo_context *scope)
{
    const halo_operand *o = &s->desc.t[HALO_STAT];
    const int64_t n = hl_operand_box_elements(o);
    double *v = p->statistics, *all = v + n;
    HL_TRY(download(p, o, s->args.ptr[HALO_STAT], v));
    HL_TRY(hl_comm_gather(scope, v, (size_t)n * sizeof(*v), all));
    memcpy(v, all, (size_t)n * sizeof(*v));
    for (int rank = 1; rank < scope->ranks; rank++)
        for (int64_t i = 0; i < n; i += 3) add_moments(v + i, all + rank * n + i);
    return p->dev->ops->upload(p->dev, o, s->args.ptr[HALO_STAT], HALO_F64, v);
}

static halo_status merge_sums(hl_program *p, hl_step *s, halo_context *scope)
{
    const halo_operand *o = &s->desc.t[HALO_STAT2];
    HL_TRY(download(p, o, s->args.ptr[HALO_STAT2], p->statistics));
    HL_TRY(hl_comm_sum(scope, p->statistics, hl_operand_box_elements(o)));
    return p->dev->ops->upload(p->dev, o, s->args.ptr[HALO_STAT2], HALO_F64, p->statistics);
}

static halo_status keep_once(hl_program *p, hl_step *s)
{
    const halo_role roles[] = {HALO_DW, HALO_DB};
    if (hl_statistics_count(p, s)) return HALO_OK;
    for (size_t i = 0; i < HL_COUNT(roles); i++) {
        const halo_operand *o = &s->desc.t[roles[i]];
        size_t bytes;
        if (s->use[roles[i]].value < 0 || !hl_operand_bytes(o, &bytes)) continue;
        HL_TRY(p->dev->ops->fill(p->dev, s->args.ptr[roles[i]], 0, bytes, NULL));
    }
    return HALO_OK;
}

static halo_status merge(hl_program *p, hl_step *s)
{
    halo_context *scope = hl_statistics_scope(p, s);
    if (s->desc.kind == HALO_OP_NORM_BWD_APPLY) return keep_once(p, s);
    if (!scope) return HALO_OK;
    if (s->desc.kind != HALO_OP_NORM_STATS) return merge_sums(p, s, scope);
    return (s->desc.per_sample ? merge_samples : merge_batch)(p, s, scope);
}

bool hl_statistics_after(const hl_step *s)
{
    const bool more = s->desc.kind != HALO_OP_NORM_BWD_APPLY && s->slab + 1 < s->slabs; /* slabs to be added */
    return (is_norm(s) || is_loss(s)) && !more;
}

bool hl_statistics_wanted(const hl_program *p, const hl_step *s) { return (is_norm(s) || is_loss(s)) && (p->reducer || p->opt.team) && !p->merged; }

halo_status hl_statistics_merge(hl_program *p, hl_step *s)
{
    if (!hl_statistics_after(s) || p->merged) return HALO_OK;
    double start = hl_now();
    HL_TRY(merge(p, s));
    double end = hl_now();
    p->merge_seconds += end - start;
    if (hl_traced(p->ctx)) hl_trace_add(p->ctx, HL_LANE_COMPUTE, "exposed", hl_step_name(p, s), "statistics", start, end, 0);
    return HALO_OK;
}
