/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer.h -- sums the gradients of all ranks, group by group, while the backward pass goes on.
 *
 * A step, on every rank:
 *     hl_reducer_begin(r);
 *     backward:  hl_reducer_ready(r, i) as soon as gradient i is complete, in any order; hl_reducer_poll(r) between operations
 *     while (hl_reducer_next(r, &g) == HALO_OK && g >= 0) update the parameters of group g
 * hl_reducer_next gives the groups in the order in which they are summed, which is the same on all ranks; it waits. After the last one it gives -1, and the
 * next step may begin. hl_reducer_try gives those that are there already, also during backward, and does not wait. The buffer belongs to the reducer from
 * ready(i) to the arrival of i's group. Between steps nothing is under way.
 *
 * With MPI_THREAD_MULTIPLE a thread of its own does all communication, and poll does nothing; else poll and next do. Nothing of this allocates, looks up a name
 * or takes a lock. A context of one rank has a reducer too: groups arrive when they are ready.
 *
 * All functions belong to one thread. create and destroy are collective; a step is collective in the sense that all ranks make it.
 */
#ifndef HL_REDUCER_H
#define HL_REDUCER_H

#include "comm/comm.h"
#include "comm/group.h"
#include "comm/orchestrate.h"
#include "comm/reduction.h"

typedef struct hl_reducer hl_reducer;

typedef struct hl_reducer_options {
    void *buffer;                  /* host memory, f32 or f64; outlives the reducer, stays where it is */
    halo_dtype type;
    const hl_gradient *gradient;   /* [gradients], backward order; the names must outlive the reducer */
    int gradients;
    const hl_group *group;         /* [groups], a partition of them (group.h) */
    int groups;
    hl_algorithm algorithm;
    hl_wire wire;
    hl_orchestration orchestration;
    bool no_thread;                /* never make a thread */
    double stall;                  /* seconds after which a late rank ends the run; 0: never */
    double pause;                  /* bitvector: between cycles; 0: 20e-6 */
    int64_t segment;               /* elements of the largest message; 0: 64 Ki */

    hl_transport *transport;       /* tests: instead of the context's communicator; not closed */
    int node_size;                 /* with it: ranks of a node */
} hl_reducer_options;

/* HALO_ERR_USAGE: `mpi` with a narrow wire; HALO_ERR_UNSUPPORTED: `mpi` over a transport that has no allreduce; HALO_ERR_NOMEM. Collective: agreed. */
halo_status hl_reducer_create(halo_context *ctx, const hl_reducer_options *options, hl_reducer **r);
/* After a failure of next, the ranks may be anywhere: end the process by hl_comm_abort instead. NULL is allowed. */
void hl_reducer_destroy(hl_reducer *r);

void hl_reducer_begin(hl_reducer *r);
void hl_reducer_ready(hl_reducer *r, int gradient);
void hl_reducer_poll(hl_reducer *r);
/* HALO_ERR_COMM: a message failed, or a rank is late by `stall` seconds: the message names ranks and groups. */
halo_status hl_reducer_next(hl_reducer *r, int *group);
/* The next group if it is summed already; -1: none is. After a failure -1; next tells of it. */
void hl_reducer_try(hl_reducer *r, int *group);
/* Gradients first <= i < last of a group. */
hl_group hl_reducer_group_of(const hl_reducer *r, int group);
/* next until -1. */
halo_status hl_reducer_finish(hl_reducer *r);

/* Bitvector only: tells all ranks in the next cycle that this one wants to stop; and whether any did, which after the last group of a step is the same everywhere
 * for wishes told before its last cycle. */
void hl_reducer_want_stop(hl_reducer *r);
bool hl_reducer_stop_wanted(const hl_reducer *r);

/* Of the last finished step; clocks of hl_now. */
typedef struct hl_group_times {
    int64_t bytes;
    double ready, start, end; /* complete here; its sum begun; done */
} hl_group_times;

typedef struct hl_reducer_stats {
    int64_t steps;
    double seconds;         /* summing, of all steps */
    double seconds_exposed; /* the caller waited in next */
    double bytes;           /* of gradients, of all steps */
    double begin;           /* clock of the last begin */
    bool threaded;
} hl_reducer_stats;

int hl_reducer_groups(const hl_reducer *r);
/* Between steps. times[groups], may be NULL. */
void hl_reducer_stats_get(const hl_reducer *r, hl_reducer_stats *stats, hl_group_times *times);
void hl_reducer_stats_reset(hl_reducer *r);

/* Times sums of several sizes up to `bytes` with these options (buffer, gradients and groups are not used) and fits their cost: the slowest rank's, the same
 * everywhere. A single rank costs nothing. Collective; some milliseconds to a second. */
halo_status hl_reducer_measure(halo_context *ctx, const hl_reducer_options *options, int64_t bytes, hl_reduce_cost *cost);

#endif
