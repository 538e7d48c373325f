/* SPDX-License-Identifier: Apache-2.0 */
/* lpt.h -- displacements of Lagrangian perturbation theory. */
#ifndef HL_SYNTH_LPT_H
#define HL_SYNTH_LPT_H

#include "synth/mesh.h"
#include "synth/particles.h"

/* Fills psi1 and psi2 of the lattice particles from the linear overdensity `modes`, which are overwritten;
 * `work` is a second field. p->count must be the mesh's planes x n x n. */
halo_status hl_lpt(hl_mesh *mesh, double *modes, double *work, hl_particles *p);

#endif
