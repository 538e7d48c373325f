/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c -- the building calls: shapes against the formulas worked out by brute force, and what bad layers
 * are told. */
#include "base/rng.h"
#include "net/graph.h"
#include "tests/tap.h"

static halo_context *ctx;

static halo_network *begin(int64_t c, int64_t d, int64_t h, int64_t w)
{
    halo_network *net = NULL;
    if (halo_network_create(ctx, "test", c, (int64_t[3]){d, h, w}, &net) != HALO_OK)
        tap_bail("create: %s", halo_error_message(ctx));
    return net;
}

static bool has_shape(const halo_network *net, int layer, int64_t c, int64_t d, int64_t h, int64_t w)
{
    int64_t s[4] = {0}, want[4] = {c, d, h, w};
    return halo_network_layer_shape(net, layer, s) == HALO_OK && memcmp(s, want, sizeof(s)) == 0;
}

/* The call failed with `status`, said `words`, and left the network alone. */
static void refused(halo_status got, halo_status status, const halo_network *net, int layers,
                    const char *words)
{
    const char *said = got == HALO_OK ? "(accepted)" : halo_error_message(ctx);
    tap_ok(got == status && strstr(said, words) && halo_network_layers(net) == layers, "refused: %s", said);
}

/* ------------------------------------------------------------------------------------------------------------
 * shapes */

/* Outputs of one axis counted one by one: windows whose last cell is inside the padded input. */
static int64_t count_windows(int64_t n, int64_t span, int64_t stride, int64_t padding)
{
    int64_t count = 0;
    for (int64_t at = 0; at + span <= n + padding; at += stride) count++;
    return count;
}

static bool axis_agrees(int64_t n, int64_t k, int64_t s, int64_t l, halo_padding padding, int64_t lo,
                        int64_t hi)
{
    halo_network *net = begin(2, n, 64, 64);
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    int id = 0;
    o.filters = 3;
    o.kernel[0] = k, o.stride[0] = s, o.dilation[0] = l, o.padding[0] = padding, o.pad[0][0] = lo,
    o.pad[0][1] = hi;
    int64_t span = l * (k - 1) + 1, ceil_out = (n + s - 1) / s;
    int64_t want = padding == HALO_PAD_EXPLICIT ? count_windows(n, span, s, lo + hi)
                   : padding == HALO_PAD_VALID  ? count_windows(n, span, s, 0)
                                                : ceil_out;
    halo_status st = halo_network_conv(net, 0, NULL, &o, &id);
    bool ok = want == 0 ? st == HALO_ERR_SHAPE : st == HALO_OK && has_shape(net, 1, 3, want, 62, 62);
    if (ok && want > 0 && padding != HALO_PAD_EXPLICIT) { /* what was filled in gives the extent again, with
                                                             no cell to spare, the odd one behind */
        const int64_t *pad = net->layer[1].pad[0];
        ok = count_windows(n, span, s, pad[0] + pad[1]) == want && pad[0] == net->layer[1].window.pad_lo[0];
        if (padding != HALO_PAD_VALID && pad[0] + pad[1] > 0)
            ok = ok && count_windows(n, span, s, pad[0] + pad[1] - 1) < want && pad[1] - pad[0] >= 0 &&
                 pad[1] - pad[0] <= 1;
    }
    halo_network_destroy(net);
    return ok;
}

static void check_axes(void)
{
    int64_t wrong = 0, tried = 0;
    for (int64_t n = 1; n <= 13; n++)
        for (int64_t k = 1; k <= 7; k++)
            for (int64_t s = 1; s <= 4; s++)
                for (int64_t l = 1; l <= 3; l++)
                    for (int p = 0; p <= HALO_PAD_PERIODIC; p++, tried++)
                        if (!axis_agrees(n, k, s, l, (halo_padding)p, (n + k) % 3, (n + s) % 4)) wrong++;
    tap_ok(wrong == 0, "%" PRId64 " windows: extents are those counted one by one", tried);
}

static void check_same(void)
{
    halo_network *net = begin(1, 6, 7, 1);
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = 8;
    o.kernel[2] = 1;
    for (int d = 0; d < 3; d++) o.padding[d] = HALO_PAD_SAME, o.stride[d] = 2;
    bool ok = halo_network_conv(net, 0, NULL, &o, NULL) == HALO_OK;
    const hl_layer *l = &net->layer[1];
    tap_ok(ok && has_shape(net, 1, 8, 3, 4, 1) && l->pad[0][0] == 0 && l->pad[0][1] == 1 &&
               l->pad[1][0] == 1 && l->pad[1][1] == 1,
           "same padding of 6 by kernel 3, stride 2 is (0, 1), of 7 (1, 1), as in TensorFlow");
    halo_network_destroy(net);
}

/* PyTorch's formula for explicit padding; n s for `same`; and the convolution that it turns round finds n windows in what came out, the first and last of
 * them not in the padding alone. */
static bool transposed_agrees(int64_t n, int64_t k, int64_t s, int64_t l, halo_padding padding, int64_t pad, int64_t more)
{
    halo_network *net = begin(2, n, 4, 4);
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    o.filters = 3;
    o.kernel[0] = k, o.stride[0] = s, o.dilation[0] = l, o.padding[0] = padding;
    o.pad[0][0] = pad, o.pad[0][1] = pad, o.output_padding[0] = padding == HALO_PAD_SAME ? 0 : more;
    if (padding != HALO_PAD_EXPLICIT) pad = 0;
    int64_t span = l * (k - 1) + 1, want = padding == HALO_PAD_SAME ? n * s : (n - 1) * s - 2 * pad + span + more;
    halo_status st = halo_network_conv_transpose(net, 0, NULL, &o, NULL);
    bool ok = want < 1 ? st == HALO_ERR_SHAPE : st == HALO_OK && has_shape(net, 1, 3, want, 8, 8);
    if (ok && want > 0) {
        const int64_t *p = net->layer[1].pad[0];
        ok = net->layer[1].window.pad_lo[0] == p[0] && count_windows(want, span, s, p[0] + p[1]) >= n &&
             (padding != HALO_PAD_SAME || (p[1] - p[0] >= 0 && p[1] - p[0] <= 1));
    }
    halo_network_destroy(net);
    return ok;
}

static void check_transposed(void)
{
    int64_t wrong = 0, tried = 0;
    for (int64_t n = 1; n <= 6; n++)
        for (int64_t k = 1; k <= 5; k++)
            for (int64_t s = 1; s <= 4; s++)
                for (int64_t l = 1; l <= 3; l++)
                    for (int p = 0; p < HALO_PAD_PERIODIC; p++, tried++)
                        if (!transposed_agrees(n, k, s, l, (halo_padding)p, (n + k) % 3, n % (s > l ? s : l))) wrong++;
    tap_ok(wrong == 0, "%" PRId64 " transposed windows: extents are PyTorch's, or the stride times the input", tried);
}

static void check_crops(void)
{
    halo_network *net = begin(2, 9, 8, 7);
    const int64_t cells[3][2] = {{1, 2}, {0, 3}, {2, 0}};
    int a = 0, b = 0;
    bool ok = halo_network_crop(net, 0, "a", cells, &a) == HALO_OK && halo_network_crop_like(net, 0, a, "b", &b) == HALO_OK;
    const hl_layer *l = &net->layer[b];
    tap_ok(ok && has_shape(net, a, 2, 6, 5, 5) && has_shape(net, b, 2, 6, 5, 5), "cropped by cells, and like another layer");
    tap_ok(ok && l->crop[0][0] == 1 && l->crop[0][1] == 2 && l->crop[1][0] == 1 && l->crop[1][1] == 2 && l->crop[2][0] == 1 &&
               l->crop[2][1] == 1,
           "a centre crop takes the odd cell off behind");
    refused(halo_network_crop_like(net, a, 0, NULL, NULL), HALO_ERR_SHAPE, net, 3, "'a' 2 x 6 x 5 x 5 (C D H W) is smaller along D than 'input'");
    refused(halo_network_crop_like(net, a, 7, NULL, NULL), HALO_ERR_USAGE, net, 3, "there is no layer 7");
    refused(halo_network_crop(net, a, NULL, (const int64_t[3][2]){{-1, 0}}, NULL), HALO_ERR_USAGE, net, 3, "cells is [[-1, 0], 0, 0]");
    refused(halo_network_crop(net, a, NULL, (const int64_t[3][2]){{3, 3}}, NULL), HALO_ERR_SHAPE, net, 3, "must be positive");
    halo_network_destroy(net);
}

static void check_upsample(void)
{
    halo_network *net = begin(2, 1, 8, 7);
    int a = 0, b = 0;
    bool ok = halo_network_upsample(net, 0, "a", (const int64_t[3]){1, 2, 2}, &a) == HALO_OK && halo_network_upsample(net, a, NULL, NULL, &b) == HALO_OK;
    tap_ok(ok && has_shape(net, a, 2, 1, 16, 14) && has_shape(net, b, 2, 2, 32, 28) && strcmp(halo_network_layer_name(net, b), "upsample2") == 0, "enlarged by one and two, channels as they were");
    refused(halo_network_upsample(net, a, NULL, (const int64_t[3]){1, 3, 2}, NULL), HALO_ERR_USAGE, net, 3, "factor is [1, 3, 2]");
    halo_network_destroy(net);
}

static void check_shapes(void)
{
    halo_network *net = begin(2, 8, 10, 12);
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    int a = 0, b, c, joined = 0, summed = 0, flat = 0, out = 0;
    conv.filters = 5, dense.outputs = 7;
    bool ok = halo_network_conv(net, 0, "a", &conv, &a) == HALO_OK &&
              halo_network_norm(net, a, NULL, &norm, &b) == HALO_OK &&
              halo_network_activation(net, b, "b", HALO_ACT_RELU, 0, &b) == HALO_OK &&
              halo_network_conv(net, 0, "c", &conv, &c) == HALO_OK &&
              halo_network_add(net, (int[]){b, c}, 2, NULL, &summed) == HALO_OK &&
              halo_network_concat(net, (int[]){a, summed, c}, 3, "joined", &joined) == HALO_OK &&
              halo_network_pool(net, joined, NULL, &pool, &out) == HALO_OK &&
              halo_network_flatten(net, out, NULL, &flatten, &flat) == HALO_OK &&
              halo_network_dropout(net, flat, NULL, 0.5, &flat) == HALO_OK &&
              halo_network_dense(net, flat, NULL, &dense, &out) == HALO_OK;
    tap_ok(ok, "a network with branches is built");
    tap_ok(has_shape(net, a, 5, 6, 8, 10) && has_shape(net, summed, 5, 6, 8, 10) &&
               has_shape(net, joined, 15, 6, 8, 10) && has_shape(net, flat, 15 * 3 * 4 * 5, 1, 1, 1) &&
               has_shape(net, out, 7, 1, 1, 1),
           "each layer has its shape");
    tap_ok(halo_network_parameters(net) == 2 * (5 * 2 * 27 + 5) + 10 + 7 * 900 + 7, "parameters: %" PRId64,
           halo_network_parameters(net));
    tap_ok(halo_network_find(net, "joined") == joined && halo_network_find(net, "nothing") == -1 &&
               halo_network_find(net, "input") == 0,
           "layers are found by name");
    tap_ok(strcmp(halo_network_layer_name(net, 2), "norm1") == 0 && !halo_network_layer_name(net, -1) &&
               !halo_network_layer_name(net, 99),
           "names are made where none is given");
    int64_t s[4];
    refused(halo_network_layer_shape(net, 99, s), HALO_ERR_USAGE, net, 11, "there is no layer 99");
    tap_ok(hl_graph_check(net) == HALO_OK, "every layer is used");
    halo_network_destroy(net);
}

/* 8^3 x 256 values in rows of 2048. */
static void check_rows(void)
{
    halo_network *net = begin(256, 8, 8, 8);
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    int flat = 0, out = 0;
    flatten.features = 2048, dense.outputs = 3;
    bool ok = halo_network_flatten(net, 0, "rows", &flatten, &flat) == HALO_OK &&
              halo_network_dense(net, flat, NULL, &dense, &out) == HALO_OK;
    tap_ok(ok && net->layer[flat].rows == 64 && net->layer[out].rows == 64 &&
               has_shape(net, out, 3, 1, 1, 1) && halo_network_parameters(net) == 3 * 2048 + 3,
           "a flatten into rows: 64 of 2048");
    refused(halo_network_norm(net, flat, NULL, &norm, NULL), HALO_ERR_SHAPE, net, 3,
            "was cut into 64 rows, which a norm layer cannot take");
    flatten.features = 1000;
    refused(halo_network_flatten(net, 0, "odd", &flatten, NULL), HALO_ERR_SHAPE, net, 3,
            "layer 'odd': input 256 x 8 x 8 x 8 (C D H W) has 131072 values");
    halo_network_destroy(net);
}

/* ----------------------------------------------------------------------------------------------------------
 * refusals */

static void refuse_conv(const halo_network *net, halo_conv_options o, halo_status status, const char *words)
{
    halo_network *n = (halo_network *)(uintptr_t)net;
    refused(halo_network_conv(n, 0, "conv3", &o, NULL), status, net, halo_network_layers(net), words);
}

static void check_conv_refusals(void)
{
    halo_network *net = begin(64, 3, 9, 9);
    halo_conv_options good = HALO_CONV_OPTIONS_INIT, o;
    good.filters = 16;
    o = good, o.kernel[0] = o.kernel[1] = o.kernel[2] = 4;
    refuse_conv(net, o, HALO_ERR_SHAPE,
                "network 'test': layer 'conv3': input 64 x 3 x 9 x 9 (C D H W), kernel 4 x 4 x 4, stride 1 x "
                "1 x 1, dilation 1 x 1 x 1, "
                "padding 0+0 0+0 0+0: the output's D H W would be 0 x 6 x 6, all must be positive");
    o = good, o.kernel[0] = 7, o.stride[0] = 2;
    refuse_conv(net, o, HALO_ERR_SHAPE, "would be -1 x 7 x 7");
    o = good, o.kernel[1] = 0;
    refuse_conv(net, o, HALO_ERR_USAGE,
                "layer 'conv3': kernel is [3, 0, 3], must be a whole number, or [D, H, W], from 1 to 7");
    o = good, o.kernel[0] = o.kernel[1] = o.kernel[2] = 8;
    refuse_conv(net, o, HALO_ERR_USAGE, "kernel is 8, must be a whole number, or [D, H, W], from 1 to 7");
    o = good, o.stride[2] = 0;
    refuse_conv(net, o, HALO_ERR_USAGE, "stride is [1, 1, 0], must be");
    o = good, o.stride[2] = -1;
    refuse_conv(net, o, HALO_ERR_USAGE, "stride is [1, 1, -1], must be");
    o = good, o.dilation[0] = (int64_t)1 << 31;
    refuse_conv(net, o, HALO_ERR_USAGE, "dilation is [2147483648, 1, 1], must be");
    o = good, o.dilation[0] = 1024;
    refuse_conv(net, o, HALO_ERR_SHAPE, "would be -2045 x 7 x 7");
    o = good, o.padding[0] = HALO_PAD_EXPLICIT, o.pad[0][0] = -1;
    refuse_conv(net, o, HALO_ERR_USAGE, "padding is [[-1, 0], valid, valid], must be");
    o = good, o.padding[0] = HALO_PAD_EXPLICIT, o.pad[0][1] = INT64_MAX;
    refuse_conv(net, o, HALO_ERR_USAGE, "padding is [[0, 9223372036854775807], valid, valid], must be");
    o = good, o.padding[1] = (halo_padding)9;
    refuse_conv(net, o, HALO_ERR_USAGE, "padding is not a value of its enum");
    o = good, o.init = (halo_init)17;
    refuse_conv(net, o, HALO_ERR_USAGE, "init is not a value of its enum, must be one of glorot_uniform");
    o = good, o.bias_init = NAN;
    refuse_conv(net, o, HALO_ERR_USAGE, "bias_init is nan");
    o = good, o.filters = 0;
    refuse_conv(net, o, HALO_ERR_USAGE, "filters is 0, must be a whole number from 1 to 2147483647");
    o = good, o.size = 8;
    refuse_conv(net, o, HALO_ERR_USAGE, "halo_conv_options has size 8");
    refused(halo_network_conv(net, 0, "x", NULL, NULL), HALO_ERR_USAGE, net, 1, "'options' must not be NULL");
    refused(halo_network_conv(net, 5, "x", &good, NULL), HALO_ERR_USAGE, net, 1,
            "layer 'x': there is no layer 5");
    refused(halo_network_conv(net, -1, "x", &good, NULL), HALO_ERR_USAGE, net, 1, "there is no layer -1");
    halo_network_destroy(net);
}

static void check_other_refusals(void)
{
    halo_network *net = begin(4, 8, 8, 8);
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    int a;
    conv.filters = 6, dense.outputs = 2;
    if (halo_network_conv(net, 0, "a", &conv, &a) != HALO_OK) tap_bail("conv");
    refused(halo_network_add(net, (int[]){0, a}, 2, "sum", NULL), HALO_ERR_SHAPE, net, 2,
            "layer 'sum': inputs 'input' 4 x 8 x 8 x 8 and 'a' 6 x 6 x 6 x 6 (C D H W) must be equal");
    refused(
        halo_network_concat(net, (int[]){0, a}, 2, "cat", NULL), HALO_ERR_SHAPE, net, 2,
        "layer 'cat': inputs 'input' 4 x 8 x 8 x 8 and 'a' 6 x 6 x 6 x 6 (C D H W) must be equal in D H W");
    refused(halo_network_add(net, &a, 1, NULL, NULL), HALO_ERR_USAGE, net, 2,
            "layer 'add': 1 inputs, must be 2 to 16");
    refused(halo_network_add(net, (int[17]){0}, 17, NULL, NULL), HALO_ERR_USAGE, net, 2,
            "17 inputs, must be 2 to 16");
    refused(halo_network_add(net, (int[]){0, 7}, 2, "s", NULL), HALO_ERR_USAGE, net, 2,
            "layer 's': there is no layer 7");
    refused(halo_network_dense(net, a, "fc", &dense, NULL), HALO_ERR_SHAPE, net, 2,
            "layer 'fc': input 'a' is 6 x 6 x 6 x 6 (C D H W), a dense layer needs a vector");
    for (int d = 0; d < 3; d++) pool.padding[d] = HALO_PAD_EXPLICIT;
    pool.pad[1][1] = 2;
    refused(halo_network_pool(net, a, "p", &pool, NULL), HALO_ERR_USAGE, net, 2,
            "layer 'p': padding 0+2 along H must be less than the kernel's 2 cells");
    pool.kind = (halo_pool)5;
    refused(halo_network_pool(net, a, "p", &pool, NULL), HALO_ERR_USAGE, net, 2,
            "layer 'p': no such kind of pool");
    refused(halo_network_activation(net, a, "r", (halo_act)77, 0, NULL), HALO_ERR_USAGE, net, 2,
            "layer 'r': no such kind of act");
    refused(halo_network_activation(net, a, "r", HALO_ACT_LEAKY_RELU, 1, NULL), HALO_ERR_USAGE, net, 2,
            "slope is 1, must be a number above 0 and below 1");
    refused(halo_network_dropout(net, a, "d", 0, NULL), HALO_ERR_USAGE, net, 2,
            "keep is 0, must be a number above 0 and at most 1");
    norm.eps = 0;
    refused(halo_network_norm(net, a, "n", &norm, NULL), HALO_ERR_USAGE, net, 2,
            "eps is 0, must be a number above 0");
    refused(halo_network_conv(net, a, "a", &conv, NULL), HALO_ERR_USAGE, net, 2,
            "there is a layer 'a' already");
    refused(halo_network_conv(net, a, "a/b", &conv, NULL), HALO_ERR_USAGE, net, 2,
            "'a/b' cannot name a layer");
    refused(halo_network_conv(net, a, "", &conv, NULL), HALO_ERR_USAGE, net, 2, "'' cannot name a layer");
    refused(halo_network_conv(net, a, "an_unreasonably_long_name_for_a_layer_that_has_more_than_63_letters",
                              &conv, NULL),
            HALO_ERR_USAGE, net, 2, "cannot name a layer");
    if (halo_network_conv(net, 0, "unused", &conv, NULL) != HALO_OK ||
        halo_network_conv(net, a, "b", &conv, NULL) != HALO_OK)
        tap_bail("conv");
    refused(hl_graph_check(net), HALO_ERR_USAGE, net, 4,
            "layer 'unused' is the input of no other, and not the last one");
    halo_network_destroy(net);
}

static void check_sizes(void)
{
    halo_network *net = NULL;
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    tap_ok(
        halo_network_create(ctx, "big", 1, (int64_t[3]){1 << 30, 1 << 30, 1}, &net) == HALO_ERR_SHAPE &&
            strstr(halo_error_message(ctx), "1 x 1073741824 x 1073741824 x 1 (C D H W) has too many values"),
        "refused: %s", halo_error_message(ctx));
    tap_ok(halo_network_create(ctx, "none", 0, (int64_t[3]){8, 8, 8}, &net) == HALO_ERR_SHAPE && !net,
           "refused: %s", halo_error_message(ctx));
    tap_ok(halo_network_create(ctx, "a b", 1, (int64_t[3]){8, 8, 8}, &net) == HALO_ERR_USAGE && !net,
           "refused: %s", halo_error_message(ctx));
    net = begin(1, 2048, 2048, 2048);
    conv.filters = 16;
    for (int d = 0; d < 3; d++) conv.padding[d] = HALO_PAD_SAME;
    tap_ok(halo_network_conv(net, 0, NULL, &conv, NULL) == HALO_OK && has_shape(net, 1, 16, 2048, 2048, 2048),
           "2^37 values are fine");
    conv.filters = 1 << 25;
    refused(halo_network_conv(net, 1, NULL, &conv, NULL), HALO_ERR_SHAPE, net, 2, "has too many values");
    int flat;
    if (halo_network_flatten(net, 1, "flat", &flatten, &flat) != HALO_OK) tap_bail("flatten");
    dense.outputs = 1 << 30;
    refused(halo_network_dense(net, flat, "fc", &dense, NULL), HALO_ERR_SHAPE, net, 3,
            "layer 'fc': too many ");
    halo_network_destroy(net);
    net = begin(1, 1, 1, 1);
    int i = 1;
    while (i < HL_LAYERS_MAX && halo_network_activation(net, i - 1, NULL, HALO_ACT_RELU, 0, NULL) == HALO_OK)
        i++;
    refused(halo_network_activation(net, 0, NULL, HALO_ACT_RELU, 0, NULL), HALO_ERR_USAGE, net, HL_LAYERS_MAX,
            "more than 4096 layers");
    halo_network_destroy(net);
}

/* ------------------------------------------------------------------------------------------------------------
 * arguments that are not there */

static void without(const halo_context *c, halo_status got, const char *name)
{
    char words[64];
    snprintf(words, sizeof(words), "'%s' must not be NULL", name);
    tap_ok(got == HALO_ERR_USAGE && strcmp(halo_error_message(c), words) == 0, "refused: %s", words);
}

static void check_no_network(void)
{
    static const char text[] = "input: {channels: 1, size: 4}\nlayers:\n  - act: {kind: relu}\n";
    const int64_t size[3] = {4, 4, 4};
    halo_network *net = NULL;
    without(NULL, halo_network_create(NULL, "a", 1, size, &net), "ctx");
    without(ctx, halo_network_create(ctx, "a", 1, NULL, &net), "extents");
    without(ctx, halo_network_create(ctx, "a", 1, size, NULL), "net");
    tap_ok(halo_network_create(ctx, NULL, 1, size, &net) == HALO_ERR_USAGE, "refused: %s", halo_error_message(ctx));
    without(NULL, halo_network_parse(NULL, "a", text, sizeof(text) - 1, 0, NULL, &net), "ctx");
    without(ctx, halo_network_parse(ctx, NULL, text, sizeof(text) - 1, 0, NULL, &net), "name");
    without(ctx, halo_network_parse(ctx, "a", NULL, 8, 0, NULL, &net), "text");
    without(ctx, halo_network_parse(ctx, "a", NULL, 0, 0, NULL, &net), "text");
    without(ctx, halo_network_parse(ctx, "a", text, sizeof(text) - 1, 0, NULL, NULL), "net");
    without(NULL, halo_network_load(NULL, "a.yaml", 0, NULL, &net), "ctx");
    without(ctx, halo_network_load(ctx, NULL, 0, NULL, &net), "path");
    without(ctx, halo_network_load(ctx, "a.yaml", 0, NULL, NULL), "net");
    without(NULL, halo_network_zoo(NULL, "cosmoflow", NULL, &net), "ctx");
    without(ctx, halo_network_zoo(ctx, NULL, NULL, &net), "name");
    without(ctx, halo_network_zoo(ctx, "cosmoflow", NULL, NULL), "net");
    without(NULL, halo_context_create(NULL, NULL), "ctx");
    tap_ok(!net, "and no network was made");
}

static void check_null(void)
{
    halo_network *net = begin(1, 4, 4, 4);
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    int64_t shape[4];
    char *text;
    int last = 0;
    without(NULL, halo_network_conv(NULL, 0, NULL, &conv, NULL), "net");
    without(NULL, halo_network_pool(NULL, 0, NULL, NULL, NULL), "net");
    without(NULL, halo_network_norm(NULL, 0, NULL, NULL, NULL), "net");
    without(NULL, halo_network_activation(NULL, 0, NULL, HALO_ACT_RELU, 0, NULL), "net");
    without(NULL, halo_network_dropout(NULL, 0, NULL, 0.5, NULL), "net");
    without(NULL, halo_network_flatten(NULL, 0, NULL, NULL, NULL), "net");
    without(NULL, halo_network_dense(NULL, 0, NULL, &dense, NULL), "net");
    without(NULL, halo_network_add(NULL, (int[2]){0}, 2, NULL, NULL), "net");
    without(NULL, halo_network_layer_shape(NULL, 0, shape), "net");
    without(NULL, halo_network_text(NULL, &text), "net");
    without(ctx, halo_network_conv(net, 0, NULL, NULL, NULL), "options");
    without(ctx, halo_network_dense(net, 0, NULL, NULL, NULL), "options");
    without(ctx, halo_network_add(net, NULL, 2, NULL, NULL), "inputs");
    without(ctx, halo_network_concat(net, NULL, 2, NULL, NULL), "inputs");
    without(ctx, halo_network_layer_shape(net, 0, NULL), "shape");
    without(ctx, halo_network_text(net, NULL), "text");
    tap_ok(halo_network_layers(NULL) == 0 && halo_network_find(NULL, "a") == -1 && halo_network_find(net, NULL) == -1 &&
               !halo_network_layer_name(NULL, 0) && halo_network_parameters(NULL) == 0,
           "no network has no layers");
    tap_ok(halo_network_layers(net) == 1, "a refused layer is not added");
    tap_ok(halo_network_norm(net, 0, NULL, NULL, &last) == HALO_OK && halo_network_pool(net, last, NULL, NULL, &last) == HALO_OK &&
               has_shape(net, last, 1, 2, 2, 2) && halo_network_flatten(net, last, NULL, NULL, &last) == HALO_OK,
           "norm, pool and flatten have defaults for all their options");
    halo_network_destroy(net);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    check_axes();
    check_same();
    check_transposed();
    check_crops();
    check_upsample();
    check_shapes();
    check_rows();
    check_conv_refusals();
    check_other_refusals();
    check_sizes();
    check_no_network();
    check_null();
    halo_context_destroy(ctx);
    return tap_done();
}
