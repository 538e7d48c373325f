/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with activations of 16 bits: their losses and gradients beside those of f32 to the rounding of the type; loss scaling that brings small gradients back,
 * skips what overflows and leaves nothing changed; volumes too large for sums in 16 bits; and what no scale can help.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

#include "backend/backend.h"
#include "base/rng.h"
#include "tensor/half.h"

static halo_context *ctx;

typedef struct run {
    halo_device *dev;
    hl_model *model;
    hl_program *program;
} run;

static run start(const char *backend, halo_dtype compute, const halo_network *net, int64_t batch, const hl_optim_spec *optim)
{
    run r;
    hl_compile_options o = small_options(batch);
    check_status(ctx, hl_device_open(ctx, backend, &(halo_device_options){.compute = compute, .threads = 1}, &r.dev), backend);
    check_status(ctx, hl_model_create(ctx, r.dev, net, optim, &r.model), net->name);
    check_status(ctx, hl_compile(r.model, &o, &r.program), net->name);
    return r;
}

static void end(run *r)
{
    hl_program_destroy(r->program);
    hl_model_destroy(r->model);
    r->dev->ops->close(r->dev);
}

/* ------------------------------------------------------------------------------------------------ beside f32 */

/* All gradients in one array; freed by the caller. */
static double *gradients(const run *r, int64_t *n)
{
    double *all = calloc((size_t)r->model->elements, sizeof(*all));
    *n = 0;
    for (int i = 0; i < r->model->params; i++) {
        if (!r->model->param[i].trainable) continue;
        double *g = small_get(ctx, r->model, i, HL_GRADIENT);
        memcpy(all + *n, g, (size_t)r->model->param[i].count * sizeof(*g));
        *n += r->model->param[i].count;
        free(g);
    }
    return all;
}

static double relative(const double *a, const double *b, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) d += (a[i] - b[i]) * (a[i] - b[i]), s += b[i] * b[i];
    return sqrt(d / s);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where two cells of a pooling window are alike to the rounding of the type the other one may be taken, which moves a whole gradient: hence a median. The rounding of an activation is 2^-9 or 2^-12 of it; a network adds up some dozens of them. */
static void test_beside(const char *backend, halo_dtype type, double tolerance)
{
    const hl_optim_spec sgd = small_sgd();
    double worst = 0, least = INFINITY, all[64];
    int networks = 0;
    const char *where = "";
    for (const small_network *s = small_networks; s->name; s++) {
        halo_network *net = small_build(ctx, s);
        small_data d = small_fill(net, 3, 7);
        run wide = start(backend, HALO_F32, net, 3, &sgd), narrow = start(backend, type, net, 3, &sgd);
        double a = small_step(ctx, narrow.program, &d), b = small_step(ctx, wide.program, &d);
        int64_t n;
        double *g = gradients(&narrow, &n), *h = gradients(&wide, &n);
        double error = fmax(fabs(a - b) / fabs(b), relative(g, h, n) / 4);
        if (!(error <= worst)) worst = error, where = s->name;
        least = fmin(least, error);
        all[networks++ % 64] = error;
        free(g);
        free(h);
        end(&wide);
        end(&narrow);
        small_free(&d);
        halo_network_destroy(net);
    }
    qsort(all, (size_t)networks, sizeof(*all), ascending);
    double middle = all[networks / 2];
    tap_ok(middle <= tolerance, "%s in %s: losses and gradients of %d networks beside f32: median %.1e", backend, hl_dtype_name(type), networks, middle);
    tap_ok(worst <= 10 * tolerance, "worst %.1e (%s)", worst, where);
    tap_ok(least > 0, "and not those of f32 themselves: at least %.1e apart", least);
}

/* ------------------------------------------------------------------------------------- one operation, bit by bit */

static float rounded(halo_dtype type, float x)
{
    return type == HALO_F16 ? hl_f32_from_f16(hl_f16_from_f32(x)) : hl_f32_from_bf16(hl_bf16_from_f32(x));
}

enum { CELLS = 5 * 4 * 3 * 6 };

/* y = x + x2 in 16 bits is the rounded sum of the rounded terms. */
static void test_add(const char *backend, halo_dtype type)
{
    halo_device *dev;
    const int64_t ext[HALO_DIMS] = {1, 5, 4, 3, 6};
    halo_op_desc d = {.kind = HALO_OP_ADD};
    float x[2][CELLS], y[CELLS];
    void *ptr[HALO_ROLES] = {NULL};
    int wrong = 0;
    check_status(ctx, hl_device_open(ctx, backend, &(halo_device_options){.compute = type, .threads = 1}, &dev), backend);
    for (int i = 0; i < CELLS; i++) x[0][i] = (float)sin(i) * 1000, x[1][i] = (float)cos(3 * i);
    for (int k = 0; k < 3; k++) {
        static const halo_role role[] = {HALO_X, HALO_X2, HALO_Y};
        size_t bytes;
        d.t[role[k]] = hl_operand_whole(type, dev->layouts[0], ext);
        HL_BUG_UNLESS(hl_operand_bytes(&d.t[role[k]], &bytes));
        check_status(ctx, dev->ops->alloc(dev, bytes, &ptr[role[k]]), "memory");
        check_status(ctx, dev->ops->fill(dev, ptr[role[k]], 0, bytes, NULL), "fill");
        if (k < 2) check_status(ctx, dev->ops->upload(dev, &d.t[role[k]], ptr[role[k]], HALO_F32, x[k]), "upload");
    }
    check_status(ctx, hl_op_run_once(dev, &d, NULL, ptr, NULL), "add");
    check_status(ctx, dev->ops->download(dev, &d.t[HALO_Y], ptr[HALO_Y], HALO_F32, y), "download");
    for (int i = 0; i < CELLS; i++) wrong += y[i] != rounded(type, rounded(type, x[0][i]) + rounded(type, x[1][i]));
    tap_ok(wrong == 0, "%s: a sum in %s is the rounded sum of rounded terms", backend, hl_dtype_name(type));
    dev->ops->release(dev, ptr[HALO_X]);
    dev->ops->release(dev, ptr[HALO_X2]);
    dev->ops->release(dev, ptr[HALO_Y]);
    dev->ops->close(dev);
}

/* ---------------------------------------------------------------------------------------------------- loss scaling */

/* One dense layer: y = w x + b; the gradient of w is 2 (y - t) x. */
static halo_network *line(void)
{
    halo_network *net;
    const int64_t one[3] = {1, 1, 1};
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    int layer;
    dense.outputs = 1;
    check_status(ctx, halo_network_create(ctx, "line", 1, one, &net), "network");
    check_status(ctx, halo_network_flatten(net, 0, "flat", NULL, &layer), "flatten");
    check_status(ctx, halo_network_dense(net, layer, "fc", &dense, &layer), "dense");
    return net;
}

static void set_weight(run *r, double w)
{
    const double zero = 0;
    check_status(ctx, hl_model_set(r->model, 0, HL_MASTER, &w), "weight");
    check_status(ctx, hl_model_set(r->model, 1, HL_MASTER, &zero), "bias");
}

static double weight(const run *r)
{
    double *w = small_get(ctx, r->model, 0, HL_MASTER), v = *w;
    free(w);
    return v;
}

static halo_status step(run *r, float x, float y, hl_step_result *out)
{
    const hl_batch b = {.dtype = HALO_F32, .x = &x, .y = &y};
    const hl_step_options o = {.lr = 1, .update = true, .step = 1};
    return hl_program_train(r->program, &b, &o, out);
}

/* A difference of 2^-13 / 16 leaves 2^-26 of gradient in the output, below everything that f16 has. */
static void test_small(void)
{
    halo_network *net = line();
    hl_optim_spec plain = small_sgd(), scaled = plain;
    const float x = 1, y = 1 - 0x1p-10f;
    hl_step_result out;
    scaled.scaling = (hl_scaling){.rule = HL_SCALING_BACKOFF, .start = 0x1p20, .every = 2000};
    run without = start("cpu", HALO_F16, net, 1, &plain), with = start("cpu", HALO_F16, net, 1, &scaled);
    const hl_batch b = {.dtype = HALO_F32, .x = &x, .y = &y, .weight_sum = 0x1p18};
    const hl_step_options o = {.lr = 1, .update = true, .step = 1};
    set_weight(&without, 1);
    set_weight(&with, 1);
    check_status(ctx, hl_program_train(without.program, &b, &o, &out), "step");
    tap_ok(weight(&without) == 1, "f16 without a scale: the gradient 2^-27 vanishes");
    check_status(ctx, hl_program_train(with.program, &b, &o, &out), "step");
    tap_ok(weight(&with) == (double)(1 - 0x1p-27f) || fabs(weight(&with) - (1 - 0x1p-27)) < 0x1p-24, "with one: stepped by 2^-27 to the rounding of f32");
    tap_ok(fabs(out.grad_norm - 0x1p-27 * sqrt(2)) < 0x1p-36, "its norm is that of the unscaled gradient: %.3g", out.grad_norm);
    end(&without);
    end(&with);
    halo_network_destroy(net);
}

/* Overflows until the scale fits; the weights stand still meanwhile. Then it doubles after `every` steps. */
static void test_backoff(void)
{
    halo_network *net = line();
    hl_optim_spec optim = small_sgd();
    hl_step_result out;
    int skipped = 0;
    optim.scaling = (hl_scaling){.rule = HL_SCALING_BACKOFF, .start = 0x1p24, .every = 3};
    run r = start("cpu", HALO_F16, net, 1, &optim);
    set_weight(&r, 0);
    bool still = true;
    for (;; skipped++) { /* 2 (0 - 1) scale must be below 65520: 2^14 */
        check_status(ctx, step(&r, 1, 1, &out), "step");
        if (!out.skipped) break;
        still = still && weight(&r) == 0;
    }
    tap_ok(skipped == 10 && out.loss_scale == 0x1p14, "from 2^24 to 2^14 in ten steps (%d, %g)", skipped, out.loss_scale);
    tap_ok(still, "that changed nothing");
    tap_ok(weight(&r) == 2, "and then the step as without a scale: %g", weight(&r));
    tap_ok(hl_model_steps(r.model) == 1, "skipped steps are not counted as steps of the optimiser");
    for (int i = 0; i < 2; i++) check_status(ctx, step(&r, 0x1p-4f, 2.125f, &out), "step");
    tap_ok(hl_model_scaler(r.model).scale == 0x1p15, "after three steps it doubles: %g", hl_model_scaler(r.model).scale);
    end(&r);
    halo_network_destroy(net);
}

/* log2 of the largest gradient is normal: a fraction of 0.001 of the steps overflows once the averages are there, and most of the range is used. */
static void test_logmax(void)
{
    const hl_scaling rule = {.rule = HL_SCALING_LOGMAX, .start = 0x1p24};
    hl_scaler s = hl_scaler_begin(&rule);
    const double mean = 3, deviation = 1.5;
    int overflows = 0, first = 0;
    double used = 0;
    for (int i = 0; i < 40000; i++) {
        double x = mean + deviation * hl_rng_normal(5, 0, (uint64_t)i, 0);
        bool over = x + log2(s.scale) >= 16;
        if (over)
            hl_scaler_overflows(&rule, &s);
        else
            hl_scaler_fits(&rule, &s, exp2(x));
        if (i < 10000)
            first += over;
        else {
            overflows += over;
            used += log2(s.scale) / 30000;
        }
    }
    tap_ok(overflows >= 3 && overflows <= 60, "logmax: %d of 30000 steps overflow (a normal tail of 3.09 deviations, and scales are powers of 2: 10 to 30)", overflows);
    tap_ok(used > 16 - mean - 3.09 * deviation - 1.5 && used < 16 - mean - 3.09 * deviation + 0.5, "its scale is 2^%.2f on average: 2^%.2f is asked", used,
           16 - mean - 3.09 * deviation);
    tap_ok(first < 200, "from 2^24 on it gets there: %d overflows in the first 10000", first);
    double calm = s.scale;
    for (int i = 0; i < 2000; i++) hl_scaler_fits(&rule, &s, exp2(mean - 8));
    tap_ok(s.scale > calm * 4, "gradients that become smaller are scaled more: %g, then %g", calm, s.scale);
}

/* What no scale can help is an error that says so, and what it finds is left as it is. */
static void test_hopeless(void)
{
    halo_network *net = line();
    hl_optim_spec optim = small_sgd();
    hl_step_result out;
    optim.scaling = (hl_scaling){.rule = HL_SCALING_BACKOFF, .start = 4, .every = 2000};
    run r = start("cpu", HALO_F16, net, 1, &optim);
    set_weight(&r, 0.5);
    tap_ok(step(&r, 1e5f, 1, &out) == HALO_ERR_NONFINITE && strstr(halo_error_message(ctx), "65504"), "an input of 1e5: %s", halo_error_message(ctx));
    tap_ok(weight(&r) == 0.5, "the weights are as they were");
    set_weight(&r, 4);
    tap_ok(step(&r, 3e4f, 1, &out) == HALO_ERR_NONFINITE && strstr(halo_error_message(ctx), "fc"), "an output of 1.2e5: %s", halo_error_message(ctx));
    set_weight(&r, 0);
    halo_status st = HALO_OK;
    int steps = 0;
    for (; st == HALO_OK && steps < 10; steps++) st = step(&r, 1, 6e4f, &out);
    tap_ok(st == HALO_ERR_NONFINITE && steps == 3, "a gradient of 1.2e5 with the loss times 4, 2, 1: %s", halo_error_message(ctx));
    tap_ok(weight(&r) == 0, "the weights are as they were");
    end(&r);
    halo_network_destroy(net);
    net = line();
    optim.scaling.rule = HL_SCALING_NONE;
    r = start("cpu", HALO_BF16, net, 1, &optim);
    set_weight(&r, 4);
    tap_ok(step(&r, 1e5f, 1, &out) == HALO_OK && isfinite(out.loss), "bf16 holds both");
    end(&r);
    halo_network_destroy(net);
}

/* ------------------------------------------------------------------------------------------------- large volumes */

/* More than 1e5 cells: a sum over them leaves the range of f16, and every whole number above 2048 its digits; a norm, a mean over the whole volume and a loss per
 * cell must come through. */
static halo_network *volume(void)
{
    halo_network *net;
    const int64_t extent[3] = {48, 48, 48};
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    int layer;
    for (int k = 0; k < 3; k++) conv.kernel[k] = 1;
    conv.filters = 4;
    check_status(ctx, halo_network_create(ctx, "volume", 1, extent, &net), "network");
    check_status(ctx, halo_network_conv(net, 0, "conv", &conv, &layer), "conv");
    check_status(ctx, halo_network_norm(net, layer, "norm", &norm, &layer), "norm");
    conv.filters = 1;
    check_status(ctx, halo_network_conv(net, layer, "out", &conv, &layer), "out");
    return net;
}

static void test_volume(halo_dtype type, double tolerance)
{
    halo_network *net = volume();
    const hl_optim_spec sgd = small_sgd();
    small_data d = small_fill(net, 1, 3);
    const int64_t cells = 48 * 48 * 48;
    for (int64_t i = 0; i < cells; i++) d.x[i] += 100; /* their sum is 1.1e7 */
    run wide = start("cpu", HALO_F32, net, 1, &sgd), narrow = start("cpu", type, net, 1, &sgd);
    double a = small_step(ctx, narrow.program, &d), b = small_step(ctx, wide.program, &d);
    int64_t n;
    double *g = gradients(&narrow, &n), *h = gradients(&wide, &n);
    double error = fabs(a - b) / b;
    tap_ok(error <= tolerance, "%s: the loss of %" PRId64 " cells whose sum is 1.1e7: %.1e from f32", hl_dtype_name(type), cells, error);
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite = finite && isfinite(g[i]);
    tap_ok(finite, "its gradients are finite");
    free(g);
    free(h);
    end(&wide);
    end(&narrow);
    small_free(&d);
    halo_network_destroy(net);
}

int main(void)
{
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    static const char *const backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        test_add(backends[i], HALO_F16);
        test_add(backends[i], HALO_BF16);
        test_beside(backends[i], HALO_F16, 2e-3);
        test_beside(backends[i], HALO_BF16, 1.5e-2);
    }
    test_small();
    test_backoff();
    test_logmax();
    test_hopeless();
    test_volume(HALO_F16, 2e-3);
    test_volume(HALO_BF16, 2e-2);
    halo_context_destroy(ctx);
    return tap_done();
}
