/* SPDX-License-Identifier: Apache-2.0 */
/* particles.c -- memory of the particles: twelve doubles each, in one allocation per component. */
#include "synth/particles.h"

halo_status hl_particles_reserve(halo_context *ctx, int64_t n, hl_particles *p)
{
    if (n <= p->capacity) return HALO_OK;
    for (int i = 0; i < p->components; i++) {
        double **component = hl_particles_component(p, i), *larger;
        HL_TRY(hl_aligned(ctx, (size_t)n * sizeof(double), "particles", &larger));
        if (p->count > 0 && *component) memcpy(larger, *component, (size_t)p->count * sizeof(double));
        free(*component);
        *component = larger;
    }
    p->capacity = n;
    return HALO_OK;
}

halo_status hl_particles_alloc(halo_context *ctx, int64_t side, int64_t first, int64_t planes, double box,
                               hl_particles *p)
{
    hl_particles q = {.components = 12, .side = side, .first = first, .box = box};
    halo_status st = hl_particles_reserve(ctx, planes * side * side, &q);

    q.count = planes * side * side;
    if (st == HALO_OK)
        *p = q;
    else
        hl_particles_free(&q);
    return st;
}

void hl_particles_free(hl_particles *p)
{
    for (int i = 0; i < p->components; i++) free(*hl_particles_component(p, i));
    *p = (hl_particles){0};
}
