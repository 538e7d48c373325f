/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo_source.c -- halo's own layout: `x` [sample, C, D, H, W] of any number type, `y` [sample, T] or, where
 * targets are volumes, [sample, T, D, H, W], whose attributes say what the targets are (names, and either low
 * and high: what -1 and +1 stand for, or mean and std of a z-score), `group` [sample] (samples of one group never go to different sets), and the attribute
 * `periodic` of x (1: a sample is a whole periodic box). Only x is required. Several files are one set in the
 * order of their names.
 */
#include "io/source.h"

#include <pthread.h>
#include <stdio.h>

typedef struct halo_source {
    hl_source base;
    hl_files files;
    hl_crops crops;
    int64_t *first; /* [files + 1] rows before each file */
    int64_t *row;   /* [samples / crops] rows in use */
    int64_t rows;
    bool volumes;         /* y is read sample by sample */
    int64_t y_box[3];     /* D H W of y in the files */
    float *y;             /* [rows of all files, T]; NULL where targets are volumes */
    int64_t *group;       /* [rows of all files] 0 .. groups - 1 */
    pthread_mutex_t lock; /* guards what follows */
    hl_open_files open, open_y;
    char *scratch;
    size_t capacity;
} halo_source;

/* ------------------------------------------------------------------------------------------------ reading */

static int64_t file_of(const halo_source *h, int64_t row)
{
    int64_t lo = 0, hi = h->files.count; /* first[lo] <= row < first[hi] */
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (h->first[mid] <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Of x or y: the cut of the sub-volume, which may be all, and is at the same place in both. */
static halo_status read_volume(halo_source *h, hl_open_files *open, int64_t sample, int64_t channels,
                               const hl_cut *cut, halo_dtype to, void *out)
{
    int64_t row = h->row[sample / h->crops.count], file = file_of(h, row);
    hl_cut in_file = hl_crop_cut(&h->crops, sample % h->crops.count, cut);
    hl_volume *v;
    pthread_mutex_lock(&h->lock);
    halo_status st = hl_open_files_get(open, file, &v);
    if (st == HALO_OK)
        st = hl_volume_read(v, row - h->first[file], channels, &in_file, to, out, &h->scratch, &h->capacity);
    pthread_mutex_unlock(&h->lock);
    return st;
}

static halo_status read_cut(hl_source *source, int64_t sample, const hl_cut *cut, void *x)
{
    halo_source *h = (halo_source *)source;
    return read_volume(h, &h->open, sample, source->info.ext[0], cut, source->info.dtype, x);
}

static halo_status read_target(hl_source *source, int64_t sample, const hl_cut *cut, float *y)
{
    halo_source *h = (halo_source *)source;
    size_t targets = (size_t)source->info.targets;
    if (h->volumes) return read_volume(h, &h->open_y, sample, source->info.targets, cut, HALO_F32, y);
    if (targets) memcpy(y, h->y + (size_t)h->row[sample / h->crops.count] * targets, targets * sizeof(*y));
    return HALO_OK;
}

static int64_t group_of(hl_source *source, int64_t sample)
{
    halo_source *h = (halo_source *)source;
    return h->group[h->row[sample / h->crops.count]];
}

static void id_of(hl_source *source, int64_t sample, char *out, size_t size)
{
    halo_source *h = (halo_source *)source;
    int64_t row = h->row[sample / h->crops.count], file = file_of(h, row);
    int n = snprintf(out, size, "%s#%" PRId64, hl_files_name(&h->files, file), row - h->first[file]);
    if (h->crops.count > 1 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "/%" PRId64, sample % h->crops.count);
}

typedef struct columns { /* that stand beside x, as a text */
    hl_h5 *file;
    int64_t rows;
    hl_str names;
} columns;

static halo_status add_column(void *user, const char *name)
{
    columns *c = user;
    hl_h5_data *d;
    if (!hl_h5_is_numeric(c->file, name)) return HALO_OK;
    HL_TRY(hl_h5_data_open(c->file, name, 0, &d));
    if (d->ndim == 1 && d->dim[0] == c->rows) hl_str_addf(&c->names, "%s'%s'", c->names.len ? ", " : "", name + (*name == '/'));
    hl_h5_data_close(d);
    return HALO_OK;
}

static halo_status no_column(hl_h5 *file, int64_t rows, const char *name)
{
    columns c = {.file = file, .rows = rows};
    halo_status st = hl_h5_list(file, add_column, &c);
    if (st == HALO_OK) st = hl_fail(file->ctx, HALO_ERR_USAGE, "'%s' has no numbers of samples called '%s'; %s%s", file->path, name, c.names.len ? "it has " : "there are none", c.names.len ? c.names.s : "");
    hl_str_free(&c.names);
    return st;
}

static halo_status read_column(halo_source *h, int64_t file, const char *name, double *of_row)
{
    const int64_t rows = h->first[file + 1] - h->first[file], start = 0;
    hl_h5 *h5;
    hl_h5_data *d = NULL;
    void *raw = NULL;
    HL_TRY(hl_h5_open(h->base.ctx, h->files.path[file], &h5));
    halo_status st = hl_h5_has(h5, name) ? hl_h5_data_open(h5, name, 0, &d) : no_column(h5, rows, name);
    if (st == HALO_OK && (d->ndim != 1 || d->dim[0] != rows)) st = hl_fail(h->base.ctx, HALO_ERR_SHAPE, "'%s': dataset '%s' is no list of %" PRId64 " numbers, as 'x' has that many samples", h5->path, name, rows);
    if (st == HALO_OK) st = hl_aligned(h->base.ctx, (size_t)d->bytes, name, &raw);
    if (st == HALO_OK) st = hl_h5_read(d, &start, &rows, raw, (size_t)d->bytes);
    for (int64_t i = 0; i < rows && st == HALO_OK; i++) of_row[h->first[file] + i] = hl_number_value(d->type, raw, i);
    free(raw);
    hl_h5_data_close(d);
    hl_h5_close(h5);
    return st;
}

static halo_status column(hl_source *source, const char *name, double *out)
{
    halo_source *h = (halo_source *)source;
    double *of_row;
    HL_TRY(hl_calloc(source->ctx, (size_t)h->first[h->files.count], sizeof(*of_row), "numbers of samples", &of_row));
    halo_status st = HALO_OK;
    for (int64_t f = 0; f < h->files.count && st == HALO_OK; f++) st = read_column(h, f, name, of_row);
    for (int64_t s = 0; s < source->info.samples && st == HALO_OK; s++) out[s] = of_row[h->row[s / h->crops.count]];
    free(of_row);
    return st;
}

static void close_source(hl_source *source)
{
    halo_source *h = (halo_source *)source;
    hl_open_files_close(&h->open);
    hl_open_files_close(&h->open_y);
    pthread_mutex_destroy(&h->lock);
    hl_files_free(&h->files);
    free(h->first);
    free(h->row);
    free(h->y);
    free(h->group);
    free(h->scratch);
    hl_source_free(source);
}

static const hl_source_ops halo_ops = {
    .name = "halo", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .column = column, .close = close_source};

/* ------------------------------------------------------------------------------------------------ targets */

static halo_status read_number_attr(halo_source *h, hl_h5 *file, const char *name, double *into, bool *given)
{
    int64_t n = 0;
    HL_TRY(hl_h5_attr_numbers(file, "/y", name, h->base.info.targets, into, &n));
    *given = n > 0;
    if (n == 0 || n == h->base.info.targets) return HALO_OK;
    return hl_fail(file->ctx, HALO_ERR_FORMAT,
                   "'%s': attribute '%s' of 'y' has %" PRId64 " value%s for %d target%s", file->path, name, n,
                   HL_S(n), h->base.info.targets, HL_S(h->base.info.targets));
}

typedef struct range_attr {
    const char *name;
    size_t at; /* in hl_target */
} range_attr;

static const range_attr ranges[4] = {{"low", offsetof(hl_target, low)},
                                     {"high", offsetof(hl_target, high)},
                                     {"mean", offsetof(hl_target, mean)},
                                     {"std", offsetof(hl_target, std)}};

/* Attribute k of y into all targets; what is there must be finite. */
static halo_status set_range(halo_source *h, hl_h5 *file, int k, double *v, bool *given)
{
    hl_source_info *info = &h->base.info;
    HL_TRY(read_number_attr(h, file, ranges[k].name, v, given));
    for (int t = 0; *given && t < info->targets; t++) {
        if (!isfinite(v[t]))
            return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': attribute '%s' of 'y' is %g for target '%s', must be finite",
                           file->path, ranges[k].name, v[t], info->target[t].name);
        memcpy((char *)&info->target[t] + ranges[k].at, &v[t], sizeof(*v));
    }
    return HALO_OK;
}

/* Physical units are either those of low and high or those of mean and std. */
static halo_status set_ranges(halo_source *h, hl_h5 *file, double *v)
{
    bool given[4] = {false};
    for (int k = 0; k < 4; k++) HL_TRY(set_range(h, file, k, v, &given[k]));
    for (int k = 0; k < 4; k++)
        if (given[k] && !given[k ^ 1])
            return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': 'y' has an attribute '%s' but no '%s': both are needed",
                           file->path, ranges[k].name, ranges[k ^ 1].name);
    if (given[0] && given[2])
        return hl_fail(file->ctx, HALO_ERR_FORMAT,
                       "'%s': 'y' has both the attributes 'low' and 'high' and 'mean' and 'std': only one pair can hold",
                       file->path);
    return HALO_OK;
}

/* What cannot be turned into physical units and back. */
static halo_status check_ranges(const halo_source *h, const hl_h5 *file)
{
    for (int t = 0; t < h->base.info.targets; t++) {
        const hl_target *x = &h->base.info.target[t];
        if (x->low == x->high)
            return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': dataset 'y': the range of target '%s' is %g to %g: empty",
                           file->path, x->name, x->low, x->high);
        if (isfinite(x->std) && !(x->std > 0))
            return hl_fail(file->ctx, HALO_ERR_FORMAT,
                           "'%s': dataset 'y': the standard deviation of target '%s' is %g, must be above 0", file->path,
                           x->name, x->std);
    }
    return HALO_OK;
}

/* Names are keys of logs and tables: each is there once, on one line. */
static halo_status check_unique(const halo_source *h, const hl_h5 *file)
{
    const hl_target *x = h->base.info.target;
    for (int t = 0; t < h->base.info.targets; t++) {
        for (const char *c = x[t].name; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                return hl_fail(file->ctx, HALO_ERR_FORMAT,
                               "'%s': attribute 'names' of 'y': the name of target %d has a control character (%d)",
                               file->path, t, *c);
        for (int u = 0; u < t; u++)
            if (strcmp(x[u].name, x[t].name) == 0)
                return hl_fail(file->ctx, HALO_ERR_FORMAT,
                               "'%s': attribute 'names' of 'y': targets %d and %d are both '%s'", file->path, u, t,
                               x[t].name);
    }
    return HALO_OK;
}

/* n = 0 where there are none; freed by the caller. */
static halo_status read_names(hl_h5 *file, char ***name, int64_t *n)
{
    HL_TRY(hl_h5_strings(file, "/y", "names", name, n));
    if (*n == 0 && hl_h5_has_attr(file, "/y", "names"))
        return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': attribute 'names' of 'y' holds no strings", file->path);
    return HALO_OK;
}

static halo_status set_names(halo_source *h, hl_h5 *file)
{
    hl_source_info *info = &h->base.info;
    char **name = NULL;
    int64_t n = 0;
    HL_TRY(read_names(file, &name, &n));
    halo_status st = HALO_OK;
    if (n != 0 && n != info->targets)
        st = hl_fail(file->ctx, HALO_ERR_FORMAT,
                     "'%s': attribute 'names' of 'y' has %" PRId64 " name%s for %d target%s", file->path, n,
                     HL_S(n), info->targets, HL_S(info->targets));
    for (int t = 0; st == HALO_OK && t < n; t++)
        snprintf(info->target[t].name, sizeof(info->target[t].name), "%s", name[t]);
    free(name);
    return st == HALO_OK ? check_unique(h, file) : st;
}

static halo_status set_targets(halo_source *h, hl_h5 *file)
{
    double *v = NULL;
    if (h->base.info.targets == 0) return HALO_OK;
    HL_TRY(set_names(h, file));
    HL_TRY(hl_calloc(file->ctx, (size_t)h->base.info.targets, sizeof(*v), "target ranges", &v));
    halo_status st = set_ranges(h, file, v);
    free(v);
    return st == HALO_OK ? check_ranges(h, file) : st;
}

/* Files of one set must mean the same by target 0. */
static halo_status check_names(halo_source *h, hl_h5 *file)
{
    char **name = NULL;
    int64_t n = 0;
    halo_status st = HALO_OK;
    HL_TRY(read_names(file, &name, &n));
    for (int t = 0; st == HALO_OK && t < n && t < h->base.info.targets; t++)
        if (strncmp(name[t], h->base.info.target[t].name, sizeof(h->base.info.target[t].name) - 1) != 0)
            st = hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': target %d is '%s', expected '%s' as in '%s'",
                         file->path, t, name[t], h->base.info.target[t].name, hl_base_name(h->files.path[0]));
    free(name);
    return st;
}

enum { RANK_1 = 1 << 1, RANK_2 = 1 << 2, RANK_5 = 1 << 5, RANKS_OF_Y = RANK_1 | RANK_2 | RANK_5 };

/* Opens y or group: absent is *d NULL. Its rows must be those of x, its rank one of `ranks`. */
static halo_status open_rows(hl_h5 *file, const char *name, int64_t rows, unsigned ranks, hl_h5_data **d)
{
    char shape[320], more[80] = "";
    *d = NULL;
    if (!hl_h5_has(file, name)) return HALO_OK;
    HL_TRY(hl_h5_data_open(file, name, 0, d));
    halo_status st = HALO_OK;
    if (ranks & RANK_5) snprintf(more, sizeof(more), ", targets] or [%" PRId64 ", targets, D, H, W", rows);
    if (!(ranks >> (*d)->ndim & 1) || (*d)->dim[0] != rows)
        st = hl_fail(file->ctx, HALO_ERR_SHAPE,
                     "'%s': dataset '%s' is %s, expected [%" PRId64 "%s] as 'x' has that many samples", file->path,
                     name, hl_h5_describe(*d, shape, sizeof(shape)), rows, more);
    if (st == HALO_OK) st = hl_h5_claim(*d, (*d)->bytes);
    if (st == HALO_OK) return HALO_OK;
    hl_h5_data_close(*d);
    *d = NULL;
    return st;
}

/* y must have the shape of the first file's. */
static halo_status check_y(halo_source *h, hl_h5_data *d, int64_t file)
{
    const hl_source_info *info = &h->base.info;
    char shape[320], want[128];
    int64_t targets = d->ndim == 1 ? 1 : d->dim[1];
    bool same = targets == info->targets && h->volumes == (d->ndim == 5);
    for (int k = 0; k < 3 && h->volumes; k++)
        same = same && d->dim[k + 2] == h->y_box[k];
    if (same) return HALO_OK;
    if (h->volumes)
        snprintf(want, sizeof(want), ", %" PRId64 ", %" PRId64 ", %" PRId64, h->y_box[0], h->y_box[1], h->y_box[2]);
    return hl_fail(h->base.ctx, HALO_ERR_SHAPE,
                   "'%s': dataset 'y' is %s, expected [%" PRId64 ", %d%s] as in '%s'", h->files.path[file],
                   hl_h5_describe(d, shape, sizeof(shape)), d->dim[0], info->targets, h->volumes ? want : "",
                   hl_base_name(h->files.path[0]));
}

static halo_status read_all(hl_h5_data *d, void **raw)
{
    int64_t start[HL_H5_RANK] = {0};
    HL_TRY(hl_aligned(d->file->ctx, (size_t)d->bytes, d->name, raw));
    halo_status st = hl_h5_read(d, start, d->dim, *raw, (size_t)d->bytes);
    if (st == HALO_OK) return HALO_OK;
    free(*raw);
    *raw = NULL;
    return st;
}

static halo_status read_y(halo_source *h, hl_h5_data *d, int64_t file)
{
    const int64_t targets = h->base.info.targets;
    void *raw = NULL;
    HL_TRY(check_y(h, d, file));
    if (h->volumes) return HALO_OK;
    HL_TRY(read_all(d, &raw));
    float *y = h->y + h->first[file] * targets;
    halo_status st = HALO_OK;
    for (int64_t i = 0; i < d->elements && st == HALO_OK; i++) {
        y[i] = (float)hl_number_value(d->type, raw, i);
        if (!isfinite(y[i]))
            st = hl_fail(h->base.ctx, HALO_ERR_NONFINITE,
                         "'%s': dataset 'y': sample %" PRId64 ", target '%s' is not finite",
                         h->files.path[file], i / targets, h->base.info.target[i % targets].name);
    }
    free(raw);
    return st;
}

/* ------------------------------------------------------------------------------------------------- groups */

static halo_status read_group(halo_source *h, hl_h5_data *d, int64_t file)
{
    void *raw = NULL;
    if (d->type.kind == 'f')
        return hl_fail(h->base.ctx, HALO_ERR_FORMAT, "'%s': dataset 'group' holds %s, expected integers",
                       h->files.path[file], hl_number_name(d->type));
    HL_TRY(read_all(d, &raw));
    for (int64_t i = 0; i < d->elements; i++)
        h->group[h->first[file] + i] = (int64_t)hl_number_value(d->type, raw, i);
    free(raw);
    return HALO_OK;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t rank_in(const int64_t *sorted, int64_t n, int64_t value)
{
    const int64_t *at = bsearch(&value, sorted, (size_t)n, sizeof(value), by_value);
    return at - sorted;
}

/* Numbers the groups 0, 1, ... in the order of their ids. */
static halo_status number_groups(halo_source *h, int64_t rows, int64_t *groups)
{
    int64_t *sorted = NULL, n = 0;
    HL_TRY(hl_calloc(h->base.ctx, (size_t)rows, sizeof(*sorted), "groups", &sorted));
    memcpy(sorted, h->group, (size_t)rows * sizeof(*sorted));
    qsort(sorted, (size_t)rows, sizeof(*sorted), by_value);
    for (int64_t i = 0; i < rows; i++)
        if (i == 0 || sorted[i] != sorted[n - 1]) sorted[n++] = sorted[i];
    for (int64_t i = 0; i < rows; i++) h->group[i] = rank_in(sorted, n, h->group[i]);
    free(sorted);
    *groups = n;
    return HALO_OK;
}

/* Keeps the rows of the groups that are asked for and numbers those from 0. */
static halo_status choose_rows(halo_source *h, const hl_source_options *o, int64_t rows)
{
    int64_t groups = 0, first = 0, count = 0;
    HL_TRY(number_groups(h, rows, &groups));
    HL_TRY(hl_source_part(h->base.ctx, o, groups, &first, &count));
    HL_TRY(hl_calloc(h->base.ctx, (size_t)rows, sizeof(*h->row), "samples", &h->row));
    for (int64_t i = 0; i < rows; i++) {
        h->group[i] -= first;
        if (h->group[i] >= 0 && h->group[i] < count) h->row[h->rows++] = i;
    }
    h->base.info.groups = count;
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------ opening */

static halo_status check_equal(const hl_volume *v, const int64_t ext[5], hl_number type, const char *path)
{
    char shape[320];
    if (memcmp(v->ext + 1, ext + 1, 4 * sizeof(*ext)) == 0 && v->data->type.kind == type.kind &&
        v->data->type.bytes == type.bytes)
        return HALO_OK;
    return hl_fail(v->data->file->ctx, HALO_ERR_SHAPE,
                   "'%s': dataset 'x' is %s, expected [samples, %" PRId64 ", %" PRId64 ", %" PRId64
                   ", %" PRId64 "] %s as in '%s'",
                   v->data->file->path, hl_h5_describe(v->data, shape, sizeof(shape)), ext[1], ext[2], ext[3],
                   ext[4], hl_number_name(type), hl_base_name(path));
}

/* Target volumes are cut as x is, where there are sub-volumes. */
static halo_status set_target_extents(halo_source *h, const char *path, const int64_t box[3])
{
    const hl_crops *c = &h->crops;
    bool whole = memcmp(c->ext, c->box, sizeof(c->ext)) == 0, alike = memcmp(box, c->box, sizeof(c->box)) == 0;
    if (!whole && !alike)
        return hl_fail(h->base.ctx, HALO_ERR_SHAPE,
                       "'%s': sub-volumes need targets of the extents of 'x', [%" PRId64 ", %" PRId64 ", %" PRId64
                       "], dataset 'y' has [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                       path, c->box[0], c->box[1], c->box[2], box[0], box[1], box[2]);
    memcpy(h->y_box, box, sizeof(h->y_box));
    memcpy(h->base.info.target_ext, alike ? c->ext : box, sizeof(c->ext));
    h->volumes = true;
    return HALO_OK;
}

/* How many targets a sample has: numbers, or volumes. */
static halo_status look_at_targets(halo_source *h, const hl_source_options *o, hl_h5 *file, int64_t rows)
{
    hl_h5_data *y = NULL;
    HL_TRY(open_rows(file, "y", rows, RANKS_OF_Y, &y));
    if (!y && o->outputs)
        return hl_fail(h->base.ctx, HALO_ERR_FORMAT, "'%s': no dataset 'y': the targets are missing",
                       file->path);
    halo_status st = hl_source_targets(&h->base, o, file->path, "y", !y ? 0 : y->ndim > 1 ? y->dim[1] : 1);
    if (st == HALO_OK && y && y->ndim == 5) st = set_target_extents(h, file->path, y->dim + 2);
    hl_h5_data_close(y);
    return st;
}

/* Shape, type, targets and their meaning come from the first file. */
static halo_status open_first(halo_source *h, const hl_source_options *o)
{
    hl_volume *v;
    char shape[384] = "dataset 'x' ";
    double periodic = 0;
    int64_t n = 0;
    HL_TRY(hl_open_files_get(&h->open, 0, &v));
    hl_h5 *file = v->data->file;
    hl_h5_describe(v->data, shape + strlen(shape), sizeof(shape) - strlen(shape));
    HL_TRY(hl_source_fit(&h->base, o, file->path, shape, v->ext[1], v->ext + 2, &h->crops));
    h->base.info.dtype = hl_number_dtype(v->data->type);
    hl_source_warn_waste(&h->base, v, &h->crops);
    HL_TRY(hl_h5_attr_numbers(file, "/x", "periodic", 1, &periodic, &n));
    h->base.info.whole_periodic =
        periodic != 0 && h->crops.count == 1 && memcmp(h->crops.ext, h->crops.box, sizeof(h->crops.ext)) == 0;
    HL_TRY(look_at_targets(h, o, file, v->ext[0]));
    return set_targets(h, file);
}

/* Shapes of all files, and how many rows there are before each. */
static halo_status count_rows(halo_source *h)
{
    hl_volume *v;
    int64_t ext[5];
    HL_TRY(hl_open_files_get(&h->open, 0, &v));
    hl_number type = v->data->type;
    memcpy(ext, v->ext, sizeof(ext));
    HL_TRY(hl_calloc(h->base.ctx, (size_t)h->files.count + 1, sizeof(*h->first), "files", &h->first));
    for (int64_t f = 0; f < h->files.count; f++) {
        HL_TRY(hl_open_files_get(&h->open, f, &v));
        HL_TRY(check_equal(v, ext, type, h->files.path[0]));
        HL_TRY(hl_h5_claim(v->data, v->data->bytes));
        h->first[f + 1] = h->first[f] + v->ext[0];
    }
    if (h->first[h->files.count] > 0) return HALO_OK;
    return hl_fail(h->base.ctx, HALO_ERR_FORMAT, "'%s': dataset 'x' has no samples", h->files.path[0]);
}

static halo_status read_rows_of(halo_source *h, int64_t f, bool *grouped)
{
    hl_volume *v;
    hl_h5_data *y = NULL, *group = NULL;
    HL_TRY(hl_open_files_get(&h->open, f, &v));
    hl_h5 *file = v->data->file;
    HL_TRY(open_rows(file, "y", v->ext[0], RANKS_OF_Y, &y));
    halo_status st = HALO_OK;
    if (y)
        st = read_y(h, y, f);
    else if (h->base.info.targets)
        st = hl_fail(file->ctx, HALO_ERR_FORMAT, "cannot open '%s': no dataset 'y'", file->path);
    hl_h5_data_close(y);
    if (st == HALO_OK && y) st = check_names(h, file);
    if (st == HALO_OK) st = open_rows(file, "group", v->ext[0], RANK_1, &group);
    if (st == HALO_OK && group) st = read_group(h, group, f);
    if (!group) *grouped = false;
    hl_h5_data_close(group);
    return st;
}

static halo_status read_rows(halo_source *h, const hl_source_options *o)
{
    int64_t rows = h->first[h->files.count];
    bool grouped = true;
    if (!h->volumes)
        HL_TRY(hl_calloc(h->base.ctx, (size_t)(rows * h->base.info.targets), sizeof(*h->y), "targets", &h->y));
    HL_TRY(hl_calloc(h->base.ctx, (size_t)rows, sizeof(*h->group), "groups", &h->group));
    for (int64_t f = 0; f < h->files.count; f++) HL_TRY(read_rows_of(h, f, &grouped));
    for (int64_t i = 0; !grouped && i < rows; i++)
        h->group[i] = i; /* every sample for itself, unless every file says otherwise */
    return choose_rows(h, o, rows);
}

static halo_status set_up(halo_source *h, const hl_source_options *o)
{
    hl_source_info *info = &h->base.info;
    HL_TRY(hl_files_find(h->base.ctx, o->path, &h->files));
    HL_TRY(hl_files_set_names(&h->files));
    HL_TRY(open_first(h, o));
    HL_TRY(count_rows(h));
    HL_TRY(read_rows(h, o));
    info->samples = h->rows * h->crops.count;
    int at = snprintf(info->description, sizeof(info->description),
                      "%" PRId64 " sample%s of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                      " %s in '%.120s'",
                      info->samples, HL_S(info->samples), info->ext[0], info->ext[1], info->ext[2], info->ext[3],
                      hl_number_name(hl_dtype_number(info->dtype)), o->path);
    if (h->volumes && at > 0 && (size_t)at < sizeof(info->description))
        at += snprintf(info->description + at, sizeof(info->description) - (size_t)at,
                       ", targets %d x %" PRId64 " x %" PRId64 " x %" PRId64, info->targets, info->target_ext[0],
                       info->target_ext[1], info->target_ext[2]);
    if (info->groups < info->samples && at > 0 && (size_t)at < sizeof(info->description))
        snprintf(info->description + at, sizeof(info->description) - (size_t)at, ", %" PRId64 " group%s",
                 info->groups, HL_S(info->groups));
    return HALO_OK;
}

halo_status hl_halo_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    halo_source *h = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*h), "a source", &h));
    h->base.ops = &halo_ops;
    h->base.ctx = ctx;
    hl_open_files_init(&h->open, &h->files, "x", "ncdhw", &h->base.count);
    hl_open_files_init(&h->open_y, &h->files, "y", "ncdhw", &h->base.count);
    pthread_mutex_init(&h->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = set_up(h, o);
    if (st == HALO_OK)
        *source = &h->base;
    else
        close_source(&h->base);
    return st;
}
