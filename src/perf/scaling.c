/* SPDX-License-Identifier: Apache-2.0 */
/* scaling.c -- see scaling.h. Each row is a context of its own on the first ranks. */
#include "perf/scaling.h"

/* What a row leaves for the prediction. */
typedef struct measured {
    double step, exposed, update; /* seconds */
    double expected;              /* exposed, as modelled; NaN: not */
    int64_t share;                /* samples of a rank */
} measured;

static double seconds_of_updates(const hl_run *run)
{
    hl_program_info info;
    double sum = 0;
    hl_program_info_get(run->train, &info);
    for (int i = 0; i < info.ops; i++) {
        hl_op_info op;
        hl_program_op(run->train, i, &op);
        if (strcmp(op.direction, "update") == 0 && isfinite(op.seconds)) sum += op.seconds;
    }
    return sum;
}

static halo_status run_row(halo_context *sub, const hl_settings *set, const hl_bench_options *options, measured *out)
{
    hl_run *run;
    hl_bench b;
    HL_TRY(hl_run_create(sub, set, HL_NEED_TRAINING, 0, &run));
    halo_status st = hl_bench_step(run, options, &b);
    if (st == HALO_OK)
        *out = (measured){.step = b.step_seconds, .exposed = b.comm_exposed_seconds, .update = seconds_of_updates(run),
                          .expected = sub->ranks > 1 ? fmax(0, run->hidden.end - run->hidden.backward) : 0, .share = hl_run_part(run)};
    if (sub->ranks > 1 && isnan(run->hidden.end)) out->expected = NAN;
    hl_run_destroy(run);
    return st;
}

static double predict(const measured *first, const measured *m)
{
    double computing = first->step - first->exposed - first->update;
    return computing * (double)m->share / (double)first->share + first->update + m->expected;
}

static halo_status one_row(halo_context *ctx, const hl_settings *set, int64_t batch, const hl_bench_options *options, int ranks, const measured *first,
                           hl_scaling_row *row, measured *m)
{
    halo_context *sub = NULL;
    hl_settings own = *set;
    int64_t group = set->parallel.spatial[0] * set->parallel.spatial[1] * set->parallel.spatial[2]; /* of ranks that hold samples together */
    *row = (hl_scaling_row){.ranks = ranks, .batch = batch * group < ranks ? 0 : batch, .step = NAN, .predicted = NAN};
    if (row->batch == 0) return HALO_OK;
    own.batch = batch;
    HL_TRY(hl_comm_subset(ctx, ranks, &sub));
    halo_status st = sub ? run_row(sub, &own, options, m) : HALO_OK;
    if (st != HALO_OK) hl_set_error(ctx, halo_error_message(sub));
    halo_context_destroy(sub);
    HL_TRY(hl_comm_rest(ctx));
    HL_AGREE(ctx, st);
    row->step = m->step;
    row->exposed = m->exposed;
    row->samples_per_second = (double)batch / m->step;
    row->predicted = first ? predict(first, m) : m->step;
    return HALO_OK;
}

halo_status hl_bench_scaling(halo_context *ctx, const hl_settings *set, const hl_bench_options *options, const int *ranks, int n, hl_scaling_row *weak,
                             hl_scaling_row *strong)
{
    measured first = {0}, m = {0};
    for (int i = 0; i < n; i++) {
        HL_TRY(one_row(ctx, set, set->batch * ranks[i], options, ranks[i], i > 0 ? &first : NULL, &weak[i], i > 0 ? &m : &first));
        weak[i].efficiency = weak[i].samples_per_second / ranks[i] / (weak[0].samples_per_second / ranks[0]);
        if (i == 0 && ranks[0] == 1) strong[0] = weak[0];
        else HL_TRY(one_row(ctx, set, set->batch, options, ranks[i], &first, &strong[i], &m));
        strong[i].efficiency = strong[i].samples_per_second / ranks[i] / (strong[0].samples_per_second / ranks[0]);
    }
    return HALO_OK;
}
