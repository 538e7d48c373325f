/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c -- a context on a communicator: the duplicate, its nodes, its end. */
#include "comm/comm.h"

#include "comm/exchange_impl.h"
#include "comm/launch.h"
#include "comm/mpi_calls.h"
#include "comm/nodes.h"
#include "halo/halo_mpi.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static void detach(struct halo_comm *c)
{
    bool started = c->started;
    hl_exchanger_destroy(c->exchanger);
    if (c->world != MPI_COMM_NULL) MPI_Comm_free(&c->world);
    free(c);
    if (started) MPI_Finalize();
}

/* The ranks that share this one's memory, or, for tests, HALO_TEST_NODE of those that MPI started after one another. */
static halo_status find_node(halo_context *ctx, MPI_Comm comm, int rank, MPI_Comm *node)
{
    const char *text = getenv("HALO_TEST_NODE");
    const long size = text ? strtol(text, NULL, 10) : 0;
    int number;
    if (size < 1) return hl_mpi_check(ctx, MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, node), "MPI_Comm_split_type");
    HL_MPI(ctx, MPI_Comm_rank(MPI_COMM_WORLD, &number));
    return hl_mpi_check(ctx, MPI_Comm_split(comm, (int)(number / size), rank, node), "MPI_Comm_split");
}

/* Ordered by node, errors returned. */
static halo_status take_apart(struct halo_comm *c, MPI_Comm comm)
{
    halo_context *ctx = c->ctx;
    MPI_Comm node = MPI_COMM_NULL;
    int ranks, rank, leader, *leaders = NULL, *order = NULL;
    halo_status st;
    HL_MPI(ctx, MPI_Comm_size(comm, &ranks));
    HL_MPI(ctx, MPI_Comm_rank(comm, &rank));
    HL_TRY(find_node(ctx, comm, rank, &node));
    leader = rank;
    HL_GOTO(st, hl_mpi_check(ctx, MPI_Bcast(&leader, 1, MPI_INT, 0, node), "MPI_Bcast"), free_node);
    HL_GOTO(st, hl_calloc(ctx, 2 * (size_t)ranks, sizeof(int), "a list of ranks", &leaders), free_node);
    order = leaders + ranks;
    HL_GOTO(st, hl_mpi_check(ctx, MPI_Allgather(&leader, 1, MPI_INT, leaders, 1, MPI_INT, comm), "MPI_Allgather"), free_list);
    hl_node_order(leaders, ranks, order);
    hl_node_place p = hl_node_find(leaders, ranks, rank);
    HL_GOTO(st, hl_mpi_check(ctx, MPI_Comm_split(comm, 0, order[rank], &c->world), "MPI_Comm_split"), free_list);
    MPI_Comm_set_errhandler(c->world, MPI_ERRORS_RETURN);
    c->place = (hl_place){.rank = order[rank], .ranks = ranks, .local = p.local, .locals = p.locals, .node = p.node, .nodes = p.nodes,
                          .node_size = p.node_size};
free_list:
    free(leaders);
free_node:
    MPI_Comm_free(&node);
    return st;
}

/* Test hooks, see transport.h. */
static void read_hooks(struct halo_comm *c)
{
    const char *limit = getenv("HALO_TEST_COUNT_LIMIT"), *link = getenv("HALO_TEST_LINK");
    c->limit = INT_MAX;
    if (limit) c->limit = hl_max64(1, hl_min64(INT_MAX, strtoll(limit, NULL, 10)));
    if (!link) return;
    char *end;
    c->link.latency = strtod(link, &end);
    c->link.bandwidth = *end == ',' ? strtod(end + 1, NULL) : 0;
}

halo_status hl_comm_attach(halo_context *ctx, MPI_Comm comm, bool started)
{
    struct halo_comm *c;
    int level = MPI_THREAD_SINGLE;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*c), "a communicator", &c));
    *c = (struct halo_comm){.ctx = ctx, .world = MPI_COMM_NULL};
    read_hooks(c);
    halo_status st = take_apart(c, comm);
    if (st != HALO_OK) {
        detach(c);
        return st;
    }
    c->started = started;
    MPI_Query_thread(&level);
    c->place.threads = level == MPI_THREAD_MULTIPLE;
    ctx->comm = c;
    ctx->comm_destroy = detach;
    ctx->rank = c->place.rank;
    ctx->ranks = c->place.ranks;
    return HALO_OK;
}

/* The local part can fail on one rank only (options, memory): agreed before anything collective is begun. */
static halo_status create_on(MPI_Comm comm, const halo_context_options *options, bool started, halo_context **out)
{
    halo_context *ctx = NULL;
    halo_status st = halo_context_create(options, &ctx);
    int failed = st != HALO_OK, any = 0;
    HL_GOTO(st, hl_mpi_check(NULL, MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce"), destroy);
    if (any) {
        st = failed ? HALO_ERR_USAGE : hl_fail(NULL, HALO_ERR_COMM, "another rank cannot make its context");
        goto destroy;
    }
    st = hl_comm_attach(ctx, comm, started);
    if (st != HALO_OK) hl_set_error(NULL, halo_error_message(ctx));
destroy:
    if (st == HALO_OK)
        *out = ctx;
    else
        halo_context_destroy(ctx);
    return st;
}

halo_status halo_mpi_context_create(MPI_Comm comm, const halo_context_options *options, halo_context **ctx)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended) return hl_fail(NULL, HALO_ERR_USAGE, "MPI is not initialised");
    if (comm == MPI_COMM_NULL) return hl_fail(NULL, HALO_ERR_USAGE, "the communicator is MPI_COMM_NULL");
    return create_on(comm, options, false, ctx);
}

halo_status halo_mpi_context_create_f(MPI_Fint comm, const halo_context_options *options, halo_context **ctx)
{
    return halo_mpi_context_create(MPI_Comm_f2c(comm), options, ctx);
}

void halo_mpi_rank(const halo_context *ctx, int *rank, int *ranks)
{
    if (rank) *rank = ctx->rank;
    if (ranks) *ranks = ctx->ranks;
}

hl_place hl_comm_place(const halo_context *ctx)
{
    if (ctx->comm) return ctx->comm->place;
    return (hl_place){.ranks = 1, .locals = 1, .nodes = 1, .node_size = 1, .threads = true};
}

halo_status hl_comm_takes_cuda(halo_context *ctx, int wish, bool *takes)
{
    double not = wish > 0 || (wish == 0 && hl_comm_says_cuda() == 1) ? 0 : 1;
    HL_TRY(hl_comm_max(ctx, &not, 1));
    *takes = ctx->comm && not == 0;
    return HALO_OK;
}

/* Several processes that do not know of each other; world 0: before MPI_Init. */
static halo_status check_launch(int world)
{
    char text[256];
    if (!hl_launch_mistake(hl_process_variable, NULL, world, text, sizeof(text))) return HALO_OK;
    return hl_fail(NULL, HALO_ERR_USAGE, "%s", text);
}

halo_status hl_world_create(const halo_context_options *options, halo_context **ctx)
{
    if (!hl_launched(hl_process_variable, NULL)) return halo_context_create(options, ctx);
#ifdef OMPI_MAJOR_VERSION
    HL_TRY(check_launch(0));
#endif
    int level, ranks = 0;
    HL_MPI(NULL, MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    halo_status st = check_launch(ranks);
    if (st == HALO_OK) st = create_on(MPI_COMM_WORLD, options, true, ctx);
    if (st != HALO_OK) MPI_Finalize();
    return st;
}

static halo_context_options options_of(const halo_context *ctx)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    o.log_level = ctx->log_level;
    o.log = ctx->log;
    o.log_user = ctx->log_user;
    o.seed = ctx->seed;
    o.threads = ctx->threads;
    o.backend = *ctx->backend ? ctx->backend : NULL;
    o.isa = *ctx->isa ? ctx->isa : NULL;
    o.compute = ctx->compute;
    return o;
}

/* A context of the ranks of one colour, ordered as here; NULL where the colour is undefined. Collective. */
static halo_status split(halo_context *ctx, int colour, halo_context **sub)
{
    MPI_Comm comm;
    halo_context_options o = options_of(ctx);
    *sub = NULL;
    HL_MPI(ctx, MPI_Comm_split(ctx->comm->world, colour, ctx->rank, &comm));
    if (comm == MPI_COMM_NULL) return HALO_OK;
    halo_status st = create_on(comm, &o, false, sub);
    if (st != HALO_OK) hl_set_error(ctx, halo_error_message(NULL));
    MPI_Comm_free(&comm);
    return st;
}

halo_status hl_comm_subset(halo_context *ctx, int ranks, halo_context **sub)
{
    halo_context_options o = options_of(ctx);
    *sub = NULL;
    if (!ctx->comm) return halo_context_create(&o, sub);
    return split(ctx, ctx->rank < ranks ? 0 : MPI_UNDEFINED, sub);
}

halo_status hl_comm_inner(halo_context *ctx, int colour, int first, int stride, halo_context **inner)
{
    HL_BUG_UNLESS(ctx->comm);
    HL_TRY(split(ctx, colour, inner));
    halo_context *in = *inner;
    HL_BUG_UNLESS(first + in->rank * stride == ctx->rank); /* nodes are neighbours already */
    in->outer = ctx;
    in->comm->first = first;
    in->comm->stride = stride;
    return HALO_OK;
}

halo_status hl_comm_rest(halo_context *ctx)
{
    MPI_Request request;
    if (!ctx->comm) return HALO_OK;
    HL_MPI(ctx, MPI_Ibarrier(ctx->comm->world, &request));
    for (int done = 0;;) {
        HL_MPI(ctx, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done) return HALO_OK;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void hl_comm_abort(halo_context *ctx, int exit_code)
{
    if (ctx && ctx->comm) MPI_Abort(ctx->comm->world, exit_code);
    _Exit(exit_code);
}
