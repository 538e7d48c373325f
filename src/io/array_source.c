/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array_source.c -- samples from files that were not written for halo: an array of an HDF5, NPY or NPZ file whose axes the configuration names (data.x), or NIfTI images, whose axes are known; targets from another array
 * (data.y) or from a text table with a row for each file or sample (data.targets).
 *
 * A file whose array has no axis n is one sample, else it has as many as that axis is long; samples are numbered through the files in their order. Each is a group of its own, and may be
 * cut into sub-volumes (sample = row * crops + crop, see hl_crops). Boxes of a sample are read as boxes of the array, except where a member of an NPZ file is deflated: that is inflated as a
 * whole, once for the sample that is read.
 */
#include "io/array_files.h"
#include "io/labels.h"
#include "io/nifti.h"
#include "io/scans.h"
#include "base/context.h"
#include "base/file.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>

typedef struct array_source {
    hl_source base;
    hl_crops crops;
    int64_t first, count, rows; /* rows in use, and in all files */
    bool volumes;               /* targets are read sample by sample */
    bool plain;                 /* axes are those of the format itself */
    float *y;                   /* [rows, T]; NULL where targets are volumes, or none */
    pthread_mutex_t lock;       /* guards what follows */
    hl_array_set x, of_y;
} array_source;

/* ----------------------------------------------------------------------------------------------------------- reading */

static int64_t row_of(const array_source *a, int64_t sample) { return a->first + sample / a->crops.count; }

static halo_status read_volume(array_source *a, hl_array_set *set, int64_t sample, int64_t channels, const hl_cut *cut, halo_dtype to, void *out)
{
    hl_cut in_file = hl_crop_cut(&a->crops, sample % a->crops.count, cut);
    pthread_mutex_lock(&a->lock);
    halo_status st = hl_array_set_read(set, row_of(a, sample), channels, &in_file, to, out);
    pthread_mutex_unlock(&a->lock);
    return st;
}

static halo_status read_cut(hl_source *s, int64_t sample, const hl_cut *cut, void *x)
{
    array_source *a = (array_source *)s;
    return read_volume(a, &a->x, sample, s->info.ext[0], cut, s->info.dtype, x);
}

static halo_status read_target(hl_source *s, int64_t sample, const hl_cut *cut, float *y)
{
    array_source *a = (array_source *)s;
    size_t targets = (size_t)s->info.targets;
    if (a->volumes) return read_volume(a, &a->of_y, sample, s->info.targets, cut, HALO_F32, y);
    if (targets) memcpy(y, a->y + (size_t)row_of(a, sample) * targets, targets * sizeof(*y));
    return HALO_OK;
}

static int64_t group_of(hl_source *s, int64_t sample) { return sample / ((array_source *)s)->crops.count; }

static bool has_axis(const hl_axes *axes, char letter) { return memchr(axes->letter, letter, (size_t)axes->n) != NULL; }

static void id_of(hl_source *s, int64_t sample, char *out, size_t size)
{
    array_source *a = (array_source *)s;
    int64_t row = row_of(a, sample), file = hl_array_set_file(&a->x, row);
    int n = snprintf(out, size, "%s", hl_files_name(&a->x.files, file));
    if (has_axis(&a->x.axes, 'n') && n > 0 && (size_t)n < size) n += snprintf(out + n, size - (size_t)n, "#%" PRId64, row - a->x.first[file]);
    if (a->crops.count > 1 && n > 0 && (size_t)n < size) snprintf(out + n, size - (size_t)n, "/%" PRId64, sample % a->crops.count);
}

static const char *image_of(hl_source *s, int64_t sample)
{
    array_source *a = (array_source *)s;
    bool whole = a->x.varied || (a->crops.count == 1 && memcmp(a->crops.ext, a->crops.box, sizeof(a->crops.ext)) == 0);
    const char *path = a->x.files.path[hl_array_set_file(&a->x, row_of(a, sample))];
    return whole && a->plain && hl_is_nifti(path) ? path : NULL;
}

static void extents(hl_source *s, int64_t sample, int64_t ext[3])
{
    const array_source *a = (const array_source *)s;
    memcpy(ext, a->x.varied ? a->x.ext[hl_array_set_file(&a->x, row_of(a, sample))] : s->box, sizeof(s->box));
}

static halo_status spacing(hl_source *s, int64_t sample, double out[3])
{
    const array_source *a = (const array_source *)s;
    const int64_t file = hl_array_set_file(&a->x, row_of(a, sample));
    const char *path = a->x.files.path[file];
    if (!a->plain || !hl_is_nifti(path)) return hl_fail(s->ctx, HALO_ERR_USAGE, "'data.spacing' is of NIfTI images, whose voxels have one, which '%s' is not", path);
    memcpy(out, a->x.span[file].spacing, sizeof(a->x.span[file].spacing));
    for (int k = 0; k < 3; k++)
        if (!(out[k] > 0) || !isfinite(out[k])) return hl_fail(s->ctx, HALO_ERR_FORMAT, "'%s' says that its voxels are %g apart along axis %c", path, out[k], "DHW"[k]);
    return HALO_OK;
}

static void close_source(hl_source *s)
{
    array_source *a = (array_source *)s;
    hl_array_set_close(&a->x);
    hl_array_set_close(&a->of_y);
    pthread_mutex_destroy(&a->lock);
    free(a->y);
    hl_source_free(s);
}

static const hl_source_ops array_ops = {.name = "arrays", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_source, .image_of = image_of, .extents = extents, .spacing = spacing};

/* -------------------------------------------------------------------------------------------------------------- axes */

typedef struct expected { /* what the network takes, C D H W, 0: any */
    int64_t ext[4];
    bool crop;
} expected;

static expected expectation(const hl_source_options *o)
{
    expected e = {.ext = {o->channels ? o->channels : o->array->expect[0]}, .crop = o->crop[0] > 0};
    for (int k = 0; k < 3; k++) e.ext[k + 1] = o->patch[0] ? 0 : o->size[k] ? o->size[k] : o->array->expect[k + 1];
    return e;
}

static void add_extents(hl_str *s, const int64_t ext[4])
{
    for (int k = 0; k < 4; k++) {
        if (k) hl_str_add(s, " x ");
        if (ext[k]) hl_str_addf(s, "%" PRId64, ext[k]);
        else hl_str_add(s, "any");
    }
    hl_str_add(s, " (C D H W)");
}

/* What is expected, and the axes that would fit, behind an error about those of `key`. */
static void add_advice(hl_str *s, const hl_array *array, const hl_axes *axes, const char *key, const expected *e)
{
    hl_axes better;
    char text[128];
    if (e->ext[1]) {
        hl_str_add(s, "; the network expects ");
        add_extents(s, e->ext);
    }
    if (hl_axes_suggest(array, e->ext, e->crop, &better) && (better.n != axes->n || memcmp(better.letter, axes->letter, (size_t)better.n) != 0))
        hl_str_addf(s, "; '%s: %s' would fit%s", key, hl_axes_text(&better, text, sizeof(text)), e->ext[1] ? "" : " if it is what it looks like");
    else if (e->ext[1]) hl_str_add(s, "; no order of its axes would fit");
}

static halo_status misfit(const hl_array *array, const hl_axes *axes, const char *key, const expected *e, const char *what)
{
    char title[512], shape[320];
    hl_str s = {0};
    hl_str_addf(&s, "%s is %s%s", hl_array_title(array, title, sizeof(title)), hl_array_describe(array, shape, sizeof(shape)), what);
    add_advice(&s, array, axes, key, e);
    halo_status st = hl_fail(array->ctx, HALO_ERR_SHAPE, "%s", s.s ? s.s : "out of memory");
    hl_str_free(&s);
    return st;
}

/* Axes that the format itself says. */
static void take_order(const hl_array *array, hl_axes *axes)
{
    axes->n = array->ndim;
    memcpy(axes->letter, array->order, (size_t)array->ndim);
}

/* The axes of x: as given, or those of its format, or of two and three extents. */
static halo_status set_axes(hl_array_set *set, const hl_array *array, const char *key, const hl_words *given, const expected *e)
{
    char what[256], text[128];
    HL_TRY(hl_axes_parse(set->ctx, key, given, &set->axes));
    if (set->axes.n == 0 && array->order) take_order(array, &set->axes);
    if (set->axes.n == 0 && (array->ndim == 2 || array->ndim == 3)) {
        set->axes.n = array->ndim;
        memcpy(set->axes.letter, array->ndim == 2 ? "hw" : "dhw", (size_t)array->ndim);
    }
    if (set->axes.n == array->ndim && array->ndim > 0) return HALO_OK;
    if (set->axes.n == 0) snprintf(what, sizeof(what), ", and '%s' does not say what its axes are", key);
    else snprintf(what, sizeof(what), ", %d ax%ss, '%s: %s' names %d", array->ndim, array->ndim == 1 ? "i" : "e", key, hl_axes_text(&set->axes, text, sizeof(text)), set->axes.n);
    return misfit(array, &set->axes, key, e, what);
}

/* Samples as the network takes them; the rest is hl_source_fit's. */
static halo_status check_fit(const array_source *a, const hl_source_options *o, const hl_array *array, const expected *e)
{
    const int64_t *ext = a->x.view.ext + 1;
    bool bad = e->ext[0] > ext[0], cut = true;
    char text[128];
    for (int k = 0; k < 3; k++) {
        int64_t n = o->crop[k] ? o->crop[k] : ext[k + 1];
        bad = bad || n > ext[k + 1] || (e->ext[k + 1] && e->ext[k + 1] != n);
        cut = cut && e->ext[k + 1] && e->ext[k + 1] <= ext[k + 1];
    }
    if (!bad || (cut && e->ext[0] <= ext[0] && !o->crop[0] && o->size[0])) return HALO_OK; /* to be cut, which hl_source_fit says */
    hl_str s = {0};
    hl_str_addf(&s, ", which with '%s: %s' makes samples of ", "data.x.axes", hl_axes_text(&a->x.axes, text, sizeof(text)));
    add_extents(&s, ext);
    if (o->crop[0]) hl_str_addf(&s, ", to be cut to [%" PRId64 ", %" PRId64 ", %" PRId64 "]", o->crop[0], o->crop[1], o->crop[2]);
    halo_status st = misfit(array, &a->x.axes, "data.x.axes", e, s.s ? s.s : "");
    hl_str_free(&s);
    return st;
}

/* ----------------------------------------------------------------------------------------------------------- targets */

static bool exists(const char *path)
{
    glob_t g;
    if (hl_file_exists(path) || hl_is_directory(path)) return true;
    bool found = strpbrk(path, "*?[") && glob(path, GLOB_NOSORT, NULL, &g) == 0;
    if (found) globfree(&g);
    return found;
}

/* A name beside the data: in their directory, else as it stands. */
static halo_status find_beside(halo_context *ctx, const char *data, const char *name, char **out)
{
    size_t n = strcspn(data, "*?[");
    hl_str s = {0};
    if (name[0] == '/') return hl_strdup(ctx, name, out);
    if (hl_is_directory(data)) hl_str_addf(&s, "%s/", data);
    else {
        while (n > 0 && data[n - 1] != '/') n--;
        hl_str_addn(&s, data, n);
    }
    hl_str_add(&s, name);
    if (s.failed) {
        hl_str_free(&s);
        return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a path");
    }
    *out = s.s;
    if (exists(*out)) return HALO_OK;
    free(*out);
    return hl_strdup(ctx, name, out);
}

static halo_status check_order(const array_source *a, const hl_source_options *o, const char *table)
{
    const char *before, *after;
    if (o->array->order != HL_ORDER_AUTO || hl_array_files_order_is_plain(&a->x.files, &before, &after)) return HALO_OK;
    return hl_fail(a->base.ctx, HALO_ERR_USAGE,
                   "'%s' has a row for each file, and it is not clear which: by name '%s' comes before '%s', by number after it; set 'data.targets.order' to name or number", table,
                   hl_base_name(before), hl_base_name(after));
}

/* The row of the table for each of ours: by sample, or by file. */
static halo_status match_rows(const array_source *a, const hl_source_options *o, const char *path, const hl_table *t, int64_t **row)
{
    int64_t files = a->x.files.count;
    *row = NULL;
    if (t->rows != files && t->rows != a->rows)
        return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'%s' has %" PRId64 " row%s for %" PRId64 " file%s in '%s'%s", path, t->rows, HL_S(t->rows), files, HL_S(files), o->path,
                       files != a->rows ? " with more samples" : "");
    if (files > 1) HL_TRY(check_order(a, o, path));
    if (t->rows == a->rows) return HALO_OK;
    HL_TRY(hl_calloc(a->base.ctx, (size_t)a->rows, sizeof(**row), "rows", row));
    for (int64_t i = 0; i < a->rows; i++) (*row)[i] = hl_array_set_file(&a->x, i);
    return HALO_OK;
}

static halo_status take_table(array_source *a, const hl_source_options *o, const char *path, const hl_table *t, bool measure)
{
    int64_t *row;
    HL_TRY(match_rows(a, o, path, t, &row));
    halo_status st = hl_labels_take(&a->base, o, &(hl_labels){.path = path, .table = t, .row = row, .rows = a->rows, .first = a->first, .count = a->count, .measure = measure}, &a->y);
    free(row);
    return st;
}

static halo_status open_table(array_source *a, const hl_source_options *o)
{
    hl_table t;
    char *path;
    HL_TRY(find_beside(a->base.ctx, o->path, o->array->table, &path));
    if (o->label && !exists(path)) {
        free(path);
        return HALO_OK; /* to be predicted */
    }
    halo_status st = hl_table_read(a->base.ctx, path, &t);
    if (st == HALO_OK) {
        st = take_table(a, o, path, &t, true);
        hl_table_free(&t);
    }
    free(path);
    return st;
}

/* Axes of y that are not given: of one and two extents, or those of x where it is as x is. */
static halo_status set_y_axes(array_source *a, const hl_source_options *o, const hl_array *y)
{
    hl_axes *axes = &a->of_y.axes;
    char title[512], shape[320], text[128];
    HL_TRY(hl_axes_parse(a->base.ctx, "data.y.axes", &o->array->y_axes, axes));
    if (axes->n == 0 && y->order) take_order(y, axes);
    if (axes->n == 0 && a->x.varied && y->ndim == a->x.axes.n) *axes = a->x.axes; /* patches have targets that are as they are */
    if (axes->n == 0 && y->ndim == 1) *axes = (hl_axes){.n = 1, .letter = {has_axis(&a->x.axes, 'n') || (y->dim[0] == a->rows && *o->array->y_from) ? 'n' : 'c'}};
    if (axes->n == 0 && y->ndim == 2) *axes = (hl_axes){.n = 2, .letter = "nc"};
    if (axes->n == 0 && y->ndim == a->x.axes.n) *axes = a->x.axes;
    if (axes->n == y->ndim) return HALO_OK;
    return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "%s is %s, %s%s", hl_array_title(y, title, sizeof(title)), hl_array_describe(y, shape, sizeof(shape)),
                   axes->n ? "but 'data.y.axes' is " : "set 'data.y.axes', such as [n, c] or [d, h, w]", axes->n ? hl_axes_text(axes, text, sizeof(text)) : "");
}

/* Images come with their masks by name: case_7 has that of case_7, volume-7 that of segmentation-7. */
static halo_status check_cases(const array_source *a)
{
    const hl_array_set *x = &a->x, *y = &a->of_y;
    for (int64_t f = 0; f < x->files.count && x->files.count == y->files.count; f++) {
        const char *of_x = x->files.path[f], *of_y = y->files.path[f];
        if (hl_is_nifti(of_x) && hl_is_nifti(of_y) && !hl_nifti_same_case(of_x, of_y))
            return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'%s' would be the mask of '%s': their numbers differ; is a file missing?", of_y, hl_base_name(of_x));
    }
    return HALO_OK;
}

/* Masks that say they lie elsewhere than their images are taken as they are; the first is named. */
static void check_places(const array_source *a)
{
    const hl_files *x = &a->x.files, *y = &a->of_y.files;
    int64_t first = -1, count = 0;
    double of_first = 0;
    char others[64] = "";
    for (int64_t f = 0; f < x->count && x->count == y->count; f++) {
        double voxels = hl_nifti_apart(&a->x.span[f], &a->of_y.span[f]);
        if (!(voxels > 0.5)) continue;
        if (count++ > 0) continue;
        first = f;
        of_first = voxels;
    }
    if (count > 1) snprintf(others, sizeof(others), ", as do %" PRId64 " other%s", count - 1, HL_S(count - 1));
    if (count > 0) HL_WARN(a->base.ctx, "'%s' says that it lies elsewhere than '%s', by %.3g voxels%s", y->path[first], x->path[first], of_first, others);
}

/* Each mask has the extents of its sample. */
static halo_status check_extents(const array_source *a)
{
    const hl_array_set *x = &a->x, *y = &a->of_y;
    HL_TRY(check_cases(a));
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t f = hl_array_set_file(x, row), g = hl_array_set_file(y, row), *m = x->ext[f], *n = y->ext[g];
        if (memcmp(m, n, sizeof(x->ext[f])) == 0) continue;
        return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'%s' has targets of [%" PRId64 ", %" PRId64 ", %" PRId64 "] for '%s', which has [%" PRId64 ", %" PRId64 ", %" PRId64 "] (D, H, W)",
                       y->files.path[g], n[0], n[1], n[2], hl_base_name(x->files.path[f]), m[0], m[1], m[2]);
    }
    return HALO_OK;
}

static halo_status check_y_rows(const array_source *a, bool known)
{
    const hl_array_set *x = &a->x, *y = &a->of_y;
    bool together = x->files.count == y->files.count;
    int64_t have = y->first[y->files.count];
    for (int64_t f = 0; together && f < x->files.count; f++)
        if (strcmp(x->files.path[f], y->files.path[f]) == 0 && x->first[f + 1] - x->first[f] != y->first[f + 1] - y->first[f])
            return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'%s': 'data.x' has %" PRId64 " samples, 'data.y' %" PRId64, x->files.path[f], x->first[f + 1] - x->first[f], y->first[f + 1] - y->first[f]);
    if (have == a->rows) {
        HL_TRY(x->varied ? check_extents(a) : check_cases(a));
        if (!known) check_places(a);
        return HALO_OK;
    }
    hl_str lonely = {0};
    hl_files_add_unpaired(&x->files, "mask", &y->files, &lonely);
    hl_files_add_unpaired(&y->files, "image", &x->files, &lonely);
    halo_status st = hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'data.y' has %" PRId64 " sample%s in %" PRId64 " file%s from '%s' on, 'data.x' has %" PRId64 "%s", have, HL_S(have), y->files.count,
                             HL_S(y->files.count), y->files.path[0], a->rows, lonely.s ? lonely.s : "");
    hl_str_free(&lonely);
    return st;
}

/* All of one file's y to its rows of the table. */
static halo_status read_numbers(hl_array_set *y, int64_t file, hl_table *t)
{
    hl_array *array;
    hl_view v;
    void *raw;
    int64_t start[HL_ARRAY_RANK] = {0}, at[HL_ARRAY_RANK] = {0};
    HL_TRY(hl_array_set_get(y, file, &array));
    if (array->elements == 0) return HALO_OK;
    hl_view_set(&v, array, &y->axes);
    HL_TRY(hl_aligned(y->ctx, (size_t)array->bytes, "targets", &raw));
    halo_status st = hl_array_read(array, start, array->dim, raw, (size_t)array->bytes);
    for (int64_t i = 0; i < array->elements && st == HALO_OK; i++) {
        int64_t row = y->first[file], column = 0;
        for (int k = 0; k < v.ndim; k++) {
            column += at[k] * v.channel[k];
            if (v.letter[k] == 'n') row += at[k];
        }
        t->value[row * t->columns + column] = hl_number_value(array->type, raw, i);
        for (int k = v.ndim - 1; k >= 0 && ++at[k] == array->dim[k]; k--) at[k] = 0;
    }
    free(raw);
    return st;
}

static halo_status take_numbers(array_source *a, const hl_source_options *o)
{
    hl_array_set *y = &a->of_y;
    hl_table t = {.rows = a->rows, .columns = y->view.ext[1]};
    HL_TRY(hl_calloc(a->base.ctx, (size_t)t.rows * (size_t)hl_max64(t.columns, 0), sizeof(double), "targets", &t.value));
    halo_status st = HALO_OK;
    for (int64_t f = 0; f < y->files.count && st == HALO_OK; f++) st = read_numbers(y, f, &t);
    if (st == HALO_OK)
        st = hl_labels_take(&a->base, o, &(hl_labels){.path = y->files.path[0], .table = &t, .rows = a->rows, .first = a->first, .count = a->count}, &a->y);
    free(t.value);
    return st;
}

/* Volumes are cut as x is, where there are sub-volumes. */
static halo_status take_volumes(array_source *a, const hl_source_options *o)
{
    const hl_crops *c = &a->crops;
    const hl_array_set *y = &a->of_y;
    const int64_t *box = y->view.ext + 2;
    bool whole = memcmp(c->ext, c->box, sizeof(c->ext)) == 0, alike = memcmp(box, c->box, sizeof(c->box)) == 0;
    if (!whole && !alike)
        return hl_fail(a->base.ctx, HALO_ERR_SHAPE,
                       "'%s': sub-volumes need targets of the extents of 'data.x', [%" PRId64 ", %" PRId64 ", %" PRId64 "], 'data.y' has [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                       y->files.path[0], c->box[0], c->box[1], c->box[2], box[0], box[1], box[2]);
    for (int k = 0; k < 3; k++)
        if (box[k] < 1) return hl_fail(a->base.ctx, HALO_ERR_SHAPE, "'%s': 'data.y' has no cells", y->files.path[0]);
    HL_TRY(hl_source_targets(&a->base, o, y->files.path[0], *y->name ? y->name : "y", y->view.ext[1]));
    memcpy(a->base.info.target_ext, alike ? c->ext : box, sizeof(c->ext));
    const hl_map *m = &o->array->columns; /* names of volumes, in order */
    for (int t = 0; t < a->base.info.targets && t < m->n; t++) snprintf(a->base.info.target[t].name, sizeof(a->base.info.target[t].name), "%s", m->item[t].word);
    a->volumes = true;
    return HALO_OK;
}

static halo_status find_y_files(array_source *a, const hl_source_options *o)
{
    char *path;
    if (!*o->array->y_from) return hl_array_files_find(a->base.ctx, o->path, o->array->order, &a->of_y.files);
    HL_TRY(find_beside(a->base.ctx, o->path, o->array->y_from, &path));
    halo_status st = hl_array_files_find(a->base.ctx, path, o->array->order, &a->of_y.files);
    free(path);
    return st;
}

static halo_status open_first_y(array_source *a, const hl_source_options *o, hl_array **y)
{
    HL_TRY(find_y_files(a, o));
    return hl_array_set_get(&a->of_y, 0, y);
}

static halo_status open_y(array_source *a, const hl_source_options *o)
{
    hl_array *y;
    halo_context *ctx = a->base.ctx;
    halo_log_fn log = ctx->log;
    if (o->label) ctx->log = NULL; /* data to be predicted may have none: that is no error then */
    halo_status st = open_first_y(a, o, &y);
    ctx->log = log;
    if (st != HALO_OK) return o->label ? HALO_OK : st;
    HL_TRY(set_y_axes(a, o, y));
    HL_TRY(hl_array_set_scan(&a->of_y));
    HL_TRY(check_y_rows(a, o->array->same));
    const hl_axes *axes = &a->of_y.axes;
    return has_axis(axes, 'd') || has_axis(axes, 'h') || has_axis(axes, 'w') ? take_volumes(a, o) : take_numbers(a, o);
}

static halo_status open_targets(array_source *a, const hl_source_options *o)
{
    const hl_array_options *r = o->array;
    bool y = *r->y || *r->y_from || r->y_axes.n;
    if (y && *r->table) return hl_fail(a->base.ctx, HALO_ERR_USAGE, "targets come from 'data.y' or from 'data.targets.file', not from both");
    if (*r->table) return open_table(a, o);
    if (y) return open_y(a, o);
    if (!o->outputs || o->label) return HALO_OK;
    return hl_fail(a->base.ctx, HALO_ERR_USAGE, "'%s': where are the targets? Set 'data.targets.file' or 'data.y'", o->path);
}

/* ----------------------------------------------------------------------------------------------------------- opening */

/* CASE_0000, CASE_0001 ... are the channels of CASE where there is a mask for each case; without masks, where the network takes so many. */
static halo_status pair_channels(array_source *a, const hl_source_options *o)
{
    hl_files *x = &a->x.files, masks = {0};
    int n = hl_is_nifti(x->path[0]) ? hl_scans_channels(x->path, x->count) : 1;
    char *path = NULL;
    if (n == 1) return HALO_OK;
    bool wanted = expectation(o).ext[0] == n, pairs = wanted, known = false;
    if (*o->array->y_from) {
        HL_TRY(find_beside(a->base.ctx, o->path, o->array->y_from, &path));
        known = exists(path) && hl_array_files_find(a->base.ctx, path, o->array->order, &masks) == HALO_OK;
        if (known) pairs = masks.count * n == x->count || (wanted && masks.count != x->count);
        hl_files_free(&masks);
        free(path);
    }
    return pairs ? hl_array_set_pair(&a->x, n) : HALO_OK;
}

static halo_status open_first(array_source *a, const hl_source_options *o)
{
    hl_array *array;
    hl_source_info *info = &a->base.info;
    char title[512], shape[384];
    expected e = expectation(o);
    HL_TRY(hl_array_files_find(a->base.ctx, o->path, o->array->order, &a->x.files));
    HL_TRY(pair_channels(a, o));
    HL_TRY(hl_files_set_names(&a->x.files));
    HL_TRY(hl_array_set_get(&a->x, 0, &array));
    HL_TRY(set_axes(&a->x, array, "data.x.axes", &o->array->x_axes, &e));
    HL_TRY(hl_array_set_scan(&a->x));
    HL_TRY(hl_array_set_get(&a->x, 0, &array));
    a->plain = array->order && memcmp(array->order, a->x.axes.letter, (size_t)array->ndim) == 0;
    HL_TRY(check_fit(a, o, array, &e));
    hl_array_describe(array, shape, sizeof(shape));
    HL_TRY(hl_source_fit(&a->base, o, array->path, shape, a->x.view.ext[1], a->x.view.ext + 2, &a->crops));
    info->dtype = a->x.mixed ? HALO_F32 : hl_number_dtype(array->type);
    info->whole_periodic = o->array->periodic && a->crops.count == 1 && memcmp(a->crops.ext, a->crops.box, sizeof(a->crops.ext)) == 0;
    if (array->whole && !o->array->hinted)
        HL_INFO(a->base.ctx, "%s is deflated: it is inflated into memory as a whole (%" PRId64 " bytes) for each %s that is read from it; %s",
                hl_array_title(array, title, sizeof(title)), array->bytes, has_axis(&a->x.axes, 'n') ? "sample" : "file",
                array->order ? "'halo convert nifti' makes a file that is read in parts" : "numpy.savez leaves arrays as they are");
    return HALO_OK;
}

static void describe(array_source *a, const hl_source_options *o)
{
    hl_source_info *i = &a->base.info;
    char axes[80];
    bool differ = false;
    for (int64_t f = 1; f < a->x.files.count && a->x.varied; f++) differ = differ || memcmp(a->x.ext[f], a->x.ext[0], sizeof(a->x.ext[f])) != 0;
    int at = snprintf(i->description, sizeof(i->description), "%" PRId64 " sample%s of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 "%s %s in '%.100s' (%s%s%.40s)", i->samples,
                      HL_S(i->samples), i->ext[0], i->ext[1], i->ext[2], i->ext[3], differ ? " and other extents" : "", hl_number_name(hl_dtype_number(i->dtype)), o->path, hl_axes_text(&a->x.axes, axes, sizeof(axes)),
                      *a->x.name ? " of " : "", a->x.name);
    if (a->volumes && at > 0 && (size_t)at < sizeof(i->description))
        snprintf(i->description + at, sizeof(i->description) - (size_t)at, ", targets %d x %" PRId64 " x %" PRId64 " x %" PRId64, i->targets, i->target_ext[0], i->target_ext[1],
                 i->target_ext[2]);
}

static halo_status set_up(array_source *a, const hl_source_options *o)
{
    hl_source_info *info = &a->base.info;
    HL_TRY(open_first(a, o));
    a->rows = a->x.first[a->x.files.count];
    if (a->rows == 0) return hl_fail(a->base.ctx, HALO_ERR_FORMAT, "'%s': no samples: the axis n has no entries", o->path);
    HL_TRY(hl_source_part(a->base.ctx, o, a->rows, &a->first, &a->count));
    HL_TRY(open_targets(a, o));
    info->groups = a->count;
    info->samples = a->count * a->crops.count;
    describe(a, o);
    return HALO_OK;
}

halo_status hl_arrays_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    static const hl_array_options nothing = {.x = "", .y = "", .y_from = "", .table = ""};
    hl_source_options with = *o;
    array_source *a = NULL;
    if (!with.array) with.array = &nothing;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*a), "a source", &a));
    a->base.ops = &array_ops;
    a->base.ctx = ctx;
    hl_array_set_init(&a->x, ctx, with.array->x, &a->base.count);
    hl_array_set_init(&a->of_y, ctx, with.array->y, &a->base.count);
    a->x.varied = a->of_y.varied = with.patch[0] > 0;
    pthread_mutex_init(&a->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = set_up(a, &with);
    if (st == HALO_OK) *source = &a->base;
    else close_source(&a->base);
    return st;
}
