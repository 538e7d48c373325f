/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h -- cells of a volume whose axes are periodic: where they lie in it, and where those of a turned and
 * shifted volume come from. Pure functions. */
#ifndef HL_IO_CELLS_H
#define HL_IO_CELLS_H

#include "io/pipeline.h"

hl_cells hl_cells_whole(const int64_t n[3]);
bool hl_cells_are_whole(const hl_cells *c, const int64_t n[3]);
static inline int64_t hl_cells_count(const hl_cells *c)
{
    return c->ext[0] * c->ext[1] * c->ext[2];
}

/* Calls back for each cut of `c` at the borders of a volume of extents n, in the order of their places.
 * Together they are all of c. */
halo_status hl_cells_split(const hl_cells *c, const int64_t n[3],
                           halo_status (*visit)(void *user, const hl_cut *cut), void *user);

/*
 * The cells `from` of a volume of extents n which, by hl_augment with the symmetry s and the shift `rest`,
 * become the cells `c` of that volume turned by s and shifted. Axes of which c has all cells are taken as
 * they are and shifted by hl_augment; in the others the shift is a matter of where to read.
 */
void hl_cells_before(const hl_cells *c, const int64_t n[3], hl_symmetry s, const int64_t shift[3],
                     hl_cells *from, int64_t rest[3]);

/* The cell of the volume that cell i (counted in C order) of `c` is. */
void hl_cells_at(const hl_cells *c, const int64_t n[3], int64_t i, int64_t at[3]);

#endif
