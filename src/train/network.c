/* SPDX-License-Identifier: Apache-2.0 */
/* network.c -- the network of a run: from the zoo, a file or a checkpoint, with sizes of settings and data; and whether data, loss and norms agree with it. */
#include "train/setup.h"

#include <stdio.h>

static bool is_file(const char *network)
{
    size_t n = strlen(network);
    return strchr(network, '/') || (n > 5 && strcmp(network + n - 5, ".yaml") == 0) || (n > 4 && strcmp(network + n - 4, ".yml") == 0);
}

/* What fcdensenet has alone. */
static halo_status set_dense(halo_context *ctx, const hl_settings *set, halo_zoo_options *o)
{
    o->growth = hl_max64(0, set->growth);
    o->kernel = hl_max64(0, set->kernel);
    o->stem = hl_max64(0, set->stem);
    o->up_kernel = hl_max64(0, set->up_kernel);
    o->keep = fmax(0, set->keep);
    if (set->blocks.n >= HALO_ZOO_BLOCKS) return hl_fail(ctx, HALO_ERR_USAGE, "'blocks' has %d of them, must be at most %d", set->blocks.n, HALO_ZOO_BLOCKS - 1);
    for (int i = 0; i < set->blocks.n; i++) {
        char *end;
        o->block[i] = strtoll(set->blocks.word[i], &end, 10);
        if (*end || o->block[i] < 1) return hl_fail(ctx, HALO_ERR_USAGE, "'blocks' must be numbers of layers, such as [2, 2, 2], not '%s'", set->blocks.word[i]);
    }
    return HALO_OK;
}

halo_status hl_run_network(halo_context *ctx, const hl_settings *set, const int64_t ext[4], int64_t outputs, struct halo_network **net)
{
    int64_t size[3], channels = ext[0] > 0 ? ext[0] : set->channels > 0 ? set->channels : 0;
    const int64_t *asked = set->size[0] > 0 || !hl_run_patches(set) ? set->size : set->data.patch;
    for (int i = 0; i < 3; i++) size[i] = ext[i + 1] > 0 ? ext[i + 1] : asked[i];
    if (set->network_text) return halo_network_parse(ctx, "the checkpoint's network", set->network_text, strlen(set->network_text), 0, hl_run_patches(set) ? set->data.patch : NULL, net);
    if (is_file(set->network)) /* its own sizes unless the configuration says otherwise; check_data compares them with the data */
        return hl_config_status(halo_network_load(ctx, set->network, set->channels > 0 ? set->channels : 0, asked[0] > 0 ? asked : NULL, net));
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    o.variant = *set->variant ? set->variant : NULL;
    o.wiring = strcmp(set->wiring, "paper") == 0 ? NULL : set->wiring;
    memcpy(o.extents, size, sizeof(size));
    o.channels = channels;
    o.outputs = outputs > 0 ? outputs : set->outputs > 0 ? set->outputs : 0;
    o.batch_norm = set->batch_norm;
    o.periodic = set->padding == HL_PADDING_PERIODIC;
    o.no_dropout = !set->dropout;
    o.levels = hl_max64(0, set->levels);
    o.first_channels = hl_max64(0, set->first_channels);
    o.trilinear = set->upsampling == 1;
    HL_TRY(set_dense(ctx, set, &o));
    return halo_network_zoo(ctx, set->network, &o, net);
}

void hl_class_name(const hl_settings *set, int k, char *out, size_t size)
{
    if (k < set->data.classes.n) snprintf(out, size, "%s", set->data.classes.word[k]);
    else snprintf(out, size, "%d", k);
}

/* Of classes the network has logits, an output each, and the data one number for all of them. */
static halo_status check_classes(const hl_run *run, const hl_source_info *info, const int64_t out[4])
{
    const hl_words *names = &run->set.data.classes;
    if (names->n > 0 && names->n != out[0])
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.classes' names %d class%s, but network '%s' has %" PRId64 " outputs, one for each class", names->n, names->n == 1 ? "" : "es", run->net->name, out[0]);
    if (out[0] < 2)
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "network '%s' has 1 output: a loss of classes needs one for each class, two at least", run->net->name);
    if (info->targets == 1 && memcmp(out + 1, info->target_ext, sizeof(info->target_ext)) == 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_SHAPE,
                   "network '%s' ends in %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", logits of %" PRId64 " classes, so that targets must be 1 x %" PRId64
                   " x %" PRId64 " x %" PRId64 ", but are %d x %" PRId64 " x %" PRId64 " x %" PRId64 " (C D H W)",
                   run->net->name, out[0], out[1], out[2], out[3], out[0], out[1], out[2], out[3], info->targets, info->target_ext[0], info->target_ext[1],
                   info->target_ext[2]);
}

/* The network takes what the data gives, and has an output per target. */
static halo_status check_data(const hl_run *run, const hl_source_info *info)
{
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out, *has = info->ext;
    if (info->targets == 0) return hl_fail(run->ctx, HALO_ERR_USAGE, "the data has no targets: %s", info->description);
    if (memcmp(in, has, 4 * sizeof(*in)) != 0)
        return hl_fail(run->ctx, HALO_ERR_SHAPE,
                       "network '%s' takes %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", the data has %" PRId64 " x %" PRId64 " x %" PRId64
                       " x %" PRId64 " (C D H W); set 'size' and 'channels', or 'data.crop'",
                       run->net->name, in[0], in[1], in[2], in[3], has[0], has[1], has[2], has[3]);
    if (hl_run_of_classes(&run->set)) return check_classes(run, info, out);
    if (out[0] == info->targets && memcmp(out + 1, info->target_ext, sizeof(info->target_ext)) == 0) return HALO_OK;
    if (!hl_target_volumes(info) && out[1] == 1 && out[2] == 1 && out[3] == 1)
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "network '%s' has %" PRId64 " output%s, the data has %d target%s", run->net->name, out[0], HL_S(out[0]),
                       info->targets, HL_S(info->targets));
    return hl_fail(run->ctx, HALO_ERR_SHAPE,
                   "network '%s' ends in %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", the targets are %d x %" PRId64 " x %" PRId64 " x %" PRId64
                   " (C D H W)",
                   run->net->name, out[0], out[1], out[2], out[3], info->targets, info->target_ext[0], info->target_ext[1], info->target_ext[2]);
}

/* The mean of one value is that value: a norm would make everything 0, and nothing before it could learn. Norms of single samples were looked at when the network was
 * made; frozen ones do not measure. */
halo_status hl_run_check_norms(const hl_run *run)
{
    if (run->set.batch / run->set.train.accumulate > 1 || run->set.freeze.n > 0) return HALO_OK;
    for (int i = 0; i < run->net->layers; i++) {
        const hl_layer *l = &run->net->layer[i];
        if (l->kind != HL_LAYER_NORM || hl_per_sample(l) || l->out[1] * l->out[2] * l->out[3] > 1) continue;
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "layer '%s': of input %" PRId64 " x 1 x 1 x 1 (C D H W) and 1 sample each statistic would be that of one value: set a larger 'batch'", l->name,
                       l->out[0]);
    }
    return HALO_OK;
}

halo_status hl_run_make_network(hl_run *run)
{
    const int64_t unknown[4] = {0, 0, 0, 0};
    const hl_source_info *info = NULL;
    for (int split = HL_SPLITS - 1; split >= 0; split--)
        if (run->source[split]) info = &run->source[split]->info;
    hl_source *looked = info ? NULL : hl_run_look(run);
    if (looked) info = &looked->info;
    halo_status st = hl_run_network(run->ctx, &run->set, info ? info->ext : unknown, info && !hl_run_of_classes(&run->set) ? info->targets : 0, &run->net);
    hl_source_close(looked);
    HL_TRY(st);
    for (int split = 0; split < HL_SPLITS; split++)
        if (run->source[split]) HL_TRY(check_data(run, &run->source[split]->info));
    return HALO_OK;
}
