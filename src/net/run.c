/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c -- one training step or one evaluation: data up, the steps of each phase in order, a few numbers down.
 *
 * The host looks at the device once in a training step, at its end: whether there is to be an update, and how far gradients are clipped, is decided where the gradients are
 * (DECIDE). Where MPI carries the gradients it must look before the updates, too: it has the losses of other ranks.
 */
#include "net/ir.h"

#include "base/clock.h"
#include "base/trace.h"
#include "net/nonfinite.h"

/* Begins when what it sends is there. */
static halo_status start(hl_program *p, hl_step *s)
{
    const halo_device_ops *ops = p->dev->ops;
    if (p->transfer[s->transfer].passage) return hl_passage_start(p, &p->transfer[s->transfer], s->args.ptr[HALO_X], s->args.ptr[HALO_Y]);
    HL_TRY(hl_wait_for_step(p));
    if (p->transfer[s->transfer].mirror) return hl_mirror_start(p, &p->transfer[s->transfer], s->args.ptr[HALO_X], s->args.ptr[HALO_Y]);
    return hl_exchange_start(p->transfer[s->transfer].exchange, ops->mpi_pointer(p->dev, s->args.ptr[HALO_X]), ops->mpi_pointer(p->dev, s->args.ptr[HALO_Y]));
}

static halo_status finish(hl_program *p, hl_step *s)
{
    hl_transfer *t = &p->transfer[s->transfer];
    if (t->passage) return hl_passage_finish(p, t, s->args.ptr[HALO_X], s->args.ptr[HALO_Y]);
    return t->mirror ? hl_mirror_finish(p, t, s->args.ptr[HALO_Y]) : hl_exchange_finish(t->exchange);
}

static halo_status execute(hl_program *p, hl_step *s)
{
    switch (s->kind) {
    case HL_STEP_START: return start(p, s);
    case HL_STEP_FINISH: return finish(p, s);
    case HL_STEP_CLEAR: return p->dev->ops->fill(p->dev, s->args.ptr[HALO_Y], 0, p->value[s->use[HALO_Y].value].bytes, NULL);
    case HL_STEP_SUM: return hl_sum_run(p, s);
    case HL_STEP_JOIN: return p->node_sums && p->summing ? hl_node_sums_in(p) : hl_sums_join(p);
    case HL_STEP_ADD: return p->dev->ops->link_sum(p->dev, s->link, s->args.ptr[HALO_X], HALO_F64, s->n, NULL);
    default: return hl_op_class(p->dev, s->desc.kind, &s->choice)->run(s->plan, &s->args);
    }
}

halo_status hl_execute(hl_program *p, hl_step *s)
{
    halo_context *ctx = hl_outermost(p->ctx);
    ctx->doing[1] = hl_step_op_name(s);
    ctx->doing[0] = hl_step_name(p, s);
    ctx->doer = hl_thread_id();
    halo_status st = execute(p, s);
    ctx->doer = 0;
    return st;
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

/* Where a run begins: images follow the masters, and so do the weight norms where somebody but an update changed them. */
static hl_phase first_phase(hl_program *p)
{
    hl_model *m = p->model;
    const bool images = p->image_version != m->version, norms = p->opt.training && m->norm_version != m->version;
    p->image_version = m->version;
    if (norms) m->norm_version = m->version;
    return norms ? HL_PHASE_WEIGHT_NORMS : images ? HL_PHASE_IMAGES : HL_PHASE_FORWARD;
}

/* What the step found out. Of a sample that several processes hold each counts a part: its own blocks', or an equal one of what all have. */
static halo_status read_numbers(hl_program *p, hl_step_result *result)
{
    const double group = (double)hl_grid_group(&p->grid), rows = (double)hl_rows(p), parts = p->split[p->net->layers - 1] ? 1 : group;
    double *v = p->number;
    HL_TRY(hl_wait_for_step(p));
    HL_TRY(p->dev->ops->download(p->dev, &p->value[p->numbers].operand, hl_storage_of(p, p->numbers), HALO_F64, v));
    result->loss_sum = v[HALO_NUM_LOSS] / rows / parts;
    result->weight_sum = v[HALO_NUM_WEIGHT] / rows / group;
    result->loss = result->weight_sum != 0 ? result->loss_sum / result->weight_sum : 0;
    result->finite = isfinite(v[HALO_NUM_LOSS]);
    memcpy(result->votes, v + HALO_NUM_VOTE, sizeof(result->votes));
    return HALO_OK;
}

/* One message for what all ranks must know before they update: is the loss finite, does anyone want to stop? */
static halo_status sum_results(hl_program *p, hl_step_result *result)
{
    double x[3 + HL_VOTES] = {result->loss_sum, result->weight_sum, result->finite ? 0 : 1};
    memcpy(x + 3, result->votes, sizeof(result->votes));
    HL_TRY(hl_comm_sum(p->ctx, x, 3 + HL_VOTES));
    result->loss_sum = x[0];
    result->weight_sum = x[1];
    result->loss = x[1] != 0 ? x[0] / x[1] : 0;
    result->finite = isfinite(x[0]) && x[2] == 0;
    memcpy(result->votes, x + 3, sizeof(result->votes));
    return HALO_OK;
}

static void count_update(hl_program *p)
{
    p->model->steps++;
    p->model->version++;
    p->model->norm_version = p->model->version;
}

/* After DECIDE: whether there is an update, or was; where gradients overflowed the scale of the loss gives way. */
static bool updates(hl_program *p, hl_step_result *result)
{
    const double *v = p->number;
    hl_model *m = p->model;
    result->grad_norm = sqrt(v[HALO_NUM_SQUARES]) * fabs(p->record.grad_scale);
    if (!result->finite) return false;
    if (v[HALO_NUM_SKIP] == 0) {
        hl_scaler_fits(&m->optim.scaling, &m->scaler, v[HALO_NUM_LARGEST] * fabs(p->record.grad_scale));
        return true;
    }
    result->skipped = result->finite = hl_scaler_overflows(&m->optim.scaling, &m->scaler);
    return false;
}

/* Where the host knows of other ranks' losses by now. */
static halo_status update(hl_program *p, hl_step_result *result)
{
    if (!updates(p, result)) return HALO_OK;
    HL_TRY(hl_run_phase(p, HL_PHASE_UPDATE));
    count_update(p);
    return HALO_OK;
}

/* Whether anybody's gradients are not finite, and the largest of all, for scales that follow them: one scale for all ranks. */
static halo_status agree_on_gradients(hl_program *p)
{
    double x[2] = {p->number[HALO_NUM_SKIP], p->number[HALO_NUM_LARGEST]};
    HL_TRY(hl_comm_max(p->ctx, x, 2));
    p->number[HALO_NUM_SKIP] = x[0];
    p->number[HALO_NUM_LARGEST] = x[1];
    return HALO_OK;
}

/* On this rank's own gradients, where all ranks find theirs finite; averaged when it is time. */
static halo_status train_apart(hl_program *p, hl_phase first, hl_step_result *result)
{
    HL_TRY(hl_run_phases(p, first, HL_PHASE_DECIDE));
    HL_TRY(read_numbers(p, result));
    HL_TRY(sum_results(p, result));
    HL_TRY(agree_on_gradients(p));
    HL_TRY(update(p, result));
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

/* Gradients are summed by MPI, and their parameters stepped as they arrive unless that has to wait for all of them. */
static halo_status train_by_host(hl_program *p, hl_phase first, hl_step_result *result)
{
    const bool as_they_arrive = !(p->model->optim.clip_norm > 0) && p->model->optim.scaling.rule == HL_SCALING_NONE;
    HL_TRY(hl_run_phases(p, first, HL_PHASE_LOSS));
    HL_TRY(hl_backward_and_sum(p, as_they_arrive));
    if (!as_they_arrive) HL_TRY(hl_run_phases(p, HL_PHASE_GRADIENT_NORMS, HL_PHASE_DECIDE));
    HL_TRY(read_numbers(p, result));
    HL_TRY(sum_results(p, result));
    if (!as_they_arrive) return update(p, result);
    conclude_updates(p, result);
    return HALO_OK;
}

/* All of it on the device. */
static halo_status train_whole(hl_program *p, hl_phase first, bool update, hl_step_result *result)
{
    HL_TRY(hl_run_phases(p, first, update ? HL_PHASE_UPDATE : HL_PHASE_BACKWARD));
    HL_TRY(read_numbers(p, result));
    p->updated = update && updates(p, result);
    if (p->updated) count_update(p);
    return HALO_OK;
}

/* Gradients of the step before are what this one adds to, or nothing is. */
static halo_status clear_gradients(hl_program *p, const hl_step_options *options)
{
    hl_model *m = p->model;
    if (!p->opt.accumulate || options->accumulate) return HALO_OK;
    return p->dev->ops->fill(p->dev, m->base[HL_GRADIENT], 0, (size_t)m->elements * hl_dtype_size(m->dev->master), NULL);
}

/* What is another thing in each step. */
static void set_record(hl_program *p, const hl_step_options *options)
{
    p->record.seed = options->seed;
    p->record.step = options->step;
    p->record.delta = options->delta;
    p->record.grad_scale = (options->grad_scale != 0 ? options->grad_scale : 1) / p->record.loss_scale;
    p->record.t = p->model->steps + 1;
    p->record.lr = options->lr;
}

static halo_status train(hl_program *p, const hl_batch *batch, const hl_step_options *options, hl_step_result *result)
{
    const bool collective = p->reducer && options->update;
    p->updated = false;
    p->summing = collective && p->average == 0 && p->opt.links;
    memcpy(p->number + HALO_NUM_VOTE, options->vote, sizeof(options->vote));
    HL_TRY(hl_load(p, batch));
    set_record(p, options);
    result->loss_scale = p->record.loss_scale;
    HL_TRY(clear_gradients(p, options));
    const hl_phase first = first_phase(p);
    if (!collective || p->summing)
        HL_TRY(train_whole(p, first, options->update, result));
    else
        HL_TRY(p->average > 0 ? train_apart(p, first, result) : train_by_host(p, first, result));
    return hl_wait_for_step(p);
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
    const int64_t rows = hl_rows(p), size = hl_operand_box_elements(o) / o->ext[HALO_N];
    if (rows == 1) return p->dev->ops->download(p->dev, o, hl_storage_of(p, value), HALO_F32, out);
    float *all;
    HL_TRY(hl_calloc(p->ctx, (size_t)(o->ext[HALO_N] * size), sizeof(*all), "predictions of rows", &all));
    halo_status st = p->dev->ops->download(p->dev, o, hl_storage_of(p, value), HALO_F32, all);
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
    p->summing = false;
    HL_TRY(hl_load(p, batch));
    return hl_run_phases(p, first_phase(p), HL_PHASE_FORWARD);
}

static halo_status evaluate(hl_program *p, const hl_batch *batch, float *prediction, hl_step_result *result)
{
    int out = p->y[p->net->layers - 1];
    HL_TRY(hl_run_forward(p, batch));
    if (batch->y) {
        HL_TRY(hl_run_phase(p, HL_PHASE_LOSS));
        HL_TRY(read_numbers(p, result));
    }
    HL_TRY(hl_wait_for_step(p));
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
