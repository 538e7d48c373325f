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
};

/* Reports a failed call with MPI's words. */
halo_status hl_mpi_check(halo_context *ctx, int code, const char *call);
#define HL_MPI(ctx, call) HL_TRY(hl_mpi_check((ctx), (call), #call))

halo_status hl_mpi_isend(const struct halo_comm *c, MPI_Comm comm, const void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
halo_status hl_mpi_irecv(const struct halo_comm *c, MPI_Comm comm, void *buffer, size_t bytes, int peer, int tag, MPI_Request *request);
halo_status hl_mpi_allreduce(const struct halo_comm *c, MPI_Comm comm, void *buffer, int64_t count, size_t size, MPI_Datatype type, MPI_Op op);
halo_status hl_mpi_broadcast(const struct halo_comm *c, MPI_Comm comm, void *bytes, size_t size, int root);

/* Takes comm apart into nodes and hangs a communicator on ctx. Collective. */
halo_status hl_comm_attach(halo_context *ctx, MPI_Comm comm, bool started);

#endif
