/* SPDX-License-Identifier: Apache-2.0 */
/* context.h -- the inside of halo_context, for rooms that hang something on it. */
#ifndef HL_CONTEXT_H
#define HL_CONTEXT_H

#include "base/base.h"

#include <errno.h>
#include <pthread.h>

struct halo_comm;   /* src/comm; NULL = one rank */
struct halo_device; /* backend.h */

struct halo_context {
    halo_log_level log_level;
    halo_log_fn log;
    void *log_user;
    uint64_t seed;
    int threads;
    char backend[16], isa[16]; /* "" = choose */
    halo_dtype compute;        /* type of activations; HALO_NONE = f32, HALO_F64: ref alone can */
    int winograd;              /* cpu backend: as in halo_device_options */
    bool tf32, any_order;      /* cuda backend: as in halo_device_options */
    bool step_by_step;         /* devices that can record runs of steps do not */
    char bind[8];              /* places of the cpu backend's threads: "" = auto, none, cores */
    int rank, ranks;           /* of the communicator; 0 and 1 without */
    struct halo_comm *comm;    /* owned, destroyed through comm_destroy */
    void (*comm_destroy)(struct halo_comm *);
    struct hl_trace *trace;    /* trace.h; owned; NULL = off */
    struct halo_device *device; /* owned; opened by the first hl_context_device() (backend/registry.h) */
    halo_context *outer;       /* of some of whose ranks this one is: errors and logs are the outer one's; outlives this one; NULL = none */
    pthread_mutex_t lock;      /* guards message and log */
    char message[1024];
    const char *doing[2];      /* layer and operation that the thread `doer` is at, which its errors name. Of the outermost context */
    _Atomic(uintptr_t) doer;   /* that thread as hl_thread_id has it; 0 = none */
};

/* The calling thread: errno lies at an address of its own in each, which modules see alike. */
static inline uintptr_t hl_thread_id(void) { return (uintptr_t)&errno; }

/* Whose errors, logs and trace those of ctx are. */
static inline halo_context *hl_outermost(const halo_context *ctx)
{
    while (ctx && ctx->outer) ctx = ctx->outer;
    return (halo_context *)(uintptr_t)ctx;
}

#endif
