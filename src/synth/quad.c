/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quad.c -- composite Gauss-Legendre quadrature.
 *
 *   integral = sum over panels of (width / 2) * sum_i w_i f(centre + x_i width / 2),   i = 1 .. 8
 *
 * Eight points are exact for polynomials of degree 15, so a smooth integrand over a few panels reaches
 * rounding; every integrand here is smooth after its substitution, which makes an adaptive scheme needless.
 */
#include "synth/quad.h"

static const double node[4] = {0.1834346424956498049, 0.5255324099163289858, 0.7966664774136267396,
                               0.9602898564975362317};
static const double weight[4] = {0.3626837833783619830, 0.3137066458778872873, 0.2223810344533744706,
                                 0.1012285362903762591};

double hl_integrate(hl_integrand f, const void *arg, double lo, double hi, int panels)
{
    double half = 0.5 * (hi - lo) / panels, sum = 0.0;

    for (int p = 0; p < panels; p++) {
        double mid = lo + (2 * p + 1) * half;
        for (int i = 0; i < 4; i++)
            sum += weight[i] * (f(mid - half * node[i], arg) + f(mid + half * node[i], arg));
    }
    return half * sum;
}
