/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c -- dense layers; i features in, o out, w (o, i) plain.
 *
 *   y[n,o] = act(b[o] + sum_i w[o,i] x[n,i])     dx[n,i] (+)= sum_o w[o,i] dy[n,o]     dw[o,i] (+)= sum_n dy[n,o] x[n,i], db[o] (+)= sum_n dy[n,o]
 *
 * Up to FEW samples the time is that of reading (or writing) the weights once, so own loops deal them out to the threads in whole rows or, where rows
 * are few, in sections of rows; a matrix product would pack them first. From there on it is CBLAS. Vectors that are not contiguous (a margin
 * between the samples' cells) pass through scratch.
 */
#include "classes.h"
#include "kern/kern.h"
#include "rows.h"
#include "runs.h"

#include <cblas.h>
#include <limits.h>

enum { FEW = 32, SECTION = 2048, LONGEST = 8192, NARROW = 32, WORTH = 8192 };

/* An operand [N, F] as rows of floats: in place, or through scratch. */
typedef struct vectors {
    halo_role role;
    int64_t features, stride, first; /* elements */
    bool in_place;
    hl_side from, to; /* of the copy to or from scratch */
    size_t scratch;   /* bytes from the scratch's begin */
} vectors;

typedef struct linear_plan {
    hl_cpu_plan super;
    int64_t n, in, out;
    vectors x, y;      /* X or DX; Y or DY */
    int64_t sections;  /* of a row of weights, forward */
    int64_t columns;   /* sections of dx and dw */
    float *partial;    /* [out][n][sections] */
    size_t scratch;
} linear_plan;

typedef struct linear_run {
    const linear_plan *p;
    float *x, *y, *w, *b;
} linear_run;

/* ---------------------------------------------------------------------------------------------------------- operands */

static void vectors_of(const halo_op_desc *d, halo_role role, size_t *scratch, vectors *v)
{
    const halo_operand *op = &d->t[role];
    halo_operand rows;
    *v = (vectors){.role = role, .features = hl_operand_box_elements(op) / op->ext[HALO_N]};
    v->in_place = hl_vector_rows(op, &rows);
    if (v->in_place) {
        v->stride = rows.alloc[HALO_W];
        v->first = hl_box_offset(&rows);
        return;
    }
    halo_operand dense = hl_operand_whole(op->dtype, HALO_NCDHW, op->ext);
    v->from = hl_side_of(op);
    v->to = hl_side_of(&dense);
    v->stride = v->features;
    v->scratch = *scratch;
    *scratch += (size_t)hl_round_up(v->features * op->ext[HALO_N] * (int64_t)sizeof(float), 64);
}

static float *address(const vectors *v, const halo_op_args *args)
{
    return v->in_place ? (float *)args->ptr[v->role] + v->first : (float *)(void *)((char *)args->scratch + v->scratch);
}

/* Fetches the vectors before, or puts them back after. */
static void fetch(const linear_plan *p, const vectors *v, const halo_op_args *args)
{
    if (!v->in_place)
        hl_copy_sides(p->super.dev, p->super.d.t[v->role].ext, &v->from, args->ptr[v->role], &v->to, address(v, args), false);
}

static void put(const linear_plan *p, const vectors *v, const halo_op_args *args)
{
    if (!v->in_place)
        hl_copy_sides(p->super.dev, p->super.d.t[v->role].ext, &v->to, address(v, args), &v->from, args->ptr[v->role], false);
}

/* ----------------------------------------------------------------------------------------------------- few samples */

/* Calls `body` for samples n, n + 1 ... n + count - 1, HL_DOTS at a time. */
#define BY_DOTS(n, count, limit)                                                                             \
    for (int64_t n = 0, count; count = hl_min64(HL_DOTS, (limit) - n), n < (limit); n += count)

/* Piece: row o of the weights, one section of it, times every sample. */
static void forward_piece(void *arg, int64_t i)
{
    const linear_run *r = arg;
    const linear_plan *p = r->p;
    int64_t o = i / p->sections, s = i % p->sections;
    hl_range e = hl_block_range(p->in, p->sections, s);
    BY_DOTS(n, count, p->n) {
        float out[HL_DOTS];
        p->super.dev->kern->dots(r->w + o * p->in + e.lo, r->x + n * p->x.stride + e.lo, p->x.stride, e.hi - e.lo, (int)count, out);
        for (int64_t k = 0; k < count; k++) p->partial[(o * p->n + n + k) * p->sections + s] = out[k];
    }
}

static void add_partials(const linear_run *r)
{
    const linear_plan *p = r->p;
    for (int64_t o = 0; o < p->out; o++)
        for (int64_t n = 0; n < p->n; n++) {
            float sum = 0;
            for (int64_t s = 0; s < p->sections; s++) sum += p->partial[(o * p->n + n) * p->sections + s];
            r->y[n * p->y.stride + o] = sum;
        }
}

/* Piece: one section of dx for every sample, all rows of the weights. */
static void data_piece(void *arg, int64_t i)
{
    const linear_run *r = arg;
    const linear_plan *p = r->p;
    hl_range e = hl_block_range(p->in, p->columns, i);
    BY_DOTS(o, count, p->out)
        for (int64_t n = 0; n < p->n; n++)
            p->super.dev->kern->combine(r->y + n * p->y.stride + o, 1, r->w + o * p->in + e.lo, p->in, (int)count, o > 0 || p->super.d.accumulate,
                                        r->x + n * p->x.stride + e.lo, e.hi - e.lo);
}

/* Piece: one section of one row of dw. */
static void weights_piece(void *arg, int64_t i)
{
    const linear_run *r = arg;
    const linear_plan *p = r->p;
    int64_t o = i / p->columns;
    hl_range e = hl_block_range(p->in, p->columns, i % p->columns);
    BY_DOTS(n, count, p->n)
        p->super.dev->kern->combine(r->y + n * p->y.stride + o, p->y.stride, r->x + n * p->x.stride + e.lo, p->x.stride, (int)count,
                                    n > 0 || p->super.d.accumulate, r->w + o * p->in + e.lo, e.hi - e.lo);
}

/* ---------------------------------------------------------------------------------------------------- many samples */

static void gemm(const linear_run *r)
{
    const linear_plan *p = r->p;
    int n = (int)p->n, in = (int)p->in, out = (int)p->out, xs = (int)p->x.stride, ys = (int)p->y.stride;
    float beta = p->super.d.accumulate ? 1.0f : 0.0f;
    int old = hl_blas_enter(p->super.dev);
    if (p->super.d.kind == HALO_OP_LINEAR_FWD)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1.0f, r->x, xs, r->w, in, 0.0f, r->y, ys);
    else if (p->super.d.kind == HALO_OP_LINEAR_BWD_DATA)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1.0f, r->y, ys, r->w, in, beta, r->x, xs);
    else
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1.0f, r->y, ys, r->x, xs, beta, r->w, in);
    hl_blas_leave(old);
}

static bool by_gemm(const linear_plan *p)
{
    return p->n > FEW && p->n <= INT_MAX && p->in <= INT_MAX && p->out <= INT_MAX && p->x.stride <= INT_MAX && p->y.stride <= INT_MAX;
}

static int64_t pieces_of(const linear_plan *p)
{
    halo_op_kind kind = p->super.d.kind;
    return kind == HALO_OP_LINEAR_FWD ? p->out * p->sections : kind == HALO_OP_LINEAR_BWD_DATA ? p->columns : p->out * p->columns;
}

static void by_pieces(linear_run *r)
{
    const linear_plan *p = r->p;
    bool small = p->in * p->out < 16384; /* not worth waking threads */
    int64_t pieces = pieces_of(p);
    void (*piece)(void *, int64_t) = p->super.d.kind == HALO_OP_LINEAR_FWD        ? forward_piece
                                     : p->super.d.kind == HALO_OP_LINEAR_BWD_DATA ? data_piece
                                                                                  : weights_piece;
    for (int64_t i = 0; small && i < pieces; i++) piece(r, i);
    if (!small) hl_parallel(p->super.dev, pieces, piece, r);
    if (p->super.d.kind == HALO_OP_LINEAR_FWD) add_partials(r);
}

/* ----------------------------------------------------------------------------------------------------------- epilogues */

static void bias_and_activation(const linear_run *r)
{
    const linear_plan *p = r->p;
    const hl_kern *kern = p->super.dev->kern;
    for (int64_t n = 0; n < p->n; n++) {
        float *y = r->y + n * p->y.stride;
        if (r->b) kern->add(y, r->b, y, p->out);
        if (p->super.d.act != HALO_ACT_NONE) kern->act_fwd(p->super.d.act, (float)p->super.d.slope, y, y, p->out);
    }
}

static void bias_gradient(const linear_run *r)
{
    const linear_plan *p = r->p;
    const hl_kern *kern = p->super.dev->kern;
    if (!r->b) return;
    if (!p->super.d.accumulate) memset(r->b, 0, (size_t)p->out * sizeof(*r->b));
    for (int64_t n = 0; n < p->n; n++) kern->add(r->b, r->y + n * p->y.stride, r->b, p->out);
}

/* --------------------------------------------------------------------------------------------------------------- class */

typedef struct linear_roles { halo_role x, y, w, b; } linear_roles;

static linear_roles roles_of(const halo_op_desc *d)
{
    if (d->kind == HALO_OP_LINEAR_FWD) return (linear_roles){HALO_X, HALO_Y, HALO_WT, HALO_B};
    if (d->kind == HALO_OP_LINEAR_BWD_DATA) return (linear_roles){HALO_DX, HALO_DY, HALO_WT, HALO_ROLES};
    return (linear_roles){HALO_X, HALO_DY, HALO_DW, HALO_DB};
}

static bool shape(const halo_op_desc *d, linear_plan *p)
{
    linear_roles r = roles_of(d);
    if (!hl_has_f32(d, r.x) || !hl_has_f32(d, r.y) || !hl_has_f32(d, r.w) || d->t[r.x].ext[HALO_N] != d->t[r.y].ext[HALO_N]) return false;
    if (r.b != HALO_ROLES && hl_has(d, r.b) && d->t[r.b].dtype != HALO_F32) return false;
    p->scratch = 0;
    vectors_of(d, r.x, &p->scratch, &p->x);
    vectors_of(d, r.y, &p->scratch, &p->y);
    p->n = d->t[r.x].ext[HALO_N];
    p->in = p->x.features;
    p->out = p->y.features;
    return true;
}

/* How the weights are cut: sections of a row, columns of all rows. */
static void cut(linear_plan *p)
{
    int64_t wanted = hl_div_up(4 * (int64_t)p->super.dev->threads, p->out);
    p->sections = hl_max64(hl_div_up(p->in, LONGEST), hl_max64(1, hl_min64(wanted, p->in / SECTION)));
    p->columns = hl_max64(hl_div_up(p->in, LONGEST), hl_min64(hl_div_up(p->in, SECTION), 2 * (int64_t)p->super.dev->threads));
    if (p->super.d.kind != HALO_OP_LINEAR_BWD_DATA) return;
    /* here a column is all the work there is to deal out: narrow ones, down to two cache lines of each row, that still are worth waking a thread */
    int64_t most = hl_min64(hl_div_up(p->in, NARROW), p->in * p->out / WORTH);
    p->columns = hl_max64(p->columns, hl_min64(most, 2 * (int64_t)p->super.dev->threads));
}

static int linear_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    linear_plan p = {.super = {hl_cpu(dev), *d}};
    if (!shape(d, &p)) return 0;
    cut(&p);
    hl_cpu_candidate(dev, by_gemm(&p) ? "blas" : "cpu", by_gemm(&p) ? hl_items(p.in * p.out) : (double)pieces_of(&p), out);
    out->scratch = p.scratch;
    return 1;
}

static void linear_destroy(halo_plan *plan)
{
    if (plan) free(((linear_plan *)plan)->partial);
    free(plan);
}

static halo_status linear_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    linear_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    shape(d, p);
    cut(p);
    halo_status st = HALO_OK;
    if (d->kind == HALO_OP_LINEAR_FWD && !by_gemm(p))
        st = hl_calloc(dev->ctx, (size_t)(p->out * p->n * p->sections), sizeof(*p->partial), "a dense layer", &p->partial);
    if (st != HALO_OK)
        linear_destroy((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

static halo_status linear_do(halo_plan *plan, const halo_op_args *args)
{
    const linear_plan *p = (const linear_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    linear_roles role = roles_of(d);
    linear_run r = {p, address(&p->x, args), address(&p->y, args), HL_BOX(float, &d->t[role.w], args->ptr[role.w]), NULL};
    if (role.b != HALO_ROLES && hl_has(d, role.b)) r.b = HL_BOX(float, &d->t[role.b], args->ptr[role.b]);
    if (d->kind != HALO_OP_LINEAR_FWD) fetch(p, &p->y, args);
    if (d->kind != HALO_OP_LINEAR_BWD_DATA || d->accumulate) fetch(p, &p->x, args);
    if (by_gemm(p))
        gemm(&r);
    else
        by_pieces(&r);
    if (d->kind == HALO_OP_LINEAR_FWD) {
        bias_and_activation(&r);
        put(p, &p->y, args);
    } else if (d->kind == HALO_OP_LINEAR_BWD_DATA) {
        put(p, &p->x, args);
    } else {
        bias_gradient(&r);
    }
    return HALO_OK;
}

#define LINEAR(name, op)                                                                                     \
    const halo_op_class name = {                                                                             \
        .kind = op, .candidates = linear_candidates, .plan = linear_make, .run = linear_do, .destroy = linear_destroy}

LINEAR(hl_cpu_linear_fwd, HALO_OP_LINEAR_FWD);
LINEAR(hl_cpu_linear_bwd_data, HALO_OP_LINEAR_BWD_DATA);
LINEAR(hl_cpu_linear_bwd_weights, HALO_OP_LINEAR_BWD_WEIGHTS);
