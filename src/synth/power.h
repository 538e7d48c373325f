/* SPDX-License-Identifier: Apache-2.0 */
/* power.h -- the linear matter power spectrum today. Pure functions; lengths in Mpc/h, wave numbers in h/Mpc.
 * */
#ifndef HL_SYNTH_POWER_H
#define HL_SYNTH_POWER_H

#include <stdbool.h>

#include "synth/cosmology.h"
#include "synth/eh98.h"

typedef struct hl_power {
    hl_cosmology cosmology;
    hl_eh98 transfer;
    bool wiggles;
    double amplitude; /* P(k) = amplitude k^n_s T(k)^2, (Mpc/h)^3 */
} hl_power;

/* The spectrum whose rms in spheres of 8 Mpc/h today is sigma_8. wiggles false takes the no-wiggle transfer
 * function. */
hl_power hl_power_prepare(const hl_cosmology *c, bool wiggles);

/* P(k) at z = 0 in (Mpc/h)^3; P(k, a) = P(k) (D(a)/D(1))^2. */
double hl_power_at(const hl_power *p, double k);

/* rms linear fluctuation today in spheres of radius r Mpc/h. */
double hl_power_sigma(const hl_power *p, double r);

/* The window of a sphere, W(x) = 3 (sin x - x cos x) / x^3. */
double hl_sphere_window(double x);

#endif
