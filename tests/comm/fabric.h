/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.h -- for tests: ranks in one process. Messages are copied when sent and delivered in order per (sender, receiver, tag), each after a random
 * number of the receiver's looks. One lock around everything: ranks may be threads, or turns in a loop.
 */
#ifndef HL_TESTS_FABRIC_H
#define HL_TESTS_FABRIC_H

#include "comm/transport.h"

typedef struct fabric fabric;

/* delay: a message arrives after 0 to delay looks at it. */
fabric *fabric_create(int ranks, int delay, uint64_t seed);
void fabric_destroy(fabric *f);
/* The transport of one rank, owned by the fabric. */
hl_transport *fabric_rank(fabric *f, int rank);
/* Messages that nobody took. */
int64_t fabric_left(fabric *f);
int64_t fabric_sent(fabric *f);

#endif
