/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.c -- exchanges between slabs over the transport of the communication room: every message is posted,
 * then all are waited for, so that no order of ranks matters. Messages are large and few; nothing is
 * overlapped.
 */
#include "synth/slabs.h"

#include "comm/comm.h"

enum { TAG_EXCHANGE = 101, TAG_UP, TAG_DOWN, TAG_GATHER };

struct hl_slabs {
    halo_context *ctx;
    hl_transport *transport;
    hl_request *request; /* [2 ranks] */
    int64_t *count;      /* [ranks] of hl_slabs_counts */
    void **pointer;      /* [2 ranks] */
    size_t *bytes;       /* [ranks] */
};

halo_status hl_slabs_open(halo_context *ctx, hl_slabs **out)
{
    size_t ranks = ctx ? (size_t)ctx->ranks : 1;
    hl_slabs *s = NULL;
    halo_status st;

    *out = NULL;
    if (ranks <= 1) return HALO_OK;
    st = hl_calloc(ctx, 1, sizeof(*s), "slabs", &s);
    if (st == HALO_OK) st = hl_calloc(ctx, 2 * ranks, sizeof(*s->request), "slabs", &s->request);
    if (st == HALO_OK) st = hl_calloc(ctx, ranks, sizeof(*s->count), "slabs", &s->count);
    if (st == HALO_OK) st = hl_calloc(ctx, 2 * ranks, sizeof(*s->pointer), "slabs", &s->pointer);
    if (st == HALO_OK) st = hl_calloc(ctx, ranks, sizeof(*s->bytes), "slabs", &s->bytes);
    st = hl_agree(ctx, st);
    if (st == HALO_OK) st = hl_transport_open(ctx, &s->transport);
    if (st != HALO_OK) {
        hl_slabs_close(s);
        return st;
    }
    s->ctx = ctx;
    *out = s;
    return HALO_OK;
}

void hl_slabs_close(hl_slabs *s)
{
    if (!s) return;
    if (s->transport) hl_transport_close(s->transport);
    free(s->request);
    free(s->count);
    free(s->pointer);
    free(s->bytes);
    free(s);
}

int hl_slabs_rank(const hl_slabs *s)
{
    return s ? s->transport->rank : 0;
}

int hl_slabs_ranks(const hl_slabs *s)
{
    return s ? s->transport->ranks : 1;
}

static halo_status wait_all(hl_slabs *s, int n)
{
    halo_status st = HALO_OK;
    for (int i = 0; i < n && st == HALO_OK; i++) st = hl_transport_wait(s->transport, &s->request[i]);
    return st;
}

halo_status hl_slabs_exchange(hl_slabs *s, void *const *send, const size_t *send_bytes, void *const *recv,
                              const size_t *recv_bytes)
{
    hl_transport *t = s->transport;
    int n = 0;

    for (int step = 1; step < t->ranks; step++) { /* each rank begins with another peer */
        int from = (t->rank + t->ranks - step) % t->ranks;
        if (recv_bytes[from] > 0)
            HL_TRY(t->ops->irecv(t, recv[from], recv_bytes[from], from, TAG_EXCHANGE, &s->request[n++]));
    }
    for (int step = 1; step < t->ranks; step++) {
        int to = (t->rank + step) % t->ranks;
        if (send_bytes[to] > 0)
            HL_TRY(t->ops->isend(t, send[to], send_bytes[to], to, TAG_EXCHANGE, &s->request[n++]));
    }
    if (send_bytes[t->rank] > 0) memcpy(recv[t->rank], send[t->rank], send_bytes[t->rank]);
    return wait_all(s, n);
}

halo_status hl_slabs_transpose(hl_slabs *s, void *from, void *to, size_t block_bytes)
{
    int ranks = s->transport->ranks;

    for (int r = 0; r < ranks; r++) {
        s->pointer[r] = (char *)from + (size_t)r * block_bytes;
        s->pointer[ranks + r] = (char *)to + (size_t)r * block_bytes;
        s->bytes[r] = block_bytes;
    }
    return hl_slabs_exchange(s, s->pointer, s->bytes, s->pointer + ranks, s->bytes);
}

halo_status hl_slabs_counts(hl_slabs *s, const int64_t *mine, int64_t *theirs)
{
    memcpy(s->count, mine, (size_t)s->transport->ranks * sizeof(*mine));
    return hl_slabs_transpose(s, s->count, theirs, sizeof(*mine));
}

halo_status hl_slabs_agree(hl_slabs *s, halo_status mine)
{
    return s ? hl_agree(s->ctx, mine) : mine;
}

halo_status hl_slabs_shift(hl_slabs *s, const void *up, void *up_in, const void *down, void *down_in,
                           size_t bytes)
{
    hl_transport *t = s->transport;
    int before = (t->rank + t->ranks - 1) % t->ranks, after = (t->rank + 1) % t->ranks;

    HL_TRY(t->ops->irecv(t, up_in, bytes, after, TAG_UP, &s->request[0]));
    HL_TRY(t->ops->irecv(t, down_in, bytes, before, TAG_DOWN, &s->request[1]));
    HL_TRY(t->ops->isend(t, up, bytes, before, TAG_UP, &s->request[2]));
    HL_TRY(t->ops->isend(t, down, bytes, after, TAG_DOWN, &s->request[3]));
    return wait_all(s, 4);
}

halo_status hl_slabs_gather(hl_slabs *s, const void *mine, size_t bytes, void *all)
{
    hl_transport *t = s->transport;
    int n = 0;

    if (t->rank != 0) {
        HL_TRY(t->ops->isend(t, mine, bytes, 0, TAG_GATHER, &s->request[0]));
        return wait_all(s, 1);
    }
    memcpy(all, mine, bytes);
    for (int r = 1; r < t->ranks; r++)
        HL_TRY(t->ops->irecv(t, (char *)all + (size_t)r * bytes, bytes, r, TAG_GATHER, &s->request[n++]));
    return wait_all(s, n);
}
