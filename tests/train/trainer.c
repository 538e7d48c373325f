/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c -- the public trainer on a network that ends in a volume: shapes of targets and predictions, learning, partial batches. */
#include <halo/halo.h>

#include "tests/tap.h"

#include <math.h>

enum { SIDE = 6, CELLS = SIDE * SIDE * SIDE, BATCH = 2, SAMPLES = 5 };

static halo_status make_network(halo_context *ctx, halo_network **net)
{
    static const char text[] = "name: map\ninput: {channels: 1, size: 6}\nlayers:\n  - conv: {name: c, filters: 2, kernel: 1}\n";
    return halo_network_parse(ctx, "map.yaml", text, sizeof(text) - 1, 0, NULL, net);
}

/* Channel 0 is 2 x - 1, channel 1 is -x. */
static void fill(float *x, float *y)
{
    uint64_t state = 5;
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < CELLS; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            float v = (float)(state >> 40) / 16777216.0f;
            x[s * CELLS + i] = v;
            y[(s * 2) * CELLS + i] = 2 * v - 1;
            y[(s * 2 + 1) * CELLS + i] = -v;
        }
}

static void train(halo_trainer *t, const float *x, const float *y)
{
    static float guess[SAMPLES * 2 * CELLS];
    double first = NAN, last = NAN, mean = NAN, sum = 0;
    for (int step = 0; step < 60; step++) {
        int at = step % 2 * BATCH;
        if (halo_trainer_step(t, x + at * CELLS, y + at * 2 * CELLS, 0, step == 0 ? &first : &last) != HALO_OK) break;
    }
    tap_ok(last < 0.1 * first, "the loss of a volume falls from %g to %g", first, last);
    bool good = halo_trainer_predict(t, SAMPLES, x, guess) == HALO_OK && halo_trainer_evaluate(t, SAMPLES, x, y, &mean) == HALO_OK;
    for (int i = 0; i < SAMPLES * 2 * CELLS; i++) sum += ((double)guess[i] - (double)y[i]) * ((double)guess[i] - (double)y[i]);
    sum /= SAMPLES * 2 * CELLS;
    tap_ok(good && fabs(mean - sum) <= 1e-4 * sum, "5 samples in batches of 2: the loss %g is the mean square over all voxels, %g", mean, sum);
}

int main(void)
{
    static float x[SAMPLES * CELLS], y[SAMPLES * 2 * CELLS];
    halo_context *ctx;
    halo_network *net = NULL;
    halo_trainer *t = NULL;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    o.batch = BATCH;
    o.lr = 0.05;
    if (halo_context_create(NULL, &ctx) != HALO_OK) return 1;
    fill(x, y);
    halo_status st = make_network(ctx, &net);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, &o, &t);
    tap_ok(st == HALO_OK, "a trainer of a network that ends in a volume: %s", st == HALO_OK ? "made" : halo_error_message(ctx));
    if (t) train(t, x, y);
    halo_trainer_destroy(t);
    halo_network_destroy(net);
    halo_context_destroy(ctx);
    return tap_done();
}
