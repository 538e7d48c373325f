/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_progress.c -- the side of exchanges that communicates.
 *
 * A run: all receives are posted; then stage by stage, what is to be sent is packed and sent, what comes is unpacked. What is added waits for
 * all before it in the list, so that sums have the same bits each time. A run is over when all has arrived; its sends may take longer than that, and hold up the next run only.
 */
#include "comm/exchange_impl.h"

#include "base/clock.h"
#include "base/topology.h"
#include "base/trace.h"

#include <stdio.h>
#include <time.h>

#define HL_LISTEN_EVERY 0.05 /* seconds between looks for questions of ranks that wait */

static bool remote(const hl_exchange *x, const hl_part *p) { return p->m.peer != x->ctx->rank; }

static halo_status open_stage(hl_exchange *x)
{
    x->missing = 0;
    for (int i = 0; i < x->parts; i++) {
        hl_part *p = &x->part[i];
        if (p->m.stage != x->stage) continue;
        if (!p->m.send) {
            x->missing++;
            continue;
        }
        if (!p->m.run) hl_region_pack(&p->m.region, x->type, x->from, p->buffer);
        if (remote(x, p)) HL_TRY(hl_lasting_start(x->e->transport, &p->wire));
    }
    return HALO_OK;
}

/* Unpacks what has come of the open stage. */
static halo_status take_arrivals(hl_exchange *x, bool *moved)
{
    bool earlier_waits = false;
    for (int i = 0; i < x->parts; i++) {
        hl_part *p = &x->part[i];
        bool come = true;
        if (p->m.stage != x->stage || p->m.send || p->here) continue;
        if (remote(x, p)) HL_TRY(hl_lasting_test(x->e->transport, &p->wire, &come));
        if (!come || (p->m.add && earlier_waits)) {
            earlier_waits = true;
            continue;
        }
        if (!p->m.run) hl_region_unpack(&p->m.region, x->type, p->m.add, p->buffer, x->to);
        p->here = *moved = true;
        x->missing--;
    }
    return HALO_OK;
}

static halo_status advance(hl_exchange *x, bool *moved)
{
    HL_TRY(take_arrivals(x, moved));
    while (x->missing == 0 && x->stage < x->stages) {
        *moved = true;
        if (++x->stage == x->stages) break;
        HL_TRY(open_stage(x));
        HL_TRY(take_arrivals(x, moved));
    }
    return HALO_OK;
}

static halo_status begin(hl_exchange *x)
{
    x->run++;
    x->stage = 0;
    x->progress = x->begun = hl_now();
    x->told = 0;
    for (int i = 0; i < x->parts; i++) {
        hl_part *p = &x->part[i];
        p->here = false;
        if (!p->m.send && remote(x, p)) HL_TRY(hl_lasting_start(x->e->transport, &p->wire));
    }
    return open_stage(x);
}

void hl_exchange_alone(hl_exchange *x)
{
    bool moved;
    halo_status st = begin(x);
    if (st == HALO_OK) st = advance(x, &moved);
    HL_BUG_UNLESS(st == HALO_OK && x->stage == x->stages); /* nothing of it can fail */
    x->arrival = hl_now();
    atomic_store(&x->left, x->run);
    atomic_store(&x->over, true);
}

/* -------------------------------------------------------------------------------------------------- those under way */

/* One that is started again while its last run still leaves is in the list already. */
static void take_fresh(hl_exchanger *e, bool *moved)
{
    hl_exchange *x = atomic_exchange(&e->fresh, NULL), *first = NULL, **last = &e->active;
    for (hl_exchange *next; x; first = x, x = next) { /* the stack turned round */
        next = x->pushed;
        x->pushed = first;
    }
    while (*last) last = &(*last)->next;
    for (; first; first = first->pushed) {
        *moved = first->waits = true;
        first->progress = hl_now();
        first->told = 0;
        bool listed = false;
        for (hl_exchange *a = e->active; a; a = a->next) listed = listed || a == first;
        if (listed) continue;
        *last = first;
        first->next = NULL;
        last = &first->next;
    }
}

static halo_status sends_left(hl_exchange *x, bool *all)
{
    *all = true;
    for (int i = 0; i < x->parts; i++) {
        bool done = true;
        if (x->part[i].m.send && remote(x, &x->part[i])) HL_TRY(hl_lasting_test(x->e->transport, &x->part[i].wire, &done));
        *all = *all && done;
    }
    return HALO_OK;
}

static void arrive(hl_exchange *x)
{
    halo_context *ctx = hl_outermost(x->ctx);
    x->runs = false;
    x->arrival = hl_now();
    if (hl_traced(ctx)) hl_trace_add(ctx, HL_LANE_COMMUNICATION, "exchange", x->name, NULL, x->begun, x->arrival, x->bytes);
    atomic_store(&x->over, true);
    if (x->e->threaded) sem_post(&x->arrived);
}

/* Goes on with one; *gone: nothing of it is under way. */
static halo_status go_on(hl_exchange *x, bool *moved, bool *gone)
{
    bool step = false, left;
    *gone = false;
    HL_TRY(sends_left(x, &left));
    if (x->waits && left) {
        x->waits = false;
        x->runs = step = true;
        HL_TRY(begin(x));
    }
    if (x->runs) HL_TRY(advance(x, &step));
    if (step) {
        *moved = true;
        x->progress = hl_now();
        x->told = 0;
    }
    if (x->runs && x->stage < x->stages) return HALO_OK;
    HL_TRY(sends_left(x, &left));
    if (x->runs) arrive(x);
    *gone = left && !x->waits;
    return HALO_OK;
}

static halo_status advance_all(hl_exchanger *e, bool *moved)
{
    take_fresh(e, moved);
    for (hl_exchange **at = &e->active; *at;) {
        hl_exchange *x = *at;
        bool gone;
        HL_TRY(go_on(x, moved, &gone));
        if (!gone) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        if (e->about == x) e->about = NULL;
        atomic_store(&x->left, x->run); /* the last touch: the caller may destroy it now */
    }
    double now = hl_now();
    if (now - e->listened < HL_LISTEN_EVERY) return HALO_OK;
    e->listened = now;
    return hl_exchanger_listen(e);
}

int hl_exchange_awaited(const hl_exchange *x)
{
    for (int i = 0; i < x->parts; i++) {
        const hl_part *p = &x->part[i];
        if (!remote(x, p)) continue;
        if (x->runs ? !p->m.send && p->m.stage == x->stage && !p->here : x->waits && p->wire.on_way) return p->m.peer;
    }
    return -1;
}

/* ---------------------------------------------------------------------------------------------------------- driving */

/* After a failure nobody waits in vain. */
static void give_up(hl_exchanger *e)
{
    bool moved;
    take_fresh(e, &moved);
    for (hl_exchange *x = e->active; x; x = x->next)
        if (x->waits || x->runs) {
            x->waits = x->runs = false;
            sem_post(&x->arrived);
        }
}

bool hl_exchanger_step(hl_exchanger *e, bool *moved)
{
    *moved = false;
    halo_status st = (halo_status)atomic_load(&e->failed);
    if (st == HALO_OK) st = advance_all(e, moved);
    if (st == HALO_OK) return true;
    if (atomic_load(&e->failed) == HALO_OK) {
        snprintf(e->message, sizeof(e->message), "%s", halo_error_message(e->ctx));
        atomic_store(&e->failed, (int)st);
    }
    give_up(e);
    return false;
}

/* Nothing is under way: sleeps until the caller has something, or it is time to listen. */
static void sleep_idle(hl_exchanger *e)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(HL_LISTEN_EVERY * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    sem_timedwait(&e->wake, &t);
}

void *hl_exchanger_thread(void *exchanger)
{
    hl_exchanger *e = exchanger;
    double since = hl_now();
    hl_roam();
    while (!atomic_load(&e->quit)) {
        bool moved, good = hl_exchanger_step(e, &moved);
        if (moved)
            since = hl_now();
        else if (!e->active || !good)
            sleep_idle(e);
        else
            hl_pause(since);
    }
    return NULL;
}
