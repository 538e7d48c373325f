/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h -- rows of any type as double, which holds every value of the other types exactly; and the copy of a box between any two arrangements.
 * Conversion to integers rounds to nearest and saturates, NaN becomes the lowest value; to f16 and bf16 through f32, to nearest even.
 */
#ifndef HL_ROWS_H
#define HL_ROWS_H

#include "cpu.h"

/* out[i] = element first + i * stride of base */
void hl_row_load(halo_dtype type, const void *base, int64_t first, int64_t stride, int n, double *out);
/* element first + i * stride of base = in[i] */
void hl_row_store(halo_dtype type, void *base, int64_t first, int64_t stride, int n, const double *in);

/* One side of a copy: cell (n c d h w) of the box is element offset + hl_offset(t, n c d h w) of the allocation. */
typedef struct hl_side {
    halo_dtype type;
    hl_strides t;
    int64_t offset;
} hl_side;

hl_side hl_side_of(const halo_operand *op);
/* The features of a vector [N, F] as a volume of extents ext[C..W], in order (c,d,h,w) or (d,h,w,c). False where they are not contiguous. */
bool hl_side_of_vector(const halo_operand *op, const int64_t ext[HALO_DIMS], bool channels_last, hl_side *side);

/* y = x, or y += x, over the box `ext`, on the device's threads. */
void hl_copy_sides(const hl_cpu_device *dev, const int64_t ext[HALO_DIMS], const hl_side *x, const void *xp, const hl_side *y, void *yp,
                   bool accumulate);

#endif
