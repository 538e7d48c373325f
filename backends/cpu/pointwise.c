/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c -- activation forward and backward, and addition, on any boxes of one layout: every part walks its share of the runs and calls the
 * kernel on each. One pass over memory, which is what bounds these operations.
 *
 *   y = act(x)      dx = dy act'(y), or +=      y = x + x2
 */
#include "classes.h"
#include "kern/kern.h"
#include "runs.h"

typedef struct pointwise_plan {
    hl_cpu_plan super;
    hl_run_sets runs;
    int64_t parts;
} pointwise_plan;

typedef struct pointwise_run {
    const pointwise_plan *p;
    const float *a, *b; /* inputs; b where there are two */
    float *out;
} pointwise_run;

/* Operands in the order of the kernel's arguments. */
static int roles_of(halo_op_kind kind, halo_role out[3])
{
    static const halo_role act_fwd[] = {HALO_X, HALO_Y}, act_bwd[] = {HALO_Y, HALO_DY, HALO_DX}, add[] = {HALO_X, HALO_X2, HALO_Y};
    int n = kind == HALO_OP_ACT_FWD ? 2 : 3;
    memcpy(out, kind == HALO_OP_ACT_FWD ? act_fwd : kind == HALO_OP_ACT_BWD ? act_bwd : add, (size_t)n * sizeof(*out));
    return n;
}

static hl_run_sets runs_of(const halo_op_desc *d)
{
    const halo_operand *ops[3];
    halo_role role[3];
    int n = roles_of(d->kind, role);
    for (int k = 0; k < n; k++) {
        if (!hl_has_f32(d, role[k])) return (hl_run_sets){0};
        ops[k] = &d->t[role[k]];
    }
    return hl_runs_make(ops, n, !(d->kind == HALO_OP_ACT_FWD && d->act == HALO_ACT_SIGMOID));
}

static int pointwise_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (runs_of(d).sets == 0) return 0;
    halo_role role[3];
    roles_of(d->kind, role);
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[role[0]]), out);
}

static halo_status pointwise_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    pointwise_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    p->runs = runs_of(d);
    p->parts = hl_parts(p->super.dev, hl_runs_elements(&p->runs.set[0]));
    *out = (halo_plan *)p;
    return HALO_OK;
}

static void one_run(const pointwise_run *r, const int64_t at[], int64_t n)
{
    const halo_op_desc *d = &r->p->super.d;
    const hl_kern *kern = r->p->super.dev->kern;
    if (d->kind == HALO_OP_ACT_FWD)
        kern->act_fwd(d->act, (float)d->slope, r->a + at[0], r->out + at[1], n);
    else if (d->kind == HALO_OP_ACT_BWD)
        kern->act_bwd(d->act, (float)d->slope, r->a + at[0], r->b + at[1], r->out + at[2], d->accumulate, n);
    else
        kern->add(r->a + at[0], r->b + at[1], r->out + at[2], n);
}

static void pointwise_part(void *arg, int64_t i)
{
    const pointwise_run *r = arg;
    for (int s = 0; s < r->p->runs.sets; s++) {
        const hl_runs *runs = &r->p->runs.set[s];
        hl_walk w = hl_walk_begin(runs, hl_runs_part(runs, hl_runs_unit(runs), r->p->parts, i));
        int64_t at[HL_RUN_OPERANDS], n;
        while ((n = hl_walk_next(&w, INT64_MAX, at)) > 0) one_run(r, at, n);
    }
}

static halo_status pointwise_do(halo_plan *plan, const halo_op_args *args)
{
    pointwise_plan *p = (pointwise_plan *)plan;
    halo_role role[3];
    int n = roles_of(p->super.d.kind, role);
    pointwise_run r = {.p = p, .a = args->ptr[role[0]], .b = n == 3 ? args->ptr[role[1]] : NULL, .out = args->ptr[role[n - 1]]};
    hl_parallel(p->super.dev, p->parts, pointwise_part, &r);
    return HALO_OK;
}

#define POINTWISE(name, op)                                                                                  \
    const halo_op_class name = {.kind = op,                                                                  \
                                .candidates = pointwise_candidates,                                          \
                                .plan = pointwise_make,                                                      \
                                .run = pointwise_do,                                                         \
                                .destroy = hl_cpu_plan_free}

POINTWISE(hl_cpu_act_fwd, HALO_OP_ACT_FWD);
POINTWISE(hl_cpu_act_bwd, HALO_OP_ACT_BWD);
POINTWISE(hl_cpu_add, HALO_OP_ADD);
