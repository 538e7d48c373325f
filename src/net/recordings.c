/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordings.c -- runs of steps that need nothing of the host, recorded by a device that can do so and put on it again as a whole from then on: what launching costs is
 * paid once per run of steps instead of once per step.
 *
 * A run of steps ends before one in which the host takes part: the start or finish of a transfer that does not go over a link between devices, and statistics that ranks merge. It is done step by step the first time, as
 * libraries may load what they need then, recorded the second time, and replayed from then on. What is timed or traced is done step by step.
 */
#include "net/ir.h"

#include "base/trace.h"

/* A run of steps that begins at a step. */
typedef struct span {
    int end, times;
    halo_recording *recording;
} span;

struct hl_recordings {
    int steps;
    span span[]; /* [steps][2]: of runs that do not sum gradients over ranks, and of those that do */
};

static bool possible(const hl_program *p) { return p->dev->ops->record && !p->timing && !p->ctx->step_by_step && !hl_traced(p->ctx); }

/* Only the device works on it. */
static bool on_device(const hl_program *p, const hl_step *s)
{
    if (s->kind == HL_STEP_START || s->kind == HL_STEP_FINISH) return p->transfer[s->transfer].passage && hl_passage_on_device(p->transfer[s->transfer].passage);
    if (s->kind == HL_STEP_SUM || s->kind == HL_STEP_JOIN) return !p->node_sums || !p->summing;
    return s->kind != HL_STEP_OP || !hl_statistics_wanted(p, s);
}

static int end_of(const hl_program *p, int first, int limit)
{
    int i = first;
    while (i < limit && on_device(p, &p->step[i])) i++;
    return i;
}

static halo_status step_by_step(hl_program *p, int first, int end)
{
    for (int i = first; i < end; i++) HL_TRY(hl_execute(p, &p->step[i]));
    return hl_sums_join(p); /* a recording ends where it began, on one queue */
}

static halo_status record(hl_program *p, span *s, int first)
{
    const halo_device_ops *ops = p->dev->ops;
    HL_TRY(ops->record(p->dev));
    halo_status st = step_by_step(p, first, s->end), stopped = ops->stop(p->dev, &s->recording);
    return st != HALO_OK ? st : stopped;
}

static halo_status run_span(hl_program *p, span *s, int first)
{
    if (s->times++ == 0) return step_by_step(p, first, s->end);
    if (!s->recording) HL_TRY(record(p, s, first));
    return p->dev->ops->replay(p->dev, s->recording, &p->record);
}

static halo_status need_recordings(hl_program *p)
{
    struct hl_recordings *r = p->recordings;
    if (r) return HALO_OK;
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*r) + 2 * (size_t)p->steps * sizeof(r->span[0]), "recordings of steps", &r));
    r->steps = p->steps;
    p->recordings = r;
    return HALO_OK;
}

halo_status hl_run_some(hl_program *p, int first, int limit, int *next)
{
    int end = possible(p) ? end_of(p, first, limit) : first;
    *next = first + 1;
    if (end - first < 2) return hl_run_step(p, &p->step[first]);
    HL_TRY(need_recordings(p));
    span *s = &p->recordings->span[2 * first + p->summing];
    if (s->end == 0) s->end = end;
    *next = end;
    return s->end == end ? run_span(p, s, first) : step_by_step(p, first, end);
}

void hl_recordings_free(hl_program *p)
{
    for (int i = 0; p->recordings && i < 2 * p->recordings->steps; i++)
        if (p->recordings->span[i].recording) p->dev->ops->forget(p->dev, p->recordings->span[i].recording);
    free(p->recordings);
    p->recordings = NULL;
}
