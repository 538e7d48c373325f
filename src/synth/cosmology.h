/* SPDX-License-Identifier: Apache-2.0 */
/* cosmology.h -- background and growth of a flat universe of matter and a cosmological constant. Pure
 * functions. */
#ifndef HL_SYNTH_COSMOLOGY_H
#define HL_SYNTH_COSMOLOGY_H

typedef struct hl_cosmology {
    double omega_m; /* matter today over the critical density, baryons included; the rest is Lambda */
    double omega_b; /* baryons today */
    double h;       /* H_0 / (100 km/s/Mpc) */
    double n_s;     /* slope of the primordial spectrum */
    double sigma_8; /* linear rms fluctuation today in spheres of 8 Mpc/h */
    double t_cmb;   /* K */
} hl_cosmology;

/* Temperature of the microwave background, K. */
#define HL_T_CMB 2.7255

/* E(a) = H(a) / H_0. */
double hl_expansion(const hl_cosmology *c, double a);

/* Omega_m(a), the matter fraction at scale factor a. */
double hl_matter_fraction(const hl_cosmology *c, double a);

/* Linear growing mode, normalised so that D(a) -> a deep in matter domination. */
double hl_growth(const hl_cosmology *c, double a);

/* f = d ln D / d ln a. */
double hl_growth_rate(const hl_cosmology *c, double a);

/* First and second order growth for displacements x = q + d1 psi1 + d2 psi2, scaled so that d1(1) = 1, and
 * their derivatives by a. d2 is positive here; it is near (3/7) d1^2. */
typedef struct hl_lpt_growth {
    double d1, d2, d1_prime, d2_prime;
} hl_lpt_growth;

hl_lpt_growth hl_lpt_growth_at(const hl_cosmology *c, double a);

#endif
