/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_hierarchical.c -- for nodes of L ranks each: reduce-scatter in the node, Rabenseifner between the nodes by every local rank on its own slice,
 * allgather in the node (after the hierarchical allreduce of Horovod; Sergeev & Del Balso 2018).
 *
 * A node sends 2 (M - 1) / M n elements through its network instead of L times that, M nodes, and all its ranks send at once. In the node every rank sends
 * each other one that one's slice, which is summed in the order of ranks; between nodes the order is Rabenseifner's: neither depends on
 * where an element lies.
 */
#include "comm/route.h"

#include "tensor/block.h"

static hl_span slice(hl_span s, int parts, int i)
{
    hl_range b = hl_block_range(s.n, parts, i);
    return (hl_span){s.lo + b.lo, b.hi - b.lo};
}

/* To each member its slice, a piece to each in turn: they wait for everybody's first piece before anybody's second. */
static void send_slices(hl_router *r, const hl_ranks *in, hl_span s)
{
    int64_t longest = slice(s, in->size, 0).n;
    for (int64_t at = 0; at < longest; at += r->segment)
        for (int k = 1; k < in->size; k++) {
            int to = (in->index + k) % in->size; /* everybody begins with another one */
            hl_span piece = slice(s, in->size, to);
            int64_t n = hl_min64(r->segment, piece.n - at);
            if (n > 0) hl_route_send(r, hl_ranks_member(in, to), (hl_span){piece.lo + at, n});
        }
}

void hl_route_hierarchical(hl_router *r, const hl_ranks *g, int local, hl_span s)
{
    const int node = g->index / local, me = g->index % local;
    hl_ranks in = {hl_ranks_member(g, node * local), g->stride, local, me};
    hl_ranks between = {hl_ranks_member(g, me), g->stride * local, g->size / local, node};
    hl_span own = slice(s, local, me);

    hl_route_round(r, HL_ROUND_ADD);
    send_slices(r, &in, s);
    hl_route_recv_all(r, &in, own);

    if (between.size > 1)
        hl_route_rabenseifner(r, &between, own);
    else
        hl_route_settle(r, own);

    hl_route_round(r, HL_ROUND_COPY);
    for (int k = 1; k < local; k++) {
        hl_route_send(r, hl_ranks_member(&in, (me + k) % local), own);
        int from = (me + local - k) % local;
        hl_route_recv(r, hl_ranks_member(&in, from), slice(s, local, from));
    }
}
