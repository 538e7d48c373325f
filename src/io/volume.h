/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h -- a dataset seen as samples n and axes c d h w in whatever order the file has them. */
#ifndef HL_IO_VOLUME_H
#define HL_IO_VOLUME_H

#include "io/h5.h"
#include "io/io.h"

typedef struct hl_volume {
    hl_h5_data *data;
    int axis[5]; /* file dimension of n c d h w; -1 for n when the file is one sample, for c when there is one
                    channel */
    int64_t ext[5]; /* n c d h w; 1 where axis is -1 */
} hl_volume;

/* `axes` such as "dhwc" or "ncdhw", one letter per dimension of the dataset, whose rank is already known to
 * fit. */
void hl_volume_set(hl_volume *v, hl_h5_data *data, const char *axes);

/*
 * Reads the cut (d h w) of the first `channels` channels of sample n to its place in out [channels, into]
 * as `to` (hl_number_dtype of the file's type, or HALO_F32). The file is read in its own order, in parts of
 * some MiB that end at chunk borders, and each part is converted to its place; *scratch of *capacity bytes is
 * grown as needed and freed by the caller.
 */
halo_status hl_volume_read(const hl_volume *v, int64_t n, int64_t channels, const hl_cut *cut, halo_dtype to,
                           void *out, char **scratch, size_t *capacity);

/* Bytes that reading such a box inflates, over the bytes it wants: 1 is perfect; 0 where nothing is
 * compressed. */
double hl_volume_waste(const hl_volume *v, const int64_t lo[3], const int64_t ext[3]);

#endif
