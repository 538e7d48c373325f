/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c -- the memory of activations and gradients. Programs that never run at the same time, training and evaluation, may lie in one. What a program counts
 * on between its runs, zeros in margins and padding lanes, is gone when another one ran: then all is cleared before it runs again.
 */
#include "net/ir.h"

#include <math.h>
#include <stdio.h>

struct hl_arena {
    void *ptr;
    size_t bytes;
    int users;
    const hl_program *last; /* ran last */
};

/* On a device with memory of its own: too little for what this program takes beside what is lent to it is told before any of it is taken, with what would fit, by proportion. */
static halo_status check_room(const hl_program *p, const hl_program *beside, size_t arena)
{
    halo_device_info info;
    const size_t fixed = p->image_bytes + p->scratch_bytes - hl_landing_bytes(p), values = arena + hl_landing_own_bytes(p, beside); /* which grow with the batch */
    if (p->dev->ops->mpi_pointer) return HALO_OK;
    p->dev->ops->describe(p->dev, &info);
    if (info.memory_free == 0 || values + fixed <= info.memory_free) return HALO_OK;
    const double mib = 1048576, room = info.memory_free > fixed ? (double)(info.memory_free - fixed) : 0, batch = values > 0 ? floor((double)p->opt.batch * room / (double)values) : 0;
    char fits[160] = "nothing of that size fits: take a smaller network, or more ranks per sample ('parallel.spatial')";
    if (batch >= 1)
        snprintf(fits, sizeof(fits), "%.0f samples per rank would fit, or %.0f times as many ranks per sample ('parallel.spatial'), or 'memory.limit', which makes values anew", batch,
                 ceil((double)values / room));
    else if (room > 0 && values > 0)
        snprintf(fits, sizeof(fits), "%.0f times as many ranks per sample ('parallel.spatial') would fit, or 'memory.limit', which makes values anew", ceil((double)values / room));
    return hl_fail(p->ctx, HALO_ERR_NOMEM, "the %s program of '%s' needs %.1f MiB on '%s', %.1f of them for the values of %" PRId64 " sample%s and %.1f for operations' workspace and images of weights, and %.1f of its %.1f MiB are free: %s",
                   p->opt.training ? "training" : "evaluation", p->net->name, (double)(values + fixed) / mib, info.name, (double)values / mib, p->opt.batch, HL_S(p->opt.batch), (double)fixed / mib,
                   (double)info.memory_free / mib, (double)info.memory_total / mib, fits);
}

halo_status hl_arena_open(hl_program *p, const hl_program *beside)
{
    hl_arena *lent = beside && beside->store && beside->store->bytes >= p->arena_bytes ? beside->store : NULL;
    HL_TRY(check_room(p, beside, lent ? 0 : p->arena_bytes));
    if (lent) {
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
