/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.h -- who is late with what. A rank that has waited too long asks, and whoever's communication is alive answers with the step it is in and the groups
 * that it has completed. Rank 0 asks all; the others ask rank 0 alone, so that P late answers cost P messages.
 */
#ifndef HL_STALL_H
#define HL_STALL_H

#include "comm/transport.h"

typedef struct hl_stall hl_stall;

/* What a rank answers: its step, and the groups it has completed in it. */
typedef struct hl_stall_view {
    uint64_t step;
    const uint64_t *complete; /* [words] */
} hl_stall_view;

halo_status hl_stall_create(halo_context *ctx, hl_transport *t, int groups, hl_stall **s);
void hl_stall_destroy(hl_stall *s);

/* Answers those who ask. Cheap; called now and then while others may be waiting. */
halo_status hl_stall_answer(hl_stall *s, const hl_stall_view *view);

/* Begins to ask; nothing while it is under way. */
halo_status hl_stall_ask(hl_stall *s);
/* Collects answers; *done when all are there, or `patience` seconds after asking. */
halo_status hl_stall_collect(hl_stall *s, double patience, bool *done);
/* The ranks that lack any of the groups in `awaited` in step `step`, or did not answer, in words; name(user, g) names a group. False: none. */
bool hl_stall_describe(const hl_stall *s, uint64_t step, const uint64_t *awaited, const char *(*name)(void *user, int g), void *user, char *text,
                       size_t size);

#endif
