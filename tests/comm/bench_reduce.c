/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_reduce.c -- the gradients of sc18 in one group (28 MB) summed by each algorithm, beside a bare in-place MPI_Allreduce of the same bytes, in turns: medians.
 * Arguments: bytes (28e6), times (20), elements of a segment (default). Fails (exit 1) when the best algorithm takes more than 1.3 times the bare one.
 */
#include "base/clock.h"
#include "comm/reducer.h"
#include "halo/halo_mpi.h"
#include "tests/check.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof(*x), ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

enum { WAYS = 2 * HL_ALGORITHMS + 1, TIMES_MAX = 1000 };

/* Way 0: bare; then each algorithm with a thread, and without. */
static halo_status one(halo_context *ctx, int way, MPI_Comm bare, hl_reducer **r, float *buffer, int64_t n, double *seconds)
{
    HL_TRY(hl_comm_barrier(ctx));
    double start = hl_now();
    if (way == 0) {
        MPI_Allreduce(MPI_IN_PLACE, buffer, (int)n, MPI_FLOAT, MPI_SUM, bare);
    } else {
        hl_reducer_begin(r[way]);
        hl_reducer_ready(r[way], 0);
        HL_TRY(hl_reducer_finish(r[way]));
    }
    *seconds = hl_now() - start;
    return hl_comm_max(ctx, seconds, 1);
}

int main(int argc, char **argv)
{
    double bytes = argc > 1 ? strtod(argv[1], NULL) : 28e6;
    int times = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20, level;
    int64_t n = (int64_t)bytes / 4;
    static double seconds[WAYS][TIMES_MAX];
    if (times < 1 || times > TIMES_MAX) times = 20;
    MPI_Comm bare;
    halo_context *ctx;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &bare);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    float *buffer = check_alloc(n, 4);
    hl_gradient gradient = {"all", 0, n, 0};
    hl_group group = {0, 1};
    hl_reducer *r[WAYS] = {NULL};
    for (int w = 1; w < WAYS; w++) {
        hl_reducer_options o = {.buffer = buffer, .type = HALO_F32, .gradient = &gradient, .gradients = 1, .group = &group, .groups = 1,
                                .algorithm = (hl_algorithm)((w - 1) / 2), .no_thread = (w - 1) % 2 == 1, .segment = argc > 3 ? strtol(argv[3], NULL, 10) : 0};
        check_status(ctx, hl_reducer_create(ctx, &o, &r[w]), "reducer");
    }
    for (int t = -1; t < times; t++)
        for (int w = 0; w < WAYS; w++) {
            double s;
            check_status(ctx, one(ctx, w, bare, r, buffer, n, &s), "reduce");
            if (t >= 0) seconds[w][t] = s;
        }
    double first = median(seconds[0], times), best = INFINITY;
    if (ctx->rank == 0) printf("%d ranks, %.1f MB, median of %d in turns\n%-24s %8.2f ms\n", ctx->ranks, bytes / 1e6, times, "MPI_Allreduce, in place", first * 1e3);
    for (int w = 1; w < WAYS; w++) {
        double m = median(seconds[w], times);
        best = fmin(best, m);
        if (ctx->rank == 0)
            printf("%-13s %-10s %8.2f ms %6.2f x\n", hl_algorithm_name((hl_algorithm)((w - 1) / 2)), (w - 1) % 2 ? "polling" : "thread", m * 1e3, m / first);
        hl_reducer_destroy(r[w]);
    }
    free(buffer);
    MPI_Comm_free(&bare);
    halo_context_destroy(ctx);
    MPI_Finalize();
    return best <= 1.3 * first ? 0 : 1;
}
