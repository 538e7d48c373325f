/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h -- what each thread did when, for a picture of how communication hides behind computing.
 *
 * A lane is what one thread does, a ring of events made beforehand: adding one takes no lock and no memory, and where more come than fit the oldest are lost.
 * Several threads may add to one lane. A context without a trace costs a comparison.
 */
#ifndef HL_TRACE_H
#define HL_TRACE_H

#include "base/context.h"
#include "base/json.h"

typedef enum hl_lane { HL_LANE_COMPUTE = 0, HL_LANE_COMMUNICATION, HL_LANE_PREFETCH, HL_LANES } hl_lane;

typedef struct hl_trace hl_trace;

/* Hangs a trace with room for `events` per lane (0: 65536) on the context, whose clock begins now; replaces an old one. Not collective. HALO_ERR_NOMEM. */
halo_status hl_trace_begin(halo_context *ctx, int64_t events);
/* Takes it off again. The threads that add to it have ended. */
void hl_trace_end(halo_context *ctx);

static inline bool hl_traced(const halo_context *ctx) { return ctx->trace != NULL; }

/* name and detail are copied, shortened to what fits ("conv1", "conv-fwd"); category is a constant. start and end are clocks of hl_now; bytes 0: none. Does
 * nothing without a trace. */
void hl_trace_add(halo_context *ctx, hl_lane lane, const char *category, const char *name, const char *detail, double start, double end, int64_t bytes);

/* Events of this rank as objects of the trace-event format, into an open array: complete events ("ph": "X") in microseconds, pid = rank, tid = lane, and the
 * names of both. Between steps. */
void hl_trace_json(const halo_context *ctx, hl_json *j);
/* Events that were lost because the rings are too short. */
int64_t hl_trace_lost(const halo_context *ctx);

#endif
