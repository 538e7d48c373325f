/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c -- making exchanges, and the caller's side of them. */
#include "comm/exchange_impl.h"

#include "base/clock.h"
#include "base/trace.h"
#include "comm/mpi_calls.h"
#include "comm/thread.h"
#include "tensor/operand.h"

#include <errno.h>
#include <stdio.h>

/* ----------------------------------------------------------------------------------------------------- the exchanger */

static halo_status start_thread(hl_exchanger *e)
{
    HL_TRY(hl_thread_start(e->ctx, hl_exchanger_thread, e, &e->thread));
    e->threaded = true;
    return HALO_OK;
}

halo_status hl_exchanger_of(halo_context *ctx, hl_exchanger **out)
{
    struct halo_comm *c = ctx->comm;
    hl_exchanger *e = NULL;
    if (c->exchanger) {
        *out = c->exchanger;
        return HALO_OK;
    }
    halo_status st = hl_agree(ctx, hl_calloc(ctx, 1, sizeof(*e), "a list of exchanges", &e));
    if (st != HALO_OK) {
        free(e);
        return st;
    }
    e->ctx = ctx;
    e->next_tag = HL_TAG_EXCHANGES;
    sem_init(&e->wake, 0, 0);
    pthread_mutex_init(&e->lock, NULL);
    HL_GOTO(st, hl_transport_open(ctx, &e->transport), destroy);
    HL_GOTO(st, hl_agree(ctx, c->place.threads ? start_thread(e) : HALO_OK), destroy);
    if (!e->threaded) HL_INFO(ctx, "MPI gives no MPI_THREAD_MULTIPLE: blocks are exchanged between operations");
    *out = c->exchanger = e;
    return HALO_OK;
destroy:
    hl_exchanger_destroy(e);
    return st;
}

void hl_exchanger_destroy(hl_exchanger *e)
{
    if (!e) return;
    if (e->threaded) {
        atomic_store(&e->quit, true);
        sem_post(&e->wake);
        pthread_join(e->thread, NULL);
    }
    hl_transport_close(e->transport);
    pthread_mutex_destroy(&e->lock);
    sem_destroy(&e->wake);
    free(e);
}

static void enlist(hl_exchange *x)
{
    pthread_mutex_lock(&x->e->lock);
    x->sibling = x->e->all;
    x->e->all = x;
    pthread_mutex_unlock(&x->e->lock);
}

static void delist(hl_exchange *x)
{
    pthread_mutex_lock(&x->e->lock);
    hl_exchange **at = &x->e->all;
    while (*at && *at != x) at = &(*at)->sibling;
    if (*at) *at = x->sibling;
    pthread_mutex_unlock(&x->e->lock);
}

/* ----------------------------------------------------------------------------------------------------------- making */

static bool remote(const hl_exchange *x, const hl_part *p) { return p->m.peer != x->ctx->rank; }

static halo_status take_list(hl_exchange *x, const hl_message *message, int n)
{
    HL_TRY(hl_calloc(x->ctx, (size_t)n, sizeof(*x->part), "messages of an exchange", &x->part));
    x->parts = n;
    for (int i = 0; i < n; i++) {
        hl_part *p = &x->part[i];
        *p = (hl_part){.m = message[i], .elements = hl_region_elements(&message[i].region)};
        HL_BUG_UNLESS(!p->m.run || remote(x, p));
        HL_BUG_UNLESS(p->elements > 0 && p->m.peer >= 0 && p->m.peer < x->ctx->ranks && p->m.stage >= 0 && p->m.tag >= 0 && p->m.tag < 64);
        p->m.region = hl_region_merged(&message[i].region);
        x->stages = (int)hl_max64(x->stages, p->m.stage + 1);
        x->remote += remote(x, p);
        if (!p->m.send || !remote(x, p)) continue;
        x->messages++;
        x->bytes += p->elements * (int64_t)hl_dtype_size(x->type);
    }
    return HALO_OK;
}

/* The other end of a message to this rank itself. */
static hl_part *other_end(hl_exchange *x, const hl_part *p)
{
    for (int i = 0; i < x->parts; i++) {
        hl_part *o = &x->part[i];
        if (o->m.peer == p->m.peer && o->m.send != p->m.send && o->m.stage == p->m.stage && o->m.tag == p->m.tag) return o;
    }
    return NULL;
}

static halo_status make_buffers(hl_exchange *x)
{
    size_t bytes = 0, size = hl_dtype_size(x->type);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) HL_TRY(hl_aligned(x->ctx, bytes, "buffers of an exchange", &x->memory));
        bytes = 0;
        for (int i = 0; i < x->parts; i++) {
            hl_part *p = &x->part[i];
            if (p->m.run || (!p->m.send && !remote(x, p))) continue;
            if (pass == 1) p->buffer = x->memory + bytes;
            bytes += (size_t)hl_round_up(p->elements * (int64_t)size, 64);
        }
    }
    for (int i = 0; i < x->parts; i++)
        if (x->part[i].m.run)
            x->part[i].buffer = x->part[i].m.run;
        else if (!x->part[i].m.send && !remote(x, &x->part[i])) x->part[i].buffer = other_end(x, &x->part[i])->buffer;
    return HALO_OK;
}

/* Numbers of tags are taken one after the other, and from the first again after the last: on all ranks alike. */
static halo_status take_tags(hl_exchanger *e, int stages, int tags, int *base)
{
    int64_t most = e->transport->tag_most, width = (int64_t)stages * tags;
    if (width > most - HL_TAG_EXCHANGES) return hl_fail(e->ctx, HALO_ERR_UNSUPPORTED, "an exchange of %d stages: this MPI has %" PRId64 " tags", stages, most);
    if (e->next_tag + width > most) e->next_tag = HL_TAG_EXCHANGES;
    *base = e->next_tag;
    e->next_tag += (int)width;
    return HALO_OK;
}

static halo_status make_wires(hl_exchange *x, int base, int tags)
{
    size_t size = hl_dtype_size(x->type);
    for (int i = 0; i < x->parts; i++) {
        hl_part *p = &x->part[i];
        if (!remote(x, p)) continue;
        int tag = base + p->m.stage * tags + p->m.tag;
        HL_TRY(hl_lasting_create(x->e->transport, &p->wire, p->m.send, p->buffer, (size_t)p->elements * size, p->m.peer, tag));
    }
    return HALO_OK;
}

static halo_status make_parts(hl_exchange *x)
{
    int stages, tags, base = 0;
    HL_TRY(hl_exchange_match(x, &stages, &tags));
    HL_AGREE(x->ctx, make_buffers(x));
    if (!x->e) return HALO_OK;
    HL_TRY(take_tags(x->e, stages, tags, &base));
    x->number = x->e->made++;
    return hl_agree(x->ctx, make_wires(x, base, tags));
}

halo_status hl_exchange_create(halo_context *ctx, halo_dtype type, const hl_message *message, int n, hl_exchange **out)
{
    hl_exchange *x = NULL;
    hl_exchanger *e = NULL;
    HL_BUG_UNLESS(type == HALO_F32 || type == HALO_F64 || type == HALO_F16 || type == HALO_BF16);
    if (ctx->ranks > 1) HL_TRY(hl_exchanger_of(ctx, &e));
    halo_status st = hl_calloc(ctx, 1, sizeof(*x), "an exchange", &x);
    if (st == HALO_OK) {
        x->ctx = ctx;
        x->e = e;
        x->type = type;
        sem_init(&x->arrived, 0, 0);
        st = take_list(x, message, n);
    }
    HL_GOTO(st, hl_agree(ctx, st), undo);
    HL_GOTO(st, make_parts(x), undo);
    if (e) enlist(x);
    *out = x;
    return HALO_OK;
undo:
    hl_exchange_destroy(x);
    return st;
}

/* What was sent has left, or never will. */
static void drain(hl_exchange *x)
{
    double since = hl_now();
    while (!hl_exchange_idle(x) && atomic_load(&x->e->failed) == HALO_OK) {
        bool moved;
        if (!x->e->threaded && !hl_exchanger_step(x->e, &moved)) return;
        hl_pause(since);
    }
}

void hl_exchange_destroy(hl_exchange *x)
{
    if (!x) return;
    HL_BUG_UNLESS(!x->under_way || (x->e && atomic_load(&x->e->failed)));
    if (x->e) {
        drain(x);
        delist(x);
        /* After a failure messages may still be on their way into these buffers, and the other side may hold the exchange: they are left to the end of the process */
        if (!hl_exchange_idle(x)) return;
        for (int i = 0; i < x->parts; i++) hl_lasting_destroy(x->e->transport, &x->part[i].wire);
    }
    sem_destroy(&x->arrived);
    free(x->memory);
    free(x->part);
    free(x);
}

void hl_exchange_name(hl_exchange *x, const char *name) { snprintf(x->name, sizeof(x->name), "%s", name); }

/* ----------------------------------------------------------------------------------------------------------- running */

static halo_status failure(const hl_exchanger *e)
{
    hl_set_error(e->ctx, e->message); /* it was logged where it happened */
    return (halo_status)atomic_load(&e->failed);
}

static void push(hl_exchange *x)
{
    hl_exchange *top = atomic_load(&x->e->fresh);
    do x->pushed = top;
    while (!atomic_compare_exchange_weak(&x->e->fresh, &top, x));
}

halo_status hl_exchange_start(hl_exchange *x, const void *from, void *to)
{
    HL_BUG_UNLESS(!x->under_way);
    if (x->e && atomic_load(&x->e->failed)) return failure(x->e);
    x->from = from;
    x->to = to;
    x->started = hl_now();
    x->under_way = true;
    atomic_fetch_add(&x->starts, 1);
    atomic_store(&x->over, false);
    if (x->remote == 0) {
        hl_exchange_alone(x);
        return HALO_OK;
    }
    push(x);
    if (x->e->threaded)
        sem_post(&x->e->wake);
    else
        return hl_exchange_poll(x->ctx);
    return HALO_OK;
}

halo_status hl_exchange_poll(halo_context *ctx)
{
    hl_exchanger *e = ctx->comm ? ctx->comm->exchanger : NULL;
    bool moved = true;
    if (!e || e->threaded) return HALO_OK;
    while (moved)
        if (!hl_exchanger_step(e, &moved)) return failure(e);
    return HALO_OK;
}

/* The thread posts once for each run, and for those that will not arrive any more. */
static void wait_arrival(hl_exchange *x)
{
    if (x->e->threaded) {
        while (sem_wait(&x->arrived) != 0 && errno == EINTR) continue;
        return;
    }
    double since = hl_now();
    while (!hl_exchange_idle(x)) {
        bool moved;
        if (!hl_exchanger_step(x->e, &moved)) return;
        if (moved) since = hl_now();
        hl_pause(since);
    }
}

halo_status hl_exchange_finish(hl_exchange *x)
{
    HL_BUG_UNLESS(x->under_way);
    double now = hl_now();
    if (x->remote > 0) {
        if (!atomic_load(&x->over) && atomic_load(&x->e->failed)) return failure(x->e);
        wait_arrival(x);
        if (!atomic_load(&x->over)) return failure(x->e);
        double end = hl_now();
        x->stats.exposed += end - now;
        halo_context *ctx = hl_outermost(x->ctx);
        if (hl_traced(ctx)) hl_trace_add(ctx, HL_LANE_COMPUTE, "exposed", x->name, "margins", now, end, 0);
    }
    x->under_way = false;
    x->stats.runs++;
    x->stats.seconds += x->arrival - x->started;
    return HALO_OK;
}

halo_status hl_exchange_settle(hl_exchange *x)
{
    HL_BUG_UNLESS(!x->under_way);
    if (x->e) drain(x);
    return x->e && atomic_load(&x->e->failed) ? failure(x->e) : HALO_OK;
}

void hl_exchange_stats_get(hl_exchange *x, hl_exchange_stats *stats, bool reset)
{
    *stats = x->stats;
    stats->messages = x->messages * x->stats.runs;
    stats->bytes = x->bytes * x->stats.runs;
    if (reset) x->stats = (hl_exchange_stats){0};
}
