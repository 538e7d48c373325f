/* SPDX-License-Identifier: Apache-2.0 */
/*
 * views.c -- concatenations without copies: FC-DenseNet and the 3D U-Net have none left on the cpu backend, forward and backward; the bits of losses and weights are those of programs that
 * copy, in whole and when parts are made anew in slabs; less memory is needed. And where a piece has to be copied, explain says why.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

enum { STEPS = 3 };

static halo_context *ctx;
static halo_device *dev;

typedef struct trained {
    halo_network *net;
    hl_model *model;
    hl_program *program;
    hl_program_info info;
    double loss[STEPS];
} trained;

static trained start(halo_network *net, const hl_compile_options *options, hl_compile_switches off)
{
    hl_optim_spec sgd = small_sgd();
    trained t = {.net = net};
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &t.model), net->name);
    check_status(ctx, hl_compile_with(t.model, options, off, &t.program), net->name);
    hl_program_info_get(t.program, &t.info);
    return t;
}

static trained train(halo_network *net, const hl_compile_options *options, hl_compile_switches off)
{
    trained t = start(net, options, off);
    small_data d = small_fill(net, options->batch, 3);
    for (int i = 0; i < STEPS; i++) {
        const hl_step_options step = {.lr = 1e-3, .seed = 4, .step = (uint64_t)i, .update = true};
        hl_step_result r;
        check_status(ctx, hl_program_train(t.program, &d.batch, &step, &r), net->name);
        t.loss[i] = r.loss;
    }
    small_free(&d);
    return t;
}

static void end(trained *t)
{
    hl_program_destroy(t->program);
    hl_model_destroy(t->model);
}

static bool same_bits(const trained *a, const trained *b)
{
    return isfinite(a->loss[STEPS - 1]) && memcmp(a->loss, b->loss, sizeof(a->loss)) == 0 && small_equal(ctx, a->model, b->model);
}

/* Steps that copy a piece of a concatenation. */
static int copies(const hl_program *p)
{
    int n = 0;
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        n += s->kind == HL_STEP_OP && s->desc.kind == HALO_OP_COPY && s->layer >= 0 && hl_layer_of(p, s->layer)->kind == HL_LAYER_CONCAT;
    }
    return n;
}

static halo_network *dense_net(int64_t growth, bool periodic, bool deep)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    o.growth = growth, o.channels = 5, o.periodic = periodic;
    o.extents[0] = deep ? 8 : 1, o.extents[1] = o.extents[2] = deep ? 8 : 16;
    check_status(ctx, halo_network_zoo(ctx, "fcdensenet", &o, &net), "fcdensenet");
    return net;
}

static halo_network *u_net(void)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    o.first_channels = 16, o.levels = 3;
    for (int a = 0; a < 3; a++) o.extents[a] = 8;
    check_status(ctx, halo_network_zoo(ctx, "unet3d", &o, &net), "unet3d");
    return net;
}

static void check_network(halo_network *net, const char *name, int most_slabs)
{
    hl_compile_options options = small_options(2);
    trained with = train(net, &options, (hl_compile_switches){0}), without = train(net, &options, (hl_compile_switches){.no_views = true});
    tap_ok(copies(with.program) == 0 && with.info.copied == 0 && with.info.joined == copies(without.program) && with.info.joined > 0, "%s: all of %d pieces are written where they are joined", name,
           with.info.joined);
    hl_str text = {0};
    check_status(ctx, hl_program_print(with.program, &text), name);
    tap_ok(strstr(text.s, "pieces written where they are joined, 0 copied"), "%s: explain says so", name);
    hl_str_free(&text);
    tap_ok(same_bits(&with, &without), "%s: the bits of a program that copies", name);
    tap_ok(with.info.activation_bytes < without.info.activation_bytes, "%s: %.2f of the memory for activations", name, (double)with.info.activation_bytes / (double)without.info.activation_bytes);
    end(&without);
    for (int slabs = 1; slabs <= most_slabs; slabs += 2) {
        trained anew = train(net, &options, (hl_compile_switches){.slabs = slabs});
        double e = fabs(anew.loss[STEPS - 1] - with.loss[STEPS - 1]) / fabs(with.loss[STEPS - 1]);
        tap_ok(e <= 2e-5, "%s: what can be made anew is, in %d slabs, %d pieces still without a copy: losses to %.1e", name, slabs, anew.info.joined, e);
        end(&anew);
    }
    options.training = false;
    trained evaluation = start(net, &options, (hl_compile_switches){0});
    tap_ok(copies(evaluation.program) == 0, "%s: none in evaluation, either", name);
    end(&evaluation);
    halo_network_destroy(net);
}

/* Published variants, the first two of them (the largest takes seconds for its weights alone). */
static void check_published(void)
{
    for (int v = 0; v < 2; v++) {
        halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
        hl_compile_options options = small_options(1);
        halo_network *net;
        o.variant = halo_network_zoo_variant(2, v);
        o.channels = 64, o.extents[0] = 1, o.extents[1] = o.extents[2] = 64;
        options.after = "choose";
        check_status(ctx, halo_network_zoo(ctx, "fcdensenet", &o, &net), o.variant);
        trained t = start(net, &options, (hl_compile_switches){0});
        tap_ok(t.info.joined == 132 && copies(t.program) == 0, "fcdensenet %s: %d pieces, no copy", o.variant, t.info.joined);
        end(&t);
        halo_network_destroy(net);
    }
}

static void check_fallback(halo_network *net, const char *name, const char *why)
{
    hl_compile_options options = small_options(2);
    hl_str text = {0};
    trained with = train(net, &options, (hl_compile_switches){0}), without = train(net, &options, (hl_compile_switches){.no_views = true});
    check_status(ctx, hl_program_print(with.program, &text), name);
    tap_ok(with.info.copied == copies(with.program) && with.info.copied > 0 && strstr(text.s, why), "%s: %d joined, %d copied: %s", name, with.info.joined, with.info.copied, why);
    tap_ok(same_bits(&with, &without), "%s: the same bits", name);
    hl_str_free(&text);
    end(&with);
    end(&without);
    halo_network_destroy(net);
}

int main(void)
{
    const halo_device_options cpu = {.threads = 1};
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "cpu", &cpu, &dev), "device");
    check_network(dense_net(16, false, false), "fcdensenet of images", 3);
    check_network(dense_net(16, false, true), "fcdensenet of volumes", 0);
    check_network(u_net(), "unet3d", 1);
    check_published();
    check_fallback(dense_net(16, true, false), "periodic fcdensenet", "there is a margin around it");
    check_fallback(dense_net(12, false, false), "fcdensenet of growth 12", "inside a block of channels");
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
