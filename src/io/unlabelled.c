/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlabelled.c -- a data set without targets, with those of the data that a network was trained on: predictions get their names and physical units. The
 * values, which nobody knows, read as 0.
 */
#include "io/wrapped.h"

static halo_status read_target(hl_source *s, int64_t sample, const hl_cut *cut, float *y)
{
    (void)sample;
    memset(y, 0, (size_t)(s->info.targets * cut->into[0] * cut->into[1] * cut->into[2]) * sizeof(*y));
    return HALO_OK;
}

static const hl_source_ops ops = {.name = "unlabelled", .read = hl_wrapped_read, .target = read_target, .group_of = hl_wrapped_group_of, .id_of = hl_wrapped_id_of, .close = hl_wrapped_close,
                                  .image_of = hl_wrapped_image_of, .extents = hl_wrapped_extents, .place_of = hl_wrapped_place_of};

halo_status hl_unlabelled_open(hl_source *volumes, const hl_source_options *o, hl_source **source)
{
    hl_wrapped *u;
    HL_BUG_UNLESS(volumes->info.targets == 0 && o->labels > 0);
    HL_TRY(hl_wrapped_new(volumes, &ops, sizeof(*u), &u));
    hl_source_info *i = &u->base.info;
    free(i->target);
    i->target = NULL;
    halo_status st = hl_calloc(volumes->ctx, (size_t)o->labels, sizeof(*o->label), "targets", &i->target);
    if (st != HALO_OK) {
        hl_wrapped_close(&u->base);
        return st;
    }
    memcpy(i->target, o->label, (size_t)o->labels * sizeof(*o->label));
    i->targets = o->labels;
    for (int k = 0; k < 3; k++) i->target_ext[k] = o->target_ext[k] ? o->target_ext[k] : 1;
    i->unlabelled = true;
    u->inner = volumes;
    *source = &u->base;
    return HALO_OK;
}
