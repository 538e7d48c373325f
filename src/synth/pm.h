/* SPDX-License-Identifier: Apache-2.0 */
/* pm.h -- gravity by a particle mesh. */
#ifndef HL_SYNTH_PM_H
#define HL_SYNTH_PM_H

#include "synth/assign.h"
#include "synth/particles.h"

typedef struct hl_pm {
    hl_mesh *mesh;
    double *density, *force; /* two fields of the mesh; neither they nor the mesh are owned */
    double shift;            /* in cells (hl_scale): lattice points lie midway between mesh points */
    double *sharpen;         /* [n/2 + 1] what undoes the cloud along one axis, twice */
} hl_pm;

/* `density` and `force` are fields of the mesh that the caller keeps; particles: lattice side. Freed by
 * hl_pm_free. */
halo_status hl_pm_init(halo_context *ctx, hl_mesh *mesh, int64_t particles, double *density, double *force,
                       hl_pm *pm);
void hl_pm_free(hl_pm *pm);

/* Fills pm->density with delta_k of the particles, each on the rank that hl_particles_settle brought it to;
 * pm->force is lost. Collective. */
halo_status hl_pm_density(const hl_pm *pm, const hl_particles *p);

/* Fills pm->force with component `axis` of g = -grad lap^-1 delta, Mpc/h, from pm->density, which is kept.
 * Collective. */
halo_status hl_pm_force(const hl_pm *pm, double box, int axis);

/* pm->force at a position, by the cloud that assigned the density; scale is hl_scale_of(mesh, box,
 * pm->shift). */
static inline double hl_pm_gather(const hl_pm *pm, hl_scale s, const double x[3])
{
    const hl_mesh *m = pm->mesh;
    hl_taps tx = hl_assign_taps(HL_CIC, x[0] * s.per_cell + s.shift),
            ty = hl_assign_taps(HL_CIC, x[1] * s.per_cell + s.shift);
    hl_taps tz = hl_assign_taps(HL_CIC, x[2] * s.per_cell + s.shift);
    int64_t y[2] = {ty.cell < 0 ? m->n - 1 : ty.cell, ty.cell + 1 == m->n ? 0 : ty.cell + 1};
    int64_t z[2] = {tz.cell < 0 ? m->n - 1 : tz.cell, tz.cell + 1 == m->n ? 0 : tz.cell + 1};
    double sum = 0.0;

    for (int i = 0; i < 2; i++) {
        const double *plane = pm->force + hl_mesh_plane(m, tx.cell + i);
        for (int j = 0; j < 2; j++) {
            const double *row = plane + y[j] * m->pitch;
            sum += tx.weight[i] * ty.weight[j] * (tz.weight[0] * row[z[0]] + tz.weight[1] * row[z[1]]);
        }
    }
    return sum;
}

#endif
