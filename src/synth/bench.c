/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c -- times one universe. The rate counts a particle once per step, initial conditions and counting
 * included in the time. */
#include "synth/bench.h"

#include "synth/prior.h"

static int by_seconds(const void *a, const void *b)
{
    double x = ((const hl_simulation_times *)a)->seconds, y = ((const hl_simulation_times *)b)->seconds;
    return (x > y) - (x < y);
}

static halo_status run_all(hl_simulation *s, double box, int runs, float *full, hl_simulation_times *times)
{
    hl_cosmology c = hl_prior_published(HL_PRIOR_SC18, false).fixed;

    for (int i = -1; i < runs; i++) HL_TRY(hl_simulate(s, &c, box, 1, 0, full, &times[i < 0 ? 0 : i]));
    qsort(times, (size_t)runs, sizeof(*times), by_seconds);
    return HALO_OK;
}

halo_status hl_synth_bench_run(halo_context *ctx, const hl_simulation_options *o, double box, int runs,
                               hl_synth_bench *result)
{
    hl_simulation *s;
    hl_simulation_times *times = NULL;
    float *full = NULL;
    halo_status st;

    HL_TRY(hl_simulation_create(ctx, o, NULL, &s));
    HL_GOTO(st, hl_calloc(ctx, (size_t)runs, sizeof(*times), "times", &times), destroy);
    HL_GOTO(st,
            hl_calloc(ctx, (size_t)(o->grid * o->grid * o->grid * o->redshifts), sizeof(*full), "a universe",
                      &full),
            destroy);
    HL_GOTO(st, run_all(s, box, runs, full, times), destroy);
    hl_simulation_times median = times[runs / 2];
    double work = pow((double)o->particles, 3.0) * (o->steps > 0 ? o->steps : 1);
    *result = (hl_synth_bench){*o, hl_simulation_bytes(o, 1), median.seconds, median.fft_seconds,
                               work / median.seconds};
destroy:
    free(times);
    free(full);
    hl_simulation_destroy(s);
    return st;
}

void hl_synth_bench_table(const hl_synth_bench *b, hl_str *out)
{
    hl_str_addf(out, "%" PRId64 "^3 particles, %" PRId64 "^3 force cells, %d steps, %d thread%s, %.1f MiB\n",
                b->options.particles, b->options.mesh, b->options.steps, b->options.threads,
                HL_S(b->options.threads), (double)b->bytes / 1048576.0);
    hl_str_addf(out, "  a universe         %10.4f s\n", b->seconds);
    hl_str_addf(out, "  particles x steps  %10.3g per second\n", b->particles_per_second);
    hl_str_addf(out, "  in the FFT         %10.1f %%\n", 100.0 * b->fft_seconds / b->seconds);
}

void hl_synth_bench_json(const hl_synth_bench *b, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_int(j, "particles", b->options.particles);
    hl_json_int(j, "mesh", b->options.mesh);
    hl_json_int(j, "steps", b->options.steps);
    hl_json_int(j, "threads", b->options.threads);
    hl_json_int(j, "bytes", b->bytes);
    hl_json_number(j, "seconds", b->seconds);
    hl_json_number(j, "particles_per_second", b->particles_per_second);
    hl_json_number(j, "fft_share", b->fft_seconds / b->seconds);
    hl_json_end_object(j);
}
