/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsample.c -- twice as many cells along some axes, linear between the middles of cells (align_corners = false of the frameworks), and its adjoint.
 *
 * It is a transposed convolution of each channel by itself, kernel [1 3 3 1]/4 of stride 2 along every such axis (hl_upsample in tensor/upsample.h), but for the volume's ends, where the last
 * cell goes on: every q takes two cells of x, of which one that lies outside is the one at the end. Backward each dy[q] goes to the same two.
 */
#include "ref.h"

#include "tensor/upsample.h"

/* One axis at work: the box of x in the volume, and the cells of y that are looked at. */
static int axes_of(const halo_op_desc *d, const halo_operand *x, const halo_operand *y, hl_upsample axis[3])
{
    for (int a = 0; a < 3; a++)
        if (!hl_upsample_axis(d, a, x->ext[HALO_D + a], y->ext[HALO_D + a], &axis[a])) return 0;
    return x->ext[HALO_N] == y->ext[HALO_N] && x->ext[HALO_C] == y->ext[HALO_C];
}

static int fwd_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    hl_upsample axis[3];
    if (!REF_HAVE(d, HALO_X, HALO_Y) || !axes_of(d, &d->t[HALO_X], &d->t[HALO_Y], axis)) return 0;
    return hl_ref_offer(0, out);
}

static int bwd_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    hl_upsample axis[3];
    if (!REF_HAVE(d, HALO_DX, HALO_DY) || !axes_of(d, &d->t[HALO_DX], &d->t[HALO_DY], axis)) return 0;
    return hl_ref_offer(hl_ref_sample_size(&d->t[HALO_DX]), out);
}

/* The eight cells of x that y's cell q takes: where they are, and how much of each. Those outside of x's box and margin are left out; returns how many there are. */
static int taps_of(const hl_upsample axis[3], const int64_t q[3], int64_t cell[8][3], double weight[8])
{
    hl_upsample_taps along[3];
    int n = 0;
    for (int a = 0; a < 3; a++) along[a] = hl_upsample_at(&axis[a], q[a]);
    for (int k = 0; k < 8; k++) {
        const int bit[3] = {k >> 2 & 1, k >> 1 & 1, k & 1};
        weight[n] = 1;
        for (int a = 0; a < 3; a++) {
            cell[n][a] = along[a].cell[bit[a]];
            weight[n] *= (double)along[a].weight[bit[a]];
        }
        n += weight[n] > 0;
    }
    return n;
}

static halo_status fwd_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    const int64_t *e = y.op->ext;
    hl_upsample axis[3];
    HL_BUG_UNLESS(axes_of(d, x.op, y.op, axis));
    for (int64_t i = 0; i < e[0] * e[1] * e[2] * e[3] * e[4]; i++) {
        const int64_t q[3] = {i / e[4] / e[3] % e[2], i / e[4] % e[3], i % e[4]}, c = i / e[4] / e[3] / e[2] % e[1], n = i / e[4] / e[3] / e[2] / e[1];
        int64_t cell[8][3];
        double weight[8], sum = 0;
        int taps = taps_of(axis, q, cell, weight);
        for (int k = 0; k < taps; k++) sum += weight[k] * hl_ref_get(&x, n, c, cell[k][0], cell[k][1], cell[k][2]);
        hl_ref_set(&y, n, c, q[0], q[1], q[2], sum);
    }
    return HALO_OK;
}

/* One sample's gradient, from the cells of dy in its box and margin. */
static void collect(const hl_ref_view *dy, const hl_upsample axis[3], const int64_t ext[HALO_DIMS], int64_t n, double *dx)
{
    int64_t lo[3], e[3];
    for (int a = 0; a < 3; a++) {
        lo[a] = -dy->op->margin[a][0];
        e[a] = dy->op->ext[HALO_D + a] + dy->op->margin[a][0] + dy->op->margin[a][1];
    }
    for (int64_t i = 0; i < ext[HALO_C] * e[0] * e[1] * e[2]; i++) {
        const int64_t q[3] = {lo[0] + i / e[2] / e[1] % e[0], lo[1] + i / e[2] % e[1], lo[2] + i % e[2]}, c = i / e[2] / e[1] / e[0];
        int64_t cell[8][3];
        double weight[8];
        int taps = hl_upsample_inside(&axis[0], q[0]) && hl_upsample_inside(&axis[1], q[1]) && hl_upsample_inside(&axis[2], q[2]) ? taps_of(axis, q, cell, weight) : 0;
        for (int k = 0; k < taps; k++) {
            const int64_t *p = cell[k];
            if (p[0] < 0 || p[1] < 0 || p[2] < 0 || p[0] >= ext[2] || p[1] >= ext[3] || p[2] >= ext[4]) continue;
            dx[((c * ext[2] + p[0]) * ext[3] + p[1]) * ext[4] + p[2]] += weight[k] * hl_ref_get(dy, n, c, q[0], q[1], q[2]);
        }
    }
}

static halo_status bwd_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX), dy = hl_ref_operand(plan, args, HALO_DY);
    double *sum = args->scratch;
    hl_upsample axis[3];
    HL_BUG_UNLESS(axes_of(d, dx.op, dy.op, axis));
    for (int64_t n = 0; n < dx.op->ext[HALO_N]; n++) {
        if (d->accumulate) hl_ref_unpack_box(&dx, n, sum);
        else memset(sum, 0, (size_t)hl_ref_sample_size(dx.op) * sizeof(*sum));
        collect(&dy, axis, dx.op->ext, n, sum);
        hl_ref_pack_box(&dx, n, sum);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_upsample_fwd, HALO_OP_UPSAMPLE_FWD, fwd_candidates, fwd_run);
REF_CLASS(hl_ref_upsample_bwd, HALO_OP_UPSAMPLE_BWD, bwd_candidates, bwd_run);
