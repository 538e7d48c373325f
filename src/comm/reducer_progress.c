/* SPDX-License-Identifier: Apache-2.0 */
/* reducer_progress.c -- the side of a reducer that communicates: what became complete, what may start, the sum under way, and who is late. */
#include "comm/reducer_impl.h"

#include "base/clock.h"
#include "base/topology.h"
#include "base/trace.h"

#include <stdio.h>
#include <time.h>

#define HL_ANSWER_EVERY 0.05 /* seconds between looks for questions of ranks that wait */
#define HL_PATIENCE 2.0      /* seconds to wait for answers, or `stall` if that is less */

static void set_bit(uint64_t *words, int g, bool on)
{
    uint64_t bit = UINT64_C(1) << (g % 64);
    words[g / 64] = on ? words[g / 64] | bit : words[g / 64] & ~bit;
}

/* ----------------------------------------------------------------------------------------------------- the groups */

static void take_fresh(hl_reducer *r, bool *moved)
{
    for (int w = 0; w < r->words; w++)
        for (uint64_t bits = atomic_exchange(&r->fresh[w], 0); bits; bits &= bits - 1) {
            int g = w * 64 + __builtin_ctzll(bits);
            if (r->pending++ == 0) r->progress = hl_now();
            set_bit(r->outstanding, g, true);
            r->orchestrator->ops->ready(r->orchestrator, g);
            *moved = true;
        }
}

static void arrive(hl_reducer *r)
{
    int g = r->current;
    uint64_t n = atomic_load(&r->arrived);
    halo_context *ctx = hl_outermost(r->ctx);
    r->group[g].times.end = r->progress = hl_now();
    if (hl_traced(ctx))
        hl_trace_add(ctx, HL_LANE_COMMUNICATION, "reduce", r->group[g].name, NULL, r->group[g].times.start, r->progress, r->group[g].times.bytes);
    r->current = -1;
    r->pending--;
    set_bit(r->outstanding, g, false);
    r->order[n % (uint64_t)r->groups] = g;
    atomic_store(&r->arrived, n + 1);
    if (r->threaded) sem_post(&r->arrival);
}

static halo_status start(hl_reducer *r, int g)
{
    hl_reducer_group *d = &r->group[g];
    char *buffer = (char *)r->opt.buffer + (size_t)d->lo * hl_reducer_element(r);
    r->current = g;
    d->times.start = r->progress = hl_now();
    if (!d->route) {
        HL_TRY(r->transport->ops->allreduce(r->transport, buffer, d->n, r->opt.type));
        arrive(r);
        return HALO_OK;
    }
    char *error = r->error ? r->error + (size_t)d->lo * hl_reducer_element(r) : NULL;
    return hl_reduction_start(&r->reduction, d->route, buffer, error, g);
}

/* Position of the sum under way: changes when something came or went. */
static int position(const hl_reducer *r) { return (r->reduction.round << 8) + r->reduction.taken + r->reduction.sent; }

static halo_status go_on(hl_reducer *r, bool *moved)
{
    bool done;
    int before = position(r);
    HL_TRY(hl_reduction_test(&r->reduction, &done));
    if (position(r) != before || done) {
        *moved = true;
        r->progress = hl_now();
    }
    if (done) arrive(r);
    return HALO_OK;
}

static halo_status orchestrate(hl_reducer *r, bool *moved)
{
    hl_orchestrator *o = r->orchestrator;
    bool any;
    o->stop = atomic_load(&r->want_stop);
    HL_TRY(o->ops->advance(o, &any));
    *moved = *moved || any;
    if (o->any_stop) atomic_store(&r->stop_wanted, true);
    if (r->current >= 0) return HALO_OK;
    int g = o->ops->next(o);
    if (g < 0) return HALO_OK;
    *moved = true;
    return start(r, g);
}

/* ------------------------------------------------------------------------------------------------------- who is late */

static const char *group_name(void *user, int g) { return ((hl_reducer *)user)->group[g].name; }

static halo_status answer(hl_reducer *r)
{
    double now = hl_now();
    if (now - r->answered < HL_ANSWER_EVERY) return HALO_OK;
    r->answered = now;
    for (int w = 0; w < r->words; w++) r->view[w] = atomic_load(&r->complete[w]);
    return hl_stall_answer(r->stall, &(hl_stall_view){.step = atomic_load(&r->step), .complete = r->view});
}

/* All that was asked is answered, or will not be. Rank 0 names those who are late; another rank names rank 0, or leaves it to rank 0 for a while. */
static halo_status judge(hl_reducer *r)
{
    char who[900];
    double waited = hl_now() - r->progress;
    r->asked = false;
    if (hl_stall_describe(r->stall, atomic_load(&r->step), r->outstanding, group_name, r, who, sizeof(who)))
        return hl_fail(r->ctx, HALO_ERR_COMM, "no progress for %.1f s: %s", waited, who);
    if (r->transport->rank == 0) {
        r->progress = hl_now(); /* they have all that is awaited by now */
        return HALO_OK;
    }
    if (waited < 3 * r->opt.stall + HL_PATIENCE) return HALO_OK;
    return hl_fail(r->ctx, HALO_ERR_COMM, "no progress for %.1f s in group %d (%s), waiting for rank %d", waited, r->current < 0 ? 0 : r->current,
                   r->group[r->current < 0 ? 0 : r->current].name, hl_transport_known_as(r->transport, r->current < 0 ? 0 : hl_reduction_peer(&r->reduction)));
}

static halo_status look_for_stalls(hl_reducer *r)
{
    if (r->opt.stall <= 0) return HALO_OK;
    bool late = r->pending > 0 && hl_now() - r->progress > r->opt.stall, done = false;
    r->orchestrator->stall = late;
    if (!r->asked) {
        if (!late && !(r->orchestrator->any_stall && r->pending > 0 && r->transport->rank == 0)) return HALO_OK;
        r->asked = true;
        HL_TRY(hl_stall_ask(r->stall));
    }
    HL_TRY(hl_stall_collect(r->stall, fmin(HL_PATIENCE, r->opt.stall), &done));
    return done ? judge(r) : HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------- driving */

halo_status hl_reducer_advance(hl_reducer *r, bool *moved)
{
    *moved = false;
    take_fresh(r, moved);
    HL_TRY(orchestrate(r, moved));
    if (r->current >= 0) HL_TRY(go_on(r, moved));
    HL_TRY(answer(r));
    return look_for_stalls(r);
}

bool hl_reducer_step_on(hl_reducer *r, bool *moved)
{
    halo_status st = (halo_status)atomic_load(&r->failed);
    if (st == HALO_OK) st = hl_reducer_advance(r, moved);
    if (st == HALO_OK) return true;
    if (atomic_load(&r->failed) == HALO_OK) {
        snprintf(r->message, sizeof(r->message), "%s", halo_error_message(r->ctx));
        atomic_store(&r->failed, (int)st);
    }
    return false;
}

/* Nothing is under way: sleeps until the caller has something, or it is time to listen. */
static void sleep_idle(hl_reducer *r)
{
    double seconds = HL_ANSWER_EVERY;
    if (r->orchestrator->listens) seconds = r->pending > 0 || atomic_load(&r->open) ? 50e-6 : 1e-3;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(seconds * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    sem_timedwait(&r->wake, &t);
}

void *hl_reducer_thread(void *reducer)
{
    hl_reducer *r = reducer;
    double since = hl_now();
    bool moved;
    hl_roam();
    while (!atomic_load(&r->quit)) {
        if (!hl_reducer_step_on(r, &moved)) {
            sem_post(&r->arrival); /* wakes the caller, who finds the failure */
            break;
        }
        if (moved)
            since = hl_now();
        else if (r->current < 0 && !r->orchestrator->ops->busy(r->orchestrator))
            sleep_idle(r);
        else
            hl_pause(since);
    }
    return NULL;
}
