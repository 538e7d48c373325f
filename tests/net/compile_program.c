/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not change a program's results: running it again, overwriting in place, sharing storage, fusing,
 * layouts, margins; and what a program says of itself: memory, reorders, passes, errors. On the reference
 * backend, in double, where rearranging changes no bit.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

static halo_context *ctx;
static halo_device *dev;

/* ----------------------------------------------------------------------------------------- counted memory */

static size_t allocated;
static const halo_device_ops *real_ops;

static halo_status counting_alloc(halo_device *d, size_t bytes, void **ptr)
{
    allocated += bytes;
    return real_ops->alloc(d, bytes, ptr);
}

/* -------------------------------------------------------------------------------------------------- a run */

typedef struct run {
    halo_network *net;
    hl_model *model;
    hl_program *program;
    double loss[3];
} run;

static hl_optim_spec adam(void)
{
    hl_optim_spec o = {.weight_decay = 1e-3, .dense_decay = -1};
    o.update = (halo_update_params){.kind = HALO_ADAM,
                                    .larc = HALO_LARC_CLIP,
                                    .beta1 = 0.9,
                                    .beta2 = 0.99,
                                    .eps = 1e-8,
                                    .lr_factor = 1,
                                    .trust = 0.02,
                                    .larc_zero = 1};
    return o;
}

/* Three updates. */
static run train(const small_network *s, const hl_compile_options *options, hl_compile_switches off)
{
    run r = {.net = small_build(ctx, s)};
    hl_optim_spec optim = adam();
    check_status(ctx, hl_model_create(ctx, dev, r.net, &optim, &r.model), "model");
    check_status(ctx, hl_compile_with(r.model, options, off, &r.program), s->name);
    small_data d = small_fill(r.net, options->batch, 3);
    for (int i = 0; i < 3; i++) {
        const hl_step_options step = {.lr = 0.01, .seed = 9, .step = (uint64_t)i, .update = true};
        hl_step_result result;
        check_status(ctx, hl_program_train(r.program, &d.batch, &step, &result), s->name);
        r.loss[i] = result.loss;
    }
    small_free(&d);
    return r;
}

static void end(run *r)
{
    hl_program_destroy(r->program);
    hl_model_destroy(r->model);
    halo_network_destroy(r->net);
}

static bool same_bits(const run *a, const run *b)
{
    return memcmp(a->loss, b->loss, sizeof(a->loss)) == 0 && small_equal(ctx, a->model, b->model);
}

static void check_switches(const small_network *s)
{
    static const struct {
        const char *what;
        hl_compile_switches off;
    } how[] = {
        {"run again", {0}},
        {"nothing in place", {.no_inplace = true}},
        {"storage not shared", {.no_reuse = true}},
        {"margins written in every step", {.no_alone = true}},
        {"nothing fused", {.no_fuse = true}},
        {"pieces copied where they are joined", {.no_views = true}},
        {"none of these", {.no_fuse = true, .no_inplace = true, .no_views = true, .no_reuse = true, .no_alone = true}},
    };
    hl_compile_options options = small_options(3);
    for (int margins = 0; margins < 2; margins++) {
        dev->wants_margins = margins;
        run r = train(s, &options, (hl_compile_switches){0});
        for (size_t i = 0; i < HL_COUNT(how); i++) {
            run other = train(s, &options, how[i].off);
            tap_ok(isfinite(r.loss[2]) && same_bits(&r, &other), "%s, margins %d, %s: the same bits", s->name,
                   margins, how[i].what);
            end(&other);
        }
        end(&r);
    }
}

/* Concatenations whose channels begin inside a block included. */
static void check_layouts(const small_network *s)
{
    static const halo_layout all[HALO_LAYOUTS][2] = {{HALO_NCDHW, HALO_LAYOUTS},
                                                     {HALO_NDHWC, HALO_LAYOUTS},
                                                     {HALO_NCDHW8C, HALO_LAYOUTS},
                                                     {HALO_NCDHW16C, HALO_LAYOUTS}};
    const halo_layout *own = dev->layouts;
    hl_compile_options options = small_options(2);
    run r = train(s, &options, (hl_compile_switches){0});
    for (int l = HALO_NDHWC; l < HALO_LAYOUTS; l++) {
        dev->layouts = all[l];
        run other = train(s, &options, (hl_compile_switches){0});
        double e = fabs(other.loss[2] - r.loss[2]) / fabs(r.loss[2]);
        tap_ok(e <= 1e-10, "%s in %s: the third loss differs by %.1e", s->name,
               hl_layout_name((halo_layout)l), e);
        end(&other);
    }
    dev->layouts = own;
    end(&r);
}

/* ------------------------------------------------------------------------------------------------- memory */

static void check_memory(const small_network *s)
{
    halo_device_ops ops = *dev->ops;
    hl_compile_options options = small_options(2);
    hl_program_info info;
    real_ops = dev->ops;
    ops.alloc = counting_alloc;
    dev->ops = &ops;
    allocated = 0;
    run r = train(s, &options, (hl_compile_switches){0});
    hl_program_info_get(r.program, &info);
    tap_ok(allocated == info.peak_bytes, "%s: %zu bytes allocated, %zu announced", s->name, allocated,
           info.peak_bytes);
    hl_compile_options tight = options;
    hl_program *p;
    tight.memory_limit = info.peak_bytes - 1;
    halo_status st = hl_compile(r.model, &tight, &p);
    bool less = st == HALO_OK; /* margins need not stay zero: then it may fit */
    if (less) {
        hl_program_info_get(p, &info);
        less = info.peak_bytes <= tight.memory_limit;
        hl_program_destroy(p);
    }
    tap_ok(less || (st == HALO_ERR_NOMEM && strstr(halo_error_message(ctx), "activations")),
           "%s: a limit is kept, or the error says by what: %s", s->name,
           less ? "" : halo_error_message(ctx));
    end(&r);
    dev->ops = real_ops;
}

static bool overlap(const hl_value *a, const hl_value *b)
{
    bool bytes = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    bool time = a->alone || b->alone || (a->first <= b->last && b->first <= a->last);
    return bytes && time;
}

static void check_slots(const small_network *s)
{
    hl_compile_options options = small_options(2);
    run r = train(s, &options, (hl_compile_switches){0});
    const hl_program *p = r.program;
    int clashes = 0;
    size_t sum = 0;
    for (int i = 0; i < p->values; i++) {
        const hl_value *v = &p->value[i];
        if (v->region != HL_REGION_ARENA || v->dead || v->last < 0) continue;
        sum += v->bytes;
        for (int k = 0; k < i; k++) {
            const hl_value *w = &p->value[k];
            if (w->region == HL_REGION_ARENA && !w->dead && w->last >= 0) clashes += overlap(v, w);
        }
    }
    tap_ok(clashes == 0 && p->arena_bytes < sum, "%s: no two values clash, %zu bytes hold %zu", s->name,
           p->arena_bytes, sum);
    end(&r);
}

/* --------------------------------------------------------------------------------------------- evaluation */

static bool has_noise(const halo_network *net)
{
    for (int i = 0; i < net->layers; i++)
        if (net->layer[i].kind == HL_LAYER_NORM || net->layer[i].kind == HL_LAYER_DROPOUT) return true;
    return false;
}

static void check_evaluation(const small_network *s)
{
    hl_compile_options options = small_options(2);
    run r = train(s, &options, (hl_compile_switches){0});
    hl_program *eval;
    hl_step_result result;
    small_data d = small_fill(r.net, 2, 3);
    const int64_t *out = r.net->layer[r.net->layers - 1].out, n = out[0] * out[1] * out[2] * out[3];
    float *y = check_alloc(2 * n, sizeof(float));
    double trained = small_step(ctx, r.program, &d), by_hand = 0;
    options.training = false;
    check_status(ctx, hl_compile(r.model, &options, &eval), s->name);
    check_status(ctx, hl_program_evaluate(eval, &d.batch, y, &result), s->name);
    if (!has_noise(r.net))
        tap_ok(result.loss == trained, "%s: evaluation is the forward pass of training", s->name);
    for (int64_t i = 0; i < 2 * n; i++) by_hand += (y[i] - d.y[i]) * (y[i] - d.y[i]) / (double)(2 * n);
    if (strcmp(s->name, "rows") != 0) /* the mean of losses is not the loss of means */
        tap_ok(fabs(result.loss - by_hand) <= 1e-6 * by_hand,
               "%s: predictions have the loss that is reported", s->name);

    /* weight 0 for the second sample = a batch of the first alone */
    const double weight[2] = {1, 0};
    hl_program *one;
    hl_step_result first, padded;
    options.batch = 1;
    check_status(ctx, hl_compile(r.model, &options, &one), s->name);
    check_status(ctx, hl_program_evaluate(one, &d.batch, NULL, &first), s->name);
    d.batch.weight = weight;
    check_status(ctx, hl_program_evaluate(eval, &d.batch, NULL, &padded), s->name);
    tap_ok(fabs(padded.loss - first.loss) <= 1e-12 * first.loss && padded.weight_sum == 1,
           "%s: a sample of weight 0 does not count", s->name);
    free(y);
    small_free(&d);
    hl_program_destroy(one);
    hl_program_destroy(eval);
    end(&r);
}

/* ----------------------------------------------------------------------------------------- passes, errors */

static void check_passes(const small_network *s)
{
    static const char *const names[] = {"shape",   "place",   "differentiate", "precision", "lower",
                                        "slabs",   "inplace", "views",   "margins", "overlap",       "choose",    "fit",   "bind"};
    hl_compile_options options = small_options(1);
    run r = train(s, &options, (hl_compile_switches){0});
    int good = 0;
    for (size_t i = 0; i < HL_COUNT(names); i++) {
        hl_program *p;
        hl_str text = {0};
        hl_program_info info;
        options.after = names[i];
        check_status(ctx, hl_compile(r.model, &options, &p), names[i]);
        check_status(ctx, hl_program_print(p, &text), names[i]);
        hl_program_info_get(p, &info);
        good += strstr(text.s, names[i]) && strstr(text.s, "conv1") && info.reorders == 0 &&
                (i < 10 || info.flops_step > info.flops_forward);
        hl_str_free(&text);
        hl_program_destroy(p);
    }
    tap_ok(good == (int)HL_COUNT(names), "%s can be printed after each of %d passes", s->name,
           (int)HL_COUNT(names));
    end(&r);
}

static void check_refusals(void)
{
    const small_network *s = &small_networks[0];
    hl_compile_options options = small_options(1);
    run r = train(s, &options, (hl_compile_switches){0});
    hl_program *p;
    options.after = "nowhere";
    tap_ok(hl_compile(r.model, &options, &p) == HALO_ERR_USAGE, "an unknown pass: %s",
           halo_error_message(ctx));
    options = small_options(0);
    tap_ok(hl_compile(r.model, &options, &p) == HALO_ERR_USAGE, "an empty batch: %s",
           halo_error_message(ctx));
    options = small_options((int64_t)1 << 60);
    tap_ok(hl_compile(r.model, &options, &p) == HALO_ERR_SHAPE && strstr(halo_error_message(ctx), "'input'"),
           "too large: %s", halo_error_message(ctx));
    hl_model *bare;
    check_status(ctx, hl_model_create(ctx, dev, r.net, NULL, &bare), "model");
    options = small_options(1);
    tap_ok(hl_compile(bare, &options, &p) == HALO_ERR_USAGE, "training without an optimiser: %s",
           halo_error_message(ctx));
    hl_model_destroy(bare);
    end(&r);
}

static void check_nonfinite(void)
{
    hl_compile_options options = small_options(2);
    run r = train(&small_networks[0], &options, (hl_compile_switches){0});
    small_data d = small_fill(r.net, 2, 3);
    const hl_step_options step = {.lr = 0.1, .update = true};
    hl_step_result result;
    double *before = small_get(ctx, r.model, 0, HL_MASTER), *after;
    d.x[17] = NAN;
    halo_status st = hl_program_train(r.program, &d.batch, &step, &result);
    tap_ok(st == HALO_ERR_NONFINITE && !result.finite && strstr(halo_error_message(ctx), "input"),
           "NaN in the input: %s", halo_error_message(ctx));
    after = small_get(ctx, r.model, 0, HL_MASTER);
    tap_ok(memcmp(before, after, sizeof(*before) * 4) == 0 && hl_model_steps(r.model) == 3,
           "the weights were not touched");
    d.x[17] = 0;
    const hl_param_info *list;
    int n = hl_model_params(r.model, &list), conv2 = 0;
    while (conv2 < n && strcmp(list[conv2].name, "conv2/bias") != 0) conv2++;
    double *bias = small_get(ctx, r.model, conv2, HL_MASTER);
    bias[1] = INFINITY;
    check_status(ctx, hl_model_set(r.model, conv2, HL_MASTER, bias), "an infinite bias");
    st = hl_program_train(r.program, &d.batch, &step, &result);
    tap_ok(st == HALO_ERR_NONFINITE && strstr(halo_error_message(ctx), "'conv2'"), "an infinite bias: %s",
           halo_error_message(ctx));
    const char *name = hl_program_find_nonfinite(r.program);
    tap_ok(name && strcmp(name, "conv2") == 0, "its layer is found");
    bias[1] = 0;
    check_status(ctx, hl_model_set(r.model, conv2, HL_MASTER, bias), "a finite bias");
    tap_ok(hl_program_find_nonfinite(r.program) == NULL, "nothing is found where all is finite");
    d.y[0] = 1e30f; /* the loss is finite, the square of a gradient is not of use */
    st = hl_program_train(r.program, &d.batch, &step, &result);
    tap_ok(st == HALO_OK && result.finite, "a huge target is not an error in double");
    free(before);
    free(after);
    free(bias);
    small_free(&d);
    end(&r);
}

/* The loss of a first step, with the targets times `scale`. */
static double first_loss(const hl_compile_options *options, double delta, double scale)
{
    const small_network *s = &small_networks[17]; /* one whose output is a volume */
    halo_network *net = small_build(ctx, s);
    hl_optim_spec optim = adam();
    hl_model *m;
    hl_program *p;
    hl_step_result result;
    const hl_step_options step = {.lr = 0.01, .seed = 9, .delta = delta};
    small_data d = small_fill(net, options->batch, 3);
    const int64_t *out = net->layer[net->layers - 1].out;
    for (int64_t i = 0; i < options->batch * out[0] * out[1] * out[2] * out[3]; i++) d.y[i] = (float)(scale * d.y[i]);
    check_status(ctx, hl_model_create(ctx, dev, net, &optim, &m), s->name);
    check_status(ctx, hl_compile(m, options, &p), s->name);
    check_status(ctx, hl_program_train(p, &d.batch, &step, &result), s->name);
    small_free(&d);
    hl_program_destroy(p);
    hl_model_destroy(m);
    halo_network_destroy(net);
    return result.loss;
}

static void check_losses(void)
{
    hl_compile_options options = small_options(2);
    options.loss = HALO_LOSS_HUBER;
    options.huber_delta = 0.25;
    double own = first_loss(&options, 0, 1), given = first_loss(&options, 2, 1);
    options.huber_delta = 2;
    tap_ok(isfinite(own) && own < given && given == first_loss(&options, 0, 1), "huber of delta 0.25 is %.4f, with a step's own delta of 2 %.4f, as if compiled so", own, given);
    options.loss = HALO_LOSS_RELATIVE_MSE;
    double large = first_loss(&options, 0, 1e6), larger = first_loss(&options, 0, 1e9);
    tap_ok(fabs(large - 1) < 1e-4 && fabs(larger - 1) < 1e-7, "the relative mse of an output that is nothing beside its targets is %.6f", large);
    options.grid = (hl_grid){.data = 1, .part = {1, 1, 2}};
    options.after = "place";
    run r = {.net = small_build(ctx, &small_networks[17])};
    hl_optim_spec optim = adam();
    check_status(ctx, hl_model_create(ctx, dev, r.net, &optim, &r.model), "model");
    tap_ok(hl_compile(r.model, &options, &r.program) == HALO_ERR_UNSUPPORTED && strstr(halo_error_message(ctx), "whole samples"), "relative mse of parts: %s", halo_error_message(ctx));
    end(&r);
}

/* Three runs of a program on other values leave no trace in a fourth: nothing depends on what was in the
 * arena. */
static void check_no_trace(const small_network *s)
{
    hl_compile_options options = small_options(2);
    run r = train(s, &options, (hl_compile_switches){0});
    small_data d = small_fill(r.net, 2, 21), big = small_fill(r.net, 2, 22);
    double first = small_step(ctx, r.program, &d);
    double *g = small_get(ctx, r.model, 0, HL_GRADIENT);
    for (int64_t i = 0; i < 2 * s->channels * s->extents[0] * s->extents[1] * s->extents[2]; i++)
        big.x[i] = 100 * big.x[i] + 50;
    small_step(ctx, r.program, &big);
    double second = small_step(ctx, r.program, &d);
    double *h = small_get(ctx, r.model, 0, HL_GRADIENT);
    tap_ok(first == second && memcmp(g, h, sizeof(*g) * (size_t)r.model->param[0].count) == 0,
           "%s: a step leaves no trace in the next", s->name);
    free(g);
    free(h);
    small_free(&d);
    small_free(&big);
    end(&r);
}

static void check_zoo(const char *variant, int64_t size)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    hl_model *model;
    hl_program *p;
    hl_program_info info;
    hl_optim_spec optim = adam();
    o.variant = variant;
    for (int a = 0; a < 3; a++) o.extents[a] = size;
    check_status(ctx, halo_network_zoo(ctx, "cosmoflow", &o, &net), variant);
    check_status(ctx, hl_model_create(ctx, dev, net, &optim, &model), variant);
    for (int training = 0; training < 2; training++) {
        hl_compile_options options = small_options(1);
        options.training = training;
        options.after = "fit";
        check_status(ctx, hl_compile(model, &options, &p), variant);
        hl_program_info_get(p, &info);
        tap_ok(info.reorders == 0 && info.parameters == halo_network_parameters(net),
               "%s at %d^3: %.3f Gflop forward, %.3f a step, %.1f MiB, no reorder", variant, (int)size,
               info.flops_forward * 1e-9, info.flops_step * 1e-9, (double)info.peak_bytes / 1048576.0);
        hl_program_destroy(p);
    }
    hl_model_destroy(model);
    halo_network_destroy(net);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    const halo_device_options f64 = {.compute = HALO_F64};
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &dev), "device");
    for (const small_network *s = small_networks; s->name; s++) {
        check_switches(s);
        check_layouts(s);
        check_memory(s);
        check_slots(s);
        check_evaluation(s);
        check_passes(s);
        check_no_trace(s);
    }
    check_refusals();
    check_losses();
    check_nonfinite();
    check_zoo("sc18", 64);
    check_zoo("mlperf", 32);
    check_zoo("hybrid", 32);
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
