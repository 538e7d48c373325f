/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h -- blocks and margins between ranks: a fixed list of messages, each a strided part of memory, started and finished as often as wanted.
 *
 * Messages have stages: those of stage k are packed and sent after all of the stages before have arrived, so that margins along h carry what came along d,
 * and corners arrive without messages between diagonal neighbours. What arrives is written over what is there, or added to it: the reverse of an exchange.
 * Between start and finish the caller computes; memory that is being sent or received belongs to the exchange.
 */
#ifndef HL_EXCHANGE_H
#define HL_EXCHANGE_H

#include "base/context.h"
#include "comm/region.h"

typedef struct hl_message {
    bool send; /* else receive */
    bool add;  /* receive: added to what is there */
    int stage; /* 0, 1, ... */
    int peer;  /* rank in the context's communicator; itself is allowed (a periodic axis that is not cut): both its messages are given */
    int tag;   /* tells messages of one stage between the same two ranks apart: the same number on both sides, 0 <= tag < 64 */
    hl_region region; /* of `from` when sent, of `to` when received */
    void *run; /* NULL; or where the elements lie one after another, wherever MPI reaches, from start to finish the exchange's: then the caller fills it before and takes from it afterwards */
} hl_message;

typedef struct hl_exchange hl_exchange;

typedef struct hl_exchange_stats {
    int64_t runs, messages;  /* sent, to other ranks */
    int64_t bytes;           /* sent, to other ranks */
    double seconds, exposed; /* from start to arrival; of these, the caller waited */
} hl_exchange_stats;

/*
 * Exchanges of a context are made, started and finished in the same order on all of its ranks that take part. With MPI_THREAD_MULTIPLE a thread of the
 * context's carries them out; with less they progress in calls of start, poll and finish. Making one is collective over the context; elements are f32, f64, f16 or bf16.
 */
halo_status hl_exchange_create(halo_context *ctx, halo_dtype type, const hl_message *message, int messages, hl_exchange **x);
void hl_exchange_destroy(hl_exchange *x);
/* What traces (base/trace.h) call it; shortened to what fits. */
void hl_exchange_name(hl_exchange *x, const char *name);
/* Begins. `from` and `to` are host-addressable and may be one. Several exchanges may be under way. */
halo_status hl_exchange_start(hl_exchange *x, const void *from, void *to);
/* Gives progress to exchanges under way where no thread does; cheap. */
halo_status hl_exchange_poll(halo_context *ctx);
/* Waits until everything that is to come has come, and what was sent may be overwritten, runs after settle. A rank that does not answer for the stall time of the context
 * (hl_comm_stall) is named in the error. */
halo_status hl_exchange_finish(hl_exchange *x);
/* Waits until what was sent in the last run may be overwritten, which can take longer than finish. */
halo_status hl_exchange_settle(hl_exchange *x);
/* Since it was made, or the last reset. */
void hl_exchange_stats_get(hl_exchange *x, hl_exchange_stats *stats, bool reset);

#endif
