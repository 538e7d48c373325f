/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h -- a named array of numbers in a file that others wrote: a dataset of an HDF5 file, an NPY file, a member of an NPZ file, a NIfTI image. What it is, and boxes of it.
 *
 * Extents are in *storage order*, the last one runs fastest; `reversed` arrays (fortran_order) have them the other way round for who numbers the axes. Nothing is allocated
 * because a file claims it: claims are first compared with the bytes that there are. Not thread-safe: the owner locks. No function is collective.
 */
#ifndef HL_IO_ARRAY_H
#define HL_IO_ARRAY_H

#include "base/str.h"
#include "io/convert.h"
#include "io/io.h"

enum { HL_ARRAY_RANK = 32 };

typedef struct hl_array hl_array;

typedef struct hl_array_ops { /* one static const table per kind of file */
    /* The box, whose bounds are checked, in array->type and native byte order. */
    halo_status (*read)(hl_array *a, const int64_t *start, const int64_t *count, void *out);
    void (*rest)(hl_array *a); /* lets go of what is kept to read faster; NULL: nothing is */
    void (*close)(hl_array *a);
} hl_array_ops;

struct hl_array { /* every kind begins with this */
    const hl_array_ops *ops;
    halo_context *ctx;
    char *path, *name; /* of the file; in it: "dataset 'a'", "member 'x'", or empty */
    hl_number type;
    bool swapped;      /* the file's byte order is not ours: for describe */
    bool reversed;
    bool whole;        /* compressed as a whole: reading any of it reads all of it */
    int ndim;
    const struct hl_nifti *image; /* of a NIfTI image what its header says; NULL: it is none */
    const char *order; /* letters of its axes (n c d h w) where the format itself says them; else NULL */
    int64_t dim[HL_ARRAY_RANK];
    int64_t chunk[HL_ARRAY_RANK]; /* parts of a large read end at multiples of it; 0: anywhere */
    int64_t elements, bytes;
};

/*
 * Opens `name` of a file of any kind: path of a dataset, name of a member; NULL or empty: the one array of numbers that is there. *count (may be NULL) counts what is read, and
 * outlives the array. HALO_ERR_FORMAT: no file of these kinds, no such array (there are: ...), no numbers, or more is claimed than the file has.
 */
halo_status hl_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **array);
void hl_array_close(hl_array *array); /* NULL is allowed */
/* The box start[ndim], count[ndim] in storage order into `out` of `capacity` bytes. Checked against the extents. */
halo_status hl_array_read(hl_array *array, const int64_t *start, const int64_t *count, void *out, size_t capacity);
void hl_array_rest(hl_array *array);
/* "[64, 64, 64, 4] float32 big-endian", as its writer numbers the axes. */
const char *hl_array_describe(const hl_array *array, char *out, size_t size);
/* "'a.h5': dataset '/x'", "'a.npy'". */
const char *hl_array_title(const hl_array *array, char *out, size_t size);

/* Whether the file begins as one of NumPy's does. */
bool hl_is_numpy(const char *path);
/* Whether it is of a kind that can be nothing but arrays: of NumPy's, or a NIfTI image. */
bool hl_is_plain_array(const char *path);
/* The names of arrays in such a file: NPZ members; an NPY file has one without a name. */
halo_status hl_numpy_list(halo_context *ctx, const char *path, halo_status (*visit)(void *user, const char *name), void *user);
/* Compares the checksum of a member of an NPZ file that is stored as it is, which reads of boxes cannot; HALO_OK of other files of NumPy's. */
halo_status hl_numpy_check(hl_array *array);

/* For the kinds. */
halo_status hl_numpy_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **array);
halo_status hl_nifti_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **array);
halo_status hl_h5_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **array);
void hl_array_free(hl_array *array); /* what every kind has */

#endif
