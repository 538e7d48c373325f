/* SPDX-License-Identifier: Apache-2.0 */
/*
 * insitu.c -- train from arrays in memory, with no file: a stand-in for a simulation that hands each new state to the network as it runs.
 *
 * The "simulation" makes periodic random fields whose correlation length it knows; the network learns to tell it from the field. Build:
 *   cc insitu.c $(pkg-config --cflags --libs halo) -lm
 */
#include <halo/halo.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 16, BATCH = 8, STEPS = 60, CELLS = SIDE * SIDE * SIDE };

/* Uniform in [-1, 1): the simulation's own random numbers. */
static float noise(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* White noise smoothed `passes` times over the six neighbours of the periodic box, then scaled to unit variance. */
static void simulate(unsigned *state, int passes, float *field)
{
    static float next[CELLS];
    double sum = 0;
    for (int i = 0; i < CELLS; i++) field[i] = noise(state);
    for (int pass = 0; pass < passes; pass++) {
        for (int d = 0; d < SIDE; d++)
            for (int h = 0; h < SIDE; h++)
                for (int w = 0; w < SIDE; w++) {
                    int up = (d + 1) % SIDE, down = (d + SIDE - 1) % SIDE, right = (h + 1) % SIDE, left = (h + SIDE - 1) % SIDE;
                    next[(d * SIDE + h) * SIDE + w] =
                        (field[(d * SIDE + h) * SIDE + w] * 2 + field[(up * SIDE + h) * SIDE + w] + field[(down * SIDE + h) * SIDE + w] +
                         field[(d * SIDE + right) * SIDE + w] + field[(d * SIDE + left) * SIDE + w] +
                         field[(d * SIDE + h) * SIDE + (w + 1) % SIDE] + field[(d * SIDE + h) * SIDE + (w + SIDE - 1) % SIDE]) / 8;
                }
        for (int i = 0; i < CELLS; i++) field[i] = next[i];
    }
    for (int i = 0; i < CELLS; i++) sum += (double)field[i] * (double)field[i];
    float scale = (float)(1 / sqrt(sum / CELLS));
    for (int i = 0; i < CELLS; i++) field[i] *= scale;
}

static void make_batch(unsigned *state, float *x, float *y)
{
    for (int i = 0; i < BATCH; i++) {
        int passes = (int)(*state >> 16) % 5;
        simulate(state, passes, x + i * CELLS);
        y[i] = (float)passes / 2 - 1; /* -1 to 1 */
    }
}

/* conv 3^3 periodic -> leaky relu -> average pool, twice; then two dense layers. */
static halo_status make_network(halo_context *ctx, halo_network **net)
{
    const int64_t extents[3] = {SIDE, SIDE, SIDE};
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    halo_status st;
    int last = 0;
    pool.kind = HALO_POOL_AVG;
    for (int i = 0; i < 3; i++) conv.padding[i] = HALO_PAD_PERIODIC;
    if ((st = halo_network_create(ctx, "insitu", 1, extents, net)) != HALO_OK) return st;
    for (int block = 0; block < 2; block++) {
        conv.filters = block ? 16 : 8;
        if ((st = halo_network_conv(*net, last, NULL, &conv, &last)) != HALO_OK) return st;
        if ((st = halo_network_activation(*net, last, NULL, HALO_ACT_LEAKY_RELU, 0.01, &last)) != HALO_OK) return st;
        if ((st = halo_network_pool(*net, last, NULL, &pool, &last)) != HALO_OK) return st;
    }
    if ((st = halo_network_flatten(*net, last, NULL, &flatten, &last)) != HALO_OK) return st;
    dense.outputs = 32;
    if ((st = halo_network_dense(*net, last, NULL, &dense, &last)) != HALO_OK) return st;
    if ((st = halo_network_activation(*net, last, NULL, HALO_ACT_LEAKY_RELU, 0.01, &last)) != HALO_OK) return st;
    dense.outputs = 1;
    return halo_network_dense(*net, last, NULL, &dense, &last);
}

static halo_status train(halo_trainer *trainer, double *first, double *last)
{
    static float x[BATCH * CELLS], y[BATCH];
    unsigned state = 1;
    *first = *last = 0;
    for (int step = 0; step < STEPS; step++) {
        double loss;
        make_batch(&state, x, y);
        halo_status st = halo_trainer_step(trainer, x, y, 0, &loss);
        if (st != HALO_OK) return st;
        if (step < 5) *first += loss / 5;
        if (step >= STEPS - 5) *last += loss / 5;
    }
    return HALO_OK;
}

int main(void)
{
    halo_context *ctx = NULL;
    halo_network *net = NULL;
    halo_trainer *trainer = NULL;
    halo_trainer_options options = HALO_TRAINER_OPTIONS_INIT;
    double first = 0, last = 0;
    options.batch = BATCH;
    options.lr = 2e-3;
    halo_status st = halo_context_create(NULL, &ctx);
    if (st == HALO_OK) st = make_network(ctx, &net);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, &options, &trainer);
    if (st == HALO_OK) st = train(trainer, &first, &last);
    if (st != HALO_OK) fprintf(stderr, "insitu: %s\n", halo_error_message(ctx));
    else printf("loss of the first five steps %.4f, of the last five %.4f\n", first, last);
    halo_trainer_destroy(trainer);
    halo_network_destroy(net);
    halo_context_destroy(ctx);
    return st == HALO_OK && last < 0.5 * first ? EXIT_SUCCESS : EXIT_FAILURE;
}
