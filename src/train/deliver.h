/* SPDX-License-Identifier: Apache-2.0 */
/* deliver.h -- predicted volumes, of which every rank has a part, to the visitor of rank 0. */
#ifndef HL_DELIVER_H
#define HL_DELIVER_H

#include "train/run.h"

typedef struct hl_delivery hl_delivery;

/* box: what this rank predicts of each volume. Collective, as is the end. */
halo_status hl_delivery_create(const hl_run *run, hl_source *source, const hl_cells *box, hl_delivery **delivery);
void hl_delivery_destroy(hl_delivery *delivery);

/*
 * One step: ids [data, batch] of all groups of ranks, -1 for padding; prediction [batch, targets, box] of this rank. visit and its status are rank 0's. All take
 * part whatever it says; to be agreed on afterwards.
 */
halo_status hl_deliver(const hl_delivery *delivery, int64_t batch, const int64_t *ids, const float *prediction, hl_visit_prediction visit, void *user);

/* Whether the rank `number` of a group counts: not where all have the whole volume, but for the first. */
bool hl_delivers(const hl_run *run, const hl_cells *box, const int64_t ext[3], int64_t number);

#endif
