/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.h -- a box cut into slabs along its first axis, one per rank, and what the ranks say to each other.
 *
 * NULL instead of a hl_slabs is one rank that owns everything; then nothing is sent. All functions are
 * collective over the ranks.
 */
#ifndef HL_SYNTH_SLABS_H
#define HL_SYNTH_SLABS_H

#include "base/base.h"

typedef struct hl_slabs hl_slabs;

/* Slabs over the context's ranks; *out is NULL for one rank. */
halo_status hl_slabs_open(halo_context *ctx, hl_slabs **out);
void hl_slabs_close(hl_slabs *slabs);

int hl_slabs_rank(const hl_slabs *slabs);
int hl_slabs_ranks(const hl_slabs *slabs);

/* Sends send_bytes[r] bytes at send[r] to each rank r and receives recv_bytes[r] bytes into recv[r]; both
 * sides know the sizes. The part for this rank itself is copied. The memory sent and received must not
 * overlap. */
halo_status hl_slabs_exchange(hl_slabs *slabs, void *const *send, const size_t *send_bytes, void *const *recv,
                              const size_t *recv_bytes);

/* The same for equal blocks: block r of from[ranks] goes to rank r, and to[ranks] receives one of each. */
halo_status hl_slabs_transpose(hl_slabs *slabs, void *from, void *to, size_t block_bytes);

/* theirs[r] = mine[this rank] of rank r: how much each rank is going to send. */
halo_status hl_slabs_counts(hl_slabs *slabs, const int64_t *mine, int64_t *theirs);

/* HALO_OK on all ranks, or a failure on all. */
halo_status hl_slabs_agree(hl_slabs *slabs, halo_status mine);

/* Up to the previous rank and down to the next one (of the periodic box) at once: up_in receives what the
 * next rank sends up, down_in what the previous one sends down. */
halo_status hl_slabs_shift(hl_slabs *slabs, const void *up, void *up_in, const void *down, void *down_in,
                           size_t bytes);

/* `bytes` bytes of every rank, in the order of ranks, to all[] on rank 0; all may be NULL elsewhere. */
halo_status hl_slabs_gather(hl_slabs *slabs, const void *mine, size_t bytes, void *all);

#endif
