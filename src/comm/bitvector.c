/* SPDX-License-Identifier: Apache-2.0 */
/* bitvector.c -- see bitvector.h. */
#include "comm/bitvector.h"

static uint64_t bit(int i) { return UINT64_C(1) << (i % 64); }

halo_status hl_bitvector_create(halo_context *ctx, int groups, hl_bitvector *b)
{
    hl_bitvector made = {.groups = groups, .words = (groups + 2 + 63) / 64};
    halo_status st;
    HL_GOTO(st, hl_calloc(ctx, (size_t)made.words, sizeof(*made.ready), "bits of groups", &made.ready), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)groups, sizeof(*made.queue), "a queue of groups", &made.queue), undo);
    *b = made;
    return HALO_OK;
undo:
    hl_bitvector_destroy(&made);
    return st;
}

void hl_bitvector_destroy(hl_bitvector *b)
{
    free(b->ready);
    free(b->queue);
    *b = (hl_bitvector){0};
}

void hl_bitvector_ready(hl_bitvector *b, int g)
{
    HL_BUG_UNLESS(g >= 0 && g < b->groups && !(b->ready[g / 64] & bit(g)));
    b->ready[g / 64] |= bit(g);
}

bool hl_bitvector_any(const hl_bitvector *b)
{
    for (int i = 0; i < b->words; i++)
        if (b->ready[i]) return true;
    return false;
}

/* A flag of rank r is the bit behind the groups, set when the rank does NOT want it. */
static void offer_flag(uint64_t *words, int i, bool wanted)
{
    if (!wanted) words[i / 64] |= bit(i);
}

static bool taken_flag(const uint64_t *words, int i) { return !(words[i / 64] & bit(i)); }

void hl_bitvector_offer(const hl_bitvector *b, uint64_t *words)
{
    memcpy(words, b->ready, (size_t)b->words * sizeof(*words));
    offer_flag(words, b->groups, b->stop);
    offer_flag(words, b->groups + 1, b->stall);
}

void hl_bitvector_take(hl_bitvector *b, const uint64_t *words)
{
    b->any_stop = b->any_stop || taken_flag(words, b->groups);
    b->any_stall = taken_flag(words, b->groups + 1);
    for (int g = 0; g < b->groups; g++) {
        if (!(words[g / 64] & bit(g))) continue;
        HL_BUG_UNLESS((b->ready[g / 64] & bit(g)) && b->waiting < b->groups);
        b->ready[g / 64] &= ~bit(g);
        b->queue[(b->head + b->waiting++) % b->groups] = g;
    }
}

int hl_bitvector_next(hl_bitvector *b)
{
    if (b->waiting == 0) return -1;
    int g = b->queue[b->head];
    b->head = (b->head + 1) % b->groups;
    b->waiting--;
    return g;
}
