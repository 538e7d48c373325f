/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5data.c -- reading a numeric dataset: what it holds, whether this build can decode it, whether the file
 * backs what it claims, and boxes of it.
 *
 * A box goes to HDF5 in pieces below 2 GiB along its first dimensions that are larger than 1 (one call of 2
 * GiB or more fails in some builds of the library); pieces end at chunk borders where they can, so that no
 * chunk is inflated twice.
 */
#include "io/h5.h"
#include "base/str.h"

#include <stdio.h>

#define PIECE_MOST  (INT64_C(1) << 30)
#define CLAIM_FREE  (INT64_C(64) << 20) /* bytes that may be claimed without proof */
#define CLAIM_RATIO 2048                /* deflate reaches 1032 on constant data */

/* ------------------------------------------------------------------------------------------------ filters */

const char *hl_h5_filter_name(int id)
{
    static const struct {
        int id;
        const char *name;
    } known[] = {{H5Z_FILTER_DEFLATE, "deflate"},
                 {H5Z_FILTER_SHUFFLE, "shuffle"},
                 {H5Z_FILTER_FLETCHER32, "fletcher32"},
                 {H5Z_FILTER_SZIP, "szip"},
                 {H5Z_FILTER_NBIT, "nbit"},
                 {H5Z_FILTER_SCALEOFFSET, "scale-offset"},
                 {305, "lzo"},
                 {307, "bzip2"},
                 {32000, "lzf"},
                 {32001, "blosc"},
                 {32004, "lz4"},
                 {32008, "bitshuffle"},
                 {32013, "zfp"},
                 {32015, "zstd"},
                 {32017, "sz"},
                 {32018, "fcidecomp"},
                 {32024, "sz3"},
                 {32026, "blosc2"},
                 {32028, "sperr"}};
    for (size_t i = 0; i < HL_COUNT(known); i++)
        if (known[i].id == id) return known[i].name;
    return NULL;
}

static bool can_decode(H5Z_filter_t id)
{
    unsigned flags = 0;
    if (H5Zfilter_avail(id) <= 0) return false;
    return H5Zget_filter_info(id, &flags) < 0 || (flags & H5Z_FILTER_CONFIG_DECODE_ENABLED);
}

/* The first filter of the pipeline that is missing; its name into `name`. 0 when all are there. */
static int missing_filter(hid_t dcpl, char *name, size_t size, bool *filtered)
{
    int n = H5Pget_nfilters(dcpl);
    *filtered = n > 0;
    for (int i = 0; i < n; i++) {
        unsigned flags, config;
        size_t values = 0;
        char in_file[64] = "";
        H5Z_filter_t id =
            H5Pget_filter2(dcpl, (unsigned)i, &flags, &values, NULL, sizeof(in_file), in_file, &config);
        if (id < 0 || can_decode(id)) continue;
        const char *known = hl_h5_filter_name(id);
        in_file[sizeof(in_file) - 1] = '\0';
        snprintf(name, size, "%s", known ? known : in_file[0] ? in_file : "unknown");
        return id;
    }
    return 0;
}

halo_status hl_h5_filters(const hl_h5_data *d, hl_str *out)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    hid_t dcpl = H5Dget_create_plist(d->id);
    for (int i = 0, n = dcpl < 0 ? 0 : H5Pget_nfilters(dcpl); i < n; i++) {
        unsigned flags;
        size_t values = 0;
        H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
        const char *name = hl_h5_filter_name(id);
        hl_str_addf(out, "%s%s", out->len ? " " : "", name ? name : "unknown");
    }
    if (dcpl >= 0) H5Pclose(dcpl);
    hl_h5_leave(&g);
    return dcpl >= 0 ? HALO_OK
                     : hl_fail(d->file->ctx, HALO_ERR_FORMAT, "'%s': dataset '%s' cannot be described",
                               d->file->path, d->name);
}

/* -------------------------------------------------------------------------------------------------- types */

static const char *class_name(H5T_class_t class)
{
    switch (class) {
    case H5T_STRING:
        return "strings";
    case H5T_COMPOUND:
        return "compounds";
    case H5T_ENUM:
        return "enumerations";
    case H5T_REFERENCE:
        return "references";
    case H5T_VLEN:
        return "variable-length lists";
    case H5T_ARRAY:
        return "arrays";
    case H5T_OPAQUE:
        return "opaque bytes";
    case H5T_BITFIELD:
        return "bit fields";
    case H5T_TIME:
        return "times";
    default:
        return "no known type";
    }
}

static bool is_member(hid_t type, unsigned i, const char *want)
{
    signed char value = -1;
    char *name = H5Tget_member_name(type, i);
    bool same = name && strcmp(name, want) == 0 && H5Tget_member_value(type, i, &value) >= 0 && value == (signed char)i;
    if (name) H5free_memory(name);
    return same;
}

/* What h5py makes of NumPy's bool: an enumeration of bytes, FALSE 0 and TRUE 1. */
bool hl_h5_is_truth(hid_t type)
{
    return H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 && is_member(type, 0, "FALSE") && is_member(type, 1, "TRUE");
}

/* Every bit of the element is used, and the floats are IEEE's. */
static bool is_plain(hid_t type, hl_number n)
{
    if (H5Tget_precision(type) != 8 * (size_t)n.bytes || H5Tget_offset(type) != 0) return false;
    H5T_order_t order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE && n.bytes > 1) return false;
    if (n.kind != 'f') return n.bytes == 1 || n.bytes == 2 || n.bytes == 4 || n.bytes == 8;
    size_t sign, epos, esize, mpos, msize;
    if (H5Tget_fields(type, &sign, &epos, &esize, &mpos, &msize) < 0 || H5Tget_norm(type) != H5T_NORM_IMPLIED)
        return false;
    size_t bias = H5Tget_ebias(type);
    return mpos == 0 && epos == msize && sign == msize + esize &&
           ((n.bytes == 2 && esize == 5 && bias == 15) || (n.bytes == 4 && esize == 8 && bias == 127) ||
            (n.bytes == 8 && esize == 11 && bias == 1023));
}

/* Sets type, memory_type and swap; false when HDF5 cannot. Odd types (12 bits of 16, long double) go through
 * HDF5's conversion. */
static bool find_type(hl_h5_data *d, hid_t file_type, H5T_class_t class)
{
    if (class == H5T_ENUM) {
        d->type = (hl_number){'u', 1};
        d->memory_type = H5Tcopy(file_type);
        return d->memory_type >= 0;
    }
    hl_number n = {class == H5T_FLOAT                       ? 'f'
                   : H5Tget_sign(file_type) == H5T_SGN_NONE ? 'u'
                                                            : 'i',
                   (int)H5Tget_size(file_type)};
    if (is_plain(file_type, n)) {
        d->type = n;
        d->swap = n.bytes > 1 && H5Tget_order(file_type) == H5T_ORDER_BE;
        d->memory_type = H5Tcopy(file_type);
        return d->memory_type >= 0;
    }
    if (class == H5T_FLOAT) {
        d->type = (hl_number){'f', 8};
        d->memory_type = H5Tcopy(H5T_NATIVE_DOUBLE);
    } else {
        d->type = (hl_number){n.kind, 8};
        d->memory_type = H5Tcopy(n.kind == 'u' ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64);
    }
    return d->memory_type >= 0;
}

/* ------------------------------------------------------------------------------------------------ opening */

static bool find_extents(hl_h5_data *d, hid_t space)
{
    hsize_t dim[HL_H5_RANK];
    d->ndim = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) == H5S_NULL || d->ndim < 0 || d->ndim > HL_H5_RANK) return false;
    if (d->ndim > 0 && H5Sget_simple_extent_dims(space, dim, NULL) < 0) return false;
    d->elements = 1;
    for (int i = 0; i < d->ndim; i++) {
        if (dim[i] > INT64_MAX) return false;
        d->dim[i] = (int64_t)dim[i];
        if (!hl_mul64(d->elements, d->dim[i], &d->elements)) return false;
    }
    return hl_mul64(d->elements, d->type.bytes, &d->bytes);
}

/* Where the bytes are. Returns what is wrong, or NULL. */
static const char *find_storage(hl_h5_data *d, hid_t dcpl, int64_t element_in_file)
{
    H5D_layout_t layout = H5Pget_layout(dcpl);
    hsize_t chunk[HL_H5_RANK];
    int external = layout == H5D_CONTIGUOUS ? H5Pget_external_count(dcpl) : 0;
    if (layout == H5D_CHUNKED && H5Pget_chunk(dcpl, HL_H5_RANK, chunk) == d->ndim)
        for (int i = 0; i < d->ndim; i++) d->chunk[i] = (int64_t)chunk[i];
    d->elsewhere = layout == H5D_VIRTUAL || external > 0;
    H5D_space_status_t status;
    d->sparse = H5Dget_space_status(d->id, &status) < 0 || status != H5D_SPACE_STATUS_ALLOCATED;
    d->stored = d->elsewhere ? 0 : (int64_t)H5Dget_storage_size(d->id);
    if (d->stored < 0 || (layout != H5D_COMPACT && d->stored > d->file->bytes))
        return "truncated: more bytes are claimed than the file has";
    if (layout != H5D_CONTIGUOUS || d->elsewhere || d->stored == 0) return NULL;
    haddr_t at = H5Dget_offset(d->id);
    if (at != HADDR_UNDEF && (int64_t)at > d->file->bytes - d->stored)
        return "truncated: its data lies past the end of the file";
    if (d->stored / element_in_file < d->elements) return "fewer bytes are stored than its extents need";
    return NULL;
}

static hid_t dataset_access(int64_t cache_bytes)
{
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    if (dapl >= 0 && cache_bytes > 0)
        H5Pset_chunk_cache(
            dapl, 12421, (size_t)cache_bytes,
            1.0); /* slots: a prime, some 100 per chunk that fits; 1.0: drop read chunks first */
    return dapl;
}

/* What is wrong with an open dataset, or "". Under the HDF5 lock. */
static void examine(hl_h5_data *d, hid_t type, hid_t space, hid_t dcpl, hl_h5_guard *g, char *wrong,
                    size_t size)
{
    char filter[64];
    const char *storage = NULL;
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    wrong[0] = '\0';
    if (type < 0 || space < 0 || dcpl < 0) {
        snprintf(wrong, size, "%s", hl_h5_cause(g));
        return;
    }
    if (class != H5T_INTEGER && class != H5T_FLOAT && !hl_h5_is_truth(type)) {
        snprintf(wrong, size, "holds %s, not numbers", class_name(class));
        return;
    }
    int id = missing_filter(dcpl, filter, sizeof(filter), &d->filtered);
    if (id)
        snprintf(wrong, size, "needs filter %d (%s), which is not available; set HDF5_PLUGIN_PATH", id,
                 filter);
    else if (!find_type(d, type, class))
        snprintf(wrong, size, "%s", hl_h5_cause(g));
    else if (!find_extents(d, space))
        snprintf(wrong, size,
                 H5Sget_simple_extent_type(space) == H5S_NULL ? "is empty: it has no extents"
                                                              : "its extents make no sense");
    else if ((storage = find_storage(d, dcpl, (int64_t)H5Tget_size(type))))
        snprintf(wrong, size, "%s", storage);
}

static void open_locked(hl_h5_data *d, int64_t cache_bytes, hl_h5_guard *g, char *wrong, size_t size)
{
    hid_t dapl = dataset_access(cache_bytes);
    d->id = H5Dopen2(d->file->id, d->name, dapl);
    if (d->id < 0) snprintf(wrong, size, "%s", hl_h5_cause(g));
    if (dapl >= 0) H5Pclose(dapl);
    if (d->id < 0) return;
    hid_t type = H5Dget_type(d->id), space = H5Dget_space(d->id), dcpl = H5Dget_create_plist(d->id);
    examine(d, type, space, dcpl, g, wrong, size);
    if (dcpl >= 0) H5Pclose(dcpl);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
}

halo_status hl_h5_data_open(hl_h5 *file, const char *name, int64_t cache_bytes, hl_h5_data **out)
{
    if (!hl_h5_has(file, name))
        return hl_fail(file->ctx, HALO_ERR_FORMAT, "cannot open '%s': no dataset '%s'", file->path, name);
    hl_h5_data *d = NULL;
    HL_TRY(hl_calloc(file->ctx, 1, sizeof(*d), "a dataset", &d));
    d->file = file;
    d->id = d->memory_type = -1;
    d->piece = PIECE_MOST;
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_strdup(file->ctx, name, &d->name), close_data);
    hl_h5_guard g;
    char wrong[384];
    hl_h5_enter(&g);
    open_locked(d, cache_bytes, &g, wrong, sizeof(wrong));
    hl_h5_leave(&g);
    if (!wrong[0]) {
        *out = d;
        return HALO_OK;
    }
    st = hl_fail(file->ctx, HALO_ERR_FORMAT, "cannot open '%s': dataset '%s': %s", file->path, name, wrong);
close_data:
    hl_h5_data_close(d);
    return st;
}

void hl_h5_data_close(hl_h5_data *d)
{
    if (!d) return;
    hl_h5_guard g;
    hl_h5_enter(&g);
    if (d->memory_type >= 0) H5Tclose(d->memory_type);
    if (d->id >= 0) H5Dclose(d->id);
    hl_h5_leave(&g);
    free(d->name);
    free(d);
}

const char *hl_h5_describe(const hl_h5_data *d, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < d->ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "[", d->dim[i]);
    if (at < size)
        snprintf(out + at, size - at, "%s %s%s", d->ndim ? "]" : "scalar", hl_number_name(d->type),
                 d->swap ? " big-endian" : "");
    return out;
}

halo_status hl_h5_claim(const hl_h5_data *d, int64_t bytes)
{
    if (d->elsewhere || bytes <= CLAIM_FREE || d->stored >= bytes / CLAIM_RATIO) return HALO_OK;
    char text[256];
    return hl_fail(d->file->ctx, HALO_ERR_FORMAT,
                   "'%s': dataset '%s' claims %s, but only %" PRId64 " bytes of it are stored", d->file->path,
                   d->name, hl_h5_describe(d, text, sizeof(text)), d->stored);
}

/* ------------------------------------------------------------------------------------------------ reading */

static halo_status read_piece(hl_h5_data *d, const int64_t *start, const int64_t *count, void *out)
{
    hsize_t at[HL_H5_RANK], n[HL_H5_RANK];
    hl_h5_guard g;
    for (int i = 0; i < d->ndim; i++) {
        at[i] = (hsize_t)start[i];
        n[i] = (hsize_t)count[i];
    }
    hl_h5_enter(&g);
    hid_t in_file = H5Dget_space(d->id),
          in_memory = d->ndim ? H5Screate_simple(d->ndim, n, NULL) : H5Screate(H5S_SCALAR);
    herr_t rc = in_file < 0 || in_memory < 0 ? -1 : 0;
    if (rc >= 0 && d->ndim) rc = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, at, NULL, n, NULL);
    if (rc >= 0) rc = H5Dread(d->id, d->memory_type, in_memory, in_file, H5P_DEFAULT, out);
    if (rc < 0) hl_h5_cause(&g);
    if (in_memory >= 0) H5Sclose(in_memory);
    if (in_file >= 0) H5Sclose(in_file);
    hl_h5_leave(&g);
    if (rc >= 0) return HALO_OK;
    return hl_fail(d->file->ctx, HALO_ERR_IO, "cannot read '%s': dataset '%s': %s", d->file->path, d->name,
                   g.cause);
}

static int64_t product(const int64_t *count, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= count[i]; /* below the dataset's elements, which fit */
    return p;
}

/* Length of the first part of [start, start + count) when it is cut in two: about half, at a chunk border
 * where there is one. */
static int64_t first_part(int64_t start, int64_t count, int64_t chunk)
{
    int64_t half = count / 2;
    if (chunk <= 1) return half;
    int64_t border = (start + half) / chunk * chunk;
    if (border <= start) border += chunk;
    return border > start && border < start + count ? border - start : half;
}

static halo_status read_box(hl_h5_data *d, const int64_t *start, const int64_t *count, char *out)
{
    int64_t bytes = product(count, d->ndim) * d->type.bytes;
    int axis = 0;
    while (axis < d->ndim && count[axis] == 1) axis++;
    if (bytes <= d->piece || axis == d->ndim) return read_piece(d, start, count, out);
    int64_t at[HL_H5_RANK], n[HL_H5_RANK];
    memcpy(at, start, (size_t)d->ndim * sizeof(*at));
    memcpy(n, count, (size_t)d->ndim * sizeof(*n));
    n[axis] = first_part(start[axis], count[axis], d->chunk[axis]);
    HL_TRY(read_box(d, at, n, out));
    int64_t done = n[axis];
    at[axis] += done;
    n[axis] = count[axis] - done;
    return read_box(d, at, n, out + bytes / count[axis] * done);
}

halo_status hl_h5_read(hl_h5_data *d, const int64_t *start, const int64_t *count, void *out, size_t capacity)
{
    for (int i = 0; i < d->ndim; i++)
        if (start[i] < 0 || count[i] < 0 || count[i] > d->dim[i] || start[i] > d->dim[i] - count[i])
            return hl_fail(d->file->ctx, HALO_ERR_SHAPE,
                           "'%s': dataset '%s': %" PRId64 " + %" PRId64
                           " is outside dimension %d of %" PRId64,
                           d->file->path, d->name, start[i], count[i], i, d->dim[i]);
    int64_t n = product(count, d->ndim);
    HL_BUG_UNLESS((size_t)(n * d->type.bytes) <= capacity);
    if (n == 0) return HALO_OK;
    if (d->sparse)
        memset(out, 0,
               (size_t)(n * d->type.bytes)); /* where there is no fill value, HDF5 leaves what it finds */
    HL_TRY(read_box(d, start, count, out));
    if (d->swap) hl_swap_bytes(out, d->type.bytes, n);
    return HALO_OK;
}
