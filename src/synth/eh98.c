/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eh98.c -- the fitting formulae of Eisenstein & Hu, "Baryonic features in the matter transfer function"
 * (1998).
 *
 *   T(k) = (omega_b / omega_m) T_b(k) + (omega_c / omega_m) T_c(k)
 *
 * T_c interpolates between the solutions with and without baryon drag around the sound horizon s; T_b is a
 * damped acoustic oscillation j_0(k s~). The no-wiggle form (their section 4.2) replaces both by one curve
 * with an effective shape parameter. Equation numbers below are theirs. Chosen over a Boltzmann code because
 * it is closed, differentiable in the parameters, and what the public CosmoFlow sets were made with.
 */
#include "synth/eh98.h"

#include <math.h>

#define EULER 2.718281828459045235

/* Sound horizon at the drag epoch (eq. 6) and what it needs; returns R at the drag epoch. */
static double drag_epoch(hl_eh98 *t, double om, double ob, double *z_ratio)
{
    double theta4 = t->theta2 * t->theta2;
    double z_eq = 2.50e4 * om / theta4;                                   /* (2) */
    double b1 = 0.313 * pow(om, -0.419) * (1.0 + 0.607 * pow(om, 0.674)); /* (4) */
    double b2 = 0.238 * pow(om, 0.223);
    double z_drag = 1291.0 * pow(om, 0.251) / (1.0 + 0.659 * pow(om, 0.828)) * (1.0 + b1 * pow(ob, b2));
    double r_drag = 31.5e3 * ob / theta4 / z_drag, r_eq = 31.5e3 * ob / theta4 / z_eq; /* (5) */

    t->k_equality = 0.0746 * om / t->theta2; /* (3) */
    t->sound_horizon = 2.0 / (3.0 * t->k_equality) * sqrt(6.0 / r_eq) *
                       log((sqrt(1.0 + r_drag) + sqrt(r_drag + r_eq)) / (1.0 + sqrt(r_eq)));
    *z_ratio = (1.0 + z_eq) / (1.0 + z_drag);
    return r_drag;
}

static void cold_matter_terms(hl_eh98 *t, double om)
{
    double a1 = pow(46.9 * om, 0.670) * (1.0 + pow(32.1 * om, -0.532)); /* (11) */
    double a2 = pow(12.0 * om, 0.424) * (1.0 + pow(45.0 * om, -0.582));
    double b1 = 0.944 / (1.0 + pow(458.0 * om, -0.708)); /* (12) */
    double b2 = pow(0.395 * om, -0.0266);
    double fb = t->baryons;

    t->alpha_c = pow(a1, -fb) * pow(a2, -fb * fb * fb);
    t->beta_c = 1.0 / (1.0 + b1 * (pow(t->cold, b2) - 1.0));
}

static void baryon_terms(hl_eh98 *t, double om, double ob, double r_drag, double y)
{
    double root = sqrt(1.0 + y), fb = t->baryons;
    double g = y * (-6.0 * root + (2.0 + 3.0 * y) * log((root + 1.0) / (root - 1.0))); /* (15) */

    t->k_silk = 1.6 * pow(ob, 0.52) * pow(om, 0.73) * (1.0 + pow(10.4 * om, -0.95));     /* (7) */
    t->alpha_b = 2.07 * t->k_equality * t->sound_horizon * pow(1.0 + r_drag, -0.75) * g; /* (14) */
    t->beta_b = 0.5 + fb + (3.0 - 2.0 * fb) * sqrt(17.2 * om * 17.2 * om + 1.0);         /* (24) */
    t->beta_node = 8.41 * pow(om, 0.435);                                                /* (23) */
}

hl_eh98 hl_eh98_prepare(const hl_cosmology *c)
{
    double om = c->omega_m * c->h * c->h, ob = c->omega_b * c->h * c->h;
    double theta = c->t_cmb / 2.7, fb = c->omega_b / c->omega_m, y;
    hl_eh98 t = {.h = c->h, .baryons = fb, .cold = 1.0 - fb, .theta2 = theta * theta};
    double r_drag = drag_epoch(&t, om, ob, &y);

    cold_matter_terms(&t, om);
    baryon_terms(&t, om, ob, r_drag, y);
    t.gamma = c->omega_m * c->h;
    t.sound_fit = 44.5 * log(9.83 / om) / sqrt(1.0 + 10.0 * pow(ob, 0.75));               /* (26) */
    t.alpha_gamma = 1.0 - 0.328 * log(431.0 * om) * fb + 0.38 * log(22.3 * om) * fb * fb; /* (31) */
    return t;
}

/* T~_0(k, alpha, beta), eq. (19, 20); q = k / (13.41 k_eq) */
static double pressureless(double q, double alpha, double beta)
{
    double c = 14.2 / alpha + 386.0 / (1.0 + 69.9 * pow(q, 1.08));
    double l = log(EULER + 1.8 * beta * q);
    return l / (l + c * q * q);
}

static double cold_matter_transfer(const hl_eh98 *t, double q, double ks) /* (17, 18) */
{
    double x = ks / 5.4, f = 1.0 / (1.0 + x * x * x * x);
    return f * pressureless(q, 1.0, t->beta_c) + (1.0 - f) * pressureless(q, t->alpha_c, t->beta_c);
}

static double baryon_transfer(const hl_eh98 *t, double q, double k, double ks) /* (21, 22) */
{
    double node = t->beta_node / ks, late = t->beta_b / ks;
    double phase = ks / cbrt(1.0 + node * node * node);
    double j0 = phase < 1e-4 ? 1.0 - phase * phase / 6.0 : sin(phase) / phase;
    double drop = pressureless(q, 1.0, 1.0) / (1.0 + ks * ks / (5.2 * 5.2));
    double wave = t->alpha_b / (1.0 + late * late * late) * exp(-pow(k / t->k_silk, 1.4));

    return (drop + wave) * j0;
}

double hl_eh98_transfer(const hl_eh98 *t, double k_h)
{
    double k = k_h * t->h, ks = k * t->sound_horizon, q = k / (13.41 * t->k_equality);

    if (!(k > 0.0)) return 1.0;
    return t->baryons * baryon_transfer(t, q, k, ks) + t->cold * cold_matter_transfer(t, q, ks);
}

double hl_eh98_transfer_no_wiggle(const hl_eh98 *t, double k_h)
{
    double x = 0.43 * k_h * t->h * t->sound_fit;
    double gamma = t->gamma * (t->alpha_gamma + (1.0 - t->alpha_gamma) / (1.0 + x * x * x * x)); /* (30) */
    double q = k_h * t->theta2 / gamma;                                                          /* (28) */
    double l = log(2.0 * EULER + 1.8 * q), c = 14.2 + 731.0 / (1.0 + 62.5 * q);                  /* (29) */

    return l / (l + c * q * q);
}
