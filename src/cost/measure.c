/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c -- how long an op takes: best of up to HL_RUNS runs, fewer when they are slow. The buffers hold
 * small positive numbers (bytes 0x3c: 0.0115 in f32), so that nothing is denormal, infinite or divided by
 * zero; what is used as an index holds zeros.
 */
#include "cost/measure.h"

#include "base/clock.h"

enum { HL_RUNS = 3 };
static const double enough_seconds = 0.2;

static halo_status buffer(halo_device *dev, size_t bytes, int byte, void **ptr)
{
    HL_TRY(dev->ops->alloc(dev, bytes, ptr));
    return dev->ops->fill(dev, *ptr, byte, bytes, NULL);
}

static halo_status buffers(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                           halo_op_args *args)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        size_t bytes;
        if (desc->t[r].dtype == HALO_NONE) continue;
        if (r == HALO_WT && choice->image != 0)
            bytes = choice->image_bytes;
        else
            HL_BUG_UNLESS(hl_operand_bytes(&desc->t[r], &bytes));
        HL_TRY(buffer(dev, bytes, r == HALO_AUX ? 0 : 0x3c, &args->ptr[r]));
    }
    return choice->scratch ? buffer(dev, choice->scratch, 0, &args->scratch) : HALO_OK;
}

static void release(halo_device *dev, halo_op_args *args)
{
    for (int r = 0; r < HALO_ROLES; r++)
        if (args->ptr[r]) dev->ops->release(dev, args->ptr[r]);
    if (args->scratch) dev->ops->release(dev, args->scratch);
}

static halo_status time_runs(halo_device *dev, const halo_op_class *cls, halo_plan *plan,
                             const halo_op_args *args, double *seconds)
{
    double best = INFINITY, spent = 0;
    for (int i = -1; i < HL_RUNS && spent < enough_seconds; i++) {
        double start = hl_now();
        HL_TRY(cls->run(plan, args));
        HL_TRY(dev->ops->wait(dev, NULL));
        double t = hl_now() - start;
        spent += t;
        if (i >= 0 || t > enough_seconds) best = t < best ? t : best;
    }
    *seconds = best;
    return HALO_OK;
}

halo_status hl_measure(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                       double *seconds)
{
    const halo_op_class *cls = hl_op_class(dev, desc->kind, choice);
    const halo_step_record record = {.t = 1, .lr = 1e-3, .grad_scale = 1, .loss_scale = 1, .weight_sum = 1};
    halo_op_args args = {.record = &record};
    halo_plan *plan = NULL;
    halo_status st;
    HL_GOTO(st, buffers(dev, desc, choice, &args), release);
    HL_GOTO(st, cls->plan(dev, desc, choice, &plan), release);
    if (dev->ops->enter) dev->ops->enter(dev);
    st = time_runs(dev, cls, plan, &args, seconds);
    if (dev->ops->leave) dev->ops->leave(dev);
    cls->destroy(plan);
release:
    release(dev, &args);
    return st;
}
