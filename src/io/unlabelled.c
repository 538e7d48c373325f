/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlabelled.c -- a data set without targets, with those of the data that a network was trained on: predictions get their names and physical units. The
 * values, which nobody knows, read as 0.
 */
#include "io/source.h"

typedef struct unlabelled {
    hl_source base;
    hl_source *volumes; /* owned */
} unlabelled;

static halo_status read_cut(hl_source *s, int64_t sample, const hl_cut *cut, void *x)
{
    hl_source *volumes = ((unlabelled *)s)->volumes;
    halo_status st = volumes->ops->read(volumes, sample, cut, x);
    s->count.data = volumes->count.data;
    s->count.other = volumes->count.other;
    return st;
}

static halo_status read_target(hl_source *s, int64_t sample, const hl_cut *cut, float *y)
{
    (void)sample;
    memset(y, 0, (size_t)(s->info.targets * cut->into[0] * cut->into[1] * cut->into[2]) * sizeof(*y));
    return HALO_OK;
}

static int64_t group_of(hl_source *s, int64_t sample)
{
    hl_source *volumes = ((unlabelled *)s)->volumes;
    return volumes->ops->group_of(volumes, sample);
}

static void id_of(hl_source *s, int64_t sample, char *out, size_t size)
{
    hl_source *volumes = ((unlabelled *)s)->volumes;
    volumes->ops->id_of(volumes, sample, out, size);
}

static const char *image_of(hl_source *s, int64_t sample)
{
    hl_source *volumes = ((unlabelled *)s)->volumes;
    return volumes->ops->image_of ? volumes->ops->image_of(volumes, sample) : NULL;
}

static void place_of(hl_source *s, int64_t sample, hl_window_place *place)
{
    hl_source *volumes = ((unlabelled *)s)->volumes;
    volumes->ops->place_of(volumes, sample, place);
}

static void extents(hl_source *s, int64_t sample, int64_t ext[3])
{
    hl_source_extents(((unlabelled *)s)->volumes, sample, ext);
}

static void close_both(hl_source *s)
{
    hl_source_close(((unlabelled *)s)->volumes);
    hl_source_free(s);
}

static const hl_source_ops ops = {.name = "unlabelled", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_both, .image_of = image_of, .extents = extents};

static const hl_source_ops scan_ops = {.name = "unlabelled scan", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_both, .extents = extents, .place_of = place_of};

halo_status hl_unlabelled_open(hl_source *volumes, const hl_source_options *o, hl_source **source)
{
    unlabelled *u;
    HL_BUG_UNLESS(volumes->info.targets == 0 && o->labels > 0);
    HL_TRY(hl_calloc(volumes->ctx, 1, sizeof(*u), "a data set", &u));
    u->base.ops = volumes->ops->place_of ? &scan_ops : &ops;
    u->base.ctx = volumes->ctx;
    u->base.info = volumes->info;
    u->base.info.target = NULL;
    halo_status st = hl_calloc(volumes->ctx, (size_t)o->labels, sizeof(*o->label), "targets", &u->base.info.target);
    if (st != HALO_OK) {
        free(u);
        return st;
    }
    memcpy(u->base.info.target, o->label, (size_t)o->labels * sizeof(*o->label));
    u->base.info.targets = o->labels;
    for (int k = 0; k < 3; k++) u->base.info.target_ext[k] = o->target_ext[k] ? o->target_ext[k] : 1;
    u->base.info.unlabelled = true;
    u->volumes = volumes;
    *source = &u->base;
    return HALO_OK;
}
