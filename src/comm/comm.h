/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h -- the ranks of a context: where they are, and the few small collectives that a training loop needs. Nothing here names MPI.
 *
 * A context without a communicator is one rank: everything below then does nothing, or copies. All functions marked collective are called by every rank in
 * the same order, by the thread that the context belongs to, and block.
 */
#ifndef HL_COMM_H
#define HL_COMM_H

#include "base/context.h"
#include "comm/transport.h"

/* ---------------------------------------------------------------------------------------------------------- world */

/* For programs: a context on all ranks that a launcher started, after MPI_Init; destroying it calls MPI_Finalize. Where no launcher is seen (launch.h), MPI
 * is not touched and the context has one rank. HALO_ERR_USAGE: the launcher started several processes that do not know of each other. Collective. */
halo_status hl_world_create(const halo_context_options *options, halo_context **ctx);

/* A context of the first `ranks` ranks, with the options of this one; NULL on the others. To be destroyed before this one. Collective. */
halo_status hl_comm_subset(halo_context *ctx, int ranks, halo_context **sub);
/* A context of this one's ranks of the same colour, which are first, first + stride, ...: rank r in it is rank first + r stride here. Its errors, logs and limit of
 * waiting are this one's, and rank numbers in its messages too. Needs a communicator; to be destroyed before this one. Collective. */
halo_status hl_comm_inner(halo_context *ctx, int colour, int first, int stride, halo_context **inner);
/* A barrier whose waiting leaves the cores to those who come late. Collective. */
halo_status hl_comm_rest(halo_context *ctx);

/* Ends all ranks at once: after an error that the others cannot know of, instead of destroying the context. Does not return. */
void hl_comm_abort(halo_context *ctx, int exit_code) __attribute__((noreturn));

typedef struct hl_place {
    int rank, ranks;
    int local, locals; /* this rank in its node, and how many are there; ranks of a node are contiguous */
    int node, nodes;
    int node_size;     /* ranks of every node where they are all equal, else 0 */
    bool threads;      /* a communication thread is possible (MPI_THREAD_MULTIPLE) */
} hl_place;

hl_place hl_comm_place(const halo_context *ctx);

/* What MPI this is, "Open MPI v4.1.4"; and what it says of addresses of CUDA's device memory: 1 it takes them, 0 it does not, -1 it cannot be asked. Also before MPI_Init.
 * Not collective. */
void hl_comm_library(char *out, size_t size);
int hl_comm_says_cuda(void);
/* Whether all ranks' MPI takes them: wish 0 asks MPI, 1 and -1 (no) are taken for the answer. Collective. */
halo_status hl_comm_takes_cuda(halo_context *ctx, int wish, bool *takes);

/* ------------------------------------------------------------------------------------------------------ agreement */

/* Did any rank fail? Called by all after a step that can fail, before the next collective. HALO_OK if all are OK; else on the ranks that failed their own status
 * (and message); on all others the status of the first that failed, and its message as "rank 3: ...", which rank 0 also logs. Collective. */
halo_status hl_agree(halo_context *ctx, halo_status mine);
#define HL_AGREE(ctx, expr) HL_TRY(hl_agree((ctx), (expr)))

/* From now on the collectives here fail when a rank does not come for so many seconds, and name it; 0: they wait for ever. The same on all ranks, whose
 * only way is then hl_comm_abort. Not collective. */
void hl_comm_stall(halo_context *ctx, double seconds);

/* HALO_ERR_USAGE on all ranks when `text` is not everywhere that of rank 0: the message tells the first line that is not, after `what`. Collective. */
halo_status hl_agree_text(halo_context *ctx, const char *what, const char *text);

/* Bytes of `root` to all, any size. Collective. */
halo_status hl_comm_broadcast(halo_context *ctx, void *bytes, size_t size, int root);
/* `size` bytes of each rank, in the order of ranks, to all[ranks * size]. Collective. */
halo_status hl_comm_gather(halo_context *ctx, const void *mine, size_t size, void *all);
/* x[i] = sum (largest) over ranks, the same bits everywhere. NaN of any rank gives NaN in sums. Collective. */
halo_status hl_comm_sum(halo_context *ctx, double *x, int64_t n);
halo_status hl_comm_max(halo_context *ctx, double *x, int64_t n);
/* The same sum for a buffer of f32 or f64. Collective. */
halo_status hl_comm_sum_buffer(halo_context *ctx, void *buffer, int64_t count, halo_dtype type);
halo_status hl_comm_barrier(halo_context *ctx);

/* A trace (base/trace.h) on every rank, with clocks that begin together; and all of it into a file of the trace-event format (Chrome, Perfetto), which rank 0 writes,
 * after which there is none any more. Both collective. */
halo_status hl_trace_start(halo_context *ctx);
halo_status hl_trace_save(halo_context *ctx, const char *path);
/* Whether that file can be made, before the work whose trace it is. Collective. */
halo_status hl_trace_try(halo_context *ctx, const char *path);

/* A transport of its own over the context's ranks (a duplicate of the communicator), for one thread at a time. Needs a communicator. Collective, as is its
 * closing. */
halo_status hl_transport_open(halo_context *ctx, hl_transport **t);
void hl_transport_close(hl_transport *t);

#endif
