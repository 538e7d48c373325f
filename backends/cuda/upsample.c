/* SPDX-License-Identifier: Apache-2.0 */
/* upsample.c -- twice as many cells along some axes, linear between their middles, and the adjoint: geometry for upsample.cu. */
#include "cuda.h"

#include "tensor/upsample.h"

typedef struct upsample_plan {
    hl_cuda_plan super;
    hl_upsampling u;
} upsample_plan;

static bool geometry_of(const halo_op_desc *d, halo_role x, halo_role y, halo_role over, hl_upsampling *u)
{
    const halo_operand *xo = &d->t[x], *yo = &d->t[y];
    *u = (hl_upsampling){.places = {0}};
    if (!hl_cuda_activation(d, x) || !hl_cuda_activation(d, y) || xo->dtype != yo->dtype || xo->ext[HALO_N] != yo->ext[HALO_N] || xo->ext[HALO_C] != yo->ext[HALO_C]) return false;
    for (int a = 0; a < 3; a++) {
        hl_upsample s;
        if (!hl_upsample_axis(d, a, xo->ext[HALO_D + a], yo->ext[HALO_D + a], &s)) return false;
        u->stride[a] = s.stride;
        u->pad_lo[a] = s.pad_lo;
        u->volume[a][0] = s.lo;
        u->volume[a][1] = s.hi;
        u->lo[a] = -yo->margin[a][0];
        u->hi[a] = yo->ext[HALO_D + a] + yo->margin[a][1];
    }
    hl_cuda_places(d->t[over].layout, d->t[over].ext, &u->places);
    return hl_cuda_view(xo, &u->x) && hl_cuda_view(yo, &u->y);
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_upsampling u;
    (void)dev;
    return geometry_of(d, HALO_X, HALO_Y, HALO_Y, &u) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_upsampling u;
    (void)dev;
    return geometry_of(d, HALO_DX, HALO_DY, HALO_DX, &u) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    const bool forward = d->kind == HALO_OP_UPSAMPLE_FWD;
    upsample_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(geometry_of(d, forward ? HALO_X : HALO_DX, forward ? HALO_Y : HALO_DY, forward ? HALO_Y : HALO_DX, &p->u));
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    const upsample_plan *p = (const upsample_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_upsample_forward(s->dev->compute, s->d.t[HALO_X].dtype, &p->u, hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_Y)));
    return HALO_OK;
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    const upsample_plan *p = (const upsample_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_upsample_backward(s->dev->compute, s->d.t[HALO_DX].dtype, &p->u, hl_cuda_ptr(s, args, HALO_DY), hl_cuda_ptr(s, args, HALO_DX), s->d.accumulate));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_upsample_fwd, HALO_OP_UPSAMPLE_FWD, forward_candidates, make, forward_run);
HL_CUDA_CLASS(hl_cuda_upsample_bwd, HALO_OP_UPSAMPLE_BWD, backward_candidates, make, backward_run);
