/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.c -- what a run of universes will take, from a small one. */
#include "base/context.h"
#include "synth/making.h"

/* Seconds per particle step of a 32^3 run; a transform's logarithm is the only thing that does not scale. */
static halo_status measure(const hl_simulation_options *target, double *seconds)
{
    hl_simulation_options o = *target;
    hl_cosmology c = hl_prior_published(HL_PRIOR_SC18, false).fixed;
    hl_simulation_times times;
    hl_simulation *s;
    float *full;

    o.grid = o.particles = o.mesh = 32;
    o.threads = 1; /* so small a run says little about several */
    HL_TRY(hl_simulation_create(NULL, &o, NULL, &s));
    halo_status st =
        hl_calloc(NULL, (size_t)(32 * 32 * 32 * o.redshifts), sizeof(*full), "a universe", &full);
    for (int i = 0; st == HALO_OK && i < 2; i++)
        st = hl_simulate(s, &c, 512.0, 1, 0, full, &times); /* the first one touches the memory */
    if (st == HALO_OK) {
        double cells = (double)hl_max64(target->particles, target->mesh) / 32.0,
               grid = (double)target->grid / 32.0;
        double volume = fmax(cells * cells * cells, grid * grid * grid);
        *seconds = (times.seconds - times.fft_seconds) * volume +
                   times.fft_seconds * volume * (1.0 + log2(fmax(cells, 1.0)) / 5.0);
        *seconds /= target->threads;
        free(full);
    }
    hl_simulation_destroy(s);
    return st;
}

halo_status hl_universes_estimate_run(halo_context *ctx, const hl_universes_settings *settings,
                                      hl_universes_estimate *estimate)
{
    hl_making m;
    halo_status st = hl_making_prepare(ctx, settings, &m);
    const hl_simulation_options *o = &m.simulation;

    if (st == HALO_OK) {
        hl_universes_estimate e = {.bytes = hl_simulation_bytes(o, m.together ? ctx->ranks : 1) * m.jobs,
                                   .jobs = m.jobs,
                                   .threads = o->threads};
        e.file_bytes = o->grid * o->grid * o->grid * o->redshifts * (o->scheme == HL_NGP ? 2 : 4);
        st = measure(o, &e.seconds);
        if (st == HALO_OK) *estimate = e;
    }
    free(m.table.value);
    return st;
}
