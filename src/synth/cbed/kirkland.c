/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kirkland.c -- scattering factors of neutral atoms as three Lorentzians and three Gaussians,
 *
 *     f(q)   = sum_i a_i / (q^2 + b_i) + c_i exp(-d_i q^2)
 *     v_z(r) = 47.878 V A^2 sum_i 2 pi a_i K_0(2 pi r sqrt(b_i)) + (pi c_i / d_i) exp(-pi^2 r^2 / d_i)
 *
 * (E. J. Kirkland, "Advanced Computing in Electron Microscopy", 2nd edition, 2010, appendix C.) The Lorentzians give f the right fall with q^-2 (Mott and Bethe: sum_i a_i = Z / (2 pi^2 a_0)), which sums of Gaussians
 * have not, so that scattering to high angles grows with Z as it should.
 */
#include "synth/cbed/kirkland.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "synth/cbed/kirkland_table.h"

int hl_element_number(const char *symbol)
{
    char name[3] = {0};
    if (!isupper((unsigned char)symbol[0])) return 0;
    for (int i = 0; i < 2 && isalpha((unsigned char)symbol[i]); i++) name[i] = symbol[i];
    if (isupper((unsigned char)name[1])) name[1] = '\0'; /* OH1: an oxygen */
    for (int letters = 2; letters > 0; name[--letters] = '\0')
        for (int z = 1; z <= HL_ELEMENTS; z++)
            if (strcmp(hl_kirkland_rows[z - 1].symbol, name) == 0) return z;
    return 0;
}

const char *hl_element_symbol(int z) { return z >= 1 && z <= HL_ELEMENTS ? hl_kirkland_rows[z - 1].symbol : "?"; }

double hl_kirkland(int z, double q2)
{
    const struct hl_kirkland_row *k = &hl_kirkland_rows[z - 1];
    double f = 0;
    for (int i = 0; i < 3; i++) f += k->a[i] / (q2 + k->b[i]) + k->c[i] * exp(-k->d[i] * q2);
    return f;
}

/* The modified Bessel function K_0(x) = integral from 0 to infinity of exp(-x cosh t) dt: the trapezoidal rule converges as fast as one likes, the integrand is even and all its derivatives vanish at the end. */
static double bessel_k0(double x)
{
    const double h = 1.0 / 16;
    double sum = 0.5 * exp(-x);
    for (int i = 1; i < 16 * 16; i++) {
        double e = x * cosh(h * i);
        if (e > 700) break;
        sum += exp(-e);
    }
    return h * sum;
}

double hl_kirkland_projected(int z, double r)
{
    const struct hl_kirkland_row *k = &hl_kirkland_rows[z - 1];
    double v = 0;
    for (int i = 0; i < 3; i++) v += 2 * M_PI * k->a[i] * bessel_k0(2 * M_PI * r * sqrt(k->b[i])) + M_PI * k->c[i] / k->d[i] * exp(-M_PI * M_PI * r * r / k->d[i]);
    return HL_POTENTIAL_OF_FACTOR * v;
}
