/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h -- every value of a dataset or another array, looked at once. */
#ifndef HL_IO_SCAN_H
#define HL_IO_SCAN_H

#include "io/array.h"
#include "io/h5.h"

/* What is told of an item: one entry along the first axis, or the whole dataset. */
typedef struct hl_scan {
    int64_t item;
    int64_t values;
    int64_t bad, first_bad; /* NaN, infinite, or beyond the range of f32; the first one's place in the item */
    double low, high;       /* of the others; low > high where there are none */
    uint64_t hash[2];       /* of all values; different contents are equal by chance once in 2^128 */
} hl_scan;

/* Reads all of the dataset, and calls back after each item: `items`: the entries along its first axis. Needs memory for one item, at most 128 MiB, or for the
 * layers of a chunk where these are larger. Not collective. */
halo_status hl_scan_dataset(hl_h5_data *d, bool items, halo_status (*visit)(void *user, const hl_scan *scan), void *user);
/* The same of an array, whose axes are those of its storage. */
halo_status hl_scan_array(hl_array *a, bool items, halo_status (*visit)(void *user, const hl_scan *scan), void *user);

/* Whether every cell was written: all chunks, or all bytes, are there. Data in other files are taken to be. */
bool hl_scan_written(const hl_h5_data *d);

/* "[3, 0, 12]": where element `at` of an item is, of an array of these extents; `reversed`: whose writer numbers the axes from the last. */
void hl_scan_where(int ndim, const int64_t *dim, bool reversed, bool items, int64_t item, int64_t at, hl_str *out);

#endif
