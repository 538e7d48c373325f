/* SPDX-License-Identifier: Apache-2.0 */
/* quad.h -- numerical integration of smooth functions of one variable. */
#ifndef HL_SYNTH_QUAD_H
#define HL_SYNTH_QUAD_H

typedef double (*hl_integrand)(double x, const void *arg);

/* Integral of f over [lo, hi] by eight-point Gauss-Legendre on each of `panels` equal parts. lo > hi gives
 * the negative. */
double hl_integrate(hl_integrand f, const void *arg, double lo, double hi, int panels);

#endif
