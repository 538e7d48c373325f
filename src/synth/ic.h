/* SPDX-License-Identifier: Apache-2.0 */
/* ic.h -- Gaussian initial conditions. */
#ifndef HL_SYNTH_IC_H
#define HL_SYNTH_IC_H

#include "synth/mesh.h"
#include "synth/power.h"

/* Fills `modes` with the linear overdensity today, delta(x) = sum_k delta_k exp(i k x), of a box of side `box` Mpc/h. The
 * mode of integer wave vector k depends on (seed, universe, k) and on P alone. */
halo_status hl_ic_modes(halo_context *ctx, const hl_mesh *mesh, const hl_power *power, double box, uint64_t seed,
                        uint64_t universe, double *modes);

#endif
