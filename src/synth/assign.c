/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.c -- mass assignment of order 1 to 3 (Hockney & Eastwood, "Computer Simulation Using Particles",
 * 1981, section 5).
 *
 *   mass(cell) = sum over particles of W(u_x - c_x) W(u_y - c_y) W(u_z - c_z)
 *
 * Weights are rounded to integers of 2^-40 particle and summed as such: integer addition is associative, so
 * threads, ranks and the order of particles do not change a bit of the density, at an error of 1e-12 of a
 * particle. For nearest grid point they are the counts themselves.
 */
#include "synth/assign.h"

#define PI 3.14159265358979323846

const char *hl_scheme_name(hl_scheme scheme)
{
    return scheme == HL_NGP ? "ngp" : scheme == HL_CIC ? "cic" : "tsc";
}

double hl_assign_window(hl_scheme scheme, int64_t k, int64_t n)
{
    double x = PI * (double)k / (double)n, sinc = k == 0 ? 1.0 : sin(x) / x;
    return scheme == HL_NGP ? sinc : scheme == HL_CIC ? sinc * sinc : sinc * sinc * sinc;
}

double hl_assign_noise(hl_scheme scheme, int64_t k, int64_t n)
{
    double s = sin(PI * (double)k / (double)n), s2 = s * s;
    return scheme == HL_NGP ? 1.0 : scheme == HL_CIC ? 1.0 - 2.0 / 3.0 * s2 : 1.0 - s2 + 2.0 / 15.0 * s2 * s2;
}

static inline int64_t wrapped(int64_t i, int64_t n)
{
    return i < 0 ? i + n : i >= n ? i - n : i;
}

static inline void add(int64_t *cell, int64_t mass, bool shared)
{
    if (shared)
        __atomic_fetch_add(cell, mass, __ATOMIC_RELAXED);
    else
        *cell += mass;
}

/* Inlined with constant scheme and shared, so that the loops unroll. */
static inline __attribute__((always_inline)) void assign_all(hl_scheme scheme, const hl_mesh *m, hl_scale s,
                                                             const double *const x[3], int64_t count,
                                                             bool shared, int64_t *masses)
{
    for (int64_t c = 0; c < count; c++) {
        hl_taps tx = hl_assign_taps(scheme, x[0][c] * s.per_cell + s.shift),
                ty = hl_assign_taps(scheme, x[1][c] * s.per_cell + s.shift);
        hl_taps tz = hl_assign_taps(scheme, x[2][c] * s.per_cell + s.shift);
        for (int i = 0; i < (int)scheme; i++) {
            int64_t *plane = masses + hl_mesh_plane(m, tx.cell + i);
            for (int j = 0; j < (int)scheme; j++) {
                int64_t *row = plane + wrapped(ty.cell + j, m->n) * m->pitch;
                double area = tx.weight[i] * ty.weight[j] * HL_MASS_UNIT;
                for (int k = 0; k < (int)scheme; k++)
                    add(row + wrapped(tz.cell + k, m->n), (int64_t)(area * tz.weight[k] + 0.5), shared);
            }
        }
    }
}

void hl_assign(hl_scheme scheme, const hl_mesh *mesh, hl_scale scale, const double *x, const double *y,
               const double *z, int64_t count, bool shared, int64_t *masses)
{
    const double *const position[3] = {x, y, z};

    switch (scheme) {
    case HL_NGP:
        if (shared)
            assign_all(HL_NGP, mesh, scale, position, count, true, masses);
        else
            assign_all(HL_NGP, mesh, scale, position, count, false, masses);
        break;
    case HL_CIC:
        if (shared)
            assign_all(HL_CIC, mesh, scale, position, count, true, masses);
        else
            assign_all(HL_CIC, mesh, scale, position, count, false, masses);
        break;
    case HL_TSC:
        if (shared)
            assign_all(HL_TSC, mesh, scale, position, count, true, masses);
        else
            assign_all(HL_TSC, mesh, scale, position, count, false, masses);
        break;
    }
}

void hl_assign_finish(const hl_mesh *m, double scale, double *field)
{
    int64_t cells = m->planes * m->n * m->pitch;

#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t c = 0; c < cells; c++) {
        int64_t mass;
        memcpy(&mass, field + c, sizeof(mass));
        field[c] = (double)mass * (scale / HL_MASS_UNIT);
    }
}
