/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margin.c -- the margin of an operand, written by itself: forward over the six slabs that make up the margin (d sides whole; h sides for the box's d; w
 * sides for its d and h), reverse in two passes over everything (margin.cu).
 */
#include "cuda.h"

enum { SLABS = 6 };

typedef struct margin_plan {
    hl_cuda_plan super;
    hl_margins part[SLABS];
    int parts;
} margin_plan;

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return hl_cuda_activation(d, HALO_Y) ? hl_cuda_offer("cuda", 0, out) : 0;
}

/* The cells from lo to hi. */
static void add_part(margin_plan *p, const int64_t lo[3], const int64_t hi[3])
{
    const halo_op_desc *d = &p->super.d;
    const halo_operand *y = &d->t[HALO_Y];
    hl_margins *m = &p->part[p->parts];
    int64_t ext[HALO_DIMS] = {y->ext[HALO_N], y->ext[HALO_C]};
    for (int k = 0; k < 3; k++) {
        if (hi[k] <= lo[k]) return;
        ext[HALO_D + k] = hi[k] - lo[k];
        m->lo[k] = lo[k];
        m->ext[k] = y->ext[HALO_D + k];
        for (int side = 0; side < 2; side++) {
            m->margin[k][side] = y->margin[k][side];
            m->mode[k][side] = (int)d->margin_mode[k][side];
        }
    }
    hl_cuda_places(y->layout, ext, &m->places);
    HL_BUG_UNLESS(hl_cuda_strides(y, m->stride));
    p->parts++;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    margin_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    const halo_operand *y = &p->super.d.t[HALO_Y];
    int64_t lo[3], hi[3];
    for (int k = 0; k < 3; k++) lo[k] = -y->margin[k][0], hi[k] = y->ext[HALO_D + k] + y->margin[k][1];
    if (d->reverse) add_part(p, lo, hi);
    for (int k = 0; !d->reverse && k < 3; k++) {
        int64_t end = hi[k], ext = y->ext[HALO_D + k];
        hi[k] = 0;
        add_part(p, lo, hi);
        lo[k] = ext, hi[k] = end;
        add_part(p, lo, hi);
        lo[k] = 0, hi[k] = ext; /* the next sides are of what lies between */
    }
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const margin_plan *p = (const margin_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    halo_dtype type = s->d.t[HALO_Y].dtype;
    void *y = hl_cuda_ptr(s, args, HALO_Y);
    if (s->d.reverse) {
        HL_CUDA(s->dev, hl_cuda_margin_gather(s->dev->compute, type, &p->part[0], y));
        HL_CUDA(s->dev, hl_cuda_margin_clear(s->dev->compute, type, &p->part[0], y));
        return HALO_OK;
    }
    for (int i = 0; i < p->parts; i++) HL_CUDA(s->dev, hl_cuda_margin_fill(s->dev->compute, type, &p->part[i], y));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_margin, HALO_OP_MARGIN, candidates, make, run);
