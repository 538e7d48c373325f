/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c -- a dataset, or an array of another file, read from end to end in the order of its axes: range, values that are not finite, and two 64-bit hashes of what was read, in native byte
 * order, so that equal volumes are found whatever the storage.
 *
 *   h = (h xor word) * odd constant, then h ^= h >> 32        per 8 bytes, with other constants for the second hash
 *
 * Parts below 128 MiB end at chunk borders where they can, as in h5data.c.
 */
#include "io/scan.h"

#include <float.h>

enum { BLOCK = 4096 };
#define PART_BYTES (INT64_C(128) << 20)

typedef halo_status (*reader)(void *from, const int64_t *start, const int64_t *count, void *out, size_t capacity);

typedef struct scanner {
    halo_context *ctx;
    reader read;
    void *from;
    int ndim;
    const int64_t *dim, *chunk;
    hl_number type;
    int64_t elements;
    char *raw;
    size_t capacity;
    hl_scan scan;
} scanner;

static void mix(uint64_t hash[2], uint64_t word)
{
    hash[0] = (hash[0] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash[0] ^= hash[0] >> 32;
    hash[1] = (hash[1] ^ word) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash[1] ^= hash[1] >> 29;
}

static void mix_bytes(uint64_t hash[2], const char *at, int64_t bytes)
{
    for (; bytes > 0; at += 8, bytes -= 8) {
        uint64_t word = 0;
        memcpy(&word, at, (size_t)hl_min64(bytes, 8));
        mix(hash, word);
    }
}

static void look_at(hl_scan *s, double v)
{
    if (!(fabs(v) <= (double)FLT_MAX)) {
        if (s->bad++ == 0) s->first_bad = s->values;
    } else {
        s->low = v < s->low ? v : s->low;
        s->high = v > s->high ? v : s->high;
    }
    s->values++;
}

static void look_at_all(hl_scan *s, hl_number type, const char *raw, int64_t n)
{
    bool wide = hl_number_dtype(type) == HALO_F64;
    double doubles[BLOCK];
    float floats[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = hl_min64(BLOCK, n - at);
        hl_convert(type, raw + at * type.bytes, 1, wide ? HALO_F64 : HALO_F32, wide ? (void *)doubles : floats, count);
        for (int64_t i = 0; i < count; i++) look_at(s, wide ? doubles[i] : (double)floats[i]);
    }
}

static int64_t product(const int64_t *count, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= count[i]; /* below the dataset's elements, which fit */
    return p;
}

static halo_status scan_part(scanner *s, const int64_t *start, const int64_t *count)
{
    int64_t n = product(count, s->ndim);
    size_t bytes = (size_t)(n * s->type.bytes);
    if (bytes > s->capacity) {
        free(s->raw);
        s->raw = NULL;
        s->capacity = 0;
        HL_TRY(hl_aligned(s->ctx, bytes, "a part of a dataset", &s->raw));
        s->capacity = bytes;
    }
    HL_TRY(s->read(s->from, start, count, s->raw, s->capacity));
    mix_bytes(s->scan.hash, s->raw, (int64_t)bytes);
    look_at_all(&s->scan, s->type, s->raw, n);
    return HALO_OK;
}

/* About half, at a chunk border where there is one; all where the whole is in one chunk. */
static int64_t first_part(int64_t start, int64_t count, int64_t chunk)
{
    int64_t half = hl_max64(1, count / 2);
    if (chunk <= 1) return half;
    int64_t border = hl_max64((start + half) / chunk, start / chunk + 1) * chunk;
    return hl_min64(border - start, count);
}

/* The box in the order of its axes: cut along the first that is longer than 1, so that the parts follow each other. */
static halo_status scan_box(scanner *s, const int64_t *start, const int64_t *count)
{
    int axis = 0;
    int64_t at[HL_H5_RANK], n[HL_H5_RANK];
    while (axis < s->ndim && count[axis] == 1) axis++;
    if (axis == s->ndim || product(count, s->ndim) * s->type.bytes <= PART_BYTES) return scan_part(s, start, count);
    memcpy(at, start, (size_t)s->ndim * sizeof(*at));
    memcpy(n, count, (size_t)s->ndim * sizeof(*n));
    n[axis] = first_part(start[axis], count[axis], s->chunk[axis]);
    if (n[axis] == count[axis]) return scan_part(s, start, count);
    HL_TRY(scan_box(s, at, n));
    at[axis] += n[axis];
    n[axis] = count[axis] - n[axis];
    return scan_box(s, at, n);
}

static halo_status scan_all(scanner *s, bool items, halo_status (*visit)(void *user, const hl_scan *scan), void *user)
{
    int64_t start[HL_H5_RANK] = {0}, count[HL_H5_RANK] = {0}, n = items && s->ndim > 0 ? s->dim[0] : 1;
    halo_status st = HALO_OK;
    memcpy(count, s->dim, (size_t)s->ndim * sizeof(*count));
    for (int64_t i = 0; i < n && st == HALO_OK; i++) {
        if (items && s->ndim > 0) {
            start[0] = i;
            count[0] = 1;
        }
        s->scan = (hl_scan){.item = i, .low = INFINITY, .high = -INFINITY, .hash = {1, 2}};
        if (s->elements > 0) st = scan_box(s, start, count);
        if (st == HALO_OK) st = visit(user, &s->scan);
    }
    free(s->raw);
    return st;
}

static halo_status read_dataset(void *from, const int64_t *start, const int64_t *count, void *out, size_t capacity)
{
    return hl_h5_read(from, start, count, out, capacity);
}

static halo_status read_array(void *from, const int64_t *start, const int64_t *count, void *out, size_t capacity)
{
    return hl_array_read(from, start, count, out, capacity);
}

halo_status hl_scan_dataset(hl_h5_data *d, bool items, halo_status (*visit)(void *user, const hl_scan *scan), void *user)
{
    scanner s = {.ctx = d->file->ctx, .read = read_dataset, .from = d, .ndim = d->ndim, .dim = d->dim, .chunk = d->chunk, .type = d->type, .elements = d->elements};
    return scan_all(&s, items, visit, user);
}

halo_status hl_scan_array(hl_array *a, bool items, halo_status (*visit)(void *user, const hl_scan *scan), void *user)
{
    _Static_assert(HL_ARRAY_RANK <= HL_H5_RANK, "boxes of an array fit");
    scanner s = {.ctx = a->ctx, .read = read_array, .from = a, .ndim = a->ndim, .dim = a->dim, .chunk = a->chunk, .type = a->type, .elements = a->elements};
    return scan_all(&s, items, visit, user);
}

bool hl_scan_written(const hl_h5_data *d)
{
    if (d->elsewhere || d->elements == 0) return true;
    if (d->chunk[0] == 0 || d->ndim == 0) return !d->sparse;
#if H5_VERSION_GE(1, 10, 5)
    hsize_t written = 0, chunks = 1;
    hl_h5_guard g;
    for (int i = 0; i < d->ndim; i++) chunks *= (hsize_t)((d->dim[i] - 1) / d->chunk[i] + 1);
    hl_h5_enter(&g);
    hid_t space = H5Dget_space(d->id);
    herr_t rc = space < 0 ? -1 : H5Dget_num_chunks(d->id, space, &written);
    if (space >= 0) H5Sclose(space);
    hl_h5_leave(&g);
    return rc < 0 || written >= chunks;
#else
    return d->filtered || !d->sparse; /* of compressed chunks this version cannot tell */
#endif
}

void hl_scan_where(int ndim, const int64_t *dim, bool reversed, bool items, int64_t item, int64_t at, hl_str *out)
{
    int64_t index[HL_H5_RANK] = {0};
    int first = items && ndim > 0;
    for (int i = ndim - 1; i >= first; i--) {
        index[i] = at % dim[i];
        at /= dim[i];
    }
    if (first) index[0] = item;
    hl_str_add(out, "[");
    for (int i = 0; i < ndim; i++) hl_str_addf(out, "%s%" PRId64, i ? ", " : "", index[reversed ? ndim - 1 - i : i]);
    hl_str_add(out, "]");
}
