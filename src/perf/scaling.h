/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaling.h -- the same training step on 1, 2, 4 ... ranks of one allocation. Weak: every rank keeps the settings' batch; strong: all ranks share it.
 *
 * Predicted, from the first row (T its step, s its samples a rank, u its update, which does not depend on the batch, x its exposed communication) and from
 * what the choice of groups expects on P ranks (the end of the last sum after the end of backward, e_P):
 *     T_P = (T - x - u) s_P / s + u + e_P
 */
#ifndef HL_SCALING_H
#define HL_SCALING_H

#include "perf/bench.h"

enum { HL_SCALING_MAX = 32 };

typedef struct hl_scaling_row {
    int ranks;
    int64_t batch;             /* of all ranks; 0: there are fewer samples than ranks, nothing was run */
    double step, predicted;    /* seconds */
    double samples_per_second;
    double efficiency;         /* of samples per second and rank, against the first row */
    double exposed;            /* communication that nothing hid, seconds of a step */
} hl_scaling_row;

/* weak[n] and strong[n], whole on rank 0. ranks[n]: rising, none above the context's. The others sleep meanwhile. Collective. */
halo_status hl_bench_scaling(halo_context *ctx, const hl_settings *set, const hl_bench_options *options, const int *ranks, int n, hl_scaling_row *weak,
                             hl_scaling_row *strong);

#endif
