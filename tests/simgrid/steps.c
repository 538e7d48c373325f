/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c -- comm on a simulated machine: the very code of src/comm, built by smpicc, with real buffers. Every rank makes two steps of gradients by each of our
 * algorithms and orchestrations and compares the sums; rank 0 prints TAP and the simulated times. Arguments: elements, and an algorithm if it is to be one alone.
 */
#include "comm/reducer.h"
#include "halo/halo_mpi.h"
#include "tests/check.h"

#include <mpi.h>

enum { GRADIENTS = 4 };

static double value(int rank, int64_t i) { return (double)((rank * 31 + i * 7) % 101) - 50; } /* sums are exact in any order */

static halo_status steps(halo_context *ctx, hl_reducer_options o, float *buffer, int64_t n, bool *right, double *seconds)
{
    static const char *const names[GRADIENTS] = {"dense1", "conv3", "conv2", "conv1"};
    hl_gradient gradient[GRADIENTS];
    hl_group group[GRADIENTS];
    for (int g = 0; g < GRADIENTS; g++) {
        gradient[g] = (hl_gradient){names[g], n * g / GRADIENTS, n * (g + 1) / GRADIENTS, 0};
        group[g] = (hl_group){g, g + 1};
    }
    o.buffer = buffer;
    o.gradient = gradient;
    o.group = group;
    o.gradients = o.groups = GRADIENTS;
    hl_reducer *r;
    HL_TRY(hl_reducer_create(ctx, &o, &r));
    halo_status st = HALO_OK;
    for (int s = 0; s < 2 && st == HALO_OK; s++) {
        for (int64_t i = 0; i < n; i++) buffer[i] = (float)value(ctx->rank, i);
        HL_TRY(hl_comm_barrier(ctx));
        double start = MPI_Wtime();
        hl_reducer_begin(r);
        for (int g = 0; g < GRADIENTS; g++) {
            hl_reducer_ready(r, o.orchestration == HL_STATIC ? g : (g + ctx->rank) % GRADIENTS);
            hl_reducer_poll(r);
        }
        st = hl_reducer_finish(r);
        *seconds = MPI_Wtime() - start;
    }
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int q = 0; q < (ctx->ranks < 101 ? ctx->ranks : ctx->ranks % 101); q++) sum += value(q, i);
        *right = *right && (ctx->ranks % 101 == 0 || buffer[i] == (float)sum); /* 101 ranks together sum to 0 */
    }
    hl_reducer_destroy(r);
    return st;
}

int main(int argc, char **argv)
{
    halo_context *ctx;
    int count = 0, failed = 0;
    MPI_Init(&argc, &argv);
    int64_t n = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    float *buffer = check_alloc(n, 4);
    hl_place place = hl_comm_place(ctx);
    const char *only = argc > 2 ? argv[2] : NULL;
    for (int a = ctx->ranks > 64 ? HL_RABENSEIFNER : HL_RING; a < HL_ALGORITHMS; a++) {
        if (only && strcmp(hl_algorithm_name((hl_algorithm)a), only) != 0) continue;
        for (int k = 0; k < (ctx->ranks > 16 ? 1 : HL_ORCHESTRATIONS); k++) { /* looking for messages is an event of the simulation each time */
            bool right = true;
            double seconds[2] = {0};
            hl_reducer_options o = {.type = HALO_F32, .algorithm = (hl_algorithm)a, .orchestration = (hl_orchestration)k, .segment = 1 << 20};
            check_status(ctx, steps(ctx, o, buffer, n, &right, &seconds[0]), "steps");
            seconds[1] = !right;
            check_status(ctx, hl_comm_max(ctx, seconds, 2), "max");
            failed += seconds[1] != 0;
            if (ctx->rank == 0)
                printf("%s %d - %d simulated ranks on %d nodes, %s, %s: the sums are right, %.1f us\n", seconds[1] == 0 ? "ok" : "not ok", ++count, ctx->ranks,
                       place.nodes, hl_algorithm_name(o.algorithm), hl_orchestration_name(o.orchestration), seconds[0] * 1e6);
            fflush(stdout);
        }
    }
    if (ctx->rank == 0) printf("1..%d\n", count);
    free(buffer);
    halo_context_destroy(ctx);
    MPI_Finalize();
    return failed != 0;
}
