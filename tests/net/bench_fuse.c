/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fuse.c -- what fused pools gain on this machine, not a test:  bench_fuse [threads] [size] [rounds]
 * [winograd]
 *
 * Steps of the zoo's cosmoflow networks, batch 1, as compiled and with nothing fused, in turn; least time
 * each, and bytes of activations. One thread by its processor time: a machine that others load too gives a
 * fair ratio.
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

/* What a convolution's forward, pools and activations take. */
static void list_ops(hl_program *p, halo_device *dev, int threads, int rounds)
{
    for (int i = 0; i < p->steps; i++) {
        hl_step *s = &p->step[i];
        halo_op_kind k = s->desc.kind;
        double least = INFINITY;
        if (s->kind != HL_STEP_OP || k == HALO_OP_CONV_BWD_DATA || k == HALO_OP_CONV_BWD_WEIGHTS ||
            (s->phase != HL_PHASE_FORWARD && s->phase != HL_PHASE_BACKWARD))
            continue;
        for (int r = 0; r < rounds; r++) {
            dev->ops->enter(dev);
            double t = seconds(threads);
            check_status(p->ctx, hl_execute(p, s), "an op");
            least = fmin(least, seconds(threads) - t);
            dev->ops->leave(dev);
        }
        if (least > 2e-4)
            printf("    %-12s %-14s %-28s %8.2f ms\n", hl_step_name(p, s), hl_step_op_name(s), s->choice.impl,
                   1e3 * least);
    }
    printf("\n");
}

static void compare(halo_context *ctx, halo_device *dev, const char *variant, int threads, int64_t size,
                    int rounds)
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
    for (int k = 0; k < WAYS; k++)
        check_status(ctx, hl_compile_with(model, &options, (hl_compile_switches){.no_fuse = k == 1}, &p[k]),
                     variant);
    small_data d = small_fill(net, 1, 7);
    for (int r = 0; r < rounds * WAYS; r++) {
        double t = seconds(threads);
        loss[r % WAYS] = small_step(ctx, p[r % WAYS], &d);
        least[r % WAYS] = fmin(least[r % WAYS], seconds(threads) - t);
    }
    printf("%-8s %4d^3  fused %8.4f s %8.1f MiB  apart %8.4f s %8.1f MiB  ratio %.3f  losses differ %.1e\n",
           variant, (int)size, least[0], (double)p[0]->arena_bytes / 1048576, least[1],
           (double)p[1]->arena_bytes / 1048576, least[0] / least[1], fabs(loss[0] - loss[1]) / fabs(loss[1]));
    for (int k = 0; k < WAYS && getenv("HALO_BENCH_OPS"); k++) list_ops(p[k], dev, threads, rounds);
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
