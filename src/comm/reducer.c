/* SPDX-License-Identifier: Apache-2.0 */
/* reducer.c -- making a reducer, and the caller's side of it. */
#include "comm/reducer_impl.h"

#include "base/clock.h"
#include "base/trace.h"
#include "comm/thread.h"

#include <errno.h>
#include <stdio.h>

enum { HL_SEGMENT = 65536 };

/* ---------------------------------------------------------------------------------------------------------- making */

static void name_group(hl_reducer *r, int g)
{
    const hl_group *d = &r->opt.group[g];
    const char *first = r->opt.gradient[d->first].layer, *last = r->opt.gradient[d->last - 1].layer;
    if (strcmp(first, last) == 0)
        snprintf(r->group[g].name, sizeof(r->group[g].name), "%s", first);
    else
        snprintf(r->group[g].name, sizeof(r->group[g].name), "%.25s to %.25s", first, last);
}

static halo_status lay_out(hl_reducer *r)
{
    const hl_reducer_options *o = &r->opt;
    HL_TRY(hl_calloc(r->ctx, (size_t)r->groups, sizeof(*r->group), "groups of gradients", &r->group));
    HL_TRY(hl_calloc(r->ctx, (size_t)o->gradients, sizeof(int), "groups of gradients", &r->group_of));
    HL_TRY(hl_calloc(r->ctx, (size_t)r->groups, sizeof(int), "groups of gradients", &r->order));
    HL_TRY(hl_calloc(r->ctx, (size_t)r->words, sizeof(uint64_t), "groups of gradients", &r->fresh));
    HL_TRY(hl_calloc(r->ctx, (size_t)r->words, sizeof(uint64_t), "groups of gradients", &r->complete));
    HL_TRY(hl_calloc(r->ctx, (size_t)r->words, sizeof(uint64_t), "groups of gradients", &r->outstanding));
    HL_TRY(hl_calloc(r->ctx, (size_t)r->words, sizeof(uint64_t), "groups of gradients", &r->view));
    for (int g = 0; g < r->groups; g++) {
        const hl_group *d = &o->group[g];
        HL_BUG_UNLESS(d->first == (g > 0 ? o->group[g - 1].last : 0) && d->last > d->first && d->last <= o->gradients);
        r->group[g].lo = o->gradient[d->first].lo;
        r->group[g].n = o->gradient[d->last - 1].hi - r->group[g].lo;
        r->group[g].first = d->first;
        r->group[g].gradients = d->last - d->first;
        r->group[g].times.bytes = r->group[g].n * (int64_t)hl_reducer_element(r);
        for (int i = d->first; i < d->last; i++) r->group_of[i] = g;
        name_group(r, g);
    }
    HL_BUG_UNLESS(o->group[r->groups - 1].last == o->gradients);
    return HALO_OK;
}

static halo_status make_routes(hl_reducer *r)
{
    const hl_reducer_options *o = &r->opt;
    int fan = 1;
    hl_route_spec s = {.algorithm = o->algorithm, .ranks = {0, 1, r->transport->ranks, r->transport->rank}, .segment = o->segment, .local = o->node_size};
    for (int g = 0; g < r->groups; g++) {
        s.elements = r->group[g].n;
        HL_TRY(hl_route_create(r->ctx, &s, &r->group[g].route));
        fan = r->group[g].route->fan > fan ? r->group[g].route->fan : fan;
    }
    if (o->wire != HL_WIRE_NATIVE) {
        int64_t end = o->gradient[o->gradients - 1].hi;
        HL_TRY(hl_calloc(r->ctx, (size_t)end, hl_reducer_element(r), "rounding errors that are fed back", &r->error));
    }
    return hl_reduction_create(r->ctx, r->transport, o->type, o->wire, o->segment, fan, &r->reduction);
}

static halo_status check(hl_reducer *r)
{
    const hl_reducer_options *o = &r->opt;
    if (r->groups > HL_TAG_GROUPS) return hl_fail(r->ctx, HALO_ERR_USAGE, "%d groups of gradients: at most %d", r->groups, HL_TAG_GROUPS);
    if (o->algorithm != HL_ALGORITHM_MPI) return HALO_OK;
    if (o->wire != HL_WIRE_NATIVE) return hl_fail(r->ctx, HALO_ERR_USAGE, "algorithm 'mpi' sums what it sends: it takes no narrow wire");
    if (r->transport && !r->transport->ops->allreduce)
        return hl_fail(r->ctx, HALO_ERR_UNSUPPORTED, "algorithm 'mpi' is not available here");
    return HALO_OK;
}

static halo_status make_parts(hl_reducer *r)
{
    HL_TRY(check(r));
    HL_TRY(lay_out(r));
    if (r->alone) return HALO_OK;
    if (r->opt.algorithm != HL_ALGORITHM_MPI) HL_TRY(make_routes(r));
    HL_TRY(hl_orchestrator_create(r->ctx, r->opt.orchestration, r->transport, r->groups, r->opt.pause, &r->orchestrator));
    return hl_stall_create(r->ctx, r->transport, r->groups, &r->stall);
}

static halo_status start_thread(hl_reducer *r)
{
    HL_TRY(hl_thread_start(r->ctx, hl_reducer_thread, r, &r->thread));
    r->threaded = true;
    return HALO_OK;
}

halo_status hl_reducer_create(halo_context *ctx, const hl_reducer_options *o, hl_reducer **out)
{
    hl_place place = hl_comm_place(ctx);
    hl_reducer *r;
    halo_status st = hl_calloc(ctx, 1, sizeof(*r), "a reducer", &r);
    HL_TRY(o->transport ? st : hl_agree(ctx, st));
    r->ctx = ctx;
    r->opt = *o;
    r->groups = o->groups;
    r->words = (o->groups + 63) / 64;
    r->current = -1;
    r->transport = o->transport;
    if (r->opt.segment <= 0) r->opt.segment = HL_SEGMENT;
    if (r->opt.pause <= 0) r->opt.pause = 20e-6;
    if (!o->transport) r->opt.node_size = place.node_size;
    sem_init(&r->wake, 0, 0);
    sem_init(&r->arrival, 0, 0);
    HL_BUG_UNLESS(o->groups > 0 && o->gradients > 0);
    r->alone = o->transport ? o->transport->ranks == 1 : place.ranks == 1;
    if (!o->transport && !r->alone) {
        HL_GOTO(st, hl_transport_open(ctx, &r->transport), undo);
        r->owns_transport = true;
    }
    st = make_parts(r);
    if (st == HALO_OK && !r->alone && !o->no_thread && place.threads) st = start_thread(r);
    if (!o->transport) st = hl_agree(ctx, st);
    if (st != HALO_OK) goto undo;
    if (!r->alone && !r->threaded && !o->no_thread) HL_INFO(ctx, "MPI gives no MPI_THREAD_MULTIPLE: gradients are summed between operations");
    *out = r;
    return HALO_OK;
undo:
    hl_reducer_destroy(r);
    return st;
}

void hl_reducer_destroy(hl_reducer *r)
{
    if (!r) return;
    if (r->threaded) {
        atomic_store(&r->quit, true);
        sem_post(&r->wake);
        pthread_join(r->thread, NULL);
    }
    if (r->orchestrator) r->orchestrator->ops->destroy(r->orchestrator);
    hl_stall_destroy(r->stall);
    hl_reduction_destroy(&r->reduction);
    if (r->owns_transport) hl_transport_close(r->transport);
    for (int g = 0; r->group && g < r->groups; g++) hl_route_destroy(r->group[g].route);
    free(r->group);
    free(r->group_of);
    free(r->order);
    free(r->fresh);
    free(r->complete);
    free(r->outstanding);
    free(r->view);
    free(r->error);
    sem_destroy(&r->wake);
    sem_destroy(&r->arrival);
    free(r);
}

/* ---------------------------------------------------------------------------------------------------------- a step */

void hl_reducer_begin(hl_reducer *r)
{
    HL_BUG_UNLESS(r->left == 0 && r->consumed == atomic_load(&r->step) * (uint64_t)r->groups);
    for (int g = 0; g < r->groups; g++) r->group[g].missing = r->group[g].gradients;
    for (int w = 0; w < r->words; w++) atomic_store(&r->complete[w], 0);
    r->left = r->groups;
    r->stats.begin = hl_now();
    atomic_fetch_add(&r->step, 1);
    atomic_store(&r->open, true);
}

static void submit(hl_reducer *r, int g)
{
    uint64_t bit = UINT64_C(1) << (g % 64);
    hl_group_times *t = &r->group[g].times;
    t->ready = hl_now();
    r->left--;
    if (r->alone) {
        t->start = t->end = t->ready;
        r->order[atomic_load(&r->arrived) % (uint64_t)r->groups] = g;
        atomic_fetch_add(&r->arrived, 1);
        return;
    }
    atomic_fetch_or(&r->complete[g / 64], bit);
    atomic_fetch_or(&r->fresh[g / 64], bit);
    if (r->threaded) sem_post(&r->wake);
}

void hl_reducer_ready(hl_reducer *r, int gradient)
{
    HL_BUG_UNLESS(gradient >= 0 && gradient < r->opt.gradients);
    int g = r->group_of[gradient];
    HL_BUG_UNLESS(r->group[g].missing > 0);
    if (--r->group[g].missing == 0) submit(r, g);
}

void hl_reducer_poll(hl_reducer *r)
{
    bool moved = true;
    if (r->alone || r->threaded || !atomic_load(&r->open)) return;
    while (moved && hl_reducer_step_on(r, &moved)) continue;
}

static void wait_arrival(hl_reducer *r)
{
    if (r->threaded) {
        while (sem_wait(&r->arrival) != 0 && errno == EINTR) continue;
        return;
    }
    double since = hl_now();
    while (atomic_load(&r->arrived) == r->consumed) {
        bool moved;
        if (!hl_reducer_step_on(r, &moved)) return;
        if (moved) since = hl_now();
        hl_pause(since);
    }
}

static void end_step(hl_reducer *r)
{
    if (!atomic_load(&r->open)) return;
    atomic_store(&r->open, false);
    r->stats.steps++;
    for (int g = 0; g < r->groups; g++) {
        r->stats.seconds += r->group[g].times.end - r->group[g].times.start;
        r->stats.bytes += (double)r->group[g].times.bytes;
    }
}

halo_status hl_reducer_next(hl_reducer *r, int *group)
{
    HL_BUG_UNLESS(r->left == 0);
    *group = -1;
    if (r->consumed == atomic_load(&r->step) * (uint64_t)r->groups) {
        end_step(r);
        return HALO_OK;
    }
    double start = hl_now();
    if (!r->alone) {
        wait_arrival(r);
        r->stats.seconds_exposed += hl_now() - start;
    }
    if (atomic_load(&r->arrived) == r->consumed) {
        halo_status st = (halo_status)atomic_load(&r->failed);
        HL_BUG_UNLESS(st != HALO_OK);
        hl_set_error(r->ctx, r->message); /* it was logged where it happened */
        return st;
    }
    *group = r->order[r->consumed++ % (uint64_t)r->groups];
    halo_context *ctx = hl_outermost(r->ctx);
    if (!r->alone && hl_traced(ctx)) hl_trace_add(ctx, HL_LANE_COMPUTE, "exposed", r->group[*group].name, "wait", start, hl_now(), 0);
    return HALO_OK;
}

void hl_reducer_try(hl_reducer *r, int *group)
{
    *group = -1;
    if (atomic_load(&r->arrived) == r->consumed) return;
    if (r->threaded)
        while (sem_wait(&r->arrival) != 0 && errno == EINTR) continue; /* posted, or about to be */
    *group = r->order[r->consumed++ % (uint64_t)r->groups];
}

hl_group hl_reducer_group_of(const hl_reducer *r, int group)
{
    const hl_reducer_group *g = &r->group[group];
    return (hl_group){g->first, g->first + g->gradients};
}

halo_status hl_reducer_finish(hl_reducer *r)
{
    int g;
    do HL_TRY(hl_reducer_next(r, &g));
    while (g >= 0);
    return HALO_OK;
}

void hl_reducer_want_stop(hl_reducer *r) { atomic_store(&r->want_stop, true); }

bool hl_reducer_stop_wanted(const hl_reducer *r) { return atomic_load(r->alone ? &r->want_stop : &r->stop_wanted); }

/* ----------------------------------------------------------------------------------------------------------- stats */

int hl_reducer_groups(const hl_reducer *r) { return r->groups; }

void hl_reducer_stats_get(const hl_reducer *r, hl_reducer_stats *stats, hl_group_times *times)
{
    *stats = r->stats;
    stats->threaded = r->threaded;
    for (int g = 0; times && g < r->groups; g++) times[g] = r->group[g].times;
}

void hl_reducer_stats_reset(hl_reducer *r)
{
    double begin = r->stats.begin;
    r->stats = (hl_reducer_stats){.begin = begin};
}
