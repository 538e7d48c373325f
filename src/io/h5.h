/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5.h -- the thin layer over HDF5 that the rest of io reads through: checked, one message per failure,
 * nothing on stderr.
 *
 * What it takes care of
 *   - Threads: HDF5 without thread safety must see one call at a time in the whole process; hl_h5_enter takes
 * that one lock (it is the only process-wide state of halo, because HDF5's own state is process-wide) and
 * does nothing where the library locks by itself.
 *   - Noise: HDF5 prints its error stack unless told otherwise; between enter and leave it does not, and the
 * innermost cause becomes the end of our own message. The application's setting is put back.
 *   - File locks: read-only opens do not lock, so that files on Lustre and NFS open, and two jobs can read
 * one file.
 *   - Type conversion: HDF5's is slow for byte order and half precision. Data is read in the file's type;
 * swapping is done here.
 *   - Claims: a dataset's extents are numbers in a file. hl_h5_claim compares them with the bytes that are
 * stored before anything is allocated. No function here is collective.
 */
#ifndef HL_IO_H5_H
#define HL_IO_H5_H

#include "base/str.h"
#include "io/convert.h"
#include "io/io.h"

#include <hdf5.h>

#define HL_H5_RANK 32 /* the most dimensions HDF5 allows */

/* -------------------------------------------------------------------------------------- around every call */

typedef struct hl_h5_guard {
    H5E_auto2_t report; /* the application's error reporting, put back by leave */
    void *report_data;
    char cause[320]; /* filled by hl_h5_cause */
} hl_h5_guard;

/* Nothing between enter and leave may call back into the application (no hl_fail, no log). */
void hl_h5_enter(hl_h5_guard *g);
void hl_h5_leave(hl_h5_guard *g);
/* The innermost cause of the failed call, as text in g->cause. Between enter and leave. */
const char *hl_h5_cause(hl_h5_guard *g);

/* ----------------------------------------------------------------------------------------- reading a file */

typedef struct hl_h5 {
    halo_context *ctx;
    char *path;
    hid_t id, driver; /* driver: of the count, -1 where nothing is counted */
    int64_t bytes;    /* size of the file */
} hl_h5;

/* Opens read-only. HALO_ERR_IO: it cannot be opened; HALO_ERR_FORMAT: it is no HDF5 file, or truncated, or
 * broken. */
halo_status hl_h5_open(halo_context *ctx, const char *path, hl_h5 **file);
/* Bytes read of the file, and of files behind its virtual datasets, are added to *count, which outlives it. */
halo_status hl_h5_open_counted(halo_context *ctx, const char *path, hl_read_count *count, hl_h5 **file);
void hl_h5_close(hl_h5 *file); /* NULL is allowed */

bool hl_h5_has(hl_h5 *file, const char *name);

/* A numeric attribute of object `object` ("/" is the root) as doubles: at most `most`, more is an error. *n =
 * 0 when there is none. */
halo_status hl_h5_attr_numbers(hl_h5 *file, const char *object, const char *name, int64_t most, double *out,
                               int64_t *n);

/* One number of type `type` ('i' 8 or 'f' 8), exactly; HALO_ERR_FORMAT when there is none. */
halo_status hl_h5_attr_scalar(hl_h5 *file, const char *object, const char *name, hl_number type, void *value);
bool hl_h5_has_attr(hl_h5 *file, const char *object, const char *name);
/* Whether it is what h5py makes of NumPy's bool: an enumeration of bytes, FALSE 0 and TRUE 1, which is read as uint8. Under the HDF5 lock. */
bool hl_h5_is_truth(hid_t type);
/* Whether `name` is a dataset of integers, floats, or such. */
bool hl_h5_is_numeric(hl_h5 *file, const char *name);

/* Strings, fixed or variable length, of an attribute (attr != NULL) or of a dataset `object` (attr NULL). *n
 * = 0 and *out NULL when there is none or it holds no strings. The array and its strings are one block, freed
 * by the caller with free(). At most 4096 strings and 16 MiB of text. */
halo_status hl_h5_strings(hl_h5 *file, const char *object, const char *attr, char ***out, int64_t *n);

/* Calls back for every dataset below the root, sorted by name; soft and external links are not followed. */
halo_status hl_h5_list(hl_h5 *file, halo_status (*visit)(void *user, const char *name), void *user);

/* -------------------------------------------------------------------------------------- reading a dataset */

typedef struct hl_h5_data {
    hl_h5 *file;
    char *name;
    hid_t id, memory_type; /* memory_type: the file's own where it is plain, else a native one that HDF5
                              converts to */
    hl_number type;        /* of what hl_h5_read delivers, in native byte order */
    bool swap;             /* the file's byte order is not ours */
    int ndim;
    int64_t dim[HL_H5_RANK];
    int64_t chunk[HL_H5_RANK]; /* all 0 when not chunked */
    int64_t elements, bytes;   /* bytes = elements * type.bytes */
    int64_t stored; /* bytes in the file, after compression; 0 for virtual, external and never-written ones */
    bool sparse;               /* not all of it was ever written */
    bool filtered, elsewhere; /* elsewhere: virtual or external, the data is in other files */
    int64_t piece;            /* most bytes of one HDF5 call: below 2 GiB; tests lower it */
} hl_h5_data;

/*
 * Opens a numeric dataset for reading. `cache_bytes`: room for chunks that several reads will touch, 0 for
 * HDF5's default. HALO_ERR_FORMAT: it is missing, is not a dataset, is not numeric, needs a filter that is
 * not installed (named), or its extents are not backed by the file.
 */
halo_status hl_h5_data_open(hl_h5 *file, const char *name, int64_t cache_bytes, hl_h5_data **data);
void hl_h5_data_close(hl_h5_data *data); /* NULL is allowed */

/* "[4, 1, 64, 64, 64] int16 big-endian" into `out`; returns it. */
const char *hl_h5_describe(const hl_h5_data *data, char *out, size_t size);

/* HALO_ERR_FORMAT when the dataset cannot hold `bytes` that anyone ever wrote: more than 64 MiB that are not
 * backed by at least 1/2048 of it. */
halo_status hl_h5_claim(const hl_h5_data *data, int64_t bytes);

/* Reads the box start[ndim], count[ndim] into `out` (C order, data->type, native byte order) of `capacity`
 * bytes. Checked against the extents. */
halo_status hl_h5_read(hl_h5_data *data, const int64_t *start, const int64_t *count, void *out,
                       size_t capacity);

/* Appends the names of its filters, "shuffle deflate". */
halo_status hl_h5_filters(const hl_h5_data *data, hl_str *out);

/* Name of a registered filter, NULL when unknown. */
const char *hl_h5_filter_name(int id);

#endif
