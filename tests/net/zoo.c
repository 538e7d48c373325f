/* SPDX-License-Identifier: Apache-2.0 */
/* zoo.c -- the zoo against what was published: parameters, the output of each layer, constants; and sizes
 * that are refused. */
#include "base/str.h"
#include "net/graph.h"
#include "tests/tap.h"

#include <stdio.h>

static halo_context *ctx;

static halo_network *grow(const char *variant, int64_t size, int64_t channels, bool batch_norm,
                          const char *wiring)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net = NULL;
    o.variant = variant;
    o.channels = channels;
    o.batch_norm = batch_norm;
    o.wiring = wiring;
    for (int d = 0; d < 3; d++) o.extents[d] = size;
    return halo_network_zoo(ctx, "cosmoflow", &o, &net) == HALO_OK ? net : NULL;
}

static void check_counts(void)
{
    static const struct {
        const char *variant;
        int64_t size, channels;
        bool batch_norm;
        int64_t parameters;
    } rows[] = {
        {NULL, 0, 0, false, 7041443},
        {"sc18", 128, 1, false, 7041443},
        {"sc18", 64, 1, false, 7041443},
        {"sc18", 32, 1, false, 3371427},
        {"sc18", 128, 4, false, 7041443 + 3 * 16 * 27},
        {"mlperf", 0, 0, false, 8907556},
        {"mlperf", 32, 4, false, 1337380},
        {"mlperf", 64, 4, false, 3270948},
        {"mlperf", 128, 4, false, 8907556},
        {"mlperf", 256, 4, false, 15985956},
        {"mlperf", 512, 4, false, 23064356},
        {"mlperf", 128, 1, false, 8907556 - 3 * 32 * 27},
        {"hybrid", 0, 0, false, 9437636},
        {"hybrid", 16, 4, false, 9437636},
        {"hybrid", 32, 4, false, 9437636},
        {"hybrid", 64, 4, false, 9437636},
        {"hybrid", 128, 4, false, 9437636},
        {"hybrid", 256, 4, false, 9437636},
        {"hybrid", 512, 4, false, 9437636},
        {"hybrid", 128, 4, true, 9439652},
        {"hybrid", 32, 4, true, 9439652},
        {"sc18", 128, 1, true, 7041443 + 1008},
        {"mlperf", 128, 4, true, 8907556 + 992}, /* beta for bias, gamma besides */
    };
    for (size_t i = 0; i < HL_COUNT(rows); i++) {
        halo_network *net = grow(rows[i].variant, rows[i].size, rows[i].channels, rows[i].batch_norm, NULL);
        int64_t got = net ? halo_network_parameters(net) : -1;
        tap_ok(got == rows[i].parameters, "%s %d^3, %d channels%s: %d parameters",
               rows[i].variant ? rows[i].variant : "default", (int)rows[i].size, (int)rows[i].channels,
               rows[i].batch_norm ? ", batch norm" : "", (int)got);
        halo_network_destroy(net);
    }
}

/* Forward operations of convolutions and transposed ones. */
static double window_flops(const halo_network *net)
{
    double flops = 0;
    for (int i = 0; net && i < net->layers; i++) {
        const hl_layer *l = &net->layer[i], *x = &net->layer[l->input[0]];
        if (l->kind != HL_LAYER_CONV && l->kind != HL_LAYER_CONV_TRANSPOSE) continue;
        const hl_layer *small = l->kind == HL_LAYER_CONV ? l : x;
        const int64_t *k = l->window.kernel;
        flops += 2.0 * (double)(x->out[0] * l->out[0] * k[0] * k[1] * k[2]) * (double)(small->out[1] * small->out[2] * small->out[3]);
    }
    return flops;
}

static halo_network *unet(const char *variant, int64_t size, int64_t channels, int64_t outputs, int64_t levels, int64_t first)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net = NULL;
    o.variant = variant, o.channels = channels, o.outputs = outputs, o.levels = levels, o.first_channels = first;
    for (int d = 0; d < 3; d++) o.extents[d] = size;
    return halo_network_zoo(ctx, "unet3d", &o, &net) == HALO_OK ? net : NULL;
}

/* Convolutions and transposed ones, their forward operations, and the trainable numbers: those of Oyama et al.'s network. */
static void check_unet(void)
{
    static const struct { const char *variant; int64_t size, channels, outputs, levels, first, parameters; } rows[] = {
        {NULL, 128, 0, 0, 0, 0, 19070563},      {"group", 64, 1, 3, 4, 32, 19070563}, {"instance", 64, 1, 3, 4, 32, 19070563},
        {"batch", 64, 4, 3, 0, 0, 19070563 + 3 * 27 * 32}, {"batch", 64, 1, 5, 0, 0, 19070563 + 2 * 65}, {"batch", 8, 1, 2, 2, 8, 0}};
    for (size_t i = 0; i < HL_COUNT(rows); i++) {
        halo_network *net = unet(rows[i].variant, rows[i].size, rows[i].channels, rows[i].outputs, rows[i].levels, rows[i].first);
        int64_t got = net ? halo_network_parameters(net) : -1;
        tap_ok(net && (rows[i].parameters == 0 || got == rows[i].parameters), "unet3d %s, %d channels, %d classes: %d parameters", rows[i].variant ? rows[i].variant : "default",
               (int)rows[i].channels, (int)rows[i].outputs, (int)got);
        halo_network_destroy(net);
    }
    halo_zoo_options linear = HALO_ZOO_OPTIONS_INIT;
    halo_network *net = NULL;
    linear.trilinear = true;
    bool made = halo_network_zoo(ctx, "unet3d", &linear, &net) == HALO_OK;
    tap_ok(made && halo_network_parameters(net) == 19070563 - 8 * (512 * 512 + 256 * 256 + 128 * 128), "unet3d with linear upsampling: %d parameters", made ? (int)halo_network_parameters(net) : 0);
    halo_network_destroy(net);
    linear.periodic = true;
    tap_ok(halo_network_zoo(ctx, "unet3d", &linear, &net) == HALO_ERR_UNSUPPORTED, "unet3d: %s", halo_error_message(ctx));
    net = unet(NULL, 128, 0, 0, 0, 0);
    double flops = window_flops(net);
    int layers = 0;
    for (int i = 0; net && i < net->layers; i++) layers += net->layer[i].kind == HL_LAYER_CONV || net->layer[i].kind == HL_LAYER_CONV_TRANSPOSE;
    tap_ok(layers == 18 && fabs(flops * 1e-12 - 3.91) < 0.01, "unet3d 128^3: %d convolutions, %.3f TF forward", layers, flops * 1e-12);
    halo_network_destroy(net);
    tap_ok(!unet(NULL, 20, 0, 0, 0, 0) && strstr(halo_error_message(ctx), "multiples of 8"), "unet3d: %s", halo_error_message(ctx));
    tap_ok(!unet("group", 64, 0, 0, 0, 12) && strstr(halo_error_message(ctx), "multiple of 8 groups"), "unet3d: %s", halo_error_message(ctx));
}

/* Weights in millions and operations of a step (three times forward) in TF, to the digits that were published with the table of variants. */
static void check_fcdensenet(void)
{
    static const struct { const char *variant, *weights, *teraflops; } rows[] = {{"64-3", "6.0", "2.5"},   {"64-5", "15.8", "6.6"},   {"128-3", "22.9", "8.0"},
                                                                                 {"128-5", "59.8", "21.3"}, {"256-3", "89.1", "28.3"}, {"256-5", "233", "74.7"}};
    for (size_t i = 0; i < HL_COUNT(rows); i++) {
        halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
        halo_network *net = NULL;
        char weights[16], teraflops[16];
        o.variant = rows[i].variant;
        (void)(halo_network_zoo(ctx, "fcdensenet", &o, &net));
        snprintf(weights, sizeof(weights), strchr(rows[i].weights, '.') ? "%.1f" : "%.0f", 1e-6 * (double)halo_network_parameters(net));
        snprintf(teraflops, sizeof(teraflops), "%.1f", 3e-12 * window_flops(net));
        const hl_layer *last = net ? &net->layer[net->layers - 1] : NULL;
        tap_ok(strcmp(weights, rows[i].weights) == 0 && strcmp(teraflops, rows[i].teraflops) == 0, "fcdensenet %s: %s million weights, %s TF a step", o.variant, weights, teraflops);
        tap_ok(last && last->out[0] == 1 && last->out[1] == 1 && last->out[2] == 512 && last->out[3] == 512 && hl_graph_check(net) == HALO_OK, "an image of 512 x 512 comes out, and no layer is unused");
        halo_network_destroy(net);
    }
}

/* What may be chosen, by its count: k^2 K^2 for each pair of k channels that are joined by a convolution, biases and norms. */
static void check_dense(void)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net = NULL;
    int dropouts = 0;
    o.growth = 4, o.kernel = 5, o.stem = 6, o.up_kernel = 2, o.no_dropout = true, o.channels = 3, o.outputs = 2, o.block[0] = 1, o.block[1] = 2, o.block[2] = 1;
    o.extents[0] = 1, o.extents[1] = 8, o.extents[2] = 10;
    const int64_t stem = 3 * 6 * 25 + 6, down = 6 * 4 * 25 + 4 + 2 * 10 + 10 * 10, bottom = (10 + 14) * 4 * 25 + 8, up = 8 * 8 * 4 + 18 * 4 * 25 + 4, head = 22 * 2 + 2;
    (void)(halo_network_zoo(ctx, "fcdensenet", &o, &net));
    for (int i = 0; net && i < net->layers; i++) dropouts += net->layer[i].kind == HL_LAYER_DROPOUT;
    tap_ok(net && dropouts == 0 && halo_network_parameters(net) == stem + down + bottom + up + head, "fcdensenet of three blocks: %d parameters", (int)halo_network_parameters(net));
    halo_network_destroy(net);
    o.extents[0] = 4, o.no_dropout = false, net = NULL;
    (void)(halo_network_zoo(ctx, "fcdensenet", &o, &net));
    tap_ok(net && net->layer[net->layers - 1].out[1] == 4 && net->layer[1].window.kernel[0] == 5, "of volumes its windows are volumes");
    halo_network_destroy(net);
    o.block[1] = o.block[2] = 0, o.extents[1] = 7, net = NULL;
    (void)(halo_network_zoo(ctx, "fcdensenet", &o, &net));
    tap_ok(net && net->layer[net->layers - 1].out[2] == 7, "one block alone takes any extents");
    halo_network_destroy(net);
}

/* periodic turns every padding that the variant has, and none that it has not; no_dropout leaves out that and nothing else. */
static void check_options(const char *variant)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *plain = grow(variant, 32, 1, false, NULL), *net = NULL;
    o.variant = variant, o.channels = 1, o.periodic = o.no_dropout = true;
    for (int d = 0; d < 3; d++) o.extents[d] = 32;
    bool right = plain && halo_network_zoo(ctx, "cosmoflow", &o, &net) == HALO_OK;
    int padded = 0, dropouts = 0;
    for (int i = 0; right && i < net->layers; i++) {
        const hl_layer *l = &net->layer[i];
        dropouts += l->kind == HL_LAYER_DROPOUT;
        if (l->kind == HL_LAYER_CONV || (l->kind == HL_LAYER_POOL && strcmp(variant, "hybrid") == 0))
            right = l->padding[0] == HALO_PAD_PERIODIC && l->padding[2] == HALO_PAD_PERIODIC, padded++;
    }
    right = right && padded > 0 && dropouts == 0 && plain->layers > net->layers;
    tap_ok(right && halo_network_parameters(net) == halo_network_parameters(plain), "%s: periodic, without dropout", variant);
    halo_network_destroy(plain);
    halo_network_destroy(net);
}

/* Extents of the convolutions and pools in order, as "126 63 60 ...", and of the flatten. */
static void check_extents(const char *variant, const char *wiring, int64_t size, const char *want,
                          int64_t features)
{
    halo_network *net = grow(variant, size, 0, false, wiring);
    hl_str got = {0};
    int64_t flat = 0;
    bool cubes = true;
    for (int i = 0; net && i < net->layers; i++) {
        const hl_layer *l = &net->layer[i];
        if (l->kind == HL_LAYER_FLATTEN) flat = l->out[0] * l->rows;
        if (l->kind != HL_LAYER_CONV && l->kind != HL_LAYER_POOL) continue;
        hl_str_addf(&got, "%s%s%d", got.len ? " " : "", l->kind == HL_LAYER_POOL ? "p" : "", (int)l->out[1]);
        cubes = cubes && l->out[1] == l->out[2] && l->out[2] == l->out[3];
    }
    tap_ok(net && cubes && flat == features && strcmp(got.s, want) == 0, "%s %d^3: %s", variant, (int)size,
           got.s ? got.s : halo_error_message(ctx));
    hl_str_free(&got);
    halo_network_destroy(net);
}

static void check_all_extents(void)
{
    check_extents("sc18", NULL, 128, "126 p63 60 p30 27 p13 6 4 3 2", 2048);
    check_extents("sc18", "paper", 64, "62 59 p29 26 p13 6 4 3 2", 2048);
    check_extents("sc18", NULL, 32, "30 27 24 p12 5 3 2 1", 256);
    check_extents("sc18", NULL, 108, "106 p53 50 p25 22 p11 5 3 2 1", 256);
    check_extents("sc18", NULL, 55, "53 50 p25 22 p11 5 3 2 1", 256);
    check_extents("sc18", NULL, 30, "28 25 22 p11 5 3 2 1", 256);
    check_extents("sc18", NULL, 19, "17 14 11 5 3 2 1", 256);
    check_extents("sc18", "as-run", 128, "126 p63 60 p30 14 12 10 9 8", 131072);
    check_extents("mlperf", NULL, 128, "128 p64 64 p32 32 p16 16 p8 8 p4", 32768);
    check_extents("mlperf", NULL, 32, "32 p16 16 p8 8 p4", 8192);
    check_extents("hybrid", NULL, 512, "512 p256 256 p128 128 p64 32 p16 16 p8 8 p4 4 p2", 2048);
    check_extents("hybrid", NULL, 256, "256 p128 128 p64 64 p32 16 p8 8 p4 4 p2 2", 2048);
    check_extents("hybrid", NULL, 128, "128 p64 64 p32 32 p16 8 p4 4 p2 2 2", 2048);
    check_extents("hybrid", NULL, 64, "64 p32 32 p16 16 p8 4 p2 2 2 2", 2048);
    check_extents("hybrid", NULL, 32, "32 p16 16 p8 8 p4 2 2 2 2", 2048);
    check_extents("hybrid", NULL, 16, "16 p8 8 p4 4 2 2 2 2", 2048);
}

/* Forward operations per sample, two for a multiply-add, of convolutions and dense layers, in GF: the tables
 * of the three publications. */
static void check_flops(const char *variant, const char *wiring, int64_t size, double want)
{
    halo_network *net = grow(variant, size, 0, false, wiring);
    double flops = 0;
    for (int i = 0; net && i < net->layers; i++) {
        const hl_layer *l = &net->layer[i];
        const int64_t *in = net->layer[l->input[0]].out, *k = l->window.kernel;
        double outputs = (double)(l->out[0] * l->out[1] * l->out[2] * l->out[3] * l->rows);
        if (l->kind == HL_LAYER_CONV) flops += 2 * outputs * (double)(in[0] * k[0] * k[1] * k[2]);
        if (l->kind == HL_LAYER_DENSE) flops += 2 * outputs * (double)in[0];
    }
    tap_ok(fabs(flops * 1e-9 - want) <= 5e-4 * want, "%s %d^3 %s: %.2f GF forward", variant, (int)size,
           wiring ? wiring : "", flops * 1e-9);
    halo_network_destroy(net);
}

static bool all_of(const halo_network *net, hl_layer_kind kind, halo_act act, double number)
{
    int found = 0;
    for (int i = 0; i < net->layers; i++) {
        const hl_layer *l = &net->layer[i];
        if (l->kind != kind || (kind == HL_LAYER_ACT && l->act != act)) continue;
        found++;
        double has = kind == HL_LAYER_DROPOUT ? l->keep : kind == HL_LAYER_ACT ? l->slope : l->init_bias;
        if (has != number) return false;
    }
    return found > 0;
}

static void check_constants(void)
{
    halo_network *sc18 = grow("sc18", 128, 0, false, NULL), *mlperf = grow("mlperf", 128, 0, false, NULL),
                 *hybrid = grow("hybrid", 128, 0, true, NULL);
    if (!sc18 || !mlperf || !hybrid) tap_bail("the zoo is empty");
    tap_ok(all_of(sc18, HL_LAYER_ACT, HALO_ACT_LEAKY_RELU, 0.01) &&
               all_of(mlperf, HL_LAYER_ACT, HALO_ACT_LEAKY_RELU, 0.3) &&
               all_of(hybrid, HL_LAYER_ACT, HALO_ACT_LEAKY_RELU, 0.01),
           "slopes of the leaky relus");
    tap_ok(all_of(sc18, HL_LAYER_DROPOUT, 0, 0.5) && all_of(mlperf, HL_LAYER_DROPOUT, 0, 0.5) &&
               all_of(hybrid, HL_LAYER_DROPOUT, 0, 0.8),
           "dropout");
    tap_ok(all_of(sc18, HL_LAYER_CONV, 0, 0.1) && all_of(sc18, HL_LAYER_DENSE, 0, 0.1) &&
               all_of(mlperf, HL_LAYER_CONV, 0, 0) && all_of(hybrid, HL_LAYER_DENSE, 0, 0.1),
           "biases begin at 0.1, in mlperf at 0");
    const hl_layer *last = &mlperf->layer[mlperf->layers - 1];
    tap_ok(last->act == HALO_ACT_SCALE && last->slope == 1.2 && last[-1].act == HALO_ACT_TANH &&
               last->out[0] == 4,
           "mlperf ends with 1.2 tanh");
    tap_ok(sc18->layer[sc18->layers - 1].kind == HL_LAYER_DENSE &&
               sc18->layer[sc18->layers - 1].out[0] == 3 && hybrid->layer[hybrid->layers - 1].out[0] == 4,
           "sc18 and hybrid end with a dense layer of 3 and 4");
    tap_ok(sc18->layer[halo_network_find(sc18, "flatten")].channels_last &&
               mlperf->layer[halo_network_find(mlperf, "flatten")].channels_last &&
               !hybrid->layer[halo_network_find(hybrid, "flatten")].channels_last,
           "order of the flatten");
    const hl_layer *pool = &hybrid->layer[halo_network_find(hybrid, "pool1")],
                   *norm = &hybrid->layer[halo_network_find(hybrid, "norm7")];
    tap_ok(pool->pool == HALO_POOL_AVG && pool->count_pad && pool->window.kernel[0] == 3 &&
               pool->pad[0][0] == 1 && pool->pad[0][1] == 1,
           "pools of hybrid: mean of 3^3, stride 2, padding 1 counted");
    tap_ok(norm->momentum == 0.999 && norm->init_gamma == 1 && norm->eps == 1e-5, "norms of hybrid");
    tap_ok(halo_network_find(sc18, "fc1_dropout") > 0 && halo_network_find(hybrid, "fc1_dropout") > 0 &&
               halo_network_find(mlperf, "fc1_dropout") < 0 && halo_network_find(mlperf, "fc2_dropout") > 0,
           "dropout before each dense layer, in mlperf behind each");
    tap_ok(hl_graph_check(sc18) == HALO_OK && hl_graph_check(mlperf) == HALO_OK &&
               hl_graph_check(hybrid) == HALO_OK,
           "no layer is unused");
    halo_network_destroy(sc18);
    halo_network_destroy(mlperf);
    halo_network_destroy(hybrid);
}

static void refused(halo_zoo_options o, const char *name, halo_status status, const char *words)
{
    halo_network *net = NULL;
    halo_status st = halo_network_zoo(ctx, name, &o, &net);
    const char *said = st == HALO_OK ? "(accepted)" : halo_error_message(ctx);
    tap_ok(st == status && !net && strstr(said, words), "refused: %s", said);
    halo_network_destroy(net);
}

static void refuse_dense(void)
{
    const halo_zoo_options good = HALO_ZOO_OPTIONS_INIT;
    halo_zoo_options o = good;
    o.growth = 8;
    refused(o, "unet3d", HALO_ERR_USAGE, "belong to fcdensenet, not to unet3d");
    o = good, o.block[0] = o.block[1] = 2;
    refused(o, "fcdensenet", HALO_ERR_USAGE, "2 blocks; there must be one between as many");
    o = good, o.kernel = 4;
    refused(o, "fcdensenet", HALO_ERR_USAGE, "kernel is 4, must be odd, 1 to 7");
    o = good, o.keep = 1.5;
    refused(o, "fcdensenet", HALO_ERR_USAGE, "dropout keeps 1.5");
    o = good, o.batch_norm = true;
    refused(o, "fcdensenet", HALO_ERR_USAGE, "'batch_norm' is not for it");
    o = good, o.extents[0] = 1, o.extents[1] = o.extents[2] = 36;
    refused(o, "fcdensenet", HALO_ERR_SHAPE, "3 poolings needs extents that are multiples of 8, not 1 x 36 x 36");
    o = good, o.variant = "64-4";
    refused(o, "fcdensenet", HALO_ERR_USAGE, "unknown variant '64-4'");
}

static void check_refusals(void)
{
    const halo_zoo_options good = HALO_ZOO_OPTIONS_INIT;
    halo_zoo_options o = good;
    refused(o, "cosmofolw", HALO_ERR_USAGE, "unknown network 'cosmofolw', did you mean 'cosmoflow'?");
    refused(o, "xyzzyxyzzy", HALO_ERR_USAGE, "unknown network 'xyzzyxyzzy'");
    o = good, o.variant = "sc19";
    refused(o, "cosmoflow", HALO_ERR_USAGE, "unknown variant 'sc19', did you mean 'sc18'?");
    o = good, o.wiring = "as_run";
    refused(o, "cosmoflow", HALO_ERR_USAGE, "unknown wiring 'as_run', must be 'paper' or 'as-run'");
    o.wiring = "as-run", o.variant = "mlperf";
    refused(o, "cosmoflow", HALO_ERR_USAGE, "wiring 'as-run' belongs to variant sc18, not to mlperf");
    o = good, o.periodic = true;
    refused(o, "cosmoflow", HALO_ERR_USAGE, "variant sc18 has no padding that could be periodic");
    o = good, o.extents[0] = o.extents[1] = 64, o.extents[2] = 18;
    refused(o, "cosmoflow", HALO_ERR_SHAPE,
            "cosmoflow sc18 needs at least 19 cells a side, not 64 x 64 x 18");
    o.extents[2] = 0;
    refused(o, "cosmoflow", HALO_ERR_USAGE, "size 64 x 64 x 0 must be positive");
    o.extents[2] = 128, o.variant = "mlperf";
    refused(o, "cosmoflow", HALO_ERR_SHAPE,
            "cosmoflow mlperf takes cubes of 8, 16, 32 ... 4096 cells a side, not 64 x 64 x 128");
    o.extents[0] = o.extents[1] = o.extents[2] = 96;
    refused(o, "cosmoflow", HALO_ERR_SHAPE, "not 96 x 96 x 96");
    o.extents[0] = o.extents[1] = o.extents[2] = 4;
    refused(o, "cosmoflow", HALO_ERR_SHAPE, "not 4 x 4 x 4");
    o.extents[0] = o.extents[1] = o.extents[2] = 1024, o.variant = "hybrid";
    refused(o, "cosmoflow", HALO_ERR_SHAPE,
            "cosmoflow hybrid takes cubes of 8, 16, 32 ... 512 cells a side, not 1024 x 1024 x 1024");
    o = good, o.wiring = "as-run", o.extents[0] = o.extents[1] = o.extents[2] = 64;
    refused(
        o, "cosmoflow", HALO_ERR_SHAPE,
        "layer 'flatten': input 256 x 7 x 7 x 7 (C D H W) has 87808 values, no multiple of 2048 features");
    o = good, o.channels = -1;
    refused(o, "cosmoflow", HALO_ERR_USAGE, "channels is -1, must be positive");
    o = good, o.outputs = -3;
    refused(o, "cosmoflow", HALO_ERR_USAGE, "outputs is -3, must be positive");
    o = good, o.size = 1;
    refused(o, "cosmoflow", HALO_ERR_USAGE, "halo_zoo_options has size 1");
}

static void check_lists(void)
{
    int variants = 0;
    tap_ok(strcmp(halo_network_zoo_name(0), "cosmoflow") == 0 && !halo_network_zoo_name(-1) &&
               !halo_network_zoo_name(1000),
           "networks are listed");
    while (halo_network_zoo_variant(0, variants)) {
        halo_network *net = grow(halo_network_zoo_variant(0, variants++), 0, 0, false, NULL);
        tap_ok(net != NULL, "variant %s grows", halo_network_zoo_variant(0, variants - 1));
        halo_network_destroy(net);
    }
    tap_ok(variants == 3 && !halo_network_zoo_variant(0, -1) && !halo_network_zoo_variant(99, 0),
           "three variants are listed");
    halo_network *net = grow("sc18", 64, 1, false, NULL), *two = NULL;
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    o.outputs = 2;
    tap_ok(halo_network_zoo(ctx, "cosmoflow", &o, &two) == HALO_OK && halo_network_parameters(two) == 7041186,
           "2 outputs: 7041186 parameters");
    halo_network_destroy(net);
    halo_network_destroy(two);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    check_counts();
    check_unet();
    check_fcdensenet();
    check_dense();
    refuse_dense();
    check_all_extents();
    check_options("mlperf");
    check_options("hybrid");
    check_flops("sc18", NULL, 128, 21.30);
    check_flops("sc18", "as-run", 128, 21.04);
    check_flops("mlperf", NULL, 128, 68.86);
    check_flops("hybrid", NULL, 128, 18.525);
    check_flops("hybrid", NULL, 512, 1183.4);
    check_constants();
    check_refusals();
    check_lists();
    halo_context_destroy(ctx);
    return tap_done();
}
