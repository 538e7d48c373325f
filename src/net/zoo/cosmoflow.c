/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosmoflow.c -- three published networks of one name that map a density volume to cosmological parameters:
 * convolutions with pools between them, a flatten, three dense layers. One row of the table each; what
 * differs with the input's size is in fit_*.
 *
 *   sc18    Mathuriya et al., "CosmoFlow: using deep learning to learn the universe at scale", SC 2018. Valid
 * padding throughout: 128 -> 126, pool 63 -> 60, pool 30 -> 27, pool 13 -> 6 -> 4 -> 3 -> 2. Volumes below
 * 108 lose pools from the front, so that seven convolutions still fit. wiring "as-run" is what the published
 * runs' code computed: no third pool, the stride of convolution 4 at convolution 3, so that 8^3 x 256 values
 * come to the first dense layer, as 64 rows of 2048. mlperf  MLPerf HPC CosmoFlow v1.0 on: blocks of
 * convolution, leaky relu and pool until 4^3 is left; outputs 1.2 tanh. hybrid  Oyama et al., "The case for
 * strong scaling in deep learning: training large 3D CNNs with hybrid parallelism", TPDS 2021. 4 channels;
 *           128^3 to 512^3 published; pools are left out from the end so that every size ends at 2^3 x 256.
 *
 * Options: periodic padding, for whole simulation boxes, where a variant pads at all; no dropout. With
 * batch_norm a norm stands between a convolution and its activation, whose beta does the work of the
 * convolution's bias.
 */
#include "net/zoo/zoo.h"

#include <stdio.h>

enum { MOST_STAGES = 10 };

typedef struct stage {
    int64_t filters, kernel, stride;
    bool pool;
} stage;

/* What to build, after the size was looked at. */
typedef struct recipe {
    int stages;
    stage stage[MOST_STAGES];
    int64_t features; /* of a flatten into rows, 0: one row */
} recipe;

typedef struct variant {
    const char *name;
    int64_t channels, outputs;
    halo_padding padding; /* explicit: 1 on both sides, of convolutions and pools; else pools have none */
    bool conv_bias;
    double conv_bias_init, dense_bias_init, slope, keep;
    halo_pool pool;
    int64_t pool_kernel; /* stride 2 */
    double momentum;     /* of running statistics */
    bool channels_last;  /* order of the flatten */
    int64_t dense[2];    /* outputs of the first two dense layers */
    int first_dropout;   /* dropout before this dense layer (0 to 2) and those behind it */
    bool bounded;        /* 1.2 tanh at the end */
    halo_status (*fit)(halo_context *ctx, const halo_zoo_options *o, recipe *r);
} variant;

/* ---------------------------------------------------------------------------------------------------------------
 * size */

static int64_t smallest(const int64_t e[3])
{
    return hl_min64(e[0], hl_min64(e[1], e[2]));
}

static halo_status fit_sc18(halo_context *ctx, const halo_zoo_options *o, recipe *r)
{
    static const stage paper[] = {{16, 3, 1, true},   {32, 4, 1, true},   {64, 4, 1, true},
                                  {128, 3, 2, false}, {256, 3, 1, false}, {256, 2, 1, false},
                                  {256, 2, 1, false}};
    /* least extents with all three pools, without the first, without the first two, with none */
    static const int64_t needs[] = {108, 55, 30, 19};
    int64_t least = smallest(o->extents);
    bool as_run = o->wiring && strcmp(o->wiring, "as-run") == 0;
    if (least < needs[3])
        return hl_fail(ctx, HALO_ERR_SHAPE, "cosmoflow sc18 needs at least %" PRId64 " cells a side, not %s",
                       needs[3], hl_shape_print(o->extents, 3).s);
    r->stages = (int)HL_COUNT(paper);
    memcpy(r->stage, paper, sizeof(paper));
    for (int i = 0; least < needs[i]; i++) r->stage[i].pool = false;
    if (as_run) {
        r->stage[2] = (stage){64, 4, 2, false};
        r->stage[3].stride = 1;
        r->features = 2048;
    }
    return HALO_OK;
}

/* log2 of a cube's side; an error names what the variant takes. */
static halo_status cube_log2(halo_context *ctx, const halo_zoo_options *o, int64_t most, int *log2)
{
    int64_t side = o->extents[0];
    bool cube = side == o->extents[1] && side == o->extents[2];
    if (!cube || side < 8 || side > most || (side & (side - 1)) != 0)
        return hl_fail(ctx, HALO_ERR_SHAPE,
                       "cosmoflow %s takes cubes of 8, 16, 32 ... %" PRId64 " cells a side, not %s",
                       o->variant, most, hl_shape_print(o->extents, 3).s);
    for (*log2 = 0; side > 1; side /= 2) ++*log2;
    return HALO_OK;
}

static halo_status fit_mlperf(halo_context *ctx, const halo_zoo_options *o, recipe *r)
{
    int log2;
    HL_TRY(cube_log2(ctx, o, 4096, &log2));
    r->stages = log2 - 2;
    for (int i = 0; i < r->stages; i++) r->stage[i] = (stage){hl_min64((int64_t)32 << i, 512), 3, 1, true};
    return HALO_OK;
}

static halo_status fit_hybrid(halo_context *ctx, const halo_zoo_options *o, recipe *r)
{
    static const int64_t filters[] = {16, 32, 64, 128, 256, 256, 256};
    int log2;
    HL_TRY(cube_log2(ctx, o, 512, &log2));
    r->stages = (int)HL_COUNT(filters);
    for (int i = 0; i < r->stages; i++) r->stage[i] = (stage){filters[i], 3, i == 3 ? 2 : 1, i < log2 - 2};
    return HALO_OK;
}

static const variant variants[] = {
    {.name = "sc18",
     .channels = 1,
     .outputs = 3,
     .padding = HALO_PAD_VALID,
     .conv_bias = true,
     .conv_bias_init = 0.1,
     .dense_bias_init = 0.1,
     .slope = 0.01,
     .keep = 0.5,
     .pool = HALO_POOL_AVG,
     .pool_kernel = 2,
     .momentum = 0.99,
     .channels_last = true,
     .dense = {2048, 256},
     .fit = fit_sc18},
    {.name = "mlperf",
     .channels = 4,
     .outputs = 4,
     .padding = HALO_PAD_SAME,
     .conv_bias = true,
     .slope = 0.3,
     .keep = 0.5,
     .pool = HALO_POOL_MAX,
     .pool_kernel = 2,
     .momentum = 0.99,
     .channels_last = true,
     .dense = {128, 64},
     .first_dropout = 1,
     .bounded = true,
     .fit = fit_mlperf},
    {.name = "hybrid",
     .channels = 4,
     .outputs = 4,
     .padding = HALO_PAD_EXPLICIT,
     .dense_bias_init = 0.1,
     .slope = 0.01,
     .keep = 0.8,
     .pool = HALO_POOL_AVG,
     .pool_kernel = 3,
     .momentum = 0.999,
     .dense = {2048, 256},
     .fit = fit_hybrid},
};

/* ------------------------------------------------------------------------------------------------------------
 * building */

typedef struct builder {
    halo_network *net;
    const variant *v;
    bool batch_norm, dropout;
    halo_padding padding; /* of convolutions */
    int last; /* the layer to go on from */
    char name[32];
} builder;

static const char *name_of(builder *b, const char *stem, int number, const char *suffix)
{
    snprintf(b->name, sizeof(b->name), "%s%d%s", stem, number, suffix);
    return b->name;
}

static void pad_all(halo_padding padding[3], int64_t pad[3][2], halo_padding p)
{
    for (int d = 0; d < 3; d++) {
        padding[d] = p;
        pad[d][0] = pad[d][1] = p == HALO_PAD_EXPLICIT ? 1 : 0;
    }
}

static halo_status add_conv(builder *b, int number, const stage *s)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = s->filters;
    for (int d = 0; d < 3; d++) o.kernel[d] = s->kernel, o.stride[d] = s->stride;
    pad_all(o.padding, o.pad, b->padding);
    o.bias = b->v->conv_bias && !b->batch_norm;
    o.bias_init = o.bias ? b->v->conv_bias_init : 0;
    return halo_network_conv(b->net, b->last, name_of(b, "conv", number, ""), &o, &b->last);
}

static halo_status add_norm(builder *b, int number)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    o.momentum = b->v->momentum;
    return halo_network_norm(b->net, b->last, name_of(b, "norm", number, ""), &o, &b->last);
}

static halo_status add_pool(builder *b, int number)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    o.kind = b->v->pool;
    for (int d = 0; d < 3; d++) o.kernel[d] = b->v->pool_kernel;
    pad_all(o.padding, o.pad, b->v->padding == HALO_PAD_EXPLICIT ? b->padding : HALO_PAD_VALID);
    o.count_pad = b->v->padding == HALO_PAD_EXPLICIT;
    return halo_network_pool(b->net, b->last, name_of(b, "pool", number, ""), &o, &b->last);
}

static halo_status add_stage(builder *b, int number, const stage *s)
{
    HL_TRY(add_conv(b, number, s));
    if (b->batch_norm) HL_TRY(add_norm(b, number));
    HL_TRY(halo_network_activation(b->net, b->last, name_of(b, "act", number, ""), HALO_ACT_LEAKY_RELU,
                                   b->v->slope, &b->last));
    return s->pool ? add_pool(b, number) : HALO_OK;
}

static halo_status add_dense(builder *b, int number, int64_t outputs)
{
    halo_dense_options o = HALO_DENSE_OPTIONS_INIT;
    o.outputs = outputs;
    o.bias_init = b->v->dense_bias_init;
    if (b->dropout && number > b->v->first_dropout)
        HL_TRY(halo_network_dropout(b->net, b->last, name_of(b, "fc", number, "_dropout"), b->v->keep,
                                    &b->last));
    HL_TRY(halo_network_dense(b->net, b->last, name_of(b, "fc", number, ""), &o, &b->last));
    if (number == 3) return HALO_OK;
    return halo_network_activation(b->net, b->last, name_of(b, "fc", number, "_act"), HALO_ACT_LEAKY_RELU,
                                   b->v->slope, &b->last);
}

static halo_status add_head(builder *b, int64_t features, int64_t outputs)
{
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    flatten.channels_last = b->v->channels_last;
    flatten.features = features;
    HL_TRY(halo_network_flatten(b->net, b->last, "flatten", &flatten, &b->last));
    for (int i = 0; i < 2; i++) HL_TRY(add_dense(b, i + 1, b->v->dense[i]));
    HL_TRY(add_dense(b, 3, outputs));
    if (!b->v->bounded) return HALO_OK;
    HL_TRY(halo_network_activation(b->net, b->last, "tanh", HALO_ACT_TANH, 0, &b->last));
    return halo_network_activation(b->net, b->last, "scale", HALO_ACT_SCALE, 1.2, &b->last);
}

static halo_status add_all(builder *b, const recipe *r, int64_t outputs)
{
    for (int i = 0; i < r->stages; i++) HL_TRY(add_stage(b, i + 1, &r->stage[i]));
    return add_head(b, r->features, outputs);
}

static halo_status check_wiring(halo_context *ctx, const halo_zoo_options *o)
{
    if (!o->wiring || strcmp(o->wiring, "paper") == 0) return HALO_OK;
    if (strcmp(o->wiring, "as-run") != 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "unknown wiring '%.80s', must be 'paper' or 'as-run'", o->wiring);
    if (strcmp(o->variant, "sc18") != 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "wiring 'as-run' belongs to variant sc18, not to %s", o->variant);
    return HALO_OK;
}

static halo_status check_padding(halo_context *ctx, const halo_zoo_options *o, const variant *v)
{
    if (!o->periodic || v->padding != HALO_PAD_VALID) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "variant %s has no padding that could be periodic; mlperf and hybrid have", v->name);
}

static halo_status build(halo_context *ctx, const halo_zoo_options *options, halo_network **net)
{
    builder b = {.batch_norm = options->batch_norm, .dropout = !options->no_dropout};
    halo_zoo_options o = *options;
    recipe r = {0};
    for (size_t i = 0; i < HL_COUNT(variants); i++)
        if (strcmp(variants[i].name, o.variant) == 0) b.v = &variants[i];
    for (int d = 0; d < 3; d++)
        if (!options->extents[0]) o.extents[d] = 128;
    b.padding = o.periodic ? HALO_PAD_PERIODIC : b.v->padding;
    HL_TRY(check_wiring(ctx, &o));
    HL_TRY(check_padding(ctx, &o, b.v));
    HL_TRY(b.v->fit(ctx, &o, &r));
    snprintf(b.name, sizeof(b.name), "cosmoflow-%s%s", o.variant, r.features ? "-as-run" : "");
    HL_TRY(halo_network_create(ctx, b.name, o.channels ? o.channels : b.v->channels, o.extents, &b.net));
    halo_status st = add_all(&b, &r, o.outputs ? o.outputs : b.v->outputs);
    if (st == HALO_OK)
        *net = b.net;
    else
        halo_network_destroy(b.net);
    return st;
}

static const char *const names[] = {"sc18", "mlperf", "hybrid", NULL};

const hl_zoo_network hl_zoo_cosmoflow = {.name = "cosmoflow", .variants = names, .build = build};
