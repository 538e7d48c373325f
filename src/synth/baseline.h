/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.h -- what a network has to beat: ridge regression on two-point statistics, `halo synth baseline`.
 * */
#ifndef HL_SYNTH_BASELINE_H
#define HL_SYNTH_BASELINE_H

#include "base/base.h"
#include "base/json.h"
#include "base/str.h"

enum { HL_BASELINE_TARGETS_MAX = 64 };

typedef struct hl_baseline_target {
    char name[64];
    double error;          /* mean |prediction - truth| on the test set, physical units */
    double constant_error; /* that of the median of the test set's truths: the best a constant can do */
    double correlation;
    double lambda; /* of the penalty, chosen on the validation set */
} hl_baseline_target;

typedef struct hl_baseline {
    int targets, features;
    int64_t train, validation, test; /* samples */
    double seconds;
    hl_baseline_target target[HL_BASELINE_TARGETS_MAX];
} hl_baseline;

/* What to fit and to test on. */
typedef struct hl_baseline_data {
    const char *path;    /* a directory with train, val and test in it (directories or NAME.h5 files), or one data
                          * set, which is then split 80 : 10 : 10 by universes with `seed`; NULL: the three below */
    const char *part[3]; /* data sets for training, for the penalty's choice, and for the test */
    int64_t crop[3];     /* extents of sub-volumes, 0: whole universes */
    uint64_t seed;
} hl_baseline_data;

/* Not collective. */
halo_status hl_baseline_fit(halo_context *ctx, const hl_baseline_data *data, hl_baseline *result);

/* The result as a table and as an object. */
void hl_baseline_table(const hl_baseline *b, hl_str *out);
void hl_baseline_json(const hl_baseline *b, hl_json *json);

#endif
