/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_windows.c -- a window of wy x wx positions of a scan is a sample x [wy wx, 1, H, W], as `halo synth cbed` makes them: channel iy wx + ix is the pattern at position (y + iy, x + ix), window k of a file begins at
 *
 *     y = (k / nx) ty,   x = (k mod nx) tx,   nx = (extent of sx - wx) / tx + 1
 *
 * and patterns are cut to the middle of the detector and summed over bins of its pixels:
 *
 *     x[c, h, w] = u sum_{i < bh, j < bw} data[y + iy, x + ix, h0 + h bh + i, w0 + w bw + j]
 *
 * with u such that the mean over the window is 1 (unit dose), or 1. The file is read in place, a window at a time and of it only the rows that are asked for; only the sum of a window, for unit dose, takes all of it, once. A file is a
 * group. The axes may lie in any order. Pixel sizes are those of the EMD dimension vectors dim0 ... dim3 (version 1) or dim1 ... dim4 (0.1) beside the dataset, where there are any.
 */
#include "io/scan_windows.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/context.h"
#include "io/array_files.h"
#include "io/h5.h"
#include "io/source.h"

enum { SY = 0, SX, DH, DW, AXES };
static const char *const axis_name[AXES] = {"sy", "sx", "h", "w"};

typedef struct scan { /* of a file */
    int64_t dim[AXES], across[2], first; /* windows along sy and sx; windows of the files before */
} scan;

typedef struct scan_source {
    hl_source base;
    hl_files files;
    const char *name;          /* of the array; the options' own */
    char name_kept[HL_TEXT_MAX];
    int word[AXES];            /* which axis of the array, as its writer numbers them */
    int64_t window[2], stride[2], bin[2];
    int64_t crop[2];           /* 0: all that bins fill */
    bool unit;
    scan *scan;                /* [files] */
    hl_window_place place;       /* without an offset */
    hl_number type;
    pthread_mutex_t lock;      /* guards what follows */
    hl_array *array;
    int64_t open;              /* the file that it is of; -1: none */
    double *scale;             /* [samples] u; 0: not known yet */
    char *raw, *values;
    size_t raw_room, values_room;
} scan_source;

bool hl_names_scan(const hl_words *axes)
{
    for (int i = 0; i < axes->n; i++)
        if (axes->word[i][0] == 's') return true;
    return false;
}

/* -------------------------------------------------------------------------------------------------------------- reading */

static int storage_axis(const scan_source *s, const hl_array *a, int axis) { return a->reversed ? AXES - 1 - s->word[axis] : s->word[axis]; }

static int64_t file_of(const scan_source *s, int64_t sample)
{
    int64_t f = s->files.count - 1;
    while (s->scan[f].first > sample) f--;
    return f;
}

static halo_status open_file(scan_source *s, int64_t file)
{
    if (s->open == file) return HALO_OK;
    hl_array_close(s->array);
    s->array = NULL;
    s->open = -1;
    HL_TRY(hl_array_open(s->base.ctx, s->files.path[file], s->name, &s->base.count, &s->array));
    s->open = file;
    return HALO_OK;
}

/* Where the window begins in the scan. */
static void offset_of(const scan_source *s, int64_t sample, int64_t offset[2])
{
    const scan *f = &s->scan[file_of(s, sample)];
    int64_t k = sample - f->first;
    offset[0] = k / f->across[1] * s->stride[0];
    offset[1] = k % f->across[1] * s->stride[1];
}

/* Sums of bins of the pixels [lo, lo + ext) of all patterns of the window, to their place in x [C, into]. `sum` is increased by all of them. */
static void sum_bins(const scan_source *s, const int64_t along[AXES], const int64_t ext[2], const float *values, const hl_cut *cut, float *x, double *sum)
{
    for (int64_t c = 0; c < s->window[0] * s->window[1]; c++)
        for (int64_t h = 0; h < ext[0]; h++)
            for (int64_t w = 0; w < ext[1]; w++) {
                const float *at = values + c / s->window[1] * along[SY] + c % s->window[1] * along[SX] + h * s->bin[0] * along[DH] + w * s->bin[1] * along[DW];
                double v = 0;
                for (int64_t i = 0; i < s->bin[0]; i++)
                    for (int64_t j = 0; j < s->bin[1]; j++) v += (double)at[i * along[DH] + j * along[DW]];
                *sum += v;
                if (x) x[((c * cut->into[0] + cut->at[0]) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2] + w] = (float)v;
            }
}

/* The pixels [lo, lo + ext) of the cut and binned patterns of a window. */
static halo_status read_window(scan_source *s, int64_t sample, const int64_t lo[2], const int64_t ext[2], const hl_cut *cut, float *x, double *sum)
{
    int64_t file = file_of(s, sample), offset[2], start[HL_ARRAY_RANK], count[HL_ARRAY_RANK], along[AXES], n = 1;
    offset_of(s, sample, offset);
    HL_TRY(open_file(s, file));
    for (int k = 0; k < 2; k++) {
        int scan_axis = storage_axis(s, s->array, SY + k), pixel_axis = storage_axis(s, s->array, DH + k);
        start[scan_axis] = offset[k];
        count[scan_axis] = s->window[k];
        start[pixel_axis] = (s->scan[file].dim[DH + k] - s->crop[k]) / 2 + lo[k] * s->bin[k];
        count[pixel_axis] = ext[k] * s->bin[k];
    }
    for (int i = AXES - 1; i >= 0; i--) {
        for (int k = 0; k < AXES; k++)
            if (storage_axis(s, s->array, k) == i) along[k] = n;
        n *= count[i];
    }
    HL_TRY(hl_scratch(s->base.ctx, &s->raw, &s->raw_room, (size_t)(n * s->type.bytes), "a window of a scan"));
    HL_TRY(hl_scratch(s->base.ctx, &s->values, &s->values_room, (size_t)n * sizeof(float), "a window of a scan"));
    HL_TRY(hl_array_read(s->array, start, count, s->raw, s->raw_room));
    hl_convert(s->type, s->raw, 1, HALO_F32, s->values, n);
    sum_bins(s, along, ext, (const float *)(void *)s->values, cut, x, sum);
    return HALO_OK;
}

/* One over the mean of a window whose values have this sum; 1 where there is nothing in it. */
static double scale_of(const scan_source *s, double sum)
{
    const int64_t *e = s->base.info.ext;
    return sum > 0 ? (double)(e[0] * e[2] * e[3]) / sum : 1;
}

static halo_status find_scale(scan_source *s, int64_t sample)
{
    const int64_t *e = s->base.info.ext, none[2] = {0, 0}, all[2] = {e[2], e[3]};
    double sum = 0;
    if (s->scale[sample] != 0) return HALO_OK;
    HL_TRY(read_window(s, sample, none, all, NULL, NULL, &sum));
    s->scale[sample] = scale_of(s, sum);
    return HALO_OK;
}

static void scale_cut(const scan_source *s, const hl_cut *cut, double scale, float *x)
{
    for (int64_t c = 0; c < s->base.info.ext[0]; c++)
        for (int64_t h = 0; h < cut->ext[1]; h++)
            for (int64_t w = 0; w < cut->ext[2]; w++) {
                float *at = &x[((c * cut->into[0] + cut->at[0]) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2] + w];
                *at = (float)(*at * scale);
            }
}

static halo_status read_cut(hl_source *source, int64_t sample, const hl_cut *cut, void *x)
{
    scan_source *s = (scan_source *)source;
    double sum = 0;
    const int64_t *e = source->info.ext;
    bool whole = cut->ext[1] == e[2] && cut->ext[2] == e[3]; /* which tells its sum by itself */
    pthread_mutex_lock(&s->lock);
    halo_status st = s->unit && !whole ? find_scale(s, sample) : HALO_OK;
    if (st == HALO_OK) st = read_window(s, sample, cut->lo + 1, cut->ext + 1, cut, x, &sum);
    if (st == HALO_OK && s->unit && s->scale[sample] == 0) s->scale[sample] = scale_of(s, sum);
    if (st == HALO_OK && s->unit) scale_cut(s, cut, s->scale[sample], x);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static halo_status read_target(hl_source *source, int64_t sample, const hl_cut *cut, float *y)
{
    (void)source, (void)sample, (void)cut, (void)y; /* there are none */
    return HALO_OK;
}

static int64_t group_of(hl_source *source, int64_t sample) { return file_of((scan_source *)source, sample); }

static void id_of(hl_source *source, int64_t sample, char *out, size_t size)
{
    scan_source *s = (scan_source *)source;
    int64_t offset[2];
    offset_of(s, sample, offset);
    snprintf(out, size, "%s@%" PRId64 ",%" PRId64, hl_files_name(&s->files, file_of(s, sample)), offset[0], offset[1]);
}

static bool place_of(hl_source *source, int64_t sample, hl_window_place *place)
{
    scan_source *s = (scan_source *)source;
    *place = s->place;
    offset_of(s, sample, place->offset);
    return true;
}

static void close_source(hl_source *source)
{
    scan_source *s = (scan_source *)source;
    hl_array_close(s->array);
    hl_files_free(&s->files);
    pthread_mutex_destroy(&s->lock);
    free(s->scan);
    free(s->scale);
    free(s->raw);
    free(s->values);
    hl_source_free(source);
}

static const hl_source_ops scan_ops = {.name = "scan", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_source, .place_of = place_of};

/* ------------------------------------------------------------------------------------------------------------- settings */

/* Two numbers, or one for both; not given: `fallback`. */
static halo_status read_pair(const scan_source *s, const char *key, const hl_words *words, int64_t fallback, int64_t out[2])
{
    out[0] = out[1] = fallback;
    if (words->n == 0) return HALO_OK;
    for (int k = 0; k < 2 && words->n <= 2; k++) {
        const char *word = words->word[words->n == 1 ? 0 : k];
        char *end;
        out[k] = strtoll(word, &end, 10);
        if (*end || end == word || out[k] < 1) return hl_fail(s->base.ctx, HALO_ERR_USAGE, "'%s': '%s' is no whole number above 0", key, word);
    }
    return words->n <= 2 ? HALO_OK : hl_fail(s->base.ctx, HALO_ERR_USAGE, "'%s' has %d numbers, must be one or two", key, words->n);
}

static halo_status read_axes(scan_source *s, const hl_words *axes)
{
    bool whole = axes->n == AXES;
    for (int k = 0; k < AXES; k++) {
        s->word[k] = -1;
        for (int i = 0; i < axes->n; i++)
            if (strcmp(axes->word[i], axis_name[k]) == 0) s->word[k] = i;
        whole = whole && s->word[k] >= 0;
    }
    return whole ? HALO_OK : hl_fail(s->base.ctx, HALO_ERR_USAGE, "'data.x.axes' of a scan are sy, sx, h and w, each once, such as [sy, sx, h, w]");
}

static halo_status read_options(scan_source *s, const hl_source_options *o)
{
    const hl_array_options *a = o->array;
    snprintf(s->name_kept, sizeof(s->name_kept), "%s", a->x);
    s->name = s->name_kept;
    s->unit = a->unit_dose;
    HL_TRY(read_axes(s, &a->x_axes));
    HL_TRY(read_pair(s, "data.scan_window", &a->scan_window, 8, s->window));
    HL_TRY(read_pair(s, "data.scan_stride", &a->scan_stride, 0, s->stride));
    HL_TRY(read_pair(s, "data.detector_crop", &a->detector_crop, 0, s->crop));
    HL_TRY(read_pair(s, "data.detector_bin", &a->detector_bin, 1, s->bin));
    for (int k = 0; k < 2; k++)
        if (s->stride[k] == 0) s->stride[k] = s->window[k];
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------- pixel sizes */

/* The step of the dimension vector of an axis, and its unit; 0 and nothing where there is none. */
static void read_dimension(hl_h5 *file, const char *group, int number, double *step, char *units, size_t size)
{
    char name[HL_TEXT_MAX + 16], **text = NULL;
    double v[2];
    hl_h5_data *d;
    int64_t n = 0;
    const int64_t start = 0, count = 2;
    snprintf(name, sizeof(name), "%s/dim%d", group, number);
    *step = 0;
    units[0] = '\0';
    if (!hl_h5_has(file, name) || !hl_h5_is_numeric(file, name) || hl_h5_data_open(file, name, 0, &d) != HALO_OK) return;
    if (d->ndim == 1 && d->dim[0] >= 2) {
        char raw[2 * sizeof(double)];
        if (hl_h5_read(d, &start, &count, raw, sizeof(raw)) == HALO_OK) {
            for (int i = 0; i < 2; i++) v[i] = hl_number_value(d->type, raw, i);
            *step = v[1] - v[0];
        }
    }
    hl_h5_data_close(d);
    if (*step != 0 && hl_h5_strings(file, name, "units", &text, &n) == HALO_OK && n > 0) snprintf(units, size, "%s", text[0]);
    free(text);
}

/* Nothing of this is an error: a scan without calibration is one in pixels. */
static void read_place(scan_source *s)
{
    hl_h5 *file;
    halo_context *ctx = s->base.ctx;
    halo_log_fn log = ctx->log;
    char group[HL_TEXT_MAX], first[HL_TEXT_MAX + 16];
    snprintf(group, sizeof(group), "%s", s->name);
    char *slash = strrchr(group, '/');
    if (!slash || hl_is_plain_array(s->files.path[0])) return;
    *slash = '\0';
    ctx->log = NULL;
    if (hl_h5_open(ctx, s->files.path[0], &file) == HALO_OK) {
        snprintf(first, sizeof(first), "%s/dim0", group);
        int base = hl_h5_has(file, first) ? 0 : 1;
        for (int k = 0; k < 2; k++) {
            read_dimension(file, group, base + s->word[SY + k], &s->place.step[k], s->place.step_units, sizeof(s->place.step_units));
            read_dimension(file, group, base + s->word[DH + k], &s->place.pixel[k], s->place.pixel_units, sizeof(s->place.pixel_units));
            s->place.pixel[k] *= (double)s->bin[k];
        }
        hl_h5_close(file);
    }
    ctx->log = log;
}

/* -------------------------------------------------------------------------------------------------------------- opening */

static halo_status misfit(const hl_array *a, const char *what)
{
    char title[512], shape[320];
    return hl_fail(a->ctx, HALO_ERR_SHAPE, "%s is %s%s", hl_array_title(a, title, sizeof(title)), hl_array_describe(a, shape, sizeof(shape)), what);
}

static halo_status check_detector(scan_source *s, const hl_array *a, const scan *f)
{
    char what[200];
    for (int k = 0; k < 2; k++) {
        int64_t have = f->dim[DH + k];
        if (s->crop[k] == 0) s->crop[k] = have / s->bin[k] * s->bin[k];
        if (s->crop[k] <= have && s->crop[k] >= s->bin[k] && s->crop[k] % s->bin[k] == 0) continue;
        snprintf(what, sizeof(what), ": a detector of %" PRId64 " x %" PRId64 " pixels cannot be cut to [%" PRId64 ", %" PRId64 "] in bins of [%" PRId64 ", %" PRId64 "]", f->dim[DH], f->dim[DW], s->crop[0], s->crop[1],
                 s->bin[0], s->bin[1]);
        return misfit(a, what);
    }
    return HALO_OK;
}

static halo_status look(scan_source *s, int64_t file)
{
    char what[200];
    scan *f = &s->scan[file];
    HL_TRY(open_file(s, file));
    const hl_array *a = s->array;
    if (a->ndim != AXES) {
        snprintf(what, sizeof(what), ", %d ax%ss, 'data.x.axes' names %d", a->ndim, a->ndim == 1 ? "i" : "e", AXES);
        return misfit(a, what);
    }
    for (int k = 0; k < AXES; k++) f->dim[k] = a->dim[storage_axis(s, a, k)];
    if (file == 0) s->type = a->type;
    HL_TRY(check_detector(s, a, f));
    if (file > 0 && (f->dim[DH] != s->scan[0].dim[DH] || f->dim[DW] != s->scan[0].dim[DW] || a->type.kind != s->type.kind || a->type.bytes != s->type.bytes)) {
        snprintf(what, sizeof(what), ", whose patterns are not as those of '%.120s'", hl_base_name(s->files.path[0]));
        return misfit(a, what);
    }
    for (int k = 0; k < 2; k++) {
        if (s->window[k] > f->dim[k]) {
            snprintf(what, sizeof(what), ": a scan of %" PRId64 " x %" PRId64 " positions has no window of [%" PRId64 ", %" PRId64 "]", f->dim[SY], f->dim[SX], s->window[0], s->window[1]);
            return misfit(a, what);
        }
        f->across[k] = (f->dim[k] - s->window[k]) / s->stride[k] + 1;
    }
    return HALO_OK;
}

static halo_status look_at_all(scan_source *s, const hl_source_options *o)
{
    hl_source_info *info = &s->base.info;
    HL_TRY(hl_array_files_find(s->base.ctx, o->path, HL_ORDER_NAME, &s->files));
    HL_TRY(hl_files_set_names(&s->files));
    HL_TRY(hl_calloc(s->base.ctx, (size_t)s->files.count, sizeof(*s->scan), "scans", &s->scan));
    for (int64_t f = 0; f < s->files.count; f++) {
        s->scan[f].first = info->samples;
        HL_TRY(look(s, f));
        info->samples += s->scan[f].across[0] * s->scan[f].across[1];
    }
    return hl_calloc(s->base.ctx, (size_t)info->samples, sizeof(*s->scale), "windows", &s->scale);
}

static halo_status check_network(const scan_source *s, const hl_source_options *o)
{
    const int64_t *e = s->base.info.ext;
    if (!o->label) return hl_fail(s->base.ctx, HALO_ERR_USAGE, "'%s': windows of a scan have no targets: a trained network can predict them, nothing can be trained on them", o->path);
    int64_t c = o->channels ? o->channels : o->array->expect[0], h = o->size[1] ? o->size[1] : o->array->expect[2], w = o->size[2] ? o->size[2] : o->array->expect[3];
    if ((c == 0 || c == e[0]) && (h == 0 || h == e[2]) && (w == 0 || w == e[3])) return HALO_OK;
    return hl_fail(s->base.ctx, HALO_ERR_SHAPE,
                   "'%s': windows make samples of %" PRId64 " x 1 x %" PRId64 " x %" PRId64 " (positions, 1, H, W), the network takes %" PRId64 " x 1 x %" PRId64 " x %" PRId64 ": see data.scan_window, data.detector_crop and data.detector_bin",
                   s->files.path[0], e[0], e[2], e[3], c, h, w);
}

static halo_status set_up(scan_source *s, const hl_source_options *o)
{
    hl_source_info *info = &s->base.info;
    HL_TRY(read_options(s, o));
    HL_TRY(look_at_all(s, o));
    const int64_t ext[4] = {s->window[0] * s->window[1], 1, s->crop[0] / s->bin[0], s->crop[1] / s->bin[1]};
    memcpy(info->ext, ext, sizeof(ext));
    info->dtype = HALO_F32;
    info->groups = s->files.count;
    for (int k = 0; k < 3; k++) info->target_ext[k] = 1;
    read_place(s);
    snprintf(info->description, sizeof(info->description), "%" PRId64 " window%s of %" PRId64 " x %" PRId64 " positions of a scan of %" PRId64 " x %" PRId64 ", patterns %" PRId64 " x %" PRId64 " %s, in '%.90s'", info->samples,
             HL_S(info->samples), s->window[0], s->window[1], s->scan[0].dim[SY], s->scan[0].dim[SX], ext[2], ext[3], hl_number_name(s->type), o->path);
    return check_network(s, o);
}

halo_status hl_scan_windows_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    scan_source *s;
    if (!o->array) return hl_fail(ctx, HALO_ERR_USAGE, "'%s': set 'data.x.axes' of a scan, such as [sy, sx, h, w]", o->path);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "a source", &s));
    s->base.ops = &scan_ops;
    s->base.ctx = ctx;
    s->open = -1;
    pthread_mutex_init(&s->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = set_up(s, o);
    if (st == HALO_OK) *source = &s->base;
    else close_source(&s->base);
    return st;
}
