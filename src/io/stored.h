/* SPDX-License-Identifier: Apache-2.0 */
/* stored.h -- samples that leave the loader as they are stored, for a device that turns and transforms them (HALO_OP_PREPARE): what it needs to know of each. Pure functions. */
#ifndef HL_IO_STORED_H
#define HL_IO_STORED_H

#include "io/pipeline.h"

/* What the transform is there. */
halo_transform hl_transform_stored(hl_transform kind);

/* number[HALO_SAMPLE_NUMBERS] of a sample that is there and is turned and shifted so. */
void hl_stored_turn(hl_symmetry s, const int64_t shift[3], double *number);

/* Its constants for the n values x of a sample, one pair for each transform; means and deviations of these values where a transform asks for them. False where a value is not finite, or the transforms are not
 * defined for it or give what is not finite. */
bool hl_stored_constants(const hl_loader_options *o, halo_dtype type, const void *x, int64_t n, double *number);

#endif
