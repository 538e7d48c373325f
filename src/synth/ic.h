/* SPDX-License-Identifier: Apache-2.0 */
/* ic.h -- Gaussian initial conditions. */
#ifndef HL_SYNTH_IC_H
#define HL_SYNTH_IC_H

#include "synth/mesh.h"
#include "synth/power.h"

/* Fills `modes` with the linear overdensity today of a box of side `box` Mpc/h, such that the field's values
 * (mesh.h) are those at the lattice points of particles.h: delta(x_i) = sum_k modes_k exp(2 pi i k i / n).
 * The mode of integer wave vector k depends on (seed, universe, k) and on P alone. */
halo_status hl_ic_modes(halo_context *ctx, const hl_mesh *mesh, const hl_power *power, double box,
                        uint64_t seed, uint64_t universe, double *modes);

#endif
