/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c -- every algorithm, wire and number of ranks against a direct sum, in one process. */
#include "base/rng.h"
#include "comm/reduction.h"
#include "tests/check.h"
#include "tests/comm/fabric.h"
#include "tests/tap.h"
#include "tensor/operand.h"

typedef struct shape {
    hl_algorithm algorithm;
    hl_wire wire;
    halo_dtype type;
    int ranks, local;
    int64_t n, segment;
} shape;

static double value(int rank, int64_t i)
{
    double x = hl_rng_uniform(3, HL_STREAM_TEST, (uint64_t)i, (uint64_t)rank) - 0.5;
    return x * (i % 3 == 0 ? 100 : i % 3 == 1 ? 1 : 1e-3);
}

static void put(void *buffer, halo_dtype type, int64_t i, double x)
{
    if (type == HALO_F64)
        ((double *)buffer)[i] = x;
    else
        ((float *)buffer)[i] = (float)x;
}

static double get(const void *buffer, halo_dtype type, int64_t i)
{
    return type == HALO_F64 ? ((const double *)buffer)[i] : (double)((const float *)buffer)[i];
}

/* Sums elements [lo, hi) of every rank's buffer, the ranks taking turns in random order. */
static void reduce(const shape *s, char **buffer, char **error, int64_t lo, int64_t hi, uint64_t seed)
{
    fabric *f = fabric_create(s->ranks, 3, seed);
    hl_reduction *r = check_alloc(s->ranks, sizeof(*r));
    hl_route **route = check_alloc(s->ranks, sizeof(*route));
    size_t size = hl_dtype_size(s->type);
    for (int i = 0; i < s->ranks; i++) {
        hl_route_spec spec = {.algorithm = s->algorithm, .ranks = {0, 1, s->ranks, i}, .local = s->local, .elements = hi - lo, .segment = s->segment};
        check_status(NULL, hl_route_create(NULL, &spec, &route[i]), "route");
        check_status(NULL, hl_reduction_create(NULL, fabric_rank(f, i), s->type, s->wire, s->segment, route[i]->fan, &r[i]), "reduction");
        check_status(NULL, hl_reduction_start(&r[i], route[i], buffer[i] + (size_t)lo * size, error ? error[i] + (size_t)lo * size : NULL, 5),
                     "start");
    }
    for (int64_t turn = 0, left = s->ranks; left > 0; turn++) {
        int i = (int)(hl_philox(seed, HL_STREAM_TEST, (uint64_t)turn, 1).v[0] % (uint32_t)s->ranks);
        bool was = r[i].route == NULL && r[i].tag == 5, done;
        check_status(NULL, hl_reduction_test(&r[i], &done), "test");
        if (was) done = true;
        if (done && r[i].tag == 5) {
            left--;
            r[i].tag = -1;
        }
        if (turn > 10000000) {
            fprintf(stderr, "%s of %d ranks does not end\n", hl_algorithm_name(s->algorithm), s->ranks);
            exit(99);
        }
    }
    if (fabric_left(f) != 0) {
        fprintf(stderr, "messages are left\n");
        exit(99);
    }
    for (int i = 0; i < s->ranks; i++) {
        hl_reduction_destroy(&r[i]);
        hl_route_destroy(route[i]);
    }
    free(r);
    free(route);
    fabric_destroy(f);
}

static char **fresh(const shape *s)
{
    char **b = check_alloc(s->ranks, sizeof(*b));
    for (int r = 0; r < s->ranks; r++) {
        b[r] = check_alloc(s->n, (int64_t)hl_dtype_size(s->type));
        for (int64_t i = 0; i < s->n; i++) put(b[r], s->type, i, value(r, i));
    }
    return b;
}

static void drop(const shape *s, char **b)
{
    for (int r = 0; r < s->ranks; r++) free(b[r]);
    free(b);
}

static bool equal_everywhere(const shape *s, char **b)
{
    for (int r = 1; r < s->ranks; r++)
        if (memcmp(b[0], b[r], (size_t)s->n * hl_dtype_size(s->type)) != 0) return false;
    return true;
}

/* Largest |sum - direct| over the sum of |parts|. */
static double error_of(const shape *s, char **b)
{
    double worst = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0, size = 1e-30;
        for (int r = 0; r < s->ranks; r++) {
            double v = s->type == HALO_F64 ? value(r, i) : (double)(float)value(r, i);
            sum += v;
            size += fabs(v);
        }
        worst = check_worse(worst, fabs(get(b[0], s->type, i) - sum) / size);
    }
    return worst;
}

static double tolerance(const shape *s)
{
    double steps = 2 + log2(s->ranks);
    if (s->algorithm == HL_RING) steps = s->ranks + 1;
    return steps * (s->wire == HL_WIRE_BF16 ? 0x1p-8 : s->wire == HL_WIRE_F16 ? 0x1p-10 : s->type == HALO_F64 ? 0x1p-52 : 0x1p-23);
}

static void sums(void)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17};
    static const int64_t sizes[] = {0, 1, 2, 13, 1000};
    for (int a = HL_RING; a < HL_ALGORITHMS; a++)
        for (int w = HL_WIRE_NATIVE; w <= HL_WIRE_F16; w++) {
            double worst = 0;
            bool equal = true;
            for (size_t p = 0; p < HL_COUNT(ranks); p++)
                for (size_t n = 0; n < HL_COUNT(sizes); n++)
                    for (int wide = 0; wide < 2; wide++) {
                        shape s = {(hl_algorithm)a, (hl_wire)w, wide ? HALO_F64 : HALO_F32, ranks[p], ranks[p] % 3 == 0 ? 3 : ranks[p] % 2 == 0 ? 2 : 4,
                                   sizes[n], n % 2 == 0 ? 17 : 64};
                        char **b = fresh(&s);
                        reduce(&s, b, NULL, 0, s.n, p * 100 + n);
                        equal = equal && equal_everywhere(&s, b);
                        if (s.ranks > 1) worst = check_worse(worst, error_of(&s, b) / tolerance(&s));
                        drop(&s, b);
                    }
            tap_ok(equal && worst <= 1, "%s, wire %d: 1 to 17 ranks end with equal bits and the sum: %.2f of the tolerance", hl_algorithm_name((hl_algorithm)a), w,
                   worst);
        }
}

/* Cutting the buffer anywhere changes no bit. */
static void cuts(void)
{
    static const int ranks[] = {2, 3, 4, 6, 8, 11, 12};
    for (int a = HL_RABENSEIFNER; a < HL_ALGORITHMS; a++)
        for (int w = HL_WIRE_NATIVE; w <= HL_WIRE_F16; w++) {
            bool same = true;
            for (size_t p = 0; p < HL_COUNT(ranks); p++) {
                shape s = {(hl_algorithm)a, (hl_wire)w, HALO_F32, ranks[p], ranks[p] % 3 == 0 ? 3 : 2, 500, 40};
                char **whole = fresh(&s), **parts = fresh(&s);
                reduce(&s, whole, NULL, 0, s.n, p);
                for (int64_t at = 0, k = 0; at < s.n; k++) {
                    int64_t n = 1 + (int64_t)(hl_philox(p, HL_STREAM_TEST, (uint64_t)k, 2).v[0] % 200);
                    reduce(&s, parts, NULL, at, hl_min64(at + n, s.n), (uint64_t)k);
                    at += n;
                }
                same = same && memcmp(whole[0], parts[0], (size_t)s.n * 4) == 0 && equal_everywhere(&s, parts);
                drop(&s, whole);
                drop(&s, parts);
            }
            tap_ok(same, "%s, wire %d: no bit depends on how the buffer is cut", hl_algorithm_name((hl_algorithm)a), w);
        }
    bool same = true;
    for (int w = HL_WIRE_NATIVE; w <= HL_WIRE_F16; w++) {
        shape s = {HL_RING, (hl_wire)w, HALO_F32, 2, 2, 333, 50};
        char **first = fresh(&s);
        reduce(&s, first, NULL, 0, s.n, 1);
        for (int a = HL_RABENSEIFNER; a < HL_ALGORITHMS; a++) {
            s.algorithm = (hl_algorithm)a;
            char **b = fresh(&s);
            reduce(&s, b, NULL, 0, s.n, 2);
            same = same && memcmp(first[0], b[0], (size_t)s.n * 4) == 0;
            drop(&s, b);
        }
        drop(&s, first);
    }
    tap_ok(same, "at 2 ranks all algorithms give equal bits");
}

/* With the error fed back, the mean of many narrow sums is the sum; without, it stays off. */
static void feedback(void)
{
    shape s = {HL_RABENSEIFNER, HL_WIRE_BF16, HALO_F32, 4, 2, 64, 16};
    char **error = check_alloc(s.ranks, sizeof(*error));
    for (int r = 0; r < s.ranks; r++) error[r] = check_alloc(s.n, 4);
    enum { TIMES = 200 };
    double mean[2][64] = {{0}};
    for (int fed = 0; fed < 2; fed++)
        for (int t = 0; t < TIMES; t++) {
            char **b = check_alloc(s.ranks, sizeof(*b));
            for (int r = 0; r < s.ranks; r++) {
                b[r] = check_alloc(s.n, 4);
                for (int64_t i = 0; i < s.n; i++) put(b[r], s.type, i, r == 0 ? 1 + 1e-3 * (double)i / 64 : 0);
            }
            reduce(&s, b, fed ? error : NULL, 0, s.n, (uint64_t)t);
            for (int64_t i = 0; i < s.n; i++) mean[fed][i] += get(b[0], s.type, i) / TIMES;
            drop(&s, b);
        }
    double off[2] = {0};
    for (int fed = 0; fed < 2; fed++)
        for (int64_t i = 0; i < s.n; i++) off[fed] = check_worse(off[fed], fabs(mean[fed][i] - (1 + 1e-3 * (double)i / 64)));
    tap_ok(off[1] <= 1e-4 && off[0] > 5e-4, "fed-back error makes the mean of %d bf16 sums right: %.1e, without %.1e", TIMES, off[1], off[0]);
    float x[3] = {INFINITY, NAN, 1e30f}, e[3] = {0, 0, 0};
    hl_wire_arithmetic(HL_WIRE_F16, HALO_F32)->feed(3, x, e);
    tap_ok(isinf(x[0]) && isnan(x[1]) && isinf(x[2]) && e[0] == 0 && e[1] == 0 && e[2] == 0, "what is not finite is passed on and leaves no error behind");
    drop(&s, error);
}

static int64_t sent_by(hl_algorithm a, int ranks, int local, int64_t n)
{
    int64_t most = 0;
    for (int r = 0; r < ranks; r++) {
        hl_route *route;
        hl_route_spec spec = {.algorithm = a, .ranks = {0, 1, ranks, r}, .local = local, .elements = n, .segment = n};
        int64_t bytes = 0;
        check_status(NULL, hl_route_create(NULL, &spec, &route), "route");
        for (int i = 0; i < route->sends; i++)
            if (local == 1 || route->send[i].peer / local != r / local) bytes += route->send[i].n;
        most = hl_max64(most, bytes);
        hl_route_destroy(route);
    }
    return most;
}

static void traffic(void)
{
    tap_ok(sent_by(HL_RING, 8, 1, 8000) == 14000 && sent_by(HL_RABENSEIFNER, 8, 1, 8000) == 14000,
           "ring and rabenseifner of 8 ranks send 2 * 7/8 of the buffer each");
    tap_ok(sent_by(HL_HIERARCHICAL, 8, 4, 8000) == 2000, "hierarchical: each of 4 local ranks sends 2 * 1/2 of a quarter between 2 nodes");
    hl_route *route;
    hl_route_spec spec = {.algorithm = HL_RABENSEIFNER, .ranks = {3, 4, 8, 1}, .elements = 80, .segment = 80};
    check_status(NULL, hl_route_create(NULL, &spec, &route), "route");
    tap_ok(route->send[0].peer == 3 && route->send[0].n == 40 && route->send[2].peer == 3 + 5 * 4, "the nearest partner gets the largest half; members are base + i stride");
    hl_route_destroy(route);
}

int main(void)
{
    sums();
    cuts();
    feedback();
    traffic();
    return tap_done();
}
