/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orchestrate_coordinator.c -- rank 0 counts who has what and says what starts. Messages are one group's number, in order, one under way per direction and peer.
 */
#include "comm/orchestrate.h"

typedef struct central {
    hl_orchestrator super;
    int *told;    /* [groups], a ring: ready here, not yet told to rank 0 (on rank 0: agreed, not yet told to all) */
    int head, telling; /* first of the ring, how many */
    int *queue;   /* [groups], a ring: to start */
    int first, waiting;
    int *count;   /* [groups] on rank 0: ranks that have it */
    hl_request *leaving; /* [ranks - 1 or 1]: of the number at told[head] */
    bool sending;
} central;

static central *of(hl_orchestrator *o) { return (central *)o; }

static void tell_later(central *c, int g) { c->told[(c->head + c->telling++) % c->super.groups] = g; }

static void start_later(central *c, int g) { c->queue[(c->first + c->waiting++) % c->super.groups] = g; }

/* On rank 0: one more rank has g. */
static void counted(central *c, int g)
{
    HL_BUG_UNLESS(g >= 0 && g < c->super.groups);
    if (++c->count[g] < c->super.transport->ranks) return;
    c->count[g] = 0;
    start_later(c, g);
    if (c->super.transport->ranks > 1) tell_later(c, g);
}

static void central_ready(hl_orchestrator *o, int g)
{
    if (o->transport->rank == 0)
        counted(of(o), g);
    else
        tell_later(of(o), g);
}

/* Sends the number at the head of the ring to rank 0, or from rank 0 to all. */
static halo_status say(central *c, bool *moved)
{
    hl_transport *t = c->super.transport;
    int peers = t->rank == 0 ? t->ranks - 1 : 1;
    if (!c->sending && c->telling > 0) {
        for (int i = 0; i < peers; i++)
            HL_TRY(t->ops->isend(t, &c->told[c->head], sizeof(int), t->rank == 0 ? i + 1 : 0, t->rank == 0 ? HL_TAG_START : HL_TAG_TELL,
                                 &c->leaving[i]));
        c->sending = *moved = true;
    }
    if (!c->sending) return HALO_OK;
    bool all = true;
    for (int i = 0; i < peers; i++) {
        bool done;
        HL_TRY(t->ops->test(t, &c->leaving[i], &done));
        all = all && done;
    }
    if (!all) return HALO_OK;
    c->sending = false;
    c->head = (c->head + 1) % c->super.groups;
    c->telling--;
    *moved = true;
    return HALO_OK;
}

static halo_status hear(central *c, bool *moved)
{
    hl_transport *t = c->super.transport;
    int from, tag = t->rank == 0 ? HL_TAG_TELL : HL_TAG_START, g;
    HL_TRY(t->ops->probe(t, t->rank == 0 ? -1 : 0, tag, &from));
    if (from < 0) return HALO_OK;
    hl_request arriving;
    HL_TRY(t->ops->irecv(t, &g, sizeof(g), from, tag, &arriving));
    HL_TRY(hl_transport_wait(t, &arriving)); /* it is there */
    if (t->rank == 0)
        counted(c, g);
    else
        start_later(c, g);
    *moved = true;
    return HALO_OK;
}

static halo_status central_advance(hl_orchestrator *o, bool *moved)
{
    *moved = false;
    if (o->transport->ranks == 1) return HALO_OK;
    HL_TRY(hear(of(o), moved));
    return say(of(o), moved);
}

static int central_next(hl_orchestrator *o)
{
    central *c = of(o);
    if (c->waiting == 0) return -1;
    int g = c->queue[c->first];
    c->first = (c->first + 1) % o->groups;
    c->waiting--;
    return g;
}

static bool central_busy(const hl_orchestrator *o) { return ((const central *)o)->telling > 0; }

static void central_destroy(hl_orchestrator *o)
{
    central *c = of(o);
    free(c->told);
    free(c->queue);
    free(c->count);
    free(c->leaving);
    free(c);
}

static const hl_orchestrator_ops central_ops = {
    .ready = central_ready, .advance = central_advance, .next = central_next, .busy = central_busy, .destroy = central_destroy};

halo_status hl_orchestrate_coordinator(halo_context *ctx, hl_transport *t, int groups, hl_orchestrator **o)
{
    central *c;
    halo_status st;
    size_t n = (size_t)groups, peers = t->rank == 0 && t->ranks > 1 ? (size_t)t->ranks - 1 : 1;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*c), "an orchestration", &c));
    c->super = (hl_orchestrator){.ops = &central_ops, .transport = t, .groups = groups, .listens = true};
    HL_GOTO(st, hl_calloc(ctx, n, sizeof(int), "a queue of groups", &c->told), undo);
    HL_GOTO(st, hl_calloc(ctx, n, sizeof(int), "a queue of groups", &c->queue), undo);
    HL_GOTO(st, hl_calloc(ctx, n, sizeof(int), "a queue of groups", &c->count), undo);
    HL_GOTO(st, hl_calloc(ctx, peers, sizeof(*c->leaving), "messages of a queue", &c->leaving), undo);
    *o = &c->super;
    return HALO_OK;
undo:
    central_destroy(&c->super);
    return st;
}
