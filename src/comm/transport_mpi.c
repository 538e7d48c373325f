/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport_mpi.c -- the transport over a duplicated communicator.
 *
 * With a test link a send is held back until it would have passed the link: messages of a rank follow each other at the bandwidth, each a latency later. The
 * blocking allreduce sleeps for what log2 P messages each way and 2 (P - 1) / P of the bytes would cost.
 */
#include "comm/mpi_calls.h"

#include "base/clock.h"
#include "tensor/operand.h"

#include <time.h>

typedef struct mpi_transport {
    hl_transport super;
    const struct halo_comm *c;
    MPI_Comm comm;
    double link_free; /* clock */
} mpi_transport;

_Static_assert(sizeof(MPI_Request) <= sizeof(((hl_request *)0)->native), "a request fits");

static mpi_transport *of(hl_transport *t) { return (mpi_transport *)t; }

static MPI_Request *native(hl_request *request) { return (MPI_Request *)(void *)&request->native; }

static void sleep_until(double clock)
{
    double left = clock - hl_now();
    if (left <= 0) return;
    struct timespec t = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - floor(left)) * 1e9)};
    nanosleep(&t, NULL);
}

static halo_status post_send(mpi_transport *t, hl_request *request)
{
    if (request->lasting)
        HL_MPI(t->c->ctx, MPI_Start(native(request)));
    else
        HL_TRY(hl_mpi_isend(t->c, t->comm, request->buffer, request->bytes, request->peer, request->tag, native(request)));
    request->state = HL_REQUEST_POSTED;
    return HALO_OK;
}

/* Now, or when the link would have let it through. */
static halo_status let_go(mpi_transport *t, hl_request *request)
{
    const hl_link *link = &t->c->link;
    request->state = HL_REQUEST_HELD;
    if (link->bandwidth <= 0) return post_send(t, request);
    double start = fmax(hl_now(), t->link_free);
    t->link_free = start + (double)request->bytes / link->bandwidth;
    request->release = t->link_free + link->latency;
    return HALO_OK;
}

static halo_status mpi_isend(hl_transport *super, const void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    *request = (hl_request){.peer = peer, .tag = tag, .buffer = buffer, .bytes = bytes};
    return let_go(of(super), request);
}

static halo_status mpi_irecv(hl_transport *super, void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    mpi_transport *t = of(super);
    *request = (hl_request){.peer = peer, .tag = tag};
    HL_TRY(hl_mpi_irecv(t->c, t->comm, buffer, bytes, peer, tag, native(request)));
    request->state = HL_REQUEST_POSTED;
    return HALO_OK;
}

static halo_status mpi_prepare_send(hl_transport *super, const void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    mpi_transport *t = of(super);
    *request = (hl_request){.peer = peer, .tag = tag, .buffer = buffer, .bytes = bytes};
    HL_TRY(hl_mpi_send_init(t->c, t->comm, buffer, bytes, peer, tag, native(request)));
    request->lasting = true;
    return HALO_OK;
}

/* Of a receive `buffer` stays NULL: that is how start tells them apart. */
static halo_status mpi_prepare_recv(hl_transport *super, void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    mpi_transport *t = of(super);
    *request = (hl_request){.peer = peer, .tag = tag, .bytes = bytes};
    HL_TRY(hl_mpi_recv_init(t->c, t->comm, buffer, bytes, peer, tag, native(request)));
    request->lasting = true;
    return HALO_OK;
}

static halo_status mpi_start(hl_transport *super, hl_request *request)
{
    mpi_transport *t = of(super);
    return request->buffer ? let_go(t, request) : post_send(t, request);
}

static void mpi_release(hl_transport *super, hl_request *request)
{
    (void)super;
    MPI_Request_free(native(request));
}

/* A lasting request that is over stays: inactive. */
static halo_status mpi_test(hl_transport *super, hl_request *request, bool *done)
{
    mpi_transport *t = of(super);
    if (request->state == HL_REQUEST_HELD && hl_now() >= request->release) HL_TRY(post_send(t, request));
    if (request->state == HL_REQUEST_POSTED) {
        int flag = 0;
        HL_MPI(t->c->ctx, MPI_Test(native(request), &flag, MPI_STATUS_IGNORE));
        if (flag) request->state = HL_REQUEST_NONE;
    }
    *done = request->state == HL_REQUEST_NONE;
    return HALO_OK;
}

static halo_status mpi_probe(hl_transport *super, int peer, int tag, int *from)
{
    mpi_transport *t = of(super);
    MPI_Status status;
    int flag = 0;
    HL_MPI(t->c->ctx, MPI_Iprobe(peer < 0 ? MPI_ANY_SOURCE : peer, tag, t->comm, &flag, &status));
    *from = flag ? status.MPI_SOURCE : -1;
    return HALO_OK;
}

static halo_status mpi_allreduce(hl_transport *super, void *buffer, int64_t count, halo_dtype type)
{
    mpi_transport *t = of(super);
    const hl_link *link = &t->c->link;
    double start = hl_now(), p = super->ranks;
    HL_TRY(hl_mpi_allreduce(t->c, t->comm, buffer, count, hl_dtype_size(type), type == HALO_F64 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM));
    if (link->bandwidth > 0 && p > 1)
        sleep_until(start + 2 * ceil(log2(p)) * link->latency + 2 * (p - 1) / p * (double)count * (double)hl_dtype_size(type) / link->bandwidth);
    return HALO_OK;
}

static void mpi_close(hl_transport *super)
{
    mpi_transport *t = of(super);
    MPI_Comm_free(&t->comm);
    free(t);
}

static const hl_transport_ops mpi_ops = {.isend = mpi_isend,
                                         .irecv = mpi_irecv,
                                         .test = mpi_test,
                                         .probe = mpi_probe,
                                         .close = mpi_close,
                                         .allreduce = mpi_allreduce,
                                         .prepare_send = mpi_prepare_send,
                                         .prepare_recv = mpi_prepare_recv,
                                         .start = mpi_start,
                                         .release = mpi_release};

/* What MPI says of the communicator, or the least that the standard allows. */
static int largest_tag(void)
{
    int *most = NULL, known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
    return known && most ? *most : 32767;
}

halo_status hl_transport_open(halo_context *ctx, hl_transport **out)
{
    const struct halo_comm *c = ctx->comm;
    HL_BUG_UNLESS(c);
    mpi_transport *t;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*t), "a transport", &t));
    *t = (mpi_transport){.super = {.ops = &mpi_ops, .ctx = ctx, .rank = ctx->rank, .ranks = ctx->ranks}, .c = c};
    halo_status st = hl_mpi_check(ctx, MPI_Comm_dup(c->world, &t->comm), "MPI_Comm_dup");
    if (st != HALO_OK) {
        free(t);
        return st;
    }
    t->super.tag_most = largest_tag();
    t->super.first = hl_comm_outer_rank(c, 0);
    t->super.stride = ctx->ranks > 1 ? hl_comm_outer_rank(c, 1) - t->super.first : 1;
    *out = &t->super;
    return HALO_OK;
}

void hl_transport_close(hl_transport *t)
{
    if (t) t->ops->close(t);
}
