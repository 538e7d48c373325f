/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c -- see thread.h. */
#include "comm/thread.h"

#include <signal.h>

halo_status hl_thread_start(halo_context *ctx, void *(*run)(void *), void *argument, pthread_t *thread)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t none, old;
    sigfillset(&none);
    for (size_t i = 0; i < HL_COUNT(faults); i++) sigdelset(&none, faults[i]);
    pthread_sigmask(SIG_SETMASK, &none, &old);
    int code = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code == 0 ? HALO_OK : hl_fail(ctx, HALO_ERR_SYSTEM, "cannot make a thread: %s", strerror(code));
}
