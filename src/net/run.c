/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c -- one training step or one evaluation: data up, the steps of each phase in order, a few numbers
 * down.
 *
 * The host looks at the device twice in a training step: at the loss and the gradients' square sums before
 * the updates (finiteness, clipping), which is where all ranks will have to agree anyway.
 */
#include "net/ir.h"

#include "base/clock.h"
#include "base/trace.h"
#include "net/nonfinite.h"

#include <stdio.h>

/* Begins when what it sends is there. */
static halo_status start(hl_program *p, hl_step *s)
{
    const halo_device_ops *ops = p->dev->ops;
    if (p->transfer[s->transfer].passage) return hl_passage_run(p, &p->transfer[s->transfer], s->args.ptr[HALO_X], s->args.ptr[HALO_Y]);
    HL_TRY(ops->wait(p->dev, NULL));
    if (p->transfer[s->transfer].mirror) return hl_mirror_start(p, &p->transfer[s->transfer], s->args.ptr[HALO_X], s->args.ptr[HALO_Y]);
    return hl_exchange_start(p->transfer[s->transfer].exchange, ops->mpi_pointer(p->dev, s->args.ptr[HALO_X]), ops->mpi_pointer(p->dev, s->args.ptr[HALO_Y]));
}

static halo_status finish(hl_program *p, hl_step *s)
{
    hl_transfer *t = &p->transfer[s->transfer];
    if (t->passage) return HALO_OK;
    return t->mirror ? hl_mirror_finish(p, t, s->args.ptr[HALO_Y]) : hl_exchange_finish(t->exchange);
}

halo_status hl_execute(hl_program *p, hl_step *s)
{
    switch (s->kind) {
    case HL_STEP_START: return start(p, s);
    case HL_STEP_FINISH: return finish(p, s);
    case HL_STEP_CLEAR: return p->dev->ops->fill(p->dev, s->args.ptr[HALO_Y], 0, p->value[s->use[HALO_Y].value].bytes, NULL);
    default: return hl_op_class(p->dev, s->desc.kind, &s->choice)->run(s->plan, &s->args);
    }
}

static halo_status run_timed(hl_program *p, hl_step *s)
{
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    double start = hl_now();
    HL_TRY(hl_execute(p, s));
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    s->times[s->timed++ % HL_TIMES_MAX] = hl_now() - start;
    return HALO_OK;
}

static halo_status run_one(hl_program *p, hl_step *s)
{
    HL_TRY(p->timing ? run_timed(p, s) : hl_execute(p, s));
    return hl_statistics_merge(p, s);
}

halo_status hl_run_step(hl_program *p, hl_step *s)
{
    if (!hl_traced(p->ctx)) return run_one(p, s);
    double start = hl_now();
    HL_TRY(run_one(p, s));
    hl_trace_add(p->ctx, HL_LANE_COMPUTE, hl_phase_direction(s->phase), hl_step_name(p, s), hl_step_op_name(s), start, hl_now(), 0);
    return HALO_OK;
}

halo_status hl_run_poll(hl_program *p) { return p->transfers > 0 && p->opt.team ? hl_exchange_poll(p->opt.team->group) : HALO_OK; }

halo_status hl_run_phase(hl_program *p, hl_phase phase)
{
    return hl_run_phases(p, phase, phase);
}

halo_status hl_run_phases(hl_program *p, hl_phase first, hl_phase last)
{
    for (int i = p->phase[first]; i < p->phase[last + 1];) {
        HL_TRY(hl_run_some(p, i, p->phase[last + 1], &i));
        HL_TRY(hl_run_poll(p));
    }
    return HALO_OK;
}

/* Address of a value of the arena. */
static void *storage(const hl_program *p, int value)
{
    return (char *)p->arena + p->value[value].offset;
}

static halo_status upload(hl_program *p, int value, halo_dtype host_dtype, const void *host)
{
    return p->dev->ops->upload(p->dev, &p->value[value].operand, storage(p, value), host_dtype, host);
}

static int64_t rows_of(const hl_program *p)
{
    return hl_layer_of(p, p->net->layers - 1)->rows;
}

/* Targets; where samples are cut into rows, once per row. */
static halo_status load_targets(hl_program *p, const float *y)
{
    const int64_t rows = rows_of(p);
    halo_operand o = p->value[p->target].operand;
    if (rows == 1) return upload(p, p->target, HALO_F32, y);
    size_t size = (size_t)(o.ext[HALO_C] * o.ext[HALO_D] * o.ext[HALO_H] * o.ext[HALO_W]);
    o.ext[HALO_N] = 1;
    for (int64_t n = 0; n < p->opt.batch * rows; n++) {
        o.lo[HALO_N] = n;
        HL_TRY(
            p->dev->ops->upload(p->dev, &o, storage(p, p->target), HALO_F32, y + (size_t)(n / rows) * size));
    }
    return HALO_OK;
}

/* Input, targets, sample weights; what the step will divide by. */
static halo_status load(hl_program *p, const hl_batch *batch)
{
    HL_TRY(hl_arena_take(p));
    const int64_t rows = rows_of(p);
    double sum = 0;
    int64_t last = -1;
    for (int64_t n = 0; n < p->opt.batch * rows; n++) {
        p->host[n] = batch->weight ? batch->weight[n / rows] : 1;
        sum += p->host[n];
        if (p->host[n] != 0) last = n / rows;
    }
    p->record.batch = p->opt.batch;
    p->record.padding = p->opt.batch - 1 - last;
    const halo_operand input = hl_input_operand(p);
    HL_TRY(p->dev->ops->upload(p->dev, &input, storage(p, p->y[0]), batch->dtype, batch->x));
    if (batch->y) HL_TRY(load_targets(p, batch->y));
    if (batch->y) HL_TRY(hl_weigh_labels(p, batch->y, p->host));
    HL_TRY(upload(p, p->weight, HALO_F64, p->host));
    HL_TRY(p->dev->ops->fill(p->dev, storage(p, p->loss), 0, p->value[p->loss].bytes, NULL));
    p->record.first_sample = batch->first_sample;
    p->record.weight_sum = batch->weight_sum != 0 && p->average == 0 ? batch->weight_sum * (double)rows : sum != 0 ? sum : 1;
    p->record.loss_scale = p->opt.training ? p->model->scaler.scale : 1;
    return HALO_OK;
}

/* Images follow the masters; so do the weight norms where somebody but an update changed them. */
static halo_status follow_weights(hl_program *p)
{
    if (p->image_version != p->model->version) HL_TRY(hl_run_phase(p, HL_PHASE_IMAGES));
    p->image_version = p->model->version;
    if (!p->opt.training || p->model->norm_version == p->model->version) return HALO_OK;
    p->model->norm_version = p->model->version;
    return hl_run_phase(p, HL_PHASE_WEIGHT_NORMS);
}

static halo_status read_loss(hl_program *p, hl_step_result *result)
{
    double sums[2];
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    HL_TRY(p->dev->ops->download(p->dev, &p->value[p->loss].operand, storage(p, p->loss), HALO_F64, sums));
    /* Of a sample that several processes hold each counts a part: its own blocks', or an equal one of what all have */
    double group = (double)hl_grid_group(&p->grid), parts = p->split[p->net->layers - 1] ? 1 : group;
    result->loss_sum = sums[0] / (double)rows_of(p) / parts;
    result->weight_sum = sums[1] / (double)rows_of(p) / group;
    result->loss = result->weight_sum != 0 ? result->loss_sum / result->weight_sum : 0;
    result->finite = isfinite(sums[0]);
    return HALO_OK;
}

/* One message for what all ranks must know before they update: is the loss finite, does anyone want to stop? */
static halo_status sum_results(hl_program *p, const hl_step_options *options, hl_step_result *result)
{
    double x[3 + HL_VOTES] = {result->loss_sum, result->weight_sum, result->finite ? 0 : 1};
    memcpy(x + 3, options->vote, sizeof(options->vote));
    HL_TRY(hl_comm_sum(p->ctx, x, 3 + HL_VOTES));
    result->loss_sum = x[0];
    result->weight_sum = x[1];
    result->loss = x[1] != 0 ? x[0] / x[1] : 0;
    result->finite = isfinite(x[0]) && x[2] == 0;
    memcpy(result->votes, x + 3, sizeof(result->votes));
    return HALO_OK;
}

/* Global norm of the gradients after grad_scale, and whether every one of them is finite. */
static halo_status read_norm(hl_program *p, hl_step_result *result)
{
    hl_model *m = p->model;
    double sum = 0, bad = 0;
    p->largest = 0;
    halo_operand all = hl_operand_flat(HALO_F64, HL_NORM_NUMBERS * (int64_t)m->params);
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    HL_TRY(p->dev->ops->download(p->dev, &all, m->norms, HALO_F64, p->host));
    for (int i = 0; i < m->params; i++) {
        const double *v = p->host + (size_t)i * HL_NORM_NUMBERS;
        sum += v[0];
        bad += v[1];
        p->largest = fmax(p->largest, v[2]);
    }
    result->grad_norm = sqrt(sum) * fabs(p->record.grad_scale);
    result->finite = bad == 0 && isfinite(sum);
    return HALO_OK;
}

static void clip(hl_program *p, double norm)
{
    double limit = p->model->optim.clip_norm;
    if (limit > 0 && norm > limit) p->record.grad_scale *= limit / norm;
}

/* What updates need to know of this step. */
static void set_rate(hl_program *p, const hl_step_options *options)
{
    p->record.grad_scale = (options->grad_scale != 0 ? options->grad_scale : 1) / p->record.loss_scale;
    p->record.t = p->model->steps + 1;
    p->record.lr = options->lr;
}

static void count_update(hl_program *p)
{
    p->model->steps++;
    p->model->version++;
    p->model->norm_version = p->model->version;
}

/* All parameters, once the norm of their gradients is known; or none, where these overflowed because of the loss's scale. */
static halo_status step_all(hl_program *p, hl_step_result *result)
{
    hl_model *m = p->model;
    if (!result->finite) {
        result->skipped = hl_scaler_overflows(&m->optim.scaling, &m->scaler);
        result->finite = result->skipped;
        return HALO_OK;
    }
    hl_scaler_fits(&m->optim.scaling, &m->scaler, p->largest * fabs(p->record.grad_scale));
    clip(p, result->grad_norm);
    HL_TRY(hl_run_phase(p, HL_PHASE_UPDATE));
    count_update(p);
    return HALO_OK;
}

static halo_status update(hl_program *p, hl_step_result *result)
{
    HL_TRY(hl_run_phase(p, HL_PHASE_GRADIENT_NORMS));
    HL_TRY(read_norm(p, result));
    return step_all(p, result);
}

/* Whether anybody's are not finite, and the largest of all, for scales that follow them: one scale for all ranks. */
static halo_status agree_on_gradients(hl_program *p, double *bad)
{
    double x[2] = {*bad, p->largest};
    HL_TRY(hl_comm_max(p->ctx, x, 2));
    *bad = x[0];
    p->largest = x[1];
    return HALO_OK;
}

/* On this rank's own gradients, where all ranks find theirs finite; averaged when it is time. */
static halo_status update_apart(hl_program *p, const hl_step_options *options, hl_step_result *result)
{
    HL_TRY(hl_run_phase(p, HL_PHASE_GRADIENT_NORMS));
    bool finite = result->finite;
    HL_TRY(read_norm(p, result));
    double bad = !result->finite;
    result->finite = finite;
    HL_TRY(sum_results(p, options, result));
    if (!result->finite) return HALO_OK;
    HL_TRY(agree_on_gradients(p, &bad));
    result->finite = bad == 0;
    HL_TRY(step_all(p, result));
    if (!result->finite || result->skipped) return HALO_OK;
    return p->model->steps % p->average == 0 ? hl_program_average_now(p) : HALO_OK;
}

/* After the groups were stepped as they arrived. */
static void conclude_updates(hl_program *p, hl_step_result *result)
{
    result->grad_norm = sqrt(p->square_sum) * fabs(p->record.grad_scale);
    result->finite = result->finite && p->bad == 0 && isfinite(p->square_sum);
    if (p->updated) count_update(p);
}

/* Gradients of the step before are what this one adds to, or nothing is. */
static halo_status clear_gradients(hl_program *p, const hl_step_options *options)
{
    hl_model *m = p->model;
    if (!p->opt.accumulate || options->accumulate) return HALO_OK;
    return p->dev->ops->fill(p->dev, m->base[HL_GRADIENT], 0,
                             (size_t)m->elements * hl_dtype_size(m->dev->master), NULL);
}

static halo_status train(hl_program *p, const hl_batch *batch, const hl_step_options *options,
                         hl_step_result *result)
{
    const bool collective = p->reducer && options->update, summed = collective && p->average == 0;
    const bool linked = summed && p->opt.link;
    const bool as_they_arrive = summed && !linked && !(p->model->optim.clip_norm > 0) && p->model->optim.scaling.rule == HL_SCALING_NONE;
    p->record.seed = options->seed;
    p->record.step = options->step;
    p->record.delta = options->delta;
    memcpy(result->votes, options->vote, sizeof(result->votes));
    HL_TRY(load(p, batch));
    result->loss_scale = p->record.loss_scale;
    HL_TRY(clear_gradients(p, options));
    HL_TRY(follow_weights(p));
    set_rate(p, options);
    HL_TRY(hl_run_phases(p, HL_PHASE_FORWARD, summed && !linked ? HL_PHASE_LOSS : HL_PHASE_BACKWARD));
    if (summed) HL_TRY(linked ? hl_sum_by_link(p) : hl_backward_and_sum(p, as_they_arrive));
    HL_TRY(read_loss(p, result));
    if (collective && !summed) return update_apart(p, options, result);
    if (collective) HL_TRY(sum_results(p, options, result));
    if (as_they_arrive)
        conclude_updates(p, result);
    else if (result->finite && options->update)
        HL_TRY(update(p, result));
    return p->dev->ops->wait(p->dev, NULL);
}

halo_status hl_program_train(hl_program *p, const hl_batch *batch, const hl_step_options *options,
                             hl_step_result *result)
{
    HL_BUG_UNLESS(p->opt.training && p->arena && batch->x && batch->y);
    HL_BUG_UNLESS(p->opt.accumulate || !options->accumulate);
    hl_step_result r = {.grad_norm = NAN, .finite = true};
    double start = hl_now();
    if (p->dev->ops->enter) p->dev->ops->enter(p->dev);
    halo_status st = train(p, batch, options, &r);
    if (p->dev->ops->leave) p->dev->ops->leave(p->dev);
    r.seconds = hl_now() - start;
    if (result) *result = r;
    return st == HALO_OK && !r.finite ? hl_report_nonfinite(p, p->reducer && options->update) : st;
}

/* Down to the host; rows of a sample become their mean. */
static halo_status predictions(hl_program *p, int value, float *out)
{
    const halo_operand *o = &p->value[value].operand;
    const int64_t rows = rows_of(p), size = hl_operand_box_elements(o) / o->ext[HALO_N];
    if (rows == 1) return p->dev->ops->download(p->dev, o, storage(p, value), HALO_F32, out);
    float *all;
    HL_TRY(hl_calloc(p->ctx, (size_t)(o->ext[HALO_N] * size), sizeof(*all), "predictions of rows", &all));
    halo_status st = p->dev->ops->download(p->dev, o, storage(p, value), HALO_F32, all);
    for (int64_t i = 0; i < p->opt.batch * size && st == HALO_OK; i++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += all[(i / size * rows + r) * size + i % size];
        out[i] = (float)(sum / (double)rows);
    }
    free(all);
    return st;
}

halo_status hl_run_forward(hl_program *p, const hl_batch *batch)
{
    HL_TRY(load(p, batch));
    HL_TRY(follow_weights(p));
    return hl_run_phase(p, HL_PHASE_FORWARD);
}

static halo_status evaluate(hl_program *p, const hl_batch *batch, float *prediction, hl_step_result *result)
{
    int out = p->y[p->net->layers - 1];
    HL_TRY(hl_run_forward(p, batch));
    if (batch->y) {
        HL_TRY(hl_run_phase(p, HL_PHASE_LOSS));
        HL_TRY(read_loss(p, result));
    }
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    return prediction ? predictions(p, out, prediction) : HALO_OK;
}

halo_status hl_program_evaluate(hl_program *p, const hl_batch *batch, float *prediction,
                                hl_step_result *result)
{
    HL_BUG_UNLESS(!p->opt.training && p->arena && batch->x);
    hl_step_result r = {.loss = NAN, .loss_sum = NAN, .grad_norm = NAN, .finite = true};
    double start = hl_now();
    if (p->dev->ops->enter) p->dev->ops->enter(p->dev);
    halo_status st = evaluate(p, batch, prediction, &r);
    if (p->dev->ops->leave) p->dev->ops->leave(p->dev);
    r.seconds = hl_now() - start;
    if (result) *result = r;
    return st;
}
