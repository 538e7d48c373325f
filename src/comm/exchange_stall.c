/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_stall.c -- whom an exchange waits for in vain. A rank that has waited for the limit asks the one whose message it needs whether that has started the same run; a
 * rank that has waits itself for another, and will name it. So only neighbours of a late rank speak, and each needs one question.
 */
#include "comm/exchange_impl.h"
#include "comm/mpi_calls.h"

#include "base/clock.h"

#define HL_PATIENCE 2.0 /* seconds to wait for an answer, or the limit if that is less */

enum { HL_TOLD_MOST = 8 }; /* answers without progress after which a message counts as lost */

/* Takes a message that probe has seen. */
static halo_status take(hl_transport *t, hl_question *q, int from, int tag)
{
    hl_request r;
    HL_TRY(t->ops->irecv(t, q, sizeof(*q), from, tag, &r));
    return hl_transport_wait(t, &r);
}

static int64_t starts_of(hl_exchanger *e, int64_t number)
{
    int64_t n = 0;
    pthread_mutex_lock(&e->lock);
    for (hl_exchange *x = e->all; x; x = x->sibling)
        if (x->number == number) n = atomic_load(&x->starts);
    pthread_mutex_unlock(&e->lock);
    return n;
}

static halo_status answer(hl_exchanger *e)
{
    hl_transport *t = e->transport;
    bool idle;
    int from;
    HL_TRY(t->ops->test(t, &e->replying, &idle));
    if (!idle) return HALO_OK;
    HL_TRY(t->ops->probe(t, -1, HL_TAG_ASK, &from));
    if (from < 0) return HALO_OK;
    HL_TRY(take(t, &e->reply, from, HL_TAG_ASK));
    e->reply.started = starts_of(e, e->reply.number) >= e->reply.run;
    return t->ops->isend(t, &e->reply, sizeof(e->reply), from, HL_TAG_REPLY, &e->replying);
}

static halo_status late(hl_exchanger *e, const char *what)
{
    int rank = hl_comm_outer_rank(e->ctx->comm, e->asked);
    return hl_fail(e->ctx, HALO_ERR_COMM, "no progress for %.1f s in an exchange: rank %d %s", hl_now() - e->about->progress, rank, what);
}

static halo_status hear(hl_exchanger *e)
{
    hl_question q;
    int from;
    for (;;) {
        HL_TRY(e->transport->ops->probe(e->transport, -1, HL_TAG_REPLY, &from));
        if (from < 0) return HALO_OK;
        HL_TRY(take(e->transport, &q, from, HL_TAG_REPLY));
        hl_exchange *x = e->about;
        if (!x || from != e->asked || q.number != x->number || q.run != x->run) continue;
        if (!q.started) return late(e, "does not come to where the others wait");
        if (++x->told > HL_TOLD_MOST) return late(e, "is there, but its message does not come");
        e->about = NULL;
    }
}

/* A run that waits for the last one to leave asks for that: the other has not taken it yet. */
static halo_status ask(hl_exchanger *e, hl_exchange *x, double now)
{
    hl_transport *t = e->transport;
    bool idle;
    int peer = hl_exchange_awaited(x);
    HL_TRY(t->ops->test(t, &e->asking, &idle));
    if (!idle || peer < 0) return HALO_OK;
    e->question = (hl_question){.number = x->number, .run = x->run};
    e->about = x;
    e->asked = peer;
    e->since = now;
    return t->ops->isend(t, &e->question, sizeof(e->question), peer, HL_TAG_ASK, &e->asking);
}

halo_status hl_exchanger_listen(hl_exchanger *e)
{
    double limit = hl_comm_stall_limit(e->ctx->comm), now = hl_now();
    HL_TRY(answer(e));
    HL_TRY(hear(e));
    if (limit <= 0) return HALO_OK;
    if (e->about && e->about->progress > e->since) e->about = NULL;
    if (e->about) return now - e->since < fmin(HL_PATIENCE, limit) ? HALO_OK : late(e, "does not answer");
    for (hl_exchange *x = e->active; x; x = x->next)
        if ((x->runs || x->waits) && now - x->progress > limit * (1 + x->told)) return ask(e, x, now);
    return HALO_OK;
}
