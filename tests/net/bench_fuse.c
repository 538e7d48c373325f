/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fuse.c -- what fused pools gain on this machine, not a test:  bench_fuse [threads] [size] [rounds] [winograd]
 *
 * Steps of the zoo's cosmoflow networks, batch 1, as compiled and with nothing fused, in turn; least time each, and bytes of activations. One thread by its
 * processor time: a machine that others load too gives a fair ratio.
 */
#include "tests/net/small.h"

#include <time.h>

enum { NETS = 3, WAYS = 2 };

static double seconds(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compare(halo_context *ctx, halo_device *dev, const char *variant, int threads, int64_t size, int rounds)
{
    halo_zoo_options z = HALO_ZOO_OPTIONS_INIT;
    halo_network *net;
    hl_optim_spec sgd = small_sgd();
    hl_model *model;
    hl_program *p[WAYS];
    double least[WAYS] = {INFINITY, INFINITY}, loss[WAYS] = {0};
    z.variant = variant;
    for (int a = 0; a < 3; a++) z.extents[a] = size;
    check_status(ctx, halo_network_zoo(ctx, "cosmoflow", &z, &net), variant);
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &model), variant);
    hl_compile_options options = small_options(1);
    for (int k = 0; k < WAYS; k++) check_status(ctx, hl_compile_with(model, &options, (hl_compile_switches){.no_fuse = k == 1}, &p[k]), variant);
    small_data d = small_fill(net, 1, 7);
    for (int r = 0; r < rounds * WAYS; r++) {
        double t = seconds(threads);
        loss[r % WAYS] = small_step(ctx, p[r % WAYS], &d);
        least[r % WAYS] = fmin(least[r % WAYS], seconds(threads) - t);
    }
    printf("%-8s %4d^3  fused %8.4f s %8.1f MiB  apart %8.4f s %8.1f MiB  ratio %.3f  losses differ %.1e\n", variant, (int)size, least[0],
           (double)p[0]->arena_bytes / 1048576, least[1], (double)p[1]->arena_bytes / 1048576, least[0] / least[1],
           fabs(loss[0] - loss[1]) / fabs(loss[1]));
    for (int i = 0; i < p[0]->steps && getenv("HALO_BENCH_STEPS"); i++)
        if (p[0]->step[i].kind == HL_STEP_OP) printf("    %-12s %-18s %s\n", hl_step_name(p[0], &p[0]->step[i]), hl_step_op_name(&p[0]->step[i]), p[0]->step[i].choice.impl);
    for (int k = 0; k < WAYS; k++) hl_program_destroy(p[k]);
    small_free(&d);
    hl_model_destroy(model);
    halo_network_destroy(net);
}

int main(int argc, char **argv)
{
    static const char *const variants[NETS] = {"mlperf", "sc18", "hybrid"};
    int threads = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 5;
    int64_t size = argc > 2 ? atoi(argv[2]) : 64;
    halo_device_options options = {.threads = threads, .winograd = argc > 4 ? atoi(argv[4]) : 0};
    halo_context *ctx;
    halo_device *dev;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "cpu", &options, &dev), "device");
    for (int i = 0; i < NETS; i++) compare(ctx, dev, variants[i], threads, size, rounds);
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return 0;
}
