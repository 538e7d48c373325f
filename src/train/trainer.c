/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c -- the public trainer: a run without data, loop or directory. */
#include "train/run.h"

struct halo_trainer {
    hl_run run;
    int64_t outputs; /* of one sample: T, or C D H W of a network that ends in a volume */
    size_t volume;   /* cells of one input sample */
    /* one batch, for the last samples of a prediction */
    float *x, *y, *prediction;
    double *weight;
};

static halo_context *context_of(const halo_trainer *t) { return t ? t->run.ctx : NULL; }

/* What the table of keys cannot: -1 is its word for no clipping, 0 that of the options. */
static halo_status check(halo_context *ctx, const halo_trainer_options *o)
{
    if (o->size != sizeof(*o)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options has size %zu, this library expects %zu", o->size, sizeof(*o));
    if (!(o->clip_norm >= 0)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_trainer_options: 'clip_norm' is %g, must be above 0, or 0 for none", o->clip_norm);
    return HALO_OK;
}

/* The same settings in the words of a configuration, so that a checkpoint tells what made it. */
static void to_settings(const halo_trainer_options *o, hl_settings *set)
{
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
}

static halo_status copy_network(halo_context *ctx, const halo_network *net, halo_network **copy)
{
    char *text;
    HL_TRY(halo_network_text(net, &text));
    halo_status st = halo_network_parse(ctx, net->name, text, strlen(text), 0, NULL, copy);
    free(text);
    return st;
}

static halo_status prepare(halo_trainer *t, const halo_network *net)
{
    hl_run *run = &t->run;
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    hl_compile_options training = hl_run_compile_options(&run->set, true), evaluation = hl_run_compile_options(&run->set, false);
    HL_TRY(copy_network(run->ctx, net, &run->net));
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out;
    t->outputs = out[0] * out[1] * out[2] * out[3];
    t->volume = (size_t)(in[0] * in[1] * in[2] * in[3]);
    HL_TRY(hl_context_device(run->ctx, &run->dev));
    HL_TRY(hl_model_create(run->ctx, run->dev, run->net, &optim, &run->model));
    HL_TRY(hl_compile(run->model, &training, &run->train));
    HL_TRY(hl_compile(run->model, &evaluation, &run->eval));
    size_t batch = (size_t)run->set.batch;
    HL_TRY(hl_calloc(run->ctx, batch * t->volume, sizeof(float), "a batch", &t->x));
    HL_TRY(hl_calloc(run->ctx, batch * (size_t)t->outputs, sizeof(float), "a batch", &t->y));
    HL_TRY(hl_calloc(run->ctx, batch * (size_t)t->outputs, sizeof(float), "a batch", &t->prediction));
    return hl_calloc(run->ctx, batch, sizeof(double), "a batch", &t->weight);
}

halo_status halo_trainer_create(halo_context *ctx, const halo_network *net, const halo_trainer_options *options, halo_trainer **out)
{
    const halo_trainer_options defaults = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t;
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    HL_TRY(hl_not_null(ctx, out, "trainer"));
    if (!options) options = &defaults;
    HL_TRY(check(ctx, options));
    HL_TRY(hl_calloc(ctx, 1, sizeof(*t), "a trainer", &t));
    t->run.ctx = ctx;
    t->run.at.best = INFINITY;
    halo_status st = hl_config_defaults(ctx, hl_settings_keys(), &t->run.set);
    if (st == HALO_OK) {
        to_settings(options, &t->run.set);
        st = hl_config_check(ctx, hl_settings_keys(), &t->run.set, "halo_trainer_options");
    }
    if (st == HALO_OK) st = prepare(t, net);
    if (st != HALO_OK) {
        halo_trainer_destroy(t);
        return st;
    }
    *out = t;
    return HALO_OK;
}

void halo_trainer_destroy(halo_trainer *t)
{
    if (!t) return;
    hl_program_destroy(t->run.train);
    hl_program_destroy(t->run.eval);
    hl_model_destroy(t->run.model);
    halo_network_destroy(t->run.net);
    free(t->x);
    free(t->y);
    free(t->prediction);
    free(t->weight);
    free(t);
}

halo_status halo_trainer_step(halo_trainer *t, const float *x, const float *y, double lr, double *loss)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, x, "x"));
    HL_TRY(hl_not_null(t->run.ctx, y, "y"));
    if (!(isfinite(lr) && lr >= 0)) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "'lr' is %g, must be finite and not negative", lr);
    hl_run *run = &t->run;
    hl_batch batch = {.dtype = HALO_F32, .x = x, .y = y};
    hl_step_options o = {.lr = lr > 0 ? lr : run->set.optimizer.lr, .seed = run->ctx->seed, .step = (uint64_t)run->at.step, .update = true, .grad_scale = 1};
    hl_step_result r;
    HL_TRY(hl_program_train(run->train, &batch, &o, &r));
    run->at.step++;
    if (loss) *loss = r.loss;
    return HALO_OK;
}

/* Samples [first, first + n) of x and y as one batch, filled up with weight 0. y and prediction may be NULL. */
static halo_status forward(halo_trainer *t, int64_t first, int64_t n, const float *x, const float *y, float *prediction, double sums[2])
{
    hl_run *run = &t->run;
    size_t outputs = (size_t)t->outputs, batch = (size_t)run->set.batch, given = (size_t)n;
    hl_batch b = {.dtype = HALO_F32, .x = t->x, .y = y ? t->y : NULL, .weight = t->weight};
    hl_step_result r;
    memcpy(t->x, x + (size_t)first * t->volume, given * t->volume * sizeof(float));
    memset(t->x + given * t->volume, 0, (batch - given) * t->volume * sizeof(float));
    memset(t->y, 0, batch * outputs * sizeof(float));
    if (y) memcpy(t->y, y + (size_t)first * outputs, given * outputs * sizeof(float));
    for (size_t i = 0; i < batch; i++) t->weight[i] = i < given ? 1 : 0;
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
    for (int64_t first = 0; first < samples; first += t->run.set.batch)
        HL_TRY(forward(t, first, hl_min64(t->run.set.batch, samples - first), x, y, prediction, sums));
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
    return hl_state_save(&t->run, path);
}

halo_status halo_trainer_load(halo_trainer *t, const char *path)
{
    HL_TRY(hl_not_null(context_of(t), t, "trainer"));
    HL_TRY(hl_not_null(t->run.ctx, path, "path"));
    return hl_state_load(&t->run, path, true);
}
