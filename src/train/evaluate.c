/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c -- a forward pass over every sample of a split, once each: the last batch is filled up with weight 0. */
#include "base/clock.h"
#include "train/run.h"

static hl_loader_options loader_options(const hl_run *run)
{
    hl_loader_options o = {.batch = run->set.batch / run->set.train.accumulate, .ranks = 1, .seed = (uint64_t)run->set.seed,
                           .prefetch = (int)run->set.data.prefetch};
    hl_run_transforms(&run->set, &o);
    return o;
}

/* One batch: predictions of its real samples to the metrics and the visitor. */
static halo_status one_batch(hl_run *run, hl_source *source, const hl_loaded *b, float *prediction, hl_metrics *metrics,
                             hl_visit_prediction visit, void *user, double sums[2])
{
    int targets = source->info.targets;
    hl_batch batch = {.dtype = HALO_F32, .x = b->x, .y = b->y, .weight = b->weight, .first_sample = b->first_sample};
    hl_step_result result;
    HL_TRY(hl_program_evaluate(run->eval, &batch, prediction, &result));
    sums[0] += result.loss_sum;
    sums[1] += result.weight_sum;
    for (int64_t i = 0; i < b->samples; i++) {
        if (b->weight[i] == 0) continue;
        const float *guess = prediction + i * targets, *truth = b->y + i * targets;
        HL_TRY(hl_metrics_add(metrics, source->ops->group_of(source, b->id[i]), truth, guess));
        if (visit) HL_TRY(visit(user, source, b->id[i], truth, guess));
    }
    return HALO_OK;
}

static halo_status walk(hl_run *run, hl_source *source, hl_loader *loader, float *prediction, hl_metrics *metrics, hl_visit_prediction visit,
                        void *user, double sums[2])
{
    HL_TRY(hl_loader_start(loader, 0, 0));
    for (;;) {
        const hl_loaded *b;
        HL_TRY(hl_loader_next(loader, &b));
        if (!b) return HALO_OK;
        HL_TRY(one_batch(run, source, b, prediction, metrics, visit, user, sums));
    }
}

static halo_status score(hl_metrics *metrics, hl_source *source, hl_evaluation *e)
{
    halo_status st;
    e->targets = source->info.targets;
    e->target = source->info.target;
    HL_TRY(hl_calloc(source->ctx, (size_t)e->targets, sizeof(hl_score), "scores", &e->score));
    HL_GOTO(st, hl_calloc(source->ctx, (size_t)e->targets, sizeof(hl_score), "scores", &e->group_score), free_scores);
    HL_GOTO(st, hl_metrics_score(metrics, false, e->score, &e->items), free_scores);
    HL_GOTO(st, hl_metrics_score(metrics, true, e->group_score, &e->groups), free_scores);
    return HALO_OK;
free_scores:
    hl_evaluation_free(e);
    return st;
}

halo_status hl_run_evaluate(hl_run *run, hl_split split, hl_visit_prediction visit, void *user, hl_evaluation *out)
{
    hl_source *source = run->source[split];
    HL_BUG_UNLESS(source && run->eval);
    hl_loader_options options = loader_options(run);
    hl_loader *loader;
    hl_metrics *metrics = NULL;
    float *prediction = NULL;
    double sums[2] = {0, 0}, begin = hl_now();
    hl_evaluation e = {0};
    HL_TRY(hl_loader_create(run->ctx, source, &options, &loader));
    halo_status st;
    HL_GOTO(st, hl_metrics_create(run->ctx, source->info.targets, source->info.target, &metrics), destroy_loader);
    HL_GOTO(st, hl_calloc(run->ctx, (size_t)(options.batch * source->info.targets), sizeof(float), "predictions", &prediction), destroy_metrics);
    HL_GOTO(st, walk(run, source, loader, prediction, metrics, visit, user, sums), free_prediction);
    HL_GOTO(st, score(metrics, source, &e), free_prediction);
    e.loss = sums[0] / sums[1];
    e.seconds = hl_now() - begin;
    e.samples_per_second = (double)e.items / e.seconds;
    *out = e;
free_prediction:
    free(prediction);
destroy_metrics:
    hl_metrics_destroy(metrics);
destroy_loader:
    hl_loader_destroy(loader);
    return st;
}

void hl_evaluation_free(hl_evaluation *e)
{
    free(e->score);
    free(e->group_score);
    e->score = e->group_score = NULL;
}

static void targets_json(const hl_evaluation *e, const hl_score *score, hl_json *j)
{
    hl_json_array(j, "targets");
    for (int i = 0; i < e->targets; i++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", e->target[i].name);
        hl_json_number(j, "error", score[i].error);
        hl_json_number(j, "constant_error", score[i].constant_error);
        hl_json_number(j, "correlation", score[i].correlation);
        hl_json_bool(j, "constrained", !hl_unconstrained(&score[i]));
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

void hl_evaluation_json(const hl_evaluation *e, hl_json *j)
{
    hl_json_number(j, "loss", e->loss);
    hl_json_int(j, "samples", e->items);
    targets_json(e, e->score, j);
    hl_json_object(j, "universes");
    hl_json_int(j, "count", e->groups);
    targets_json(e, e->group_score, j);
    hl_json_end_object(j);
}
