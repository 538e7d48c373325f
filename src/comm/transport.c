/* SPDX-License-Identifier: Apache-2.0 */
/* transport.c -- waiting, in a way that leaves the core to those who compute. */
#include "comm/transport.h"

#include "base/clock.h"

#include <sched.h>
#include <time.h>

void hl_pause(double since)
{
    double waited = hl_now() - since;
    if (waited < 20e-6) return;
    if (waited < 200e-6) {
        sched_yield();
        return;
    }
    struct timespec t = {.tv_nsec = 20000};
    nanosleep(&t, NULL);
}

halo_status hl_transport_wait(hl_transport *t, hl_request *request)
{
    double since = hl_now();
    for (bool done = false;;) {
        HL_TRY(t->ops->test(t, request, &done));
        if (done) return HALO_OK;
        hl_pause(since);
    }
}

halo_status hl_lasting_create(hl_transport *t, hl_lasting *m, bool send, void *buffer, size_t bytes, int peer, int tag)
{
    *m = (hl_lasting){.send = send, .buffer = buffer, .bytes = bytes, .peer = peer, .tag = tag};
    if (!t->ops->prepare_send) return HALO_OK;
    return (send ? t->ops->prepare_send(t, buffer, bytes, peer, tag, &m->request) : t->ops->prepare_recv(t, buffer, bytes, peer, tag, &m->request));
}

halo_status hl_lasting_start(hl_transport *t, hl_lasting *m)
{
    m->on_way = true;
    if (m->request.lasting) return t->ops->start(t, &m->request);
    return m->send ? t->ops->isend(t, m->buffer, m->bytes, m->peer, m->tag, &m->request) : t->ops->irecv(t, m->buffer, m->bytes, m->peer, m->tag, &m->request);
}

halo_status hl_lasting_test(hl_transport *t, hl_lasting *m, bool *done)
{
    *done = true;
    if (!m->on_way) return HALO_OK;
    HL_TRY(t->ops->test(t, &m->request, done));
    m->on_way = !*done;
    return HALO_OK;
}

void hl_lasting_destroy(hl_transport *t, hl_lasting *m)
{
    if (m->request.lasting && !m->on_way) t->ops->release(t, &m->request);
    *m = (hl_lasting){0};
}
