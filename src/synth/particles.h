/* SPDX-License-Identifier: Apache-2.0 */
/* particles.h -- the particles of one rank, one array per component. */
#ifndef HL_SYNTH_PARTICLES_H
#define HL_SYNTH_PARTICLES_H

#include "synth/mesh.h"

/*
 * Particle (i, j, k) of the lattice starts at ((i, j, k) + HL_LATTICE_OFFSET) box / side. A quarter of the
 * spacing is the place from which whole counts in cells of the same spacing answer small displacements
 * without bias: rounding x0 + psi to cells has the mean gain 1 + 2 sum_m cos(2 pi m x0) exp(-2 pi^2 m^2
 * sigma^2), which at x0 = 1/4 loses its first term; from the middle of a cell a lattice would stay frozen in
 * its cells until displacements reach half of one, and from a corner it would fly apart at once.
 */
#define HL_LATTICE_OFFSET 0.25

typedef struct hl_particles {
    int64_t count, capacity;
    int components; /* doubles of a particle: 12, or 3 where only positions are needed */
    int64_t side;   /* particles of the whole box = side^3, on a lattice at first */
    int64_t first;  /* first lattice plane of this rank */
    double box;     /* Mpc/h */
    double *x[3];   /* position, 0 <= x < box */
    double
        *p[3]; /* a^2 dx/dt in units of H_0 Mpc/h, what is left beside the Lagrangian trajectory (cola.c) */
    double *psi1[3]; /* displacement of first order, Mpc/h at d1 = 1 */
    double *psi2[3]; /* of second order, Mpc/h at d2 = 1 */
} hl_particles;

/* Arrays for planes first .. first + count / side^2 of the lattice. */
halo_status hl_particles_alloc(halo_context *ctx, int64_t side, int64_t first, int64_t planes, double box,
                               hl_particles *p);
void hl_particles_free(hl_particles *p);

/* Room for `n` particles; those there are kept. */
halo_status hl_particles_reserve(halo_context *ctx, int64_t n, hl_particles *p);

/* Brings every particle to the rank that owns the plane of `mesh` it is in. Nothing for one rank. Collective.
 * */
halo_status hl_particles_settle(halo_context *ctx, const hl_mesh *mesh, hl_particles *p);

/* Component i, in the order x, p, psi1, psi2. */
static inline double **hl_particles_component(hl_particles *p, int i)
{
    double **const array[4] = {p->x, p->p, p->psi1, p->psi2};
    return &array[i / 3][i % 3];
}

/* x brought into [0, box). */
static inline double hl_wrap(double x, double box)
{
    if (x >= 0.0 && x < box) return x;
    x -= box * floor(x / box);
    return x < box ? x : 0.0; /* a tiny negative x rounds to box */
}

#endif
