/* SPDX-License-Identifier: Apache-2.0 */
/* eh98.h -- the matter transfer function of Eisenstein and Hu. */
#ifndef HL_SYNTH_EH98_H
#define HL_SYNTH_EH98_H

#include "synth/cosmology.h"

/* What depends on the cosmology alone; lengths in Mpc, wave numbers in 1/Mpc (no h). */
typedef struct hl_eh98 {
    double h, baryons, cold; /* h; omega_b / omega_m; 1 - baryons */
    double k_equality, k_silk, sound_horizon;
    double alpha_c, beta_c, alpha_b, beta_b, beta_node;
    double gamma, alpha_gamma, sound_fit,
        theta2; /* no-wiggle form: omega_m h, alpha, fitted sound horizon, (T/2.7)^2 */
} hl_eh98;

hl_eh98 hl_eh98_prepare(const hl_cosmology *c);

/* T(k) with baryon wiggles; k in h/Mpc; T -> 1 for k -> 0. */
double hl_eh98_transfer(const hl_eh98 *t, double k);

/* T(k) of the fit that follows the broad-band shape without wiggles; k in h/Mpc. */
double hl_eh98_transfer_no_wiggle(const hl_eh98 *t, double k);

#endif
