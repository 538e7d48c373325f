/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/small.h"

#include "base/rng.h"

static void must(halo_network *net, halo_status st)
{
    check_status(net->ctx, st, net->name);
}

/* -------------------------------------------------------------------------------------------- short forms */

typedef halo_padding pads[3];
#define SAME   HALO_PAD_SAME
#define VALID  HALO_PAD_VALID
#define AROUND HALO_PAD_PERIODIC
#define GIVEN  HALO_PAD_EXPLICIT

static int conv(halo_network *net, int x, int64_t filters, int64_t k, int64_t stride, halo_padding d,
                halo_padding h, halo_padding w)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    int layer;
    o.filters = filters;
    o.bias_init = 0.1;
    const halo_padding padding[3] = {d, h, w};
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = k;
        o.stride[a] = stride;
        o.padding[a] = padding[a];
        if (padding[a] == GIVEN) o.pad[a][0] = 2;
    }
    must(net, halo_network_conv(net, x, NULL, &o, &layer));
    return layer;
}

static int pool(halo_network *net, int x, halo_pool kind, int64_t k, int64_t stride, halo_padding padding,
                bool count_pad)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    int layer;
    o.kind = kind;
    o.count_pad = count_pad;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = k;
        o.stride[a] = stride;
        o.padding[a] = padding;
    }
    must(net, halo_network_pool(net, x, NULL, &o, &layer));
    return layer;
}

static int act(halo_network *net, int x, halo_act kind)
{
    int layer;
    must(net, halo_network_activation(net, x, NULL, kind, kind == HALO_ACT_SCALE ? 1.2 : 0.1, &layer));
    return layer;
}

static int leaky(halo_network *net, int x)
{
    return act(net, x, HALO_ACT_LEAKY_RELU);
}

static int norm(halo_network *net, int x)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    int layer;
    o.momentum = 0.9;
    must(net, halo_network_norm(net, x, NULL, &o, &layer));
    return layer;
}

/* Kernel, stride, dilation; pad and output padding explicit unless `same`. */
static int up(halo_network *net, int x, int64_t filters, int64_t k, int64_t stride, int64_t dilation, int64_t pad,
              int64_t more, bool same_extents)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    int layer;
    o.filters = filters;
    o.bias_init = 0.1;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = k;
        o.stride[a] = stride;
        o.dilation[a] = dilation;
        o.padding[a] = same_extents ? SAME : GIVEN;
        o.pad[a][0] = o.pad[a][1] = pad;
        o.output_padding[a] = more;
    }
    must(net, halo_network_conv_transpose(net, x, NULL, &o, &layer));
    return layer;
}

/* groups 0: one per channel. */
static int sample_norm(halo_network *net, int x, int64_t groups)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    int layer;
    o.scope = groups ? HALO_NORM_GROUP : HALO_NORM_INSTANCE;
    o.groups = groups;
    o.gamma_init = 1.2;
    must(net, halo_network_norm(net, x, NULL, &o, &layer));
    return layer;
}

static int crop(halo_network *net, int x, int64_t before, int64_t behind)
{
    const int64_t cells[3][2] = {{before, behind}, {behind, 0}, {0, before}};
    int layer;
    must(net, halo_network_crop(net, x, NULL, cells, &layer));
    return layer;
}

static int double_size(halo_network *net, int x, int64_t d, int64_t h, int64_t w)
{
    const int64_t factor[3] = {d, h, w};
    int layer;
    must(net, halo_network_upsample(net, x, NULL, factor, &layer));
    return layer;
}

static int crop_like(halo_network *net, int x, int like)
{
    int layer;
    must(net, halo_network_crop_like(net, x, like, NULL, &layer));
    return layer;
}

static int dense(halo_network *net, int x, int64_t outputs)
{
    halo_dense_options o = HALO_DENSE_OPTIONS_INIT;
    int layer;
    o.outputs = outputs;
    o.bias_init = 0.05;
    must(net, halo_network_dense(net, x, NULL, &o, &layer));
    return layer;
}

static int flatten(halo_network *net, int x, bool channels_last, int64_t features)
{
    halo_flatten_options o = HALO_FLATTEN_OPTIONS_INIT;
    int layer;
    o.channels_last = channels_last;
    o.features = features;
    must(net, halo_network_flatten(net, x, NULL, &o, &layer));
    return layer;
}

static int dropout(halo_network *net, int x, double keep)
{
    int layer;
    must(net, halo_network_dropout(net, x, NULL, keep, &layer));
    return layer;
}

static int add(halo_network *net, int n, int a, int b, int c)
{
    int layer;
    must(net, halo_network_add(net, (const int[]){a, b, c}, n, NULL, &layer));
    return layer;
}

static int concat(halo_network *net, int n, int a, int b, int c)
{
    int layer;
    must(net, halo_network_concat(net, (const int[]){a, b, c}, n, NULL, &layer));
    return layer;
}

static void head(halo_network *net, int x)
{
    dense(net, flatten(net, x, false, 0), 3);
}

/* ------------------------------------------------------------------------------------------- the networks */

static void plain(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, VALID, VALID, VALID));
    int b = leaky(net, conv(net, a, 5, 2, 1, VALID, VALID, VALID));
    head(net, b);
}

static void same(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, SAME, SAME, SAME));
    int b = pool(net, a, HALO_POOL_MAX, 2, 2, SAME, false);
    int c = act(net, conv(net, b, 6, 3, 2, SAME, SAME, SAME), HALO_ACT_TANH);
    int d = pool(net, conv(net, c, 3, 4, 1, SAME, SAME, SAME), HALO_POOL_AVG, 3, 2, SAME, false);
    dense(net, act(net, dense(net, flatten(net, d, true, 0), 4), HALO_ACT_SIGMOID), 2);
}

static void periodic(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, AROUND, AROUND, AROUND));
    int b = leaky(net, conv(net, a, 4, 3, 2, AROUND, AROUND, AROUND));
    int c = leaky(net, conv(net, b, 4, 5, 1, AROUND, AROUND, AROUND));
    int d = leaky(
        net, conv(net, pool(net, c, HALO_POOL_AVG, 3, 1, AROUND, false), 3, 2, 1, AROUND, AROUND, AROUND));
    head(net, d);
}

/* Extents that the stride does not divide: the gradient's margin is folded back. */
static void uneven(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 3, 3, 1, AROUND, AROUND, AROUND));
    int b = leaky(net, conv(net, a, 4, 3, 2, AROUND, AROUND, AROUND));
    int c = pool(net, b, HALO_POOL_MAX, 3, 2, AROUND, false);
    int d = leaky(net, conv(net, c, 3, 3, 1, AROUND, SAME, AROUND));
    int e = pool(net, a, HALO_POOL_AVG, 5, 4, AROUND, true);
    head(net, concat(net, 2, d, e, 0));
}

static void mixed(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, AROUND, SAME, GIVEN));
    int b = leaky(net, conv(net, a, 3, 3, 1, SAME, AROUND, VALID));
    int c = leaky(net, conv(net, a, 3, 3, 1, AROUND, SAME, VALID));
    head(net, add(net, 2, b, c, 0));
}

static void dilated(halo_network *net)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    int layer;
    o.filters = 4;
    for (int a = 0; a < 3; a++) {
        o.dilation[a] = 2;
        o.padding[a] = a == 1 ? AROUND : SAME;
    }
    must(net, halo_network_conv(net, 0, NULL, &o, &layer));
    o.bias = false;
    must(net, halo_network_conv(net, leaky(net, layer), NULL, &o, &layer));
    head(net, layer);
}

static void flat2d(halo_network *net)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    int layer;
    o.filters = 4;
    o.kernel[0] = 1;
    o.padding[1] = o.padding[2] = SAME;
    must(net, halo_network_conv(net, 0, NULL, &o, &layer));
    must(net, halo_network_conv(net, leaky(net, layer), NULL, &o, &layer));
    head(net, act(net, layer, HALO_ACT_RELU));
}

/* Values with several readers, sums of three and of the same thing twice, joins with the input. */
static void branches(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, SAME, SAME, SAME));
    int b = conv(net, a, 4, 3, 1, SAME, SAME, SAME);
    int c = act(net, add(net, 2, a, b, 0), HALO_ACT_TANH);
    int d = conv(net, c, 4, 1, 1, VALID, VALID, VALID);
    int e = add(net, 3, c, d, d);
    int f = concat(net, 3, e, 0, c);
    int g = leaky(net, conv(net, f, 3, 3, 1, SAME, SAME, SAME));
    int h = concat(net, 2, g, pool(net, e, HALO_POOL_AVG, 3, 1, SAME, true), 0);
    int v = flatten(net, pool(net, h, HALO_POOL_AVG, 2, 2, VALID, false), false, 0);
    int u = leaky(net, dense(net, v, 5));
    int w = add(net, 2, u, dense(net, u, 5), 0);
    dense(net, concat(net, 2, w, u, 0), 3);
}

static void norms(halo_network *net)
{
    int a = leaky(net, norm(net, conv(net, norm(net, 0), 4, 3, 1, SAME, SAME, SAME)));
    int b = norm(net, conv(net, a, 4, 3, 1, VALID, VALID, VALID));
    int c = norm(net, a);
    int d = leaky(net, norm(net, pool(net, c, HALO_POOL_MAX, 2, 2, VALID, false)));
    int e = flatten(net, b, false, 0), f = flatten(net, d, true, 0);
    int g = norm(net, act(net, dense(net, concat(net, 2, e, f, 0), 6), HALO_ACT_TANH));
    dense(net, g, 2);
}

static void drops(halo_network *net)
{
    int a = leaky(net, conv(net, dropout(net, 0, 0.9), 4, 3, 1, SAME, SAME, SAME));
    int b = dropout(net, conv(net, dropout(net, a, 0.7), 4, 2, 2, VALID, VALID, VALID), 0.8);
    int c = add(net, 2, b, dropout(net, b, 0.5), 0);
    int d = leaky(net, dense(net, dropout(net, flatten(net, c, false, 0), 0.5), 6));
    act(net, act(net, dense(net, dropout(net, dropout(net, d, 0.5), 1), 2), HALO_ACT_TANH), HALO_ACT_SCALE);
}

/* Rows of a vector as samples, as the first published runs did it by accident. */
static void rows(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, VALID, VALID, VALID));
    int b = leaky(net, dense(net, dropout(net, flatten(net, a, true, 16), 0.6), 5));
    dense(net, dropout(net, b, 0.7), 2);
}

/* Layers that the output does not depend on; an activation of the input; one value padded both ways. */
static void odd(halo_network *net)
{
    int x = act(net, 0, HALO_ACT_SCALE);
    int a = conv(net, x, 9, 3, 1, SAME, SAME, SAME);
    norm(net, pool(net, a, HALO_POOL_MAX, 2, 2, VALID, false));
    int b = conv(net, a, 4, 3, 1, AROUND, AROUND, AROUND), c = conv(net, a, 4, 5, 1, SAME, SAME, SAME);
    int d = act(net, add(net, 2, b, c, 0), HALO_ACT_SIGMOID);
    head(net, pool(net, d, HALO_POOL_MAX, 3, 2, SAME, false));
}

/* A volume comes out. */
static void volume(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 8, 3, 1, SAME, SAME, SAME));
    int b = leaky(net, conv(net, a, 8, 3, 1, SAME, SAME, SAME));
    conv(net, add(net, 2, a, b, 0), 1, 1, 1, VALID, VALID, VALID);
}

/* Windows that tile, overlap, leave gaps and are dilated; an activation inside; an input with two readers. */
static void ups(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 2, SAME, SAME, SAME));
    int b = leaky(net, up(net, a, 3, 2, 2, 1, 0, 0, false)), c = act(net, up(net, a, 3, 3, 2, 1, 1, 1, false), HALO_ACT_TANH);
    int d = add(net, 2, b, c, 0), e = up(net, d, 2, 3, 1, 2, 2, 1, false);
    int f = up(net, pool(net, e, HALO_POOL_MAX, 3, 3, VALID, false), 3, 2, 3, 1, 0, 2, false);
    head(net, up(net, leaky(net, f), 2, 4, 3, 1, 0, 0, true));
}

/* The first layer enlarges the input itself, and nothing comes between two. */
static void ups_first(halo_network *net)
{
    int a = up(net, 0, 9, 3, 2, 1, 0, 0, false);
    conv(net, leaky(net, up(net, a, 3, 1, 1, 1, 0, 0, true)), 2, 3, 2, VALID, VALID, VALID);
}

static void sample_norms(halo_network *net)
{
    int a = leaky(net, sample_norm(net, conv(net, sample_norm(net, 0, 0), 4, 3, 1, SAME, SAME, SAME), 2));
    int b = act(net, sample_norm(net, conv(net, a, 6, 3, 1, VALID, VALID, VALID), 3), HALO_ACT_SIGMOID);
    int c = sample_norm(net, a, 1), d = sample_norm(net, pool(net, c, HALO_POOL_MAX, 2, 2, VALID, false), 0);
    int e = flatten(net, b, false, 0), f = flatten(net, d, true, 0);
    dense(net, concat(net, 2, e, f, 0), 2);
}

/* Cells cut off a value that others read too, before and after the crop in backward order; of the input; none at all. */
static void crops(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 4, 3, 1, SAME, SAME, SAME));
    int b = crop(net, a, 1, 2), c = crop(net, a, 2, 1), d = crop(net, 0, 1, 2);
    int e = conv(net, b, 4, 3, 1, SAME, SAME, SAME), f = crop_like(net, conv(net, a, 4, 2, 1, VALID, VALID, VALID), b);
    int g = concat(net, 3, crop_like(net, e, b), f, d);
    int h = add(net, 2, conv(net, a, 2, 3, 1, SAME, SAME, SAME), conv(net, a, 2, 1, 1, VALID, VALID, VALID), 0);
    dense(net, concat(net, 3, flatten(net, g, false, 0), flatten(net, c, true, 0), flatten(net, crop(net, h, 0, 1), false, 0)), 2);
}

/* A small U-Net: two levels, norms of samples, a skip that is cropped, a head of three classes. */
static void unet(halo_network *net)
{
    int a = act(net, sample_norm(net, conv(net, 0, 4, 3, 1, SAME, SAME, SAME), 2), HALO_ACT_TANH);
    int b = pool(net, a, HALO_POOL_MAX, 2, 2, VALID, false);
    int c = act(net, sample_norm(net, conv(net, b, 6, 3, 1, SAME, SAME, SAME), 0), HALO_ACT_TANH);
    int d = up(net, c, 4, 2, 2, 1, 0, 0, false);
    int e = concat(net, 2, crop_like(net, a, d), d, 0);
    conv(net, leaky(net, conv(net, e, 4, 3, 1, VALID, VALID, VALID)), 3, 1, 1, VALID, VALID, VALID);
}

/* Linear enlargement along all axes and along some, of the input and of what convolutions make; with two readers; and two in a row. */
static void doubles(halo_network *net)
{
    int a = leaky(net, conv(net, 0, 5, 3, 1, SAME, SAME, SAME)), b = pool(net, a, HALO_POOL_MAX, 2, 2, SAME, false);
    int c = double_size(net, b, 2, 2, 2), d = double_size(net, 0, 1, 2, 1), e = double_size(net, a, 1, 2, 1);
    int f = conv(net, concat(net, 2, d, e, 0), 4, 3, 1, SAME, SAME, SAME);
    int g = add(net, 2, conv(net, crop_like(net, c, a), 3, 3, 1, SAME, SAME, SAME), conv(net, a, 3, 1, 1, SAME, SAME, SAME), 0);
    int h = double_size(net, double_size(net, b, 2, 1, 2), 1, 2, 1);
    dense(net, concat(net, 3, flatten(net, f, false, 0), flatten(net, g, true, 0), flatten(net, act(net, h, HALO_ACT_TANH), false, 0)), 2);
}

/* Windows side by side behind convolutions: with an activation of two values, with none, with a smooth one, with a norm; some leave cells over. */
static void pools(halo_network *net)
{
    int a = pool(net, leaky(net, conv(net, 0, 5, 3, 1, SAME, SAME, SAME)), HALO_POOL_AVG, 2, 2, VALID, false);
    int b = pool(net, conv(net, a, 4, 3, 1, SAME, SAME, SAME), HALO_POOL_MAX, 2, 2, VALID, false);
    int c = pool(net, act(net, conv(net, a, 3, 2, 1, SAME, SAME, SAME), HALO_ACT_TANH), HALO_POOL_MAX, 2, 2, VALID, true);
    int d = pool(net, leaky(net, norm(net, conv(net, a, 3, 1, 1, SAME, SAME, SAME))), HALO_POOL_MAX, 2, 2, VALID, false);
    int e = pool(net, leaky(net, conv(net, a, 2, 3, 1, SAME, SAME, SAME)), HALO_POOL_MAX, 2, 2, VALID, false);
    head(net, concat(net, 2, concat(net, 3, b, c, d), e, 0));
}

/* Two blocks as in a DenseNet, with stacks as they are and activated; channels that fit blocks of 8 but not of 16, and a plane. */
static void stacks(halo_network *net)
{
    int raw = conv(net, 0, 8, 3, 1, SAME, SAME, SAME), active = leaky(net, raw), skip, y, both[2];
    for (int i = 0; i < 3; i++) {
        must(net, halo_network_dropout(net, conv(net, active, 8, 3, 1, SAME, SAME, SAME), NULL, 0.75, &y));
        both[0] = active, both[1] = leaky(net, y);
        must(net, halo_network_concat(net, both, 2, NULL, &active));
        both[0] = raw, both[1] = y;
        must(net, halo_network_concat(net, both, 2, NULL, &raw));
    }
    skip = active;
    y = up(net, pool(net, norm(net, raw), HALO_POOL_MAX, 2, 2, VALID, false), 16, 2, 2, 1, 0, 0, true);
    both[0] = skip, both[1] = leaky(net, y);
    must(net, halo_network_concat(net, both, 2, NULL, &active));
    both[0] = y, both[1] = conv(net, active, 5, 3, 1, SAME, SAME, SAME);
    must(net, halo_network_concat(net, both, 2, NULL, &y));
    conv(net, y, 2, 1, 1, SAME, SAME, SAME);
}

const small_network small_networks[] = {
    {"plain", plain, 2, {6, 5, 7}},       {"same", same, 1, {7, 6, 8}},
    {"periodic", periodic, 2, {6, 4, 8}}, {"uneven", uneven, 1, {9, 9, 9}},
    {"mixed", mixed, 2, {5, 6, 7}},       {"dilated", dilated, 2, {6, 5, 7}},
    {"flat2d", flat2d, 1, {1, 8, 9}},     {"branches", branches, 2, {6, 5, 4}},
    {"norms", norms, 2, {5, 6, 4}},       {"drops", drops, 2, {4, 6, 5}},
    {"rows", rows, 1, {6, 6, 6}},         {"odd", odd, 2, {5, 5, 6}},
    {"volume", volume, 1, {5, 6, 7}},     {"ups", ups, 2, {5, 4, 7}},
    {"ups-first", ups_first, 2, {3, 2, 3}}, {"sample-norms", sample_norms, 2, {5, 6, 4}},
    {"crops", crops, 2, {6, 7, 6}},       {"unet", unet, 1, {7, 6, 9}},
    {"pools", pools, 2, {8, 9, 12}},      {"doubles", doubles, 2, {5, 6, 7}},
    {"stacks", stacks, 3, {4, 6, 8}},
    {.name = NULL},
};

halo_network *small_build(halo_context *ctx, const small_network *s)
{
    halo_network *net;
    check_status(ctx, halo_network_create(ctx, s->name, s->channels, s->extents, &net), s->name);
    s->build(net);
    return net;
}

/* --------------------------------------------------------------------------------------------------- runs */

small_data small_fill(const halo_network *net, int64_t samples, uint64_t seed)
{
    const int64_t *in = net->layer[0].out, *out = net->layer[net->layers - 1].out;
    int64_t nx = samples * in[0] * in[1] * in[2] * in[3], ny = samples * out[0] * out[1] * out[2] * out[3];
    small_data d = {.x = check_alloc(nx, sizeof(float)), .y = check_alloc(ny, sizeof(float))};
    for (int64_t i = 0; i < nx; i++) d.x[i] = (float)hl_rng_normal(seed, HL_STREAM_TEST, (uint64_t)i, 0);
    for (int64_t i = 0; i < ny; i++) d.y[i] = (float)hl_rng_normal(seed, HL_STREAM_TEST, (uint64_t)i, 1);
    d.batch = (hl_batch){.dtype = HALO_F32, .x = d.x, .y = d.y};
    return d;
}

void small_free(small_data *d)
{
    free(d->x);
    free(d->y);
}

hl_optim_spec small_sgd(void)
{
    return (hl_optim_spec){.update = {.kind = HALO_SGD, .lr_factor = 1}, .dense_decay = -1};
}

hl_compile_options small_options(int64_t samples)
{
    return (hl_compile_options){.batch = samples,
                                .training = true,
                                .loss = HALO_LOSS_MSE,
                                .plan = HL_PLAN_FIXED,
                                .layout = HALO_LAYOUTS};
}

double small_step(halo_context *ctx, hl_program *p, const small_data *d)
{
    const hl_step_options options = {.seed = 5, .step = 3};
    hl_step_result result;
    check_status(ctx, hl_program_train(p, &d->batch, &options, &result), "a step");
    return result.loss;
}

double *small_get(halo_context *ctx, hl_model *m, int param, hl_array a)
{
    const hl_param_info *list;
    hl_model_params(m, &list);
    double *host = check_alloc(list[param].count, sizeof(double));
    check_status(ctx, hl_model_get(m, param, a, host), "reading a parameter");
    return host;
}

double small_distance(const double *a, const double *b, int64_t n)
{
    double most = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(a[i] - b[i]);
        if (!(e <= most)) most = e; /* NaN stays */
        size = fmax(size, fabs(b[i]));
    }
    return size > 0 ? most / size : most;
}

bool small_equal(halo_context *ctx, hl_model *a, hl_model *b)
{
    const hl_param_info *list;
    int n = hl_model_params(a, &list);
    bool equal = true;
    for (int i = 0; i < n; i++) {
        double *u = small_get(ctx, a, i, HL_MASTER), *v = small_get(ctx, b, i, HL_MASTER);
        equal = equal && memcmp(u, v, (size_t)list[i].count * sizeof(double)) == 0;
        free(u);
        free(v);
    }
    return equal;
}
