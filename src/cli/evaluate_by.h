/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_by.h -- scores of samples told apart by a number that each has, such as the dose of a diffraction pattern. */
#ifndef HL_EVALUATE_BY_H
#define HL_EVALUATE_BY_H

#include "train/run.h"

typedef struct hl_by hl_by;

/* `column` is a dataset [sample] beside the data. HALO_ERR_USAGE where the data have none, or more than 64 different numbers. Not collective. */
halo_status hl_by_open(halo_context *ctx, hl_source *source, const char *column, hl_by **by);
void hl_by_close(hl_by *by);
/* What hl_run_evaluate is to tell apart: a part for each number. NULL of NULL. */
const hl_parts *hl_by_parts(const hl_by *by);
/* Of the evaluation with these parts: a row for each number and target; members of the object that the caller has opened. */
void hl_by_table(const hl_by *by, const hl_evaluation *e, hl_str *out);
void hl_by_json(const hl_by *by, const hl_evaluation *e, hl_json *json);

#endif
