/* SPDX-License-Identifier: Apache-2.0 */
/* arrays.c -- what the configuration says of files that were not written for halo, for the source of a split. */
#include "net/graph.h"
#include "train/run.h"

#include <stdio.h>

static bool is_network_file(const char *network)
{
    size_t n = strlen(network);
    return strchr(network, '/') || (n > 5 && strcmp(network + n - 5, ".yaml") == 0) || (n > 4 && strcmp(network + n - 4, ".yml") == 0);
}

/* What a network whose sizes are its own takes, so that an error can say it beside the shape of the file. */
static void expect(hl_run *run, int64_t ext[4])
{
    const int64_t unknown[4] = {0, 0, 0, 0};
    struct halo_network *net;
    halo_context *ctx = run->ctx;
    halo_log_fn log = ctx->log;
    if (!run->set.network_text && !is_network_file(run->set.network)) return;
    ctx->log = NULL; /* what is wrong with it is said when it is loaded for use */
    halo_status st = hl_run_network(ctx, &run->set, unknown, 0, &net);
    ctx->log = log;
    if (st != HALO_OK) return;
    memcpy(ext, net->layer[0].out, 4 * sizeof(*ext));
    halo_network_destroy(net);
}

void hl_run_arrays(hl_run *run, hl_array_options *out)
{
    const hl_settings *set = &run->set;
    const hl_source *first = run->source[HL_TRAIN];
    *out = (hl_array_options){.x = set->data.x.path, .y = set->data.y.path, .x_axes = set->data.x.axes, .y_axes = set->data.y.axes, .periodic = set->data.x.periodic,
                              .y_from = set->data.y.from, .table = set->data.targets.file, .columns = set->data.targets.columns, .range = set->data.targets.range,
                              .order = set->data.targets.order, .classes = hl_loss_of_classes((halo_loss)set->loss),
                              .like = first ? first->info.target : set->like, .likes = first ? first->info.targets : set->likes,
                              .scan_window = set->data.scan_window, .scan_stride = set->data.scan_stride, .detector_crop = set->data.detector_crop, .detector_bin = set->data.detector_bin,
                              .unit_dose = set->data.unit_dose};
    if (!set->data.synthetic) expect(run, out->expect);
}

hl_source *hl_run_look(hl_run *run)
{
    const hl_settings *set = &run->set;
    hl_array_options array;
    hl_source_options o = {.path = set->data.train, .format = set->data.format, .array = &array, .group_count = 1};
    hl_source *source = NULL;
    halo_context *ctx = run->ctx;
    if (!*o.path || set->data.synthetic) return NULL;
    hl_run_arrays(run, &array);
    array.classes = true; /* of one group no range can be measured, and none is needed */
    memcpy(o.crop, set->data.crop, sizeof(o.crop));
    hl_run_spacing(set, o.spacing);
    if (hl_run_patches(set)) memcpy(o.patch, set->data.patch, sizeof(o.patch));
    else memcpy(o.size, set->size, sizeof(o.size));
    o.channels = set->channels > 0 ? set->channels : 0;
    halo_log_fn log = ctx->log;
    ctx->log = NULL; /* the data may be elsewhere: that is no error here */
    halo_status st = hl_source_open(ctx, &o, &source);
    ctx->log = log;
    return st == HALO_OK ? source : NULL;
}
