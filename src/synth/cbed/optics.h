/* SPDX-License-Identifier: Apache-2.0 */
/* optics.h -- the beam: its wavelength, what it feels of a potential, and the probe that a lens makes of it. */
#ifndef HL_SYNTH_CBED_OPTICS_H
#define HL_SYNTH_CBED_OPTICS_H

#include <complex.h>
#include <stdint.h>

/* Of electrons of `kv` kilovolts, A. */
double hl_electron_wavelength(double kv);
/* The phase that a projected potential of 1 V A gives them, rad. */
double hl_interaction(double kv);

typedef struct hl_lens {
    double kv;
    double aperture; /* half angle of the cone, rad */
    double defocus;  /* A; above 0: the beam crosses over before the crystal, and the shadow that it throws stands upright */
    double cs;       /* spherical aberration, A */
} hl_lens;

/* Aberrations: the phase, rad, that a wave of k^2, 1/A^2, is behind. */
double hl_aberration(const hl_lens *lens, double k2);
/* Spatial frequency, 1/A, of mode i of n on a box of so many A: 0, 1, ..., n/2 - 1, -n/2, ..., -1 over the box. */
double hl_frequency(int64_t i, int64_t n, double box);
/* The probe over the place `at` (A, along H and W of the box): its modes [n, n], the sum of whose squares is 1. The aperture's edge is one mode wide. */
void hl_probe(const hl_lens *lens, int64_t n, double box, const double at[2], double _Complex *wave);

#endif
