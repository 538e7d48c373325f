/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.c -- the loss of classes with its gradient, softmax included. Of a cell with logits x[c] and class t, m = max_c x[c], z = sum_c exp(x[c] - m):
 *
 *   loss = m - x[t] + log z,   dloss/dx[c] = exp(x[c] - m) / z - [c = t]
 *
 * Logits lie a channel apart, in lanes or far from each other: HL_SPAN cells of a row are brought together as [classes][HL_SPAN], where the kernel runs along the
 * cells whatever the layout is, and the gradient goes back the same way. Each logit is read once and each derivative written once. A piece of work is
 * (sample, section of the rows) with a sum of its own; they are added up in order.
 */
#include "cross_entropy.h"
#include "kern/kern.h"

static bool fits(const halo_op_desc *d)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!hl_has_f32(d, HALO_X) || !hl_has_f32(d, HALO_T) || t->ext[HALO_C] != 1 || t->ext[HALO_N] != x->ext[HALO_N]) return false;
    if (memcmp(t->ext + HALO_D, x->ext + HALO_D, 3 * sizeof(int64_t)) != 0) return false;
    if (hl_has(d, HALO_DX) && (!hl_has_f32(d, HALO_DX) || !hl_same_extents(&d->t[HALO_DX], x))) return false;
    const halo_role doubles[] = {HALO_WT, HALO_X2, HALO_STAT2};
    for (size_t k = 0; k < HL_COUNT(doubles); k++)
        if (hl_has(d, doubles[k]) && d->t[doubles[k]].dtype != HALO_F64) return false;
    if (d->kind == HALO_OP_LOSS_SUMS) return hl_has(d, HALO_STAT2);
    return d->t[HALO_STAT].dtype == HALO_F64 && (!hl_has(d, HALO_SW) || d->t[HALO_SW].dtype == HALO_F64);
}

int hl_cross_entropy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    return fits(d) ? hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[HALO_X]), out) : 0;
}

void hl_cross_entropy_free(halo_plan *plan)
{
    hl_entropy_plan *p = (hl_entropy_plan *)plan;
    if (!p) return;
    free(p->sums);
    free(p->room);
    free(p->part);
    free(p->slope);
    free(p->total);
    free(p);
}

static void shape(hl_entropy_plan *p)
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
    p->weighs = hl_has(d, HALO_WT) || d->ignores;
}

halo_status hl_cross_entropy_make(halo_device *dev, const halo_op_desc *d, halo_plan **out)
{
    hl_entropy_plan *p;
    halo_status st;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    shape(p);
    size_t pieces = (size_t)(p->samples * p->sections);
    HL_GOTO(st, hl_calloc(dev->ctx, pieces, sizeof(*p->sums), "a loss", &p->sums), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, pieces * (size_t)p->classes, HL_SPAN * sizeof(*p->room), "a loss", &p->room), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    hl_cross_entropy_free((halo_plan *)p);
    return st;
}

static const double *doubles(const halo_op_desc *d, const halo_op_args *args, halo_role role)
{
    return hl_has(d, role) ? (const double *)args->ptr[role] + hl_box_offset(&d->t[role]) : NULL;
}

hl_entropy_run hl_entropy_begin(const hl_entropy_plan *p, const halo_op_args *args)
{
    const halo_op_desc *d = &p->super.d;
    hl_entropy_run r = {.p = p, .x = args->ptr[HALO_X], .t = args->ptr[HALO_T], .dx = hl_has(d, HALO_DX) ? args->ptr[HALO_DX] : NULL};
    r.weight = doubles(d, args, HALO_SW);
    r.of_class = doubles(d, args, HALO_WT);
    r.divisor = doubles(d, args, HALO_X2);
    if (r.dx) r.scale = args->record->loss_scale / args->record->weight_sum;
    return r;
}

/* Element of the cell w of a row, in its first channel. */
static int64_t cell_of(const hl_entropy_plan *p, const hl_strides *s, int64_t n, int64_t row, int64_t w)
{
    int64_t h = p->super.d.t[HALO_X].ext[HALO_H];
    return hl_offset(s, n, 0, row / h, row % h, 0) + w * s->s[HALO_W];
}

/* A label that is no class keeps its weight of 1: the loss is NaN then. */
static void weigh(const hl_entropy_run *r, int64_t cells, hl_labels *label)
{
    const halo_op_desc *d = &r->p->super.d;
    const float classes = (float)r->p->classes, ignore = (float)d->ignore;
    for (int64_t i = 0; i < cells; i++) {
        bool ignored = label->ignored[i] = d->ignores && label->t[i] == ignore;
        if (ignored) label->t[i] = 0;
        label->weight[i] = ignored ? 0 : r->of_class && label->t[i] >= 0 && label->t[i] < classes ? (float)r->of_class[(int64_t)label->t[i]] : 1;
    }
}

int64_t hl_entropy_bring(const hl_entropy_run *r, int64_t n, int64_t row, int64_t w, float *room, hl_labels *label)
{
    const hl_entropy_plan *p = r->p;
    int64_t cells = hl_min64(HL_SPAN, p->super.d.t[HALO_X].ext[HALO_W] - w);
    const float *from = r->x + p->x_origin + cell_of(p, &p->x, n, row, w), *t = r->t + p->t_origin + cell_of(p, &p->t, n, row, w);
    for (int64_t c = 0; c < p->classes && cells > 0; c++) {
        const float *x = from + c / p->x.block * p->x.s[HALO_C] + c % p->x.block;
        for (int64_t i = 0; i < cells; i++) room[c * HL_SPAN + i] = x[i * p->x.s[HALO_W]];
    }
    for (int64_t i = 0; i < cells; i++) label->t[i] = t[i * p->t.s[HALO_W]];
    if (p->weighs) weigh(r, cells, label);
    return cells;
}

void hl_entropy_put_back(const hl_entropy_run *r, int64_t n, int64_t row, int64_t w, int64_t cells, const float *room)
{
    const hl_entropy_plan *p = r->p;
    float *to = r->dx + p->dx_origin + cell_of(p, &p->dx, n, row, w);
    for (int64_t c = 0; c < p->classes; c++) {
        float *x = to + c / p->dx.block * p->dx.s[HALO_C] + c % p->dx.block;
        for (int64_t i = 0; i < cells; i++) x[i * p->dx.s[HALO_W]] = room[c * HL_SPAN + i];
    }
}

static double row_loss(const hl_entropy_run *r, int64_t n, int64_t row, float scale, float *room)
{
    const hl_entropy_plan *p = r->p;
    hl_labels label;
    double sum = 0;
    for (int64_t w = 0, cells; (cells = hl_entropy_bring(r, n, row, w, room, &label)) > 0; w += cells) {
        sum += p->super.dev->kern->cross_entropy(room, p->classes, HL_SPAN, cells, label.t, hl_label_weights(r, &label), scale, r->dx != NULL);
        if (r->dx) hl_entropy_put_back(r, n, row, w, cells, room);
    }
    return sum;
}

static void entropy_piece(void *arg, int64_t i)
{
    const hl_entropy_run *r = arg;
    const hl_entropy_plan *p = r->p;
    int64_t n = i / p->sections;
    hl_range rows = hl_block_range(p->rows, p->sections, i % p->sections);
    double weight = r->weight ? r->weight[n] : 1, divisor = hl_entropy_divisor(r, n), sum = 0;
    for (int64_t row = rows.lo; row < rows.hi; row++)
        sum += row_loss(r, n, row, (float)(weight / divisor * r->scale), p->room + i * p->classes * HL_SPAN);
    p->sums[i] = weight * (sum / divisor);
}

halo_status hl_cross_entropy_run(halo_plan *plan, const halo_op_args *args)
{
    const hl_entropy_plan *p = (const hl_entropy_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    double *stat = (double *)args->ptr[HALO_STAT] + hl_box_offset(&d->t[HALO_STAT]);
    hl_entropy_run r = hl_entropy_begin(p, args);
    hl_parallel(p->super.dev, p->samples * p->sections, entropy_piece, &r);
    for (int64_t i = 0; i < p->samples * p->sections; i++) stat[0] += p->sums[i];
    for (int64_t n = 0; n < p->samples; n++) stat[1] += r.weight ? r.weight[n] : 1;
    return HALO_OK;
}
