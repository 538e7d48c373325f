/* SPDX-License-Identifier: Apache-2.0 */
/* multislice.h -- how a wave passes a crystal. */
#ifndef HL_SYNTH_CBED_MULTISLICE_H
#define HL_SYNTH_CBED_MULTISLICE_H

#include <complex.h>
#include <fftw3.h>

#include "synth/cbed/crystal.h"

struct hl_potential;

typedef struct hl_multislice {
    halo_context *ctx;
    int64_t n, slices;
    double box, dz;
    double _Complex *transmission; /* [slices, n, n] */
    double _Complex *propagator;   /* [n, n], over n^2: what FFTW leaves out */
    fftw_plan forward, backward;
} hl_multislice;

/* The highest frequency, 1/A, that waves and potentials have: two thirds of the grid's. */
double hl_band_limit(int64_t n, double box);

/* For electrons of `kv` kilovolts. Potential and box are not kept. HALO_ERR_STOPPED, without a message, when `stop`, which may be NULL, says so. */
halo_status hl_multislice_create(halo_context *ctx, const struct hl_potential *potential, double kv, int threads, const hl_stop *stop, hl_multislice **multislice);
void hl_multislice_destroy(hl_multislice *multislice);

/* wave [n, n]: modes of the probe, which become those behind the crystal. work [n, n] is overwritten; both of fftw_alloc_complex. Several threads may run, each with its own. */
void hl_multislice_run(const hl_multislice *multislice, double _Complex *wave, double _Complex *work);

/* A transform of [n, n] from one array to another, both of fftw_alloc_complex. Thread-safe; NULL where memory is lacking. */
fftw_plan hl_fft_plan(int64_t n, int sign);
void hl_fft_plan_free(fftw_plan plan);

#endif
