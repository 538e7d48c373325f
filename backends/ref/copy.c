/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c -- moving values: box to box (any types and layouts), flat conversion, and between volumes and feature vectors
 * (flatten: y[n,f] = x[n,c,d,h,w], f counting (c,d,h,w) or (d,h,w,c) in C order).
 */
#include "ref.h"

static int copy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_Y) && hl_same_extents(&d->t[HALO_X], &d->t[HALO_Y]) ? hl_ref_offer(0, out) : 0;
}

static halo_status copy_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    double a[REF_ROW], old[REF_ROW];
    for (hl_ref_row r = hl_ref_rows(y.op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(&x, &r, a);
        if (plan->d.accumulate) {
            hl_ref_read(&y, &r, old);
            for (int64_t i = 0; i < r.count; i++) a[i] += old[i];
        }
        hl_ref_write(&y, &r, a);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_copy, HALO_OP_COPY, copy_candidates, copy_run);
REF_CLASS(hl_ref_cast, HALO_OP_CAST, copy_candidates, copy_run);

/* Feature of cell number i, counted (c,d,h,w), of a sample. */
static int64_t feature(const halo_op_desc *d, const halo_operand *x, int64_t i)
{
    int64_t points = hl_ref_sample_size(x) / x->ext[HALO_C];
    return d->channels_last ? i % points * x->ext[HALO_C] + i / points : i;
}

static int flatten_offer(const halo_operand *x, const halo_operand *y, halo_candidate *out)
{
    int64_t size = hl_ref_sample_size(x);
    if (x->ext[HALO_N] != y->ext[HALO_N] || size != hl_ref_sample_size(y)) return 0;
    return hl_ref_offer(hl_ref_room(size, 2, 0), out);
}

static int flatten_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_Y) ? flatten_offer(&d->t[HALO_X], &d->t[HALO_Y], out) : 0;
}

static halo_status flatten_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    int64_t size = hl_ref_sample_size(x.op);
    double *a = args->scratch, *b = a + size;
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        hl_ref_unpack_box(&x, n, a);
        for (int64_t i = 0; i < size; i++) b[feature(&plan->d, x.op, i)] = a[i];
        hl_ref_pack_box(&y, n, b);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_flatten, HALO_OP_FLATTEN, flatten_candidates, flatten_run);

static int unflatten_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_DY, HALO_DX) ? flatten_offer(&d->t[HALO_DX], &d->t[HALO_DY], out) : 0;
}

static halo_status unflatten_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dy = hl_ref_operand(plan, args, HALO_DY), dx = hl_ref_operand(plan, args, HALO_DX);
    int64_t size = hl_ref_sample_size(dx.op);
    double *a = args->scratch, *b = a + size;
    for (int64_t n = 0; n < dx.op->ext[HALO_N]; n++) {
        hl_ref_unpack_box(&dy, n, b);
        if (plan->d.accumulate)
            hl_ref_unpack_box(&dx, n, a);
        else
            memset(a, 0, (size_t)size * sizeof(*a));
        for (int64_t i = 0; i < size; i++) a[i] += b[feature(&plan->d, dx.op, i)];
        hl_ref_pack_box(&dx, n, a);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_unflatten, HALO_OP_UNFLATTEN, unflatten_candidates, unflatten_run);
