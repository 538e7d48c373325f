/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.c -- the loss of classes with its gradient, softmax included. Of a cell with logits x[c] and class t, m = max_c x[c], z = sum_c exp(x[c] - m):
 *
 *   loss = m - x[t] + log z,   dloss/dx[c] = exp(x[c] - m) / z - [c = t]
 *
 * Logits lie a channel apart, in lanes or far from each other: SPAN cells of a row are brought together as [classes][SPAN], where the kernel runs along the
 * cells whatever the layout is, and the gradient goes back the same way. Each logit is read once and each derivative written once. A piece of work is
 * (sample, section of the rows) with a sum of its own; they are added up in order.
 */
#include "classes.h"
#include "kern/kern.h"

enum { SPAN = 64 };

typedef struct entropy_plan {
    hl_cpu_plan super;
    hl_strides x, t, dx;
    int64_t x_origin, t_origin, dx_origin;
    int64_t classes, samples, sections, rows;
    double targets;
    double *sums; /* [pieces] */
    float *room;  /* [pieces][classes][SPAN] */
} entropy_plan;

typedef struct entropy_run {
    const entropy_plan *p;
    const float *x, *t;
    float *dx;
    const double *weight;
    double scale;
} entropy_run;

static bool fits(const halo_op_desc *d)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!hl_has_f32(d, HALO_X) || !hl_has_f32(d, HALO_T) || t->ext[HALO_C] != 1 || t->ext[HALO_N] != x->ext[HALO_N]) return false;
    if (memcmp(t->ext + HALO_D, x->ext + HALO_D, 3 * sizeof(int64_t)) != 0) return false;
    if (hl_has(d, HALO_DX) && (!hl_has_f32(d, HALO_DX) || !hl_same_extents(&d->t[HALO_DX], x))) return false;
    return d->t[HALO_STAT].dtype == HALO_F64 && (!hl_has(d, HALO_SW) || d->t[HALO_SW].dtype == HALO_F64);
}

int hl_cross_entropy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    return fits(d) ? hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[HALO_X]), out) : 0;
}

void hl_cross_entropy_free(halo_plan *plan)
{
    entropy_plan *p = (entropy_plan *)plan;
    if (!p) return;
    free(p->sums);
    free(p->room);
    free(p);
}

static void shape(entropy_plan *p)
{
    const halo_op_desc *d = &p->super.d;
    const halo_operand *x = &d->t[HALO_X];
    p->x = hl_operand_strides(x);
    p->t = hl_operand_strides(&d->t[HALO_T]);
    p->x_origin = hl_box_offset(x);
    p->t_origin = hl_box_offset(&d->t[HALO_T]);
    if (hl_has(d, HALO_DX)) {
        p->dx = hl_operand_strides(&d->t[HALO_DX]);
        p->dx_origin = hl_box_offset(&d->t[HALO_DX]);
    }
    p->classes = x->ext[HALO_C];
    p->samples = x->ext[HALO_N];
    p->rows = x->ext[HALO_D] * x->ext[HALO_H];
    p->sections = hl_min64(hl_div_up(hl_parts(p->super.dev, hl_operand_box_elements(x)), p->samples), p->rows);
    p->targets = hl_loss_targets(d);
}

halo_status hl_cross_entropy_make(halo_device *dev, const halo_op_desc *d, halo_plan **out)
{
    entropy_plan *p;
    halo_status st;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    shape(p);
    size_t pieces = (size_t)(p->samples * p->sections);
    HL_GOTO(st, hl_calloc(dev->ctx, pieces, sizeof(*p->sums), "a loss", &p->sums), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, pieces * (size_t)p->classes, SPAN * sizeof(*p->room), "a loss", &p->room), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    hl_cross_entropy_free((halo_plan *)p);
    return st;
}

/* Cells [w, w + n) of a row to or from [classes][SPAN]. */
static void bring(const hl_strides *s, const float *row, int64_t classes, int64_t n, float *to)
{
    for (int64_t c = 0; c < classes; c++) {
        const float *x = row + c / s->block * s->s[HALO_C] + c % s->block;
        for (int64_t i = 0; i < n; i++) to[c * SPAN + i] = x[i * s->s[HALO_W]];
    }
}

static void put_back(const hl_strides *s, const float *from, int64_t classes, int64_t n, float *row)
{
    for (int64_t c = 0; c < classes; c++) {
        float *x = row + c / s->block * s->s[HALO_C] + c % s->block;
        for (int64_t i = 0; i < n; i++) x[i * s->s[HALO_W]] = from[c * SPAN + i];
    }
}

static double row_loss(const entropy_run *r, int64_t n, int64_t row, float scale, float *room)
{
    const entropy_plan *p = r->p;
    const int64_t *e = p->super.d.t[HALO_X].ext;
    int64_t d = row / e[HALO_H], h = row % e[HALO_H];
    const float *x = r->x + p->x_origin + hl_offset(&p->x, n, 0, d, h, 0), *t = r->t + p->t_origin + hl_offset(&p->t, n, 0, d, h, 0);
    float *dx = r->dx ? r->dx + p->dx_origin + hl_offset(&p->dx, n, 0, d, h, 0) : NULL, label[SPAN];
    double sum = 0;
    for (int64_t w = 0; w < e[HALO_W]; w += SPAN) {
        int64_t cells = hl_min64(SPAN, e[HALO_W] - w);
        bring(&p->x, x + w * p->x.s[HALO_W], p->classes, cells, room);
        for (int64_t i = 0; i < cells; i++) label[i] = t[(w + i) * p->t.s[HALO_W]];
        sum += p->super.dev->kern->cross_entropy(room, p->classes, SPAN, cells, label, scale, dx != NULL);
        if (dx) put_back(&p->dx, room, p->classes, cells, dx + w * p->dx.s[HALO_W]);
    }
    return sum;
}

static void entropy_piece(void *arg, int64_t i)
{
    const entropy_run *r = arg;
    const entropy_plan *p = r->p;
    int64_t n = i / p->sections;
    hl_range rows = hl_block_range(p->rows, p->sections, i % p->sections);
    double weight = r->weight ? r->weight[n] : 1, sum = 0;
    for (int64_t row = rows.lo; row < rows.hi; row++)
        sum += row_loss(r, n, row, (float)(weight / p->targets * r->scale), p->room + i * p->classes * SPAN);
    p->sums[i] = weight * (sum / p->targets);
}

halo_status hl_cross_entropy_run(halo_plan *plan, const halo_op_args *args)
{
    const entropy_plan *p = (const entropy_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&d->t[HALO_STAT]);
    entropy_run r = {.p = p, .x = args->ptr[HALO_X], .t = args->ptr[HALO_T], .dx = hl_has(d, HALO_DX) ? args->ptr[HALO_DX] : NULL};
    if (hl_has(d, HALO_SW)) r.weight = (const double *)args->ptr[HALO_SW] + hl_box_offset(&d->t[HALO_SW]);
    if (r.dx) r.scale = args->record->loss_scale / args->record->weight_sum;
    hl_parallel(p->super.dev, p->samples * p->sections, entropy_piece, &r);
    for (int64_t i = 0; i < p->samples * p->sections; i++) stat[0] += p->sums[i];
    for (int64_t n = 0; n < p->samples; n++) stat[1] += r.weight ? r.weight[n] : 1;
    return HALO_OK;
}
