/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h -- the cells of a box as one index, for kernels: what C works out when a plan is made, and .cu files take by value.
 *
 * Dimensions that lie behind each other in every operand are one, so that dense tensors have a single dimension and need no division. Below 2^31
 * cells an index is taken apart by multiplications (Granlund & Montgomery, "Division by invariant integers using multiplication", 1994).
 */
#ifndef HL_CUDA_CELLS_H
#define HL_CUDA_CELLS_H

#include <stdint.h>

enum { HL_CELL_DIMS = 5, HL_CELL_OPERANDS = 5 };

/* Outermost dimension first. stride[a]: of operand a, in elements; an operand may also be a function of the place, such as the channel's number. */
typedef struct hl_cells {
    int64_t total, ext[HL_CELL_DIMS], stride[HL_CELL_OPERANDS][HL_CELL_DIMS];
    uint32_t multiplier[HL_CELL_DIMS], shift[HL_CELL_DIMS];
    int dims, few; /* few: below 2^31 cells */
    int last;      /* places: n d h w c, else n c d h w */
} hl_cells;

/* A tensor at its first cell, for kernels that go by coordinates: extents and element strides in n c d h w. */
typedef struct hl_view {
    int64_t ext[HL_CELL_DIMS], stride[HL_CELL_DIMS];
} hl_view;

/* Windows of pooling: region that exists (box and margin) in d h w, relative to the box. */
typedef struct hl_pooling {
    int64_t kernel[3], stride[3], dilation[3], pad[3], lo[3], hi[3];
    int max, count_pad, wide; /* wide: places in the window are i32, else u8 */
    int signs, act;           /* backward of an average and of the activation before it, whose signs are saved: see ACT_POOL_BWD */
    float slope;
} hl_pooling;

#endif
