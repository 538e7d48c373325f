/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuboid.h -- boxes of cells of a global array [N, C, D, H, W]: what they have in common, where they lie again across periodic borders, whether they tile the
 * array. Pure functions; the block algebra of block.h in five dimensions, for blocks that somebody else has cut.
 */
#ifndef HL_CUBOID_H
#define HL_CUBOID_H

#include "tensor/block.h"
#include <halo/backend.h>

/* The cells whose coordinate along each axis is in its range; empty where a range is. */
typedef struct hl_cuboid { hl_range axis[HALO_DIMS]; } hl_cuboid;

hl_cuboid hl_cuboid_whole(const int64_t extent[HALO_DIMS]);
int64_t hl_cuboid_cells(const hl_cuboid *b);
hl_cuboid hl_cuboid_meet(const hl_cuboid *a, const hl_cuboid *b);
bool hl_cuboid_equal(const hl_cuboid *a, const hl_cuboid *b);
bool hl_cuboid_inside(const hl_cuboid *a, const hl_cuboid *b);

/* Cells of one box that are cells of another: `cells`, and there at cell + shift. */
typedef struct hl_image {
    hl_cuboid cells;
    int64_t shift[HALO_DIMS];
} hl_image;

/*
 * The parts of `have`, which lies inside the array, that `want` takes where the array is repeated along periodic axes: `want` may reach beyond the borders, and hold
 * a cell more than once. Along the other axes what is outside is nobody's. image[room] in a fixed order; returns their number, of which no more than `room` are
 * written.
 */
int hl_cuboid_images(const hl_cuboid *have, const hl_cuboid *want, const int64_t extent[HALO_DIMS], const bool periodic[HALO_DIMS], int room, hl_image *image);

typedef enum hl_tiling { HL_TILING_GOOD = 0, HL_TILING_OUTSIDE, HL_TILING_OVERLAP, HL_TILING_HOLE } hl_tiling;

/* Do n boxes, empty ones among them, tile the array? If not: `cell` is a cell outside it of box who[0], one of two boxes who[0] and who[1], or one of none. */
hl_tiling hl_cuboid_tiling(const hl_cuboid *list, int n, const int64_t extent[HALO_DIMS], int who[2], int64_t cell[HALO_DIMS]);

#endif
