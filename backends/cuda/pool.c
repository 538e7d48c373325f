/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c -- max and average pooling, and the gradient of windows side by side with the activation before them: geometry for pool.cu. */
#include "cuda.h"

typedef struct pool_plan {
    hl_cuda_plan super;
    hl_cells places;
    hl_pooling w;
    hl_view x, y, aux; /* x or dx, y or dy */
} pool_plan;

static bool fits(const halo_op_desc *d, halo_role x, halo_role y)
{
    const halo_operand *aux = &d->t[HALO_AUX];
    if (!hl_cuda_activation(d, x) || !hl_cuda_activation(d, y) || d->t[x].dtype != d->t[y].dtype) return false;
    if (d->t[x].ext[HALO_N] != d->t[y].ext[HALO_N] || d->t[x].ext[HALO_C] != d->t[y].ext[HALO_C]) return false;
    for (int k = 0; k < 3; k++)
        if (d->window.kernel[k] < 1 || d->window.stride[k] < 1 || d->window.dilation[k] < 1) return false;
    if (aux->dtype == HALO_NONE) return true;
    return (aux->dtype == HALO_U8 || aux->dtype == HALO_I32) && hl_operand_valid(aux) && hl_layout_block(aux->layout) == 1 && hl_same_extents(aux, &d->t[y]);
}

/* The signs of the cells of a stride fit into AUX. */
static bool bits_fit(const halo_op_desc *d)
{
    const int64_t *s = d->window.stride;
    return d->t[HALO_AUX].dtype == HALO_U8 && s[0] <= 8 && s[1] <= 8 && s[2] <= 8 && s[0] * s[1] * s[2] <= 8;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, halo_role x, halo_role y, halo_role over, halo_plan **out)
{
    pool_plan *p;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    p->w = (hl_pooling){.max = d->pool == HALO_POOL_MAX, .count_pad = d->count_pad, .wide = d->t[HALO_AUX].dtype == HALO_I32};
    for (int k = 0; k < 3; k++) {
        p->w.kernel[k] = d->window.kernel[k];
        p->w.stride[k] = d->window.stride[k];
        p->w.dilation[k] = d->window.dilation[k];
        p->w.pad[k] = d->window.pad_lo[k];
        p->w.lo[k] = -d->t[x].margin[k][0];
        p->w.hi[k] = d->t[x].ext[HALO_D + k] + d->t[x].margin[k][1];
    }
    HL_BUG_UNLESS(hl_cuda_view(&d->t[x], &p->x) && hl_cuda_view(&d->t[y], &p->y));
    if (hl_has(d, HALO_AUX)) HL_BUG_UNLESS(hl_cuda_view(&d->t[HALO_AUX], &p->aux));
    hl_cuda_places(d->t[over].layout, d->t[over].ext, &p->places);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static int forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (d->pool == HALO_POOL_AVG && hl_has(d, HALO_AUX)) return 0; /* the signs of an average's cells: not here */
    if (d->pool == HALO_POOL_AVG && hl_has(d, HALO_AUX) && !bits_fit(d)) return 0;
    return fits(d, HALO_X, HALO_Y) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status forward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, HALO_X, HALO_Y, HALO_Y, out);
}

static halo_status forward_run(halo_plan *plan, const halo_op_args *args)
{
    const pool_plan *p = (const pool_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_pool_forward(s->dev->compute, s->d.t[HALO_X].dtype, &p->places, &p->w, &p->x, &p->y, &p->aux, hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_Y),
                                         hl_cuda_ptr(s, args, HALO_AUX)));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_pool_fwd, HALO_OP_POOL_FWD, forward_candidates, forward_plan, forward_run);

static int backward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    if (!fits(d, HALO_DX, HALO_DY) || (d->pool == HALO_POOL_MAX && !hl_has(d, HALO_AUX))) return 0;
    return hl_cuda_offer("cuda", 0, out);
}

static halo_status backward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    (void)choice;
    return make(dev, d, HALO_DX, HALO_DY, HALO_DX, out);
}

static halo_status backward_run(halo_plan *plan, const halo_op_args *args)
{
    const pool_plan *p = (const pool_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    HL_CUDA(s->dev, hl_cuda_pool_backward(s->dev->compute, s->d.t[HALO_DX].dtype, &p->places, &p->w, &p->y, &p->x, &p->aux, hl_cuda_ptr(s, args, HALO_DY),
                                          hl_cuda_ptr(s, args, HALO_AUX), hl_cuda_ptr(s, args, HALO_DX), s->d.accumulate));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_pool_bwd, HALO_OP_POOL_BWD, backward_candidates, backward_plan, backward_run);

/* ----------------------------------------------------------------------------------------- with the activation before it */

typedef struct act_pool_plan {
    hl_cuda_plan super;
    hl_act_pooling p;
    hl_view dy;
    pool_plan *overlap; /* windows that overlap: a pool's backward that looks at signs */
} act_pool_plan;

static bool side_by_side(const halo_window *w)
{
    for (int k = 0; k < 3; k++)
        if (w->kernel[k] < 1 || w->stride[k] != w->kernel[k] || w->dilation[k] != 1) return false;
    return true;
}

/* An average over windows that overlap or have padding, and an activation of two values. */
static bool signed_average(const halo_op_desc *d)
{
    const halo_window *w = &d->window;
    for (int k = 0; k < 3; k++)
        if (w->dilation[k] != 1 || w->kernel[k] - w->pad_lo[k] > w->stride[k]) return false;
    return d->pool == HALO_POOL_AVG && (d->act == HALO_ACT_RELU || d->act == HALO_ACT_LEAKY_RELU) && bits_fit(d);
}

/* What of the forward pass a derivative asks for: nothing when the activation's is a constant. */
static int act_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    bool max = d->pool == HALO_POOL_MAX, constant = d->act == HALO_ACT_NONE || d->act == HALO_ACT_SCALE, two_valued = d->act == HALO_ACT_RELU || d->act == HALO_ACT_LEAKY_RELU;
    bool aux = d->t[HALO_AUX].dtype == HALO_U8;
    int64_t cells = d->window.kernel[0] * d->window.kernel[1] * d->window.kernel[2];
    if (!fits(d, HALO_DX, HALO_DY) || d->accumulate || (hl_has(d, HALO_AUX) && !aux)) return 0;
    if (!side_by_side(&d->window)) return signed_average(d) ? hl_cuda_offer("cuda:overlap", 0, out) : 0;
    if (!hl_cuda_like(d, HALO_Y, HALO_DY, true) || (!max && !constant && !two_valued)) return 0;
    if ((!aux && (max || !constant)) || (max && !constant && !hl_has(d, HALO_Y))) return 0;
    return cells <= (max ? 256 : constant ? INT32_MAX : 8) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status act_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    act_pool_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    if (!side_by_side(&d->window)) {
        halo_plan *pool = NULL;
        halo_status st = make(dev, d, HALO_DX, HALO_DY, HALO_DX, &pool);
        p->overlap = (pool_plan *)pool;
        if (st != HALO_OK) {
            free(p);
            return st;
        }
        p->overlap->w.signs = true;
        p->overlap->w.act = (int)d->act;
        p->overlap->w.slope = (float)d->slope;
        *out = (halo_plan *)p;
        return HALO_OK;
    }
    p->p = (hl_act_pooling){.max = d->pool == HALO_POOL_MAX, .act = (int)d->act, .slope = (float)d->slope};
    memcpy(p->p.side, d->window.kernel, sizeof(p->p.side));
    memcpy(p->p.pad, d->window.pad_lo, sizeof(p->p.pad));
    HL_BUG_UNLESS(hl_cuda_view(&d->t[HALO_DX], &p->p.z) && hl_cuda_view(&d->t[HALO_DY], &p->dy));
    if (hl_has(d, HALO_Y)) HL_BUG_UNLESS(hl_cuda_view(&d->t[HALO_Y], &p->p.y));
    if (hl_has(d, HALO_AUX)) HL_BUG_UNLESS(hl_cuda_view(&d->t[HALO_AUX], &p->p.aux));
    hl_cuda_places(d->t[HALO_DX].layout, d->t[HALO_DX].ext, &p->p.places);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status act_run(halo_plan *plan, const halo_op_args *args)
{
    const act_pool_plan *p = (const act_pool_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    if (p->overlap) return backward_run((halo_plan *)p->overlap, args);
    HL_CUDA(s->dev, hl_cuda_act_pool_backward(s->dev->compute, s->d.t[HALO_DX].dtype, &p->p, &p->dy, hl_cuda_ptr(s, args, HALO_DY), hl_cuda_ptr(s, args, HALO_Y),
                                              hl_cuda_ptr(s, args, HALO_AUX), hl_cuda_ptr(s, args, HALO_DX)));
    return HALO_OK;
}

static void act_destroy(halo_plan *plan)
{
    if (plan) free(((act_pool_plan *)plan)->overlap);
    free(plan);
}

const halo_op_class hl_cuda_act_pool_bwd = {.kind = HALO_OP_ACT_POOL_BWD, .candidates = act_candidates, .plan = act_plan, .run = act_run, .destroy = act_destroy};
