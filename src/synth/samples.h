/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h -- a data set as the baseline sees it: a row of features and targets per sample. Inside synth. */
#ifndef HL_SYNTH_SAMPLES_H
#define HL_SYNTH_SAMPLES_H

#include "synth/baseline.h"

enum { HL_SAMPLE_TRAIN = 0, HL_SAMPLE_VALIDATION, HL_SAMPLE_TEST, HL_SAMPLE_PARTS };

typedef struct hl_sample_table {
    int64_t n;
    double *x; /* [n, features] */
    double *y; /* [n, targets] physical */
} hl_sample_table;

typedef struct hl_sample_tables {
    halo_context *ctx;
    int features, targets;
    char name[HL_BASELINE_TARGETS_MAX][64];
    hl_sample_table part[HL_SAMPLE_PARTS];
} hl_sample_tables;

/* "train", "val", "test". */
const char *hl_sample_part(int part);

/* The caller frees the tables, also after a failure. */
halo_status hl_sample_tables_read(hl_sample_tables *t, const hl_baseline_data *data);
void hl_sample_tables_free(hl_sample_tables *t);

#endif
