/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradients of whole programs against finite differences, in double on the reference backend: for every
 * parameter of every small network the slope of the loss along a random direction, (L(w + e d) - L(w - e d))
 * / 2 e, equals <dw, d>. Everything that a program does to form a gradient is in it: sums over consumers,
 * margins, fused activations, in-place ops, shared storage.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

#include "base/rng.h"

static const double step_size = 1e-6, tolerance = 2e-7;

typedef struct rig {
    halo_context *ctx;
    halo_device *dev;
    halo_network *net;
    hl_model *model;
    hl_program *program;
    small_data data;
} rig;

static double loss_at(rig *r, int param, const double *w, const double *d, double e, int64_t n)
{
    double *moved = check_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n; i++) moved[i] = w[i] + e * d[i];
    check_status(r->ctx, hl_model_set(r->model, param, HL_MASTER, moved), "moving a parameter");
    free(moved);
    return small_step(r->ctx, r->program, &r->data);
}

/* Of length 1, so that few activations cross their kink on the way. */
static void unit_direction(double *d, int64_t n, uint64_t stream)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        d[i] = hl_rng_normal(11, HL_STREAM_TEST, (uint64_t)i, stream);
        square += d[i] * d[i];
    }
    for (int64_t i = 0; i < n; i++) d[i] /= sqrt(square);
}

/* |finite difference - <dw, d>| over the size of the two and a floor. */
static double error_of(rig *r, int param, int64_t n)
{
    double *w = small_get(r->ctx, r->model, param, HL_MASTER), *g, *d = check_alloc(n, sizeof(double)),
           dot = 0;
    small_step(r->ctx, r->program, &r->data);
    g = small_get(r->ctx, r->model, param, HL_GRADIENT);
    unit_direction(d, n, (uint64_t)param);
    for (int64_t i = 0; i < n; i++) dot += g[i] * d[i];
    double slope =
        (loss_at(r, param, w, d, step_size, n) - loss_at(r, param, w, d, -step_size, n)) / (2 * step_size);
    check_status(r->ctx, hl_model_set(r->model, param, HL_MASTER, w), "moving back");
    free(w);
    free(g);
    free(d);
    return fabs(slope - dot) / fmax(fabs(slope), 1e-2);
}

static void check_network(halo_context *ctx, halo_device *dev, const small_network *s,
                          hl_compile_options options, hl_compile_switches off, const char *how)
{
    rig r = {.ctx = ctx, .dev = dev, .net = small_build(ctx, s)};
    hl_optim_spec sgd = small_sgd();
    const hl_param_info *list;
    check_status(ctx, hl_model_create(ctx, dev, r.net, &sgd, &r.model), "model");
    check_status(ctx, hl_compile_with(r.model, &options, off, &r.program), s->name);
    r.data = small_fill(r.net, options.batch, 7);
    int n = hl_model_params(r.model, &list), live = 0;
    double worst = 0;
    const char *where = "";
    for (int i = 0; i < n; i++) {
        if (!list[i].trainable) continue;
        double e = error_of(&r, i, list[i].count);
        live++;
        if (e <= worst) continue;
        worst = e;
        where = list[i].name;
    }
    tap_ok(live > 0 && worst <= tolerance,
           "%s%s: gradients of %d parameters agree with finite differences: %.1e (%s)", s->name, how, live,
           worst, where);
    small_free(&r.data);
    hl_program_destroy(r.program);
    hl_model_destroy(r.model);
    halo_network_destroy(r.net);
}

int main(void)
{
    halo_context *ctx;
    halo_device *dev;
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    const halo_device_options f64 = {.compute = HALO_F64};
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &dev), "device");
    for (const small_network *s = small_networks; s->name; s++) {
        hl_compile_options options = small_options(2);
        check_network(ctx, dev, s, options, (hl_compile_switches){0}, "");
        dev->wants_margins = !dev->wants_margins;
        options.loss = HALO_LOSS_HUBER;
        options.batch = 3;
        options.accumulate = true;
        check_network(ctx, dev, s, options, (hl_compile_switches){.no_fuse = true},
                      ", other margins, unfused, accumulating");
        dev->wants_margins = !dev->wants_margins;
    }
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
