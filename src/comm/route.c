/* SPDX-License-Identifier: Apache-2.0 */
/* route.c -- making routes; the algorithms are in route_*.c. */
#include "comm/route.h"

const char *hl_algorithm_name(hl_algorithm a)
{
    static const char *const names[] = {"mpi", "ring", "rabenseifner", "hierarchical"};
    return names[a];
}

void hl_route_round(hl_router *r, hl_round_kind kind)
{
    hl_route *t = r->route;
    if (r->status == HALO_OK)
        r->status = hl_grow(r->ctx, &t->round, &t->round_cap, (size_t)t->rounds + 1, sizeof(*t->round), "the rounds of a reduction");
    if (r->status == HALO_OK)
        t->round[t->rounds++] = (hl_round){.kind = kind, .send = t->sends, .recv = t->recvs, .fan = 1};
}

/* The pieces of a range, the same on both ends. */
static int64_t cut(const hl_router *r, hl_span s, int64_t at)
{
    return hl_min64(r->segment, s.lo + s.n - at);
}

static void add_recv(hl_router *r, hl_piece piece)
{
    hl_route *t = r->route;
    if (r->status == HALO_OK)
        r->status = hl_grow(r->ctx, &t->recv, &t->recv_cap, (size_t)t->recvs + 1, sizeof(*t->recv), "the messages of a reduction");
    if (r->status != HALO_OK) return;
    t->recv[t->recvs++] = piece;
    t->round[t->rounds - 1].recvs++;
}

void hl_route_send(hl_router *r, int peer, hl_span s)
{
    hl_route *t = r->route;
    for (int64_t at = s.lo; at < s.lo + s.n; at += r->segment) {
        if (r->status == HALO_OK)
            r->status = hl_grow(r->ctx, &t->send, &t->send_cap, (size_t)t->sends + 1, sizeof(*t->send), "the messages of a reduction");
        if (r->status != HALO_OK) return;
        t->send[t->sends++] = (hl_piece){peer, at, cut(r, s, at)};
        t->round[t->rounds - 1].sends++;
    }
}

void hl_route_recv(hl_router *r, int peer, hl_span s)
{
    for (int64_t at = s.lo; at < s.lo + s.n; at += r->segment) add_recv(r, (hl_piece){peer, at, cut(r, s, at)});
}

void hl_route_recv_all(hl_router *r, const hl_ranks *g, hl_span s)
{
    if (r->status != HALO_OK || g->size < 2) return;
    hl_round *round = &r->route->round[r->route->rounds - 1];
    round->fan = g->size - 1;
    round->before = g->index;
    if (round->fan > r->route->fan) r->route->fan = round->fan;
    for (int64_t at = s.lo; at < s.lo + s.n; at += r->segment)
        for (int i = 0; i < g->size; i++)
            if (i != g->index) add_recv(r, (hl_piece){hl_ranks_member(g, i), at, cut(r, s, at)});
}

void hl_route_settle(hl_router *r, hl_span s)
{
    hl_route_round(r, HL_ROUND_SETTLE);
    if (r->status != HALO_OK) return;
    r->route->round[r->route->rounds - 1].lo = s.lo;
    r->route->round[r->route->rounds - 1].n = s.n;
}

static void fill(hl_router *r, const hl_route_spec *spec)
{
    hl_span all = {0, spec->elements};
    const hl_ranks *g = &spec->ranks;
    bool nodes = spec->algorithm == HL_HIERARCHICAL && spec->local > 1 && g->size % spec->local == 0;
    if (g->size < 2 || spec->elements < 1) return;
    if (spec->algorithm == HL_RING)
        hl_route_ring(r, g, all);
    else if (nodes)
        hl_route_hierarchical(r, g, spec->local, all);
    else
        hl_route_rabenseifner(r, g, all);
}

halo_status hl_route_create(halo_context *ctx, const hl_route_spec *spec, hl_route **out)
{
    HL_BUG_UNLESS(spec->algorithm != HL_ALGORITHM_MPI && spec->segment > 0);
    hl_route *route;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*route), "a route", &route));
    route->elements = spec->elements;
    route->rank = hl_ranks_member(&spec->ranks, spec->ranks.index);
    route->fan = 1;
    hl_router r = {.ctx = ctx, .route = route, .segment = spec->segment};
    fill(&r, spec);
    if (r.status == HALO_OK)
        *out = route;
    else
        hl_route_destroy(route);
    return r.status;
}

void hl_route_destroy(hl_route *route)
{
    if (!route) return;
    free(route->round);
    free(route->send);
    free(route->recv);
    free(route);
}
