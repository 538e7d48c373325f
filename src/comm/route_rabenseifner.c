/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_rabenseifner.c -- recursive halving, then recursive doubling (Rabenseifner, "Optimization of collective reduction operations", ICCS 2004).
 *
 * With P a power of two: in round k ranks r and r ^ 2^k exchange halves of the range that they share and add, so that after log2 P rounds rank r owns
 * the sum of n / P elements; log2 P rounds back spread the sums. 2 log2 P messages, 2 (P - 1) / P n elements a rank. The NEAREST partner comes first:
 * the largest messages then stay in a node or near it. For other P the first 2 (P - Q) ranks, Q the power of two below, fold in pairs: the odd one
 * gives its whole range to the even one, and gets the result back.
 *
 * An element is summed as ((0 + 1) + (2 + 3)) + ... wherever it lies, because a + b = b + a to the bit: cutting the buffer in other groups changes nothing.
 */
#include "comm/route.h"

enum { HL_DEPTH_MAX = 31 };

typedef struct folding {
    int paired, rank, power; /* ranks that fold; this one's number among the remaining `power`, -1: folded away */
} folding;

static folding fold(const hl_ranks *g)
{
    folding f = {.power = 1};
    while (f.power * 2 <= g->size) f.power *= 2;
    f.paired = 2 * (g->size - f.power);
    f.rank = g->index >= f.paired ? g->index - f.paired / 2 : g->index % 2 == 0 ? g->index / 2 : -1;
    return f;
}

static int partner(const hl_ranks *g, const folding *f, int distance)
{
    int other = f->rank ^ distance;
    return hl_ranks_member(g, other < f->paired / 2 ? 2 * other : other + f->paired / 2);
}

/* Rounds of ADD from the whole to this rank's own; what it held before each is left in `held`. */
static hl_span halve(hl_router *r, const hl_ranks *g, const folding *f, hl_span s, hl_span held[HL_DEPTH_MAX])
{
    int depth = 0;
    for (int k = 1; k < f->power; k *= 2) {
        hl_span low = {s.lo, s.n - s.n / 2}, high = {s.lo + low.n, s.n / 2};
        bool upper = (f->rank & k) != 0;
        held[depth++] = s;
        hl_route_round(r, HL_ROUND_ADD);
        hl_route_send(r, partner(g, f, k), upper ? low : high);
        s = upper ? high : low;
        hl_route_recv(r, partner(g, f, k), s);
    }
    return s;
}

static void spread(hl_router *r, const hl_ranks *g, const folding *f, hl_span s, const hl_span held[HL_DEPTH_MAX])
{
    int depth = 0;
    for (int k = 1; k < f->power; k *= 2) depth++;
    for (int k = f->power / 2; k >= 1; k /= 2) {
        hl_span whole = held[--depth], rest = {s.lo == whole.lo ? s.lo + s.n : whole.lo, whole.n - s.n};
        hl_route_round(r, HL_ROUND_COPY);
        hl_route_send(r, partner(g, f, k), s);
        hl_route_recv(r, partner(g, f, k), rest);
        s = whole;
    }
}

void hl_route_rabenseifner(hl_router *r, const hl_ranks *g, hl_span s)
{
    folding f = fold(g);
    hl_span held[HL_DEPTH_MAX];
    bool pair = g->index < f.paired;
    int twin = hl_ranks_member(g, g->index ^ 1);
    if (pair) {
        hl_route_round(r, HL_ROUND_ADD);
        if (f.rank < 0)
            hl_route_send(r, twin, s);
        else
            hl_route_recv(r, twin, s);
    }
    if (f.rank >= 0) {
        hl_span own = halve(r, g, &f, s, held);
        hl_route_settle(r, own);
        spread(r, g, &f, own, held);
    }
    if (pair) {
        hl_route_round(r, HL_ROUND_COPY);
        if (f.rank < 0)
            hl_route_recv(r, twin, s);
        else
            hl_route_send(r, twin, s);
    }
}
