/* SPDX-License-Identifier: Apache-2.0 */
/* wrapped.c -- see wrapped.h. */
#include "io/wrapped.h"

static hl_source *inner(const hl_source *s) { return ((const hl_wrapped *)s)->inner; }

halo_status hl_wrapped_new(hl_source *source, const hl_source_ops *ops, size_t size, void *out)
{
    hl_wrapped *w;
    const hl_source_info *i = &source->info;
    HL_TRY(hl_calloc(source->ctx, 1, size, "a data set", &w));
    w->base.ops = ops;
    w->base.ctx = source->ctx;
    w->base.info = *i;
    w->base.info.target = NULL;
    halo_status st = hl_calloc(source->ctx, (size_t)hl_max64(1, i->targets), sizeof(*i->target), "targets", &w->base.info.target);
    if (st != HALO_OK) {
        free(w);
        return st;
    }
    if (i->targets) memcpy(w->base.info.target, i->target, (size_t)i->targets * sizeof(*i->target));
    memcpy(w->base.box, source->box, sizeof(source->box));
    *(hl_wrapped **)out = w;
    return HALO_OK;
}

void hl_wrapped_close(hl_source *s)
{
    hl_source_close(inner(s));
    free(((hl_wrapped *)s)->sample);
    hl_source_free(s);
}

int64_t hl_wrapped_sample(const hl_source *s, int64_t sample)
{
    const hl_wrapped *w = (const hl_wrapped *)s;
    return w->sample ? w->sample[sample] : sample;
}

void hl_wrapped_count(hl_source *s)
{
    s->count.data = inner(s)->count.data;
    s->count.other = inner(s)->count.other;
}

halo_status hl_wrapped_read(hl_source *s, int64_t sample, const hl_cut *cut, void *x)
{
    halo_status st = inner(s)->ops->read(inner(s), hl_wrapped_sample(s, sample), cut, x);
    hl_wrapped_count(s);
    return st;
}

halo_status hl_wrapped_target(hl_source *s, int64_t sample, const hl_cut *cut, float *y)
{
    halo_status st = inner(s)->ops->target(inner(s), hl_wrapped_sample(s, sample), cut, y);
    hl_wrapped_count(s);
    return st;
}

int64_t hl_wrapped_group_of(hl_source *s, int64_t sample) { return inner(s)->ops->group_of(inner(s), hl_wrapped_sample(s, sample)); }

void hl_wrapped_id_of(hl_source *s, int64_t sample, char *out, size_t size) { inner(s)->ops->id_of(inner(s), hl_wrapped_sample(s, sample), out, size); }

const char *hl_wrapped_image_of(hl_source *s, int64_t sample)
{
    const hl_source_ops *ops = inner(s)->ops;
    return ops->image_of ? ops->image_of(inner(s), hl_wrapped_sample(s, sample)) : NULL;
}

bool hl_wrapped_place_of(hl_source *s, int64_t sample, hl_window_place *place)
{
    const hl_source_ops *ops = inner(s)->ops;
    return ops->place_of && ops->place_of(inner(s), hl_wrapped_sample(s, sample), place);
}

void hl_wrapped_extents(hl_source *s, int64_t sample, int64_t ext[3]) { hl_source_extents(inner(s), hl_wrapped_sample(s, sample), ext); }
