/* SPDX-License-Identifier: Apache-2.0 */
/* table.h -- a text table of numbers. */
#ifndef HL_IO_TABLE_H
#define HL_IO_TABLE_H

#include "base/base.h"

typedef struct hl_table {
    int64_t rows, columns;
    double *value;  /* [rows, columns]; NaN where a cell is no number */
    int64_t *line;  /* [rows] of the file, from 1 */
    char **name;    /* [columns] of the header; NULL where there is none */
    char *text;     /* owns the names */
} hl_table;

/*
 * Lines of cells between blanks, or commas, or semicolons; '#' and '%' begin comments; empty lines are nothing. A header is a first line in which nothing is a number, or the last
 * comment before the first row if it has as many words as there are columns. All rows have as many cells. HALO_ERR_FORMAT names file and line. At most 256 MiB.
 */
halo_status hl_table_read(halo_context *ctx, const char *path, hl_table *table);
void hl_table_free(hl_table *table);

#endif
