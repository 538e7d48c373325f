/* SPDX-License-Identifier: Apache-2.0 */
/*
 * power.c -- linear matter power spectrum normalised to sigma_8.
 *
 *   P(k)       = A k^n_s T(k)^2
 *   sigma(R)^2 = 1/(2 pi^2) integral dln k  k^3 P(k) W(k R)^2,   W(x) = 3 (sin x - x cos x) / x^3
 *
 * A follows from sigma(8 Mpc/h) = sigma_8. The integral runs in ln k up to k R = 200, where W^2 < 1e-7 k^3 P
 * has died out; 300 panels resolve the oscillations of the window there.
 */
#include "synth/power.h"

#include <math.h>

#include "synth/quad.h"

double hl_sphere_window(double x)
{
    if (x < 1e-2) return 1.0 - x * x / 10.0;
    return 3.0 * (sin(x) - x * cos(x)) / (x * x * x);
}

double hl_power_at(const hl_power *p, double k)
{
    double t;

    if (!(k > 0.0)) return 0.0;
    t = p->wiggles ? hl_eh98_transfer(&p->transfer, k) : hl_eh98_transfer_no_wiggle(&p->transfer, k);
    return p->amplitude * pow(k, p->cosmology.n_s) * t * t;
}

typedef struct sphere {
    const hl_power *power;
    double r;
} sphere;

static double sigma_integrand(double lnk, const void *arg)
{
    const sphere *s = arg;
    double k = exp(lnk), w = hl_sphere_window(k * s->r);
    return k * k * k * hl_power_at(s->power, k) * w * w;
}

double hl_power_sigma(const hl_power *p, double r)
{
    const double pi = 3.14159265358979323846;
    sphere s = {p, r};
    double square = hl_integrate(sigma_integrand, &s, log(1e-6), log(200.0 / r), 300) / (2.0 * pi * pi);

    return sqrt(square);
}

hl_power hl_power_prepare(const hl_cosmology *c, bool wiggles)
{
    hl_power p = {.cosmology = *c, .transfer = hl_eh98_prepare(c), .wiggles = wiggles, .amplitude = 1.0};
    double ratio = c->sigma_8 / hl_power_sigma(&p, 8.0);

    p.amplitude = ratio * ratio;
    return p;
}
