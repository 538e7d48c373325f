/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_match.c -- whether the ranks' lists of messages fit each other, looked at when an exchange is made: a message that nobody sends would be waited for until the
 * limit. Each rank looks for the other ends of its own messages in the lists of all.
 */
#include "comm/exchange_impl.h"

enum { MOST_ENTRIES = 1 << 20 }; /* of all ranks; more are not looked at */

typedef struct entry {
    int64_t peer, send, stage, tag, elements; /* peer -1: none */
} entry;

static entry entry_of(const hl_part *p) { return (entry){p->m.peer, p->m.send, p->m.stage, p->m.tag, p->elements}; }

static halo_status differ(hl_exchange *x, const hl_part *p, int64_t elements)
{
    return hl_fail(x->ctx, HALO_ERR_USAGE, "an exchange of rank %d %s rank %d (stage %d, tag %d) has %" PRId64 " elements there and %" PRId64 " here", x->ctx->rank,
                   p->m.send ? "to" : "from", p->m.peer, p->m.stage, p->m.tag, elements, p->elements);
}

/* Exactly one entry of the peer is the other end. */
static halo_status find(hl_exchange *x, const hl_part *p, const entry *list, int64_t n)
{
    int64_t ends = 0, elements = 0;
    for (int64_t i = 0; i < n; i++) {
        if (list[i].peer != x->ctx->rank || list[i].send == p->m.send || list[i].stage != p->m.stage || list[i].tag != p->m.tag) continue;
        elements = list[i].elements;
        ends++;
    }
    if (ends > 1)
        return hl_fail(x->ctx, HALO_ERR_USAGE, "an exchange has %" PRId64 " messages of stage %d and tag %d between ranks %d and %d", ends, p->m.stage, p->m.tag, x->ctx->rank,
                       p->m.peer);
    return ends == 1 && elements == p->elements ? HALO_OK : differ(x, p, elements);
}

static halo_status compare(hl_exchange *x, const entry *all, int64_t most)
{
    for (int i = 0; i < x->parts; i++) HL_TRY(find(x, &x->part[i], all + x->part[i].m.peer * most, most));
    return HALO_OK;
}

static halo_status gather(hl_exchange *x, int64_t most)
{
    entry *mine = NULL, *all = NULL;
    halo_status st;
    HL_GOTO(st, hl_calloc(x->ctx, (size_t)most, sizeof(*mine), "a list of messages", &mine), agree);
    HL_GOTO(st, hl_calloc(x->ctx, (size_t)(most * x->ctx->ranks), sizeof(*all), "a list of messages", &all), agree);
    for (int64_t i = 0; i < most; i++) mine[i] = i < x->parts ? entry_of(&x->part[i]) : (entry){.peer = -1};
agree:
    st = hl_agree(x->ctx, st);
    if (st == HALO_OK) st = hl_comm_gather(x->ctx, mine, (size_t)most * sizeof(*mine), all);
    if (st == HALO_OK) st = hl_agree(x->ctx, compare(x, all, most));
    free(mine);
    free(all);
    return st;
}

halo_status hl_exchange_match(hl_exchange *x, int *stages, int *tags)
{
    double most[3] = {x->stages, 1, x->parts};
    for (int i = 0; i < x->parts; i++) most[1] = fmax(most[1], x->part[i].m.tag + 1);
    HL_TRY(hl_comm_max(x->ctx, most, 3));
    *stages = (int)fmax(1, most[0]);
    *tags = (int)most[1];
    if (most[2] == 0 || most[2] * x->ctx->ranks > MOST_ENTRIES) return HALO_OK;
    return gather(x, (int64_t)most[2]);
}
