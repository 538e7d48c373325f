/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c -- moving values: box to box and flat conversion, any types and layouts; and between volumes and vectors of features, which is the same with
 * the strides that a volume's dimensions have in the vector.
 */
#include "cuda.h"

/* Strides of the box, relative to its first cell, with the channel block of blocked layouts. */
static void strides_of(const halo_operand *op, int64_t s[HALO_DIMS], int64_t *block)
{
    hl_strides t = hl_operand_strides(op);
    *block = hl_layout_block(op->layout);
    memcpy(s, t.s, sizeof(t.s));
    if (op->layout == HALO_NDHWC) s[HALO_C] = 1;
}

static void join_cells(hl_copying *c)
{
    const int64_t *stride[] = {c->to, c->from};
    c->blocked = c->from_block > 1 || c->to_block > 1;
    if (!c->blocked) hl_cuda_cells(c->ext, stride, 2, &c->cells);
}

hl_copying hl_cuda_copying(const halo_operand *from, const halo_operand *to)
{
    hl_copying c = {.from_type = from->dtype, .to_type = to->dtype};
    memcpy(c.ext, to->ext, sizeof(c.ext));
    strides_of(from, c.from, &c.from_block);
    strides_of(to, c.to, &c.to_block);
    join_cells(&c);
    return c;
}

typedef struct copy_plan {
    hl_cuda_plan super;
    hl_copying c;
    halo_role from, to;
} copy_plan;

static halo_status make(halo_device *dev, const halo_op_desc *d, halo_role from, halo_role to, copy_plan **out)
{
    copy_plan *p;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    p->from = from;
    p->to = to;
    *out = p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const copy_plan *p = (const copy_plan *)plan;
    HL_CUDA(p->super.dev, hl_cuda_convert(p->super.dev->compute, &p->c, hl_cuda_ptr(&p->super, args, p->from), hl_cuda_ptr(&p->super, args, p->to)));
    return HALO_OK;
}

static int copy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    return hl_operand_valid(x) && hl_operand_valid(y) && hl_same_extents(x, y) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status copy_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    copy_plan *p;
    (void)choice;
    HL_TRY(make(dev, d, HALO_X, HALO_Y, &p));
    p->c = hl_cuda_copying(&d->t[HALO_X], &d->t[HALO_Y]);
    p->c.accumulate = d->accumulate && d->kind == HALO_OP_COPY;
    *out = (halo_plan *)p;
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_copy, HALO_OP_COPY, copy_candidates, copy_make, run);
HL_CUDA_CLASS(hl_cuda_cast, HALO_OP_CAST, copy_candidates, copy_make, run);

/* ------------------------------------------------------------------------------------------------------------- features */

bool hl_cuda_features(const halo_operand *op, int64_t *count, int64_t *step, int64_t *row)
{
    int64_t s[HALO_DIMS], run = 0;
    *count = 1;
    if (!hl_cuda_strides(op, s)) return false;
    *step = 1;
    *row = s[HALO_N];
    for (int k = HALO_DIMS - 1; k > HALO_N; k--) {
        if (op->ext[k] == 1) continue;
        if (*count == 1)
            *step = s[k];
        else if (s[k] != run)
            return false;
        *count *= op->ext[k];
        run = s[k] * op->ext[k];
    }
    return true;
}

/* The volume's dimensions in the vector. */
static bool vector_strides(const halo_operand *volume, const halo_operand *vector, bool last, int64_t s[HALO_DIMS])
{
    static const int plain[] = {HALO_W, HALO_H, HALO_D, HALO_C}, channels_last[] = {HALO_C, HALO_W, HALO_H, HALO_D};
    int64_t count, step;
    if (!hl_cuda_features(vector, &count, &step, &s[HALO_N])) return false;
    for (int i = 0; i < 4; i++) {
        int k = last ? channels_last[i] : plain[i];
        s[k] = step;
        step *= volume->ext[k];
    }
    return true;
}

static int features_candidates(const halo_op_desc *d, halo_role volume, halo_role vector, halo_candidate *out)
{
    const halo_operand *x = &d->t[volume], *y = &d->t[vector];
    int64_t s[HALO_DIMS];
    if (!hl_operand_valid(x) || !hl_operand_valid(y) || x->ext[HALO_N] != y->ext[HALO_N]) return 0;
    if (hl_operand_box_elements(x) != hl_operand_box_elements(y)) return 0;
    return vector_strides(x, y, d->channels_last, s) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static int flatten_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return features_candidates(d, HALO_X, HALO_Y, out);
}

static halo_status flatten_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    copy_plan *p;
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    (void)choice;
    HL_TRY(make(dev, d, HALO_X, HALO_Y, &p));
    p->c = (hl_copying){.from_type = x->dtype, .to_type = y->dtype, .to_block = 1};
    memcpy(p->c.ext, x->ext, sizeof(p->c.ext));
    strides_of(x, p->c.from, &p->c.from_block);
    vector_strides(x, y, d->channels_last, p->c.to);
    join_cells(&p->c);
    *out = (halo_plan *)p;
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_flatten, HALO_OP_FLATTEN, flatten_candidates, flatten_make, run);

static int unflatten_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return features_candidates(d, HALO_DX, HALO_DY, out);
}

static halo_status unflatten_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    copy_plan *p;
    const halo_operand *dx = &d->t[HALO_DX], *dy = &d->t[HALO_DY];
    (void)choice;
    HL_TRY(make(dev, d, HALO_DY, HALO_DX, &p));
    p->c = (hl_copying){.from_type = dy->dtype, .to_type = dx->dtype, .from_block = 1, .accumulate = d->accumulate};
    memcpy(p->c.ext, dx->ext, sizeof(p->c.ext));
    vector_strides(dx, dy, d->channels_last, p->c.from);
    strides_of(dx, p->c.to, &p->c.to_block);
    join_cells(&p->c);
    *out = (halo_plan *)p;
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_unflatten, HALO_OP_UNFLATTEN, unflatten_candidates, unflatten_make, run);
