/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- samples as they are stored become the network's input: geometry for prepare.cu. */
#include "cuda.h"

typedef struct prepare_plan {
    hl_cuda_plan super;
    hl_preparing p;
} prepare_plan;

static bool geometry_of(const halo_op_desc *d, hl_preparing *p)
{
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    int64_t first;
    *p = (hl_preparing){.x_type = x->dtype, .transforms = d->transforms};
    if (!hl_operand_valid(x) || x->layout != HALO_NCDHW || !hl_operand_dense(x, &first) || !hl_cuda_activation(d, HALO_Y) || !hl_cuda_vector(d, HALO_STAT, HALO_F64, false)) return false;
    if (x->ext[HALO_N] != y->ext[HALO_N] || x->ext[HALO_C] != y->ext[HALO_C] || hl_operand_box_elements(x) != hl_operand_box_elements(y)) return false;
    if (d->transforms < 0 || d->transforms > HALO_MAX_TRANSFORMS || !hl_cuda_strides(y, p->stride)) return false;
    for (int t = 0; t < d->transforms; t++) p->transform[t] = d->transform[t];
    memcpy(p->ext, y->ext, sizeof(p->ext));
    hl_cuda_places(y->layout, y->ext, &p->places);
    return true;
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_preparing p;
    (void)dev;
    return geometry_of(d, &p) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    prepare_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(geometry_of(d, &p->p));
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const prepare_plan *p = (const prepare_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_prepare_samples(s->dev->compute, s->d.t[HALO_Y].dtype, &p->p, hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_STAT), hl_cuda_ptr(s, args, HALO_Y)));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_prepare, HALO_OP_PREPARE, candidates, make, run);
