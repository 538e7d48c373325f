/* SPDX-License-Identifier: Apache-2.0 */
/* random.c -- see random.h. */
#include "tests/net/random.h"

#include "base/rng.h"

static uint64_t seed_now, draws;

int64_t random_below(int64_t n)
{
    return (int64_t)hl_rng_below(seed_now, HL_STREAM_TEST, draws++, 77, (uint64_t)n);
}

static halo_padding random_padding(void)
{
    return (halo_padding)random_below(4);
}

/* --------------------------------------------------------------------------------------------- adding layers
 */

static halo_status try_conv(halo_network *net, int x)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = 1 + random_below(10);
    o.bias = random_below(4) > 0;
    o.bias_init = 0.1; /* a window of padding alone must not stand on a kink */
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + random_below(4);
        o.stride[a] = 1 + (random_below(3) == 0);
        o.dilation[a] = 1 + (random_below(4) == 0);
        o.padding[a] = random_padding();
        o.pad[a][0] = o.padding[a] == HALO_PAD_EXPLICIT ? random_below(3) : 0;
        o.pad[a][1] = o.padding[a] == HALO_PAD_EXPLICIT ? random_below(3) : 0;
    }
    return halo_network_conv(net, x, NULL, &o, NULL);
}

static halo_status try_pool(halo_network *net, int x)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    o.kind = (halo_pool)random_below(2);
    o.count_pad = random_below(2);
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + random_below(3);
        o.stride[a] = 1 + random_below(2);
        o.padding[a] = random_padding();
        o.pad[a][0] = o.padding[a] == HALO_PAD_EXPLICIT ? random_below(o.kernel[a]) : 0;
    }
    return halo_network_pool(net, x, NULL, &o, NULL);
}

static halo_status try_norm(halo_network *net, int x)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    o.scope = (halo_norm_scope)random_below(3);
    if (o.scope == HALO_NORM_GROUP) o.groups = 1 + random_below(3);
    return halo_network_norm(net, x, NULL, &o, NULL);
}

static halo_status try_transposed(halo_network *net, int x)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    o.filters = 1 + random_below(10);
    o.bias = random_below(4) > 0;
    o.bias_init = 0.1;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + random_below(4);
        o.stride[a] = 1 + random_below(3);
        o.dilation[a] = 1 + (random_below(4) == 0);
        o.padding[a] = (halo_padding)random_below(3);
        for (int side = 0; side < 2; side++) o.pad[a][side] = o.padding[a] == HALO_PAD_EXPLICIT ? random_below(3) : 0;
        if (o.padding[a] != HALO_PAD_SAME) o.output_padding[a] = random_below(o.stride[a]);
    }
    if (net->layer[x].out[1] * net->layer[x].out[2] * net->layer[x].out[3] > 400) return HALO_ERR_USAGE; /* seconds */
    return halo_network_conv_transpose(net, x, NULL, &o, NULL);
}

static halo_status try_crop(halo_network *net, int x)
{
    int64_t cells[3][2];
    if (random_below(2)) return halo_network_crop_like(net, x, (int)random_below(net->layers), NULL, NULL);
    for (int i = 0; i < 6; i++) cells[i / 2][i % 2] = random_below(3);
    return halo_network_crop(net, x, NULL, (const int64_t(*)[2])cells, NULL);
}

static halo_status try_upsample(halo_network *net, int x)
{
    const int64_t *in = net->layer[x].out, factor[3] = {1 + random_below(2), 1 + random_below(2), 1 + random_below(2)};
    if (in[1] * in[2] * in[3] > 200) return HALO_ERR_USAGE; /* seconds */
    return halo_network_upsample(net, x, NULL, factor, NULL);
}

static halo_status try_act(halo_network *net, int x)
{
    halo_act act = (halo_act)(1 + random_below(5));
    return halo_network_activation(net, x, NULL, act, act == HALO_ACT_SCALE ? 1.3 : 0.2, NULL);
}

static halo_status try_join(halo_network *net, bool concat)
{
    int in[4], n = 2 + (int)random_below(3), first = (int)random_below(net->layers);
    const int64_t *shape = net->layer[first].out;
    in[0] = first;
    for (int k = 1; k < n; k++) {
        int tries = 0;
        do {
            in[k] = (int)random_below(net->layers);
            const int64_t *s = net->layer[in[k]].out;
            if (memcmp(s + 1, shape + 1, 3 * sizeof(*s)) == 0 && (concat || s[0] == shape[0])) break;
        } while (++tries < 50);
        if (tries == 50) in[k] = first;
    }
    return concat ? halo_network_concat(net, in, n, NULL, NULL) : halo_network_add(net, in, n, NULL, NULL);
}

/* May fail: then the network is as before. */
static void try_layer(halo_network *net)
{
    int x = random_below(3) ? net->layers - 1 : (int)random_below(net->layers);
    switch (random_below(12)) {
    case 0:
    case 1:
    case 2:
        (void)try_conv(net, x);
        return;
    case 3:
        (void)try_pool(net, x);
        return;
    case 4:
    case 5:
        (void)try_act(net, x);
        return;
    case 6:
        (void)try_norm(net, x);
        return;
    case 7:
        (void)halo_network_dropout(net, x, NULL, 0.7, NULL);
        return;
    case 8:
    case 9:
        (void)try_transposed(net, x);
        return;
    case 10:
        (void)(random_below(2) ? try_crop(net, x) : try_upsample(net, x));
        return;
    default:
        (void)try_join(net, random_below(2));
        return;
    }
}

halo_network *random_network(halo_context *ctx, uint64_t seed, int64_t least)
{
    halo_network *net;
    char name[32];
    seed_now = seed;
    draws = 0;
    snprintf(name, sizeof(name), "random-%d", (int)seed);
    const int64_t extents[3] = {least + random_below(5), least + random_below(5), least + random_below(5)};
    check_status(ctx, halo_network_create(ctx, name, 1 + random_below(9), extents, &net), name);
    for (int n = 4 + (int)random_below(9); n > 0; n--) try_layer(net);
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    dense.outputs = 2;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    flatten.channels_last = random_below(2);
    if (random_below(4)) {
        check_status(ctx, halo_network_flatten(net, net->layers - 1, NULL, &flatten, NULL), name);
        check_status(ctx, halo_network_dense(net, net->layers - 1, NULL, &dense, NULL), name);
    } else if (try_conv(net, net->layers - 1) != HALO_OK && try_norm(net, net->layers - 1) != HALO_OK) {
        check_status(ctx, try_act(net, net->layers - 1), name);
    }
    return net;
}

/* ----------------------------------------------------------------------------------------------- dense blocks */

typedef struct dense {
    halo_network *net;
    const char *name;
    int64_t growth, kernel[3];
    bool around, drops;
} dense;

static int dense_conv(const dense *b, int x)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    int y;
    o.filters = b->growth;
    o.bias_init = 0.1;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = b->kernel[a];
        o.padding[a] = b->around ? HALO_PAD_PERIODIC : HALO_PAD_SAME;
    }
    check_status(b->net->ctx, halo_network_conv(b->net, x, NULL, &o, &y), b->name);
    if (b->drops) check_status(b->net->ctx, halo_network_dropout(b->net, y, NULL, 0.7, &y), b->name);
    return y;
}

static int dense_act(const dense *b, int x)
{
    int y;
    check_status(b->net->ctx, halo_network_activation(b->net, x, NULL, HALO_ACT_TANH, 0, &y), b->name);
    return y;
}

static int dense_join(const dense *b, const int *in, int n)
{
    int y;
    check_status(b->net->ctx, halo_network_concat(b->net, in, n, NULL, &y), b->name);
    return y;
}

/* Activated as a whole before each layer; joined anew for each; or piece by piece, onto two stacks. Returns all that there is. */
static int dense_block(const dense *b, int x, int64_t layers)
{
    const int64_t way = random_below(3);
    int piece[8] = {x}, stack = x, active = dense_act(b, x);
    for (int i = 1; i <= layers; i++) {
        piece[i] = dense_conv(b, way == 0 && i > 1 ? dense_act(b, stack) : active);
        if (way == 1 && i < layers) active = dense_join(b, piece, i + 1);
        if (way == 2 && i < layers) active = dense_join(b, (int[2]){active, dense_act(b, piece[i])}, 2);
        if (way != 1) stack = dense_join(b, (int[2]){stack, piece[i]}, 2);
    }
    return way == 1 ? dense_join(b, piece, (int)layers + 1) : stack;
}

halo_network *random_dense_network(halo_context *ctx, uint64_t seed, int64_t least)
{
    char name[32];
    seed_now = seed;
    draws = 0;
    snprintf(name, sizeof(name), "dense-%d", (int)seed);
    const bool flat = random_below(2);
    const int64_t extents[3] = {flat ? 1 : least + random_below(3), 2 * (least / 2 + random_below(3)), 2 * (least / 2 + random_below(3))};
    dense b = {.name = name, .growth = 4 + 4 * random_below(4), .around = random_below(4) == 0, .drops = random_below(2)};
    for (int a = 0; a < 3; a++) b.kernel[a] = a == 0 && flat ? 1 : 1 + 2 * random_below(2);
    check_status(ctx, halo_network_create(ctx, name, 1 + random_below(4), extents, &b.net), name);
    int skip = dense_block(&b, dense_conv(&b, 0), 1 + random_below(3)), x = skip;
    if (random_below(3) > 0) {
        halo_pool_options half = HALO_POOL_OPTIONS_INIT;
        halo_conv_transpose_options twice = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
        half.kernel[0] = half.stride[0] = twice.kernel[0] = twice.stride[0] = 1;
        twice.filters = b.growth;
        if (random_below(2)) check_status(ctx, try_norm(b.net, x), name), x = b.net->layers - 1;
        check_status(ctx, halo_network_pool(b.net, x, NULL, &half, &x), name);
        x = dense_block(&b, x, 1 + random_below(2));
        check_status(ctx, halo_network_conv_transpose(b.net, x, NULL, &twice, &x), name);
        const int both[2] = {skip, x}, turned[2] = {x, skip};
        x = dense_join(&b, random_below(2) ? both : turned, 2);
    }
    x = dense_block(&b, x, 1 + random_below(2));
    if (random_below(3)) (void)dense_conv(&b, x);
    return b.net;
}
