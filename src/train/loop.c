/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c -- the training loop. Its whole state between two steps is the model and hl_progress; everything else follows from the settings
 * and the position, which is why a resumed run continues bit by bit.
 */
#include "base/clock.h"
#include "base/trace.h"
#include "tensor/block.h"
#include "train/check.h"

#include <stdio.h>

typedef struct loop {
    hl_run *run;
    hl_loader *loader;
    int64_t steps_per_epoch, last_step; /* optimiser steps in all */
    int64_t samples;                    /* done in this process */
    double busy;                        /* seconds in steps */
    double epoch_loss[2];               /* weighted sum and weights of this epoch */
    double flops_step;
    hl_evaluation evaluation;           /* the last validation */
    bool validated;
    double best_before;                 /* the last validation that was the best: what was so before it */
    int64_t best_epoch_before;
    double votes[HL_VOTES];             /* of the last step, all ranks: signals, clocks beyond train.max_time, data that cannot be read */
    halo_status read;                   /* of this rank's batch of the step; others learn of a failure by vote */
    double exposed;                     /* seconds of communication that nothing hid, of earlier steps */
    hl_part part;
} loop;

hl_vary hl_run_vary(const hl_settings *s)
{
    hl_vary v = {.rotate = s->data.vary.rotate, .noise = s->data.vary.noise, .share = s->data.vary.share};
    for (int k = 0; k < s->data.vary.scale.n; k++) v.scale[k] = strtod(s->data.vary.scale.word[k], NULL);
    for (int k = 0; k < s->data.vary.gamma.n; k++) v.gamma[k] = strtod(s->data.vary.gamma.word[k], NULL);
    return v;
}

hl_loader_options hl_run_training_loader(const hl_run *run)
{
    const hl_settings *s = &run->set;
    hl_loader_options o = {.batch = s->batch, .shuffle = true, .drop_last = true, .seed = (uint64_t)s->seed, .prefetch = (int)s->data.prefetch};
    hl_run_cells(run, run->train, &o);
    o.cube = s->data.augment == HL_AUGMENT_CUBE || s->data.augment == HL_AUGMENT_CUBE_SHIFT;
    o.shift = s->data.augment == HL_AUGMENT_SHIFT || s->data.augment == HL_AUGMENT_CUBE_SHIFT;
    hl_run_transforms(s, &o);
    o.flip = s->data.augment == HL_AUGMENT_FLIP;
    o.vary = hl_run_vary(s);
    o.patch = hl_run_patches(s);
    o.patches = s->data.patches;
    o.foreground = s->data.foreground >= 0 ? s->data.foreground : 0.33;
    hl_run_store(run, run->train, run->source[HL_TRAIN], &o);
    return o;
}

void hl_run_vote(const hl_run *run, double votes[HL_VOTES])
{
    votes[HL_VOTE_SIGNAL] = run->stop_requested && run->stop_requested() ? 1 : 0;
    votes[HL_VOTE_TIME] = run->set.train.max_time >= 0 && hl_now() - run->started >= run->set.train.max_time ? 1 : 0;
    votes[HL_VOTE_FAILED] = 0;
}

/* One part. The last one sums over ranks and updates: after a failure there that the others cannot see the run is lost. */
static halo_status run_part(loop *l, const hl_batch *batch, hl_step_options *o, hl_step_result *r)
{
    hl_run *run = l->run;
    bool collective = run->reducer && (o->update || hl_program_merges(run->train) || hl_grid_split(&run->grid));
    if (o->update) hl_run_vote(run, o->vote);
    o->vote[HL_VOTE_FAILED] = l->read != HALO_OK;
    halo_status st = hl_program_train(run->train, batch, o, r);
    run->lost = collective && st != HALO_OK && st != HALO_ERR_NONFINITE;
    if (!o->update) return run->lost ? st : hl_agree(run->ctx, st);
    memcpy(l->votes, r->votes, sizeof(l->votes));
    return st;
}

/* What is run after part `number` of b, where it is there already: it may go to the device meanwhile. */
static bool next_part(const loop *l, const hl_loaded *b, int64_t number, hl_batch *next)
{
    const bool last = number + 1 == hl_run_parts(l->run);
    if (!last) return hl_part_next(&l->part, b, number + 1, next);
    const hl_loaded *then = l->run->at.step + 1 < l->last_step ? hl_loader_peek(l->loader) : NULL;
    return then && hl_part_next(&l->part, then, 0, next);
}

/* The parts of a batch whose gradients are added: part i is samples [i m, (i+1) m) of this rank's share. The result is that of all ranks. */
static halo_status run_parts(loop *l, const hl_loaded *b, double lr, hl_step_result *result)
{
    hl_run *run = l->run;
    const double delta = hl_schedule_delta(run->set.huber_delta, run->set.schedule.delta_factor, run->set.schedule.delta_end, run->at.step, l->steps_per_epoch);
    int64_t parts = hl_run_parts(run);
    double before[2] = {0, 0};
    hl_step_result r = {.finite = true};
    for (int64_t i = 0; i < parts; i++) {
        hl_batch batch = hl_part_of(&l->part, b, i), next;
        if (next_part(l, b, i, &next)) batch.next = &next;
        hl_step_options o = {.lr = lr, .seed = (uint64_t)run->set.seed, .step = (uint64_t)run->at.step, .accumulate = i > 0,
                             .update = i == parts - 1, .grad_scale = 1, .delta = delta};
        HL_TRY(run_part(l, &batch, &o, &r));
        if (o.update) break;
        before[0] += r.loss_sum;
        before[1] += r.weight_sum;
    }
    if (parts > 1) HL_TRY(hl_comm_sum(run->ctx, before, 2));
    r.loss_sum += before[0];
    r.weight_sum += before[1];
    r.loss = r.loss_sum / r.weight_sum;
    *result = r;
    return HALO_OK;
}

/* Of the step just done. */
static double seconds_exposed(loop *l)
{
    hl_reducer_stats stats;
    if (!l->run->reducer) return 0;
    hl_reducer_stats_get(l->run->reducer, &stats, NULL);
    double before = l->exposed;
    l->exposed = stats.seconds_exposed;
    return l->exposed - before;
}

static double seconds_left(const loop *l)
{
    int64_t done = l->samples / l->run->set.batch;
    return done > 0 ? (hl_now() - l->run->started) / (double)done * (double)(l->last_step - l->run->at.step) : NAN;
}

static void tell_step(loop *l, const hl_loaded *b, const hl_step_result *r, double lr, double seconds)
{
    hl_run *run = l->run;
    hl_event e = {.kind = HL_EVENT_STEP, .step = run->at.step, .epoch = hl_run_epoch(run), .loss = r->loss, .lr = lr, .grad_norm = r->grad_norm,
                  .seconds = seconds, .seconds_io = b->seconds_waited, .elapsed = hl_now() - run->started, .left = seconds_left(l),
                  .seconds_exposed = seconds_exposed(l)};
    e.fraction = l->last_step > 0 ? (double)run->at.step / (double)l->last_step : 0;
    e.samples_per_second = (double)run->set.batch / seconds;
    e.gflops = l->flops_step / seconds * 1e-9;
    e.scaled = r->skipped || r->loss_scale != 1;
    e.skipped = r->skipped;
    e.loss_scale = r->loss_scale;
    hl_run_tell(run, &e);
}

static void trace_step(const hl_run *run, const hl_loaded *b, double begin)
{
    char number[24];
    snprintf(number, sizeof(number), "%" PRId64, run->at.step);
    hl_trace_add(run->ctx, HL_LANE_COMPUTE, "exposed", "wait for data", NULL, begin - b->seconds_waited, begin, 0);
    hl_trace_add(run->ctx, HL_LANE_COMPUTE, "step", "step", number, begin, hl_now(), 0);
}

static halo_status one_step(loop *l, const hl_loaded *b)
{
    hl_run *run = l->run;
    double lr = hl_schedule_rate(&run->schedule, run->at.step, l->steps_per_epoch), begin = hl_now();
    hl_step_result r;
    HL_TRY(run_parts(l, b, lr, &r));
    if (l->votes[HL_VOTE_FAILED] > 0) return hl_agree(run->ctx, l->read);
    double seconds = hl_now() - begin + b->seconds_waited;
    if (r.skipped && run->ctx->rank == 0)
        HL_DEBUG(run->ctx, "step %" PRId64 ": gradients overflowed with the loss times %g, nothing was updated", run->at.step, r.loss_scale);
    run->at.step++;
    run->at.step_in_epoch++;
    run->at.seconds = run->seconds_before + hl_now() - run->started;
    l->samples += run->set.batch;
    l->busy += seconds;
    l->epoch_loss[0] += r.loss_sum;
    l->epoch_loss[1] += r.weight_sum;
    if (hl_traced(run->ctx)) trace_step(run, b, begin);
    tell_step(l, b, &r, lr, seconds);
    return HALO_OK;
}

/* Ranks vote at the start of each step, one rank alone looks after it. */
static const char *stop_reason(loop *l)
{
    if (!l->run->reducer) hl_run_vote(l->run, l->votes);
    if (l->votes[HL_VOTE_SIGNAL] > 0) return "a signal";
    return l->votes[HL_VOTE_TIME] > 0 ? "train.max_time" : NULL;
}

/* Has anything been said during the validation? */
static halo_status vote_again(loop *l)
{
    if (!l->run->reducer) return HALO_OK;
    hl_run_vote(l->run, l->votes);
    return hl_comm_sum(l->run->ctx, l->votes, HL_VOTES);
}

static halo_status checkpoint(loop *l, bool best)
{
    hl_run *run = l->run;
    bool kept = best;
    HL_TRY(hl_program_average_now(run->train));
    if (!*run->set.output) return HALO_OK;
    halo_status st = run->ctx->rank == 0 ? hl_rundir_checkpoint(run, &kept) : HALO_OK;
    if (best && !kept) { /* the summary names the best that is on disk */
        run->at.best = l->best_before;
        run->at.best_epoch = l->best_epoch_before;
    }
    return hl_agree(run->ctx, st);
}

/* A stop on request: the state is saved at this step boundary first. */
static halo_status stop(loop *l, const char *reason)
{
    if (l->run->stop_reached) l->run->stop_reached();
    HL_TRY(checkpoint(l, false));
    if (!*l->run->set.output) HL_WARN(l->run->ctx, "there is no 'output': nothing of this run was kept");
    hl_event e = {.kind = HL_EVENT_STOP, .step = l->run->at.step, .epoch = hl_run_epoch(l->run), .status = "stopped", .reason = reason,
                  .elapsed = hl_now() - l->run->started};
    hl_run_tell(l->run, &e);
    return HALO_ERR_STOPPED;
}

static bool finished(const loop *l) { return l->run->at.step >= l->last_step; }

/*
 * This rank's share of the next step, NULL after the last. Where it cannot be read the step is made with samples of weight 0 and its votes tell, so that
 * ranks need not ask each other before every step, and one that is late is found by the reducer.
 */
static halo_status next_batch(loop *l, const hl_loaded **b)
{
    static const hl_loaded nothing;
    *b = NULL;
    l->read = hl_run_next(l->run, l->loader, b);
    if (l->read == HALO_OK || l->read == HALO_ERR_COMM || !l->run->reducer) return l->read;
    *b = &nothing;
    return HALO_OK;
}

/* Steps of the rest of this epoch. */
static halo_status run_epoch(loop *l)
{
    hl_run *run = l->run;
    HL_AGREE(run->ctx, hl_loader_start(l->loader, run->at.epoch, run->at.step_in_epoch));
    while (!finished(l)) {
        const hl_loaded *b;
        HL_TRY(next_batch(l, &b));
        if (!b) break;
        HL_TRY(one_step(l, b));
        const char *reason = stop_reason(l);
        if (reason) return stop(l, reason);
        int64_t every = run->set.checkpoint.steps;
        if (every > 0 && run->at.step % every == 0) HL_TRY(checkpoint(l, false));
    }
    return HALO_OK;
}

/* A validation in which somebody asked for a stop: the position is moved back to where the epoch's steps are done, so that it is made when the run goes on. */
static halo_status stop_in_validation(loop *l)
{
    l->run->at.epoch--;
    l->run->at.step_in_epoch = l->steps_per_epoch;
    HL_TRY(vote_again(l));
    return stop(l, stop_reason(l));
}

static halo_status validate(loop *l, bool *best)
{
    hl_run *run = l->run;
    *best = false;
    bool due = run->source[HL_VALIDATION] && run->at.epoch % run->set.train.validate_every == 0;
    if (!due && !finished(l)) return HALO_OK;
    HL_TRY(hl_program_average_now(run->train));
    HL_TRY(hl_run_measure_running(run));
    if (!run->source[HL_VALIDATION]) return HALO_OK;
    hl_evaluation_free(&l->evaluation);
    l->validated = false;
    halo_status st = hl_run_evaluate(run, HL_VALIDATION, NULL, NULL, NULL, &l->evaluation);
    if (st == HALO_ERR_STOPPED) return stop_in_validation(l);
    if (st != HALO_OK) return st;
    l->validated = true;
    const hl_evaluation *v = &l->evaluation;
    *best = v->loss < run->at.best;
    run->at.waited = *best ? 0 : run->at.waited + 1;
    if (*best) {
        l->best_before = run->at.best;
        l->best_epoch_before = run->at.best_epoch;
        run->at.best = v->loss;
        run->at.best_epoch = run->at.epoch;
    }
    hl_event e = {.kind = HL_EVENT_VALIDATION, .step = run->at.step, .epoch = hl_run_epoch(run), .loss = v->loss, .seconds = v->seconds,
                  .samples_per_second = v->samples_per_second, .targets = v->targets, .target = v->target, .score = v->score,
                  .group_score = v->group_score, .items = v->items, .groups = v->groups, .classes = v->classes, .of_class = v->of_class, .best = *best};
    hl_run_tell(run, &e);
    return HALO_OK;
}

/* After the last step of an epoch. The position is moved to the next one first, so that the checkpoint continues there. */
static halo_status end_epoch(loop *l)
{
    hl_run *run = l->run;
    bool best;
    hl_event e = {.kind = HL_EVENT_EPOCH, .step = run->at.step, .epoch = hl_run_epoch(run), .loss = l->epoch_loss[0] / l->epoch_loss[1],
                  .samples_per_second = (double)l->samples / l->busy, .elapsed = hl_now() - run->started,
                  .gflops = l->flops_step * (double)(l->samples / run->set.batch) / l->busy * 1e-9};
    l->epoch_loss[0] = l->epoch_loss[1] = 0;
    run->at.epoch++;
    run->at.step_in_epoch = 0;
    hl_run_tell(run, &e);
    HL_TRY(validate(l, &best));
    int64_t every = run->set.checkpoint.every;
    if (best || finished(l) || (every > 0 && run->at.epoch % every == 0)) HL_TRY(checkpoint(l, best));
    hl_give_back(); /* what evaluation and the checkpoint used: where a machine is nearly full, the next epoch is not to be its end */
    return HALO_OK;
}

static halo_status run_epochs(loop *l)
{
    hl_run *run = l->run;
    while (!finished(l) || run->at.step_in_epoch == l->steps_per_epoch) { /* the last: a run that stopped before its last validation */
        HL_TRY(run_epoch(l));
        if (run->at.step_in_epoch < l->steps_per_epoch) return checkpoint(l, false); /* train.steps ended inside an epoch */
        HL_TRY(end_epoch(l));
        if (run->set.train.patience > 0 && run->at.waited >= run->set.train.patience) {
            HL_INFO(run->ctx, "no improvement for %" PRId64 " validations: stopping early", run->at.waited);
            break;
        }
        HL_TRY(vote_again(l));
        const char *reason = finished(l) ? NULL : stop_reason(l);
        if (reason) return stop(l, reason);
    }
    return HALO_OK;
}

static halo_status prepare(loop *l)
{
    hl_run *run = l->run;
    hl_loader_options options = hl_run_training_loader(run);
    HL_TRY(hl_loader_create(run->ctx, run->source[HL_TRAIN], &options, &l->loader));
    l->steps_per_epoch = hl_loader_steps(l->loader);
    if (l->steps_per_epoch < 1)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'batch' is %" PRId64 ", but the training data has %" PRId64 " samples", run->set.batch,
                       run->source[HL_TRAIN]->info.samples);
    l->last_step = run->set.train.epochs * l->steps_per_epoch;
    if (run->set.train.steps > 0) l->last_step = hl_min64(l->last_step, run->set.train.steps);
    hl_program_info info;
    hl_program_info_get(run->train, &info);
    l->flops_step = info.flops_step * (double)hl_grid_group(&run->grid) * (double)run->set.batch / (double)hl_run_part(run);
    return hl_part_create(run, &l->part);
}

/* The next batch, of the next epoch after the last one of this. */
static halo_status next_of_any(loop *l, const hl_loaded **b)
{
    HL_TRY(next_batch(l, b));
    if (*b) return HALO_OK;
    l->run->at.epoch++;
    l->run->at.step_in_epoch = 0;
    HL_AGREE(l->run->ctx, hl_loader_start(l->loader, l->run->at.epoch, 0));
    return next_batch(l, b);
}

/* Steps with the reader at work, as in the middle of an epoch; those before what is timed use up what it could read while the first one was slow. */
static halo_status time_steps(loop *l, hl_rehearsal *out)
{
    enum { TIMED = 2 };
    int64_t before = 1;
    double began = hl_now();
    for (int64_t i = 0; i < before + TIMED; i++) {
        const hl_loaded *b;
        HL_TRY(next_of_any(l, &b));
        double waited = hl_now() - began;
        if (i == 0) out->read = waited;
        HL_TRY(one_step(l, b));
        double behind[] = {i == 0 && 2 * out->read > hl_now() - began - out->read}; /* does reading take as long as computing, nearly? */
        if (i == 0) HL_TRY(hl_comm_max(l->run->ctx, behind, 1));
        if (i == 0 && behind[0] > 0) before += hl_min64(l->run->set.data.prefetch, 8);
        if (i == before - 1) began = hl_now();
        if (stop_reason(l)) return hl_fail(l->run->ctx, HALO_ERR_STOPPED, "stopped by %s", stop_reason(l));
    }
    out->step = (hl_now() - began) / TIMED;
    return HALO_OK;
}

/* Nothing may be under way from the memory of a loader that goes. */
static void end(loop *l)
{
    if (l->run->train && l->loader) hl_program_forget_next(l->run->train);
    hl_part_free(&l->part);
    hl_loader_destroy(l->loader);
}

halo_status hl_run_rehearse(hl_run *run, hl_rehearsal *out)
{
    loop l = {.run = run};
    const hl_progress at = run->at;
    run->started = hl_now();
    *out = (hl_rehearsal){0};
    halo_status st;
    HL_GOTO(st, hl_agree(run->ctx, prepare(&l)), destroy);
    out->steps_epoch = l.steps_per_epoch;
    out->steps = hl_max64(0, l.last_step - run->at.step);
    HL_GOTO(st, hl_agree(run->ctx, hl_loader_start(l.loader, run->at.epoch, run->at.step_in_epoch)), destroy);
    hl_comm_stall(run->ctx, run->set.reduce.stall);
    st = time_steps(&l, out);
    run->lost = run->lost || st == HALO_ERR_COMM;
    if (!run->lost) st = hl_agree(run->ctx, st);
    hl_comm_stall(run->ctx, 0);
destroy:
    run->at = at;
    end(&l);
    return st;
}

/* What each rank has read and sent. Collective, but for lost runs; where it fails, nobody knows. */
static void gather_counted(hl_run *run)
{
    hl_counted mine = {.sent = hl_program_counted(run->train)};
    for (int split = 0; split < HL_SPLITS; split++) mine.read += (double)hl_source_bytes(run->source[split]);
    if (run->lost || hl_agree(run->ctx, hl_calloc(run->ctx, (size_t)run->ctx->ranks, sizeof(mine), "what ranks counted", &run->counted)) != HALO_OK) return;
    if (hl_comm_gather(run->ctx, &mine, sizeof(mine), run->counted) == HALO_OK) return;
    free(run->counted);
    run->counted = NULL;
}

static halo_status conclude(loop *l, halo_status st)
{
    hl_run *run = l->run;
    const char *status = st == HALO_OK ? "done" : st == HALO_ERR_STOPPED ? "stopped" : "failed";
    if (run->stop_reached) run->stop_reached();
    gather_counted(run);
    if (st != HALO_ERR_STOPPED) {
        hl_event e = {.kind = HL_EVENT_STOP, .step = run->at.step, .epoch = hl_run_epoch(run), .status = status, .elapsed = hl_now() - run->started,
                      .reason = st == HALO_OK ? "the end" : halo_error_message(run->ctx)};
        hl_run_tell(run, &e);
    }
    double busy = l->busy > 0 ? l->busy : NAN;
    run->at.seconds = run->seconds_before + hl_now() - run->started;
    if (run->lost || run->ctx->rank != 0) return st;
    halo_status written = hl_rundir_summary(run, status, l->validated ? &l->evaluation : NULL, (double)l->samples / busy,
                                            l->flops_step * (double)(l->samples / run->set.batch) / busy * 1e-9);
    return st == HALO_OK ? written : st;
}

halo_status hl_run_train(hl_run *run)
{
    loop l = {.run = run};
    hl_event start = {.kind = HL_EVENT_START};
    run->started = hl_now();
    halo_status st;
    HL_GOTO(st, hl_run_seats(run), destroy);
    HL_GOTO(st, hl_run_forecast(run, &run->forecast), destroy); /* measured plans may take more than those that were looked at first */
    HL_GOTO(st, hl_agree(run->ctx, hl_run_refuse(run, &run->forecast)), destroy);
    HL_GOTO(st, hl_agree(run->ctx, prepare(&l)), destroy);
    HL_GOTO(st, hl_agree(run->ctx, run->ctx->rank == 0 ? hl_rundir_begin(run) : HALO_OK), destroy);
    HL_GOTO(st, hl_rundir_resume(run), destroy);
    HL_GOTO(st, hl_run_start_from(run), destroy);
    HL_GOTO(st, hl_agree(run->ctx, run->ctx->rank == 0 ? hl_rundir_write_config(run) : HALO_OK), destroy);
    run->seconds_before = run->at.seconds;
    start.step = run->at.step;
    start.epoch = run->at.epoch + 1;
    hl_run_tell(run, &start);
    hl_comm_stall(run->ctx, run->set.reduce.stall);
    st = run_epochs(&l);
    run->lost = run->lost || st == HALO_ERR_COMM;
    st = conclude(&l, st);
    if (!run->lost) st = hl_agree(run->ctx, st);
    hl_comm_stall(run->ctx, 0);
destroy:
    hl_evaluation_free(&l.evaluation);
    end(&l);
    return st;
}
