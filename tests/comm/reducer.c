/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer.c -- steps of training with threads as ranks: every rank has a communication thread, gradients become ready in random order. No MPI, so that the
 * thread sanitizer sees all of it.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "comm/reducer.h"
#include "tests/check.h"
#include "tests/comm/fabric.h"
#include "tests/tap.h"

#include <pthread.h>
#include <time.h>

enum { GRADIENTS = 9, STEPS = 6 };

typedef struct job {
    hl_reducer_options opt;
    hl_group groups[GRADIENTS];
    fabric *net;
    int ranks, rank;
    int late_rank; /* does not make its gradients of step 2 ready for a while; -1: none */
    double late;   /* seconds */
    /* out */
    float *buffer;
    int order[STEPS * GRADIENTS], count;
    bool stop;
    halo_status status;
    char message[1024];
    hl_reducer_stats stats;
} job;

static hl_gradient gradient[GRADIENTS];
static int64_t elements;

static const char *const names[GRADIENTS] = {"dense3", "dense3", "dense2", "dense1", "conv4", "conv4", "conv3", "conv2", "conv1"};

static void lay_out(void)
{
    static const int64_t sizes[GRADIENTS] = {3, 1, 130, 2000, 77, 16, 900, 64, 1};
    for (int i = 0; i < GRADIENTS; i++) {
        gradient[i] = (hl_gradient){names[i], elements, elements + sizes[i], 0};
        elements += sizes[i];
    }
}

static float value(int rank, int step, int64_t i)
{
    return (float)(hl_rng_uniform(5, HL_STREAM_TEST, (uint64_t)i, (uint64_t)(rank * 100 + step)) - 0.5);
}

static void nap(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

/* In backward order where the order is the program's, else shuffled. */
static void make_ready(job *j, hl_reducer *r, int step)
{
    int order[GRADIENTS];
    for (int i = 0; i < GRADIENTS; i++) order[i] = i;
    for (int i = GRADIENTS - 1; i > 0; i--) {
        int k = (int)(hl_philox(9, HL_STREAM_TEST, (uint64_t)(step * 50 + i), (uint64_t)j->rank).v[0] % (uint32_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < GRADIENTS; i++) {
        if (step == 2 && j->rank == j->late_rank && i == GRADIENTS / 2) nap(j->late);
        const hl_gradient *g = &gradient[order[i]];
        for (int64_t e = g->lo; e < g->hi; e++) j->buffer[e] = value(j->rank, step, e);
        hl_reducer_ready(r, order[i]);
        hl_reducer_poll(r);
    }
}

static halo_status step_of(job *j, hl_reducer *r, int step)
{
    hl_reducer_begin(r);
    if (step == 3 && j->rank == j->ranks - 1) hl_reducer_want_stop(r);
    make_ready(j, r, step);
    for (int g = 0;;) {
        HL_TRY(hl_reducer_next(r, &g));
        if (g < 0) return HALO_OK;
        j->order[j->count++] = g;
    }
}

static void *run(void *user)
{
    job *j = user;
    halo_context *ctx;
    hl_reducer *r = NULL;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    j->opt.buffer = j->buffer;
    j->opt.transport = fabric_rank(j->net, j->rank);
    j->status = hl_reducer_create(ctx, &j->opt, &r);
    for (int s = 0; s < STEPS && j->status == HALO_OK; s++) j->status = step_of(j, r, s);
    snprintf(j->message, sizeof(j->message), "%s", halo_error_message(ctx));
    if (r) {
        j->stop = hl_reducer_stop_wanted(r);
        hl_reducer_stats_get(r, &j->stats, NULL);
    }
    hl_reducer_destroy(r);
    halo_context_destroy(ctx);
    return NULL;
}

/* All ranks as threads; their jobs stay for reading and are freed by drop. */
static job *run_all(int ranks, const hl_reducer_options *opt, hl_grouping grouping, int late_rank, double late)
{
    job *jobs = check_alloc(ranks, sizeof(*jobs));
    pthread_t *thread = check_alloc(ranks, sizeof(*thread));
    fabric *net = fabric_create(ranks, 2, 77);
    for (int i = 0; i < ranks; i++) {
        job *j = &jobs[i];
        *j = (job){.opt = *opt, .net = net, .ranks = ranks, .rank = i, .late_rank = late_rank, .late = late, .buffer = check_alloc(elements, 4)};
        hl_grouping_spec spec = {.kind = grouping, .element = 4, .bytes = 500};
        check_status(NULL, hl_group_gradients(NULL, &spec, gradient, GRADIENTS, j->groups, &j->opt.groups), "groups");
        j->opt.group = j->groups;
        j->opt.gradient = gradient;
        j->opt.gradients = GRADIENTS;
        pthread_create(&thread[i], NULL, run, j);
    }
    for (int i = 0; i < ranks; i++) pthread_join(thread[i], NULL);
    fabric_destroy(net);
    free(thread);
    return jobs;
}

static void drop(job *jobs, int ranks)
{
    for (int i = 0; i < ranks; i++) free(jobs[i].buffer);
    free(jobs);
}

static bool good_sums(const job *jobs, int ranks, hl_wire wire)
{
    for (int64_t e = 0; e < elements; e++) {
        double sum = 0, size = 0;
        for (int i = 0; i < ranks; i++) {
            sum += value(i, STEPS - 1, e);
            size += fabs(value(i, STEPS - 1, e));
        }
        /* the error that is fed back may come on top */
        if (!(fabs(jobs[0].buffer[e] - sum) <= size * (wire == HL_WIRE_NATIVE ? 1e-6 : 0) + (wire == HL_WIRE_NATIVE ? 0 : 0.01 * ranks))) return false;
    }
    for (int i = 1; i < ranks; i++)
        if (memcmp(jobs[i].buffer, jobs[0].buffer, (size_t)elements * 4) != 0) return false;
    return true;
}

static bool good_order(const job *jobs, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        if (jobs[i].status != HALO_OK || jobs[i].count != STEPS * jobs[i].opt.groups) return false;
        if (memcmp(jobs[i].order, jobs[0].order, (size_t)jobs[0].count * sizeof(int)) != 0) return false;
    }
    return true;
}

/* Every orchestration, thread or not: right sums, one order; the bits are those of the first grouping. */
static void steps(void)
{
    static const hl_grouping grouping[] = {HL_GROUP_PER_LAYER, HL_GROUP_SINGLE, HL_GROUP_BYTES};
    for (int a = HL_RABENSEIFNER; a < HL_ALGORITHMS; a++)
        for (int wire = HL_WIRE_NATIVE; wire <= HL_WIRE_BF16; wire++) {
            float *first = NULL;
            bool good = true, same = true, stopped = true;
            for (int o = 0; o < HL_ORCHESTRATIONS; o++)
                for (size_t k = 0; k < HL_COUNT(grouping); k++)
                    for (int polled = 0; polled < 2; polled++) {
                        int ranks = 4;
                        hl_reducer_options opt = {.type = HALO_F32, .algorithm = (hl_algorithm)a, .wire = (hl_wire)wire, .orchestration = (hl_orchestration)o,
                                                  .no_thread = polled, .stall = 60, .segment = 100, .node_size = 2};
                        job *jobs = run_all(ranks, &opt, grouping[k], -1, 0);
                        good = good && good_order(jobs, ranks) && good_sums(jobs, ranks, opt.wire) && jobs[0].stats.threaded == !polled;
                        for (int i = 0; i < ranks; i++) stopped = stopped && jobs[i].stop == (o == HL_BITVECTOR);
                        if (!first) {
                            first = check_alloc(elements, 4);
                            memcpy(first, jobs[0].buffer, (size_t)elements * 4);
                        }
                        same = same && memcmp(first, jobs[0].buffer, (size_t)elements * 4) == 0;
                        drop(jobs, ranks);
                    }
            free(first);
            tap_ok(good, "%s, wire %d: 4 ranks, threads or polling, 3 orchestrations, 3 groupings: sums and order are right", hl_algorithm_name((hl_algorithm)a), wire);
            tap_ok(same, "%s, wire %d: no bit depends on grouping, orchestration or threads", hl_algorithm_name((hl_algorithm)a), wire);
            tap_ok(stopped, "a wish to stop reaches all ranks by bits, and only so");
        }
}

static void alone(void)
{
    hl_reducer_options opt = {.type = HALO_F32, .algorithm = HL_RING, .orchestration = HL_BITVECTOR};
    job *jobs = run_all(1, &opt, HL_GROUP_PER_LAYER, -1, 0);
    tap_ok(good_order(jobs, 1) && good_sums(jobs, 1, HL_WIRE_NATIVE), "one rank: groups arrive as they are ready");
    drop(jobs, 1);
}

static void refusals(void)
{
    hl_reducer_options opt = {.type = HALO_F32, .algorithm = HL_ALGORITHM_MPI, .wire = HL_WIRE_BF16};
    job *jobs = run_all(2, &opt, HL_GROUP_SINGLE, -1, 0);
    tap_ok(jobs[0].status == HALO_ERR_USAGE, "mpi with a narrow wire: %s", jobs[0].message);
    drop(jobs, 2);
    opt.wire = HL_WIRE_NATIVE;
    jobs = run_all(2, &opt, HL_GROUP_SINGLE, -1, 0);
    tap_ok(jobs[0].status == HALO_ERR_UNSUPPORTED, "mpi over a transport without it: %s", jobs[0].message);
    drop(jobs, 2);
}

static void stalls(void)
{
    for (int o = 0; o < HL_ORCHESTRATIONS; o++) {
        hl_reducer_options opt = {.type = HALO_F32, .algorithm = HL_RABENSEIFNER, .orchestration = (hl_orchestration)o, .stall = 1};
        int ranks = 3, late = o == HL_BITVECTOR ? 0 : 2;
        double start = hl_now();
        /* long enough that a rank whose thread gets no processor for a while still answers */
        job *jobs = run_all(ranks, &opt, HL_GROUP_PER_LAYER, late, 3);
        const job *teller = &jobs[late == 0 ? 1 : 0];
        char who[40];
        snprintf(who, sizeof(who), "rank %d withholds", late);
        tap_ok(teller->status == HALO_ERR_COMM && strstr(teller->message, who) && strstr(teller->message, "conv") && hl_now() - start < 30, "%s: %s",
               hl_orchestration_name((hl_orchestration)o), teller->message);
        drop(jobs, ranks);
    }
    hl_reducer_options opt = {.type = HALO_F32, .algorithm = HL_RABENSEIFNER, .orchestration = HL_BITVECTOR, .stall = 20};
    job *jobs = run_all(3, &opt, HL_GROUP_PER_LAYER, 1, 0.3);
    tap_ok(good_order(jobs, 3) && good_sums(jobs, 3, HL_WIRE_NATIVE), "a rank that is late by less than that is waited for");
    drop(jobs, 3);
}

int main(void)
{
    lay_out();
    steps();
    alone();
    refusals();
    stalls();
    return tap_done();
}
