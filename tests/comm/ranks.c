/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c -- comm over MPI, on as many ranks as the launcher started. Argument "funneled": MPI gives no MPI_THREAD_MULTIPLE, so gradients are summed by polling.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "comm/reducer.h"
#include "halo/halo_mpi.h"
#include "tests/check.h"
#include "tests/tap.h"
#include "tensor/operand.h"

#include <time.h>

static halo_context *ctx;
static bool funneled;

/* One claim of all ranks. */
static void claim(bool holds, const char *sentence, double figure)
{
    double bad = holds ? 0 : 1;
    check_status(ctx, hl_comm_max(ctx, &bad, 1), "max");
    if (ctx->rank == 0) tap_ok(bad == 0, "%s [%.3g]", sentence, figure);
}

static halo_context *make(void)
{
    halo_context *made;
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &made), "context");
    return made;
}

/* --------------------------------------------------------------------------------------------- the small collectives */

static void agreement(void)
{
    claim(hl_agree(ctx, HALO_OK) == HALO_OK, "all ranks agree that nothing failed", 0);
    int bad = ctx->ranks - 1;
    halo_status mine = ctx->rank == bad ? hl_fail(ctx, HALO_ERR_IO, "cannot open 'x.h5'") : HALO_OK, st = hl_agree(ctx, mine);
    char want[64];
    snprintf(want, sizeof(want), ctx->rank == bad ? "cannot open 'x.h5'" : "rank %d: cannot open 'x.h5'", bad);
    claim(st == HALO_ERR_IO && strcmp(halo_error_message(ctx), want) == 0, "a failure of the last rank reaches all, with its message", 0);
    mine = ctx->rank % 2 == 0 ? hl_fail(ctx, HALO_ERR_FORMAT, "rank has %d", ctx->rank) : HALO_OK;
    st = hl_agree(ctx, mine);
    claim(st == HALO_ERR_FORMAT && strstr(halo_error_message(ctx), ctx->rank % 2 == 0 ? "rank has" : "rank 0: rank has 0"), "of several failures the first is told", 0);
}

static void small(void)
{
    enum { BYTES = 12345 };
    char data[BYTES];
    bool good = true;
    for (int root = 0; root < ctx->ranks; root++) {
        for (int i = 0; i < BYTES; i++) data[i] = (char)(ctx->rank == root ? i * 7 + root : 0);
        check_status(ctx, hl_comm_broadcast(ctx, data, BYTES, root), "broadcast");
        for (int i = 0; i < BYTES; i++) good = good && data[i] == (char)(i * 7 + root);
    }
    claim(good, "bytes of each rank reach all", 0);
    char *all = check_alloc(ctx->ranks, BYTES);
    for (int i = 0; i < BYTES; i++) data[i] = (char)(i + ctx->rank);
    check_status(ctx, hl_comm_gather(ctx, data, BYTES, all), "gather");
    for (int r = 0; r < ctx->ranks; r++)
        for (int i = 0; i < BYTES; i++) good = good && all[r * BYTES + i] == (char)(i + r);
    free(all);
    double x[2] = {ctx->rank, ctx->rank == 1 ? NAN : 1};
    check_status(ctx, hl_comm_sum(ctx, x, 2), "sum");
    good = good && x[0] == ctx->ranks * (ctx->ranks - 1) / 2.0 && (ctx->ranks > 1 ? isnan(x[1]) : x[1] == 1);
    claim(good, "bytes are gathered in the order of ranks; sums keep NaN", 0);
}

static void places(void)
{
    hl_place p = hl_comm_place(ctx);
    int rank, ranks, world;
    halo_mpi_rank(ctx, &rank, &ranks);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    claim(p.rank == rank && p.ranks == ranks && ranks == world && p.local < p.locals && p.threads == !funneled && (p.nodes > 1 || p.node_size == ranks),
          "each rank knows its place", p.node_size);
    halo_context *other = NULL;
    check_status(NULL, halo_mpi_context_create_f(MPI_Comm_c2f(MPI_COMM_SELF), NULL, &other), "context of Fortran");
    claim(other->ranks == 1 && other->rank == 0, "a communicator of Fortran makes a context", 0);
    halo_context_destroy(other);
    claim(halo_mpi_context_create(MPI_COMM_NULL, NULL, &other) == HALO_ERR_USAGE, "MPI_COMM_NULL is refused", 0);
    halo_context_options bad = HALO_CONTEXT_OPTIONS_INIT;
    if (ctx->rank == 0) bad.threads = -1;
    halo_status st = halo_mpi_context_create(MPI_COMM_WORLD, &bad, &other);
    claim(st == (ctx->rank == 0 ? HALO_ERR_USAGE : HALO_ERR_COMM), "options that are wrong on one rank make no context on any", 0);
}

/* ------------------------------------------------------------------------------------------------------- the reducer */

static double value(int rank, int64_t i) { return (hl_rng_uniform(1, HL_STREAM_TEST, (uint64_t)i, (uint64_t)rank) - 0.5) * (i % 2 ? 1 : 50); }

/* Sums n elements of value() twice, cut into `groups` equal gradients, each a group; the second sum stays in buffer. */
static halo_status reduce(hl_reducer_options o, void *buffer, int64_t n, int groups)
{
    hl_gradient *gradient = check_alloc(groups, sizeof(*gradient));
    hl_group *group = check_alloc(groups, sizeof(*group));
    hl_reducer *r = NULL;
    for (int g = 0; g < groups; g++) {
        gradient[g] = (hl_gradient){"layer", n * g / groups, n * (g + 1) / groups, 0};
        group[g] = (hl_group){g, g + 1};
    }
    o.buffer = buffer;
    o.gradient = gradient;
    o.group = group;
    o.gradients = o.groups = groups;
    o.stall = 60;
    halo_status st = hl_reducer_create(ctx, &o, &r);
    for (int step = 0; step < 2 && st == HALO_OK; step++) {
        for (int64_t i = 0; i < n; i++)
            if (o.type == HALO_F64)
                ((double *)buffer)[i] = value(ctx->rank, i);
            else
                ((float *)buffer)[i] = (float)value(ctx->rank, i);
        hl_reducer_begin(r);
        for (int g = 0; g < groups; g++) {
            hl_reducer_ready(r, o.orchestration == HL_STATIC ? g : (g + ctx->rank) % groups);
            hl_reducer_poll(r);
        }
        st = hl_reducer_finish(r);
    }
    hl_reducer_destroy(r);
    free(gradient);
    free(group);
    return st;
}

/* Largest error over the tolerance; 1000 where ranks differ. */
static double judge(const void *buffer, int64_t n, halo_dtype type, hl_wire wire)
{
    double worst = 0, tolerance = wire == HL_WIRE_BF16 ? 0.03 : wire == HL_WIRE_F16 ? 0.004 : type == HALO_F64 ? 1e-15 : 6e-7;
    size_t bytes = (size_t)n * hl_dtype_size(type);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, size = 1e-30, got = type == HALO_F64 ? ((const double *)buffer)[i] : (double)((const float *)buffer)[i];
        for (int r = 0; r < ctx->ranks; r++) {
            sum += value(r, i);
            size += fabs(value(r, i));
        }
        worst = check_worse(worst, fabs(got - sum) / size / tolerance);
    }
    char *first = check_alloc((int64_t)bytes, 1);
    memcpy(first, buffer, bytes);
    check_status(ctx, hl_comm_broadcast(ctx, first, bytes, 0), "broadcast");
    if (memcmp(first, buffer, bytes) != 0) worst = 1000;
    free(first);
    return worst;
}

static void sums(int64_t largest)
{
    const int64_t sizes[] = {1, 7, 4099, largest};
    void *buffer = check_alloc(largest, 8);
    for (int a = 0; a < HL_ALGORITHMS; a++)
        for (int w = 0; w <= (a == HL_ALGORITHM_MPI ? HL_WIRE_NATIVE : HL_WIRE_F16); w++) {
            double worst = 0;
            for (size_t s = 0; s < HL_COUNT(sizes); s++)
                for (int wide = 0; wide < 2; wide++) {
                    hl_reducer_options o = {.type = wide ? HALO_F64 : HALO_F32, .algorithm = (hl_algorithm)a, .wire = (hl_wire)w,
                                            .orchestration = (hl_orchestration)((s + (size_t)wide) % HL_ORCHESTRATIONS)};
                    check_status(ctx, reduce(o, buffer, sizes[s], sizes[s] < 5 ? 1 : 5), "reduce");
                    worst = check_worse(worst, judge(buffer, sizes[s], o.type, o.wire));
                }
            char sentence[80];
            snprintf(sentence, sizeof(sentence), "%s, wire %d: the direct sum, equal everywhere; error / tolerance", hl_algorithm_name((hl_algorithm)a), w);
            claim(worst <= 1, sentence, worst);
        }
    free(buffer);
}

static void bits(int64_t n)
{
    float *first = check_alloc(n, 4), *other = check_alloc(n, 4);
    bool same = true;
    for (int a = HL_RABENSEIFNER; a < HL_ALGORITHMS; a++) {
        hl_reducer_options o = {.type = HALO_F32, .algorithm = (hl_algorithm)a};
        check_status(ctx, reduce(o, first, n, 1), "reduce");
        for (int k = 0; k < HL_ORCHESTRATIONS; k++) {
            o.orchestration = (hl_orchestration)k;
            check_status(ctx, reduce(o, other, n, 3 + 4 * k), "reduce");
            same = same && memcmp(first, other, (size_t)n * 4) == 0;
        }
    }
    claim(same, "rabenseifner and hierarchical: no bit depends on groups or orchestration", 0);
    if (ctx->ranks == 2)
        for (int a = 0; a < HL_ALGORITHMS; a++) {
            check_status(ctx, reduce((hl_reducer_options){.type = HALO_F32, .algorithm = (hl_algorithm)a}, other, n, 1), "reduce");
            same = same && memcmp(first, other, (size_t)n * 4) == 0;
        }
    if (ctx->ranks == 2) claim(same, "at 2 ranks all algorithms give equal bits", 0);
    free(first);
    free(other);
}

/* Counts and bytes above 1000 are split. */
static void limit(int64_t n)
{
    float *first = check_alloc(n, 4), *other = check_alloc(n, 4);
    bool same = true;
    halo_context *plain = ctx;
    setenv("HALO_TEST_COUNT_LIMIT", "1000", 1);
    halo_context *limited = make();
    unsetenv("HALO_TEST_COUNT_LIMIT");
    for (int a = 0; a < HL_ALGORITHMS; a++) {
        hl_reducer_options o = {.type = HALO_F32, .algorithm = (hl_algorithm)a};
        ctx = plain;
        check_status(ctx, reduce(o, first, n, 2), "reduce");
        ctx = limited;
        check_status(ctx, reduce(o, other, n, 2), "reduce");
        same = same && (ctx->ranks > 2 && a == HL_ALGORITHM_MPI ? judge(other, n, HALO_F32, HL_WIRE_NATIVE) <= 1 : memcmp(first, other, (size_t)n * 4) == 0);
    }
    claim(same, "counts above a limit are split and change nothing", 1000);
    small();
    ctx = plain;
    halo_context_destroy(limited);
    free(first);
    free(other);
}

static void link_and_cost(void)
{
    halo_context *plain = ctx;
    setenv("HALO_TEST_LINK", "100e-6,500e6", 1);
    ctx = make();
    unsetenv("HALO_TEST_LINK");
    hl_reduce_cost cost;
    double p = ctx->ranks, want = 2 * (p - 1) / p / 500e6;
    check_status(ctx, hl_reducer_measure(ctx, &(hl_reducer_options){.type = HALO_F32, .algorithm = HL_RING}, 2000000, &cost), "measure");
    claim(cost.seconds_per_byte >= 0.8 * want && (ctx->ranks == 1 || cost.latency > 0), "a test link of 500 MB/s is measured as one; s/byte", cost.seconds_per_byte);
    halo_context_destroy(ctx);
    ctx = plain;
}

/* ---------------------------------------------------------------------------------------------------------- overlap */

enum { LAYERS = 8, OVERLAP_STEPS = 7 };

static void nap(double seconds)
{
    struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* Median over steps of the seconds that the caller waits, when layer i is complete after its time; the groups' number. */
static double exposed(hl_grouping kind, const hl_gradient *gradient, float *buffer, int *groups)
{
    hl_group group[LAYERS];
    double seconds[OVERLAP_STEPS];
    hl_reducer_options o = {.buffer = buffer, .type = HALO_F32, .gradient = gradient, .gradients = LAYERS, .group = group, .algorithm = HL_RABENSEIFNER,
                            .orchestration = HL_BITVECTOR, .stall = 60};
    hl_grouping_spec spec = {.kind = kind, .element = 4};
    hl_reducer *r;
    hl_reducer_stats stats;
    check_status(ctx, hl_reducer_measure(ctx, &o, 4 * gradient[LAYERS - 1].hi, &spec.cost), "measure");
    check_status(ctx, hl_group_gradients(ctx, &spec, gradient, LAYERS, group, &o.groups), "groups");
    check_status(ctx, hl_reducer_create(ctx, &o, &r), "reducer");
    for (int s = 0; s < OVERLAP_STEPS; s++) {
        hl_reducer_stats_reset(r);
        check_status(ctx, hl_comm_barrier(ctx), "barrier");
        double start = hl_now();
        hl_reducer_begin(r);
        for (int i = 0; i < LAYERS; i++) {
            while (hl_now() < start + gradient[i].seconds) nap(fmax(1e-5, (start + gradient[i].seconds - hl_now()) / 2));
            hl_reducer_ready(r, i);
        }
        check_status(ctx, hl_reducer_finish(r), "finish");
        hl_reducer_stats_get(r, &stats, NULL);
        seconds[s] = stats.seconds_exposed;
        check_status(ctx, hl_comm_max(ctx, &seconds[s], 1), "max");
    }
    hl_reducer_destroy(r);
    *groups = o.groups;
    for (int i = 1; i < OVERLAP_STEPS; i++)
        for (int k = i; k > 0 && seconds[k] < seconds[k - 1]; k--) {
            double t = seconds[k];
            seconds[k] = seconds[k - 1];
            seconds[k - 1] = t;
        }
    return seconds[OVERLAP_STEPS / 2];
}

/* Large gradients first and early, small ones last, as in a convolutional network; a link of 50 us and 125 MB/s between the ranks. */
static void overlap(void)
{
    static const int64_t sizes[LAYERS] = {1000, 500000, 1400000, 600000, 300000, 100000, 20000, 2000};
    static const double seconds[LAYERS] = {0.001, 0.005, 0.02, 0.05, 0.09, 0.14, 0.2, 0.25};
    static const char *const names[LAYERS] = {"dense3", "dense2", "dense1", "conv5", "conv4", "conv3", "conv2", "conv1"};
    hl_gradient gradient[LAYERS];
    int64_t at = 0;
    for (int i = 0; i < LAYERS; at += sizes[i++]) gradient[i] = (hl_gradient){names[i], at, at + sizes[i], seconds[i]};
    float *buffer = check_alloc(at, 4);
    halo_context *plain = ctx;
    setenv("HALO_TEST_LINK", "50e-6,125e6", 1);
    ctx = make();
    unsetenv("HALO_TEST_LINK");
    int one, several;
    double single = exposed(HL_GROUP_SINGLE, gradient, buffer, &one), automatic = exposed(HL_GROUP_AUTO, gradient, buffer, &several);
    char sentence[160];
    snprintf(sentence, sizeof(sentence), "auto (%d groups) exposes at most a quarter of what single does: %.1f and %.1f ms", several, automatic * 1e3, single * 1e3);
    claim(one == 1 && several > 1 && automatic <= 0.25 * single, sentence, automatic / single);
    free(buffer);
    halo_context_destroy(ctx);
    ctx = plain;
}

/* HALO_TEST_NODE: each two ranks are a node, the last one alone where their number is odd. */
static void pretended_nodes(void)
{
    setenv("HALO_TEST_NODE", "2", 1);
    halo_context *two = make();
    hl_place p = hl_comm_place(two);
    const int ranks = ctx->ranks, mine = p.node < ranks / 2 ? 2 : 1;
    claim(p.nodes == (ranks + 1) / 2 && p.locals == mine && p.node_size == (ranks == 1 ? 1 : ranks % 2 ? 0 : 2), "two ranks count as a node where a test asks for it", p.nodes);
    halo_context *local;
    check_status(two, hl_comm_inner(two, p.local, p.local, 2, &local), "a context of the ranks of the same number on their nodes");
    claim(hl_comm_place(local).nodes == local->ranks, "and those of the same number are on nodes of their own", local->ranks);
    halo_context_destroy(local);
    halo_context_destroy(two);
    unsetenv("HALO_TEST_NODE");
}

int main(int argc, char **argv)
{
    int level;
    funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    halo_context *early;
    halo_status st = halo_mpi_context_create(MPI_COMM_NULL, NULL, &early);
    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    ctx = make();
    claim(st == HALO_ERR_USAGE, "no context before MPI_Init", 0);
    places();
    agreement();
    small();
    hl_comm_stall(ctx, 60); /* the same, watched */
    agreement();
    small();
    hl_comm_stall(ctx, 0);
    sums(funneled ? 5000 : 200001);
    bits(10001);
    limit(9001);
    pretended_nodes();
    /* Claims about seconds are for a machine that does nothing else: HALO_TEST_TIMES=1 make check TESTS=tests/comm/ranks_2.test */
    const char *times = getenv("HALO_TEST_TIMES");
    bool timed = !funneled && times && *times;
    if (timed) link_and_cost();
    if (timed && ctx->ranks == 2) overlap();
    int rank = ctx->rank;
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
