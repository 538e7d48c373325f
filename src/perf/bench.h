/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h -- times a training step on generated input, and beside it, in the same process, what the machine can do: CBLAS sgemm (2048^3, same
 * threads, best of 10 before and after, the larger of the two) and a memory triad. Ratios of such numbers carry from machine to machine.
 */
#ifndef HL_BENCH_H
#define HL_BENCH_H

#include "train/run.h"

typedef struct hl_bench_options {
    int warmup, steps; /* runs not timed; timed ones */
    bool trace;        /* trace the timed ones */
    bool steps_only;   /* leave the machine's limits out */
} hl_bench_options;

typedef struct hl_bench {
    double step_seconds, step_least; /* median and minimum */
    double gflops;                   /* flops of a step / median */
    double sgemm_gflops, stream_gbs; /* NaN where the device cannot tell */
    double fraction_of_sgemm;
    size_t peak_rss_bytes;
    size_t device_bytes; /* of a device's own memory that are taken, its libraries' and other processes' among them; 0 where it has none */
    double flops_step; /* of a rank */
    /* several ranks: times of the slowest, of a step */
    double samples_per_second;   /* of all */
    double comm_seconds;         /* sums of gradients under way */
    double comm_exposed_seconds; /* computing waited: for sums of gradients, and for statistics of norms */
} hl_bench;

/* Collective. `run` was created for training. Groups of the last step are read from run->reducer. Per-op times are read from run->train afterwards (hl_program_op). */
halo_status hl_bench_step(hl_run *run, const hl_bench_options *options, hl_bench *out);

#endif
