/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h -- which messages one rank sends and receives to sum a buffer of n elements over a set of ranks: pure functions of (algorithm, ranks, rank, n),
 * made before training. reduction.h carries a route out.
 *
 * A route is a list of rounds, one after the other. In a round this rank sends some pieces of the buffer and receives others: to add them (ADD) or to
 * put them in their place (COPY). SETTLE rounds this rank's own sum to the wire before anybody uses it, so that all ranks end with equal bits.
 * Pieces are at most `segment` elements, so that adding one overlaps the next one's travel.
 */
#ifndef HL_ROUTE_H
#define HL_ROUTE_H

#include "comm/transport.h"

typedef enum hl_algorithm { HL_ALGORITHM_MPI = 0, HL_RING, HL_RABENSEIFNER, HL_HIERARCHICAL, HL_ALGORITHMS } hl_algorithm;

/* "mpi", "ring", "rabenseifner", "hierarchical". */
const char *hl_algorithm_name(hl_algorithm a);

typedef enum hl_round_kind { HL_ROUND_ADD = 0, HL_ROUND_COPY, HL_ROUND_SETTLE } hl_round_kind;

typedef struct hl_piece {
    int peer;
    int64_t lo, n; /* elements of the buffer */
} hl_piece;

typedef struct hl_round {
    hl_round_kind kind;
    int send, sends, recv, recvs; /* ranges of the route's lists */
    int fan;                      /* ADD: receives are `fan` at a time of one range, peers ascending, added in the order of ranks */
    int before;                   /* ADD: how many of these peers come before this rank */
    int64_t lo, n;                /* SETTLE: elements */
} hl_round;

typedef struct hl_route {
    int64_t elements;
    int rank;
    hl_round *round;
    hl_piece *send, *recv;
    int rounds, sends, recvs;
    int fan; /* the largest */
    size_t round_cap, send_cap, recv_cap;
} hl_route;

typedef struct hl_route_spec {
    hl_algorithm algorithm; /* not mpi */
    hl_ranks ranks;
    int local;        /* hierarchical: ranks per node, the same on each, members contiguous; anything that does not divide the size: flat */
    int64_t elements; /* of the buffer */
    int64_t segment;  /* largest piece, > 0 */
} hl_route_spec;

/* HALO_ERR_NOMEM. The caller owns *route. Not collective. */
halo_status hl_route_create(halo_context *ctx, const hl_route_spec *spec, hl_route **route);
void hl_route_destroy(hl_route *route);

/* ------------------------------------------------------------------------------------- for the algorithms' files */

typedef struct hl_router {
    halo_context *ctx;
    hl_route *route;
    int64_t segment;
    halo_status status; /* of the first failure; later calls do nothing */
} hl_router;

typedef struct hl_span {
    int64_t lo, n;
} hl_span;

void hl_route_round(hl_router *r, hl_round_kind kind);
void hl_route_send(hl_router *r, int peer, hl_span s);
void hl_route_recv(hl_router *r, int peer, hl_span s);
/* An ADD of the same range from each of `g`'s other members. */
void hl_route_recv_all(hl_router *r, const hl_ranks *g, hl_span s);
void hl_route_settle(hl_router *r, hl_span s);

/* The rounds of each algorithm over `g` for the range `s`. */
void hl_route_ring(hl_router *r, const hl_ranks *g, hl_span s);
void hl_route_rabenseifner(hl_router *r, const hl_ranks *g, hl_span s);
void hl_route_hierarchical(hl_router *r, const hl_ranks *g, int local, hl_span s);

#endif
