/* SPDX-License-Identifier: Apache-2.0 */
/* assign.h -- particles to mesh: nearest grid point, cloud in cell, triangular shaped cloud. */
#ifndef HL_SYNTH_ASSIGN_H
#define HL_SYNTH_ASSIGN_H

#include "synth/mesh.h"

typedef enum hl_scheme {
    HL_NGP = 1,
    HL_CIC = 2,
    HL_TSC = 3
} hl_scheme; /* the value: cells touched along an axis */

/* Masses are summed as integers of this fraction of a particle, which makes a sum independent of its order.
 * */
#define HL_MASS_UNIT ((double)((int64_t)1 << 40))

/* First cell and weights along one axis for a particle at u >= -1/2 (in cells, u >= 0 but for cloud in cell);
 * cells may be -1 or n. */
typedef struct hl_taps {
    int64_t cell;
    double weight[3];
} hl_taps;

static inline hl_taps hl_assign_taps(hl_scheme scheme, double u)
{
    if (scheme == HL_NGP) return (hl_taps){(int64_t)u, {1.0, 0.0, 0.0}};
    if (scheme == HL_CIC) {
        int64_t low = (int64_t)(u + 0.5) - 1; /* the floor of u - 1/2, by truncation of what is positive */
        double d = u - 0.5 - (double)low;
        return (hl_taps){low, {1.0 - d, d, 0.0}};
    }
    int64_t near = (int64_t)u;
    double d = u - (double)near - 0.5;
    return (hl_taps){near - 1, {0.5 * (0.5 - d) * (0.5 - d), 0.75 - d * d, 0.5 * (0.5 + d) * (0.5 + d)}};
}

/* The Fourier transform of the scheme's cloud along one axis, at integer wave number k of n: sinc(pi k /
 * n)^scheme. */
double hl_assign_window(hl_scheme scheme, int64_t k, int64_t n);

/* Sum over aliases of the squared window along one axis: what the window makes of white noise (Jing 2005, eq.
 * 20). */
double hl_assign_noise(hl_scheme scheme, int64_t k, int64_t n);

/* From a position 0 <= x < box to cells, u = per_cell x + shift: cell i has its middle at u = i + 1/2. */
typedef struct hl_scale {
    double per_cell, shift;
} hl_scale;

/* -1/2 <= shift <= 1/2. */
static inline hl_scale hl_scale_of(const hl_mesh *mesh, double box, double shift)
{
    return (hl_scale){(double)mesh->n / box * (1.0 - 1e-15),
                      shift}; /* a position just below box must not reach cell n */
}

/* Adds `count` particles at positions (x, y, z) to masses[], a field of int64_t on the mesh. May run in
 * several threads on the same field when `shared`. */
void hl_assign(hl_scheme scheme, const hl_mesh *mesh, hl_scale scale, const double *x, const double *y,
               const double *z, int64_t count, bool shared, int64_t *masses);

/* Turns masses into doubles, field = masses * scale / HL_MASS_UNIT, in place. */
void hl_assign_finish(const hl_mesh *mesh, double scale, double *field);

const char *hl_scheme_name(hl_scheme scheme);

#endif
