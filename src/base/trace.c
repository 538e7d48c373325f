/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- see trace.h. An event's place is drawn from a counter, so that adding never waits. */
#include "base/trace.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>

enum { HL_TRACE_EVENTS = 65536 };

typedef struct event {
    char name[64], detail[24];
    const char *category;
    double start, end;
    int64_t bytes;
} event;

struct hl_trace {
    double zero;
    int64_t room;
    struct {
        _Atomic int64_t n; /* added in all */
        event *ring;       /* [room] */
    } lane[HL_LANES];
};

static const char *const lane_names[HL_LANES] = {"compute", "communication", "prefetch"};

halo_status hl_trace_begin(halo_context *ctx, int64_t events)
{
    hl_trace *t;
    halo_status st = HALO_OK;
    hl_trace_end(ctx);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*t), "a trace", &t));
    t->room = events > 0 ? events : HL_TRACE_EVENTS;
    ctx->trace = t;
    for (int i = 0; i < HL_LANES && st == HALO_OK; i++) st = hl_calloc(ctx, (size_t)t->room, sizeof(event), "a trace", &t->lane[i].ring);
    if (st != HALO_OK) hl_trace_end(ctx);
    t->zero = hl_now();
    return st;
}

void hl_trace_end(halo_context *ctx)
{
    hl_trace *t = ctx->trace;
    ctx->trace = NULL;
    for (int i = 0; t && i < HL_LANES; i++) free(t->lane[i].ring);
    free(t);
}

void hl_trace_add(halo_context *ctx, hl_lane lane, const char *category, const char *name, const char *detail, double start, double end, int64_t bytes)
{
    hl_trace *t = ctx->trace;
    if (!t) return;
    int64_t i = atomic_fetch_add_explicit(&t->lane[lane].n, 1, memory_order_relaxed) % t->room;
    event *e = &t->lane[lane].ring[i];
    snprintf(e->name, sizeof(e->name), "%s", name);
    snprintf(e->detail, sizeof(e->detail), "%s", detail ? detail : "");
    e->category = category;
    e->start = start;
    e->end = end;
    e->bytes = bytes;
}

/* "process_name" or "thread_name". */
static void name_json(const halo_context *ctx, const char *what, int lane, const char *name, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_string(j, "name", what);
    hl_json_string(j, "ph", "M");
    hl_json_int(j, "pid", ctx->rank);
    hl_json_int(j, "tid", lane);
    hl_json_object(j, "args");
    hl_json_string(j, "name", name);
    hl_json_end_object(j);
    hl_json_end_object(j);
}

static void event_json(const halo_context *ctx, const event *e, int lane, hl_json *j)
{
    char name[96];
    snprintf(name, sizeof(name), "%s%s%s", e->name, *e->detail ? " " : "", e->detail);
    hl_json_object(j, NULL);
    hl_json_string(j, "name", name);
    hl_json_string(j, "cat", e->category);
    hl_json_string(j, "ph", "X");
    hl_json_number(j, "ts", (e->start - ctx->trace->zero) * 1e6);
    hl_json_number(j, "dur", (e->end - e->start) * 1e6);
    hl_json_int(j, "pid", ctx->rank);
    hl_json_int(j, "tid", lane);
    if (e->bytes > 0) {
        hl_json_object(j, "args");
        hl_json_int(j, "bytes", e->bytes);
        hl_json_end_object(j);
    }
    hl_json_end_object(j);
}

void hl_trace_json(const halo_context *ctx, hl_json *j)
{
    char process[32];
    snprintf(process, sizeof(process), "rank %d", ctx->rank);
    name_json(ctx, "process_name", 0, process, j);
    for (int k = 0; k < HL_LANES; k++) {
        int64_t n = atomic_load(&ctx->trace->lane[k].n), room = ctx->trace->room;
        name_json(ctx, "thread_name", k, lane_names[k], j);
        for (int64_t i = hl_max64(0, n - room); i < n; i++) event_json(ctx, &ctx->trace->lane[k].ring[i % room], k, j);
    }
}

int64_t hl_trace_lost(const halo_context *ctx)
{
    int64_t lost = 0;
    for (int k = 0; ctx->trace && k < HL_LANES; k++) lost += hl_max64(0, atomic_load(&ctx->trace->lane[k].n) - ctx->trace->room);
    return lost;
}
