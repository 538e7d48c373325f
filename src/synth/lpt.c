/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lpt.c -- first and second order displacement fields on the particle lattice.
 *
 *   x(q, a) = q + d1(a) psi1(q) + d2(a) psi2(q)
 *   psi1_k  = (i k / k^2) delta_k                                        (psi1 = -grad phi, lap phi = delta)
 *   psi2_k  = (i k / k^2) S_k,   S = sum_{i<j} (phi_ii phi_jj - phi_ij^2)
 *
 * with d2 > 0 as in cosmology.c (Bouchet et al., "Perturbative Lagrangian approach to gravitational
 * instability", 1995). The second derivatives come one at a time: three arrays of psi2 hold the diagonal ones
 * until S is complete, so that nothing is needed beyond the particles and two fields. 6 + 1 + 6 transforms.
 */
#include "synth/lpt.h"

#include <complex.h>

#define PI 3.14159265358979323846

typedef struct spectral {
    int64_t n;
    int i, j;    /* axes; j < 0: displacement along i, otherwise the second derivative phi_ij */
    double unit; /* 2 pi / box */
    const double _Complex *source; /* rows of the same layout as the target */
    const double _Complex *target;
} spectral;

/* i k_i / k^2 or k_i k_j / k^2. A gradient has no component at the Nyquist wave number. */
static void spectral_row(void *arg, int64_t kx, int64_t ky, double _Complex *modes)
{
    const spectral *s = arg;
    const double _Complex *source = s->source + (modes - s->target);
    int64_t half = s->n / 2, k[3] = {kx, ky, 0};

    for (k[2] = 0; k[2] <= half; k[2]++) {
        double square = (double)(kx * kx + ky * ky + k[2] * k[2]);
        if (square == 0.0)
            modes[k[2]] = 0.0;
        else if (s->j >= 0)
            modes[k[2]] = source[k[2]] * ((double)(k[s->i] * k[s->j]) / square);
        else
            modes[k[2]] = k[s->i] == half ? 0.0 : source[k[2]] * (I * (double)k[s->i] / (square * s->unit));
    }
}

static halo_status derive(hl_mesh *mesh, const double *modes, double *work, double box, int i, int j)
{
    spectral s = {
        mesh->n, i, j, 2.0 * PI / box, (const double _Complex *)modes, (const double _Complex *)work};

    hl_mesh_modes(mesh, work, spectral_row, &s);
    return hl_mesh_backward(mesh, work);
}

/* Between the padded rows of a field and the plain lattice order of the particles. */
static void to_lattice(const hl_mesh *m, const double *field, double *out)
{
#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->planes * m->n; r++)
        memcpy(out + r * m->n, field + r * m->pitch, (size_t)m->n * sizeof(double));
}

static void from_lattice(const hl_mesh *m, const double *in, double *field)
{
#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->planes * m->n; r++)
        memcpy(field + r * m->pitch, in + r * m->n, (size_t)m->n * sizeof(double));
}

static void subtract_square(const hl_mesh *m, const double *field, double *s)
{
#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->planes * m->n; r++)
        for (int64_t k = 0; k < m->n; k++)
            s[r * m->n + k] -= field[r * m->pitch + k] * field[r * m->pitch + k];
}

/* S into psi2[0], by way of the diagonal derivatives in psi2[0..2]. */
static halo_status second_order_source(hl_mesh *mesh, const double *modes, double *work, hl_particles *p)
{
    double *s = p->psi2[0], *yy = p->psi2[1], *zz = p->psi2[2];

    for (int i = 0; i < 3; i++) {
        HL_TRY(derive(mesh, modes, work, p->box, i, i));
        to_lattice(mesh, work, p->psi2[i]);
    }
#pragma omp parallel for num_threads(mesh->threads) schedule(static)
    for (int64_t c = 0; c < p->count; c++) s[c] = s[c] * (yy[c] + zz[c]) + yy[c] * zz[c];
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++) {
            HL_TRY(derive(mesh, modes, work, p->box, i, j));
            subtract_square(mesh, work, s);
        }
    return HALO_OK;
}

halo_status hl_lpt(hl_mesh *mesh, double *modes, double *work, hl_particles *p)
{
    double scale = 1.0 / ((double)mesh->n * (double)mesh->n * (double)mesh->n);

    for (int i = 0; i < 3; i++) {
        HL_TRY(derive(mesh, modes, work, p->box, i, -1));
        to_lattice(mesh, work, p->psi1[i]);
    }
    HL_TRY(second_order_source(mesh, modes, work, p));
    from_lattice(mesh, p->psi2[0], modes);
    HL_TRY(hl_mesh_forward(mesh, modes));
    for (int i = 0; i < 3; i++) {
        HL_TRY(derive(mesh, modes, work, p->box, i, -1));
        to_lattice(mesh, work, p->psi2[i]);
        for (int64_t c = 0; c < p->count; c++) p->psi2[i][c] *= scale;
    }
    return HALO_OK;
}
