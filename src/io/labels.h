/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h -- which columns of a table of numbers are targets, and what of them is stored. */
#ifndef HL_IO_LABELS_H
#define HL_IO_LABELS_H

#include "io/source.h"
#include "io/table.h"

typedef struct hl_labels {
    const char *path;      /* what errors call the table */
    const hl_table *table;
    const int64_t *row;    /* [rows] of the table for each row of the source; NULL: the same */
    int64_t rows;          /* of the source */
    int64_t first, count;  /* those that are in use: ranges are measured on them */
    bool measure;          /* where nothing is said of ranges: measure them, rather than leave numbers as they are */
} hl_labels;

/*
 * Sets info.target (name, low, high) and *y [rows, targets] as o->array says: of a target that has a range, y = (value - (low + high)/2) / ((high - low)/2). Freed by the caller.
 */
halo_status hl_labels_take(hl_source *s, const hl_source_options *o, const hl_labels *l, float **y);

#endif
