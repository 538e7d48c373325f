/* SPDX-License-Identifier: Apache-2.0 */
/* orchestrate.c -- the choice, and the static order. */
#include "comm/orchestrate.h"

const char *hl_orchestration_name(hl_orchestration o)
{
    static const char *const names[] = {"static", "bitvector", "coordinator"};
    return names[o];
}

halo_status hl_orchestrator_create(halo_context *ctx, hl_orchestration kind, hl_transport *t, int groups, double pause, hl_orchestrator **o)
{
    HL_BUG_UNLESS(groups > 0 && groups <= HL_TAG_GROUPS);
    if (kind == HL_BITVECTOR) return hl_orchestrate_bitvector(ctx, t, groups, pause, o);
    if (kind == HL_COORDINATOR) return hl_orchestrate_coordinator(ctx, t, groups, o);
    return hl_orchestrate_static(ctx, t, groups, o);
}

typedef struct fixed {
    hl_orchestrator super;
    int at;      /* the next group */
    bool ready[]; /* [groups] */
} fixed;

static void fixed_ready(hl_orchestrator *o, int g) { ((fixed *)o)->ready[g] = true; }

static halo_status fixed_advance(hl_orchestrator *o, bool *moved)
{
    (void)o;
    *moved = false;
    return HALO_OK;
}

static int fixed_next(hl_orchestrator *o)
{
    fixed *f = (fixed *)o;
    int g = f->at;
    if (!f->ready[g]) return -1;
    f->ready[g] = false;
    f->at = (g + 1) % o->groups;
    return g;
}

static bool fixed_busy(const hl_orchestrator *o)
{
    (void)o;
    return false;
}

static void fixed_destroy(hl_orchestrator *o) { free(o); }

static const hl_orchestrator_ops fixed_ops = {
    .ready = fixed_ready, .advance = fixed_advance, .next = fixed_next, .busy = fixed_busy, .destroy = fixed_destroy};

halo_status hl_orchestrate_static(halo_context *ctx, hl_transport *t, int groups, hl_orchestrator **o)
{
    fixed *f;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*f) + (size_t)groups * sizeof(bool), "an orchestration", &f));
    f->super = (hl_orchestrator){.ops = &fixed_ops, .transport = t, .groups = groups};
    *o = &f->super;
    return HALO_OK;
}
