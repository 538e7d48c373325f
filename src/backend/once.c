/* SPDX-License-Identifier: Apache-2.0 */
/* once.c -- asking for candidates, and running one operation for its own sake: plan, scratch, weights' image, run, wait, destroy. */
#include "backend/widen.h"

int hl_op_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate out[HALO_MAX_CANDIDATES])
{
    const halo_op_class *class = dev->classes[desc->kind];
    int n = class ? class->candidates(dev, desc, out) : 0;
    return n > 0 ? n : hl_widened.candidates(dev, desc, out);
}

const halo_op_class *hl_op_class(const halo_device *dev, halo_op_kind kind, const halo_candidate *choice)
{
    return choice->widened ? &hl_widened : dev->classes[kind];
}

static halo_status choose(halo_device *dev, const halo_op_desc *desc, const char *impl, halo_candidate *choice)
{
    halo_candidate all[HALO_MAX_CANDIDATES];
    int n = hl_op_candidates(dev, desc, all);
    for (int i = 0; i < n; i++)
        if (!impl || strcmp(all[i].impl, impl) == 0) {
            *choice = all[i];
            return HALO_OK;
        }
    return hl_fail(dev->ctx, HALO_ERR_UNSUPPORTED, "no %s for this %s", impl ? impl : "implementation",
                   hl_op_kind_name(desc->kind));
}

static halo_status plan_and_run(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                                const halo_op_args *args)
{
    const halo_op_class *class = hl_op_class(dev, desc->kind, choice);
    halo_plan *plan = NULL;
    HL_TRY(class->plan(dev, desc, choice, &plan));
    halo_status st = class->run(plan, args);
    if (st == HALO_OK) st = dev->ops->wait(dev, NULL);
    class->destroy(plan);
    return st;
}

/* Writes the image that `choice` wants of the master at `master`; the caller releases *image. */
static halo_status make_image(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, void *master,
                              void **image)
{
    halo_op_desc d = {.kind = HALO_OP_CONV_IMAGE, .window = desc->window, .image = choice->image};
    d.t[HALO_X] = desc->t[HALO_WT];
    d.t[HALO_Y] = hl_operand_flat(HALO_U8, (int64_t)choice->image_bytes);
    void *p = NULL, *ptr[HALO_ROLES] = {[HALO_X] = master};
    HL_TRY(dev->ops->alloc(dev, choice->image_bytes, &p));
    ptr[HALO_Y] = p;
    halo_status st = hl_op_run_once(dev, &d, NULL, ptr, NULL);
    if (st == HALO_OK)
        *image = p;
    else
        dev->ops->release(dev, p);
    return st;
}

halo_status hl_op_run_once(halo_device *dev, const halo_op_desc *desc, const char *impl, void *const ptr[HALO_ROLES],
                           const halo_step_record *record)
{
    halo_candidate choice;
    halo_op_args args = {.record = record};
    void *image = NULL;
    halo_status st = HALO_OK;
    HL_TRY(choose(dev, desc, impl, &choice));
    memcpy(args.ptr, ptr, sizeof(args.ptr));
    if (choice.image != 0) {
        HL_TRY(make_image(dev, desc, &choice, ptr[HALO_WT], &image));
        args.ptr[HALO_WT] = image;
    }
    if (choice.scratch > 0) HL_GOTO(st, dev->ops->alloc(dev, choice.scratch, &args.scratch), release_image);
    st = plan_and_run(dev, desc, &choice, &args);
    if (args.scratch) dev->ops->release(dev, args.scratch);
release_image:
    if (image) dev->ops->release(dev, image);
    return st;
}
