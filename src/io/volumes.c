/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.c -- predicted volumes: `prediction` [sample, C, D, H, W] goes to the file as it comes, box by box; ids and groups are small and wait in memory. As images, a sample waits in
 * memory until it is whole.
 */
#include "io/h5out.h"
#include "io/io.h"
#include "io/files.h"
#include "io/nifti.h"
#include "base/file.h"
#include "base/str.h"

#include <dirent.h>
#include <stdio.h>

struct hl_volumes {
    halo_context *ctx;
    char *directory; /* of images; NULL: an HDF5 file */
    hl_target *target;
    int64_t ext[4];
    char *scan;      /* the image that the sample is */
    char *name;      /* what its image is called, without ending */
    float *whole;    /* [C, D, H, W] */
    bool resamples;  /* to the scan's extents */
    bool arrays;     /* NPY files; scan is the sample's id */
    hl_h5_out *out;
    hid_t rows;
    int64_t samples;
    char **id;       /* of images: the files that were written */
    int64_t *group;
    size_t id_cap, group_cap;
    hl_window_place place; /* of the last sample, where samples are windows of a scan */
    int64_t *offset;     /* [samples, 2], or NULL */
    size_t offset_cap;
};

static const hl_number float32_number = {'f', 4}, int64_number = {'i', 8};

static halo_status put_names(hl_volumes *v, int64_t channels, const hl_target *target)
{
    const char **name = NULL;
    HL_TRY(hl_calloc(v->ctx, (size_t)channels, sizeof(*name), "target names", &name));
    for (int64_t c = 0; c < channels; c++) name[c] = target[c].name;
    halo_status st = hl_h5_put_attr_strings(v->out, "/prediction", "names", channels, name);
    free(name);
    return st;
}

halo_status hl_volumes_create(halo_context *ctx, const char *path, const int64_t ext[4], const hl_target *target, hl_volumes **volumes)
{
    hl_volumes *v;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*v), "predicted volumes", &v));
    v->ctx = ctx;
    v->rows = -1;
    memcpy(v->ext, ext, sizeof(v->ext));
    HL_GOTO(st, hl_h5_create(ctx, path, &v->out), undo);
    HL_GOTO(st, hl_h5_rows(v->out, "/prediction", float32_number, 4, ext, 0, &v->rows), undo);
    HL_GOTO(st, put_names(v, ext[0], target), undo);
    *volumes = v;
    return HALO_OK;
undo:
    (void)hl_volumes_close(v, false);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------- images */

halo_status hl_volumes_create_images(halo_context *ctx, const char *directory, const int64_t ext[4], const hl_target *target, hl_volumes **volumes)
{
    hl_volumes *v;
    halo_status st;
    size_t n = (size_t)(ext[0] * ext[1] * ext[2] * ext[3]);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*v), "predicted volumes", &v));
    v->ctx = ctx;
    v->rows = -1;
    memcpy(v->ext, ext, sizeof(v->ext));
    HL_GOTO(st, hl_make_dirs(ctx, directory), undo);
    HL_GOTO(st, hl_strdup(ctx, directory, &v->directory), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)ext[0], sizeof(*target), "targets", &v->target), undo);
    memcpy(v->target, target, (size_t)ext[0] * sizeof(*target));
    HL_GOTO(st, hl_calloc(ctx, n, sizeof(float), "a predicted volume", &v->whole), undo);
    *volumes = v;
    return HALO_OK;
undo:
    (void)hl_volumes_close(v, false);
    return st;
}

static bool fits_bytes(const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(v[i] >= 0 && v[i] <= 255 && v[i] == floorf(v[i]))) return false;
    return true;
}

/* Whole numbers from 0 to 255 fit a byte each; that is written over the floats, which nobody needs again. */
static hl_number narrow(float *v, int64_t n)
{
    bool bytes = fits_bytes(v, n);
    for (int64_t i = 0; i < n && bytes; i++) ((uint8_t *)(void *)v)[i] = (uint8_t)v[i];
    return bytes ? (hl_number){'u', 1} : (hl_number){'f', 4};
}

/* One channel at the extents `to` of its scan, whose border is its own: at (i + 1/2) n/n' - 1/2, n of the prediction and n' of the scan. */
static float value_at(const hl_volumes *v, const float *of, const int64_t to[3], const int64_t i[3], bool nearest)
{
    double at[3], sum = 0;
    for (int k = 0; k < 3; k++) at[k] = fmin(fmax(((double)i[k] + 0.5) * (double)v->ext[k + 1] / (double)to[k] - 0.5, 0), (double)(v->ext[k + 1] - 1));
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int64_t cell = 0;
        for (int k = 0; k < 3; k++) {
            int64_t lo = (int64_t)at[k];
            double high = at[k] - (double)lo;
            if (nearest) high = high > 0.5;
            weight *= corner >> k & 1 ? high : 1 - high;
            cell = cell * v->ext[k + 1] + hl_min64(lo + (corner >> k & 1), v->ext[k + 1] - 1);
        }
        if (weight != 0) sum += weight * (double)of[cell];
    }
    return (float)sum;
}

static halo_status resample(hl_volumes *v, const int64_t to[3])
{
    float *out;
    int64_t n = v->ext[1] * v->ext[2] * v->ext[3], m = to[0] * to[1] * to[2];
    HL_TRY(hl_calloc(v->ctx, (size_t)(v->ext[0] * m), sizeof(*out), "a predicted volume", &out));
    for (int64_t c = 0; c < v->ext[0]; c++) {
        const float *of = v->whole + c * n;
        bool nearest = fits_bytes(of, n);
        for (int64_t i = 0; i < m; i++) out[c * m + i] = value_at(v, of, to, (const int64_t[3]){i / (to[1] * to[2]), i / to[2] % to[1], i % to[2]}, nearest);
    }
    free(v->whole);
    v->whole = out;
    memcpy(v->ext + 1, to, 3 * sizeof(*to));
    return HALO_OK;
}

void hl_volumes_resample(hl_volumes *v) { v->resamples = true; }

static halo_status keep_path(hl_volumes *v, const char *path)
{
    size_t n = (size_t)v->samples;
    HL_TRY(hl_grow(v->ctx, &v->id, &v->id_cap, n + 1, sizeof(*v->id), "file names"));
    HL_TRY(hl_strdup(v->ctx, hl_base_name(path), &v->id[n]));
    v->samples++;
    return HALO_OK;
}

static halo_status write_channel(hl_volumes *v, const hl_nifti *scan, int64_t c)
{
    hl_str path = {0};
    int64_t n = v->ext[1] * v->ext[2] * v->ext[3];
    hl_str_addf(&path, "%s/%s", v->directory, v->name);
    if (v->ext[0] > 1) hl_str_addf(&path, "_%s", v->target[c].name);
    hl_str_add(&path, ".nii.gz");
    halo_status st = path.failed ? hl_fail(v->ctx, HALO_ERR_NOMEM, "out of memory: a file name") : HALO_OK;
    hl_number type = narrow(v->whole + c * n, n);
    if (st == HALO_OK) st = hl_nifti_write(v->ctx, path.s, scan, type, v->whole + c * n);
    if (st == HALO_OK) st = keep_path(v, path.s);
    hl_str_free(&path);
    return st;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool is_prediction(const char *name)
{
    size_t n = strlen(name);
    return *name != '.' && ((n > 7 && strcmp(name + n - 7, ".nii.gz") == 0) || (n > 4 && strcmp(name + n - 4, ".npy") == 0));
}

/* Whoever reads the directory would take what was there before for these predictions: that is not removed, as nobody knows whose it is, but told. */
static void tell_of_others(hl_volumes *v)
{
    DIR *dir = opendir(v->directory);
    char one[256] = "";
    int64_t count = 0;
    if (!dir) return;
    if (v->samples) qsort(v->id, (size_t)v->samples, sizeof(*v->id), by_name);
    for (struct dirent *e; (e = readdir(dir));) {
        const char *name = e->d_name;
        if (!is_prediction(name) || (v->samples && bsearch(&name, v->id, (size_t)v->samples, sizeof(*v->id), by_name))) continue;
        if (count++ == 0 || strcmp(name, one) < 0) snprintf(one, sizeof(one), "%s", name);
    }
    closedir(dir);
    if (count) HL_WARN(v->ctx, "'%s' holds %" PRId64 " older file%s, too, which %s not written now: '%s'%s", v->directory, count, HL_S(count), count == 1 ? "was" : "were", one, count > 1 ? " ..." : "");
}

/* ID.npy, in the byte order of this machine. */
static halo_status write_array(hl_volumes *v)
{
    const int64_t *e = v->ext;
    const int64_t n = e[0] * e[1] * e[2] * e[3];
    const bool little = *(const unsigned char *)&(const uint16_t){1} == 1;
    hl_number type = narrow(v->whole, n);
    hl_str path = {0}, header = {0}, file = {0};
    size_t length = strlen(v->scan);
    if (length > 4 && strcmp(v->scan + length - 4, ".npy") == 0) v->scan[length - 4] = '\0';
    for (char *c = v->scan; *c; c++)
        if (*c == '/') *c = '_';
    hl_str_addf(&path, "%s/%s.npy", v->directory, v->scan);
    hl_str_addf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "), }", type.bytes == 1 ? "|u1" : little ? "<f4" : ">f4", e[0], e[1], e[2], e[3]);
    while ((10 + header.len + 1) % 64) hl_str_add(&header, " ");
    hl_str_add(&header, "\n");
    hl_str_addn(&file, (const char[]){(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header.len & 255), (char)(header.len >> 8)}, 10);
    hl_str_addn(&file, header.s ? header.s : "", header.len);
    hl_str_addn(&file, (const char *)v->whole, (size_t)(n * type.bytes));
    halo_status st = path.failed || header.failed || file.failed ? hl_fail(v->ctx, HALO_ERR_NOMEM, "out of memory: a predicted volume") : hl_file_write(v->ctx, path.s, file.s, file.len);
    if (st == HALO_OK) st = keep_path(v, path.s);
    hl_str_free(&path);
    hl_str_free(&header);
    hl_str_free(&file);
    free(v->scan);
    v->scan = NULL;
    return st;
}

/* The sample that is whole now. */
static halo_status write_images(hl_volumes *v)
{
    hl_nifti scan;
    int64_t ext[3];
    if (!v->scan) return HALO_OK;
    if (v->arrays) return write_array(v);
    HL_TRY(hl_nifti_open(v->ctx, v->scan, &scan));
    hl_nifti_extents(&scan, ext);
    halo_status st = v->resamples && memcmp(ext, v->ext + 1, sizeof(ext)) != 0 ? resample(v, ext) : HALO_OK;
    if (st == HALO_OK)
        st = memcmp(ext, v->ext + 1, sizeof(ext)) == 0 ? HALO_OK
                                                                : hl_fail(v->ctx, HALO_ERR_SHAPE, "the prediction of '%s' has other extents than the image: [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                                                                          v->scan, v->ext[1], v->ext[2], v->ext[3]);
    for (int64_t c = 0; c < v->ext[0] && st == HALO_OK; c++) st = write_channel(v, &scan, c);
    hl_nifti_free(&scan);
    free(v->scan);
    v->scan = NULL;
    return st;
}

static void put_box(hl_volumes *v, const int64_t lo[4], const int64_t n[4], const float *prediction)
{
    const int64_t *e = v->ext;
    for (int64_t c = 0; c < n[0]; c++)
        for (int64_t d = 0; d < n[1]; d++)
            for (int64_t h = 0; h < n[2]; h++, prediction += n[3])
                memcpy(v->whole + (((lo[0] + c) * e[1] + lo[1] + d) * e[2] + lo[2] + h) * e[3] + lo[3], prediction, (size_t)n[3] * sizeof(*prediction));
}

halo_status hl_volumes_create_arrays(halo_context *ctx, const char *directory, const int64_t ext[4], const hl_target *target, hl_volumes **volumes)
{
    HL_TRY(hl_volumes_create_images(ctx, directory, ext, target, volumes));
    (*volumes)->arrays = true;
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------------------- samples */

/* Of the image that comes next. */
static halo_status set_extents(hl_volumes *v, const int64_t ext[3])
{
    memcpy(v->ext + 1, ext, 3 * sizeof(*ext));
    free(v->whole);
    v->whole = NULL;
    return hl_calloc(v->ctx, (size_t)(v->ext[0] * ext[0] * ext[1] * ext[2]), sizeof(float), "a predicted volume", &v->whole);
}

static halo_status set_name(hl_volumes *v, const char *id)
{
    size_t room = strlen(id) + 1;
    free(v->name);
    v->name = NULL;
    HL_TRY(hl_calloc(v->ctx, room, 1, "a file name", &v->name));
    hl_nifti_case(id, v->name, room);
    return HALO_OK;
}

static halo_status check_extents(const hl_volumes *v, const char *id, const int64_t ext[3])
{
    if (memcmp(ext, v->ext + 1, 3 * sizeof(*ext)) == 0) return HALO_OK;
    return hl_fail(v->ctx, HALO_ERR_SHAPE,
                   "'%s' has [%" PRId64 ", %" PRId64 ", %" PRId64 "] cells, the volume before it [%" PRId64 ", %" PRId64 ", %" PRId64
                   "]: one HDF5 file cannot hold the predictions of both; those of NIfTI images go into images",
                   id, ext[0], ext[1], ext[2], v->ext[1], v->ext[2], v->ext[3]);
}

halo_status hl_volumes_add(hl_volumes *v, const char *id, const char *image, int64_t group, const int64_t ext[3])
{
    size_t n = (size_t)v->samples;
    if (v->directory) {
        HL_TRY(write_images(v));
        if (ext) HL_TRY(set_extents(v, ext));
        HL_TRY(set_name(v, id));
        return hl_strdup(v->ctx, image ? image : id, &v->scan);
    }
    if (ext) HL_TRY(check_extents(v, id, ext));
    HL_TRY(hl_grow(v->ctx, &v->id, &v->id_cap, n + 1, sizeof(*v->id), "sample ids"));
    HL_TRY(hl_grow(v->ctx, &v->group, &v->group_cap, n + 1, sizeof(*v->group), "groups"));
    HL_TRY(hl_h5_begin_row(v->out, v->rows));
    HL_TRY(hl_strdup(v->ctx, id, &v->id[n]));
    v->group[n] = group;
    v->samples++;
    return HALO_OK;
}

halo_status hl_volumes_put(hl_volumes *v, const int64_t lo[4], const int64_t ext[4], const float *prediction)
{
    if (v->directory) {
        put_box(v, lo, ext, prediction);
        return HALO_OK;
    }
    return hl_h5_put_box(v->out, v->rows, float32_number, lo, ext, prediction);
}

halo_status hl_volumes_place(hl_volumes *v, const hl_window_place *place)
{
    HL_TRY(hl_grow(v->ctx, &v->offset, &v->offset_cap, 2 * (size_t)v->samples, sizeof(*v->offset), "scan offsets"));
    memcpy(v->offset + 2 * (v->samples - 1), place->offset, sizeof(place->offset));
    v->place = *place;
    return HALO_OK;
}

static halo_status put_sizes(hl_volumes *v, const char *name, const double size[2], const char *units)
{
    char with[64];
    if (size[0] == 0 || size[1] == 0) return HALO_OK;
    HL_TRY(hl_h5_put_attr(v->out, "/prediction", name, (hl_number){'f', 8}, 2, size));
    snprintf(with, sizeof(with), "%s_units", name);
    return *units ? hl_h5_put_attr_strings(v->out, "/prediction", with, -1, &units) : HALO_OK;
}

static halo_status put_places(hl_volumes *v)
{
    const int64_t dim[2] = {v->samples, 2};
    if (!v->offset) return HALO_OK;
    HL_TRY(hl_h5_put(v->out, "/scan_offset", int64_number, 2, dim, v->offset));
    HL_TRY(put_sizes(v, "scan_pixel_size", v->place.step, v->place.step_units));
    return put_sizes(v, "detector_pixel_size", v->place.pixel, v->place.pixel_units);
}

static halo_status finish(hl_volumes *v)
{
    if (v->directory) {
        HL_TRY(write_images(v));
        tell_of_others(v);
        return HALO_OK;
    }
    HL_TRY(put_places(v));
    HL_TRY(hl_h5_put_strings(v->out, "/id", v->samples, (const char *const *)v->id));
    return hl_h5_put(v->out, "/group", int64_number, 1, &v->samples, v->group);
}

halo_status hl_volumes_close(hl_volumes *v, bool commit)
{
    if (!v) return HALO_OK;
    halo_status st = commit ? finish(v) : HALO_OK, finished = HALO_OK;
    if (v->rows >= 0) {
        halo_status closed = hl_h5_rows_close(v->out, v->rows);
        if (st == HALO_OK && commit) st = closed;
    }
    if (v->out) finished = hl_h5_finish(v->out, commit && st == HALO_OK);
    for (int64_t i = 0; i < v->samples; i++) free(v->id[i]);
    free(v->id);
    free(v->group);
    free(v->offset);
    free(v->directory);
    free(v->target);
    free(v->scan);
    free(v->name);
    free(v->whole);
    free(v);
    return st != HALO_OK ? st : finished;
}
