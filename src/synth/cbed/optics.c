/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optics.c -- with e V the energy in keV and m c^2 = 510.99895 keV,
 *
 *     lambda  = h c / sqrt(e V (2 m c^2 + e V))
 *     sigma   = 2 pi / (lambda V) (m c^2 + e V) / (2 m c^2 + e V)
 *     chi(k)  = pi lambda C1 k^2 + (pi / 2) Cs lambda^3 k^4
 *     psi(k)  = A(k) exp(-i chi(k)) exp(-2 pi i k r_s) / norm
 *
 * (E. J. Kirkland, 2010, chapters 2, 3 and 5; C1 is minus his defocus.) By stationary phase the ray of k meets the crystal at r_s + lambda C1 k: with C1 large the pattern is a magnified shadow of what the beam passes.
 */
#include "synth/cbed/optics.h"

#include <math.h>

static const double rest_energy = 510.99895, planck_c = 12.398419843; /* keV, keV A */

double hl_electron_wavelength(double kv) { return planck_c / sqrt(kv * (2 * rest_energy + kv)); }

double hl_interaction(double kv) { return 2 * M_PI / (hl_electron_wavelength(kv) * 1e3 * kv) * (rest_energy + kv) / (2 * rest_energy + kv); }

double hl_aberration(const hl_lens *lens, double k2)
{
    double lambda = hl_electron_wavelength(lens->kv);
    return M_PI * lambda * k2 * (lens->defocus + 0.5 * lens->cs * lambda * lambda * k2);
}

double hl_frequency(int64_t i, int64_t n, double box) { return (double)(i < (n + 1) / 2 ? i : i - n) / box; }

void hl_probe(const hl_lens *lens, int64_t n, double box, const double at[2], double _Complex *wave)
{
    double most = lens->aperture / hl_electron_wavelength(lens->kv), sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double kh = hl_frequency(i, n, box), kw = hl_frequency(j, n, box), k2 = kh * kh + kw * kw;
            double inside = fmin(fmax(0.5 + (most - sqrt(k2)) * box, 0), 1);
            wave[i * n + j] = inside > 0 ? inside * cexp(-I * (hl_aberration(lens, k2) + 2 * M_PI * (kh * at[0] + kw * at[1]))) : 0;
            sum += inside * inside;
        }
    for (int64_t i = 0; i < n * n; i++) wave[i] /= sqrt(sum);
}
