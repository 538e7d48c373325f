/* SPDX-License-Identifier: Apache-2.0 */
/* potential.h -- the potential of atoms, slice by slice, projected along the beam. */
#ifndef HL_SYNTH_CBED_POTENTIAL_H
#define HL_SYNTH_CBED_POTENTIAL_H

#include <complex.h>

#include "synth/cbed/crystal.h"

typedef struct hl_potential {
    halo_context *ctx;
    int64_t n, slices;
    double box, dz;       /* A: side of the box, thickness of a slice */
    double *v;            /* [slices, n, n] V A */
    double _Complex *all; /* [n, n]: Fourier coefficients of their sum: v(r) = sum_k all[k] exp(2 pi i k r) */
} hl_potential;

/* Atoms of a box in slices of at most `slice` A. `threads` share the slices. HALO_ERR_STOPPED, without a message, when `stop`, which may be NULL, says so. */
halo_status hl_potential_create(halo_context *ctx, int64_t n, double box, double thickness, double slice, const hl_atom *atoms, int64_t count, int threads, const hl_stop *stop, hl_potential **potential);
void hl_potential_destroy(hl_potential *potential);

/* The sum over all slices on [size, size] points `pixel` A apart, point (size/2, size/2) in the middle of the box; blurred by a Gaussian of this deviation, A, 0: not. */
halo_status hl_potential_image(const hl_potential *potential, int64_t size, double pixel, double blur, float *image);

#endif
