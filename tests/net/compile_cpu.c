/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole programs on the cpu backend against the reference backend, both in f32, from equal weights: the first
 * loss, every gradient, and that training agrees for some steps; on every layout and instruction set that the
 * machine has. Measured and fixed choices agree; a program runs the same twice; the zoo gets no reference
 * implementation and no reorder.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

#include "base/file.h"

#include <unistd.h>

static halo_context *ctx;
static halo_device *ref;

typedef struct run {
    hl_model *model;
    hl_program *program;
} run;

static hl_optim_spec adam(void)
{
    hl_optim_spec o = {.dense_decay = -1};
    o.update =
        (halo_update_params){.kind = HALO_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-4, .lr_factor = 1};
    return o;
}

/* False where the layout cannot hold the network. */
static bool start(halo_device *dev, const halo_network *net, const hl_compile_options *options, run *r)
{
    hl_optim_spec optim = adam();
    check_status(ctx, hl_model_create(ctx, dev, net, &optim, &r->model), net->name);
    halo_status st = hl_compile(r->model, options, &r->program);
    if (st == HALO_OK) return true;
    if (st != HALO_ERR_UNSUPPORTED) check_status(ctx, st, net->name);
    hl_model_destroy(r->model);
    return false;
}

static void end(run *r)
{
    hl_program_destroy(r->program);
    hl_model_destroy(r->model);
}

/* Largest distance over the gradients. A gradient that is zero but for rounding, such as that of a bias in
 * front of a norm, is measured by the largest of all. */
static double gradients_differ(const run *a, const run *b, const char **where)
{
    double worst = 0, largest = 0;
    for (int i = 0; i < a->model->params; i++) {
        if (!a->model->param[i].trainable) continue;
        double *g = small_get(ctx, b->model, i, HL_GRADIENT);
        for (int64_t k = 0; k < a->model->param[i].count; k++) largest = fmax(largest, fabs(g[k]));
        free(g);
    }
    for (int i = 0; i < a->model->params; i++) {
        const hl_param_info *info = &a->model->param[i];
        double most = 0, size = 0;
        if (!info->trainable) continue;
        double *f = small_get(ctx, a->model, i, HL_GRADIENT), *g = small_get(ctx, b->model, i, HL_GRADIENT);
        for (int64_t k = 0; k < info->count; k++) {
            double e = fabs(f[k] - g[k]);
            if (!(e <= most)) most = e;
            size = fmax(size, fabs(g[k]));
        }
        double e = most / fmax(size, 2e-2 * largest);
        if (!(e <= worst)) {
            worst = e;
            *where = info->name;
        }
        free(f);
        free(g);
    }
    return worst;
}

static double train(const run *r, const small_data *d, int steps)
{
    hl_step_result result = {.loss = NAN};
    for (int i = 0; i < steps; i++) {
        const hl_step_options step = {.lr = 1e-3, .seed = 2, .step = (uint64_t)i, .update = true};
        check_status(ctx, hl_program_train(r->program, &d->batch, &step, &result), "a step");
    }
    return result.loss;
}

/* One batch through both. A value within rounding of an activation's kink may fall on either side of it and
 * change a gradient visibly: at most one of three batches may be that unlucky. */
static bool agree(run *a, run *b, const halo_network *net, int64_t batch, double tolerance, double *loss,
                  double *gradient, const char **where)
{
    bool good = false;
    for (int tries = 0, passed = 0; tries < 3 && passed < 2 && passed > tries - 2; tries++) {
        small_data d = small_fill(net, batch, (uint64_t)(17 + tries));
        double la = small_step(ctx, a->program, &d), lb = small_step(ctx, b->program, &d);
        *loss = fabs(la - lb) / fabs(lb);
        *gradient = gradients_differ(a, b, where);
        passed += *loss <= tolerance && *gradient <= 1e-5;
        good = passed == 2;
        small_free(&d);
    }
    return good;
}

static void compare(halo_device *dev, const char *what, const halo_network *net, hl_compile_options options,
                    double tolerance)
{
    run a, b;
    double loss, gradient;
    const char *where = "",
               *layout = options.layout == HALO_LAYOUTS ? "chosen layout" : hl_layout_name(options.layout);
    if (!start(dev, net, &options, &a)) {
        tap_ok(options.layout != HALO_LAYOUTS, "%s, %s on %s: refused: %s", net->name, layout, what,
               halo_error_message(ctx));
        return;
    }
    options.layout = HALO_LAYOUTS;
    HL_BUG_UNLESS(start(ref, net, &options, &b));
    bool good = agree(&a, &b, net, options.batch, tolerance, &loss, &gradient, &where);
    tap_ok(good, "%s, %s on %s: loss %.1e, gradients %.1e (%s)", net->name, layout, what, loss, gradient,
           where);
    if (net->layer[0].out[1] < 16) { /* the reference takes its time */
        small_data d = small_fill(net, options.batch, 17);
        double ta = train(&a, &d, 4), tb = train(&b, &d, 4);
        tap_ok(fabs(ta - tb) <= 1e-4 * fabs(tb), "%s, %s on %s: after three updates %.1e", net->name, layout,
               what, fabs(ta - tb) / fabs(tb));
        small_free(&d);
    }
    end(&a);
    end(&b);
}

static void compare_small(halo_device *dev, const char *what)
{
    for (const small_network *s = small_networks; s->name; s++) {
        halo_network *net = small_build(ctx, s);
        hl_compile_options options = small_options(3);
        compare(dev, what, net, options, 1e-6);
        for (const halo_layout *l = dev->layouts; *l != HALO_LAYOUTS; l++) {
            options.layout = *l;
            compare(dev, what, net, options, 1e-6);
        }
        halo_network_destroy(net);
    }
}

/* ---------------------------------------------------------------------------------------------------- zoo */

static halo_network *zoo(const char *variant, const char *wiring, int64_t size, bool batch_norm)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    o.variant = variant;
    o.wiring = wiring;
    o.batch_norm = batch_norm;
    for (int a = 0; a < 3; a++) o.extents[a] = size;
    check_status(ctx, halo_network_zoo(ctx, "cosmoflow", &o, &net), variant);
    return net;
}

static void inspect(halo_device *dev, halo_network *net)
{
    hl_model *model;
    hl_program *p;
    hl_program_info info;
    hl_optim_spec optim = small_sgd();
    int programs = 0;
    check_status(ctx, hl_model_create(ctx, dev, net, &optim, &model), net->name);
    for (const halo_layout *l = dev->layouts; *l != HALO_LAYOUTS; l++) {
        hl_compile_options options = small_options(1);
        options.layout = *l;
        options.after = "fit";
        if (hl_compile(model, &options, &p) != HALO_OK) {
            tap_note("%s in %s: %s", net->name, hl_layout_name(*l), halo_error_message(ctx));
            continue;
        }
        programs++;
        hl_program_info_get(p, &info);
        tap_ok(info.reorders == 0 && info.references == 0,
               "%s in %s: %d reorders, %d reference implementations of %d ops, %.1f MiB", net->name,
               hl_layout_name(*l), info.reorders, info.references, info.ops,
               (double)info.peak_bytes / 1048576.0);
        hl_program_destroy(p);
    }
    tap_ok(programs > 0, "%s has a layout", net->name);
    hl_model_destroy(model);
}

/* Of a million activations some stand on the kink whatever the batch: tanh has none. */
static void smooth(halo_network *net)
{
    for (int i = 0; i < net->layers; i++)
        if (net->layer[i].act == HALO_ACT_LEAKY_RELU) net->layer[i].act = HALO_ACT_TANH;
}

static void check_zoo(halo_device *dev)
{
    static const struct {
        const char *variant, *wiring;
        int64_t large, small;
        bool norm;
    } nets[] = {{"sc18", "paper", 128, 32, false},
                {"sc18", "as-run", 128, 0, false},
                {"mlperf", NULL, 128, 16, false},
                {"hybrid", NULL, 128, 0, false},
                {"hybrid", NULL, 64, 16, true}};
    for (size_t i = 0; i < HL_COUNT(nets); i++) {
        halo_network *net = zoo(nets[i].variant, nets[i].wiring, nets[i].large, nets[i].norm);
        inspect(dev, net);
        halo_network_destroy(net);
        if (nets[i].small == 0) continue;
        net = zoo(nets[i].variant, nets[i].wiring, nets[i].small, nets[i].norm);
        smooth(net);
        compare(dev, "cpu", net, small_options(nets[i].norm ? 2 : 1), nets[i].norm ? 1e-5 : 3e-6);
        halo_network_destroy(net);
    }
}

/* What is fused changes no sum but for an average's. */
static void check_fusion(halo_device *dev)
{
    static const char *const variants[] = {"mlperf", "sc18", "hybrid", "mlperf", "hybrid"};
    for (size_t i = 0; i < HL_COUNT(variants); i++) {
        bool norm = i >= 3;
        halo_network *net = zoo(variants[i], NULL, 32, norm);
        hl_compile_options options = small_options(1);
        hl_optim_spec optim = adam();
        small_data d = small_fill(net, 1, 23);
        double loss[2];
        size_t bytes[2];
        for (int k = 0; k < 2; k++) {
            run r;
            check_status(ctx, hl_model_create(ctx, dev, net, &optim, &r.model), net->name);
            check_status(ctx, hl_compile_with(r.model, &options, (hl_compile_switches){.no_fuse = k == 1}, &r.program), net->name);
            loss[k] = train(&r, &d, 3);
            bytes[k] = r.program->arena_bytes;
            end(&r);
        }
        double e = fabs(loss[0] - loss[1]) / fabs(loss[1]);
        tap_ok(e <= 1e-5 && bytes[0] <= bytes[1], "%s%s at 32^3, fused and not: losses of the third step differ by %.1e, %.2f of the memory", net->name,
               norm ? " with norms" : "", e, (double)bytes[0] / (double)bytes[1]);
        small_free(&d);
        halo_network_destroy(net);
    }
}

/* ------------------------------------------------------------------------------------------------ choices */

static void check_measured(halo_device *dev, const small_network *s)
{
    halo_network *net = small_build(ctx, s);
    hl_compile_options options = small_options(2);
    run fixed, measured, again;
    const char *where = "";
    char path[64];
    snprintf(path, sizeof(path), "choices-%s-%d.txt", s->name, (int)getpid());
    small_data d = small_fill(net, 2, 17);
    HL_BUG_UNLESS(start(dev, net, &options, &fixed));
    options.plan = HL_PLAN_MEASURE;
    options.plan_cache = path;
    HL_BUG_UNLESS(start(dev, net, &options, &measured));
    bool written = hl_file_exists(path);
    HL_BUG_UNLESS(start(dev, net, &options, &again));
    double a = small_step(ctx, fixed.program, &d), b = small_step(ctx, measured.program, &d),
           c = small_step(ctx, again.program, &d);
    double e = gradients_differ(&measured, &fixed, &where);
    tap_ok(fabs(a - b) <= 1e-6 * a && e <= 1e-5, "%s: measured choices compute what fixed ones do: %.1e",
           s->name, e);
    bool same =
        measured.program->steps == again.program->steps && measured.program->layout == again.program->layout;
    for (int i = 0; same && i < again.program->steps; i++)
        same = strcmp(measured.program->step[i].choice.impl, again.program->step[i].choice.impl) == 0;
    tap_ok(written && same && b == c, "%s: choices are kept in a file and read back", s->name);
    remove(path);
    end(&fixed);
    end(&measured);
    end(&again);
    small_free(&d);
    halo_network_destroy(net);
}

static void check_bad_cache(halo_device *dev)
{
    halo_network *net = small_build(ctx, &small_networks[0]);
    hl_compile_options options = small_options(2);
    hl_optim_spec optim = adam();
    hl_model *model;
    hl_program *p;
    char path[64];
    snprintf(path, sizeof(path), "choices-bad-%d.txt", (int)getpid());
    check_status(ctx, hl_model_create(ctx, dev, net, &optim, &model), "model");
    check_status(ctx, hl_file_write(ctx, path, "halo choices 1\nnonsense\n", 24), path);
    options.plan_cache = path;
    halo_status st = hl_compile(model, &options, &p);
    tap_ok(st == HALO_ERR_FORMAT && strstr(halo_error_message(ctx), "line 2"),
           "a damaged file of choices: %s", halo_error_message(ctx));
    remove(path);
    hl_model_destroy(model);
    halo_network_destroy(net);
}

static void check_repeat(halo_device *dev, const small_network *s)
{
    halo_network *net = small_build(ctx, s);
    hl_compile_options options = small_options(3);
    run a, b;
    small_data d = small_fill(net, 3, 17);
    HL_BUG_UNLESS(start(dev, net, &options, &a) && start(dev, net, &options, &b));
    double la = train(&a, &d, 5), lb = train(&b, &d, 5);
    tap_ok(la == lb && small_equal(ctx, a.model, b.model), "%s: the same bits twice", s->name);
    end(&a);
    end(&b);
    small_free(&d);
    halo_network_destroy(net);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_device *dev;
    halo_device_options options = {.threads = 2};
    static const char *const isas[] = {"generic", "avx2", "avx512f"};
    bool has = false;
    for (const halo_backend *const *b = hl_backends(); *b; b++) has = has || strcmp((*b)->name, "cpu") == 0;
    if (!has) tap_skip_all("this build has no cpu backend");
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", NULL, &ref), "device");
    check_status(ctx, hl_device_open(ctx, "cpu", &options, &dev), "device");
    check_zoo(dev);
    check_fusion(dev);
    for (const small_network *s = small_networks; s->name; s++) {
        check_measured(dev, s);
        check_repeat(dev, s);
    }
    check_bad_cache(dev);
    dev->ops->close(dev);
    for (size_t i = 0; i < HL_COUNT(isas); i++) {
        options.isa = isas[i];
        options.threads = 1;
        if (hl_device_open(ctx, "cpu", &options, &dev) != HALO_OK) {
            tap_skip("%s: %s", isas[i], halo_error_message(ctx));
            continue;
        }
        compare_small(dev, isas[i]);
        dev->ops->close(dev);
    }
    ref->ops->close(ref);
    halo_context_destroy(ctx);
    return tap_done();
}
