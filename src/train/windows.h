/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.h -- evaluation of whole volumes of any extents: in overlapping windows, or each in one piece (shapes.h).
 */
#ifndef HL_TRAIN_WINDOWS_H
#define HL_TRAIN_WINDOWS_H

#include "train/run.h"

/* ------------------------------------------------------------------------------------------------------------ geometry */

/*
 * Windows of p cells along an axis of n: evenly spread from one end to the other, neighbours at most (1 - overlap) p apart. One in the middle where n <= p, which then begins at or below 0. Pure functions;
 * *lo is freed by the caller.
 */
halo_status hl_windows_along(halo_context *ctx, int64_t n, int64_t p, double overlap, int64_t **lo, int64_t *count);
/* weight [count, p]: of window i at its cell j, exp(-(j - (p-1)/2)^2 / (2 (p/8)^2)) over the sum of those of all windows that have the cell: for each cell they add up to 1. */
void hl_window_weights(int64_t count, const int64_t *lo, int64_t p, float *weight);

/* ---------------------------------------------------------------------------------------------------------------- walk */

/* A finished part of a volume: truth and value [targets, box] in stored units, class numbers of classes. */
typedef halo_status (*hl_take_part)(void *user, int64_t sample, const hl_cells *box, const float *truth, const float *value);

typedef struct hl_windows_sums {
    double loss, weight; /* of windows, of this rank; to be added up over all */
    int64_t volumes;     /* of all ranks */
} hl_windows_sums;

/*
 * Every sample of the source once, sample i by the group of ranks i mod groups; the first `most` of each group (0: all). take gets parts of volumes on the first rank of each group; visit as in
 * hl_run_evaluate. Memory beside the program: the planes of classes that windows of one depth cover, on the first rank of a group; and for visitors on several groups, a volume. Collective; also ends
 * as hl_run_look_for_stop does.
 */
halo_status hl_run_windows(hl_run *run, hl_source *source, const hl_loader_options *options, int64_t most, hl_take_part take, void *take_user, hl_visit_prediction visit, void *user,
                           hl_windows_sums *sums);

/* Memory that an evaluation of a source in windows takes on this rank beside the program: of the volume with the largest planes. Not collective. */
int64_t hl_windows_bytes(const hl_run *run, hl_source *source);

#endif
