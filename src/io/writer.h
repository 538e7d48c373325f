/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h -- writes halo's own layout (doc/formats.md), sample by sample; nothing stands under the name
 * until it is committed. */
#ifndef HL_IO_WRITER_H
#define HL_IO_WRITER_H

#include "io/convert.h"
#include "io/io.h"

typedef struct hl_writer_options {
    int64_t ext[4];          /* C D H W */
    halo_dtype dtype;        /* of x in memory and in the file: U8, I16, I32, F32, F64 */
    hl_number number;        /* the same, for what is no halo_dtype, such as uint16; kind 0: as dtype says */
    int targets;             /* T, may be 0: no y */
    const hl_target *target; /* [T]: names and ranges; NULL: not written */
    int64_t target_ext[3];   /* D H W of targets that are volumes; 0: numbers */
    bool periodic;           /* every sample is a whole periodic box */
    int level; /* deflate 1-9 after shuffle; 0: not compressed. One chunk per sample, of what is compressed at most 1 MiB each */
} hl_writer_options;

typedef struct hl_writer hl_writer;
halo_status hl_writer_create(halo_context *ctx, const char *path, const hl_writer_options *options,
                             hl_writer **writer);
/* x [C D H W], y [T] or [T D H W] (NULL when T is 0); group -1: none (of the first sample, then of all). */
halo_status hl_writer_add(hl_writer *writer, const void *x, const float *y, int64_t group);
/* The name of the next sample that has none yet; either all samples get one, or none. They stand in /id. */
halo_status hl_writer_name(hl_writer *writer, const char *name);
/* A number that belongs to the sample added last, float64: all samples have it or none. It stands in the dataset of that name, [sample]. */
halo_status hl_writer_column(hl_writer *writer, const char *name, double value);
/* A number that belongs to all: an attribute of "/x", or of "/y" where targets are volumes. */
halo_status hl_writer_note(hl_writer *writer, const char *object, const char *name, double value);
/* Closes and frees; commit: fsync and rename, else the file is removed. */
halo_status hl_writer_close(hl_writer *writer, bool commit);

#endif
