/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nifti_array.c -- an image as an array (array.h) of axes [c ..., d, h, w] in RAS: w from left to right, h from the back to the front, d from the feet to the head; c: t u v w of NIfTI, the
 * slowest first. Values are scaled by slope and intercept, to float32 where those are stored in at most 16 bits or as float32, else to float64; unscaled ones keep their type.
 *
 *     array[c, d, h, w] = slope stored[c, p(d, h, w)] + inter,      p: axes exchanged and counted from their other end (nifti.h)
 *
 * A box is read in the image's own order, whole rows or planes at a time, and put in its place row by row. A gzipped image is unpacked as a whole, once, and kept until the array rests.
 */
#include "io/array.h"
#include "io/nifti.h"
#include "io/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

typedef struct nifti_array {
    hl_array base;
    hl_nifti nifti;
    hl_bytes file;   /* of an image that is not packed */
    char *unpacked;  /* [nifti.bytes] of one that is; NULL: at rest */
    char *rows;      /* what is read at once */
    size_t capacity;
    char order[HL_NIFTI_RANK + 1];
} nifti_array;

/* -------------------------------------------------------------------------------------------------------------- boxes */

typedef struct box { /* of one volume: as stored, and where its voxels go */
    int64_t lo[3], n[3]; /* x y z */
    int64_t step[3];     /* elements of the output that a step along them skips */
    int64_t first;       /* element of the output that the first voxel is */
} box;

static box stored_box(const hl_nifti *n, const int64_t start[3], const int64_t count[3])
{
    box b = {.first = 0};
    int64_t along = 1;
    for (int k = 0; k < 3; k++) { /* RAS axis k is the array's last but k */
        int s = n->axis[k];
        b.n[s] = count[2 - k];
        b.lo[s] = n->flip[k] ? n->dim[s] - start[2 - k] - count[2 - k] : start[2 - k];
        b.step[s] = n->flip[k] ? -along : along;
        if (n->flip[k]) b.first += (count[2 - k] - 1) * along;
        along *= count[2 - k];
    }
    return b;
}

/* `n` elements as stored from element `from` on, in our byte order. */
static halo_status fetch(nifti_array *a, int64_t from, int64_t n, const char **out)
{
    int bytes = a->nifti.type.bytes;
    size_t size = (size_t)(n * bytes);
    HL_TRY(hl_scratch(a->base.ctx, &a->rows, &a->capacity, size, "rows of an image"));
    if (a->unpacked) memcpy(a->rows, a->unpacked + from * bytes, size);
    else HL_TRY(hl_bytes_read(&a->file, a->nifti.at + from * bytes, a->rows, size, true));
    if (a->nifti.swapped) hl_swap_bytes(a->rows, bytes, n);
    *out = a->rows;
    return HALO_OK;
}

static void put_row(const nifti_array *a, const char *row, int64_t n, char *out, int64_t step)
{
    hl_number from = a->nifti.type, to = a->base.type;
    for (int64_t i = 0; i < n; i++) {
        char *at = out + i * step * to.bytes;
        double v = a->nifti.slope != 0 ? a->nifti.slope * hl_number_value(from, row, i) + a->nifti.inter : 0;
        if (a->nifti.slope == 0) memcpy(at, row + i * from.bytes, (size_t)from.bytes);
        else if (to.bytes == 4) memcpy(at, &(float){(float)v}, sizeof(float));
        else memcpy(at, &v, sizeof(v));
    }
}

/* Of volume number `volume`; rows together where they are whole. */
static halo_status read_volume(nifti_array *a, int64_t volume, const box *b, char *out)
{
    const int64_t *dim = a->nifti.dim;
    const char *rows = NULL;
    bool whole = b->n[0] == dim[0];
    for (int64_t z = 0; z < b->n[2]; z++)
        for (int64_t y = 0; y < b->n[1]; y++) {
            int64_t from = ((volume * dim[2] + b->lo[2] + z) * dim[1] + b->lo[1] + y) * dim[0] + b->lo[0];
            if (!whole) HL_TRY(fetch(a, from, b->n[0], &rows));
            else if (y == 0) HL_TRY(fetch(a, from, b->n[0] * b->n[1], &rows));
            else rows += b->n[0] * a->nifti.type.bytes;
            put_row(a, rows, b->n[0], out + (b->first + z * b->step[2] + y * b->step[1]) * a->base.type.bytes, b->step[0]);
        }
    return HALO_OK;
}

static halo_status unpack(nifti_array *a)
{
    if (!a->nifti.packed || a->unpacked) return HALO_OK;
    char *bytes;
    HL_TRY(hl_aligned(a->base.ctx, (size_t)a->nifti.bytes, "an unpacked image", &bytes));
    halo_status st = hl_nifti_unpack(a->base.ctx, &a->nifti, bytes);
    if (st == HALO_OK) {
        a->unpacked = bytes;
        if (a->file.count) a->file.count->data += a->nifti.size;
    } else free(bytes);
    return st;
}

static halo_status read_box(hl_array *base, const int64_t *start, const int64_t *count, void *out)
{
    nifti_array *a = (nifti_array *)base;
    int c = base->ndim - 3, i;
    int64_t at[HL_ARRAY_RANK] = {0}, voxels = count[c] * count[c + 1] * count[c + 2];
    box b = stored_box(&a->nifti, start + c, count + c);
    char *to = out;
    HL_TRY(unpack(a));
    do {
        int64_t volume = 0;
        for (i = 0; i < c; i++) volume = volume * base->dim[i] + start[i] + at[i];
        HL_TRY(read_volume(a, volume, &b, to));
        to += voxels * base->type.bytes;
        for (i = c - 1; i >= 0 && ++at[i] == count[i]; i--) at[i] = 0;
    } while (i >= 0);
    return HALO_OK;
}

static void rest(hl_array *base)
{
    nifti_array *a = (nifti_array *)base;
    free(a->unpacked);
    a->unpacked = NULL;
}

static void close_array(hl_array *base)
{
    nifti_array *a = (nifti_array *)base;
    rest(base);
    if (a->file.fd >= 0) close(a->file.fd);
    free(a->rows);
    hl_nifti_free(&a->nifti);
    hl_array_free(base);
}

static const hl_array_ops ops = {.read = read_box, .rest = rest, .close = close_array};

/* ------------------------------------------------------------------------------------------------------------ opening */

static hl_number delivered(const hl_nifti *n)
{
    if (n->slope == 0) return n->type;
    return (hl_number){'f', n->type.bytes <= 2 || (n->type.kind == 'f' && n->type.bytes == 4) ? 4 : 8};
}

static void describe(nifti_array *a)
{
    hl_array *base = &a->base;
    const hl_nifti *n = &a->nifti;
    base->type = delivered(n);
    base->swapped = n->swapped;
    base->whole = n->packed;
    base->ndim = n->ndim > 3 ? n->ndim : 3;
    hl_nifti_extents(n, base->dim + base->ndim - 3);
    for (int i = 3; i < n->ndim; i++) base->dim[n->ndim - 1 - i] = n->dim[i];
    for (int i = 0; i < base->ndim; i++) a->order[i] = i < base->ndim - 3 ? 'c' : "dhw"[i - base->ndim + 3];
    base->order = a->order;
    base->image = n;
    base->elements = n->elements;
    base->bytes = n->elements * base->type.bytes;
}

halo_status hl_nifti_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **out)
{
    nifti_array *a;
    halo_status st;
    if (*name) return hl_fail(ctx, HALO_ERR_FORMAT, "'%s': a NIfTI image has no parts with names, such as '%s'", path, name);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*a), "an array", &a));
    a->base.ops = &ops;
    a->base.ctx = ctx;
    a->nifti.place = "";
    a->file.fd = -1;
    HL_GOTO(st, hl_strdup(ctx, path, &a->base.path), close_array);
    HL_GOTO(st, hl_strdup(ctx, "", &a->base.name), close_array);
    HL_GOTO(st, hl_nifti_open(ctx, path, &a->nifti), close_array);
    describe(a);
    a->file = (hl_bytes){.ctx = ctx, .path = a->nifti.image, .count = count, .size = a->nifti.size, .fd = a->nifti.packed ? -1 : open(a->nifti.image, O_RDONLY | O_CLOEXEC)};
    if (!a->nifti.packed && a->file.fd < 0) HL_GOTO(st, hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", a->nifti.image, strerror(errno)), close_array);
    *out = &a->base;
    return HALO_OK;
close_array:
    close_array(&a->base);
    return st;
}
