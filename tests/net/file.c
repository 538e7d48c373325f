/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c -- network files: every network written and read back is the same one, field by field; what bad
 * files are told; mutations; and the manual shows the table of layers as it is.
 */
#include "base/file.h"
#include "base/rng.h"
#include "net/file.h"
#include "net/keys.h"
#include "tests/tap.h"

static halo_context *ctx;

static halo_network *parse(const char *text)
{
    halo_network *net = NULL;
    return halo_network_parse(ctx, "net.yaml", text, strlen(text), 0, NULL, &net) == HALO_OK ? net : NULL;
}

/* ----------------------------------------------------------------------------------------------------------
 * equality */

static bool same_windows(const hl_layer *a, const hl_layer *b)
{
    bool same = a->pool == b->pool && a->count_pad == b->count_pad;
    for (int d = 0; d < 3; d++)
        same = same && a->window.kernel[d] == b->window.kernel[d] &&
               a->window.stride[d] == b->window.stride[d] && a->window.dilation[d] == b->window.dilation[d] &&
               a->window.pad_lo[d] == b->window.pad_lo[d] && a->padding[d] == b->padding[d] &&
               a->pad[d][0] == b->pad[d][0] && a->pad[d][1] == b->pad[d][1];
    return same;
}

static bool same_settings(const hl_layer *a, const hl_layer *b)
{
    return a->filters == b->filters && a->bias == b->bias && a->act == b->act && a->slope == b->slope &&
           a->eps == b->eps && a->momentum == b->momentum && a->keep == b->keep &&
           a->channels_last == b->channels_last && a->features == b->features && a->init == b->init &&
           a->init_bias == b->init_bias && a->init_gamma == b->init_gamma && a->scope == b->scope &&
           a->groups == b->groups && memcmp(a->crop, b->crop, sizeof(a->crop)) == 0 &&
           memcmp(a->output_padding, b->output_padding, sizeof(a->output_padding)) == 0;
}

static bool same_layer(const hl_layer *a, const hl_layer *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && a->inputs == b->inputs &&
           memcmp(a->input, b->input, sizeof(a->input)) == 0 && same_windows(a, b) && same_settings(a, b) &&
           memcmp(a->out, b->out, sizeof(a->out)) == 0 && a->rows == b->rows;
}

static bool same_network(const halo_network *a, const halo_network *b)
{
    if (strcmp(a->name, b->name) != 0 || a->layers != b->layers || a->parameters != b->parameters)
        return false;
    for (int i = 0; i < a->layers; i++)
        if (!same_layer(&a->layer[i], &b->layer[i])) return false;
    return true;
}

static bool survives(const halo_network *net)
{
    char *text = NULL, *again = NULL;
    if (!net || halo_network_text(net, &text) != HALO_OK) return false;
    halo_network *back = parse(text);
    bool same = back && same_network(net, back) && halo_network_text(back, &again) == HALO_OK &&
                strcmp(text, again) == 0;
    if (!same) tap_note("%s\n%s", halo_error_message(ctx), text);
    halo_network_destroy(back);
    free(text);
    free(again);
    return same;
}

static void check_zoo(void)
{
    static const int64_t sizes[] = {16, 32, 64, 128, 256, 512};
    int grown = 0, same = 0;
    for (int i = 0; halo_network_zoo_name(i); i++)
        for (int v = 0; halo_network_zoo_variant(i, v); v++)
            for (size_t s = 0; s < 2 * HL_COUNT(sizes); s++) {
                halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
                halo_network *net;
                o.variant = halo_network_zoo_variant(i, v);
                for (int d = 0; d < 3; d++) o.extents[d] = sizes[s / 2];
                o.batch_norm = s % 2 == 1;
                if (halo_network_zoo(ctx, halo_network_zoo_name(i), &o, &net) != HALO_OK) continue;
                grown++;
                same += survives(net);
                halo_network_destroy(net);
            }
    tap_ok(grown > 30 && same == grown, "%d networks of the zoo survive writing and reading, field by field",
           same);
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    halo_network *net = NULL;
    o.wiring = "as-run";
    tap_ok(halo_network_zoo(ctx, "cosmoflow", &o, &net) == HALO_OK && survives(net),
           "so does the as-run wiring");
    halo_network_destroy(net);
}

/* ---------------------------------------------------------------------------------------------------- random
 * networks */

static uint64_t draw(uint64_t seed, uint64_t *at, uint64_t n)
{
    return hl_rng_below(seed, HL_STREAM_TEST, (*at)++, 0, n);
}

static void draw_padding(uint64_t seed, uint64_t *at, halo_padding padding[3], int64_t pad[3][2])
{
    for (int d = 0; d < 3; d++) {
        padding[d] = (halo_padding)draw(seed, at, 4);
        for (int side = 0; side < 2; side++) pad[d][side] = (int64_t)draw(seed, at, 2);
    }
}

static halo_status draw_conv(halo_network *net, uint64_t seed, uint64_t *at, int from)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = 1 + (int64_t)draw(seed, at, 5);
    for (int d = 0; d < 3; d++) {
        o.kernel[d] = 1 + (int64_t)draw(seed, at, 3);
        o.stride[d] = 1 + (int64_t)draw(seed, at, 2);
        o.dilation[d] = 1 + (int64_t)draw(seed, at, 2);
    }
    draw_padding(seed, at, o.padding, o.pad);
    o.bias = draw(seed, at, 2);
    o.init = (halo_init)draw(seed, at, 4);
    o.bias_init = hl_rng_normal(seed, HL_STREAM_TEST, (*at)++, 1);
    return halo_network_conv(net, from, NULL, &o, NULL);
}

static halo_status draw_transposed(halo_network *net, uint64_t seed, uint64_t *at, int from)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    o.filters = 1 + (int64_t)draw(seed, at, 5);
    for (int d = 0; d < 3; d++) {
        o.kernel[d] = 1 + (int64_t)draw(seed, at, 3);
        o.stride[d] = 1 + (int64_t)draw(seed, at, 3);
        o.dilation[d] = 1 + (int64_t)draw(seed, at, 2);
        o.padding[d] = (halo_padding)draw(seed, at, 3);
        for (int side = 0; side < 2; side++) o.pad[d][side] = (int64_t)draw(seed, at, 2);
        o.output_padding[d] = o.padding[d] == HALO_PAD_SAME ? 0 : (int64_t)draw(seed, at, (uint64_t)o.stride[d]);
    }
    o.bias = draw(seed, at, 2);
    o.bias_init = hl_rng_normal(seed, HL_STREAM_TEST, (*at)++, 1);
    return halo_network_conv_transpose(net, from, NULL, &o, NULL);
}

static halo_status draw_crop(halo_network *net, uint64_t seed, uint64_t *at, int from)
{
    int64_t cells[3][2];
    for (int i = 0; i < 6; i++) cells[i / 2][i % 2] = (int64_t)draw(seed, at, 3);
    if (draw(seed, at, 2)) return halo_network_crop(net, from, NULL, (const int64_t(*)[2])cells, NULL);
    return halo_network_crop_like(net, from, (int)draw(seed, at, (uint64_t)net->layers), NULL, NULL);
}

static halo_status draw_upsample(halo_network *net, uint64_t seed, uint64_t *at, int from)
{
    int64_t factor[3];
    for (int d = 0; d < 3; d++) factor[d] = 1 + (int64_t)draw(seed, at, 2);
    return halo_network_upsample(net, from, NULL, factor, NULL);
}

static halo_status draw_pool(halo_network *net, uint64_t seed, uint64_t *at, int from)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    o.kind = (halo_pool)draw(seed, at, 2);
    for (int d = 0; d < 3; d++)
        o.kernel[d] = 2 + (int64_t)draw(seed, at, 2), o.stride[d] = 1 + (int64_t)draw(seed, at, 2);
    draw_padding(seed, at, o.padding, o.pad);
    o.count_pad = draw(seed, at, 2);
    return halo_network_pool(net, from, NULL, &o, NULL);
}

static halo_status draw_layer(halo_network *net, uint64_t seed, uint64_t *at)
{
    int from = (int)draw(seed, at, (uint64_t)net->layers), many[3];
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    double x = hl_rng_uniform(seed, HL_STREAM_TEST, (*at)++, 2);
    for (int i = 0; i < 3; i++) many[i] = (int)draw(seed, at, (uint64_t)net->layers);
    many[1] = from;
    switch (draw(seed, at, 13)) {
    case 0:
        return draw_pool(net, seed, at, from);
    case 1:
        norm.eps = x, norm.momentum = x, norm.gamma_init = -x;
        return halo_network_norm(net, from, "a-norm.1", &norm, NULL);
    case 8:
        norm.scope = draw(seed, at, 2) ? HALO_NORM_GROUP : HALO_NORM_INSTANCE, norm.eps = x;
        norm.groups = norm.scope == HALO_NORM_GROUP ? 1 + (int64_t)draw(seed, at, 3) : 0;
        return halo_network_norm(net, from, NULL, &norm, NULL);
    case 9:
        return draw_transposed(net, seed, at, from);
    case 10:
        return draw_crop(net, seed, at, from);
    case 11:
        return draw_upsample(net, seed, at, from);
    case 2:
        return halo_network_activation(net, from, NULL, (halo_act)(1 + draw(seed, at, 5)), x, NULL);
    case 3:
        return halo_network_dropout(net, from, NULL, x, NULL);
    case 4:
        flatten.channels_last = draw(seed, at, 2), flatten.features = (int64_t)draw(seed, at, 3);
        return halo_network_flatten(net, from, NULL, &flatten, NULL);
    case 5:
        dense.outputs = 1 + (int64_t)draw(seed, at, 9), dense.bias_init = x,
        dense.init = (halo_init)draw(seed, at, 4);
        return halo_network_dense(net, from, "no", &dense, NULL);
    case 6:
        many[0] = from;
        return halo_network_add(net, many, 2, NULL, NULL);
    case 7:
        return halo_network_concat(net, many, 2 + (int)draw(seed, at, 2), NULL, NULL);
    default:
        return draw_conv(net, seed, at, from);
    }
}

/* The graph's unused layers are summed up by flattening and joining them, so that the file is accepted. */
static halo_status tie(halo_network *net)
{
    bool used[HL_LAYERS_MAX] = {false};
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    int loose[HL_INPUTS_MAX], n = 0, layers = net->layers;
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < net->layer[i].inputs; k++) used[net->layer[i].input[k]] = true;
    for (int i = 0; i < layers; i++) {
        if (used[i]) continue;
        if (n == HL_INPUTS_MAX || net->layer[i].rows != 1) return HALO_ERR_USAGE;
        HL_TRY(halo_network_flatten(net, i, NULL, &flatten, &loose[n++]));
    }
    return n < 2 ? HALO_OK : halo_network_concat(net, loose, n, "tied", NULL);
}

static void check_random(void)
{
    int tied = 0, same = 0, layers = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        halo_network *net;
        uint64_t at = 0;
        if (halo_network_create(ctx, "random", 1 + (int64_t)draw(seed, &at, 3), (int64_t[3]){9, 8, 7},
                                &net) != HALO_OK)
            tap_bail("create");
        for (int i = 0; i < 14; i++) (void)draw_layer(net, seed, &at); /* what does not fit is refused */
        if (tie(net) == HALO_OK) {
            tied++;
            layers += net->layers;
            same += survives(net);
        }
        halo_network_destroy(net);
    }
    tap_ok(tied > 100 && same == tied, "%d random graphs, %d layers in all, survive writing and reading",
           same, layers);
}

/* ---------------------------------------------------------------------------------------------------------
 * refusals */

static void refused(const char *text, const char *words)
{
    halo_network *net = NULL;
    halo_status st = halo_network_parse(ctx, "net.yaml", text, strlen(text), 0, NULL, &net);
    const char *said = st == HALO_OK ? "(accepted)" : halo_error_message(ctx);
    tap_ok(st != HALO_OK && !net && strncmp(said, words, strlen(words)) == 0, "refused: %s", said);
    halo_network_destroy(net);
}

#define TOP "name: n\ninput: {channels: 1, size: 8}\nlayers:\n"

static void check_top_refusals(void)
{
    refused("[1, 2]", "net.yaml:1: a network file is a map");
    refused("name: n\nlayerz: []\n",
            "net.yaml:2: unknown key of a network file 'layerz', did you mean 'layers'?");
    refused("name: n\nlayers: [relu]\n", "net.yaml:1: a network file needs 'input: {channels: C, size: N}'");
    refused("name: n\ninput: {channels: 1}\nlayers: [relu]\n", "net.yaml:2: input needs 'size'");
    refused("name: n\ninput: {channels: 0, size: 8}\n", "net.yaml:2: channels must be a positive number");
    refused("name: n\ninput: {channels: 1, size: [8, 8]}\n",
            "net.yaml:2: size must be one positive number or [D, H, W]");
    refused("name: n\ninput: {channels: 1, size: 8.5}\n", "net.yaml:2: size must be one positive number");
    refused("name: n\ninput: {chanels: 1, size: 8}\n",
            "net.yaml:2: unknown key of input 'chanels', did you mean 'channels'?");
    refused("name: n\ninput: {channels: 1, size: 9223372036854775807}\n",
            "net.yaml:2: layer 'input': output 1 x 9223372036854775807");
    refused("name: a/b\ninput: {channels: 1, size: 8}\n", "net.yaml:1: 'a/b' cannot name a network");
    refused("name: n\ninput: {channels: 1, size: 8}\n", "net.yaml:1: a network file needs 'layers:', a list");
    refused("name: n\ninput: {channels: 1, size: 8}\nlayers: relu\n",
            "net.yaml:3: a network file needs 'layers:', a list");
    refused(TOP "  - relu\n - relu\n", "net.yaml:5: not YAML");
}

static void check_layer_refusals(void)
{
    refused(TOP "  - relu\n  - cnov: {filters: 3}\n",
            "net.yaml:5: unknown layer 'cnov', did you mean 'conv'?");
    refused(TOP "  - conv: {filters: 3, kernal: 3}\n",
            "net.yaml:4: unknown key of conv 'kernal', did you mean 'kernel'?");
    refused(TOP "  - conv:\n      filters: 3\n      xyzzyx: 3\n", "net.yaml:6: unknown key of conv 'xyzzyx'");
    refused(TOP "  - conv: {kernel: 3}\n", "net.yaml:4: conv needs 'filters'");
    refused(TOP "  - crop\n", "net.yaml:4: crop needs either 'cells' or 'like'");
    refused(TOP "  - crop: {cells: 1, like: input}\n", "net.yaml:4: crop needs either 'cells' or 'like'");
    refused(TOP "  - relu: {name: r}\n  - crop: {like: s}\n", "net.yaml:5: unknown earlier layer 's', did you mean 'r'?");
    refused(TOP "  - max_pool: {name: half}\n  - crop: {like: input}\n",
            "net.yaml:5: layer 'crop': 'half' 1 x 4 x 4 x 4 (C D H W) is smaller along D than 'input' 1 x 8 x 8 x 8");
    refused(TOP "  - crop: {cells: [1, 2]}\n",
            "net.yaml:4: cells of crop must be a whole number from 0 to 2147483647, or three of these, each possibly a pair");
    refused(TOP "  - crop: {cells: 4}\n", "net.yaml:4: layer 'crop1': output 1 x 0 x 0 x 0 (C D H W) must be positive");
    refused(TOP "  - group_norm\n", "net.yaml:4: group_norm needs 'groups'");
    refused(TOP "  - group_norm: {groups: 2}\n", "net.yaml:4: layer 'norm1': 1 channels cannot be cut into 2 groups");
    refused(TOP "  - instance_norm: {momentum: 0.9}\n", "net.yaml:4: unknown key of instance_norm 'momentum'");
    refused(TOP "  - max_pool: {kernel: 8}\n  - instance_norm\n",
            "net.yaml:5: layer 'norm1': of input 1 x 1 x 1 x 1 (C D H W) each statistic would be that of one value");
    refused(TOP "  - conv_transpose: {filters: 2, padding: periodic}\n",
            "net.yaml:4: layer 'conv_transpose1': a transposed convolution has no periodic padding");
    refused(TOP "  - conv_transpose: {filters: 2, output_padding: 2}\n",
            "net.yaml:4: layer 'conv_transpose1': output padding 2 along D must be at most 1");
    refused(TOP "  - conv_transpose: {filters: 2, padding: same, output_padding: 1}\n",
            "net.yaml:4: layer 'conv_transpose1': output padding 1 along D must be left to 'same': 0");
    refused(TOP "  - conv\n", "net.yaml:4: conv needs 'filters'");
    refused(TOP "  - conv: 16\n", "net.yaml:4: conv is followed by its keys");
    refused(TOP "  - {conv: {filters: 1}, relu: {}}\n", "net.yaml:4: a layer is 'KIND: {key: value, ...}'");
    refused(TOP "  - [conv]\n", "net.yaml:4: a layer is 'KIND: {key: value, ...}'");
    refused(TOP "  - conv: {filters: many}\n",
            "net.yaml:4: filters of conv is 'many', must be a whole number from 1");
    refused(TOP "  - conv: {filters: [1, 2, 3]}\n", "net.yaml:4: filters of conv must be a whole number");
    refused(TOP "  - conv: {filters: 3, kernel: [3, 3]}\n",
            "net.yaml:4: kernel of conv must be a whole number, or [D, H, W], from 1 to 7");
    refused(TOP "  - relu\n  - conv:\n      filters: 3\n      kernel: 9\n",
            "net.yaml:5: layer 'conv1': kernel is 9, must be");
    refused(TOP "  - conv: {filters: 3, bias: maybe}\n",
            "net.yaml:4: bias of conv is 'maybe', must be yes or no");
    refused(TOP "  - conv: {filters: 3, init: xavier}\n",
            "net.yaml:4: init of conv is 'xavier', must be one of glorot_uniform, ");
    refused(TOP "  - conv: {filters: 3, padding: reflect}\n",
            "net.yaml:4: padding of conv is 'reflect', must be same, valid, periodic");
    refused(TOP "  - conv: {filters: 3, padding: explicit}\n", "net.yaml:4: padding of conv is 'explicit'");
    refused(TOP "  - conv: {filters: 3, padding: [1, 0]}\n", "net.yaml:4: padding of conv must be");
    refused(TOP "  - max_pool: {count_padding: yes}\n",
            "net.yaml:4: unknown key of max_pool 'count_padding'");
    refused(TOP "  - scale\n", "net.yaml:4: scale needs 'factor'");
    refused(TOP "  - dropout: {keep: 1.5}\n",
            "net.yaml:4: layer 'dropout1': keep is 1.5, must be a number above 0 and at most 1");
    refused(TOP "  - relu\n  - relu: {from: inptu}\n",
            "net.yaml:5: unknown earlier layer 'inptu', did you mean 'input'?");
    refused(TOP "  - relu: {from: later}\n  - relu: {name: later}\n",
            "net.yaml:4: unknown earlier layer 'later'");
    refused(TOP "  - relu: {from: [input, input]}\n", "net.yaml:4: relu takes one input, 'from' has 2");
    refused(TOP "  - relu: {from: []}\n", "net.yaml:4: relu takes one input, 'from' has 0");
    refused(TOP "  - relu: {from: {}}\n", "net.yaml:4: a layer's name must be one word");
    refused(TOP "  - add: {from: input}\n", "net.yaml:4: add needs 'from: [...]' with 2 to 16 layers");
    refused(TOP "  - concat\n", "net.yaml:4: concat needs 'from: [...]' with 2 to 16 layers");
    refused(TOP "  - relu: {name: a}\n  - relu: {name: a}\n", "net.yaml:5: there is a layer 'a' already");
    refused(TOP "  - relu: {name: [a]}\n", "net.yaml:4: name must be one word");
    refused(TOP "  - relu: {name: 1a}\n", "net.yaml:4: '1a' cannot name a layer");
    refused(TOP "  - conv: {filters: 2}\n  - add: {from: [input, conv1]}\n",
            "net.yaml:5: layer 'add1': inputs 'input' 1 x 8 x 8 x 8 and 'conv1' 2 x 6 x 6 x 6");
    refused(TOP "  - relu: {name: a}\n  - relu: {from: input}\n",
            "net.yaml:5: layer 'a' is the input of no other, and not the last one");
    refused(
        TOP "  - conv: {filters: 2}\n  - dense: {outputs: 2}\n",
        "net.yaml:5: layer 'dense1': input 'conv1' is 2 x 6 x 6 x 6 (C D H W), a dense layer needs a vector");
}

static void check_input(void)
{
    const char *text = "input: {channels: 1, size: 8}\nlayers: [relu]\n", *bare = "layers: [relu]\n";
    halo_network *a = NULL, *b = NULL;
    int64_t shape[4];
    tap_ok(halo_network_parse(ctx, "x", text, strlen(text), 3, (int64_t[3]){4, 5, 6}, &a) == HALO_OK &&
               halo_network_layer_shape(a, 1, shape) == HALO_OK && shape[0] == 3 && shape[1] == 4 &&
               shape[2] == 5 && shape[3] == 6,
           "channels and extents of the caller go before the file's");
    tap_ok(halo_network_parse(ctx, "x", bare, strlen(bare), 3, (int64_t[3]){4, 5, 6}, &b) == HALO_OK &&
               strcmp(b->name, "network") == 0,
           "and may stand for them");
    halo_network_destroy(a);
    halo_network_destroy(b);
    halo_network *net = parse("input: {channels: 2, size: 9}\nlayers:\n- average_pool: {kernel: [3, 2, "
                              "1]}\n- conv: {filters: 1, padding: [periodic, same, [1, 0]], from: pool1}\n");
    tap_ok(net && net->layer[1].window.stride[0] == 3 && net->layer[1].window.stride[1] == 2 &&
               net->layer[1].window.stride[2] == 1,
           "a pool's stride is its kernel");
    tap_ok(net && net->layer[2].padding[0] == HALO_PAD_PERIODIC &&
               net->layer[2].padding[1] == HALO_PAD_SAME && net->layer[2].pad[2][0] == 1 &&
               net->layer[2].pad[2][1] == 0 && net->layer[2].line == 4,
           "padding per axis");
    halo_network_destroy(net);
    tap_ok(halo_network_load(ctx, "no/such.yaml", 0, NULL, &net) == HALO_ERR_IO, "refused: %s",
           halo_error_message(ctx));
}

/* --------------------------------------------------------------------------------------------------------
 * mutations */

static void check_mutations(void)
{
    static const char good[] = TOP
        "  - conv: {name: a, filters: 2, kernel: [3, 3, 1], padding: [same, 1, [0, 1]], init: he_normal}\n"
        "  - batch_norm: {momentum: 0.9}\n  - max_pool\n  - relu: {name: c}\n"
        "  - conv: {filters: 2, padding: same, from: c, bias_init: 1e-3}\n  - add: {from: [c, conv2]}\n"
        "  - group_norm: {groups: 2}\n  - conv_transpose: {filters: 2, padding: [1, same, 0], output_padding: [1, 0, 1]}\n"
        "  - crop: {like: c}\n  - crop: {cells: [0, [0, 1], 0]}\n  - instance_norm\n"
        "  - flatten: {features: 8}\n  - dropout: {keep: 0.5}\n  - dense: {outputs: 3}\n  - scale: {factor: "
        "1.2}\n";
    static const char spice[] = "{}[]:,-?&*!|>'\"\n \\012345678901234567890123456789.eabcdfilnorstx_";
    halo_network *net = parse(good);
    tap_ok(net != NULL && survives(net), "the text to mutate is good");
    halo_network_destroy(net);
    int accepted = 0, lost = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        char text[sizeof(good)];
        memcpy(text, good, sizeof(good));
        for (uint64_t k = 0; k <= i % 2; k++)
            text[hl_rng_below(i, HL_STREAM_TEST, k, 0, sizeof(good) - 1)] =
                spice[hl_rng_below(i, HL_STREAM_TEST, k, 1, sizeof(spice) - 1)];
        halo_network *mutant = NULL;
        if (halo_network_parse(ctx, "m", text, sizeof(good) - 1, 0, NULL, &mutant) != HALO_OK) continue;
        accepted++;
        lost += !survives(mutant);
        halo_network_destroy(mutant);
    }
    tap_ok(accepted > 40 && lost == 0,
           "4000 mutations: %d are networks still, and survive writing and reading", accepted);
}

static void check_manual(void)
{
    const char *top = getenv("top_srcdir");
    char *path = NULL, *manual = NULL;
    size_t bytes;
    hl_str help = {0};
    hl_network_help(&help);
    bool found = hl_path_join(ctx, top ? top : ".", "doc/networks.md", &path) == HALO_OK &&
                 hl_file_read(ctx, path, 1 << 20, &manual, &bytes) == HALO_OK;
    tap_ok(found && strstr(manual, help.s), "doc/networks.md shows the table of layers as it is");
    char *from = found ? strstr(manual, "```yaml\n") : NULL, *to = from ? strstr(from + 8, "```") : NULL;
    if (to) *to = '\0';
    halo_network *net = to ? parse(from + 8) : NULL;
    tap_ok(net && net->layers == 13 && survives(net), "its example is a network");
    halo_network_destroy(net);
    hl_str_free(&help);
    free(path);
    free(manual);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    check_zoo();
    check_random();
    check_top_refusals();
    check_layer_refusals();
    check_input();
    check_mutations();
    check_manual();
    halo_context_destroy(ctx);
    return tap_done();
}
