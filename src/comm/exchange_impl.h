/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_impl.h -- the inside of exchanges. One side is the caller's (exchange.c), the other does all communication (exchange_progress.c) and runs in a thread of the
 * context, or in the caller's calls. They meet in atomics: the caller pushes an exchange on `fresh`, the other side says `over`; semaphores only wake.
 */
#ifndef HL_EXCHANGE_IMPL_H
#define HL_EXCHANGE_IMPL_H

#include "comm/comm.h"
#include "comm/exchange.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { HL_TAG_ASK = 0, HL_TAG_REPLY, HL_TAG_EXCHANGES }; /* of the exchanger's transport; the rest are the exchanges' */

typedef struct hl_part {
    hl_message m; /* its region merged */
    int64_t elements;
    char *buffer;    /* of a message to itself both ends have one */
    hl_lasting wire; /* of a message to or from another rank */
    bool here;       /* receive: unpacked in this run */
} hl_part;

struct hl_exchange {
    halo_context *ctx;
    struct hl_exchanger *e; /* NULL: this rank is alone */
    halo_dtype type;
    int64_t number; /* of the context's exchanges */
    char name[40];
    int parts, stages, remote;
    int64_t messages, bytes; /* sent to others in a run */
    hl_part *part;
    char *memory;
    struct hl_exchange *sibling; /* all of the context, under its lock */

    /* caller */
    bool under_way;
    double started;
    hl_exchange_stats stats;

    /* between the two */
    const void *from;
    void *to;
    _Atomic int64_t starts;     /* calls of start */
    struct hl_exchange *pushed; /* the one before on `fresh` */
    _Atomic bool over;          /* all of this run has arrived */
    _Atomic int64_t left;       /* runs of which everything has left too */
    double arrival;             /* clock, before `over` */
    sem_t arrived;

    /* the other side */
    struct hl_exchange *next; /* active */
    bool waits;               /* started, but its last run has not left yet */
    bool runs;
    int64_t run; /* begun */
    double begun; /* clock, of the last */
    int stage, missing;
    double progress; /* clock of the last */
    int told;        /* answers since: the other is there */
};

typedef struct hl_question {
    int64_t number, run, started; /* has run `run` of exchange `number` been started? */
} hl_question;

typedef struct hl_exchanger {
    halo_context *ctx;
    hl_transport *transport;
    bool threaded;
    pthread_t thread;
    sem_t wake;
    pthread_mutex_t lock; /* of `all` */
    hl_exchange *all;
    int64_t made;
    int next_tag;

    _Atomic(hl_exchange *) fresh; /* a stack */
    _Atomic bool quit;
    _Atomic int failed;   /* a halo_status */
    char message[1024];   /* written before `failed` */

    /* the other side */
    hl_exchange *active; /* in order of starting */
    double listened;     /* clock of the last look for questions */
    hl_question question, reply;
    hl_request asking, replying;
    hl_exchange *about; /* of the question that waits for an answer; NULL: none does */
    int asked;          /* rank */
    double since;       /* clock of asking */
} hl_exchanger;

/* The context's exchanger, made with the first call. Collective. */
halo_status hl_exchanger_of(halo_context *ctx, hl_exchanger **e);
/* NULL is allowed. Collective. */
void hl_exchanger_destroy(hl_exchanger *e);

/* Goes on as far as it can without waiting; false after a failure, which is remembered. */
bool hl_exchanger_step(hl_exchanger *e, bool *moved);
void *hl_exchanger_thread(void *exchanger);
/* Nothing of it is under way on the other side. */
static inline bool hl_exchange_idle(hl_exchange *x) { return atomic_load(&x->left) == atomic_load(&x->starts); }
/* All of a run of an exchange that has messages to this rank alone. */
void hl_exchange_alone(hl_exchange *x);
/* The rank that is waited for, and since which run. */
int hl_exchange_awaited(const hl_exchange *x);

/* exchange_stall.c: answers questions; asks whom an exchange has waited for too long. HALO_ERR_COMM names a rank that is late. */
halo_status hl_exchanger_listen(hl_exchanger *e);
/* exchange_match.c: every message has its other end, of as many elements; base of tags and the number of them a stage has. Collective: agreed. */
halo_status hl_exchange_match(hl_exchange *x, int *stages, int *tags);

#endif
