/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory limit never changes a result beyond rounding: losses and gradients of zoo networks at small size, stored as a whole, and with everything that can be
 * made anew in 1 (recomputation), 2, 4 and 8 slabs; in double on the reference backend, in f32 on cpu. Within limits that ask for it a program keeps to
 * the limit; one that no slabs can meet is refused. Some of it in `make check`; HALO_TEST_ECONOMY=full takes all networks on both.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

enum { STEPS = 2 };

static halo_context *ctx;
static halo_device *dev;

typedef struct network {
    const char *name, *variant;
    bool norm;
    int64_t size, channels, levels, first;
    const char *quick; /* the backend on which it is quick */
} network;

static const network networks[] = {
    {"cosmoflow", "mlperf", false, 16, 4, 0, 0, "cpu"}, {"cosmoflow", "sc18", false, 19, 1, 0, 0, ""},    {"cosmoflow", "hybrid", false, 32, 4, 0, 0, ""},
    {"cosmoflow", "hybrid", true, 16, 4, 0, 0, ""},     {"unet3d", "batch", false, 8, 1, 2, 4, "ref"},    {"unet3d", "batch", false, 16, 1, 2, 16, "cpu"},
    {"unet3d", "group", false, 8, 2, 2, 8, "ref"},      {"unet3d", "instance", false, 16, 1, 3, 4, "ref"},
};

typedef struct outcome {
    hl_program_info info;
    double loss[STEPS], *gradient;
    int64_t n;
    halo_status st;
} outcome;

static bool full(void) { return getenv("HALO_TEST_ECONOMY") != NULL; }

static halo_network *build(const network *k)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    o.variant = k->variant;
    for (int a = 0; a < 3; a++) o.extents[a] = k->size;
    o.channels = k->channels;
    o.batch_norm = k->norm;
    o.levels = k->levels;
    o.first_channels = k->first;
    check_status(ctx, halo_network_zoo(ctx, k->name, &o, &net), k->name);
    return net;
}

static void keep_gradients(hl_model *m, outcome *o)
{
    for (int i = 0; i < m->params; i++) o->n += m->param[i].trainable ? m->param[i].count : 0;
    o->gradient = check_alloc(o->n, sizeof(double));
    for (int i = 0, at = 0; i < m->params; i++) {
        if (!m->param[i].trainable) continue;
        double *g = small_get(ctx, m, i, HL_GRADIENT);
        memcpy(o->gradient + at, g, (size_t)m->param[i].count * sizeof(*g));
        at += (int)m->param[i].count;
        free(g);
    }
}

/* Two steps from the context's weights; the gradients of the first. */
static outcome train(const network *k, const hl_compile_options *options, hl_compile_switches off)
{
    halo_network *net = build(k);
    hl_optim_spec sgd = small_sgd();
    outcome o = {.n = 0};
    hl_model *m;
    hl_program *p;
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &m), k->name);
    o.st = hl_compile_with(m, options, off, &p);
    if (o.st == HALO_OK) {
        small_data d = small_fill(net, options->batch, 5);
        hl_program_info_get(p, &o.info);
        for (int i = 0; i < STEPS; i++) {
            const hl_step_options step = {.lr = 1e-3, .seed = 4, .step = (uint64_t)i, .update = true};
            hl_step_result r;
            check_status(ctx, hl_program_train(p, &d.batch, &step, &r), k->name);
            o.loss[i] = r.loss;
            if (i == 0) keep_gradients(m, &o);
        }
        small_free(&d);
        hl_program_destroy(p);
    }
    hl_model_destroy(m);
    halo_network_destroy(net);
    return o;
}

static double losses_differ(const outcome *a, const outcome *b)
{
    double most = 0;
    for (int i = 0; i < STEPS; i++) {
        double e = fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]);
        if (!(e <= most)) most = e;
    }
    return most;
}

static void check_slabs(const network *k, const outcome *plain, const char *name, double tolerance)
{
    hl_compile_options options = small_options(2);
    double loss = 0, gradient = 0;
    int fewer = 0;
    for (int slabs = 1; slabs <= (full() ? 8 : 4); slabs *= 2) {
        outcome o = train(k, &options, (hl_compile_switches){.slabs = slabs});
        check_status(ctx, o.st, name);
        double e = losses_differ(&o, plain), g = small_distance(o.gradient, plain->gradient, plain->n);
        if (!(e <= loss)) loss = e;
        if (!(g <= gradient)) gradient = g;
        fewer += o.info.slabs == slabs && o.info.flops_step >= plain->info.flops_step && o.info.plain_flops == plain->info.flops_step;
        free(o.gradient);
    }
    tap_ok(loss <= tolerance && gradient <= 10 * tolerance && fewer == (full() ? 4 : 3), "%s: made anew in 1, 2 and 4 slabs (full: 8): losses to %.1e, gradients to %.1e", name, loss,
           gradient);
}

/* Of the activations nine tenths must do; how far it goes down depends on the network. */
static void check_limits(size_t i, const network *k, const outcome *plain, const char *name, double tolerance)
{
    hl_compile_options options = small_options(2);
    double share = 1, flops = 0;
    int met = 0, wrong = 0;
    for (int tenths = 9; tenths >= 3; tenths -= full() ? 1 : 4) {
        options.memory_limit = plain->info.peak_bytes - plain->info.activation_bytes / 10 * (size_t)(10 - tenths);
        outcome o = train(k, &options, (hl_compile_switches){.free_records = true});
        if (o.st == HALO_ERR_NOMEM) break;
        check_status(ctx, o.st, name);
        wrong += o.info.peak_bytes > options.memory_limit || o.info.slabs == 0 || !(losses_differ(&o, plain) <= tolerance);
        share = (double)o.info.activation_bytes / (double)plain->info.activation_bytes;
        flops = o.info.flops_step / plain->info.flops_step;
        met++;
        free(o.gradient);
    }
    tap_ok(met > 0 && wrong == 0, "%s: keeps to %d limits, down to %.2f of its activations with %.2f times the operations", name, met, share, flops);
    if (i > 0 && !full()) return;
    options.memory_limit = 4096;
    outcome o = train(k, &options, (hl_compile_switches){0});
    tap_ok(o.st == HALO_ERR_NOMEM && strstr(halo_error_message(ctx), "at least") && strstr(halo_error_message(ctx), "the limit is"), "%s in 4 KiB: %s", name, halo_error_message(ctx));
}

static void check_on(const char *backend, bool f64, double tolerance)
{
    const halo_device_options o = {.compute = f64 ? HALO_F64 : HALO_F32};
    check_status(ctx, hl_device_open(ctx, backend, &o, &dev), backend);
    for (size_t i = 0; i < HL_COUNT(networks); i++) {
        network k = networks[i];
        char name[96];
        hl_compile_options options = small_options(2);
        if (!full() && strcmp(k.quick, backend) != 0) continue;
        snprintf(name, sizeof(name), "%s %s %" PRId64 "^3 on %s", k.name, k.variant, k.size, backend);
        outcome plain = train(&k, &options, (hl_compile_switches){0});
        check_status(ctx, plain.st, name);
        check_slabs(&k, &plain, name, tolerance);
        check_limits(i, &k, &plain, name, tolerance);
        free(plain.gradient);
    }
    dev->ops->close(dev);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_on("ref", true, 1e-10);
    check_on("cpu", false, 2e-5);
    halo_context_destroy(ctx);
    return tap_done();
}
