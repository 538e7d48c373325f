/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.c -- what norms make of numbers that spoil a careless variance: far from 0 beside their spread, and all the same. With targets 0 and no network but the norm
 * the loss of a step is the mean of xhat^2 = variance / (variance + eps), which is known.
 */
#include <halo/halo.h>

#include "tests/tap.h"

#include <math.h>

enum { SIDE = 8, BATCH = 2, CELLS = SIDE * SIDE * SIDE };

static halo_network *make(halo_context *ctx, halo_norm_scope scope)
{
    halo_network *net;
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    const int64_t ext[3] = {SIDE, SIDE, SIDE};
    o.scope = scope;
    o.groups = scope == HALO_NORM_GROUP ? 1 : 0;
    if (halo_network_create(ctx, "norm", 2, ext, &net) != HALO_OK || halo_network_norm(net, 0, "norm", &o, NULL) != HALO_OK) tap_bail("%s", halo_error_message(ctx));
    return net;
}

/* The loss of the first step on mean + spread * noise. */
static double loss_of(halo_context *ctx, halo_norm_scope scope, double mean, double spread, double *after)
{
    static float x[BATCH * 2 * CELLS], y[BATCH * 2 * CELLS];
    uint64_t state = 7;
    double loss = NAN;
    halo_network *net = make(ctx, scope);
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t;
    o.batch = BATCH, o.optimizer = HALO_SGD, o.lr = 1e-3;
    for (int i = 0; i < BATCH * 2 * CELLS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        x[i] = (float)(mean + spread * ((double)(state >> 40) / 16777216.0 - 0.5));
    }
    if (halo_trainer_create(ctx, net, &o, &t) != HALO_OK) tap_bail("%s", halo_error_message(ctx));
    if (halo_trainer_step(t, x, y, 0, &loss) != HALO_OK || halo_trainer_step(t, x, y, 0, after) != HALO_OK) tap_bail("%s", halo_error_message(ctx));
    halo_trainer_destroy(t);
    halo_network_destroy(net);
    return loss;
}

int main(void)
{
    static const char *const backend[] = {
#ifdef HAVE_BACKEND_CPU
        "cpu",
#endif
        "ref"};
    static const char *const name[] = {"batch", "group", "instance"};
    for (size_t b = 0; b < sizeof(backend) / sizeof(backend[0]); b++)
        for (int scope = HALO_NORM_BATCH; scope <= HALO_NORM_INSTANCE; scope++) {
            halo_context *ctx;
            halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
            double after = NAN;
            o.backend = backend[b];
            if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("%s", halo_error_message(NULL));
            double far = loss_of(ctx, (halo_norm_scope)scope, 1e4, 10, &after);
            tap_ok(fabs(far - 1) <= 1e-4, "%s, %s norm of 1e4 and noise of 5: mean square %.6f, should be 1", backend[b], name[scope], far);
            double same = loss_of(ctx, (halo_norm_scope)scope, 3, 0, &after);
            tap_ok(same == 0 && after == 0, "%s, %s norm of a constant: all 0, and a step leaves it so", backend[b], name[scope]);
            halo_context_destroy(ctx);
        }
    return tap_done();
}
