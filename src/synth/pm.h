/* SPDX-License-Identifier: Apache-2.0 */
/* pm.h -- gravity by a particle mesh. */
#ifndef HL_SYNTH_PM_H
#define HL_SYNTH_PM_H

#include "synth/assign.h"
#include "synth/particles.h"

typedef struct hl_pm {
    hl_mesh *mesh;
    double *density, *force; /* two fields of the mesh; neither they nor the mesh are owned */
    double shift;            /* of the mesh against the box, in cells: lattice points lie in the middle between its own (hl_scale) */
    double *sharpen;         /* [n/2 + 1] what undoes the cloud along one axis, twice */
} hl_pm;

/* `density` and `force` are fields of the mesh that the caller keeps; particles: lattice side. Freed by hl_pm_free. */
halo_status hl_pm_init(halo_context *ctx, hl_mesh *mesh, int64_t particles, double *density, double *force, hl_pm *pm);
void hl_pm_free(hl_pm *pm);

/* Fills pm->density with delta_k of the particles. */
void hl_pm_density(const hl_pm *pm, const hl_particles *p);

/* Fills pm->force with component `axis` of g = -grad lap^-1 delta, Mpc/h, from pm->density, which is kept. */
void hl_pm_force(const hl_pm *pm, double box, int axis);

/* pm->force at a position, by the cloud that assigned the density; scale is hl_scale_of(mesh, box, pm->shift). */
double hl_pm_gather(const hl_pm *pm, hl_scale scale, const double x[3]);

#endif
