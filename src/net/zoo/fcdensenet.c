/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fcdensenet.c -- an image from an image: Jegou et al., "The one hundred layers Tiramisu: fully convolutional DenseNets for semantic segmentation", 2017, in the form in which Laanait et
 * al., "Exascale deep learning for scientific inverse problems", 2019, took stacks of diffraction patterns (1024 scan positions as channels, 512 x 512) back to the potential that
 * scattered. P poolings, blocks of n_0 .. n_2P layers ([2,2,3,4,3,2,2]), growth k:
 *
 *   stem     conv K to k channels
 *   dense    n times: of all that the block has, relu, conv K to k channels, dropout; joined to what the block has. No norms.
 *   down     norm, relu, conv 1 without change of channels, max pool 2, after each of the first P blocks
 *   up       conv_transpose U stride 2 of what the block before made itself, without change of channels, joined with what the block across had before its pool
 *   out      conv 1 of all that the last block has
 *
 * The published sources give growth and kernel, and six counts of weights; no file has the rest. What matches all six (6.0, 15.8, 22.9, 59.8, 89.1, 233 million) follows from them: at growth k
 * and kernel K they are 133 k^2 K^2 + 127 k^2 + 1024 k K^2 and terms in k alone. 133 = 3 + 7 + 18 + 38 + 39 + 17 + 11 are the pairs of k channels that the layers of the seven blocks join,
 * with n_4 k, n_3 k... channels from below; 98 = 9 + 25 + 64 are those of the convolutions in front of pools, so that 29 = 4^2 + 3^2 + 2^2 are left for the transposed ones: a kernel of one
 * cell, U = 1, which is also the only one that matches the operations (2.5 to 74.7 TF a step). It fills every other cell; what comes next spreads it. The terms in k decide little: biases
 * of stem, dense layers and head, none of the convolutions that only lead from one block to the next, and 2 numbers of each norm.
 *
 * relu(joined(a, b)) = joined(relu(a), relu(b)): each piece is activated once, and a block has two stacks, as it is and activated, of which its layers read ever longer beginnings. What is
 * never read as it is (the stack of blocks on the way up but the last) is not joined.
 */
#include "net/zoo/zoo.h"

#include <stdio.h>

enum { MOST_BLOCKS = HALO_ZOO_BLOCKS - 1, MOST_LAYERS = 64 };

typedef struct builder {
    halo_network *net;
    int64_t growth, kernel, up_kernel;
    const int64_t *block;
    int blocks;
    bool deep, periodic; /* deep: windows reach along D, too */
    double keep;         /* 1: no dropout */
    char name[HL_NAME_MAX];
} builder;

/* A pair of layers; -1: nobody needs it. */
typedef struct stack {
    int raw, active; /* as it is, and behind the activation */
} stack;

static const char *name_of(builder *b, const char *place, const char *stem, int64_t number)
{
    if (number > 0)
        snprintf(b->name, sizeof(b->name), "%s_%s%" PRId64, place, stem, number);
    else
        snprintf(b->name, sizeof(b->name), "%s_%s", place, stem);
    return b->name;
}

static halo_status add_conv(builder *b, int from, const char *name, int64_t filters, int64_t kernel, bool bias, int *layer)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = filters;
    o.bias = bias;
    o.init = HALO_INIT_HE_NORMAL;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = a > 0 || b->deep ? kernel : 1;
        o.padding[a] = b->periodic ? HALO_PAD_PERIODIC : HALO_PAD_SAME;
    }
    return halo_network_conv(b->net, from, name, &o, layer);
}

static halo_status activate(builder *b, int from, const char *name, int *layer) { return halo_network_activation(b->net, from, name, HALO_ACT_RELU, 0, layer); }

static halo_status join(builder *b, int first, int second, const char *name, int *layer)
{
    const int both[2] = {first, second};
    if (first < 0 || second < 0) {
        *layer = first < 0 ? second : first;
        return HALO_OK;
    }
    return halo_network_concat(b->net, both, 2, name, layer);
}

/* What a block needs of what it makes: everything as it is (in front of a pool, and at the end), everything activated (across, and at the end of nothing), what it made itself. */
typedef struct wants {
    bool raw, active, made;
} wants;

/* x: what the block begins with. out: all that it has; *made: what it made itself. */
static halo_status add_block(builder *b, const char *place, int64_t layers, stack x, wants w, stack *out, int *made)
{
    *made = -1;
    for (int64_t i = 1; i <= layers; i++) {
        int y, act;
        HL_TRY(add_conv(b, x.active, name_of(b, place, "conv", i), b->growth, b->kernel, true, &y));
        if (b->keep < 1) HL_TRY(halo_network_dropout(b->net, y, name_of(b, place, "drop", i), b->keep, &y));
        if (i < layers || w.active) {
            HL_TRY(activate(b, y, name_of(b, place, "act", i), &act));
            HL_TRY(join(b, x.active, act, name_of(b, place, "active", i), &x.active));
        }
        if (w.raw) HL_TRY(join(b, x.raw, y, name_of(b, place, "stack", i), &x.raw));
        if (w.made) HL_TRY(join(b, *made, y, name_of(b, place, "made", i), made));
    }
    *out = x;
    return HALO_OK;
}

static halo_status add_down(builder *b, const char *place, int64_t channels, int *layer)
{
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    if (!b->deep) pool.kernel[0] = pool.stride[0] = 1;
    HL_TRY(halo_network_norm(b->net, *layer, name_of(b, place, "norm", 0), &norm, layer));
    HL_TRY(activate(b, *layer, name_of(b, place, "relu", 0), layer));
    HL_TRY(add_conv(b, *layer, name_of(b, place, "down", 0), channels, 1, false, layer));
    return halo_network_pool(b->net, *layer, name_of(b, place, "pool", 0), &pool, layer);
}

/* Twice as large, and joined with what the block across has. */
static halo_status add_up(builder *b, const char *place, int64_t channels, int from, stack across, bool raw, stack *out)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    int y, act;
    o.filters = channels;
    o.bias = false;
    o.init = HALO_INIT_HE_NORMAL;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = a > 0 || b->deep ? b->up_kernel : 1;
        o.stride[a] = a > 0 || b->deep ? 2 : 1;
        o.padding[a] = HALO_PAD_SAME;
    }
    out->raw = -1;
    HL_TRY(halo_network_conv_transpose(b->net, from, name_of(b, place, "up", 0), &o, &y));
    HL_TRY(activate(b, y, name_of(b, place, "up_act", 0), &act));
    HL_TRY(join(b, across.active, act, name_of(b, place, "active", 0), &out->active));
    return raw ? join(b, across.raw, y, name_of(b, place, "stack", 0), &out->raw) : HALO_OK;
}

/* x: what the block begins with, as it is. */
static halo_status begin_block(builder *b, const char *place, int x, stack *out)
{
    out->raw = x;
    return activate(b, x, name_of(b, place, "act", 0), &out->active);
}

static halo_status add_all(builder *b, int64_t stem, int64_t outputs)
{
    const int pools = b->blocks / 2;
    stack across[MOST_BLOCKS], x;
    char place[16];
    int64_t channels = stem;
    int last, made;
    HL_TRY(add_conv(b, 0, "stem", stem, b->kernel, true, &last));
    for (int i = 0; i < pools; i++) {
        snprintf(place, sizeof(place), "down%d", i + 1);
        HL_TRY(begin_block(b, place, last, &x));
        HL_TRY(add_block(b, place, b->block[i], x, (wants){.raw = true, .active = true}, &across[i], &made));
        channels += b->growth * b->block[i];
        last = across[i].raw;
        HL_TRY(add_down(b, place, channels, &last));
    }
    HL_TRY(begin_block(b, "bottom", last, &x));
    HL_TRY(add_block(b, "bottom", b->block[pools], x, (wants){.made = pools > 0, .raw = pools == 0}, &x, &made));
    for (int i = pools - 1; i >= 0; i--) {
        const bool raw = i == 0; /* the head reads all of it */
        snprintf(place, sizeof(place), "up%d", i + 1);
        HL_TRY(add_up(b, place, b->growth * b->block[2 * pools - 1 - i], made, across[i], raw, &x));
        HL_TRY(add_block(b, place, b->block[2 * pools - i], x, (wants){.raw = raw, .made = !raw}, &x, &made));
    }
    return add_conv(b, x.raw, "head", outputs, 1, true, &last);
}

static halo_status bad(halo_context *ctx, const char *what, int64_t is, int64_t most) { return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet: %s is %" PRId64 ", must be 1 to %" PRId64, what, is, most); }

static halo_status check_blocks(halo_context *ctx, const builder *b)
{
    if (b->blocks % 2 == 0) return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet: %d blocks; there must be one between as many on the way down as on the way up: 1, 3, 5...", b->blocks);
    for (int i = 0; i < b->blocks; i++)
        if (b->block[i] < 1 || b->block[i] > MOST_LAYERS) return bad(ctx, "the layers of a block", b->block[i], MOST_LAYERS);
    return HALO_OK;
}

static halo_status check(halo_context *ctx, const halo_zoo_options *o, const builder *b, int64_t stem)
{
    const int64_t tile = (int64_t)1 << (b->blocks / 2);
    HL_TRY(check_blocks(ctx, b));
    if (b->growth < 1 || b->growth > 4096) return bad(ctx, "growth", b->growth, 4096);
    if (stem < 1 || stem > 65536) return bad(ctx, "the stem's channels", stem, 65536);
    if (b->kernel < 1 || b->kernel > HL_CONV_KERNEL_MAX || b->kernel % 2 == 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet: kernel is %" PRId64 ", must be odd, 1 to %d", b->kernel, HL_CONV_KERNEL_MAX);
    if (b->up_kernel < 1 || b->up_kernel > 4) return bad(ctx, "the kernel on the way up", b->up_kernel, 4);
    if (!(b->keep > 0 && b->keep <= 1)) return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet: dropout keeps %g, must be above 0 and at most 1", b->keep);
    if (o->batch_norm) return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet has norms in front of its pools and nowhere else: 'batch_norm' is not for it");
    if (o->wiring && strcmp(o->wiring, "paper") != 0) return hl_fail(ctx, HALO_ERR_USAGE, "fcdensenet has no wiring '%.80s'", o->wiring);
    for (int a = b->deep ? 0 : 1; a < 3; a++)
        if (o->extents[a] % tile != 0)
            return hl_fail(ctx, HALO_ERR_SHAPE, "fcdensenet with %d poolings needs extents that are multiples of %" PRId64 ", not %s", b->blocks / 2, tile, hl_shape_print(o->extents, 3).s);
    return HALO_OK;
}

static const char *const names[] = {"64-3", "64-5", "128-3", "128-5", "256-3", "256-5", NULL};
static const int64_t published[] = {2, 2, 3, 4, 3, 2, 2, 0}, image[3] = {1, 512, 512};

static builder published_as(const halo_zoo_options *o)
{
    builder b = {.up_kernel = o->up_kernel ? o->up_kernel : 1, .block = o->block[0] ? o->block : published, .periodic = o->periodic};
    sscanf(o->variant, "%" SCNd64 "-%" SCNd64, &b.growth, &b.kernel);
    if (o->growth) b.growth = o->growth;
    if (o->kernel) b.kernel = o->kernel;
    b.keep = o->no_dropout ? 1 : o->keep != 0 ? o->keep : 0.8;
    while (b.blocks < MOST_BLOCKS && b.block[b.blocks]) b.blocks++;
    return b;
}

static halo_status build(halo_context *ctx, const halo_zoo_options *options, halo_network **net)
{
    halo_zoo_options o = *options;
    if (!o.extents[0]) memcpy(o.extents, image, sizeof(image));
    builder b = published_as(&o);
    const int64_t stem = o.stem ? o.stem : b.growth;
    b.deep = o.extents[0] > 1;
    HL_TRY(check(ctx, &o, &b, stem));
    snprintf(b.name, sizeof(b.name), "fcdensenet-%" PRId64 "-%" PRId64, b.growth, b.kernel);
    HL_TRY(halo_network_create(ctx, b.name, o.channels ? o.channels : 1024, o.extents, &b.net));
    halo_status st = add_all(&b, stem, o.outputs ? o.outputs : 1);
    if (st == HALO_OK)
        *net = b.net;
    else
        halo_network_destroy(b.net);
    return st;
}

const hl_zoo_network hl_zoo_fcdensenet = {.name = "fcdensenet", .variants = names, .build = build};
