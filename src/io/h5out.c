/* SPDX-License-Identifier: Apache-2.0 */
/* h5out.c -- see h5out.h. Every put looks at the driver's error afterwards, so a full disk is met at the
 * dataset that filled it. */
#include "io/h5driver.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CHUNK_MOST (INT64_C(1) << 30) /* HDF5 refuses chunks of 4 GiB */
#define PART_MOST (INT64_C(1) << 20)  /* its cache of chunks, as it is by default */

halo_status hl_h5_out_failed(hl_h5_out *out, const char *cause)
{
    out->refused = true;
    return hl_fail(out->ctx, HALO_ERR_IO, "cannot write '%s': %s", out->path,
                   out->error ? strerror(out->error) : cause);
}

static halo_status put_status(hl_h5_out *out, bool good, const hl_h5_guard *g)
{
    return good && out->error == 0 ? HALO_OK : hl_h5_out_failed(out, g->cause);
}

/* Old enough for every tool of HDF5 1.8, new enough that all metadata carries checksums of its own. */
static void set_format(hid_t fapl)
{
#if H5_VERSION_GE(1, 10, 2)
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
#else
    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
#endif
}

/* Objects carry no times of their own: the same data are the same bytes. Negative on failure. */
static hid_t without_times(hid_t class)
{
    hid_t id = H5Pcreate(class);
    if (id >= 0) H5Pset_obj_track_times(id, 0);
    return id;
}

static bool create_id(hl_h5_out *out, hl_h5_guard *g)
{
    hl_h5_enter(g);
    hid_t fapl = hl_h5_driver_access(out);
    if (fapl >= 0) {
        hid_t root = without_times(H5P_FILE_CREATE);
        set_format(fapl);
        H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
        out->id = H5Fcreate(out->temporary, H5F_ACC_TRUNC, root >= 0 ? root : H5P_DEFAULT, fapl);
        if (root >= 0) H5Pclose(root);
    }
    if (out->id < 0) hl_h5_cause(g);
    if (fapl >= 0) H5Pclose(fapl);
    hl_h5_leave(g);
    return out->id >= 0;
}

halo_status hl_h5_create(halo_context *ctx, const char *path, hl_h5_out **result)
{
    hl_h5_out *out = NULL;
    if (hl_is_special(path)) return hl_fail(ctx, HALO_ERR_USAGE, "cannot create '%s': an HDF5 file must be a regular one", path);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*out), "an HDF5 file", &out));
    out->ctx = ctx;
    out->id = out->driver = -1;
    out->fd = -1;
    halo_status st = HALO_OK;
    hl_h5_guard g;
    HL_GOTO(st, hl_strdup(ctx, path, &out->path), undo);
    HL_GOTO(st, hl_temporary_name(ctx, path, &out->temporary), undo);
    out->fd = open(out->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out->fd < 0) {
        st = hl_fail(ctx, HALO_ERR_IO, "cannot create '%s': %s", path, strerror(errno));
        goto undo;
    }
    HL_GOTO(st, put_status(out, create_id(out, &g), &g), undo);
    *result = out;
    return HALO_OK;
undo:
    hl_h5_finish(out, false);
    return st;
}

/* Closes HDF5's side. Its own failure to write can no longer harm it: the driver never fails. */
static bool close_id(hl_h5_out *out, hl_h5_guard *g)
{
    herr_t rc = 0;
    hl_h5_enter(g);
    if (out->id >= 0 && (rc = H5Fclose(out->id)) < 0) hl_h5_cause(g);
    if (out->driver >= 0) H5FDunregister(out->driver);
    hl_h5_leave(g);
    return rc >= 0;
}

halo_status hl_h5_finish(hl_h5_out *out, bool commit)
{
    hl_h5_guard g;
    halo_status st = HALO_OK;
    bool good = close_id(out, &g);
    if (out->fd >= 0 && close(out->fd) != 0 && out->error == 0) out->error = errno;
    if (commit && (!good || out->error || out->refused)) {
        st = hl_h5_out_failed(out, good ? "an earlier write failed" : g.cause);
        commit = false;
    }
    if (commit)
        st = hl_file_commit(out->ctx, out->temporary, out->path);
    else if (out->fd >= 0)
        unlink(out->temporary);
    free(out->temporary);
    free(out->path);
    free(out);
    return st;
}

/* -------------------------------------------------------------------------------------------------- types */

hid_t hl_h5_file_type(hl_number t)
{
    switch (t.kind * 16 + t.bytes) {
    case 'i' * 16 + 1:
        return H5T_STD_I8LE;
    case 'i' * 16 + 2:
        return H5T_STD_I16LE;
    case 'i' * 16 + 4:
        return H5T_STD_I32LE;
    case 'i' * 16 + 8:
        return H5T_STD_I64LE;
    case 'u' * 16 + 1:
        return H5T_STD_U8LE;
    case 'u' * 16 + 2:
        return H5T_STD_U16LE;
    case 'u' * 16 + 4:
        return H5T_STD_U32LE;
    case 'u' * 16 + 8:
        return H5T_STD_U64LE;
    case 'f' * 16 + 4:
        return H5T_IEEE_F32LE;
    case 'f' * 16 + 8:
        return H5T_IEEE_F64LE;
    default:
        return -1;
    }
}

hid_t hl_h5_memory_type(hl_number t)
{
    switch (t.kind * 16 + t.bytes) {
    case 'i' * 16 + 1:
        return H5T_NATIVE_INT8;
    case 'i' * 16 + 2:
        return H5T_NATIVE_INT16;
    case 'i' * 16 + 4:
        return H5T_NATIVE_INT32;
    case 'i' * 16 + 8:
        return H5T_NATIVE_INT64;
    case 'u' * 16 + 1:
        return H5T_NATIVE_UINT8;
    case 'u' * 16 + 2:
        return H5T_NATIVE_UINT16;
    case 'u' * 16 + 4:
        return H5T_NATIVE_UINT32;
    case 'u' * 16 + 8:
        return H5T_NATIVE_UINT64;
    case 'f' * 16 + 4:
        return H5T_NATIVE_FLOAT;
    case 'f' * 16 + 8:
        return H5T_NATIVE_DOUBLE;
    default:
        return -1;
    }
}

static hid_t string_type(size_t width)
{
    hid_t t = H5Tcopy(H5T_C_S1);
    if (t < 0) return t;
    H5Tset_size(t, width ? width : 1);
    H5Tset_cset(t, H5T_CSET_UTF8);
    return t;
}

static hid_t space_of(int ndim, const int64_t *dim, const hsize_t *most)
{
    hsize_t n[HL_H5_RANK];
    for (int i = 0; i < ndim; i++) n[i] = (hsize_t)dim[i];
    return ndim ? H5Screate_simple(ndim, n, most) : H5Screate(H5S_SCALAR);
}

/* ----------------------------------------------------------------------------------------------- datasets */

static hid_t create_dataset(hl_h5_out *out, const char *name, hid_t type, hid_t space, hid_t dcpl)
{
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    if (links < 0) return links;
    H5Pset_create_intermediate_group(links, 1);
    hid_t id = H5Dcreate2(out->id, name, type, space, links, dcpl, H5P_DEFAULT);
    H5Pclose(links);
    return id;
}

static bool put_dataset(hl_h5_out *out, const char *name, hid_t file_type, hid_t memory_type, hid_t space,
                        const void *data, hl_h5_guard *g)
{
    bool good = false;
    hid_t dcpl = without_times(H5P_DATASET_CREATE);
    if (dcpl >= 0) H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
    hid_t id = create_dataset(out, name, file_type, space, dcpl);
    if (id >= 0) {
        good = H5Sget_simple_extent_npoints(space) == 0 ||
               H5Dwrite(id, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
        if (!good) hl_h5_cause(g);
        H5Dclose(id);
    } else {
        hl_h5_cause(g);
    }
    if (dcpl >= 0) H5Pclose(dcpl);
    return good;
}

halo_status hl_h5_put(hl_h5_out *out, const char *name, hl_number type, int ndim, const int64_t *dim,
                      const void *data)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = space_of(ndim, dim, NULL);
    bool good = put_dataset(out, name, hl_h5_file_type(type), hl_h5_memory_type(type), space, data, &g);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}

halo_status hl_h5_put_string(hl_h5_out *out, const char *name, const char *text)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = H5Screate(H5S_SCALAR), type = string_type(strlen(text) + 1);
    bool good = put_dataset(out, name, type, type, space, text, &g);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}

/* --------------------------------------------------------------------------------------------- attributes */

static bool exists(hid_t file, const char *name) /* every parent in turn, as HDF5 wants it */
{
    char part[1024];
    for (size_t i = 1, n = strlen(name); i <= n && n < sizeof(part); i++) {
        if (name[i] != '/' && name[i] != '\0') continue;
        memcpy(part, name, i);
        part[i] = '\0';
        if (strcmp(part, "/") != 0 && H5Lexists(file, part, H5P_DEFAULT) <= 0) return false;
    }
    return true;
}

static hid_t open_or_make(hid_t file, const char *name)
{
    if (exists(file, name)) return H5Oopen(file, name, H5P_DEFAULT);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    if (links < 0) return links;
    H5Pset_create_intermediate_group(links, 1);
    hid_t group = without_times(H5P_GROUP_CREATE), id = H5Gcreate2(file, name, links, group >= 0 ? group : H5P_DEFAULT, H5P_DEFAULT);
    if (group >= 0) H5Pclose(group);
    H5Pclose(links);
    return id;
}

static bool put_attribute(hl_h5_out *out, const char *object, const char *name, hid_t file_type,
                          hid_t memory_type, hid_t space, const void *data, hl_h5_guard *g)
{
    bool good = false;
    hid_t id = open_or_make(out->id, object), attr = -1;
    if (id >= 0) {
        if (H5Aexists(id, name) > 0) H5Adelete(id, name);
        attr = H5Acreate2(id, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    }
    if (attr >= 0) {
        good = H5Awrite(attr, memory_type, data) >= 0;
        if (!good) hl_h5_cause(g);
        H5Aclose(attr);
    } else {
        hl_h5_cause(g);
    }
    if (id >= 0) H5Oclose(id);
    return good;
}

halo_status hl_h5_put_attr(hl_h5_out *out, const char *object, const char *name, hl_number type, int64_t n,
                           const void *data)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = space_of(n > 0, &n, NULL);
    bool good =
        put_attribute(out, object, name, hl_h5_file_type(type), hl_h5_memory_type(type), space, data, &g);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}

/* Strings of equal width, the longest one's, side by side: what HDF5 calls fixed-length strings. Freed by the caller. */
static halo_status pack_strings(hl_h5_out *out, int64_t n, const char *const *text, size_t *width, char **block)
{
    *width = 1;
    for (int64_t i = 0; i < n; i++)
        if (strlen(text[i]) + 1 > *width) *width = strlen(text[i]) + 1;
    HL_TRY(hl_calloc(out->ctx, (size_t)n, *width, "strings", block));
    for (int64_t i = 0; i < n; i++) memcpy(*block + (size_t)i * *width, text[i], strlen(text[i]));
    return HALO_OK;
}

halo_status hl_h5_put_attr_strings(hl_h5_out *out, const char *object, const char *name, int64_t n,
                                   const char *const *text)
{
    size_t width;
    int64_t count = n < 0 ? 1 : n;
    char *block = NULL;
    HL_TRY(pack_strings(out, count, text, &width, &block));
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = space_of(n >= 0, &count, NULL), type = string_type(width);
    bool good = put_attribute(out, object, name, type, type, space, block, &g);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    free(block);
    return put_status(out, good, &g);
}

halo_status hl_h5_put_strings(hl_h5_out *out, const char *name, int64_t n, const char *const *text)
{
    size_t width;
    char *block = NULL;
    HL_TRY(pack_strings(out, n, text, &width, &block));
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = space_of(1, &n, NULL), type = string_type(width);
    bool good = put_dataset(out, name, type, type, space, block, &g);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    free(block);
    return put_status(out, good, &g);
}

/* --------------------------------------------------------------------------------------------------- rows */

static double chunk_size(int ndim, const hsize_t *chunk, int bytes)
{
    double size = bytes;
    for (int i = 0; i < ndim; i++) size *= (double)chunk[i];
    return size;
}

/* One row per chunk; a row over 1 GiB is cut along its first long dimensions. */
static void row_chunk(int ndim, hsize_t *chunk, int bytes)
{
    for (int i = 0; i < ndim; i++)
        while (chunk_size(ndim, chunk, bytes) > (double)CHUNK_MOST && chunk[i] > 1) chunk[i] = (chunk[i] + 1) / 2;
}

/* What is compressed can only be read by whole chunks: a volume [row, C, D, H, W] over 1 MiB is cut into those of one channel, nearly cubes, so that
 * readers of a part of it inflate little more. */
static void part_chunk(int ndim, hsize_t *chunk, int bytes)
{
    if (ndim != 5 || chunk_size(ndim, chunk, bytes) <= (double)PART_MOST) return;
    chunk[1] = 1;
    while (chunk_size(ndim, chunk, bytes) > (double)PART_MOST) {
        int longest = 2;
        for (int i = 3; i < ndim; i++)
            if (chunk[i] > chunk[longest]) longest = i;
        chunk[longest] = (chunk[longest] + 1) / 2;
    }
}

halo_status hl_h5_rows(hl_h5_out *out, const char *name, hl_number type, int row_ndim, const int64_t *row_dim,
                       int level, hid_t *rows)
{
    HL_BUG_UNLESS(row_ndim >= 0 && row_ndim + 1 < HL_H5_RANK);
    int64_t dim[HL_H5_RANK] = {0};
    hsize_t most[HL_H5_RANK] = {H5S_UNLIMITED}, chunk[HL_H5_RANK] = {1};
    for (int i = 0; i < row_ndim; i++) {
        dim[i + 1] = row_dim[i];
        most[i + 1] = chunk[i + 1] = (hsize_t)row_dim[i];
    }
    if (level > 0) part_chunk(row_ndim + 1, chunk, type.bytes);
    row_chunk(row_ndim + 1, chunk, type.bytes);
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t space = space_of(row_ndim + 1, dim, most), dcpl = without_times(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, row_ndim + 1, chunk);
    H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
    if (level > 0) {
        if (type.bytes > 1) H5Pset_shuffle(dcpl);
        H5Pset_deflate(dcpl, (unsigned)level);
    }
    *rows = create_dataset(out, name, hl_h5_file_type(type), space, dcpl);
    if (*rows < 0) hl_h5_cause(&g);
    H5Pclose(dcpl);
    H5Sclose(space);
    hl_h5_leave(&g);
    return put_status(out, *rows >= 0, &g);
}

/* Extents of rows; the number of dimensions, 0 on failure. */
static int extents_of(hid_t rows, hsize_t dim[HL_H5_RANK])
{
    hid_t space = H5Dget_space(rows);
    int ndim = space < 0 ? 0 : H5Sget_simple_extent_dims(space, dim, NULL);
    if (space >= 0) H5Sclose(space);
    return ndim < 1 ? 0 : ndim;
}

static bool begin_row(hid_t rows)
{
    hsize_t dim[HL_H5_RANK];
    if (extents_of(rows, dim) == 0) return false;
    dim[0]++;
    return H5Dset_extent(rows, dim) >= 0;
}

/* The box lo, ext of the last row; NULL: all of it. */
static bool put_box(hid_t rows, hid_t memory_type, const int64_t *lo, const int64_t *ext, const void *data)
{
    hsize_t dim[HL_H5_RANK], start[HL_H5_RANK] = {0}, count[HL_H5_RANK];
    int ndim = extents_of(rows, dim);
    if (ndim == 0 || dim[0] == 0) return false;
    memcpy(count, dim, sizeof(count));
    for (int i = 1; i < ndim && lo; i++) {
        start[i] = (hsize_t)lo[i - 1];
        count[i] = (hsize_t)ext[i - 1];
    }
    start[0] = dim[0] - 1;
    count[0] = 1;
    hid_t in_file = H5Dget_space(rows), in_memory = H5Screate_simple(ndim, count, NULL);
    bool good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dwrite(rows, memory_type, in_memory, in_file, H5P_DEFAULT, data) >= 0;
    H5Sclose(in_memory);
    H5Sclose(in_file);
    return good;
}

halo_status hl_h5_begin_row(hl_h5_out *out, hid_t rows)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    bool good = begin_row(rows);
    if (!good) hl_h5_cause(&g);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}

halo_status hl_h5_put_box(hl_h5_out *out, hid_t rows, hl_number type, const int64_t *lo, const int64_t *count, const void *data)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    bool good = put_box(rows, hl_h5_memory_type(type), lo, count, data);
    if (!good) hl_h5_cause(&g);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}

halo_status hl_h5_add_row(hl_h5_out *out, hid_t rows, hl_number type, const void *data)
{
    HL_TRY(hl_h5_begin_row(out, rows));
    return hl_h5_put_box(out, rows, type, NULL, NULL, data);
}

halo_status hl_h5_rows_close(hl_h5_out *out, hid_t rows)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    bool good = H5Dclose(rows) >= 0;
    if (!good) hl_h5_cause(&g);
    hl_h5_leave(&g);
    return put_status(out, good, &g);
}
