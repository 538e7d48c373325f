/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsample.c -- linear upsampling by two and its adjoint. Both are the same thing: every cell of the output is a sum of few cells of the input along each axis,
 *
 *   out[d,h,w] = sum over k of a_w[w,k]  sum over i, j of a_d[d,i] a_h[h,j] in[cell_d[d,i], cell_h[h,j], cell_w[w,k]]
 *
 * two cells each forward, up to four backward. The lists are made with the plan. A row of the output takes at most 16 rows of the input, which are added into one row that stays in cache; then the
 * sum along w. The lanes of a cell (a channel block, or all channels) are contiguous. Rows are dealt to the threads in pieces with room for one such row each.
 */
#include "classes.h"

#include "tensor/upsample.h"

enum { MOST = 4 };

typedef struct taps {
    int n;
    int64_t cell[MOST];
    float weight[MOST];
} taps;

typedef struct upsample_plan {
    hl_cpu_plan super;
    const halo_operand *in, *out;
    halo_role in_role, out_role;
    hl_strides is, os;
    int64_t i0, o0; /* where their boxes begin */
    int64_t lanes, blocks, last_lanes, rows, parts;
    int64_t first, cells; /* of the input's row, those that are taken */
    taps *list[3];        /* [cells of out along d, h, w] */
    float *room;          /* [parts][cells][lanes] */
} upsample_plan;

typedef struct upsample_run {
    const upsample_plan *p;
    const float *in;
    float *out;
} upsample_run;

static bool fits(const halo_op_desc *d, hl_upsample axis[3])
{
    const bool forward = d->kind == HALO_OP_UPSAMPLE_FWD;
    const halo_role role[2] = {forward ? HALO_X : HALO_DX, forward ? HALO_Y : HALO_DY};
    const halo_operand *x = &d->t[role[0]], *y = &d->t[role[1]];
    if (!hl_has_f32(d, role[0]) || !hl_has_f32(d, role[1]) || x->layout != y->layout) return false;
    for (int a = 0; a < 3; a++)
        if (!hl_upsample_axis(d, a, x->ext[HALO_D + a], y->ext[HALO_D + a], &axis[a])) return false;
    return x->ext[HALO_N] == y->ext[HALO_N] && x->ext[HALO_C] == y->ext[HALO_C];
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_upsample axis[3];
    if (!fits(d, axis)) return 0;
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[d->kind == HALO_OP_UPSAMPLE_FWD ? HALO_Y : HALO_DY]), out);
}

static void destroy(halo_plan *plan)
{
    upsample_plan *p = (upsample_plan *)plan;
    if (!p) return;
    for (int a = 0; a < 3; a++) free(p->list[a]);
    free(p->room);
    free(p);
}

/* One more cell of the input; where it is there already, more of it. */
static void add_tap(taps *t, int64_t cell, float weight)
{
    int k = 0;
    while (k < t->n && t->cell[k] != cell) k++;
    if (weight == 0) return;
    HL_BUG_UNLESS(k < MOST);
    t->n = k < t->n ? t->n : k + 1;
    t->cell[k] = cell;
    t->weight[k] += weight;
}

static halo_status make_list(upsample_plan *p, int a, const hl_upsample *axis)
{
    const int64_t out = p->out->ext[HALO_D + a], lo = -p->in->margin[a][0], hi = p->in->ext[HALO_D + a] + p->in->margin[a][1];
    HL_TRY(hl_calloc(p->super.dev->super.ctx, (size_t)out, sizeof(taps), "upsampling", &p->list[a]));
    if (p->in_role == HALO_X) {
        for (int64_t q = 0; q < out; q++) {
            hl_upsample_taps t = hl_upsample_at(axis, q);
            for (int k = 0; k < 2; k++) add_tap(&p->list[a][q], t.cell[k], t.weight[k]);
        }
        return HALO_OK;
    }
    for (int64_t q = lo; q < hi; q++) {
        hl_upsample_taps t = hl_upsample_at(axis, q);
        for (int k = 0; k < 2 && hl_upsample_inside(axis, q); k++)
            if (t.cell[k] >= 0 && t.cell[k] < out) add_tap(&p->list[a][t.cell[k]], q, t.weight[k]);
    }
    return HALO_OK;
}

/* The input's cells that any cell of a row takes. */
static void span_row(upsample_plan *p)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int64_t w = 0; w < p->out->ext[HALO_W]; w++)
        for (int k = 0; k < p->list[2][w].n; k++) {
            lo = hl_min64(lo, p->list[2][w].cell[k]);
            hi = hl_max64(hi, p->list[2][w].cell[k]);
        }
    p->first = hi >= lo ? lo : 0;
    p->cells = hi >= lo ? hi - lo + 1 : 0;
}

static void shape(upsample_plan *p)
{
    p->is = hl_operand_strides(p->in);
    p->os = hl_operand_strides(p->out);
    p->i0 = hl_box_offset(p->in);
    p->o0 = hl_box_offset(p->out);
    p->lanes = p->out->layout == HALO_NDHWC ? p->out->ext[HALO_C] : hl_layout_block(p->out->layout);
    p->blocks = hl_div_up(p->out->ext[HALO_C], p->lanes);
    p->last_lanes = p->out->ext[HALO_C] - (p->blocks - 1) * p->lanes;
    p->rows = p->out->ext[HALO_N] * p->blocks * p->out->ext[HALO_D] * p->out->ext[HALO_H];
    p->parts = hl_min64(p->rows, hl_parts(p->super.dev, hl_max64(hl_operand_box_elements(p->out), hl_operand_box_elements(p->in))));
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    upsample_plan *p;
    hl_upsample axis[3];
    halo_status st;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(fits(d, axis));
    const bool forward = d->kind == HALO_OP_UPSAMPLE_FWD;
    p->in_role = forward ? HALO_X : HALO_DY;
    p->out_role = forward ? HALO_Y : HALO_DX;
    p->in = &p->super.d.t[p->in_role];
    p->out = &p->super.d.t[p->out_role];
    shape(p);
    for (int a = 0; a < 3; a++) HL_GOTO(st, make_list(p, a, &axis[a]), free_plan);
    span_row(p);
    HL_GOTO(st, hl_calloc(dev->ctx, (size_t)(p->parts * hl_max64(p->cells, 1)), (size_t)p->lanes * sizeof(float), "upsampling", &p->room), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    destroy((halo_plan *)p);
    return st;
}

/* sum[cell][lane] = or += a in[cell][lane] for the cells of a row that are taken. */
static void add_row(const upsample_plan *p, const float *in, int64_t lanes, float a, bool first, float *sum)
{
    const int64_t step = p->is.s[HALO_W], together = step == lanes ? p->cells * lanes : lanes;
    for (int64_t w = 0; w * lanes < p->cells * lanes; w += together / lanes) {
        const float *x = in + w * step;
        float *s = sum + w * lanes;
        if (first)
            for (int64_t i = 0; i < together; i++) s[i] = a * x[i];
        else
            for (int64_t i = 0; i < together; i++) s[i] += a * x[i];
    }
}

static void sum_rows(const upsample_run *r, int64_t origin, int64_t lanes, const taps *d, const taps *h, float *sum)
{
    const upsample_plan *p = r->p;
    if (d->n == 0 || h->n == 0) memset(sum, 0, (size_t)(p->cells * lanes) * sizeof(*sum));
    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < h->n; j++)
            add_row(p, r->in + origin + d->cell[i] * p->is.s[HALO_D] + h->cell[j] * p->is.s[HALO_H] + p->first * p->is.s[HALO_W], lanes, d->weight[i] * h->weight[j], i + j == 0, sum);
}

static void spread_row(const upsample_plan *p, const float *sum, int64_t lanes, float *out)
{
    const bool accumulate = p->super.d.accumulate;
    const int64_t step = p->os.s[HALO_W];
    for (int64_t w = 0; w < p->out->ext[HALO_W]; w++) {
        const taps *t = &p->list[2][w];
        const float *cell[MOST] = {sum, sum, sum, sum};
        float a[MOST] = {0}, *y = out + w * step;
        for (int k = 0; k < t->n; k++) {
            cell[k] = sum + (t->cell[k] - p->first) * lanes;
            a[k] = t->weight[k];
        }
        if (t->n <= 2 && !accumulate)
            for (int64_t l = 0; l < lanes; l++) y[l] = a[0] * cell[0][l] + a[1] * cell[1][l];
        else
            for (int64_t l = 0; l < lanes; l++) y[l] = (accumulate ? y[l] : 0) + (a[0] * cell[0][l] + a[1] * cell[1][l]) + (a[2] * cell[2][l] + a[3] * cell[3][l]);
    }
}

static void one_row(const upsample_run *r, int64_t row, float *sum)
{
    const upsample_plan *p = r->p;
    const int64_t eh = p->out->ext[HALO_H], ed = p->out->ext[HALO_D], outer = row / eh / ed, d = row / eh % ed, h = row % eh;
    const int64_t n = outer / p->blocks, block = outer % p->blocks, lanes = block == p->blocks - 1 ? p->last_lanes : p->lanes;
    const int64_t from = p->i0 + n * p->is.s[HALO_N] + block * p->is.s[HALO_C], to = p->o0 + n * p->os.s[HALO_N] + block * p->os.s[HALO_C];
    sum_rows(r, from, lanes, &p->list[0][d], &p->list[1][h], sum);
    spread_row(p, sum, lanes, r->out + to + d * p->os.s[HALO_D] + h * p->os.s[HALO_H]);
}

static void piece(void *arg, int64_t i)
{
    const upsample_run *r = arg;
    const upsample_plan *p = r->p;
    hl_range rows = hl_block_range(p->rows, p->parts, i);
    float *sum = p->room + i * hl_max64(p->cells, 1) * p->lanes;
    for (int64_t row = rows.lo; row < rows.hi; row++) one_row(r, row, sum);
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const upsample_plan *p = (const upsample_plan *)plan;
    upsample_run r = {.p = p, .in = args->ptr[p->in_role], .out = args->ptr[p->out_role]};
    hl_parallel(p->super.dev, p->parts, piece, &r);
    return HALO_OK;
}

const halo_op_class hl_cpu_upsample_fwd = {.kind = HALO_OP_UPSAMPLE_FWD, .candidates = candidates, .plan = make, .run = run, .destroy = destroy};
const halo_op_class hl_cpu_upsample_bwd = {.kind = HALO_OP_UPSAMPLE_BWD, .candidates = candidates, .plan = make, .run = run, .destroy = destroy};
