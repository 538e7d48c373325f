/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.c -- the public trainer: a run without data, loop or directory.
 *
 * On several ranks a group of them takes its share of each batch, and each rank of the group its part of those samples. Where the caller hands over whole batches
 * (all but insitu.c) each rank cuts out its own; predictions are made by every group, so that all ranks have them.
 */
#include "io/cells.h"
#include "train/trainer.h"

#include <stdio.h>

static halo_context *context_of(const halo_trainer *t) { return t ? t->run.ctx : NULL; }

/* What the table of keys cannot: -1 is its word for no clipping, 0 that of the options. */
static halo_status check(halo_context *ctx, const halo_trainer_options *o)
{
    if (o->size != sizeof(*o)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options has size %zu, this library expects %zu", o->size, sizeof(*o));
    for (int k = 0; k < 3; k++)
        if (o->spatial[k] < 0) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options: 'spatial' is %" PRId64 ", must be 0 or more", o->spatial[k]);
    if (!(o->clip_norm >= 0)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options: 'clip_norm' is %g, must be above 0, or 0 for none", o->clip_norm);
    return HALO_OK;
}

/* Weights of classes, and the label that does not count. */
static halo_status set_classes(halo_context *ctx, const halo_trainer_options *o, hl_settings *set)
{
    set->class_weights.n = o->class_weights ? o->classes : 0;
    set->ignore_label = o->ignore ? o->ignore_label : -1;
    if (o->class_weights && (o->classes < 2 || o->classes > HL_WORDS_MAX)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options: 'classes' is %d, must be 2 to %d", o->classes, HL_WORDS_MAX);
    if (o->ignore && o->ignore_label < 0) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options: 'ignore_label' is %" PRId64 ", must be 0 or more", o->ignore_label);
    for (int k = 0; k < set->class_weights.n; k++) snprintf(set->class_weights.word[k], HL_WORD_MAX, "%.17g", o->class_weights[k]);
    HL_TRY(hl_settings_check_classes(ctx, set));
    return hl_settings_check_idle(ctx, hl_settings_keys(), set, true);
}

/* The same settings in the words of a configuration, so that a checkpoint tells what made it. */
static void to_settings(const halo_context *ctx, const halo_trainer_options *o, hl_settings *set)
{
    static const hl_precision precisions[] = {[HALO_F64] = HL_PRECISION_F64, [HALO_F16] = HL_PRECISION_F16, [HALO_BF16] = HL_PRECISION_BF16};
    set->precision = precisions[ctx->compute];
    set->batch = o->batch;
    set->loss = (int)o->loss;
    set->huber_delta = o->huber_delta;
    set->plan = o->measure ? HL_SET_PLAN_MEASURE : HL_SET_PLAN_FIXED;
    set->optimizer.name = (int)o->optimizer;
    set->optimizer.larc = (int)o->larc;
    set->optimizer.lr = o->lr;
    set->optimizer.momentum = o->momentum;
    set->optimizer.beta1 = o->beta1;
    set->optimizer.beta2 = o->beta2;
    set->optimizer.epsilon = o->epsilon;
    set->optimizer.trust = o->trust;
    set->optimizer.weight_decay = o->weight_decay;
    set->optimizer.clip_norm = o->clip_norm == 0 ? -1 : o->clip_norm;
    for (int k = 0; k < 3; k++) set->parallel.spatial[k] = hl_max64(1, o->spatial[k]);
}

static halo_status copy_network(halo_context *ctx, const halo_network *net, halo_network **copy)
{
    char *text;
    HL_TRY(halo_network_text(net, &text));
    halo_status st = halo_network_parse(ctx, net->name, text, strlen(text), 0, NULL, copy);
    free(text);
    return st;
}

/* Every group has as many samples of each step. */
static halo_status check_ranks(const hl_run *run)
{
    HL_TRY(hl_run_check_ranks(run));
    if (run->set.batch % run->grid.data == 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "halo_trainer_options: 'batch' is %" PRId64 ", no multiple of the %" PRId64 " groups of ranks", run->set.batch, run->grid.data);
}

static halo_status compile(hl_run *run, bool training, hl_program **program)
{
    hl_compile_options o = hl_run_compile_options(&run->set, training);
    o.batch = hl_run_part(run);
    o.grid = run->grid;
    if (run->ctx->ranks > 1) {
        o.team = run->team;
        o.plan = HL_PLAN_FIXED; /* measured choices might differ between ranks */
    }
    return hl_compile(run->model, &o, program);
}

/* What each rank does by itself. */
static halo_status make_programs(hl_run *run, const halo_network *net)
{
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    HL_TRY(copy_network(run->ctx, net, &run->net));
    HL_TRY(hl_context_device(run->ctx, &run->dev));
    HL_TRY(check_ranks(run));
    HL_TRY(hl_model_create(run->ctx, run->dev, run->net, &optim, &run->model));
    HL_TRY(compile(run, true, &run->train));
    return compile(run, false, &run->eval);
}

static halo_status make_room(halo_trainer *t)
{
    hl_run *run = &t->run;
    memcpy(t->in, run->net->layer[0].out, sizeof(t->in));
    memcpy(t->out, run->net->layer[run->net->layers - 1].out, sizeof(t->out));
    hl_program_input_box(run->train, t->x_box.lo, t->x_box.ext);
    hl_program_output_box(run->train, t->y_box.lo, t->y_box.ext);
    t->share = hl_run_part(run);
    t->first_sample = hl_block_range(run->set.batch, run->grid.data, run->grid.data_at).lo;
    t->volume = t->in[0] * t->in[1] * t->in[2] * t->in[3];
    t->outputs = t->out[0] * t->out[1] * t->out[2] * t->out[3];
    memcpy(t->y_ext, t->out, sizeof(t->y_ext));
    if (hl_run_classes(run) > 0) t->y_ext[0] = 1;
    t->truths = t->outputs / t->out[0] * t->y_ext[0];
    t->part = t->in[0] * hl_cells_count(&t->x_box);
    t->targets = t->outputs == t->out[0] ? t->outputs : t->out[0] * hl_cells_count(&t->y_box);
    HL_TRY(hl_calloc(run->ctx, (size_t)(t->share * t->part), sizeof(float), "a batch", &t->x));
    HL_TRY(hl_calloc(run->ctx, (size_t)(t->share * t->targets), sizeof(float), "a batch", &t->y));
    HL_TRY(hl_calloc(run->ctx, (size_t)(t->share * t->targets), sizeof(float), "a batch", &t->prediction));
    return hl_calloc(run->ctx, (size_t)t->share, sizeof(double), "a batch", &t->weight);
}

/* All ranks make the same trainer. */
static halo_status check_alike(hl_run *run, const halo_network *net)
{
    hl_str settings = {0};
    char *text = NULL;
    hl_config_write(hl_settings_keys(), &run->set, &settings);
    halo_status st = hl_agree(run->ctx, halo_network_text(net, &text));
    if (st == HALO_OK) st = hl_agree_text(run->ctx, "options", settings.s ? settings.s : "");
    if (st == HALO_OK) st = hl_agree_text(run->ctx, "the networks", text);
    free(text);
    hl_str_free(&settings);
    return st;
}

static halo_status prepare(halo_trainer *t, const halo_network *net)
{
    hl_run *run = &t->run;
    if (run->ctx->ranks > 1) HL_TRY(check_alike(run, net));
    HL_TRY(hl_comm_broadcast(run->ctx, &run->ctx->seed, sizeof(run->ctx->seed), 0));
    HL_TRY(hl_run_make_grid(run, false));
    HL_AGREE(run->ctx, make_programs(run, net));
    HL_TRY(hl_run_make_reducer(run));
    HL_AGREE(run->ctx, make_room(t));
    hl_comm_stall(run->ctx, run->set.reduce.stall);
    return HALO_OK;
}

static halo_status settings_of(halo_trainer *t, const halo_trainer_options *options)
{
    HL_TRY(hl_config_defaults(t->run.ctx, hl_settings_keys(), &t->run.set));
    to_settings(t->run.ctx, options, &t->run.set);
    HL_TRY(set_classes(t->run.ctx, options, &t->run.set));
    return hl_config_check(t->run.ctx, hl_settings_keys(), &t->run.set, "halo_trainer_options");
}

static halo_status make(halo_context *ctx, const halo_trainer_options *options, halo_trainer **out)
{
    halo_trainer *t;
    HL_TRY(check(ctx, options));
    HL_TRY(hl_calloc(ctx, 1, sizeof(*t), "a trainer", &t));
    *out = t;
    t->run.ctx = ctx;
    t->run.at.best = INFINITY;
    return settings_of(t, options);
}

halo_status halo_trainer_create(halo_context *ctx, const halo_network *net, const halo_trainer_options *options, halo_trainer **out)
{
    const halo_trainer_options defaults = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t = NULL;
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    HL_TRY(hl_not_null(ctx, out, "trainer"));
    halo_status st = hl_agree(ctx, make(ctx, options ? options : &defaults, &t));
    if (st == HALO_OK) st = prepare(t, net);
    if (st == HALO_OK)
        *out = t;
    else
        halo_trainer_destroy(t);
    return st;
}

void halo_trainer_destroy(halo_trainer *t)
{
    if (!t) return;
    hl_intake_free(&t->x_intake);
    hl_intake_free(&t->y_intake);
    hl_intake_free(&t->outlet);
    hl_reducer_destroy(t->run.reducer);
    hl_program_destroy(t->run.train);
    hl_program_destroy(t->run.eval);
    hl_model_destroy(t->run.model);
    halo_network_destroy(t->run.net);
    hl_team_destroy(t->run.team);
    free(t->x);
    free(t->y);
    free(t->prediction);
    free(t->weight);
    free(t);
}

halo_status hl_trainer_step(halo_trainer *t, halo_dtype type, const void *x, const float *y, double lr, double *loss)
{
    hl_run *run = &t->run;
    hl_batch batch = {.dtype = type, .x = x, .y = y, .first_sample = t->first_sample, .weight_sum = (double)run->set.batch};
    hl_step_options o = {.lr = lr > 0 ? lr : run->set.optimizer.lr, .seed = run->ctx->seed, .step = (uint64_t)run->at.step, .update = true, .grad_scale = 1};
    hl_step_result r;
    HL_TRY(hl_program_train(run->train, &batch, &o, &r));
    run->at.step++;
    if (loss) *loss = r.loss;
    return HALO_OK;
}

/* Row by row; beyond a border are the cells of the other side. */
static void cut_out(const int64_t ext[4], const hl_cells *box, const float *from, float *to)
{
    int64_t D = ext[1], H = ext[2], W = ext[3], w0 = ((box->lo[2] % W) + W) % W;
    for (int64_t c = 0; c < ext[0]; c++)
        for (int64_t i = 0; i < box->ext[0]; i++)
            for (int64_t j = 0; j < box->ext[1]; j++) {
                int64_t d = (((box->lo[0] + i) % D) + D) % D, h = (((box->lo[1] + j) % H) + H) % H;
                const float *row = from + ((c * D + d) * H + h) * W;
                for (int64_t done = 0, w = w0, n; done < box->ext[2]; done += n, w = 0, to += n) {
                    n = hl_min64(box->ext[2] - done, W - w);
                    memcpy(to, row + w, (size_t)n * sizeof(float));
                }
            }
}

/* This rank's parts of n samples, or of their targets: where they are, or cut out into `room`. */
static const float *parts_of(const int64_t ext[4], const hl_cells *box, int64_t n, const float *whole, float *room)
{
    int64_t all = ext[0] * ext[1] * ext[2] * ext[3], part = ext[0] * hl_cells_count(box);
    if (hl_cells_are_whole(box, ext + 1)) return whole;
    for (int64_t i = 0; i < n; i++) cut_out(ext, box, whole + i * all, room + i * part);
    return room;
}

halo_status halo_trainer_step(halo_trainer *t, const float *x, const float *y, double lr, double *loss)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, x, "x"));
    HL_TRY(hl_not_null(t->run.ctx, y, "y"));
    if (!(isfinite(lr) && lr >= 0)) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "'lr' is %g, must be finite and not negative", lr);
    const float *x_part = parts_of(t->in, &t->x_box, t->share, x + t->first_sample * t->volume, t->x);
    const float *y_part = y + t->first_sample * t->truths;
    if (t->outputs != t->out[0]) y_part = parts_of(t->y_ext, &t->y_box, t->share, y_part, t->y);
    return hl_trainer_step(t, HALO_F32, x_part, y_part, lr, loss);
}

/* Samples [first, first + n) of x and y as one batch, filled up with weight 0. y and prediction may be NULL. */
static halo_status forward(halo_trainer *t, int64_t first, int64_t n, const float *x, const float *y, float *prediction, double sums[2])
{
    hl_run *run = &t->run;
    size_t outputs = (size_t)t->outputs, truths = (size_t)t->truths, share = (size_t)t->share, given = (size_t)n, part = (size_t)t->part;
    hl_batch b = {.dtype = HALO_F32, .x = t->x, .y = y ? t->y : NULL, .weight = t->weight};
    hl_step_result r;
    const float *from = parts_of(t->in, &t->x_box, n, x + first * t->volume, t->x);
    if (from != t->x) memcpy(t->x, from, given * part * sizeof(float));
    memset(t->x + given * part, 0, (share - given) * part * sizeof(float));
    memset(t->y, 0, share * truths * sizeof(float));
    if (y) memcpy(t->y, y + (size_t)first * truths, given * truths * sizeof(float));
    for (size_t i = 0; i < share; i++) t->weight[i] = i < given ? 1 : 0;
    HL_TRY(hl_program_evaluate(run->eval, &b, t->prediction, y ? &r : NULL));
    if (prediction) memcpy(prediction + (size_t)first * outputs, t->prediction, given * outputs * sizeof(float));
    if (y) {
        sums[0] += r.loss_sum;
        sums[1] += r.weight_sum;
    }
    return HALO_OK;
}

static halo_status forward_all(halo_trainer *t, int64_t samples, const float *x, const float *y, float *prediction, double sums[2])
{
    if (samples < 1) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "samples is %" PRId64 ", must be at least 1", samples);
    if (t->targets != t->outputs) return hl_fail(t->run.ctx, HALO_ERR_UNSUPPORTED, "volumes cannot be predicted by a trainer whose samples are split over ranks");
    for (int64_t first = 0; first < samples; first += t->share) HL_TRY(forward(t, first, hl_min64(t->share, samples - first), x, y, prediction, sums));
    return HALO_OK;
}

halo_status halo_trainer_predict(halo_trainer *t, int64_t samples, const float *x, float *prediction)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, x, "x"));
    HL_TRY(hl_not_null(t->run.ctx, prediction, "prediction"));
    return forward_all(t, samples, x, NULL, prediction, NULL);
}

halo_status halo_trainer_evaluate(halo_trainer *t, int64_t samples, const float *x, const float *y, double *loss)
{
    double sums[2] = {0, 0};
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, x, "x"));
    HL_TRY(hl_not_null(t->run.ctx, y, "y"));
    HL_TRY(hl_not_null(t->run.ctx, loss, "loss"));
    HL_TRY(forward_all(t, samples, x, y, NULL, sums));
    *loss = sums[0] / sums[1];
    return HALO_OK;
}

int64_t halo_trainer_steps(const halo_trainer *t) { return t ? t->run.at.step : 0; }

/* Finds a parameter; *host has room for its values as doubles and is freed by the caller. */
static halo_status find(halo_trainer *t, const char *name, const float *values, int64_t count, int *param, double **host)
{
    const hl_param_info *list;
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, name, "name"));
    HL_TRY(hl_not_null(t->run.ctx, values, "values"));
    int n = hl_model_params(t->run.model, &list);
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) != 0) continue;
        if (list[i].count != count)
            return hl_fail(t->run.ctx, HALO_ERR_SHAPE, "parameter '%s' has %" PRId64 " values, not %" PRId64, name, list[i].count, count);
        *param = i;
        return hl_calloc(t->run.ctx, (size_t)count, sizeof(double), name, host);
    }
    return hl_fail(t->run.ctx, HALO_ERR_USAGE, "network '%s' has no parameter '%s'", t->run.net->name, name);
}

halo_status halo_trainer_get(halo_trainer *t, const char *name, float *values, int64_t count)
{
    double *host;
    int param;
    HL_TRY(find(t, name, values, count, &param, &host));
    halo_status st = hl_model_get(t->run.model, param, HL_MASTER, host);
    for (int64_t i = 0; i < count && st == HALO_OK; i++) values[i] = (float)host[i];
    free(host);
    return st;
}

halo_status halo_trainer_set(halo_trainer *t, const char *name, const float *values, int64_t count)
{
    double *host;
    int param;
    HL_TRY(find(t, name, values, count, &param, &host));
    for (int64_t i = 0; i < count; i++) host[i] = (double)values[i];
    halo_status st = hl_model_set(t->run.model, param, HL_MASTER, host);
    free(host);
    return st;
}

halo_status halo_trainer_save(halo_trainer *t, const char *path)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, path, "path"));
    return hl_agree(t->run.ctx, t->run.ctx->rank == 0 ? hl_state_save(&t->run, path) : HALO_OK);
}

halo_status halo_trainer_load(halo_trainer *t, const char *path)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, path, "path"));
    return hl_agree(t->run.ctx, hl_state_load(&t->run, path, true));
}
