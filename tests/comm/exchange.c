/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c -- exchanges over MPI, on as many ranks as the launcher started: margins of blocks of random grids against the global field they are cut from, and the reverse
 * exchange against the adjoint. Argument "funneled": MPI gives no MPI_THREAD_MULTIPLE. "late", "stopped", "killed" N: rank N does not come to an exchange; the others say
 * so and end (exchange_stall.test).
 */
#include "base/clock.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "comm/exchange.h"
#include "comm/team.h"
#include "halo/halo_mpi.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <signal.h>
#include <time.h>

static halo_context *ctx;
static bool funneled;
static uint64_t drawn;

/* The same on all ranks: 0 <= k < n. */
static int64_t draw(int64_t n) { return (int64_t)(hl_rng_uniform(77, HL_STREAM_TEST, drawn++, 0) * (double)n); }

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

/* ------------------------------------------------------------------------------------------------------------ blocks */

typedef struct field {
    hl_grid grid;
    int64_t n[3], channels, margin[3][2]; /* margins as they are kept; where there is no neighbour the room is there, and stays as it was */
    bool periodic[3], last;               /* channels last */
    halo_dtype type;
    int64_t lo[3], len[3], dim[3], stride[3], channel; /* own block; with margins; of the allocation */
    void *data;
} field;

static int64_t elements(const field *f) { return f->channels * f->dim[0] * f->dim[1] * f->dim[2]; }

static double get(const field *f, int64_t i) { return f->type == HALO_F64 ? ((double *)f->data)[i] : (double)((float *)f->data)[i]; }

static void set(field *f, int64_t i, double v)
{
    if (f->type == HALO_F64)
        ((double *)f->data)[i] = v;
    else
        ((float *)f->data)[i] = (float)v;
}

static void draw_grid(field *f)
{
    int64_t part[3] = {1, 1, 1}, left = ctx->ranks;
    for (int64_t p = 2; left > 1; p++)
        for (; left % p == 0; left /= p) part[draw(3)] *= p;
    f->grid = hl_grid_of(ctx->ranks, part, ctx->rank);
}

static void lay_out(field *f)
{
    for (int a = 0; a < 3; a++) {
        hl_range own = hl_grid_range(&f->grid, a, f->n[a]);
        f->lo[a] = own.lo;
        f->len[a] = own.hi - own.lo;
        f->dim[a] = f->len[a] + f->margin[a][0] + f->margin[a][1];
    }
    int64_t unit = f->last ? f->channels : 1;
    f->stride[2] = unit;
    f->stride[1] = unit * f->dim[2];
    f->stride[0] = unit * f->dim[2] * f->dim[1];
    f->channel = f->last ? 1 : f->stride[0] * f->dim[0];
    f->data = check_alloc(elements(f), 8);
}

static field draw_field(void)
{
    field f = {.channels = 1 + draw(3), .last = draw(2) == 1, .type = draw(2) ? HALO_F64 : HALO_F32};
    draw_grid(&f);
    for (int a = 0; a < 3; a++) {
        f.n[a] = f.grid.part[a] * (1 + draw(4)) + draw(f.grid.part[a]);
        f.periodic[a] = draw(2);
        for (int s = 0; s < 2; s++) f.margin[a][s] = draw(1 + hl_min64(3, f.n[a] / f.grid.part[a]));
    }
    lay_out(&f);
    return f;
}

/* Is there a neighbour on side s of axis a? */
static bool neighbour(const field *f, int a, int s)
{
    return f->periodic[a] || (s == 0 ? f->grid.at[a] > 0 : f->grid.at[a] + 1 < f->grid.part[a]);
}

/* Cells of axis b that an exchange of axis a takes along: its own, and for axes before a the margins that have come. */
static hl_range along(const field *f, int a, int b)
{
    int64_t before = b < a && neighbour(f, b, 0) ? f->margin[b][0] : 0, after = b < a && neighbour(f, b, 1) ? f->margin[b][1] : 0;
    return (hl_range){f->margin[b][0] - before, f->margin[b][0] + f->len[b] + after};
}

static hl_region region(const field *f, int a, hl_range cells)
{
    hl_region r = {.run = f->last ? f->channels : 1, .count = {f->last ? 1 : f->channels, 1, 1, 1, 1}, .stride = {f->channel}};
    for (int b = 0; b < 3; b++) {
        hl_range in = b == a ? cells : along(f, a, b);
        r.offset += in.lo * f->stride[b];
        r.count[1 + b] = in.hi - in.lo;
        r.stride[1 + b] = f->stride[b];
    }
    return r;
}

/* Margins along axis a, then the next: those sent towards lower ranks have tag 0. Reversed: margins go back and are added, last axis first. */
static int messages(const field *f, bool reverse, hl_message *m)
{
    int n = 0;
    for (int k = 0; k < 3; k++) {
        int a = reverse ? 2 - k : k;
        for (int s = 0; s < 2; s++) {
            int64_t at[3] = {f->grid.at[0], f->grid.at[1], f->grid.at[2]}, first = f->margin[a][0], last = first + f->len[a];
            at[a] += s == 0 ? -1 : 1;
            int peer = (int)hl_grid_number_at(&f->grid, at);
            if (!neighbour(f, a, s)) continue;
            hl_range margin = s == 0 ? (hl_range){0, first} : (hl_range){last, last + f->margin[a][1]};
            hl_range edge = s == 0 ? (hl_range){first, first + f->margin[a][1]} : (hl_range){last - f->margin[a][0], last};
            /* the edge goes where side s is, the margin comes from there; reversed the other way */
            if (hl_range_len(edge) > 0) m[n++] = (hl_message){.send = !reverse, .add = reverse, .stage = k, .peer = peer, .tag = s, .region = region(f, a, edge)};
            if (hl_range_len(margin) > 0) m[n++] = (hl_message){.send = reverse, .stage = k, .peer = peer, .tag = 1 - s, .region = region(f, a, margin)};
        }
    }
    return n;
}

static hl_exchange *exchange(const field *f, bool reverse)
{
    hl_message m[12];
    hl_exchange *x;
    int n = messages(f, reverse, m);
    check_status(ctx, hl_exchange_create(ctx, f->type, m, n, &x), "exchange");
    return x;
}

/* ---------------------------------------------------------------------------------------------------------- claims */

static double value(const field *f, int64_t c, const int64_t at[3], int64_t salt)
{
    int64_t i = c;
    for (int a = 0; a < 3; a++) i = i * f->n[a] + ((at[a] % f->n[a]) + f->n[a]) % f->n[a];
    return (double)((i * 7 + salt) % 100003);
}

/* Where a cell of the allocation is: 0 own, 1 a margin that is filled, 2 one that is not. */
static int kind(const field *f, const int64_t local[3])
{
    int k = 0;
    for (int a = 0; a < 3; a++) {
        bool lo = local[a] < f->margin[a][0], hi = local[a] >= f->margin[a][0] + f->len[a];
        if (lo || hi) k = hl_max64(k, neighbour(f, a, hi) ? 1 : 2) == 2 ? 2 : 1;
    }
    return k;
}

typedef double (*visitor)(field *f, int64_t i, int64_t c, const int64_t at[3], int kind, int64_t salt);

static double visit(field *f, visitor see, int64_t salt)
{
    double sum = 0;
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t z = 0; z < f->dim[0]; z++)
            for (int64_t y = 0; y < f->dim[1]; y++)
                for (int64_t x = 0; x < f->dim[2]; x++) {
                    int64_t local[3] = {z, y, x}, at[3], i = c * f->channel;
                    for (int a = 0; a < 3; a++) {
                        at[a] = f->lo[a] + local[a] - f->margin[a][0];
                        i += local[a] * f->stride[a];
                    }
                    sum += see(f, i, c, at, kind(f, local), salt);
                }
    return sum;
}

static double fill(field *f, int64_t i, int64_t c, const int64_t at[3], int kind, int64_t salt)
{
    set(f, i, kind == 0 ? value(f, c, at, salt) : -5);
    return 0;
}

static double wrong(field *f, int64_t i, int64_t c, const int64_t at[3], int kind, int64_t salt)
{
    return get(f, i) != (kind == 2 ? -5 : value(f, c, at, salt));
}

/* Several fields, their exchanges under way at once, several times; each margin's every cell. */
static void margins(int cases, int fields)
{
    int64_t bad = 0, bytes = 0;
    for (int k = 0; k < cases; k++) {
        field f[8];
        hl_exchange *x[8];
        hl_exchange_stats stats;
        for (int i = 0; i < fields; i++) {
            f[i] = draw_field();
            x[i] = exchange(&f[i], false);
        }
        for (int run = 0; run < 3; run++) {
            for (int i = 0; i < fields; i++) {
                visit(&f[i], fill, run * 10 + i);
                check_status(ctx, hl_exchange_start(x[i], f[i].data, f[i].data), "start");
                check_status(ctx, hl_exchange_poll(ctx), "poll");
            }
            for (int i = 0; i < fields; i++) {
                check_status(ctx, hl_exchange_finish(x[i]), "finish");
                bad += (int64_t)visit(&f[i], wrong, run * 10 + i);
            }
        }
        for (int i = 0; i < fields; i++) {
            hl_exchange_stats_get(x[i], &stats, true);
            bad += stats.runs != 3 || stats.exposed < 0 || stats.seconds < 0;
            bytes += stats.bytes;
            hl_exchange_stats_get(x[i], &stats, false);
            bad += stats.runs != 0 || stats.bytes != 0;
            hl_exchange_destroy(x[i]);
            free(f[i].data);
        }
    }
    char sentence[120];
    snprintf(sentence, sizeof(sentence), "margins of %d random blocks, corners too, %d exchanges at once: all cells; bytes sent", cases * fields, fields);
    claim(bad == 0, sentence, (double)bytes);
}

static double random_at(int64_t i, int64_t salt) { return hl_rng_uniform(5, HL_STREAM_TEST, (uint64_t)i, (uint64_t)(salt * 64 + ctx->rank)) - 0.5; }

static double fill_random(field *f, int64_t i, int64_t c, const int64_t at[3], int kind, int64_t salt)
{
    (void)c, (void)at;
    /* salt 0: x, of own cells; 1: y, of all that A fills */
    set(f, i, (salt == 0 && kind == 0) || (salt == 1 && kind < 2) ? random_at(i, salt) : 0);
    return 0;
}

static double product(field *f, int64_t i, int64_t c, const int64_t at[3], int kind, int64_t salt)
{
    (void)c, (void)at;
    if (salt == 0 ? kind > 0 : kind > 1) return 0;
    return get(f, i) * (f->type == HALO_F64 ? random_at(i, salt) : (double)(float)random_at(i, salt));
}

/* <A x, y> = <x, A' y>, A the exchange, A' the reverse. */
static void adjoint(int cases)
{
    double worst = 0;
    for (int k = 0; k < cases; k++) {
        field f = draw_field();
        hl_exchange *forward = exchange(&f, false), *back = exchange(&f, true);
        double sum[2];
        visit(&f, fill_random, 0);
        check_status(ctx, hl_exchange_start(forward, f.data, f.data), "start");
        check_status(ctx, hl_exchange_finish(forward), "finish");
        sum[0] = visit(&f, product, 1);
        visit(&f, fill_random, 1);
        check_status(ctx, hl_exchange_start(back, f.data, f.data), "start");
        check_status(ctx, hl_exchange_finish(back), "finish");
        sum[1] = visit(&f, product, 0);
        check_status(ctx, hl_comm_sum(ctx, sum, 2), "sum");
        worst = check_worse(worst, fabs(sum[0] - sum[1]) / (f.type == HALO_F64 ? 1e-12 : 1e-5));
        hl_exchange_destroy(forward);
        hl_exchange_destroy(back);
        free(f.data);
    }
    claim(worst <= 1, "the reverse exchange with add is the adjoint; error / tolerance", worst);
}

/* From one buffer into another: all ranks in a ring, messages of very different sizes. */
static void ring(int64_t n)
{
    int next = (ctx->rank + 1) % ctx->ranks, last = (ctx->rank + ctx->ranks - 1) % ctx->ranks;
    hl_message m[] = {{.send = true, .peer = next, .region = {.run = n, .count = {1, 1, 1, 1, 1}}},
                      {.peer = last, .region = {.run = n, .count = {1, 1, 1, 1, 1}}},
                      {.send = true, .peer = next, .tag = 63, .region = {.offset = n - 1, .run = 1, .count = {1, 1, 1, 1, 1}}},
                      {.peer = last, .tag = 63, .add = true, .region = {.run = 1, .count = {1, 1, 1, 1, 1}}}};
    double *from = check_alloc(n, 8), *to = check_alloc(n, 8), bad = 0;
    hl_exchange *x;
    check_status(ctx, hl_exchange_create(ctx, HALO_F64, m, 4, &x), "exchange");
    for (int run = 0; run < 4; run++) {
        for (int64_t i = 0; i < n; i++) from[i] = (double)(i + ctx->rank * 3 + run);
        check_status(ctx, hl_exchange_start(x, from, to), "start");
        check_status(ctx, hl_exchange_finish(x), "finish");
        for (int64_t i = 1; i < n; i++) bad += to[i] != (double)(i + last * 3 + run);
        bad += to[0] != (double)(n - 1 + 2 * (last * 3 + run));
    }
    hl_exchange_destroy(x);
    claim(bad == 0, "a ring of large and small messages; what is added comes after what is written", (double)n);
    free(from);
    free(to);
}

/* From run to run, where the caller packs and unpacks: what has left may be overwritten, and not before. */
static void runs(int64_t n)
{
    int next = (ctx->rank + 1) % ctx->ranks, last = (ctx->rank + ctx->ranks - 1) % ctx->ranks;
    double *from = check_alloc(n, 8), *to = check_alloc(n, 8), bad = 0;
    hl_message m[] = {{.send = true, .peer = next, .region = {.run = n, .count = {1, 1, 1, 1, 1}}, .run = from},
                      {.peer = last, .region = {.run = n, .count = {1, 1, 1, 1, 1}}, .run = to}};
    hl_exchange_stats stats;
    hl_exchange *x;
    check_status(ctx, hl_exchange_create(ctx, HALO_F64, m, ctx->ranks > 1 ? 2 : 0, &x), "exchange");
    for (int run = 0; run < 4; run++) {
        check_status(ctx, hl_exchange_settle(x), "settle");
        for (int64_t i = 0; i < n; i++) from[i] = (double)(i + ctx->rank * 3 + run);
        check_status(ctx, hl_exchange_start(x, NULL, NULL), "start");
        check_status(ctx, hl_exchange_finish(x), "finish");
        for (int64_t i = 0; i < n && ctx->ranks > 1; i++) bad += to[i] != (double)(i + last * 3 + run);
    }
    hl_exchange_stats_get(x, &stats, false);
    hl_exchange_destroy(x);
    claim(bad == 0, "messages from run to run, neither packed nor unpacked", (double)n);
    claim(stats.runs == 4 && stats.bytes == (ctx->ranks > 1 ? 4 * 8 * n : 0), "and their bytes are counted", (double)stats.bytes);
    free(from);
    free(to);
}

static void mistakes(void)
{
    hl_message m[] = {{.send = true, .peer = 0, .region = {.run = 3, .count = {1, 1, 1, 1, 1}}}, {.peer = 0, .region = {.run = 4, .count = {1, 1, 1, 1, 1}}}};
    hl_exchange *x = NULL;
    halo_status st = hl_exchange_create(ctx, HALO_F32, m, ctx->rank == 0 ? 2 : 0, &x);
    claim(st == HALO_ERR_USAGE && !x, "a message whose ends differ is refused on all ranks", 0);
    check_status(ctx, hl_exchange_create(ctx, HALO_F32, NULL, 0, &x), "exchange");
    check_status(ctx, hl_exchange_start(x, NULL, NULL), "start");
    check_status(ctx, hl_exchange_finish(x), "finish");
    hl_exchange_destroy(x);
    claim(true, "an exchange of nothing is one", 0);
}

/* The same with a context made under a hook. */
static void hooked(const char *name, const char *setting, int cases)
{
    halo_context *plain = ctx;
    setenv(name, setting, 1);
    ctx = make();
    unsetenv(name);
    if (ctx->rank == 0) tap_note("with %s=%s", name, setting);
    margins(cases, 4);
    adjoint(cases);
    ring(3000);
    halo_context_destroy(ctx);
    ctx = plain;
}

/* Behind a slow link, while others work: for a quiet machine. */
static void overlap(void)
{
    halo_context *plain = ctx;
    setenv("HALO_TEST_LINK", "2e-3,1e9", 1);
    ctx = make();
    unsetenv("HALO_TEST_LINK");
    int next = (ctx->rank + 1) % ctx->ranks, last = (ctx->rank + ctx->ranks - 1) % ctx->ranks;
    enum { N = 10000, RUNS = 20 };
    static float from[N], to[N];
    hl_message m[] = {{.send = true, .peer = next, .region = {.run = N, .count = {1, 1, 1, 1, 1}}}, {.peer = last, .region = {.run = N, .count = {1, 1, 1, 1, 1}}}};
    hl_exchange *x;
    hl_exchange_stats stats;
    check_status(ctx, hl_exchange_create(ctx, HALO_F32, m, 2, &x), "exchange");
    for (int run = 0; run < RUNS; run++) {
        check_status(ctx, hl_exchange_start(x, from, to), "start");
        nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL);
        check_status(ctx, hl_exchange_finish(x), "finish");
    }
    hl_exchange_stats_get(x, &stats, true);
    hl_exchange_destroy(x);
    double share = stats.exposed / stats.seconds;
    check_status(ctx, hl_comm_max(ctx, &share, 1), "max");
    claim(stats.seconds >= RUNS * 2e-3 && share <= 0.1, "an exchange of 2 ms hides behind 8 ms of work; share that does not", share);
    halo_context_destroy(ctx);
    ctx = plain;
}

/* ----------------------------------------------------------------------------------------------------------- teams */

static void teams(void)
{
    halo_context *world = ctx;
    for (int64_t d = 1; d <= world->ranks; d++) {
        if (world->ranks % d != 0) continue;
        hl_team *t;
        const int64_t part[3] = {1, d, 1};
        check_status(world, hl_team_create(world, part, &t), "team");
        bool good = t->group->ranks == d && t->peers->ranks == world->ranks / d && t->group->rank == hl_grid_number(&t->grid) && t->peers->rank == t->grid.data_at &&
                    (t->group == world) == (d == world->ranks);
        double sum[2] = {world->rank, world->rank};
        check_status(world, hl_comm_sum(t->group, &sum[0], 1), "sum");
        check_status(world, hl_comm_sum(t->peers, &sum[1], 1), "sum");
        double first = (double)(t->grid.data_at * d), p = (double)(world->ranks / d), number = t->group->rank;
        good = good && sum[0] == (double)d * first + (double)(d * (d - 1)) / 2 && sum[1] == p * number + (double)d * p * (p - 1) / 2;
        halo_status st = hl_agree(t->group, t->group->rank == 0 ? hl_fail(t->group, HALO_ERR_IO, "group %d", (int)t->grid.data_at) : HALO_OK);
        char want[40];
        snprintf(want, sizeof(want), "group %d", (int)t->grid.data_at);
        good = good && st == HALO_ERR_IO && strstr(halo_error_message(world), want);
        claim(good, "groups and peers of a grid; an error of a group is the world's too; parts", (double)d);
        ctx = t->group;
        drawn = 1000;
        double bad = 0;
        for (int k = 0; k < 3; k++) {
            field f = draw_field();
            hl_exchange *x = exchange(&f, false);
            visit(&f, fill, world->rank);
            visit(&f, fill, t->grid.data_at);
            check_status(ctx, hl_exchange_start(x, f.data, f.data), "start");
            check_status(ctx, hl_exchange_finish(x), "finish");
            bad += visit(&f, wrong, t->grid.data_at);
            hl_exchange_destroy(x);
            free(f.data);
        }
        ctx = world;
        claim(bad == 0, "exchanges in the groups", bad);
        hl_team_destroy(t);
    }
    hl_team *none = NULL;
    halo_status st = hl_team_create(world, (const int64_t[3]){2, world->ranks, 1}, &none);
    claim(st == HALO_ERR_USAGE && !none && strstr(halo_error_message(world), "cannot hold samples split"), "a grid that does not fit is refused", 0);
}

/* --------------------------------------------------------------------------------------------------------- late ranks */

/* Rank `who` starts the first exchanges only. Others end with what finish says. */
static void be_late(const char *how, int who)
{
    hl_team *t;
    const int64_t part[3] = {hl_min64(2, ctx->ranks), 1, 1};
    check_status(ctx, hl_team_create(ctx, part, &t), "team");
    hl_comm_stall(ctx, 1);
    int64_t n = 50000;
    int peer = 1 - t->group->rank;
    hl_message m[] = {{.send = true, .peer = peer, .region = {.run = n, .count = {1, 1, 1, 1, 1}}}, {.peer = peer, .region = {.run = n, .count = {1, 1, 1, 1, 1}}}};
    float *from = check_alloc(n, 4), *to = check_alloc(n, 4);
    hl_exchange *x;
    check_status(ctx, hl_exchange_create(t->group, HALO_F32, m, 2, &x), "exchange");
    halo_status st = HALO_OK;
    for (int run = 0; st == HALO_OK; run++) {
        if (run == 20 && ctx->rank == who) {
            if (strcmp(how, "killed") == 0) raise(SIGKILL);
            if (strcmp(how, "stopped") == 0) raise(SIGSTOP);
            for (int i = 0; i < 60; i++) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        }
        st = hl_exchange_start(x, from, to);
        if (st == HALO_OK) st = hl_exchange_finish(x);
        if (run % 5 == 4 && st == HALO_OK) st = hl_comm_barrier(t->peers);
    }
    fprintf(stderr, "rank %d: %s\n", ctx->rank, halo_error_message(ctx));
    hl_comm_abort(ctx, 7);
}

int main(int argc, char **argv)
{
    int level;
    funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    ctx = make();
    hl_comm_stall(ctx, 60);
    if (argc > 2) be_late(argv[1], atoi(argv[2]));
    claim(hl_comm_place(ctx).threads == !funneled, "the level of threads is what was asked for", level);
    margins(15, 1);
    margins(8, 5);
    adjoint(15);
    ring(100);
    ring(300000);
    runs(50);
    runs(200000);
    mistakes();
    teams();
    hooked("HALO_TEST_COUNT_LIMIT", "200", 5);
    hooked("HALO_TEST_LINK", "200e-6,50e6", 3);
    const char *times = getenv("HALO_TEST_TIMES");
    if (!funneled && ctx->ranks > 1 && times && *times) overlap();
    int rank = ctx->rank;
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
