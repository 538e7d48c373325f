/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orchestrate_bitvector.c -- cycles of the bitvector over a transport.
 *
 * The AND is a dissemination (Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", 1988): in round k rank r sends to r + 2^k
 * and hears from r - 2^k; ceil(log2 P) rounds for any P, because and-ing a word twice does no harm.
 *
 * A rank begins a cycle when it has something new, or when its pause is over and something of its own is still waiting, or when rank r - 1 has begun: so an
 * idle rank costs nothing, and is drawn in when others need its word.
 */
#include "comm/orchestrate.h"

#include "base/clock.h"

typedef struct bits {
    hl_orchestrator super;
    hl_bitvector vector;
    uint64_t *mine, *heard;
    hl_request leaving, arriving;
    bool cycling, fresh;
    int distance;             /* 2^k of the round under way */
    double pause, least, until; /* now, at least; no new cycle before this clock */
} bits;

static bits *of(hl_orchestrator *o) { return (bits *)o; }

static void bits_ready(hl_orchestrator *o, int g)
{
    hl_bitvector_ready(&of(o)->vector, g);
    of(o)->fresh = true;
}

static halo_status post_round(bits *b)
{
    hl_transport *t = b->super.transport;
    size_t bytes = (size_t)b->vector.words * sizeof(*b->mine);
    int round = HL_TAG_CYCLE;
    for (int d = b->distance; d > 1; d /= 2) round++;
    HL_TRY(t->ops->irecv(t, b->heard, bytes, (t->rank - b->distance + t->ranks) % t->ranks, round, &b->arriving));
    return t->ops->isend(t, b->mine, bytes, (t->rank + b->distance) % t->ranks, round, &b->leaving);
}

static halo_status wanted(bits *b, bool *begin)
{
    hl_transport *t = b->super.transport;
    *begin = b->fresh || (hl_bitvector_any(&b->vector) && hl_now() >= b->until);
    if (*begin || t->ranks == 1) return HALO_OK;
    int from;
    HL_TRY(t->ops->probe(t, (t->rank - 1 + t->ranks) % t->ranks, HL_TAG_CYCLE, &from));
    *begin = from >= 0;
    return HALO_OK;
}

static void conclude(bits *b)
{
    hl_bitvector *v = &b->vector;
    int before = v->waiting;
    hl_bitvector_take(v, b->mine);
    b->super.any_stop = v->any_stop;
    b->super.any_stall = v->any_stall;
    b->cycling = false;
    b->pause = v->waiting > before ? b->least : fmin(2 * b->pause, 10 * b->least);
    b->until = hl_now() + b->pause;
}

static halo_status begin_cycle(bits *b)
{
    b->cycling = true;
    b->fresh = false;
    b->distance = 1;
    b->vector.stop = b->super.stop;
    b->vector.stall = b->super.stall;
    hl_bitvector_offer(&b->vector, b->mine);
    if (b->super.transport->ranks > 1) return post_round(b);
    conclude(b);
    return HALO_OK;
}

static halo_status end_round(bits *b)
{
    for (int i = 0; i < b->vector.words; i++) b->mine[i] &= b->heard[i];
    b->distance *= 2;
    if (b->distance < b->super.transport->ranks) return post_round(b);
    conclude(b);
    return HALO_OK;
}

static halo_status bits_advance(hl_orchestrator *o, bool *moved)
{
    bits *b = of(o);
    hl_transport *t = o->transport;
    *moved = false;
    if (!b->cycling) {
        HL_TRY(wanted(b, moved));
        return *moved ? begin_cycle(b) : HALO_OK;
    }
    bool sent, heard;
    HL_TRY(t->ops->test(t, &b->leaving, &sent));
    HL_TRY(t->ops->test(t, &b->arriving, &heard));
    if (!sent || !heard) return HALO_OK;
    *moved = true;
    return end_round(b);
}

static int bits_next(hl_orchestrator *o) { return hl_bitvector_next(&of(o)->vector); }

static bool bits_busy(const hl_orchestrator *o) { return ((const bits *)o)->cycling; }

static void bits_destroy(hl_orchestrator *o)
{
    bits *b = of(o);
    hl_bitvector_destroy(&b->vector);
    free(b->mine);
    free(b->heard);
    free(b);
}

static const hl_orchestrator_ops bits_ops = {
    .ready = bits_ready, .advance = bits_advance, .next = bits_next, .busy = bits_busy, .destroy = bits_destroy};

halo_status hl_orchestrate_bitvector(halo_context *ctx, hl_transport *t, int groups, double pause, hl_orchestrator **o)
{
    bits *b;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*b), "an orchestration", &b));
    b->super = (hl_orchestrator){.ops = &bits_ops, .transport = t, .groups = groups, .listens = true};
    b->pause = b->least = pause;
    HL_GOTO(st, hl_bitvector_create(ctx, groups, &b->vector), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)b->vector.words, sizeof(*b->mine), "bits of groups", &b->mine), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)b->vector.words, sizeof(*b->heard), "bits of groups", &b->heard), undo);
    *o = &b->super;
    return HALO_OK;
undo:
    bits_destroy(&b->super);
    return st;
}
