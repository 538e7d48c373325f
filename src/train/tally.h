/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h -- the metrics of some samples, of whichever kind their targets need: numbers, volumes, or class numbers of either. */
#ifndef HL_TALLY_H
#define HL_TALLY_H

#include "train/run.h"

typedef struct hl_tally { /* one of them; all NULL: none */
    hl_metrics *numbers;
    hl_voxel_metrics *voxels;
    hl_class_metrics *classes;
} hl_tally;

/* For samples of the source, targets as volumes or not; classes: how many, 0: targets are no class numbers. */
halo_status hl_tally_create(const hl_run *run, const hl_source *source, bool volumes, int classes, hl_tally *tally);
void hl_tally_destroy(hl_tally *tally);

/* The cells of a box of sample number `sample`, in stored units; numbers, and classes of whole samples, have no box. */
halo_status hl_tally_add(hl_tally *tally, hl_source *source, int64_t sample, const hl_cells *box, const float *truth, const float *prediction);

/* Makes volumes those that any rank has added. Of numbers every rank adds all; classes of whole samples are one rank's. Collective. */
halo_status hl_tally_merge(hl_tally *tally, halo_context *ctx);

/* Whether any cell that counts was added. */
bool hl_tally_counts(const hl_tally *tally);
/* What hl_evaluation has of them: score [targets], of_class [classes], allocated and named here; NULL where there are no classes. *items: samples, or cells of classes. */
halo_status hl_tally_score(const hl_run *run, hl_tally *tally, hl_score *score, hl_class_score **of_class, double *items);

#endif
