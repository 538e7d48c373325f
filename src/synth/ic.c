/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ic.c -- a Gaussian random field with a given power spectrum, drawn mode by mode.
 *
 *   delta_k = sqrt(P(|k|) / (2 V)) (g1 + i g2),   k = (2 pi / box) (kx, ky, kz),   V = box^3
 *
 * (g1, g2) are the two normal numbers of Philox with the counter (kx, ky, kz, universe): no order of drawing
 * exists, so ranks, threads and the number of cells cannot change a mode, and the same universe can be made
 * at several resolutions with the same large scales. delta(x) is real because of each pair k, -k one is drawn
 * and the other is its conjugate. A mode at the Nyquist wave number would stand for +n/2 and -n/2 at once and
 * has no gradient; it is zero, as on a finer mesh filtered to this one.
 *
 * Field values belong to lattice points, a quarter of the spacing off the corner of the box, so modes carry
 * exp(i k cell/4): without it a universe would move when the resolution changes.
 */
#include "synth/ic.h"

#include <complex.h>

#include "base/rng.h"
#include "synth/particles.h"

#define PI 3.14159265358979323846

typedef struct drawing {
    int64_t n;
    uint64_t seed, universe;
    double *amplitude;      /* [3 (n/2)^2 + 1] by kx^2 + ky^2 + kz^2: exact, no interpolation of P */
    double _Complex *phase; /* [4 n] exp(2 pi i m HL_LATTICE_OFFSET / n) */
} drawing;

/* Of k and -k, the one that is drawn: the first nonzero of kz, ky, kx is positive. */
static bool is_drawn(int64_t kx, int64_t ky, int64_t kz)
{
    return kz != 0 ? kz > 0 : ky != 0 ? ky > 0 : kx > 0;
}

static uint64_t packed(int64_t kx, int64_t ky, int64_t kz)
{
    const int64_t zero = 1 << 20; /* 21 bits a component */
    return (uint64_t)(kx + zero) << 42 | (uint64_t)(ky + zero) << 21 | (uint64_t)(kz + zero);
}

static double _Complex mode(const drawing *d, int64_t kx, int64_t ky, int64_t kz)
{
    int64_t half = d->n / 2, sum = kx + ky + kz;
    double g[2], size = d->amplitude[kx * kx + ky * ky + kz * kz];
    bool drawn = is_drawn(kx, ky, kz);
    int64_t sign = drawn ? 1 : -1;

    if (kx == half || ky == half || kz == half || (kx == 0 && ky == 0 && kz == 0)) return 0.0;
    hl_rng_normal2(d->seed, HL_STREAM_UNIVERSE, packed(sign * kx, sign * ky, sign * kz), d->universe, g);
    return size * (g[0] + I * (drawn ? g[1] : -g[1])) *
           d->phase[((sum % (4 * d->n)) + 4 * d->n) % (4 * d->n)];
}

static void draw_row(void *arg, int64_t kx, int64_t ky, double _Complex *modes)
{
    const drawing *d = arg;
    for (int64_t kz = 0; kz <= d->n / 2; kz++) modes[kz] = mode(d, kx, ky, kz);
}

static void tabulate(const drawing *d, const hl_power *power, double box, int64_t squares)
{
    double unit = 2.0 * PI / box, volume = box * box * box;

#pragma omp parallel for schedule(static)
    for (int64_t s = 0; s < squares; s++)
        d->amplitude[s] = sqrt(hl_power_at(power, unit * sqrt((double)s)) / (2.0 * volume));
    for (int64_t m = 0; m < 4 * d->n; m++)
        d->phase[m] = cexp(I * 2.0 * PI * HL_LATTICE_OFFSET * (double)m / (double)d->n);
}

halo_status hl_ic_modes(halo_context *ctx, const hl_mesh *mesh, const hl_power *power, double box,
                        uint64_t seed, uint64_t universe, double *modes)
{
    drawing d = {.n = mesh->n, .seed = seed, .universe = universe};
    int64_t half = mesh->n / 2, squares = 3 * half * half + 1;
    halo_status st = HALO_OK;

    HL_TRY(hl_calloc(ctx, (size_t)squares, sizeof(*d.amplitude), "mode amplitudes", &d.amplitude));
    HL_GOTO(st, hl_calloc(ctx, (size_t)(4 * mesh->n), sizeof(*d.phase), "mode phases", &d.phase),
            free_amplitude);
    tabulate(&d, power, box, squares);
    hl_mesh_modes(mesh, modes, draw_row, &d);
    free(d.phase);
free_amplitude:
    free(d.amplitude);
    return st;
}
