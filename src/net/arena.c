/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c -- the memory of activations and gradients. Programs that never run at the same time, training and evaluation, may lie in one. What a program counts
 * on between its runs, zeros in margins and padding lanes, is gone when another one ran: then all is cleared before it runs again.
 */
#include "net/ir.h"

struct hl_arena {
    void *ptr;
    size_t bytes;
    int users;
    const hl_program *last; /* ran last */
};

halo_status hl_arena_open(hl_program *p, hl_arena *lent)
{
    if (lent && lent->bytes >= p->arena_bytes) {
        lent->users++;
        p->store = lent;
        p->arena = lent->ptr;
        return HALO_OK;
    }
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*p->store), "an arena", &p->store));
    *p->store = (hl_arena){.bytes = p->arena_bytes, .users = 1};
    HL_TRY(p->dev->ops->alloc(p->dev, p->arena_bytes, &p->store->ptr));
    p->arena = p->store->ptr;
    return HALO_OK;
}

void hl_arena_close(hl_program *p)
{
    hl_arena *a = p->store;
    p->store = NULL;
    p->arena = NULL;
    if (!a) return;
    if (a->last == p) a->last = NULL;
    if (--a->users > 0) return;
    if (a->ptr) p->dev->ops->release(p->dev, a->ptr);
    free(a);
}

halo_status hl_arena_take(hl_program *p)
{
    if (p->store->last == p) return HALO_OK;
    p->store->last = p;
    return p->dev->ops->fill(p->dev, p->arena, 0, p->arena_bytes, NULL);
}
