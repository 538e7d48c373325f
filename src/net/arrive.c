/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrive.c -- the backward pass on several ranks: gradients are summed while it goes on, and each group's parameters are stepped as soon as its sum is there.
 *
 * A group's parameters may change once no later backward operation reads them or an image of them. Clipping by the global norm needs every group's norm first:
 * then the updates wait for the end (run.c). A group with a value that is not finite, which all ranks see alike because the sums have equal bits, ends all
 * updates of the step; those of groups before it are done by then.
 */
#include "net/ir.h"

/* The last backward step that reads the master or an image of the parameter; -1: none. */
static int last_reader(const hl_program *p, int param)
{
    int last = -1;
    for (int i = p->phase[HL_PHASE_BACKWARD]; i < p->phase[HL_PHASE_BACKWARD + 1]; i++) {
        const hl_step *s = &p->step[i];
        if (s->image >= 0 && p->value[s->image].param == param) last = i;
        for (int r = 0; r < HALO_ROLES; r++) {
            const hl_value *v = s->use[r].value >= 0 ? &p->value[s->use[r].value] : NULL;
            if (v && v->kind == HL_VALUE_PARAMETER && v->array == HL_MASTER && v->param == param) last = i;
        }
    }
    return last;
}

static int step_of(const hl_program *p, hl_phase phase, int param)
{
    for (int i = p->phase[phase]; i < p->phase[phase + 1]; i++)
        if (p->step[i].param == param) return i;
    return -1;
}

halo_status hl_arrivals_prepare(hl_program *p, const int *param)
{
    free(p->arrival);
    HL_TRY(hl_calloc(p->ctx, (size_t)p->gradients + 1, sizeof(*p->arrival), "the order of updates", &p->arrival));
    for (int g = 0; g < p->gradients; g++)
        p->arrival[g] = (hl_arrival){.param = param[g], .free_after = last_reader(p, param[g]), .norm = step_of(p, HL_PHASE_GRADIENT_NORMS, param[g]),
                                     .update = step_of(p, HL_PHASE_UPDATE, param[g])};
    return HALO_OK;
}

/* Gradients that are complete after backward step i; -1: before the first. */
static halo_status tell_complete(hl_program *p, int i)
{
    for (int g = 0; g < p->gradients; g++) {
        if (p->complete[g] != i) continue;
        HL_TRY(hl_model_stage_out(p->model, p->arrival[g].param));
        hl_reducer_ready(p->reducer, g);
    }
    return HALO_OK;
}

/* The first backward step from i on after which a gradient is complete, or the last one. */
static int next_complete(const hl_program *p, int i)
{
    int next = p->phase[HL_PHASE_BACKWARD + 1] - 1;
    for (int g = 0; g < p->gradients; g++)
        if (p->complete[g] >= i && p->complete[g] < next) next = p->complete[g];
    return next;
}

/* |dw|^2 and finiteness of one parameter on the host. */
static halo_status norm_of(hl_program *p, const hl_arrival *a)
{
    double v[HL_NORM_NUMBERS];
    halo_operand o = hl_operand_flat(HALO_F64, HL_NORM_NUMBERS);
    HL_TRY(hl_run_step(p, &p->step[a->norm]));
    HL_TRY(hl_wait_for_step(p));
    HL_TRY(p->dev->ops->download(p->dev, &o, hl_model_address(p->model, a->param, HL_MODEL_GRADIENT_NORM), HALO_F64, v));
    p->square_sum += v[0];
    p->bad += v[1];
    return HALO_OK;
}

static halo_status update_group(hl_program *p, int group)
{
    hl_group g = hl_reducer_group_of(p->reducer, group);
    for (int i = g.first; i < g.last; i++) HL_TRY(hl_model_stage_in(p->model, p->arrival[i].param));
    for (int i = g.first; i < g.last; i++)
        if (p->arrival[i].norm >= 0) HL_TRY(norm_of(p, &p->arrival[i]));
    if (p->bad > 0 || !isfinite(p->square_sum)) return HALO_OK;
    for (int i = g.first; i < g.last; i++)
        if (p->arrival[i].update >= 0) HL_TRY(hl_run_step(p, &p->step[p->arrival[i].update]));
    p->updated = true;
    return HALO_OK;
}

static bool free_at(const hl_program *p, int group, int step)
{
    hl_group g = hl_reducer_group_of(p->reducer, group);
    for (int i = g.first; i < g.last; i++)
        if (p->arrival[i].free_after > step) return false;
    return true;
}

/* Groups that arrived by now; one whose weights are still read waits in `held`, and those behind it. */
static halo_status update_arrived(hl_program *p, int step, int *held)
{
    for (;;) {
        if (*held < 0) hl_reducer_try(p->reducer, held);
        if (*held < 0 || !free_at(p, *held, step)) return HALO_OK;
        int g = *held;
        *held = -1;
        HL_TRY(update_group(p, g));
    }
}

static halo_status update_rest(hl_program *p, int held)
{
    if (held >= 0) HL_TRY(update_group(p, held));
    for (int g;;) {
        HL_TRY(hl_reducer_next(p->reducer, &g));
        if (g < 0) return HALO_OK;
        HL_TRY(update_group(p, g));
    }
}

/* Sums of everything, without updates. */
static halo_status finish(hl_program *p)
{
    HL_TRY(hl_reducer_finish(p->reducer));
    for (int g = 0; g < p->gradients; g++) HL_TRY(hl_model_stage_in(p->model, p->arrival[g].param));
    return HALO_OK;
}

halo_status hl_backward_and_sum(hl_program *p, bool update)
{
    int held = -1;
    p->square_sum = p->bad = 0;
    p->updated = false;
    hl_reducer_begin(p->reducer);
    HL_TRY(tell_complete(p, -1));
    for (int i = p->phase[HL_PHASE_BACKWARD]; i < p->phase[HL_PHASE_BACKWARD + 1];) {
        HL_TRY(hl_run_some(p, i, next_complete(p, i) + 1, &i));
        HL_TRY(tell_complete(p, i - 1));
        hl_reducer_poll(p->reducer);
        HL_TRY(hl_run_poll(p));
        if (update) HL_TRY(update_arrived(p, i - 1, &held));
    }
    return update ? update_rest(p, held) : finish(p);
}
