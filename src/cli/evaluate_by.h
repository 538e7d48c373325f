/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_by.h -- scores of samples told apart by a number that each has, such as the dose of a diffraction pattern. */
#ifndef HL_EVALUATE_BY_H
#define HL_EVALUATE_BY_H

#include "train/run.h"

typedef struct hl_by hl_by;

/* `column` is a dataset [sample] beside the data. HALO_ERR_USAGE where the data have none, or more than 64 different numbers. Not collective. */
halo_status hl_by_open(halo_context *ctx, hl_source *source, const char *column, hl_by **by);
void hl_by_close(hl_by *by);
/* An hl_visit_prediction, whose user is the hl_by: rank 0's. */
halo_status hl_by_visit(void *by, hl_source *source, const hl_prediction *p);
/* Of all that were visited: a row for each number and target; members of the object that the caller has opened. */
halo_status hl_by_table(hl_by *by, hl_str *out);
halo_status hl_by_json(hl_by *by, hl_json *json);

#endif
