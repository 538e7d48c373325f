/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h -- how messages travel: isend, irecv, test, probe. Everything in comm that overlaps with computing is written over this, so that the
 * same code runs over MPI, in one process (the tests) and on a simulated machine.
 *
 * Messages between two ranks with one tag arrive in the order they were sent. Nothing here blocks, except `allreduce`; a request makes progress
 * only inside calls of its own transport, which belong to one thread at a time. Nothing is collective but `allreduce` and what says so.
 */
#ifndef HL_TRANSPORT_H
#define HL_TRANSPORT_H

#include "base/base.h"
#include "halo/backend.h"

typedef struct hl_transport hl_transport;

/* A message on its way. Made by isend and irecv, over when test says so; the buffer belongs to it until then. */
typedef struct hl_request {
    enum { HL_REQUEST_NONE = 0, HL_REQUEST_HELD, HL_REQUEST_POSTED } state;
    int peer, tag;
    const void *buffer; /* of a send that is held back */
    size_t bytes;
    double release; /* clock, when held back */
    bool lasting;   /* prepared: `native` stays */
    union {
        void *pointer;
        int64_t number;
    } native;
} hl_request;

typedef struct hl_transport_ops {
    /* REQUIRED */
    halo_status (*isend)(hl_transport *t, const void *buffer, size_t bytes, int peer, int tag, hl_request *request);
    halo_status (*irecv)(hl_transport *t, void *buffer, size_t bytes, int peer, int tag, hl_request *request);
    halo_status (*test)(hl_transport *t, hl_request *request, bool *done); /* done stays true afterwards */
    halo_status (*probe)(hl_transport *t, int peer, int tag, int *from);   /* is a message waiting? peer < 0: of any rank; *from < 0: no */
    void (*close)(hl_transport *t);
    /* OPTIONAL: buffer[i] = sum over ranks, f32 or f64, blocking, collective; NULL: the algorithm `mpi` is not available */
    halo_status (*allreduce)(hl_transport *t, void *buffer, int64_t count, halo_dtype type);
    /* OPTIONAL, all four or none: messages that are sent or received again and again. Prepared, one is not on its way; start puts it there, test takes it
     * off, and so on; release after a test that said so */
    halo_status (*prepare_send)(hl_transport *t, const void *buffer, size_t bytes, int peer, int tag, hl_request *request);
    halo_status (*prepare_recv)(hl_transport *t, void *buffer, size_t bytes, int peer, int tag, hl_request *request);
    halo_status (*start)(hl_transport *t, hl_request *request);
    void (*release)(hl_transport *t, hl_request *request);
} hl_transport_ops;

struct hl_transport {
    const hl_transport_ops *ops;
    halo_context *ctx; /* of errors */
    int rank, ranks;
    int tag_most; /* largest tag; 0: INT_MAX */
    int first, stride; /* of an inner context's (comm.h): its rank r is first + r stride to the user; stride 0: it is r */
};

static inline int hl_transport_known_as(const hl_transport *t, int rank) { return t->stride > 0 && rank >= 0 ? t->first + rank * t->stride : rank; }

/* A set of ranks in arithmetic progression: member i is rank base + i stride; this rank is member `index`. */
typedef struct hl_ranks {
    int base, stride, size, index;
} hl_ranks;

static inline int hl_ranks_member(const hl_ranks *g, int i) { return g->base + i * g->stride; }

/* Waits for one message: spins shortly, then gives the core away. */
halo_status hl_transport_wait(hl_transport *t, hl_request *request);

/* A message that is sent or received again and again, over any transport: prepared where the transport can, else begun anew each time. */
typedef struct hl_lasting {
    hl_request request;
    bool send, on_way;
    void *buffer;
    size_t bytes;
    int peer, tag;
} hl_lasting;

halo_status hl_lasting_create(hl_transport *t, hl_lasting *m, bool send, void *buffer, size_t bytes, int peer, int tag);
halo_status hl_lasting_start(hl_transport *t, hl_lasting *m);
/* True too when it was never started. */
halo_status hl_lasting_test(hl_transport *t, hl_lasting *m, bool *done);
void hl_lasting_destroy(hl_transport *t, hl_lasting *m); /* not on its way */

/* One round of waiting for something that another thread or process does; `since` is the clock when the waiting began. Longer waits sleep longer, at most
 * 20 microseconds, so that a waiting thread takes little of a core that others compute on. */
void hl_pause(double since);

/* Test hooks of the transport over MPI, read once when it is made:
 *   HALO_TEST_COUNT_LIMIT=n          no MPI call gets a count above n (default INT_MAX)
 *   HALO_TEST_LINK=seconds,bytes/s   each message of this rank leaves only after it would have passed such a link
 * And of a context's nodes (comm.c):
 *   HALO_TEST_NODE=n                 so many ranks, in the order in which they were started, count as a node */
typedef struct hl_link {
    double latency, bandwidth; /* bandwidth 0: no link */
} hl_link;

#endif
