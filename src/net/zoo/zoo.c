/* SPDX-License-Identifier: Apache-2.0 */
#include "net/zoo/zoo.h"
#include "base/str.h"

static const hl_zoo_network *const zoo[] = {&hl_zoo_cosmoflow, &hl_zoo_unet3d, &hl_zoo_fcdensenet};

const char *halo_network_zoo_name(int i)
{
    return i >= 0 && i < (int)HL_COUNT(zoo) ? zoo[i]->name : NULL;
}

static size_t variants_of(const hl_zoo_network *z)
{
    size_t n = 0;
    while (z->variants[n]) n++;
    return n;
}

const char *halo_network_zoo_variant(int i, int v)
{
    if (!halo_network_zoo_name(i) || v < 0 || (size_t)v >= variants_of(zoo[i])) return NULL;
    return zoo[i]->variants[v];
}

static halo_status unknown(halo_context *ctx, const char *what, const char *word, const char *nearest)
{
    if (!nearest) return hl_fail(ctx, HALO_ERR_USAGE, "unknown %s '%.80s'", what, word);
    return hl_fail(ctx, HALO_ERR_USAGE, "unknown %s '%.80s', did you mean '%s'?", what, word, nearest);
}

static halo_status find_network(halo_context *ctx, const char *name, const hl_zoo_network **found)
{
    const char *names[HL_COUNT(zoo)];
    for (size_t i = 0; i < HL_COUNT(zoo); i++) {
        names[i] = zoo[i]->name;
        if (strcmp(name, zoo[i]->name) == 0) {
            *found = zoo[i];
            return HALO_OK;
        }
    }
    return unknown(ctx, "network", name, hl_nearest(name, names, HL_COUNT(zoo)));
}

static halo_status check_variant(halo_context *ctx, const hl_zoo_network *z, const char *variant)
{
    for (size_t i = 0; i < variants_of(z); i++)
        if (strcmp(variant, z->variants[i]) == 0) return HALO_OK;
    return unknown(ctx, "variant", variant, hl_nearest(variant, z->variants, variants_of(z)));
}

static halo_status check_counts(halo_context *ctx, const char *name, const halo_zoo_options *o)
{
    bool none = !o->extents[0] && !o->extents[1] && !o->extents[2];
    for (int d = 0; d < 3 && !none; d++)
        if (o->extents[d] < 1)
            return hl_fail(ctx, HALO_ERR_USAGE, "size %s must be positive", hl_shape_print(o->extents, 3).s);
    if (o->channels < 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "channels is %" PRId64 ", must be positive", o->channels);
    if (o->outputs < 0)
        return hl_fail(ctx, HALO_ERR_USAGE, "outputs is %" PRId64 ", must be positive", o->outputs);
    if (strcmp(name, "unet3d") != 0 && (o->levels || o->first_channels || o->trilinear))
        return hl_fail(ctx, HALO_ERR_USAGE, "levels, first_channels and trilinear upsampling belong to unet3d, not to %s", name);
    if (strcmp(name, "fcdensenet") != 0 && (o->growth || o->kernel || o->stem || o->up_kernel || o->keep != 0 || o->block[0]))
        return hl_fail(ctx, HALO_ERR_USAGE, "growth, kernel, blocks, stem, up_kernel and keep belong to fcdensenet, not to %s", name);
    return HALO_OK;
}

halo_status halo_network_zoo(halo_context *ctx, const char *name, const halo_zoo_options *options,
                             halo_network **net)
{
    const hl_zoo_network *z = NULL;
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    HL_TRY(hl_not_null(ctx, ctx, "ctx"));
    HL_TRY(hl_not_null(ctx, name, "name"));
    HL_TRY(hl_not_null(ctx, net, "net"));
    if (options && options->size != sizeof(o))
        return hl_fail(ctx, HALO_ERR_USAGE, "halo_zoo_options has size %zu, this library expects %zu",
                       options->size, sizeof(o));
    if (options) o = *options;
    HL_TRY(find_network(ctx, name, &z));
    if (!o.variant) o.variant = z->variants[0];
    HL_TRY(check_variant(ctx, z, o.variant));
    HL_TRY(check_counts(ctx, name, &o));
    return z->build(ctx, &o, net);
}
