/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h -- how fast this machine makes universes: `halo bench synth`. */
#ifndef HL_SYNTH_BENCH_H
#define HL_SYNTH_BENCH_H

#include "base/json.h"
#include "base/str.h"
#include "synth/simulate.h"

typedef struct hl_synth_bench {
    hl_simulation_options options;
    int64_t bytes;
    double seconds, fft_seconds; /* of the median run */
    double particles_per_second; /* particles x steps / seconds (x 1 where there are no steps) */
} hl_synth_bench;

/* Makes the same universe `runs` times, after one that is not counted. Not collective. */
halo_status hl_synth_bench_run(halo_context *ctx, const hl_simulation_options *options, double box, int runs,
                               hl_synth_bench *result);

void hl_synth_bench_table(const hl_synth_bench *b, hl_str *out);
void hl_synth_bench_json(const hl_synth_bench *b, hl_json *json);

#endif
