/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c -- the three passes of a convolution, direct.
 *
 *   y[n,o,p]  = act(b[o] + sum_{i,k} w[o,i,k] x[n,i, p s - pad + k l])            cross-correlation
 *   dx[n,i,q] = act(b[i] + sum_{o,k,p: p s - pad + k l = q} w[o,i,k] dy[n,o,p])   q in dx's box, p in dy's box and margin
 *   dw[o,i,k] = sum_{n,p} dy[n,o,p] x[n,i, p s - pad + k l],  db[o] = sum dy      p in dy's box
 *
 * One sample at a time as dense doubles, padding written out, so that the loops have no conditions
 * (correlate.c has them). dx of stride 1 is itself a correlation, of dy with its padding and the kernel
 * turned round: q = p - pad + k l is p = q + (pad - (K - 1) l) + (K - 1 - k) l.
 */
#include "ref.h"

static int64_t volume(const int64_t e[3]) { return e[0] * e[1] * e[2]; }

/* The region has room for an even number of outputs along w: cells are taken in pairs. */
static hl_ref_shape shape_for(const halo_window *w, int64_t i, int64_t o, const int64_t p[3])
{
    hl_ref_shape s = {.i = i, .o = o, .taps = volume(w->kernel), .w = *w};
    for (int k = 0; k < 3; k++) {
        s.p[k] = p[k];
        s.r_lo[k] = -w->pad_lo[k];
        s.r[k] = (p[k] - 1) * w->stride[k] + w->dilation[k] * (w->kernel[k] - 1) + 1;
    }
    if (p[2] % 2) s.r[2] += w->stride[2];
    return s;
}

static hl_ref_shape shape_of(const halo_window *w, const halo_operand *x, const halo_operand *y)
{
    return shape_for(w, x->ext[HALO_C], y->ext[HALO_C], y->ext + HALO_D);
}

static bool dense(const halo_window *w) { return w->stride[0] == 1 && w->stride[1] == 1 && w->stride[2] == 1; }

/* Backward data of stride 1 as a correlation of dy, which gives dx. */
static hl_ref_shape turned(const halo_window *w, const halo_operand *dx, const halo_operand *dy)
{
    halo_window t = *w;
    for (int k = 0; k < 3; k++) t.pad_lo[k] = (w->kernel[k] - 1) * w->dilation[k] - w->pad_lo[k];
    return shape_for(&t, dy->ext[HALO_C], dx->ext[HALO_C], dx->ext + HALO_D);
}

static bool window_valid(const halo_window *w, const halo_operand *y)
{
    for (int k = 0; k < 3; k++) {
        int64_t reach, span, sum;
        if (w->kernel[k] < 1 || w->stride[k] < 1 || w->dilation[k] < 1) return false;
        if (!hl_mul64(y->ext[HALO_D + k], w->stride[k], &reach) ||
            !hl_mul64(w->kernel[k], w->dilation[k], &span))
            return false;
        if (!hl_add64(reach, span, &sum)) return false;
    }
    return true;
}

static int64_t room3(int64_t channels, const int64_t e[3])
{
    return hl_ref_room(hl_ref_room(channels, e[0], 0), hl_ref_room(e[1], e[2], 0), 0);
}

/* Doubles for sample, region, weights, bias and the table of taps; -1 when the description does not fit. */
static int64_t scratch(const halo_op_desc *d, const halo_operand *x, const halo_operand *y)
{
    if (x->ext[HALO_N] != y->ext[HALO_N] || !window_valid(&d->window, y)) return -1;
    hl_ref_shape s = shape_of(&d->window, x, y);
    int64_t with_margin[3], box[3] = {x->ext[HALO_D], x->ext[HALO_H], x->ext[HALO_W]};
    for (int k = 0; k < 3; k++) with_margin[k] = s.p[k] + y->margin[k][0] + y->margin[k][1];
    int64_t xs = hl_max64(room3(s.i, s.r), room3(s.i, box)), ys = room3(s.o, with_margin);
    if (d->kind == HALO_OP_CONV_BWD_DATA && dense(&d->window)) ys = room3(s.o, turned(&d->window, x, y).r);
    int64_t weights = hl_ref_room(hl_ref_room(hl_ref_room(s.o, s.i, 0), room3(1, d->window.kernel), s.o), 1, s.taps);
    return xs < 0 || ys < 0 || weights < 0 ? -1 : hl_ref_room(1, hl_ref_room(1, xs, ys), weights);
}

/* ------------------------------------------------------------------------------------------------------------ forward */

static void fill_bias(const double *b, int64_t channels, int64_t points, double *y)
{
    for (int64_t o = 0; o < channels; o++)
        for (int64_t p = 0; p < points; p++) *y++ = b[o];
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_WT, HALO_Y) || d->t[HALO_AUX].dtype != HALO_NONE) return 0;
    return hl_ref_offer(scratch(d, &d->t[HALO_X], &d->t[HALO_Y]), out);
}

/* What the convolution in front of pooling windows side by side computes. */
static halo_operand unpooled(const halo_op_desc *d)
{
    halo_operand z = d->t[HALO_Y];
    for (int k = 0; d->kind == HALO_OP_CONV_POOL_FWD && k < 3; k++) {
        z.ext[HALO_D + k] *= d->pool_side[k];
        z.margin[k][0] = z.margin[k][1] = 0;
    }
    return z;
}

static int pooled_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    int64_t side = 1;
    for (int k = 0; k < 3; k++)
        if (d->pool_side[k] < 1 || !hl_mul64(side, d->pool_side[k], &side)) return 0;
    if (!REF_HAVE(d, HALO_X, HALO_WT, HALO_Y) || side > 256 || !hl_ref_like(&d->t[HALO_AUX], &d->t[HALO_Y])) return 0;
    if (d->t[HALO_AUX].dtype != HALO_NONE && (d->t[HALO_AUX].dtype != HALO_U8 || (d->pool == HALO_POOL_AVG && side > 8))) return 0;
    const halo_operand *y = &d->t[HALO_Y];
    if (hl_ref_room(hl_ref_room(y->ext[HALO_C], y->ext[HALO_D], 0), hl_ref_room(y->ext[HALO_H], y->ext[HALO_W], 0), 0) > INT64_MAX / side) return 0;
    halo_operand z = unpooled(d);
    return hl_ref_offer(hl_ref_room(2, hl_ref_sample_size(y), scratch(d, &d->t[HALO_X], &z)), out);
}

/* The window of z that begins at `first`: its pooled value, and what is saved of it. z's rows are e[2] apart. */
static double pool_window(const halo_op_desc *d, const int64_t e[3], const double *first, double *saved)
{
    const int64_t *side = d->pool_side;
    double best = *first, sum = 0;
    int64_t arg = 0, bits = 0, k = 0;
    for (int64_t i = 0; i < side[0]; i++)
        for (int64_t j = 0; j < side[1]; j++)
            for (int64_t w = 0; w < side[2]; w++, k++) {
                double z = first[(i * e[1] + j) * e[2] + w];
                sum += z;
                if (k < 8 && z > 0) bits |= 1 << k;
                if (!(z > best)) continue;
                best = z;
                arg = k;
            }
    bool max = d->pool == HALO_POOL_MAX;
    *saved = (double)(max ? arg : bits);
    return max ? best : sum / (double)k;
}

static void pool_sample(const halo_op_desc *d, const int64_t e[3], const double *z, double *y, double *saved)
{
    const int64_t *p = d->t[HALO_Y].ext;
    for (int64_t c = 0; c < p[HALO_C]; c++)
        for (int64_t i = 0; i < p[HALO_D]; i++)
            for (int64_t j = 0; j < p[HALO_H]; j++)
                for (int64_t k = 0; k < p[HALO_W]; k++) {
                    int64_t at = ((c * e[0] + i * d->pool_side[0]) * e[1] + j * d->pool_side[1]) * e[2] + k * d->pool_side[2];
                    *y++ = pool_window(d, e, z + at, saved++);
                }
}

/* z: a sample of the convolution; pooled: room for the pooled one, and what is saved */
static void put_pooled(const halo_op_desc *d, const hl_ref_shape *s, const hl_ref_view *y, const hl_ref_view *aux, int64_t n, const double *z,
                       double *pooled)
{
    double *saved = pooled + hl_ref_sample_size(y->op);
    pool_sample(d, s->p, z, pooled, saved);
    hl_ref_pack_box(y, n, pooled);
    if (aux->op) hl_ref_pack_box(aux, n, saved);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), y = hl_ref_operand(plan, args, HALO_Y), aux = hl_ref_operand(plan, args, HALO_AUX);
    hl_ref_view wt = hl_ref_operand(plan, args, HALO_WT), bias = hl_ref_operand(plan, args, HALO_B);
    const halo_operand z = unpooled(d);
    hl_ref_shape s = shape_of(&d->window, x.op, &z);
    bool pooled = d->kind == HALO_OP_CONV_POOL_FWD;
    int64_t weights = s.o * s.i * s.taps, points = s.o * volume(s.p);
    int64_t *tap = args->scratch;
    double *w = (double *)args->scratch + s.taps, *b = w + weights, *own = b + s.o;
    double *ys = own + (pooled ? 2 * hl_ref_sample_size(y.op) : 0), *xs = ys + points;
    hl_ref_taps(&s, tap);
    hl_ref_read_flat(&wt, 0, weights, w);
    memset(b, 0, (size_t)s.o * sizeof(*b));
    if (bias.op) hl_ref_read_flat(&bias, 0, s.o, b);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        hl_ref_unpack(&x, n, s.r_lo, s.r, xs);
        fill_bias(b, s.o, points / s.o, ys);
        hl_ref_correlate(&s, tap, w, xs, ys);
        for (int64_t p = 0; p < points; p++) ys[p] = hl_ref_activate(d->act, d->slope, ys[p]);
        if (pooled)
            put_pooled(d, &s, &y, &aux, n, ys, own);
        else
            hl_ref_pack_box(&y, n, ys);
    }
    return HALO_OK;
}

REF_CLASS(hl_ref_conv_fwd, HALO_OP_CONV_FWD, forward_candidates, forward_run);
REF_CLASS(hl_ref_conv_pool_fwd, HALO_OP_CONV_POOL_FWD, pooled_candidates, forward_run);

/* ------------------------------------------------------------------------------------------------------ backward data */

static void tap_index(const halo_window *w, int64_t t, int64_t k[3])
{
    k[2] = t % w->kernel[2];
    k[1] = t / w->kernel[2] % w->kernel[1];
    k[0] = t / w->kernel[2] / w->kernel[1];
}

static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* Outputs p in [lo, hi) whose tap k lands in 0 <= q < extent, q = p stride - pad + k dilation. */
typedef struct span { int64_t lo, hi, shift; } span;

static span tap_span(const halo_window *w, int dim, int64_t k, int64_t extent, int64_t p_lo, int64_t p_hi)
{
    int64_t shift = k * w->dilation[dim] - w->pad_lo[dim];
    return (span){hl_max64(p_lo, -floor_div(shift, w->stride[dim])),
                  hl_min64(p_hi, floor_div(extent - 1 - shift, w->stride[dim]) + 1), shift};
}

/* dx[q] += w dy[p]; dy has extents e and begins at p = p_lo. */
static void data_tap(const halo_window *g, const span r[3], const int64_t p_lo[3], const int64_t e[3],
                     const int64_t q[3], double w, const double *dy, double *dx)
{
    for (int64_t d = r[0].lo; d < r[0].hi; d++)
        for (int64_t h = r[1].lo; h < r[1].hi; h++) {
            const double *from = dy + ((d - p_lo[0]) * e[1] + h - p_lo[1]) * e[2] - p_lo[2];
            int64_t to =
                ((d * g->stride[0] + r[0].shift) * q[1] + h * g->stride[1] + r[1].shift) * q[2] + r[2].shift;
            for (int64_t p = r[2].lo; p < r[2].hi; p++) dx[to + p * g->stride[2]] += w * from[p];
        }
}

static void data_sample(const hl_ref_shape *s, const halo_operand *dyo, const int64_t q[3], const double *w,
                        const double *dy, double *dx)
{
    int64_t p_lo[3], e[3], k[3];
    for (int j = 0; j < 3; j++) {
        p_lo[j] = -dyo->margin[j][0];
        e[j] = dyo->ext[HALO_D + j] + dyo->margin[j][0] + dyo->margin[j][1];
    }
    for (int64_t t = 0; t < s->taps; t++) {
        span r[3];
        tap_index(&s->w, t, k);
        for (int j = 0; j < 3; j++) r[j] = tap_span(&s->w, j, k[j], q[j], p_lo[j], p_lo[j] + e[j]);
        for (int64_t i = 0; i < s->i; i++)
            for (int64_t o = 0; o < s->o; o++)
                data_tap(&s->w, r, p_lo, e, q, w[(o * s->i + i) * s->taps + t], dy + o * volume(e),
                         dx + i * volume(q));
    }
}

static int data_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_DY, HALO_WT, HALO_DX)) return 0;
    if (d->accumulate && (d->t[HALO_B].dtype != HALO_NONE || d->act != HALO_ACT_NONE)) return 0;
    return hl_ref_offer(scratch(d, &d->t[HALO_DX], &d->t[HALO_DY]), out);
}

static void dx_begin(const hl_ref_view *dx, int64_t n, bool accumulate, double *xs)
{
    if (accumulate)
        hl_ref_unpack_box(dx, n, xs);
    else
        memset(xs, 0, (size_t)hl_ref_sample_size(dx->op) * sizeof(*xs));
}

/* turned[i][o][k] = w[o][i][K - 1 - k] */
static void turn_weights(const hl_ref_view *wt, const hl_ref_shape *s, double *w)
{
    for (int64_t i = 0; i < s->o; i++)
        for (int64_t o = 0; o < s->i; o++, w += s->taps) {
            hl_ref_read_flat(wt, (o * s->o + i) * s->taps, s->taps, w);
            for (int64_t a = 0, b = s->taps - 1; a < b; a++, b--) {
                double swap = w[a];
                w[a] = w[b];
                w[b] = swap;
            }
        }
}

/* A transposed convolution's bias and activation; the sample goes where it belongs. */
static void dx_end(const halo_op_desc *d, const hl_ref_view *bias, const hl_ref_view *dx, int64_t n, double *xs)
{
    int64_t channels = dx->op->ext[HALO_C], cells = hl_ref_sample_size(dx->op) / channels;
    double b = 0;
    for (int64_t c = 0; c < channels; c++) {
        if (bias->op) hl_ref_read_flat(bias, c, 1, &b);
        for (int64_t q = c * cells; q < (c + 1) * cells; q++)
            xs[q] = hl_ref_activate(d->act, d->slope, xs[q] + b);
    }
    hl_ref_pack_box(dx, n, xs);
}

static void data_dense(const halo_op_desc *d, const hl_ref_view *dy, const hl_ref_view *wt, const hl_ref_view *bias,
                       const hl_ref_view *dx, void *scratch)
{
    hl_ref_shape s = turned(&d->window, dx->op, dy->op);
    int64_t *tap = scratch;
    double *w = (double *)scratch + s.taps, *xs = w + s.o * s.i * s.taps, *ys = xs + hl_ref_sample_size(dx->op);
    hl_ref_taps(&s, tap);
    turn_weights(wt, &s, w);
    for (int64_t n = 0; n < dx->op->ext[HALO_N]; n++) {
        hl_ref_unpack(dy, n, s.r_lo, s.r, ys);
        dx_begin(dx, n, d->accumulate, xs);
        hl_ref_correlate(&s, tap, w, ys, xs);
        dx_end(d, bias, dx, n, xs);
    }
}

static void data_strided(const halo_op_desc *d, const hl_ref_view *dy, const hl_ref_view *wt, const hl_ref_view *bias,
                         const hl_ref_view *dx, void *scratch)
{
    hl_ref_shape s = shape_of(&d->window, dx->op, dy->op);
    int64_t weights = s.o * s.i * s.taps, p_lo[3], e[3];
    for (int k = 0; k < 3; k++) {
        p_lo[k] = -dy->op->margin[k][0];
        e[k] = s.p[k] + dy->op->margin[k][0] + dy->op->margin[k][1];
    }
    double *w = scratch, *xs = w + weights, *ys = xs + hl_ref_sample_size(dx->op);
    hl_ref_read_flat(wt, 0, weights, w);
    for (int64_t n = 0; n < dx->op->ext[HALO_N]; n++) {
        hl_ref_unpack(dy, n, p_lo, e, ys);
        dx_begin(dx, n, d->accumulate, xs);
        data_sample(&s, dy->op, dx->op->ext + HALO_D, w, ys, xs);
        dx_end(d, bias, dx, n, xs);
    }
}

static halo_status data_run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view dx = hl_ref_operand(plan, args, HALO_DX), dy = hl_ref_operand(plan, args, HALO_DY),
             wt = hl_ref_operand(plan, args, HALO_WT), bias = hl_ref_operand(plan, args, HALO_B);
    if (dense(&plan->d.window))
        data_dense(&plan->d, &dy, &wt, &bias, &dx, args->scratch);
    else
        data_strided(&plan->d, &dy, &wt, &bias, &dx, args->scratch);
    return HALO_OK;
}

REF_CLASS(hl_ref_conv_bwd_data, HALO_OP_CONV_BWD_DATA, data_candidates, data_run);

/* --------------------------------------------------------------------------------------------------- backward weights */

static void add_bias(const double *dy, int64_t channels, int64_t points, double *db)
{
    for (int64_t o = 0; o < channels; o++)
        for (int64_t p = 0; p < points; p++) db[o] += *dy++;
}

static int weights_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_DY, HALO_DW)) return 0;
    return hl_ref_offer(scratch(d, &d->t[HALO_X], &d->t[HALO_DY]), out);
}

static halo_status weights_run(halo_plan *plan, const halo_op_args *args)
{
    const halo_op_desc *d = &plan->d;
    hl_ref_view x = hl_ref_operand(plan, args, HALO_X), dy = hl_ref_operand(plan, args, HALO_DY);
    hl_ref_view wt = hl_ref_operand(plan, args, HALO_DW), bias = hl_ref_operand(plan, args, HALO_DB);
    hl_ref_shape s = shape_of(&d->window, x.op, dy.op);
    int64_t weights = s.o * s.i * s.taps;
    int64_t *tap = args->scratch, points = volume(s.p);
    double *dw = (double *)args->scratch + s.taps, *db = dw + weights, *ys = db + s.o,
           *xs = ys + s.o * points;
    hl_ref_taps(&s, tap);
    memset(dw, 0, (size_t)(weights + s.o) * sizeof(*dw));
    if (d->accumulate) hl_ref_read_flat(&wt, 0, weights, dw);
    if (d->accumulate && bias.op) hl_ref_read_flat(&bias, 0, s.o, db);
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        hl_ref_unpack(&x, n, s.r_lo, s.r, xs);
        hl_ref_unpack_box(&dy, n, ys);
        add_bias(ys, s.o, points, db);
        hl_ref_correlate_weights(&s, tap, xs, ys, dw);
    }
    hl_ref_write_flat(&wt, 0, weights, dw);
    if (bias.op) hl_ref_write_flat(&bias, 0, s.o, db);
    return HALO_OK;
}

REF_CLASS(hl_ref_conv_bwd_weights, HALO_OP_CONV_BWD_WEIGHTS, weights_candidates, weights_run);

/* -------------------------------------------------------------------------------------------------------------- image */

/* This backend's convolutions read the plain master: there is no image to write. */
static int image_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev, (void)d, (void)out;
    return 0;
}

static halo_status image_run(halo_plan *plan, const halo_op_args *args)
{
    (void)plan, (void)args;
    return HALO_ERR_UNSUPPORTED;
}

REF_CLASS(hl_ref_conv_image, HALO_OP_CONV_IMAGE, image_candidates, image_run);
