/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h -- threads that communicate. */
#ifndef HL_THREAD_H
#define HL_THREAD_H

#include "base/context.h"

/* Starts one. Signals are for the caller's threads, but for those of the thread's own faults. HALO_ERR_SYSTEM. Not collective. */
halo_status hl_thread_start(halo_context *ctx, void *(*run)(void *), void *argument, pthread_t *thread);

#endif
