/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unet3d.c -- a class for every voxel: Cicek et al., "3D U-Net", MICCAI 2016, padded so that the output is as large as the input, as Oyama et al. trained it
 * (TPDS 2021). L levels of resolution (4) and F channels at the first (32), level i of F 2^i:
 *
 *   down     twice conv 3^3, norm, relu, to F 2^i and F 2^(i+1) channels; max pool 2^3
 *   bottom   the same at level L, without the pool
 *   up       conv_transpose 2^3 stride 2, or linear upsampling, without change of channels, joined with what the level had before its pool; twice conv,
 *            norm, relu to half as many channels
 *   out      conv 1^3: a logit for each class
 *
 * Convolutions in front of norms have no bias. 19.07 M parameters with 1 channel and 3 classes, 16.32 M with linear upsampling. The variants are kinds of norm. Extents must be multiples of
 * 2^(L-1).
 */
#include "net/zoo/zoo.h"

#include <stdio.h>

enum { LEVELS = 4, MOST_LEVELS = 8, FIRST_CHANNELS = 32, CLASSES = 3, NORM_GROUPS = 8 };

typedef struct builder {
    halo_network *net;
    const char *norm;
    halo_padding padding;
    bool trilinear;
    int last;
    char name[HL_NAME_MAX];
} builder;

static const char *name_of(builder *b, const char *stem, const char *place, int64_t level)
{
    snprintf(b->name, sizeof(b->name), "%s%" PRId64 "_%s", place, level, stem);
    return b->name;
}

static halo_status add_norm(builder *b, const char *name)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    o.scope = strcmp(b->norm, "batch") == 0 ? HALO_NORM_BATCH : strcmp(b->norm, "group") == 0 ? HALO_NORM_GROUP : HALO_NORM_INSTANCE;
    if (o.scope == HALO_NORM_GROUP) o.groups = NORM_GROUPS;
    return halo_network_norm(b->net, b->last, name, &o, &b->last);
}

/* conv 3^3, norm, relu. */
static halo_status add_stage(builder *b, const char *place, int64_t level, const char *which, int64_t filters)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    char stem[16];
    o.filters = filters;
    o.bias = false;
    o.init = HALO_INIT_HE_NORMAL;
    for (int d = 0; d < 3; d++) o.padding[d] = b->padding;
    snprintf(stem, sizeof(stem), "conv%s", which);
    HL_TRY(halo_network_conv(b->net, b->last, name_of(b, stem, place, level), &o, &b->last));
    snprintf(stem, sizeof(stem), "norm%s", which);
    HL_TRY(add_norm(b, name_of(b, stem, place, level)));
    snprintf(stem, sizeof(stem), "act%s", which);
    return halo_network_activation(b->net, b->last, name_of(b, stem, place, level), HALO_ACT_RELU, 0, &b->last);
}

static halo_status add_pool(builder *b, int64_t level)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    return halo_network_pool(b->net, b->last, name_of(b, "pool", "down", level), &o, &b->last);
}

static halo_status add_up(builder *b, int64_t level, int64_t channels, int skip)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    int both[2] = {skip, 0};
    o.filters = channels;
    o.bias = false;
    o.init = HALO_INIT_HE_NORMAL;
    HL_TRY(b->trilinear ? halo_network_upsample(b->net, b->last, name_of(b, "upsample", "up", level), NULL, &both[1])
                        : halo_network_conv_transpose(b->net, b->last, name_of(b, "deconv", "up", level), &o, &both[1]));
    return halo_network_concat(b->net, both, 2, name_of(b, "concat", "up", level), &b->last);
}

static halo_status add_all(builder *b, int64_t levels, int64_t first, int64_t classes)
{
    int skip[MOST_LEVELS];
    halo_conv_options head = HALO_CONV_OPTIONS_INIT;
    for (int64_t i = 0; i < levels; i++) {
        const char *place = i + 1 < levels ? "down" : "bottom";
        HL_TRY(add_stage(b, place, i + 1, "1", first << i));
        HL_TRY(add_stage(b, place, i + 1, "2", first << (i + 1)));
        skip[i] = b->last;
        if (i + 1 < levels) HL_TRY(add_pool(b, i + 1));
    }
    for (int64_t i = levels - 2; i >= 0; i--) {
        HL_TRY(add_up(b, i + 1, first << (i + 2), skip[i]));
        HL_TRY(add_stage(b, "up", i + 1, "1", first << (i + 1)));
        HL_TRY(add_stage(b, "up", i + 1, "2", first << (i + 1)));
    }
    head.filters = classes;
    for (int d = 0; d < 3; d++) head.kernel[d] = 1;
    return halo_network_conv(b->net, b->last, "logits", &head, &b->last);
}

static halo_status check(halo_context *ctx, const halo_zoo_options *o, int64_t levels, int64_t first)
{
    if (levels < 1 || levels > MOST_LEVELS) return hl_fail(ctx, HALO_ERR_USAGE, "unet3d: levels is %" PRId64 ", must be 1 to %d", levels, MOST_LEVELS);
    if (o->trilinear && o->periodic) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "unet3d: trilinear upsampling has no periodic form");
    if (first < 1 || first > 4096) return hl_fail(ctx, HALO_ERR_USAGE, "unet3d: the first level's channels are %" PRId64 ", must be 1 to 4096", first);
    if (strcmp(o->variant, "group") == 0 && first % NORM_GROUPS != 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "unet3d group: the first level's %" PRId64 " channels must be a multiple of %d groups", first, NORM_GROUPS);
    for (int d = 0; d < 3; d++)
        if (o->extents[d] % ((int64_t)1 << (levels - 1)) != 0)
            return hl_fail(ctx, HALO_ERR_SHAPE, "unet3d of %" PRId64 " levels needs extents that are multiples of %" PRId64 ", not %s", levels,
                           (int64_t)1 << (levels - 1), hl_shape_print(o->extents, 3).s);
    return HALO_OK;
}

static halo_status build(halo_context *ctx, const halo_zoo_options *options, halo_network **net)
{
    halo_zoo_options o = *options;
    builder b = {.norm = o.variant, .padding = o.periodic ? HALO_PAD_PERIODIC : HALO_PAD_SAME, .trilinear = o.trilinear};
    int64_t levels = o.levels ? o.levels : LEVELS, first = o.first_channels ? o.first_channels : FIRST_CHANNELS;
    for (int d = 0; d < 3; d++)
        if (!options->extents[0]) o.extents[d] = 128;
    if (o.wiring && strcmp(o.wiring, "paper") != 0) return hl_fail(ctx, HALO_ERR_USAGE, "unet3d has no wiring '%.80s'", o.wiring);
    HL_TRY(check(ctx, &o, levels, first));
    snprintf(b.name, sizeof(b.name), "unet3d-%s%s", o.variant, o.trilinear ? "-trilinear" : "");
    HL_TRY(halo_network_create(ctx, b.name, o.channels ? o.channels : 1, o.extents, &b.net));
    halo_status st = add_all(&b, levels, first, o.outputs ? o.outputs : CLASSES);
    if (st == HALO_OK)
        *net = b.net;
    else
        halo_network_destroy(b.net);
    return st;
}

static const char *const names[] = {"batch", "group", "instance", NULL};

const hl_zoo_network hl_zoo_unet3d = {.name = "unet3d", .variants = names, .build = build};
