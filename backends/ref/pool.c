/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c -- max and average pooling and their gradients. The window of output p has the cells q = p s - pad + k l; "inside" are those in x's box
 * and margin.
 *
 *   max: y = x[q*], q* the first largest inside, AUX = k*;         dx[q] = sum over p with p s - pad + k*(p) l = q of dy[p]
 *   avg: y = sum_{q inside} x[q] / m;                              dx[q] = sum over p, k with p s - pad + k l = q of dy[p] / m(p)
 *   m = cells of the window with count_pad, else cells inside. Nothing inside: y = 0.
 */
#include "ref.h"

/* The cells of x (or dx) that exist, as a dense region. */
typedef struct region { int64_t lo[3], ext[3]; } region;

static region with_margin(const halo_operand *op)
{
    region r;
    for (int k = 0; k < 3; k++) {
        r.lo[k] = -op->margin[k][0];
        r.ext[k] = op->ext[HALO_D + k] + op->margin[k][0] + op->margin[k][1];
    }
    return r;
}

static int64_t volume(const int64_t e[3]) { return e[0] * e[1] * e[2]; }

/* Index in the region of tap t of output p, or -1 when it is not there. */
static int64_t tap_cell(const halo_window *w, const region *r, const int64_t p[3], int64_t t)
{
    int64_t k[3] = {t / w->kernel[2] / w->kernel[1], t / w->kernel[2] % w->kernel[1], t % w->kernel[2]}, index = 0;
    for (int j = 0; j < 3; j++) {
        int64_t q = p[j] * w->stride[j] - w->pad_lo[j] + k[j] * w->dilation[j] - r->lo[j];
        if (q < 0 || q >= r->ext[j]) return -1;
        index = index * r->ext[j] + q;
    }
    return index;
}

/* What to divide an average by; 0 when the window has no cell inside. */
static double divisor(const halo_op_desc *d, const region *r, const int64_t p[3])
{
    int64_t taps = volume(d->window.kernel), inside = 0;
    for (int64_t t = 0; t < taps; t++) inside += tap_cell(&d->window, r, p, t) >= 0;
    return (double)(inside > 0 && d->count_pad ? taps : inside);
}

static bool fits(const halo_op_desc *d, const halo_operand *x, const halo_operand *y)
{
    for (int k = 0; k < 3; k++)
        if (d->window.kernel[k] < 1 || d->window.stride[k] < 1 || d->window.dilation[k] < 1) return false;
    return x->ext[HALO_N] == y->ext[HALO_N] && x->ext[HALO_C] == y->ext[HALO_C] && ref_like(&d->t[HALO_AUX], y);
}

static int64_t next_point(const region *r, int64_t p[3])
{
    for (int j = 2; j >= 0; j--) {
        if (++p[j] < r->lo[j] + r->ext[j]) return 1;
        p[j] = r->lo[j];
    }
    return 0;
}

static double pool_point(const halo_op_desc *d, const region *r, const int64_t p[3], const double *x, int64_t *arg)
{
    int64_t taps = volume(d->window.kernel);
    double best = 0, sum = 0;
    *arg = -1;
    for (int64_t t = 0; t < taps; t++) {
        int64_t q = tap_cell(&d->window, r, p, t);
        if (q < 0) continue;
        sum += x[q];
        if (*arg >= 0 && !(x[q] > best)) continue;
        best = x[q];
        *arg = t;
    }
    if (*arg < 0) *arg = 0;
    if (d->pool == HALO_POOL_MAX) return best;
    double m = divisor(d, r, p);
    return m > 0 ? sum / m : 0;
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_X, HALO_Y) || !fits(d, &d->t[HALO_X], &d->t[HALO_Y])) return 0;
    region r = with_margin(&d->t[HALO_X]);
    return ref_offer(ref_room(d->t[HALO_X].ext[HALO_C], volume(r.ext), 0), out);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    ref_view x = ref_operand(plan, args, HALO_X), y = ref_operand(plan, args, HALO_Y),
             aux = ref_operand(plan, args, HALO_AUX);
    region r = with_margin(x.op), out = {.ext = {y.op->ext[HALO_D], y.op->ext[HALO_H], y.op->ext[HALO_W]}};
    double *xs = args->scratch;
    for (int64_t n = 0; n < x.op->ext[HALO_N]; n++) {
        ref_unpack(&x, n, r.lo, r.ext, xs);
        for (int64_t c = 0; c < x.op->ext[HALO_C]; c++) {
            int64_t p[3] = {0, 0, 0}, arg;
            do {
                ref_set(&y, n, c, p[0], p[1], p[2], pool_point(&plan->d, &r, p, xs + c * volume(r.ext), &arg));
                if (aux.op) ref_set(&aux, n, c, p[0], p[1], p[2], (double)arg);
            } while (next_point(&out, p));
        }
    }
    return HALO_OK;
}

REF_CLASS(ref_pool_fwd, HALO_OP_POOL_FWD, forward_candidates, forward_run);

static void scatter_point(const halo_op_desc *d, const region *r, const int64_t p[3], double dy, double arg, double *dx)
{
    int64_t taps = volume(d->window.kernel), q;
    double m = d->pool == HALO_POOL_AVG ? divisor(d, r, p) : 1;
    for (int64_t t = 0; t < taps; t++)
        if ((d->pool == HALO_POOL_AVG || (double)t == arg) && (q = tap_cell(&d->window, r, p, t)) >= 0) dx[q] += dy / m;
}

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!REF_HAVE(d, HALO_DY, HALO_DX) || !fits(d, &d->t[HALO_DX], &d->t[HALO_DY])) return 0;
    if (d->pool == HALO_POOL_MAX && d->t[HALO_AUX].dtype == HALO_NONE) return 0;
    region r = with_margin(&d->t[HALO_DX]);
    return ref_offer(volume(r.ext), out);
}

/* The gradient is collected in box and margin (what an average is divided by depends on both), the box is written. */
static void write_box(const ref_view *dx, int64_t n, int64_t c, const region *r, bool accumulate, const double *from)
{
    for (int64_t d = 0; d < dx->op->ext[HALO_D]; d++)
        for (int64_t h = 0; h < dx->op->ext[HALO_H]; h++)
            for (int64_t w = 0; w < dx->op->ext[HALO_W]; w++) {
                double old = accumulate ? ref_get(dx, n, c, d, h, w) : 0;
                ref_set(dx, n, c, d, h, w,
                        old + from[((d - r->lo[0]) * r->ext[1] + h - r->lo[1]) * r->ext[2] + w - r->lo[2]]);
            }
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    ref_view dx = ref_operand(plan, args, HALO_DX), dy = ref_operand(plan, args, HALO_DY),
             aux = ref_operand(plan, args, HALO_AUX);
    region r = with_margin(dx.op), out = {.ext = {dy.op->ext[HALO_D], dy.op->ext[HALO_H], dy.op->ext[HALO_W]}};
    double *xs = args->scratch;
    for (int64_t n = 0; n < dx.op->ext[HALO_N]; n++)
        for (int64_t c = 0; c < dx.op->ext[HALO_C]; c++) {
            int64_t p[3] = {0, 0, 0};
            memset(xs, 0, (size_t)volume(r.ext) * sizeof(*xs));
            do {
                double arg = plan->d.pool == HALO_POOL_MAX ? ref_get(&aux, n, c, p[0], p[1], p[2]) : 0;
                scatter_point(&plan->d, &r, p, ref_get(&dy, n, c, p[0], p[1], p[2]), arg, xs);
            } while (next_point(&out, p));
            write_box(&dx, n, c, &r, plan->d.accumulate, xs);
        }
    return HALO_OK;
}

REF_CLASS(ref_pool_bwd, HALO_OP_POOL_BWD, backward_candidates, backward_run);
