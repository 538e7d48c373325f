/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_ring.c -- ring reduction (Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
 *
 * The range is cut into P blocks. In round s < P - 1 rank r sends block r - s to r + 1 and adds block r - s - 1 from r - 1; then it owns the sum of
 * block r + 1, and P - 1 more rounds pass the sums on. Each rank sends 2 (P - 1) / P n elements in 2 (P - 1) messages: best for few ranks and large n.
 * Block b is summed in the order b, b + 1, ...: the order depends on where an element lies.
 */
#include "comm/route.h"

#include "tensor/block.h"

static hl_span block(const hl_ranks *g, hl_span s, int i)
{
    hl_range b = hl_block_range(s.n, g->size, (i % g->size + g->size) % g->size);
    return (hl_span){s.lo + b.lo, b.hi - b.lo};
}

void hl_route_ring(hl_router *r, const hl_ranks *g, hl_span s)
{
    const int p = g->size, me = g->index, next = hl_ranks_member(g, (me + 1) % p), last = hl_ranks_member(g, (me + p - 1) % p);
    for (int k = 0; k < p - 1; k++) {
        hl_route_round(r, HL_ROUND_ADD);
        hl_route_send(r, next, block(g, s, me - k));
        hl_route_recv(r, last, block(g, s, me - k - 1));
        if (r->status == HALO_OK) r->route->round[r->route->rounds - 1].before = me > 0;
    }
    hl_route_settle(r, block(g, s, me + 1));
    for (int k = 0; k < p - 1; k++) {
        hl_route_round(r, HL_ROUND_COPY);
        hl_route_send(r, next, block(g, s, me + 1 - k));
        hl_route_recv(r, last, block(g, s, me - k));
    }
}
