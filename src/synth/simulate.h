/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h -- one universe: from a cosmology and a seed to particle counts at several redshifts. */
#ifndef HL_SYNTH_SIMULATE_H
#define HL_SYNTH_SIMULATE_H

#include "synth/assign.h"
#include "synth/cosmology.h"

enum { HL_REDSHIFTS_MAX = 16 };

typedef struct hl_simulation_options {
    int64_t grid;      /* cells per side of the result */
    int64_t particles; /* per side */
    int64_t mesh;      /* cells per side of the force */
    int steps;         /* 0: second order Lagrangian perturbation theory alone */
    double start;      /* redshift of the first step */
    hl_scheme scheme;
    bool wiggles; /* baryon wiggles in the linear spectrum */
    bool rsd;     /* positions along the last axis in redshift space */
    int redshifts;
    double redshift[HL_REDSHIFTS_MAX]; /* one channel each, in this order */
    int threads;
} hl_simulation_options;

/* Buffers and plans of one shape, used for one universe after another. Belongs to one thread at a time. */
typedef struct hl_simulation hl_simulation;

typedef struct hl_simulation_times {
    double seconds, fft_seconds;
} hl_simulation_times;

/* Refuses options that make no sense, naming them (HALO_ERR_USAGE). */
halo_status hl_simulation_check(halo_context *ctx, const hl_simulation_options *options);

/* slabs: the ranks that share each universe, NULL for this one alone. particles, mesh and grid must be
 * multiples of the ranks. Collective over the slabs. */
halo_status hl_simulation_create(halo_context *ctx, const hl_simulation_options *options, hl_slabs *slabs,
                                 hl_simulation **out);
void hl_simulation_destroy(hl_simulation *s);

/* Bytes that a simulation with these options takes on each of `ranks` that share it, its part of the result
 * included. */
int64_t hl_simulation_bytes(const hl_simulation_options *options, int ranks);

/* Values of hl_simulate's result on this rank. */
int64_t hl_simulation_values(const hl_simulation *s);

/*
 * Makes universe number `universe` of `seed` in a box of `box` Mpc/h. counts: this rank's planes of [grid,
 * grid, grid, redshifts], the published order, in particles per cell: whole numbers for ngp. A pure function
 * of its arguments and the options, whatever the ranks and threads. times may be NULL. Collective over the
 * slabs.
 */
halo_status hl_simulate(hl_simulation *s, const hl_cosmology *cosmology, double box, uint64_t seed,
                        uint64_t universe, float *counts, hl_simulation_times *times);

#endif
