/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pm.c -- the particle-mesh force, one component at a time.
 *
 *   delta_k = (1 / N^3) sum_particles W exp(-i k x)
 *   g_k = (i k / k^2) delta_k / W(k)^2,   g(x) = sum_cells W g
 *
 * W is cloud in cell, used on the way in and on the way out, so that a particle exerts no force on itself and
 * momentum is conserved to rounding: the gradient is exact (i k) and odd. Both clouds smooth the force. In
 * the COLA frame large-scale displacements are exact and a smoothed force would pull the particles back from
 * them, so it is divided by the clouds' squared transform; but not on a mesh finer than the particle lattice,
 * where that smoothing is below the lattice spacing and dividing would amplify the lattice's own harmonics
 * (measured: 20 % too much power at k = 0.1 h/Mpc with two cells per particle spacing; see doc/synth.md).
 *
 * The mesh is shifted so that the particles' lattice points lie in the middle between its own, where a small
 * displacement changes the density of two cells linearly. On a lattice point it would change one cell by its
 * absolute value, and the first steps would feel a force that is 10 % off.
 *
 * One component at a time needs two fields in all (Hockney & Eastwood 1981).
 */
#include "synth/pm.h"

#include <complex.h>

#define PI    3.14159265358979323846
#define CHUNK 4096

halo_status hl_pm_init(halo_context *ctx, hl_mesh *mesh, int64_t particles, double *density, double *force,
                       hl_pm *pm)
{
    bool finer = mesh->n > particles;
    double *sharpen;

    HL_TRY(hl_calloc(ctx, (size_t)(mesh->n / 2 + 1), sizeof(*sharpen), "a window", &sharpen));
    for (int64_t k = 0; k <= mesh->n / 2; k++) {
        double w = hl_assign_window(HL_CIC, k, mesh->n);
        sharpen[k] = finer ? 1.0 : 1.0 / (w * w);
    }
    *pm = (hl_pm){.mesh = mesh, .density = density, .force = force, .sharpen = sharpen};
    pm->shift = 1.0 - fmod(HL_LATTICE_OFFSET * (double)mesh->n / (double)particles, 1.0);
    if (pm->shift > 0.5) pm->shift -= 1.0; /* positions stay within half a cell of the mesh */
    return HALO_OK;
}

void hl_pm_free(hl_pm *pm)
{
    free(pm->sharpen);
    pm->sharpen = NULL;
}

halo_status hl_pm_density(const hl_pm *pm, const hl_particles *p)
{
    hl_mesh *mesh = pm->mesh;
    double *density = pm->density;
    double particles = (double)p->side * (double)p->side * (double)p->side;

    memset(density, 0, mesh->values * sizeof(double));
#pragma omp parallel for num_threads(mesh->threads) schedule(static)
    for (int64_t c = 0; c < p->count; c += CHUNK)
        hl_assign(HL_CIC, mesh, hl_scale_of(mesh, p->box, pm->shift), p->x[0] + c, p->x[1] + c, p->x[2] + c,
                  hl_min64(CHUNK, p->count - c), mesh->threads > 1, (int64_t *)density);
    HL_TRY(hl_mesh_add_margins(mesh, (int64_t *)density, (int64_t *)pm->force));
    hl_assign_finish(mesh, 1.0 / particles, density);
    return hl_mesh_forward(mesh, density);
}

typedef struct gradient {
    int64_t n;
    int axis;
    double unit;
    const double *sharpen; /* [n/2 + 1] 1 / W^2 along an axis */
    const double _Complex *density;
    const double _Complex *force;
} gradient;

static void gradient_row(void *arg, int64_t kx, int64_t ky, double _Complex *modes)
{
    const gradient *g = arg;
    const double _Complex *density = g->density + (modes - g->force);
    double row = g->sharpen[llabs(kx)] * g->sharpen[llabs(ky)] / g->unit;
    int64_t half = g->n / 2, k[3] = {kx, ky, 0}, square = kx * kx + ky * ky;

    for (k[2] = 0; k[2] <= half; k[2]++) {
        int64_t along = k[g->axis];
        if (along == half || along == 0)
            modes[k[2]] = 0.0;
        else
            modes[k[2]] = density[k[2]] *
                          (I * (row * g->sharpen[k[2]] * (double)along / (double)(square + k[2] * k[2])));
    }
}

halo_status hl_pm_force(const hl_pm *pm, double box, int axis)
{
    gradient g = {pm->mesh->n,
                  axis,
                  2.0 * PI / box,
                  pm->sharpen,
                  (const double _Complex *)pm->density,
                  (const double _Complex *)pm->force};

    hl_mesh_modes(pm->mesh, pm->force, gradient_row, &g);
    HL_TRY(hl_mesh_backward(pm->mesh, pm->force));
    return hl_mesh_fill_margins(pm->mesh, pm->force);
}
