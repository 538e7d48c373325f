/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c -- what a reducer has to know of a program: which gradients lie where, and after which backward step
 * each is complete.
 *
 * A gradient is complete after the last backward step that writes it. When that is, in seconds, decides how
 * gradients are grouped: it is timed by two passes over whatever the program's memory holds before the first
 * step, or else estimated from operation counts at a nominal rate.
 */
#include "net/ir.h"

#include "base/clock.h"

/* Operations per second of one rank: a few cores' worth. Only the proportion to the cost of messages matters. */
#define HL_NOMINAL_RATE 5e10

/* The parameter of each gradient, in the order in which they lie in memory (model.c). Returns their number. */
static int backward_order(const hl_program *p, int *param)
{
    int n = 0;
    for (int layer = p->net->layers - 1; layer >= 0; layer--)
        for (int i = 0; i < p->model->params; i++)
            if (p->model->param[i].layer == layer && p->model->param[i].trainable) param[n++] = i;
    return n;
}

static bool writes_gradient(const hl_program *p, const hl_step *s, int param)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        if (!hl_step_writes(s, r) || s->use[r].value < 0) continue;
        const hl_value *v = &p->value[s->use[r].value];
        if (v->kind == HL_VALUE_PARAMETER && v->array == HL_GRADIENT && v->param == param) return true;
    }
    return false;
}

static int last_writer(const hl_program *p, int param)
{
    for (int i = p->phase[HL_PHASE_BACKWARD + 1] - 1; i >= p->phase[HL_PHASE_BACKWARD]; i--)
        if (writes_gradient(p, &p->step[i], param)) return i;
    return -1;
}

/* After the backward pass began. */
static double seconds_until(const hl_program *p, int step)
{
    double flops = 0, seconds = 0;
    for (int i = p->phase[HL_PHASE_BACKWARD]; i <= step; i++) {
        flops += p->step[i].flops;
        seconds += p->seconds ? p->seconds[i] : 0;
    }
    return p->seconds ? seconds : flops / HL_NOMINAL_RATE;
}

/* Statistics that norms can divide by, so that no time is spent on what is not a number. */
static halo_status plausible_statistics(hl_program *p)
{
    for (int layer = 0; layer < p->net->layers; layer++) {
        if (p->stat[layer] < 0) continue;
        const hl_value *v = &p->value[p->stat[layer]];
        int64_t n = hl_operand_box_elements(&v->operand);
        double *ones;
        HL_TRY(hl_calloc(p->ctx, (size_t)n, sizeof(*ones), "norm statistics", &ones));
        for (int64_t i = 0; i < n; i++) ones[i] = 1;
        halo_status st = p->dev->ops->upload(p->dev, &v->operand, (char *)p->arena + v->offset, HALO_F64, ones);
        free(ones);
        HL_TRY(st);
    }
    return HALO_OK;
}

static halo_status time_backward(hl_program *p, bool first)
{
    for (int i = p->phase[HL_PHASE_BACKWARD]; i < p->phase[HL_PHASE_BACKWARD + 1]; i++) {
        hl_step *s = &p->step[i];
        double start = hl_now();
        if (s->kind != HL_STEP_OP) continue;
        HL_TRY(hl_op_class(p->dev, s->desc.kind, &s->choice)->run(s->plan, &s->args));
        HL_TRY(p->dev->ops->wait(p->dev, NULL));
        p->seconds[i] = first ? hl_now() - start : fmin(p->seconds[i], hl_now() - start);
    }
    return HALO_OK;
}

halo_status hl_program_time_backward(hl_program *p)
{
    HL_BUG_UNLESS(p->opt.training && p->arena);
    if (!p->seconds) HL_TRY(hl_calloc(p->ctx, (size_t)p->steps, sizeof(*p->seconds), "times of steps", &p->seconds));
    HL_TRY(hl_arena_take(p));
    HL_TRY(plausible_statistics(p));
    if (p->dev->ops->enter) p->dev->ops->enter(p->dev);
    halo_status st = time_backward(p, true);
    if (st == HALO_OK) st = time_backward(p, false);
    if (p->dev->ops->leave) p->dev->ops->leave(p->dev);
    return st;
}

int hl_program_gradients(const hl_program *p, hl_gradient *list)
{
    const hl_model *m = p->model;
    int n = 0;
    double latest = 0;
    for (int layer = p->net->layers - 1; layer >= 0; layer--)
        for (int i = 0; i < m->params; i++) {
            if (m->param[i].layer != layer || !m->param[i].trainable) continue;
            latest = fmax(latest, seconds_until(p, last_writer(p, i)));
            if (n > 0) list[n - 1].hi = m->offset[i];
            list[n++] = (hl_gradient){
                .layer = hl_layer_of(p, layer)->name, .lo = m->offset[i], .hi = m->trained, .seconds = latest};
        }
    return n;
}

/* Which gradients there are, and the numbers of the steps that matter for each. */
static halo_status find_arrivals(hl_program *p)
{
    int *list;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->model->params + 1, sizeof(*list), "the order of gradients", &list));
    p->gradients = backward_order(p, list);
    halo_status st = hl_arrivals_prepare(p, list);
    for (int g = 0; g < p->gradients; g++) list[g] = last_writer(p, list[g]);
    free(p->complete);
    p->complete = list;
    return st;
}

halo_status hl_program_reduce(hl_program *p, hl_reducer *reducer)
{
    HL_BUG_UNLESS(p->opt.training && p->arena);
    HL_TRY(find_arrivals(p));
    p->reducer = reducer;
    if (!p->opt.links) return HALO_OK;
    HL_TRY(hl_sums_place(p, reducer));
    return find_arrivals(p);
}
