/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutter.h -- boxes out of samples of any extents, as the network takes them: patches for training, windows for evaluation.
 *
 * A transform that needs a whole sample (z-score, over-mean) takes the moments of the whole sample, whatever box is asked for: they are measured slab by slab when they are first needed, and kept
 * (known.h). So a cell has the same value in whichever box it is. Cells beyond the sample are 0 after all transforms, and class 0, or the one that does not count. A cutter is for one thread; not collective.
 */
#ifndef HL_IO_CUTTER_H
#define HL_IO_CUTTER_H

#include "io/known.h"
#include "io/pipeline.h"

typedef struct hl_cutter hl_cutter;

/* Of the options the transforms with their numbers, classes, foreground and seed. The source outlives it. */
halo_status hl_cutter_create(hl_source *source, const hl_loader_options *options, hl_cutter **cutter);
void hl_cutter_destroy(hl_cutter *cutter); /* NULL is allowed */

/* The cells of a sample, D H W, of which any part may lie beyond it: x [C, cells], y [targets, cells]; either may be NULL. HALO_ERR_NONFINITE, HALO_ERR_FORMAT as hl_loader_next. */
halo_status hl_cutter_read(hl_cutter *cutter, int64_t sample, const hl_cells *cells, float *x, float *y);

/* The corner of the patch that (seed, epoch, sample, number) draws, of extents `ext`. Below 0 where the sample is smaller: then it lies in the middle of the patch. */
halo_status hl_cutter_draw(hl_cutter *cutter, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], int64_t lo[3]);

/*
 * What training takes: of the patch of extents `ext` that (seed, epoch, sample, number) draws, moved and changed as the options' `vary` says, the cells x_cells to x and y_cells to y (targets that are
 * numbers: as they are). A cell has the same value in whichever part of the patch it is asked for.
 */
halo_status hl_cutter_take(hl_cutter *cutter, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], const hl_cells *x_cells, float *x, const hl_cells *y_cells, float *y);

/* Whether these options change anything. */
bool hl_varies(const hl_vary *vary);

/* Moments of a whole sample after the first k transforms. */
halo_status hl_cutter_moments(hl_cutter *cutter, int64_t sample, int k, hl_moments *moments);

#endif
