/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a training step: every optimiser against its formula written out once more here, with clipping,
 * decay by layer class, LARC and accumulation; and what norms and dropout do between training and evaluation.
 * On the reference backend in double.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

static halo_context *ctx;
static halo_device *dev;

typedef struct rig {
    halo_network *net;
    hl_model *model;
    hl_program *program;
    small_data data;
} rig;

static const small_network *find(const char *name)
{
    const small_network *s = small_networks;
    while (s->name && strcmp(s->name, name) != 0) s++;
    return s;
}

static rig start(const char *name, const hl_optim_spec *optim, bool accumulate, int64_t batch)
{
    rig r = {.net = small_build(ctx, find(name))};
    hl_compile_options options = small_options(batch);
    options.accumulate = accumulate;
    check_status(ctx, hl_model_create(ctx, dev, r.net, optim, &r.model), name);
    check_status(ctx, hl_compile(r.model, &options, &r.program), name);
    r.data = small_fill(r.net, batch, 13);
    return r;
}

static void end(rig *r)
{
    small_free(&r->data);
    hl_program_destroy(r->program);
    hl_model_destroy(r->model);
    halo_network_destroy(r->net);
}

/* ----------------------------------------------------------------------------------------------- formulas */

typedef struct memory {
    double *w, *m, *v;
} memory;

static double square(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * a[i];
    return sum;
}

static void by_hand(const hl_optim_spec *o, double lr, double decay, int t, const double *gradient,
                    double scale, int64_t n, memory *k)
{
    const halo_update_params *u = &o->update;
    double larc = 1, wn = sqrt(square(k->w, n)), gn = sqrt(square(gradient, n)) * scale;
    if (u->larc != HALO_LARC_OFF) {
        larc = u->trust * wn / (gn + u->larc_eps);
        if (u->larc == HALO_LARC_CLIP && larc > 1) larc = 1;
        if (wn == 0 || gn == 0) larc = u->larc_zero;
    }
    for (int64_t i = 0; i < n; i++) {
        double g = gradient[i] * scale * larc;
        if (u->kind == HALO_SGD || u->kind == HALO_NESTEROV) {
            g += decay * k->w[i];
            k->m[i] = u->momentum * k->m[i] - lr * g;
            k->w[i] += u->kind == HALO_SGD ? k->m[i] : u->momentum * k->m[i] - lr * g;
            continue;
        }
        double old = k->w[i];
        if (u->kind == HALO_ADAM) g += decay * old;
        k->m[i] = u->beta1 * k->m[i] + (1 - u->beta1) * g;
        k->v[i] = u->beta2 * k->v[i] + (1 - u->beta2) * g * g;
        k->w[i] -=
            lr * sqrt(1 - pow(u->beta2, t)) / (1 - pow(u->beta1, t)) * k->m[i] / (sqrt(k->v[i]) + u->eps);
        if (u->kind == HALO_ADAMW) k->w[i] -= lr * decay * old;
    }
}

static double decay_of(const rig *r, const hl_optim_spec *o, const hl_param_info *p)
{
    if (!strstr(p->name, "/weights")) return 0;
    return r->net->layer[p->layer].kind == HL_LAYER_DENSE && o->dense_decay >= 0 ? o->dense_decay
                                                                                 : o->weight_decay;
}

/* Four steps of the program beside the formulas, on the program's own gradients. */
static void check_optimizer(const char *what, const hl_optim_spec *o)
{
    rig r = start("branches", o, false, 2);
    const hl_param_info *list;
    int n = hl_model_params(r.model, &list);
    memory *k = check_alloc(n, sizeof(*k));
    double worst = 0, norm_error = 0;
    for (int i = 0; i < n; i++)
        k[i] = (memory){small_get(ctx, r.model, i, HL_MASTER), check_alloc(list[i].count, 8),
                        check_alloc(list[i].count, 8)};
    for (int t = 1; t <= 4; t++) {
        const double lr = 0.01 / t;
        const hl_step_options options = {.lr = lr, .update = true};
        hl_step_result result;
        check_status(ctx, hl_program_train(r.program, &r.data.batch, &options, &result), what);
        double sum = 0;
        for (int i = 0; i < n; i++) {
            double *g = small_get(ctx, r.model, i, HL_GRADIENT);
            sum += square(g, list[i].count);
            free(g);
        }
        double norm = sqrt(sum), scale = o->clip_norm > 0 && norm > o->clip_norm ? o->clip_norm / norm : 1;
        norm_error = fmax(norm_error, fabs(result.grad_norm - norm) / norm);
        for (int i = 0; i < n; i++) {
            double *g = small_get(ctx, r.model, i, HL_GRADIENT), *w = small_get(ctx, r.model, i, HL_MASTER);
            by_hand(o, lr, decay_of(&r, o, &list[i]), t, g, scale, list[i].count, &k[i]);
            double e = small_distance(w, k[i].w, list[i].count);
            if (!(e <= worst)) worst = e;
            free(g);
            free(w);
        }
    }
    tap_ok(worst <= 1e-12 && norm_error <= 1e-12, "%s: four steps follow the formula: %.1e (norm %.1e)", what,
           worst, norm_error);
    for (int i = 0; i < n; i++) {
        free(k[i].w);
        free(k[i].m);
        free(k[i].v);
    }
    free(k);
    end(&r);
}

static void check_optimizers(void)
{
    halo_update_params adam = {.kind = HALO_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .lr_factor = 1};
    hl_optim_spec o = small_sgd();
    check_optimizer("sgd", &o);
    o.update.momentum = 0.9;
    o.weight_decay = 0.1;
    check_optimizer("sgd with momentum and decay", &o);
    o.update.kind = HALO_NESTEROV;
    o.dense_decay = 0.02;
    o.clip_norm = 0.05;
    check_optimizer("nesterov, other decay for dense layers, clipped", &o);
    o.update = adam;
    check_optimizer("adam, clipped", &o);
    o.update.kind = HALO_ADAMW;
    o.clip_norm = 0;
    check_optimizer("adamw", &o);
    o.update.larc = HALO_LARC_CLIP;
    o.update.trust = 0.02;
    o.update.larc_zero = 0.5;
    check_optimizer("adamw with larc", &o);
    o.update.kind = HALO_SGD;
    o.update.momentum = 0.5;
    o.update.larc = HALO_LARC_SCALE;
    o.clip_norm = 0.1;
    check_optimizer("sgd with larc in scale mode, clipped", &o);
}

/* ------------------------------------------------------------------------------------------- accumulation */

/* Batches of 2 and 2 with half the gradient each are a batch of 4. */
static void check_accumulation(const char *name)
{
    hl_optim_spec o = small_sgd();
    o.update.momentum = 0.9;
    rig whole = start(name, &o, false, 4), parts = start(name, &o, true, 2);
    double worst = 0;
    for (int step = 0; step < 2; step++) {
        hl_step_options options = {.lr = 0.05, .update = true, .step = (uint64_t)step};
        hl_step_result result;
        check_status(ctx, hl_program_train(whole.program, &whole.data.batch, &options, &result), name);
        const double loss = result.loss, norm = result.grad_norm;
        double sum = 0;
        for (int half = 0; half < 2; half++) {
            hl_batch b = whole.data.batch;
            const int64_t nx = whole.net->layer[0].out[0] * whole.net->layer[0].out[1] *
                               whole.net->layer[0].out[2] * whole.net->layer[0].out[3];
            const int64_t ny = whole.net->layer[whole.net->layers - 1].out[0];
            b.x = whole.data.x + half * 2 * nx;
            b.y = whole.data.y + half * 2 * ny;
            b.first_sample = 2 * half;
            options.accumulate = half > 0;
            options.update = half > 0;
            options.grad_scale = 0.5;
            check_status(ctx, hl_program_train(parts.program, &b, &options, &result), name);
            sum += result.loss / 2;
        }
        worst = fmax(worst, fmax(fabs(sum - loss) / loss, fabs(result.grad_norm - norm) / norm));
    }
    for (int i = 0; i < whole.model->params; i++) {
        double *a = small_get(ctx, whole.model, i, HL_MASTER), *b = small_get(ctx, parts.model, i, HL_MASTER);
        worst = fmax(worst, small_distance(b, a, whole.model->param[i].count));
        free(a);
        free(b);
    }
    tap_ok(worst <= 1e-12, "%s: two accumulated halves step like the whole batch: %.1e", name, worst);
    end(&whole);
    end(&parts);
}

/* ----------------------------------------------------------------------------------- training, evaluation */

/* Running statistics with momentum 0 are those of the last batch, the variance unbiased; evaluation
 * normalises with them. */
static void check_norm(void)
{
    halo_network *net;
    hl_model *model;
    hl_program *train, *eval;
    hl_optim_spec o = small_sgd();
    hl_compile_options options = small_options(3);
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    const int64_t extents[3] = {4, 3, 5};
    norm.momentum = 0;
    check_status(ctx, halo_network_create(ctx, "norm", 2, extents, &net), "network");
    check_status(ctx, halo_network_norm(net, 0, NULL, &norm, NULL), "norm");
    check_status(ctx, hl_model_create(ctx, dev, net, &o, &model), "model");
    check_status(ctx, hl_compile(model, &options, &train), "training");
    options.training = false;
    check_status(ctx, hl_compile(model, &options, &eval), "evaluation");
    small_data d = small_fill(net, 3, 5);
    small_step(ctx, train, &d);
    float *y = check_alloc(3 * 2 * 60, sizeof(float));
    check_status(ctx, hl_program_evaluate(eval, &d.batch, y, NULL), "evaluation");
    double worst = 0;
    for (int c = 0; c < 2; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < 180; i++) mean += d.x[(i / 60 * 2 + c) * 60 + i % 60] / 180.0;
        for (int i = 0; i < 180; i++) var += pow(d.x[(i / 60 * 2 + c) * 60 + i % 60] - mean, 2) / 179.0;
        for (int i = 0; i < 180; i++) {
            int at = (i / 60 * 2 + c) * 60 + i % 60;
            worst = fmax(worst, fabs(y[at] - (d.x[at] - mean) / sqrt(var + 1e-5)));
        }
    }
    tap_ok(worst <= 2e-6, "evaluation of a norm uses the running statistics: %.1e", worst);
    free(y);
    small_free(&d);
    hl_program_destroy(train);
    hl_program_destroy(eval);
    hl_model_destroy(model);
    halo_network_destroy(net);
}

/* Running mean and unbiased variance of channel c of d: [3, 2, 4 x 3 x 5]. */
static void moments(const small_data *d, int c, double out[2])
{
    out[0] = out[1] = 0;
    for (int i = 0; i < 180; i++) out[0] += d->x[(i / 60 * 2 + c) * 60 + i % 60] / 180.0;
    for (int i = 0; i < 180; i++) out[1] += pow(d->x[(i / 60 * 2 + c) * 60 + i % 60] - out[0], 2) / 179.0;
}

/* Measured running statistics are the mean of those of the batches, whatever they were before, and nothing else changes. */
static void check_measured(void)
{
    halo_network *net;
    hl_model *model;
    hl_program *train;
    hl_optim_spec o = small_sgd();
    hl_compile_options options = small_options(3);
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    const int64_t extents[3] = {4, 3, 5};
    check_status(ctx, halo_network_create(ctx, "norm", 2, extents, &net), "network");
    check_status(ctx, halo_network_norm(net, 0, NULL, &norm, NULL), "norm");
    check_status(ctx, hl_model_create(ctx, dev, net, &o, &model), "model");
    check_status(ctx, hl_compile(model, &options, &train), "training");
    small_data d[3] = {small_fill(net, 3, 5), small_fill(net, 3, 6), small_fill(net, 3, 7)};
    small_step(ctx, train, &d[2]); /* something to forget */
    double *gamma = small_get(ctx, model, 0, HL_MASTER), worst = 0;
    for (int i = 0; i < 2; i++) check_status(ctx, hl_program_measure_running(train, &d[i].batch, i), "a measured batch");
    double *mean = small_get(ctx, model, 2, HL_MASTER), *variance = small_get(ctx, model, 3, HL_MASTER), *after = small_get(ctx, model, 0, HL_MASTER);
    for (int c = 0; c < 2; c++) {
        double a[2], b[2];
        moments(&d[0], c, a);
        moments(&d[1], c, b);
        worst = fmax(worst, fmax(fabs(mean[c] - (a[0] + b[0]) / 2), fabs(variance[c] - (a[1] + b[1]) / 2)));
    }
    tap_ok(hl_program_has_running(train) && worst <= 1e-6, "running statistics measured over two batches are their mean: %.1e", worst);
    tap_ok(memcmp(gamma, after, 2 * sizeof(*gamma)) == 0, "and weights stay");
    free(gamma), free(after), free(mean), free(variance);
    for (int i = 0; i < 3; i++) small_free(&d[i]);
    hl_program_destroy(train);
    hl_model_destroy(model);
    halo_network_destroy(net);
}

/* The mask depends on seed, step and global sample number, not on the batch it came in. */
static void check_dropout(void)
{
    hl_optim_spec o = small_sgd();
    rig pair = start("drops", &o, false, 2), one = start("drops", &o, false, 1);
    const hl_step_options options = {.seed = 5, .step = 3};
    hl_step_result result;
    double both = small_step(ctx, pair.program, &pair.data), sum = 0,
           again = small_step(ctx, pair.program, &pair.data);
    for (int n = 0; n < 2; n++) {
        hl_batch b = pair.data.batch;
        b.x = pair.data.x + n * 2 * 4 * 6 * 5;
        b.y = pair.data.y + n * 2;
        b.first_sample = n;
        check_status(ctx, hl_program_train(one.program, &b, &options, &result), "one sample");
        sum += result.loss / 2;
    }
    const hl_step_options other = {.seed = 5, .step = 4};
    check_status(ctx, hl_program_train(pair.program, &pair.data.batch, &other, &result), "another step");
    tap_ok(both == again && fabs(sum - both) <= 1e-12 * both && result.loss != both,
           "dropout: the same mask one by one as together, another in another step");
    end(&pair);
    end(&one);
}

/* Two programs of one model: what one trains the other sees, images of weights included. */
static void check_sharing(void)
{
    hl_optim_spec o = small_sgd();
    rig r = start("same", &o, false, 2);
    hl_compile_options options = small_options(2);
    hl_program *eval;
    hl_step_result before, after;
    options.training = false;
    check_status(ctx, hl_compile(r.model, &options, &eval), "evaluation");
    check_status(ctx, hl_program_evaluate(eval, &r.data.batch, NULL, &before), "evaluation");
    const hl_step_options step = {.lr = 0.05, .update = true};
    hl_step_result result;
    for (int i = 0; i < 5; i++)
        check_status(ctx, hl_program_train(r.program, &r.data.batch, &step, &result), "a step");
    check_status(ctx, hl_program_evaluate(eval, &r.data.batch, NULL, &after), "evaluation");
    tap_ok(after.loss < before.loss && after.loss < result.loss,
           "five steps lower the loss that another program of the model sees: %.4f %.4f", before.loss,
           after.loss);
    hl_program_destroy(eval);
    end(&r);
}

static void check_arrays(void)
{
    hl_optim_spec o = small_sgd();
    rig r = start("norms", &o, false, 2);
    void *gradients;
    int64_t elements, sum = 0;
    const hl_param_info *list;
    int n = hl_model_params(r.model, &list), good = 0, previous = 1 << 30;
    bool ordered = true;
    check_status(ctx, hl_model_gradient_range(r.model, &gradients, &elements), "range");
    for (int i = 0; i < n; i++) {
        double *a = check_alloc(list[i].count, 8), *b;
        for (int64_t k = 0; k < list[i].count; k++) a[k] = (float)(0.1 * (double)k + i);
        check_status(ctx, hl_model_set(r.model, i, HL_MASTER, a), "set");
        b = small_get(ctx, r.model, i, HL_MASTER);
        good += memcmp(a, b, (size_t)list[i].count * 8) == 0;
        if (list[i].trainable) sum += list[i].count;
        free(a);
        free(b);
    }
    for (int64_t at = 0; at < elements; at += 8) /* the last layer comes first */
        for (int i = 0; i < n; i++)
            if (list[i].trainable && r.model->offset[i] == at) {
                ordered = ordered && list[i].layer <= previous;
                previous = list[i].layer;
            }
    tap_ok(good == n && ordered && elements >= sum && elements <= sum + 8 * n,
           "parameters come back as they were set; gradients lie in backward order");
    tap_ok(!hl_model_has(r.model, 0, HL_STATE1) && hl_model_has(r.model, 0, HL_GRADIENT),
           "plain sgd has no state");
    end(&r);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    const halo_device_options f64 = {.compute = HALO_F64};
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &dev), "device");
    check_optimizers();
    check_accumulation("plain");
    check_accumulation("branches");
    check_accumulation("drops");
    check_norm();
    check_measured();
    check_dropout();
    check_sharing();
    check_arrays();
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
