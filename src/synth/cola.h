/* SPDX-License-Identifier: Apache-2.0 */
/* cola.h -- time stepping in the frame of Lagrangian perturbation theory. */
#ifndef HL_SYNTH_COLA_H
#define HL_SYNTH_COLA_H

#include "synth/cosmology.h"
#include "synth/particles.h"
#include "synth/pm.h"

/* Called for each output in order of time. Positions and peculiar displacements along the line of sight at
 * scale factor a are x + p drift + psi1 d1 + psi2 d2 and p slip + psi1 s1 + psi2 s2, with the coefficients of
 * hl_cola_moment. */
typedef struct hl_cola_moment {
    int index; /* of the output */
    double drift, d1, d2;
    double slip, s1, s2;
} hl_cola_moment;

typedef halo_status (*hl_cola_output)(void *arg, const hl_particles *p, const hl_cola_moment *moment);

typedef struct hl_cola {
    halo_context *ctx;
    int steps;             /* 0: Lagrangian perturbation theory alone */
    double start;          /* scale factor of the first force, 0 < start < end */
    const double *outputs; /* [count] scale factors, ascending */
    int count;
    hl_cola_output output;
    void *arg;
} hl_cola;

/* Collective over the ranks of the mesh. Sets positions from the lattice and the displacements, p = 0, and
 * steps to the last output. */
halo_status hl_cola_run(const hl_cosmology *cosmology, const hl_cola *cola, const hl_pm *pm, hl_particles *p);

#endif
