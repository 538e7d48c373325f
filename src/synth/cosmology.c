/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosmology.c -- expansion and growth in flat Lambda-CDM without radiation.
 *
 *   E(a)^2 = Omega_m a^-3 + 1 - Omega_m
 *   D(a)   = (5/2) Omega_m E(a) * integral_0^a da' / (a' E(a'))^3             (Heath 1977)
 *   f(a)   = Omega_m(a) (5 a / (2 D) - 3/2)                                    (its logarithmic derivative)
 *   D2'' + (2 + d ln E / d ln a) D2' = (3/2) Omega_m(a) (D2 + D1^2)            (' = d / d ln a)
 *
 * The integral is evaluated with a = t^2, which removes the a^(3/2) branch point at 0. D2 is the growing
 * solution of the second order equation (Bouchet et al. 1995) with the sign that makes it positive; it is
 * integrated rather than fitted, because the COLA frame needs displacement and acceleration of second order
 * to agree exactly.
 */
#include "synth/cosmology.h"

#include <math.h>

#include "synth/quad.h"

double hl_expansion(const hl_cosmology *c, double a)
{
    return sqrt(c->omega_m / (a * a * a) + 1.0 - c->omega_m);
}

double hl_matter_fraction(const hl_cosmology *c, double a)
{
    return c->omega_m / (c->omega_m + (1.0 - c->omega_m) * a * a * a);
}

/* da / (a E)^3 with a = t^2: 2 t^4 / (Omega_m + Omega_Lambda t^6)^(3/2) dt */
static double growth_integrand(double t, const void *arg)
{
    const hl_cosmology *c = arg;
    double t2 = t * t;
    return 2.0 * t2 * t2 * pow(c->omega_m + (1.0 - c->omega_m) * t2 * t2 * t2, -1.5);
}

double hl_growth(const hl_cosmology *c, double a)
{
    return 2.5 * c->omega_m * hl_expansion(c, a) * hl_integrate(growth_integrand, c, 0.0, sqrt(a), 6);
}

double hl_growth_rate(const hl_cosmology *c, double a)
{
    return hl_matter_fraction(c, a) * (2.5 * a / hl_growth(c, a) - 1.5);
}

/* Both growth functions and their slopes d / d ln a. */
typedef struct growth_state {
    double d1, s1, d2, s2;
} growth_state;

static growth_state growth_rate_of(const hl_cosmology *c, double a, growth_state y)
{
    double om = hl_matter_fraction(c, a), drag = 2.0 - 1.5 * om;
    return (growth_state){y.s1, 1.5 * om * y.d1 - drag * y.s1, y.s2,
                          1.5 * om * (y.d2 + y.d1 * y.d1) - drag * y.s2};
}

static growth_state moved(growth_state y, double step, growth_state rate)
{
    return (growth_state){y.d1 + step * rate.d1, y.s1 + step * rate.s1, y.d2 + step * rate.d2,
                          y.s2 + step * rate.s2};
}

/* Fourth order Runge-Kutta in ln a from deep matter domination, where D1 = a and D2 = (3/7) a^2. */
static growth_state integrate_growth(const hl_cosmology *c, double to)
{
    const int steps = 200;
    double a = fmin(1e-3, 0.1 * to), step = log(to / a) / steps, half = exp(0.5 * step);
    growth_state y = {a, a, 3.0 / 7.0 * a * a, 6.0 / 7.0 * a * a};

    for (int i = 0; i < steps; i++, a *= half * half) {
        growth_state k1 = growth_rate_of(c, a, y);
        growth_state k2 = growth_rate_of(c, a * half, moved(y, 0.5 * step, k1));
        growth_state k3 = growth_rate_of(c, a * half, moved(y, 0.5 * step, k2));
        growth_state k4 = growth_rate_of(c, a * half * half, moved(y, step, k3));
        y = moved(moved(moved(moved(y, step / 6.0, k1), step / 3.0, k2), step / 3.0, k3), step / 6.0, k4);
    }
    return y;
}

hl_lpt_growth hl_lpt_growth_at(const hl_cosmology *c, double a)
{
    double today = hl_growth(c, 1.0), d1 = hl_growth(c, a) / today;
    growth_state y = integrate_growth(c, a);

    return (hl_lpt_growth){
        .d1 = d1,
        .d2 = y.d2 / (today * today),
        .d1_prime = hl_growth_rate(c, a) * d1 / a,
        .d2_prime = y.s2 / (a * today * today),
    };
}
