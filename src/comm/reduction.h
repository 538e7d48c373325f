/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduction.h -- carries out one route at a time over a transport, without ever blocking: buffer = sum over ranks.
 *
 * All rooms are made once; starting and testing allocate nothing. Of a round's receives at most HL_WINDOW blocks are in flight, added in order as they
 * arrive, so scratch is HL_WINDOW * fan * segment elements whatever the buffer's size.
 */
#ifndef HL_REDUCTION_H
#define HL_REDUCTION_H

#include "comm/route.h"
#include "comm/wire.h"

enum { HL_WINDOW = 4 };

typedef struct hl_reduction {
    hl_transport *transport;
    const hl_arithmetic *math;
    halo_dtype type;
    hl_wire wire;
    int64_t segment;
    int fan;
    char *in, *out;        /* scratch: HL_WINDOW * fan and HL_WINDOW pieces */
    hl_request *arriving;  /* [HL_WINDOW * fan] */
    hl_request leaving[HL_WINDOW];
    const void **parts;    /* [fan] */

    /* the one under way */
    const hl_route *route; /* NULL: none */
    char *buffer;
    int tag, round;
    int asked, taken;      /* blocks of receives posted, and added */
    int posted, sent;      /* sends posted, and over */
} hl_reduction;

/* Rooms for routes of pieces up to `segment` and up to `fan`. HALO_ERR_NOMEM. */
halo_status hl_reduction_create(halo_context *ctx, hl_transport *t, halo_dtype type, hl_wire wire, int64_t segment, int fan, hl_reduction *r);
void hl_reduction_destroy(hl_reduction *r);

/* Starts summing buffer[route->elements]. error: as long, of a narrow wire, kept from call to call; NULL: nothing is fed back. Every rank of the route
 * starts the same reductions in the same order; `tag` tells apart what could be under way together. */
halo_status hl_reduction_start(hl_reduction *r, const hl_route *route, void *buffer, void *error, int tag);
/* Goes on as far as it can; done: the buffer holds the sum. Nothing under way: done. */
halo_status hl_reduction_test(hl_reduction *r, bool *done);
/* start and test until done. */
halo_status hl_reduction_run(hl_reduction *r, const hl_route *route, void *buffer, void *error, int tag);
/* The rank whose message is waited for; -1: none. */
int hl_reduction_peer(const hl_reduction *r);

#endif
