/* SPDX-License-Identifier: Apache-2.0 */
/* source.c -- which format a path holds, and what the formats share. */
#include "io/array_files.h"
#include "io/cells.h"
#include "io/scan_windows.h"
#include "io/known.h"
#include "io/source.h"
#include "base/file.h"
#include "base/str.h"

#include <stdio.h>

/* ----------------------------------------------------------------------------------------------- dispatch */

typedef halo_status (*opener)(halo_context *, const hl_source_options *, hl_source **);

static const struct format {
    const char *name;
    const char *dataset; /* what tells it from the others; NULL: not found by looking */
    opener open;
} formats[] = {{"cosmouniverse", "full", hl_universe_open},
               {"halo", "x", hl_halo_open},
               {"arrays", NULL, hl_arrays_open},
               {"scan", NULL, hl_scan_windows_open},
               {"synthetic", NULL, hl_synthetic_open}};

static halo_status unknown_format(halo_context *ctx, const char *name)
{
    const char *names[HL_COUNT(formats) + 1];
    hl_str list = {0};
    for (size_t i = 0; i < HL_COUNT(formats); i++) {
        names[i] = formats[i].name;
        hl_str_addf(&list, "%s, ", names[i]);
    }
    names[HL_COUNT(formats)] = "auto";
    const char *near = hl_nearest(name, names, HL_COUNT(names));
    halo_status st = hl_fail(ctx, HALO_ERR_USAGE, "unknown data format '%s': %s%s%s%sauto", name,
                             near ? "did you mean '" : "", near ? near : "",
                             near ? "'? There are " : "there are ", list.s ? list.s : "");
    hl_str_free(&list);
    return st;
}

/* Whether the configuration names arrays, or the path is one that only they take. */
static bool names_arrays(const hl_source_options *o)
{
    const hl_array_options *a = o->array;
    bool pattern = strpbrk(o->path, "*?[") && !hl_file_exists(o->path);
    return pattern || (a && (*a->x || a->x_axes.n || *a->y || a->y_axes.n || *a->y_from || *a->table));
}

/* The first file decides. */
static halo_status detect(halo_context *ctx, const hl_source_options *o, opener *open)
{
    hl_files files = {0};
    hl_h5 *file = NULL;
    halo_status st = HALO_OK;
    *open = hl_arrays_open;
    if (names_arrays(o)) return HALO_OK;
    HL_TRY(hl_array_files_find(ctx, o->path, HL_ORDER_NAME, &files));
    const char *path = hl_files_deciding(&files);
    if (hl_is_plain_array(path)) goto free_files;
    HL_GOTO(st, hl_h5_open(ctx, path, &file), free_files);
    *open = NULL;
    for (size_t i = 0; i < HL_COUNT(formats); i++)
        if (formats[i].dataset && hl_h5_has(file, formats[i].dataset)) {
            *open = formats[i].open;
            break;
        }
    if (!*open)
        st = hl_fail(ctx, HALO_ERR_FORMAT,
                     "'%s' is in no known data format: it has neither 'full' (CosmoUniverse) nor 'x' (halo), and 'data.x' names none of its datasets", path);
    hl_h5_close(file);
free_files:
    hl_files_free(&files);
    return st;
}

/* From now on samples are patches, of x and of target volumes alike. */
static halo_status take_patches(hl_source *s, const hl_source_options *o)
{
    hl_source_info *i = &s->info;
    bool alike = memcmp(i->target_ext, i->ext + 1, sizeof(i->target_ext)) == 0;
    if (i->targets > 0 && (!hl_target_volumes(i) || !alike))
        return hl_fail(s->ctx, HALO_ERR_USAGE, "'data.patch' needs targets that are volumes of the samples' extents: %s", i->description);
    memcpy(i->ext + 1, o->patch, sizeof(o->patch));
    if (i->targets > 0) memcpy(i->target_ext, o->patch, sizeof(o->patch));
    i->whole_periodic = false;
    return HALO_OK;
}

halo_status hl_source_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    opener open = NULL;
    const char *format = o->format && *o->format ? o->format : "auto";
    if (o->synthetic) {
        HL_TRY(hl_synthetic_open(ctx, o, source));
        memcpy((*source)->box, (*source)->info.ext + 1, sizeof((*source)->box));
        return HALO_OK;
    }
    for (size_t i = 0; i < HL_COUNT(formats); i++)
        if (strcmp(format, formats[i].name) == 0) open = formats[i].open;
    if (!open && strcmp(format, "auto") != 0) return unknown_format(ctx, format);
    if (open != hl_synthetic_open && (!o->path || !*o->path))
        return hl_fail(ctx, HALO_ERR_USAGE, "no data: neither a path nor synthetic");
    if (!open && o->array && hl_names_scan(&o->array->x_axes)) open = hl_scan_windows_open;
    if (!open) HL_TRY(detect(ctx, o, &open));
    hl_source *s;
    HL_TRY(open(ctx, o, &s));
    s->count.data = s->count.other = 0;
    memcpy(s->box, s->info.ext + 1, sizeof(s->box));
    halo_status st = o->spacing[0] > 0 ? hl_resampled_open(s, o->spacing, &s) : HALO_OK;
    if (st == HALO_OK && o->patch[0]) st = take_patches(s, o);
    if (st == HALO_OK && s->info.targets == 0 && o->label) st = hl_unlabelled_open(s, o, &s);
    if (st == HALO_OK) *source = s;
    else hl_source_close(s);
    return st;
}

void hl_source_close(hl_source *s)
{
    if (!s) return;
    hl_known_free(s->known);
    s->ops->close(s);
}

void hl_source_extents(hl_source *s, int64_t sample, int64_t ext[3])
{
    if (s->ops->extents) s->ops->extents(s, sample, ext);
    else memcpy(ext, s->box, sizeof(s->box));
}

typedef struct reading { /* of x or of y */
    hl_source *source;
    int64_t sample;
    void *x;
    float *y;
} reading;

static halo_status read_one(void *user, const hl_cut *cut)
{
    const reading *r = user;
    if (r->x) return r->source->ops->read(r->source, r->sample, cut, r->x);
    return r->source->ops->target(r->source, r->sample, cut, r->y);
}

halo_status hl_source_read(hl_source *s, int64_t sample, const hl_cells *x_cells, void *x, const hl_cells *y_cells, float *y)
{
    hl_cells all_x = hl_cells_whole(s->info.ext + 1), all_y = hl_cells_whole(s->info.target_ext);
    reading of_x = {.source = s, .sample = sample, .x = x}, of_y = {.source = s, .sample = sample, .y = y};
    if (x) HL_TRY(hl_cells_split(x_cells ? x_cells : &all_x, s->info.ext + 1, read_one, &of_x));
    if (!y) return HALO_OK;
    return hl_cells_split(hl_target_volumes(&s->info) && y_cells ? y_cells : &all_y, s->info.target_ext, read_one, &of_y);
}

void hl_source_free(hl_source *s)
{
    if (!s) return;
    free(s->info.target);
    free(s);
}

/* -------------------------------------------------------------------------------------------- sub-volumes */

halo_status hl_crops_set(halo_context *ctx, const char *what, const int64_t box[3],
                         const hl_source_options *o, hl_crops *crops)
{
    hl_crops c = {.count = 1};
    for (int k = 0; k < 3; k++) {
        c.box[k] = box[k];
        c.ext[k] = o->crop[k] ? o->crop[k] : box[k];
        if (c.ext[k] < 1 || c.ext[k] > box[k])
            return hl_fail(ctx, HALO_ERR_SHAPE,
                           "'%s': crop [%" PRId64 ", %" PRId64 ", %" PRId64 "] does not fit into [%" PRId64
                           ", %" PRId64 ", %" PRId64 "]",
                           what, o->crop[0], o->crop[1], o->crop[2], box[0], box[1], box[2]);
        c.n[k] = box[k] / c.ext[k];
        c.count *= c.n[k];
    }
    *crops = c;
    return HALO_OK;
}

void hl_crop_at(const hl_crops *c, int64_t index, int64_t lo[3])
{
    lo[2] = index % c->n[2] * c->ext[2];
    lo[1] = index / c->n[2] % c->n[1] * c->ext[1];
    lo[0] = index / c->n[2] / c->n[1] * c->ext[0];
}

hl_cut hl_crop_cut(const hl_crops *c, int64_t index, const hl_cut *cut)
{
    hl_cut p = *cut;
    int64_t lo[3];
    hl_crop_at(c, index, lo);
    for (int k = 0; k < 3; k++) p.lo[k] += lo[k];
    return p;
}

halo_status hl_source_fit(hl_source *s, const hl_source_options *o, const char *file, const char *shape,
                          int64_t channels, const int64_t box[3], hl_crops *crops)
{
    int64_t want = o->channels ? o->channels : channels;
    for (int k = 0; k < 3; k++)
        if (box[k] < 1) return hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s': %s has no cells", file, shape);
    if (want > channels || channels < 1)
        return hl_fail(s->ctx, HALO_ERR_SHAPE,
                       "'%s': %s has %" PRId64 " channel%s, the network expects %" PRId64, file, shape,
                       channels, HL_S(channels), want);
    HL_TRY(hl_crops_set(s->ctx, file, box, o, crops));
    s->info.ext[0] = want;
    memcpy(s->info.ext + 1, crops->ext, sizeof(crops->ext));
    for (int k = 0; k < 3; k++) {
        if (o->size[k] == 0 || o->size[k] == crops->ext[k]) continue;
        bool hint = o->size[0] <= box[0] && o->size[1] <= box[1] && o->size[2] <= box[2];
        return hl_fail(s->ctx, HALO_ERR_SHAPE,
                       "'%s': %s gives samples of [%" PRId64 ", %" PRId64 ", %" PRId64
                       "], the network expects [%" PRId64 ", %" PRId64 ", %" PRId64 "]%s",
                       file, shape, crops->ext[0], crops->ext[1], crops->ext[2], o->size[0], o->size[1],
                       o->size[2], hint ? "; data.crop of that size would fit" : "");
    }
    return HALO_OK;
}

halo_status hl_source_part(halo_context *ctx, const hl_source_options *o, int64_t groups, int64_t *first,
                           int64_t *count)
{
    *first = o->group_first;
    *count = o->group_count ? o->group_count : groups - o->group_first;
    if (*first >= 0 && *count >= 1 && *first <= groups - *count) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE,
                   "'%s' has %" PRId64 " universe%s, %" PRId64 " from number %" PRId64 " on are asked for",
                   o->path, groups, HL_S(groups), o->group_count, o->group_first);
}

halo_status hl_source_targets(hl_source *s, const hl_source_options *o, const char *file, const char *dataset,
                              int64_t count)
{
    if (o->outputs && o->outputs != count)
        return hl_fail(s->ctx, HALO_ERR_SHAPE,
                       "'%s': dataset '%s' has %" PRId64 " target%s per sample, the network has %" PRId64 " output%s", file,
                       dataset, count, HL_S(count), o->outputs, HL_S(o->outputs));
    if (count < 0 || count > 1000000)
        return hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s': %" PRId64 " targets per sample", file, count);
    HL_TRY(hl_calloc(s->ctx, (size_t)count, sizeof(hl_target), "targets", &s->info.target));
    s->info.targets = (int)count;
    for (int k = 0; k < 3; k++) s->info.target_ext[k] = 1;
    for (int t = 0; t < s->info.targets; t++) {
        hl_target *x = &s->info.target[t];
        snprintf(x->name, sizeof(x->name), "target_%d", t);
        x->low = x->high = x->mean = x->std = NAN;
    }
    return HALO_OK;
}

void hl_source_warn_waste(hl_source *s, const hl_volume *v, const hl_crops *crops)
{
    int64_t lo[3];
    hl_crop_at(crops, crops->count - 1, lo);
    double waste = hl_volume_waste(v, lo, crops->ext);
    if (waste > 2)
        HL_WARN(s->ctx,
                "'%s': reading one sample inflates %.1f times its bytes, because the chunks of '%s' do not "
                "fit the samples; repacking helps",
                v->data->file->path, waste, v->data->name);
}
