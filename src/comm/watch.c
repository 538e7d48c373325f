/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c -- small collectives that one can look up from: with a rank that is dead, stopped or busy elsewhere a blocking one never returns.
 *
 * Where there is a limit, collectives of a few numbers are begun and then polled; large ones, which MPI does better when it blocks, come after a barrier that is.
 * A rank that has waited for the limit asks: rank 0 asks all others, the others ask rank 0. Whoever waits in the same collective, or in a later one, answers; who
 * does not answer in time is late and is named.
 */
#include "comm/mpi_calls.h"

#include "base/clock.h"
#include "comm/orchestrate.h"

#include <stdio.h>

#define HL_ANSWER_EVERY 0.01 /* seconds between looks for questions */
#define HL_PATIENCE 2.0      /* seconds for answers, or the limit if that is less */

enum { HL_TAG_WHERE = HL_TAG_MEASURE + 1, HL_TAG_HERE };

typedef struct watch {
    struct halo_comm *c;
    double since, asked, looked; /* clock; asked 0: not yet */
    bool *here;                  /* [ranks] */
} watch;

void hl_comm_stall(halo_context *ctx, double seconds)
{
    if (ctx->comm) ctx->comm->stall = seconds > 0 ? seconds : 0;
}

double hl_comm_stall_limit(const struct halo_comm *c) { return hl_outermost(c->ctx)->comm->stall; }

int hl_comm_outer_rank(const struct halo_comm *c, int rank)
{
    for (const halo_context *ctx = c->ctx; ctx->outer; ctx = ctx->outer) rank = ctx->comm->first + rank * ctx->comm->stride;
    return rank;
}

static bool arrived(struct halo_comm *c, int tag, uint64_t *value, int *from)
{
    MPI_Status s;
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, c->world, &flag, &s);
    if (!flag) return false;
    *from = s.MPI_SOURCE;
    return MPI_Recv(value, 1, MPI_UINT64_T, s.MPI_SOURCE, tag, c->world, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* Eight bytes, which MPI takes over at once whether the other is alive or not. */
static void say(struct halo_comm *c, int tag, uint64_t value, int to)
{
    MPI_Request r;
    c->said[tag == HL_TAG_HERE] = value;
    if (MPI_Isend(&c->said[tag == HL_TAG_HERE], 1, MPI_UINT64_T, to, tag, c->world, &r) == MPI_SUCCESS) MPI_Request_free(&r);
}

static void answer_questions(struct halo_comm *c)
{
    uint64_t which;
    int from;
    while (arrived(c, HL_TAG_WHERE, &which, &from))
        if (which <= c->met) say(c, HL_TAG_HERE, which, from);
}

/* Those asked by this rank: all others, or rank 0. */
static int first_peer(const struct halo_comm *c) { return c->place.rank == 0 ? 1 : 0; }
static int last_peer(const struct halo_comm *c) { return c->place.rank == 0 ? c->place.ranks - 1 : 0; }

static halo_status ask(watch *g)
{
    HL_TRY(hl_calloc(g->c->ctx, (size_t)g->c->place.ranks, sizeof(bool), "a list of ranks", &g->here));
    g->asked = hl_now();
    for (int r = first_peer(g->c); r <= last_peer(g->c); r++) say(g->c, HL_TAG_WHERE, g->c->met, r);
    return HALO_OK;
}

/* Writes "ranks 1, 5 and 7" of those who are not here; returns how many. */
static int missing(const watch *g, char *text, size_t size)
{
    int n = 0;
    size_t used = 0;
    text[0] = 0;
    for (int r = first_peer(g->c); r <= last_peer(g->c); r++) {
        if (g->here[r] || ++n > 8 || used >= size) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%d", n > 1 ? ", " : "", hl_comm_outer_rank(g->c, r));
    }
    if (n > 8 && used < size) snprintf(text + used, size - used, " and %d more", n - 8);
    return n;
}

/* After the limit: *done when all are known to be here. */
static halo_status look_around(watch *g)
{
    struct halo_comm *c = g->c;
    char who[128];
    uint64_t at;
    int from;
    double now = hl_now();
    double limit = hl_comm_stall_limit(c);
    if (now - g->since < limit) return HALO_OK;
    if (g->asked == 0) return ask(g);
    while (arrived(c, HL_TAG_HERE, &at, &from))
        if (at == c->met) g->here[from] = true;
    int n = missing(g, who, sizeof(who));
    /* rank 0 speaks first, because it hears of all */
    double patience = fmin(HL_PATIENCE, limit) + (c->place.rank == 0 ? 0 : limit + HL_PATIENCE);
    if (n == 0) g->since = now, g->asked = 0, free(g->here), g->here = NULL;
    if (n == 0 || now - g->asked < patience) return HALO_OK;
    return hl_fail(c->ctx, HALO_ERR_COMM, "no progress for %.1f s: rank%s %s do%s not come to where the others wait", now - g->since, n > 1 ? "s" : "", who, n > 1 ? "" : "es");
}

static halo_status poll(watch *g, MPI_Request *request)
{
    for (;;) {
        int done = 0;
        HL_MPI(g->c->ctx, MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) return HALO_OK;
        double now = hl_now();
        if (now - g->looked >= HL_ANSWER_EVERY) {
            g->looked = now;
            answer_questions(g->c);
            HL_TRY(look_around(g));
        }
        hl_pause(g->since);
    }
}

halo_status hl_watch(struct halo_comm *c, MPI_Request *request)
{
    watch g = {.c = c, .since = hl_now()};
    c->met++;
    g.looked = g.since;
    halo_status st = poll(&g, request);
    free(g.here);
    return st;
}

halo_status hl_comm_gate(struct halo_comm *c)
{
    if (hl_comm_stall_limit(c) <= 0) return HALO_OK;
    MPI_Request barrier;
    HL_MPI(c->ctx, MPI_Ibarrier(c->world, &barrier));
    return hl_watch(c, &barrier);
}

halo_status hl_watched_allreduce(struct halo_comm *c, void *buffer, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request r;
    if (hl_comm_stall_limit(c) <= 0) {
        HL_MPI(c->ctx, MPI_Allreduce(MPI_IN_PLACE, buffer, count, type, op, c->world));
        return HALO_OK;
    }
    /* to one rank and back: no doubt that all have the same bits */
    bool root = c->place.rank == 0;
    HL_MPI(c->ctx, MPI_Ireduce(root ? MPI_IN_PLACE : buffer, buffer, count, type, op, 0, c->world, &r));
    HL_TRY(hl_watch(c, &r));
    HL_MPI(c->ctx, MPI_Ibcast(buffer, count, type, 0, c->world, &r));
    return hl_watch(c, &r);
}
