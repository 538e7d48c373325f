/* SPDX-License-Identifier: Apache-2.0 */
/*
 * act_pool.c -- the gradient of pooling windows that lie side by side and of the activation in front of them,
 * in one sweep over dx:
 *
 *   max: dx[q] = act'(y[p]) dy[p] where q is the winner AUX[p] of its window p, else 0
 *   avg: dx[q] = act' dy[p] / m, act' by bit k of AUX[p] for q = p s + k
 *
 * A cell of dx has one window at most, so every cell is written once, from one output that its neighbours
 * need too: work is dealt by rows of dx, whose s[0] s[1] neighbours find the rows of dy, y and AUX in cache.
 * Nothing of full size is read. Averages over windows that overlap are pool.c's.
 */
#include "classes.h"
#include "kern/kern.h"

typedef struct act_pool_plan {
    hl_cpu_plan super;
    halo_plan *average;        /* pool.c's, or NULL */
    const halo_operand *x, *y; /* DX, DY */
    hl_strides xs, gs, ys, as; /* of DX, DY, Y, AUX */
    int64_t x0, g0, y0, a0;    /* where their boxes begin */
    int64_t lanes, blocks, last_lanes, rows;
    int64_t full_lo, full_hi; /* windows along w that lie in dx's box */
    hl_unpool unpool;
} act_pool_plan;

typedef struct act_pool_run {
    const act_pool_plan *p;
    const float *dy, *y;
    const uint8_t *aux;
    float *dx;
    int64_t parts;
} act_pool_run;

static bool window_valid(const halo_window *w)
{
    for (int k = 0; k < 3; k++)
        if (w->kernel[k] < 1 || w->kernel[k] > 256 || w->stride[k] != w->kernel[k] || w->dilation[k] != 1)
            return false;
    return true;
}

static int64_t cells_of(const halo_window *w)
{
    return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

/* Y and AUX are there where the derivative asks for them, and fit. */
static bool saved_valid(const halo_op_desc *d)
{
    const halo_operand *y = &d->t[HALO_Y], *a = &d->t[HALO_AUX], *dy = &d->t[HALO_DY];
    bool max = d->pool == HALO_POOL_MAX, constant = d->act == HALO_ACT_NONE || d->act == HALO_ACT_SCALE;
    bool two = d->act == HALO_ACT_RELU || d->act == HALO_ACT_LEAKY_RELU;
    if (cells_of(&d->window) > (max ? 256 : constant ? INT32_MAX : 8) || (!max && !constant && !two))
        return false;
    if ((max || two) && a->dtype != HALO_U8) return false;
    if (max && !constant && !hl_has_f32(d, HALO_Y)) return false;
    if (y->dtype != HALO_NONE &&
        !(hl_has_f32(d, HALO_Y) && y->layout == dy->layout && hl_same_extents(y, dy)))
        return false;
    return a->dtype == HALO_NONE ||
           (a->dtype == HALO_U8 && hl_operand_valid(a) && a->layout == dy->layout && hl_same_extents(a, dy));
}

static void shape(act_pool_plan *p)
{
    const halo_op_desc *d = &p->super.d;
    const halo_window *w = &d->window;
    p->x = &d->t[HALO_DX];
    p->y = &d->t[HALO_DY];
    p->xs = hl_operand_strides(p->x);
    p->gs = hl_operand_strides(p->y);
    p->ys = hl_operand_strides(&d->t[HALO_Y]);
    p->as = hl_operand_strides(&d->t[HALO_AUX]);
    p->x0 = hl_box_offset(p->x);
    p->g0 = hl_box_offset(p->y);
    if (hl_has(d, HALO_Y)) p->y0 = hl_box_offset(&d->t[HALO_Y]);
    if (hl_has(d, HALO_AUX)) p->a0 = hl_box_offset(&d->t[HALO_AUX]);
    p->lanes = p->x->layout == HALO_NDHWC ? p->x->ext[HALO_C] : hl_layout_block(p->x->layout);
    p->blocks = hl_div_up(p->x->ext[HALO_C], p->lanes);
    p->last_lanes = p->x->ext[HALO_C] - (p->blocks - 1) * p->lanes;
    p->rows = p->x->ext[HALO_N] * p->blocks * p->x->ext[HALO_D] * p->x->ext[HALO_H];
    while (p->full_lo < p->y->ext[HALO_W] && p->full_lo * w->stride[2] - w->pad_lo[2] < 0) p->full_lo++;
    p->full_hi = p->y->ext[HALO_W];
    while (p->full_hi > p->full_lo && p->full_hi * w->stride[2] - w->pad_lo[2] > p->x->ext[HALO_W])
        p->full_hi--;
    p->unpool = (hl_unpool){.s = {.x_step = w->stride[2] * p->xs.s[HALO_W],
                                  .y_step = p->gs.s[HALO_W],
                                  .aux_step = p->as.s[HALO_W]},
                            .act_step = p->ys.s[HALO_W],
                            .tap_step = p->xs.s[HALO_W],
                            .act = d->act,
                            .slope = (float)d->slope};
    p->unpool.s.max = d->pool == HALO_POOL_MAX;
    p->unpool.s.factor = 1.0f / (float)cells_of(w);
}

/* -------------------------------------------------------------------------------------------------------------------
 * rows */

typedef struct place {
    int64_t n, block, d, h, lanes;
} place;

static place place_of(const act_pool_plan *p, int64_t row)
{
    int64_t eh = p->x->ext[HALO_H], ed = p->x->ext[HALO_D], outer = row / eh / ed;
    place r = {outer / p->blocks, outer % p->blocks, row / eh % ed, row % eh, 0};
    r.lanes = r.block == p->blocks - 1 ? p->last_lanes : p->lanes;
    return r;
}

static int64_t at(const hl_strides *t, int64_t first, const place *r, int64_t d, int64_t h, int64_t w)
{
    return first + r->n * t->s[HALO_N] + r->block * t->s[HALO_C] + d * t->s[HALO_D] + h * t->s[HALO_H] +
           w * t->s[HALO_W];
}

/* The window along dimension k that has cell q, and the cell's number in it; false when there is none. */
static bool window_of(const act_pool_plan *p, int k, int64_t q, int64_t *out, int64_t *tap)
{
    const halo_window *w = &p->super.d.window;
    int64_t cell = q + w->pad_lo[k];
    *out = cell / w->stride[k];
    *tap = cell % w->stride[k];
    return cell >= 0 && *out < p->y->ext[HALO_D + k];
}

static void clear(const act_pool_plan *p, float *dx, int64_t lanes, int64_t cells)
{
    for (int64_t i = 0; i < cells; i++) memset(dx + i * p->xs.s[HALO_W], 0, (size_t)lanes * sizeof(*dx));
}

/* Windows w .. w + cells - 1 of the outputs' row (d, h) give to their taps from `tap` on: first of them is
 * cell q of the row. */
static void give(const act_pool_run *r, const place *i, const hl_unpool *u, int64_t d, int64_t h, int64_t w,
                 int64_t q)
{
    const act_pool_plan *p = r->p;
    r->p->super.dev->kern->unpool(
        u, r->dy + at(&p->gs, p->g0, i, d, h, w), r->y ? r->y + at(&p->ys, p->y0, i, d, h, w) : NULL,
        r->aux ? r->aux + at(&p->as, p->a0, i, d, h, w) : NULL, r->dx + at(&p->xs, p->x0, i, i->d, i->h, q));
}

static void fill_row(const act_pool_run *r, const place *i)
{
    const act_pool_plan *p = r->p;
    const halo_window *win = &p->super.d.window;
    int64_t od, oh, kd, kh, ow, kw, width = p->x->ext[HALO_W];
    if (!window_of(p, 0, i->d, &od, &kd) || !window_of(p, 1, i->h, &oh, &kh)) {
        clear(p, r->dx + at(&p->xs, p->x0, i, i->d, i->h, 0), i->lanes, width);
        return;
    }
    hl_unpool u = p->unpool;
    u.s.lanes = i->lanes;
    for (int64_t q = 0; q < width; q++) {
        bool any = window_of(p, 2, q, &ow, &kw), full = any && kw == 0 && ow >= p->full_lo && ow < p->full_hi;
        u.first = (int32_t)((kd * win->kernel[1] + kh) * win->kernel[2] + kw);
        u.s.cells = full ? p->full_hi - ow : 1;
        u.taps = full ? (int)win->kernel[2] : 1;
        if (any)
            give(r, i, &u, od, oh, ow, q);
        else
            clear(p, r->dx + at(&p->xs, p->x0, i, i->d, i->h, q), i->lanes, 1);
        if (full) q += u.s.cells * win->kernel[2] - 1;
    }
}

static void fill_part(void *arg, int64_t part)
{
    const act_pool_run *r = arg;
    hl_range rows = hl_block_range(r->p->rows, r->parts, part);
    for (int64_t row = rows.lo; row < rows.hi; row++) {
        place i = place_of(r->p, row);
        fill_row(r, &i);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * class */

static int act_pool_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *x = &d->t[HALO_DX], *y = &d->t[HALO_DY];
    if (!window_valid(&d->window)) return hl_cpu_act_average_bwd.candidates(dev, d, out);
    if (!hl_has_f32(d, HALO_DX) || !hl_has_f32(d, HALO_DY) || x->layout != y->layout || d->accumulate)
        return 0;
    if (x->ext[HALO_N] != y->ext[HALO_N] || x->ext[HALO_C] != y->ext[HALO_C] || !saved_valid(d)) return 0;
    act_pool_plan p = {.super = {hl_cpu(dev), *d}};
    shape(&p);
    hl_cpu_candidate(dev, "cpu", (double)p.rows, out);
    out->id = HL_ACT_POOL_ID;
    int64_t parts = hl_min64(p.rows, hl_parts(hl_cpu(dev), hl_operand_box_elements(x)));
    out->efficiency =
        (double)p.rows / ((double)hl_cpu(dev)->threads * (double)hl_div_up(p.rows, hl_max64(parts, 1)));
    return 1;
}

static halo_status act_pool_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice,
                                 halo_plan **out)
{
    act_pool_plan *p;
    halo_status st = HALO_OK;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    if (choice->id == HL_ACT_POOL_ID)
        shape(p);
    else
        HL_GOTO(st, hl_cpu_act_average_bwd.plan(dev, d, choice, &p->average), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    hl_cpu_plan_free((halo_plan *)p);
    return st;
}

static void act_pool_destroy(halo_plan *plan)
{
    act_pool_plan *p = (act_pool_plan *)plan;
    if (!p) return;
    hl_cpu_act_average_bwd.destroy(p->average);
    hl_cpu_plan_free(plan);
}

static halo_status act_pool_do(halo_plan *plan, const halo_op_args *args)
{
    const act_pool_plan *p = (const act_pool_plan *)plan;
    if (p->average) return hl_cpu_act_average_bwd.run(p->average, args);
    bool two = p->super.d.act == HALO_ACT_RELU || p->super.d.act == HALO_ACT_LEAKY_RELU;
    act_pool_run r = {.p = p, .dy = args->ptr[HALO_DY], .dx = args->ptr[HALO_DX]};
    r.y = hl_has(&p->super.d, HALO_Y) ? args->ptr[HALO_Y] : NULL;
    r.aux = p->unpool.s.max || two ? args->ptr[HALO_AUX] : NULL;
    r.parts = hl_min64(p->rows, hl_parts(p->super.dev, hl_operand_box_elements(p->x)));
    hl_parallel(p->super.dev, r.parts, fill_part, &r);
    return HALO_OK;
}

const halo_op_class hl_cpu_act_pool_bwd = {.kind = HALO_OP_ACT_POOL_BWD,
                                           .candidates = act_pool_candidates,
                                           .plan = act_pool_make,
                                           .run = act_pool_do,
                                           .destroy = act_pool_destroy};
