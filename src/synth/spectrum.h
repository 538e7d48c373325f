/* SPDX-License-Identifier: Apache-2.0 */
/* spectrum.h -- the power spectrum of a periodic volume. */
#ifndef HL_SYNTH_SPECTRUM_H
#define HL_SYNTH_SPECTRUM_H

#include "synth/assign.h"

typedef struct hl_shell {
    double k;     /* mean wave number of its modes, in units of 2 pi / (longest side) */
    double power; /* mean |delta_k|^2: P(k) / V */
    double modes; /* how many, k and -k as one (half for modes that are their own conjugate) */
} hl_shell;

/* A plan for volumes of D x H x W cells and shells m - 1/2 <= k < m + 1/2, m = 1 .. shells. */
typedef struct hl_spectrum hl_spectrum;

/* scheme: whose window is divided out; 0: none. shells 0: up to the Nyquist wave number of the shortest side.
 * D or H may be 1. */
halo_status hl_spectrum_create(halo_context *ctx, const int64_t dim[3], int shells, int scheme,
                               hl_spectrum **out);
void hl_spectrum_destroy(hl_spectrum *s);
int hl_spectrum_shells(const hl_spectrum *s);

/*
 * Spectrum of delta = x / mean - 1 (x - mean where x is not a density: negative somewhere, or zero on
 * average) of x[D, H, W] with `stride` floats between cells. noise: the white part, 1 / particles for a
 * Poisson sample; it is subtracted as the scheme's window leaves it, before the window is divided out.
 * shell[hl_spectrum_shells].
 */
void hl_spectrum_of(hl_spectrum *s, const float *x, int64_t stride, double noise, hl_shell *shell);

#endif
