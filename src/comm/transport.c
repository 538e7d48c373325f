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
