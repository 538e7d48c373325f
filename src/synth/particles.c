/* SPDX-License-Identifier: Apache-2.0 */
/* particles.c -- memory of the particles: twelve doubles each, in one allocation per component. */
#include "synth/particles.h"

halo_status hl_particles_alloc(halo_context *ctx, int64_t side, int64_t first, int64_t planes, double box,
                               hl_particles *p)
{
    hl_particles q = {.count = planes * side * side, .side = side, .first = first, .box = box};
    double **array[4] = {q.x, q.p, q.psi1, q.psi2};

    for (int i = 0; i < 12; i++) {
        halo_status st = hl_aligned(ctx, (size_t)q.count * sizeof(double), "particles", &array[i / 3][i % 3]);
        if (st != HALO_OK) {
            hl_particles_free(&q);
            return st;
        }
    }
    *p = q;
    return HALO_OK;
}

void hl_particles_free(hl_particles *p)
{
    for (int d = 0; d < 3; d++) {
        free(p->x[d]);
        free(p->p[d]);
        free(p->psi1[d]);
        free(p->psi2[d]);
    }
    *p = (hl_particles){0};
}
