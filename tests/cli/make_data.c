/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_data.c -- data sets for the tests of the program, in halo's own layout:
 *
 *     make_data volumes FILE [SAMPLES]   x [8, 1, 8, 8, 8] and y [8, 2, 8, 8, 8]: y = (x - 2) / 4 and its negative; two samples a group; ranges 0 to 8
 *     make_data coarse FILE              as volumes, but y has half the extents: every second cell
 *     make_data nan-voxel FILE           as volumes, with a NaN in y of sample 5
 *     make_data classes FILE [SAMPLES]   y [8, 1, 8, 8, 8] of class numbers 0 to 2: the third of its range that a cell of x is in
 *     make_data bad-label FILE           as classes, with a 3 in y of sample 5
 *     make_data half-label FILE          as classes, with a 0.5 there
 *     make_data near-label FILE          as classes, but 1e-4 below each
 *     make_data shifted FILE             one target, x = 100 + 3 n: far from 0
 *     make_data constant FILE            one target, all of x is 3
 *     make_data no-targets FILE          x alone
 *     make_data empty-range FILE         a target whose low is its high
 */
#include "base/rng.h"
#include "io/io.h"
#include "io/writer.h"

#include <stdio.h>

enum { SIDE = 8, CELLS = SIDE * SIDE * SIDE };

typedef struct job {
    const char *kind;
    int64_t samples, side; /* side: of y */
    bool volumes, classes;
} job;

static bool is(const job *j, const char *kind) { return strcmp(j->kind, kind) == 0; }

static void fill(const job *j, int64_t sample, float *x, float *y)
{
    for (uint64_t i = 0; i < CELLS; i++) {
        float u = (float)hl_rng_uniform(7, HL_STREAM_SYNTHETIC, i, (uint64_t)sample);
        x[i] = is(j, "shifted") ? 100 + 3 * u : is(j, "constant") ? 3 : 4 * u;
    }
    y[0] = 2 * (float)hl_rng_uniform(8, HL_STREAM_SYNTHETIC, 0, (uint64_t)sample) - 1;
    for (int64_t i = 0; i < CELLS && j->classes; i++) y[i] = floorf(0.75f * x[i]);
    if (sample == 5 && (is(j, "bad-label") || is(j, "half-label"))) y[3] = is(j, "bad-label") ? 3 : 0.5f;
    for (int64_t i = 0; i < CELLS && is(j, "near-label"); i++) y[i] -= 1e-4f;
    if (!j->volumes) return;
    int64_t step = SIDE / j->side, n = 0, half = j->side * j->side * j->side;
    for (int64_t d = 0; d < SIDE; d += step)
        for (int64_t h = 0; h < SIDE; h += step)
            for (int64_t w = 0; w < SIDE; w += step, n++) {
                y[n] = (x[(d * SIDE + h) * SIDE + w] - 2) / 4;
                y[half + n] = -y[n];
            }
    if (is(j, "nan-voxel") && sample == 5) y[3] = NAN;
}

static halo_status make(halo_context *ctx, const job *j, const char *path)
{
    static float x[CELLS], y[2 * CELLS];
    hl_target target[2] = {{.name = "up", .low = 0, .high = 8, .mean = NAN, .std = NAN}, {.name = "down", .low = 0, .high = 8, .mean = NAN, .std = NAN}};
    hl_writer_options o = {.ext = {1, SIDE, SIDE, SIDE}, .dtype = HALO_F32, .targets = is(j, "no-targets") ? 0 : j->volumes ? 2 : 1, .target = target};
    hl_writer *w;
    for (int k = 0; k < 3 && (j->volumes || j->classes); k++) o.target_ext[k] = j->side;
    if (j->classes) target[0] = (hl_target){.name = "tissue", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    if (is(j, "empty-range")) target[0].low = 8;
    HL_TRY(hl_writer_create(ctx, path, &o, &w));
    halo_status st = HALO_OK;
    for (int64_t s = 0; s < j->samples && st == HALO_OK; s++) {
        fill(j, s, x, y);
        st = hl_writer_add(w, x, y, s / 2);
    }
    halo_status closed = hl_writer_close(w, st == HALO_OK);
    return st != HALO_OK ? st : closed;
}

int main(int argc, char **argv)
{
    halo_context *ctx;
    if (argc < 3 || halo_context_create(NULL, &ctx) != HALO_OK) return 2;
    job j = {.kind = argv[1], .samples = argc > 3 ? strtol(argv[3], NULL, 10) : 8, .side = SIDE};
    if (is(&j, "coarse")) j.side = SIDE / 2;
    j.volumes = is(&j, "volumes") || is(&j, "coarse") || is(&j, "nan-voxel");
    j.classes = is(&j, "classes") || is(&j, "bad-label") || is(&j, "half-label") || is(&j, "near-label");
    halo_status st = make(ctx, &j, argv[2]);
    if (st != HALO_OK) fprintf(stderr, "%s\n", halo_error_message(ctx));
    halo_context_destroy(ctx);
    return st != HALO_OK;
}
