/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_calls.h -- the inside of a communicator, and the one wrapper through which every count goes to MPI.
 *
 * MPI counts are int. Messages above the limit (INT_MAX; tests lower it) travel as one datatype of several blocks; collectives are cut into several.
 */
#ifndef HL_MPI_CALLS_H
#define HL_MPI_CALLS_H

#include "comm/comm.h"

#include <mpi.h>

struct halo_comm {
    halo_context *ctx;
    MPI_Comm world; /* ours, ordered by node */
    hl_place place;
    bool started;  /* MPI_Init was ours, so is MPI_Finalize */
    int64_t limit; /* of counts */
    hl_link link;
    _Atomic double stall;   /* seconds after which a rank that does not come to a collective is named; 0: never; of an inner context the outer one's counts */
    int first, stride;      /* of an inner context: rank r is the outer one's rank first + r stride */
    struct hl_exchanger *exchanger; /* made with the first exchange (exchange_impl.h); owned */
    uint64_t met;     /* watched collectives so far, the same number on all ranks (watch.c) */
    uint64_t said[2]; /* on their way to others, one at a time and the same to all */
};

/* Seconds after which a late rank is named, and the number under which it is known to the user: that of the outermost context. */
double hl_comm_stall_limit(const struct halo_comm *c);
int hl_comm_outer_rank(const struct halo_comm *c, int rank);

/* Waits for a collective that was begun, or for the limit: HALO_ERR_COMM then. Collective, as are the next two. */
halo_status hl_watch(struct halo_comm *c, MPI_Request *request);
/* All ranks are here, or HALO_ERR_COMM; nothing without a limit. Before a large blocking collective. */
halo_status hl_comm_gate(struct halo_comm *c);
/* In place, for a few numbers; the same bits on all ranks. */
halo_status hl_watched_allreduce(struct halo_comm *c, void *buffer, int count, MPI_Datatype type, MPI_Op op);

/* Reports a failed call with MPI's words. */
halo_status hl_mpi_check(halo_context *ctx, int code, const char *call);
#define HL_MPI(ctx, call) HL_TRY(hl_mpi_check((ctx), (call), #call))

halo_status hl_mpi_isend(const struct halo_comm *c, MPI_Comm comm, const void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
halo_status hl_mpi_irecv(const struct halo_comm *c, MPI_Comm comm, void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
/* The same, prepared: MPI_Start begins them. */
halo_status hl_mpi_send_init(const struct halo_comm *c, MPI_Comm comm, const void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
halo_status hl_mpi_recv_init(const struct halo_comm *c, MPI_Comm comm, void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
halo_status hl_mpi_allreduce(const struct halo_comm *c, MPI_Comm comm, void *buffer, int64_t count, size_t size, MPI_Datatype type, MPI_Op op);
halo_status hl_mpi_broadcast(const struct halo_comm *c, MPI_Comm comm, void *bytes, size_t size, int root);

/* Takes comm apart into nodes and hangs a communicator on ctx. Collective. */
halo_status hl_comm_attach(halo_context *ctx, MPI_Comm comm, bool started);

#endif
