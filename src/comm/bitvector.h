/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitvector.h -- which groups of gradients are ready everywhere, decided by all ranks alike: a pure state machine (after the response cache of Horovod;
 * Romero et al., "Accelerating collective communication in data parallel training", NSDI 2022).
 *
 * A cycle is one bitwise AND over all ranks of words in which bit i says that group i is ready here, and two more bits, inverted so that AND means OR, say that a
 * rank wants to stop or has waited too long. What survives starts, lowest group first. Since groups are fixed by the program, nothing is ever negotiated:
 * a cycle costs one word per 64 groups, and log2 P messages.
 *
 * Every rank sees the same results in the same order, so all start the same groups in the same order, none before it is ready everywhere; a group that
 * is ready everywhere before a cycle starts in that cycle.
 */
#ifndef HL_BITVECTOR_H
#define HL_BITVECTOR_H

#include "base/base.h"

typedef struct hl_bitvector {
    int groups, words;    /* words of a message */
    uint64_t *ready;      /* [words]: here, not started */
    int *queue;           /* [groups], a ring: agreed, not taken by hl_bitvector_next */
    int head, waiting;
    bool stop, stall;         /* of this rank, told in the next cycle */
    bool any_stop, any_stall; /* of any rank, as of the last cycle */
} hl_bitvector;

halo_status hl_bitvector_create(halo_context *ctx, int groups, hl_bitvector *b);
void hl_bitvector_destroy(hl_bitvector *b);

/* Group g is complete on this rank; it was not ready before. */
void hl_bitvector_ready(hl_bitvector *b, int g);
bool hl_bitvector_any(const hl_bitvector *b); /* something is ready and not started */
/* This rank's words of a cycle; and what became of them. */
void hl_bitvector_offer(const hl_bitvector *b, uint64_t *words);
void hl_bitvector_take(hl_bitvector *b, const uint64_t *words);
/* The next group to start, -1: none is agreed. */
int hl_bitvector_next(hl_bitvector *b);

#endif
