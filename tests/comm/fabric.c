/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c -- see fabric.h. */
#include "tests/comm/fabric.h"

#include "base/rng.h"
#include "tests/check.h"

#include <pthread.h>

typedef struct message {
    struct message *next;
    int from, tag, looks;
    size_t bytes;
    char data[];
} message;

typedef struct endpoint {
    hl_transport super;
    fabric *fabric;
    message *first, **last; /* waiting for this rank, in order of sending */
} endpoint;

struct fabric {
    pthread_mutex_t lock;
    int ranks, delay;
    uint64_t seed, sent;
    endpoint *end;
};

static endpoint *of(hl_transport *t) { return (endpoint *)t; }

static halo_status isend(hl_transport *t, const void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    fabric *f = of(t)->fabric;
    HL_BUG_UNLESS(peer >= 0 && peer < f->ranks && peer != t->rank);
    message *m = check_alloc(1, (int64_t)(sizeof(*m) + bytes));
    m->from = t->rank;
    m->tag = tag;
    m->bytes = bytes;
    memcpy(m->data, buffer, bytes);
    pthread_mutex_lock(&f->lock);
    m->looks = f->delay > 0 ? (int)(hl_philox(f->seed, HL_STREAM_TEST, f->sent, 7).v[0] % (uint32_t)(f->delay + 1)) : 0;
    f->sent++;
    endpoint *to = &f->end[peer];
    *to->last = m;
    to->last = &m->next;
    pthread_mutex_unlock(&f->lock);
    request->state = HL_REQUEST_NONE;
    return HALO_OK;
}

static halo_status irecv(hl_transport *t, void *buffer, size_t bytes, int peer, int tag, hl_request *request)
{
    (void)t;
    *request = (hl_request){.state = HL_REQUEST_POSTED, .peer = peer, .tag = tag, .bytes = bytes, .native.pointer = buffer};
    return HALO_OK;
}

/* The first message of (peer, tag) if it has arrived. Under the lock. */
static message **find(endpoint *e, int peer, int tag)
{
    for (message **m = &e->first; *m; m = &(*m)->next)
        if ((peer < 0 || (*m)->from == peer) && (*m)->tag == tag) return (*m)->looks-- > 0 ? NULL : m;
    return NULL;
}

static halo_status test(hl_transport *t, hl_request *request, bool *done)
{
    endpoint *e = of(t);
    if (request->state == HL_REQUEST_POSTED) {
        pthread_mutex_lock(&e->fabric->lock);
        message **at = find(e, request->peer, request->tag);
        if (at) {
            message *m = *at;
            HL_BUG_UNLESS(m->bytes == request->bytes);
            memcpy(request->native.pointer, m->data, m->bytes);
            *at = m->next;
            if (!*at) e->last = at;
            free(m);
            request->state = HL_REQUEST_NONE;
        }
        pthread_mutex_unlock(&e->fabric->lock);
    }
    *done = request->state == HL_REQUEST_NONE;
    return HALO_OK;
}

static halo_status probe(hl_transport *t, int peer, int tag, int *from)
{
    endpoint *e = of(t);
    pthread_mutex_lock(&e->fabric->lock);
    message **at = find(e, peer, tag);
    *from = at ? (*at)->from : -1;
    pthread_mutex_unlock(&e->fabric->lock);
    return HALO_OK;
}

static void nothing(hl_transport *t) { (void)t; }

static const hl_transport_ops ops = {.isend = isend, .irecv = irecv, .test = test, .probe = probe, .close = nothing};

fabric *fabric_create(int ranks, int delay, uint64_t seed)
{
    fabric *f = check_alloc(1, sizeof(*f));
    *f = (fabric){.ranks = ranks, .delay = delay, .seed = seed, .end = check_alloc(ranks, sizeof(endpoint))};
    pthread_mutex_init(&f->lock, NULL);
    for (int i = 0; i < ranks; i++) {
        f->end[i] = (endpoint){.super = {.ops = &ops, .rank = i, .ranks = ranks}, .fabric = f};
        f->end[i].last = &f->end[i].first;
    }
    return f;
}

void fabric_destroy(fabric *f)
{
    for (int i = 0; i < f->ranks; i++)
        for (message *m = f->end[i].first, *next; m; m = next) {
            next = m->next;
            free(m);
        }
    pthread_mutex_destroy(&f->lock);
    free(f->end);
    free(f);
}

hl_transport *fabric_rank(fabric *f, int rank) { return &f->end[rank].super; }

int64_t fabric_left(fabric *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->ranks; i++)
        for (message *m = f->end[i].first; m; m = m->next) n++;
    return n;
}

int64_t fabric_sent(fabric *f) { return (int64_t)f->sent; }
