/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer_impl.h -- the inside of a reducer. One side is the caller's (reducer.c), the other does all communication (reducer_progress.c) and runs in a thread, or in the
 * caller's calls. They meet in atomics: the caller sets bits of `fresh`, the other side appends to `order` and counts `arrived`; semaphores only wake.
 */
#ifndef HL_REDUCER_IMPL_H
#define HL_REDUCER_IMPL_H

#include "comm/reducer.h"
#include "comm/stall.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

typedef struct hl_reducer_group {
    int64_t lo, n;        /* elements of the buffer */
    hl_route *route;      /* NULL: algorithm mpi */
    char name[64];        /* "conv6" or "conv6 to conv3" */
    hl_group_times times;
    int first;              /* gradient */
    int gradients, missing; /* caller: not yet complete in this step */
} hl_reducer_group;

struct hl_reducer {
    halo_context *ctx;
    hl_reducer_options opt;
    bool alone, threaded, owns_transport;
    int groups, words;
    hl_reducer_group *group;

    /* caller */
    int *group_of; /* [gradients] */
    int left;      /* groups of this step that are not complete */
    uint64_t consumed;
    hl_reducer_stats stats;

    /* between the two */
    _Atomic uint64_t *fresh;    /* [words]: complete, not seen by the other side */
    _Atomic uint64_t *complete; /* [words]: in this step */
    _Atomic uint64_t step;      /* steps begun */
    int *order;                 /* [groups], a ring */
    _Atomic uint64_t arrived;   /* in all */
    _Atomic bool open;          /* a step is under way */
    _Atomic bool quit, want_stop, stop_wanted;
    _Atomic int failed;         /* a halo_status */
    char message[1024];         /* written before `failed` */
    sem_t wake, arrival;
    pthread_t thread;

    /* the other side */
    hl_transport *transport;
    hl_reduction reduction;
    hl_orchestrator *orchestrator;
    hl_stall *stall;
    char *error;           /* fed back, of a narrow wire */
    int current;           /* group under way, -1: none */
    int pending;           /* groups seen complete and not arrived */
    uint64_t *outstanding; /* [words]: those */
    uint64_t *view;        /* [words]: a copy of `complete` */
    double progress;       /* clock of the last one */
    double answered;       /* clock of the last look for questions */
    bool asked;
};

/* Goes on as far as it can without waiting. */
halo_status hl_reducer_advance(hl_reducer *r, bool *moved);
/* The same for callers in a loop: remembers a failure. False: failed. */
bool hl_reducer_step_on(hl_reducer *r, bool *moved);
void *hl_reducer_thread(void *reducer);

static inline size_t hl_reducer_element(const hl_reducer *r) { return r->opt.type == HALO_F64 ? 8 : 4; }

#endif
