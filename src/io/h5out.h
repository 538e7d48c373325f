/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5out.h -- writing an HDF5 file of which either everything is there afterwards or nothing.
 *
 * The file is written under a temporary name beside its own, fsynced and renamed by commit. HDF5 does not
 * survive a failing write: on a full disk version 1.10 keeps half-closed objects and crashes when the process
 * ends. So the bytes go through a file driver of our own, which tells HDF5 that all is well, remembers the
 * operating system's first error, and drops what follows; the error comes back from the next put or from
 * commit. All functions are not collective.
 */
#ifndef HL_IO_H5OUT_H
#define HL_IO_H5OUT_H

#include "io/h5.h"

typedef struct hl_h5_out {
    halo_context *ctx;
    char *path, *temporary;
    hid_t id, driver;
    int fd;
    int error;    /* errno of the first failed write, 0: none */
    bool refused; /* a call of HDF5 itself failed: the file must not be committed */
} hl_h5_out;

halo_status hl_h5_create(halo_context *ctx, const char *path, hl_h5_out **out);

/* HDF5 type of a number in files (little-endian) and in memory; predefined, not to be closed. Between enter
 * and leave. */
hid_t hl_h5_file_type(hl_number type);
hid_t hl_h5_memory_type(hl_number type);

/* Writes a contiguous dataset; groups in the name are made. */
halo_status hl_h5_put(hl_h5_out *out, const char *name, hl_number type, int ndim, const int64_t *dim,
                      const void *data);

/* Writes an attribute of an existing object, or of a group that is made; ndim 0: a scalar. An attribute of
 * that name is replaced. */
halo_status hl_h5_put_attr(hl_h5_out *out, const char *object, const char *name, hl_number type, int64_t n,
                           const void *data);
/* n < 0: one scalar string. */
halo_status hl_h5_put_attr_strings(hl_h5_out *out, const char *object, const char *name, int64_t n,
                                   const char *const *text);
/* A dataset [n] of strings. */
halo_status hl_h5_put_strings(hl_h5_out *out, const char *name, int64_t n, const char *const *text);
/* A scalar dataset that holds one string. */
halo_status hl_h5_put_string(hl_h5_out *out, const char *name, const char *text);

/* A dataset [0, row dims] that grows along its first dimension, chunked one row at a time, but compressed volumes C D H W in
 * parts of at most 1 MiB; level: deflate 1-9 after shuffle, 0 none. */
halo_status hl_h5_rows(hl_h5_out *out, const char *name, hl_number type, int row_ndim, const int64_t *row_dim,
                       int level, hid_t *rows);
halo_status hl_h5_add_row(hl_h5_out *out, hid_t rows, hl_number type, const void *data);
/* A new last row, and the box lo, count of it, in the dimensions of a row; NULL: all of it. */
halo_status hl_h5_begin_row(hl_h5_out *out, hid_t rows);
halo_status hl_h5_put_box(hl_h5_out *out, hid_t rows, hl_number type, const int64_t *lo, const int64_t *count, const void *data);
halo_status hl_h5_rows_close(hl_h5_out *out, hid_t rows);

/* Reports a failed HDF5 call (cause taken by hl_h5_cause) or the write error behind it. */
halo_status hl_h5_out_failed(hl_h5_out *out, const char *cause);

/* Closes and frees. commit: the file stands under its name, or HALO_ERR_IO with the cause and the old file is
 * untouched; else it is removed. */
halo_status hl_h5_finish(hl_h5_out *out, bool commit);

#endif
