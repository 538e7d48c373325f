/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c -- dense layers. A sample's features are the cells of its box in logical order; i of them in, o out, w (o, i) plain.
 *
 *   y[n,o] = act(b[o] + sum_i w[o,i] x[n,i])     dx[n,i] = sum_o w[o,i] dy[n,o]     dw[o,i] = sum_n dy[n,o] x[n,i], db[o] = sum_n dy[n,o]
 *
 * Weights are read a row at a time: a layer of millions of weights needs no copy of them.
 */
#include "ref.h"

static int offer(const halo_operand *in, const halo_operand *out_op, halo_candidate *out)
{
    if (in->ext[HALO_N] != out_op->ext[HALO_N]) return 0;
    return hl_ref_offer(hl_ref_room(1, hl_ref_room(2, hl_ref_sample_size(in), 0), hl_ref_room(2, hl_ref_sample_size(out_op), 0)), out);
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_X, HALO_WT, HALO_Y) ? offer(&d->t[HALO_X], &d->t[HALO_Y], out) : 0;
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y);
    hl_ref_view wt = hl_ref_operand(plan, args, HALO_WT), bias = hl_ref_operand(plan, args, HALO_B);
    int64_t in = hl_ref_sample_size(x.op), out = hl_ref_sample_size(y.op);
    double *xs = args->scratch, *w = xs + in, *ys = w + in;
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        hl_ref_unpack_box(&x, n, xs);
        for (int64_t o = 0; o < out; o++) {
            double sum = 0;
            if (bias.op) hl_ref_read_flat(&bias, o, 1, &sum);
            hl_ref_read_flat(&wt, o * in, in, w);
            for (int64_t i = 0; i < in; i++) sum += w[i] * xs[i];
            ys[o] = hl_ref_activate(plan->d.act, plan->d.slope, sum);
        }
        hl_ref_pack_box(&y, n, ys);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_linear_fwd, HALO_OP_LINEAR_FWD, forward_candidates, forward_run);

static int data_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_DY, HALO_WT, HALO_DX) ? offer(&d->t[HALO_DX], &d->t[HALO_DY], out) : 0;
}

static halo_status data_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX), dy = hl_ref_operand(plan, args, HALO_DY),
             wt = hl_ref_operand(plan, args, HALO_WT);
    int64_t in = hl_ref_sample_size(dx.op), out = hl_ref_sample_size(dy.op);
    double *xs = args->scratch, *w = xs + in, *ys = w + in;
    for (int64_t n = 0; n < dx.op->ext[HALO_N]; n++) {
        hl_ref_unpack_box(&dy, n, ys);
        if (plan->d.accumulate)
            hl_ref_unpack_box(&dx, n, xs);
        else
            memset(xs, 0, (size_t)in * sizeof(*xs));
        for (int64_t o = 0; o < out; o++) {
            hl_ref_read_flat(&wt, o * in, in, w);
            for (int64_t i = 0; i < in; i++) xs[i] += w[i] * ys[o];
        }
        hl_ref_pack_box(&dx, n, xs);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_linear_bwd_data, HALO_OP_LINEAR_BWD_DATA, data_candidates, data_run);

/* The whole batch is held, so that each row of dw is summed in double and rounded once. */
static int weights_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_DY, HALO_DW) || d->t[HALO_X].ext[HALO_N] != d->t[HALO_DY].ext[HALO_N]) return 0;
    int64_t in = hl_ref_sample_size(&d->t[HALO_X]), both = hl_ref_room(1, in, hl_ref_sample_size(&d->t[HALO_DY]));
    return hl_ref_offer(hl_ref_room(d->t[HALO_X].ext[HALO_N], both, in), out);
}

static void add_bias(const halo_plan *plan, const hl_ref_view *db, int64_t samples, int64_t out, const double *ys)
{
    for (int64_t o = 0; o < out; o++) {
        double sum = 0;
        if (plan->d.accumulate) hl_ref_read_flat(db, o, 1, &sum);
        for (int64_t n = 0; n < samples; n++) sum += ys[n * out + o];
        hl_ref_write_flat(db, o, 1, &sum);
    }
}

static halo_status weights_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), dy = hl_ref_operand(plan, args, HALO_DY);
    hl_ref_view dw = hl_ref_operand(plan, args, HALO_DW), db = hl_ref_operand(plan, args, HALO_DB);
    int64_t in = hl_ref_sample_size(x.op), out = hl_ref_sample_size(dy.op), samples = x.op->ext[HALO_N];
    double *w = args->scratch, *xs = w + in, *ys = xs + samples * in;
    for (int64_t n = 0; n < samples; n++) {
        hl_ref_unpack_box(&x, n, xs + n * in);
        hl_ref_unpack_box(&dy, n, ys + n * out);
    }
    for (int64_t o = 0; o < out; o++) {
        memset(w, 0, (size_t)in * sizeof(*w));
        if (plan->d.accumulate) hl_ref_read_flat(&dw, o * in, in, w);
        for (int64_t n = 0; n < samples; n++)
            for (int64_t i = 0; i < in; i++) w[i] += ys[n * out + o] * xs[n * in + i];
        hl_ref_write_flat(&dw, o * in, in, w);
    }
    if (db.op) add_bias(plan, &db, samples, out, ys);
    return HALO_OK;
}

REF_CLASS(hl_ref_linear_bwd_weights, HALO_OP_LINEAR_BWD_WEIGHTS, weights_candidates, weights_run);
