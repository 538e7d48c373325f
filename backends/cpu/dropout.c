/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.c -- y = x * mask / keep, the mask a function of seed, step, layer and the element's place in the global tensor (tensor/dropout.h).
 *
 * Work is dealt by rows: the cells (n, c, d, h) along w, or the channels of a sample where the spatial extents are 1, which is where dropout is
 * used most. A row's mask is made once, contiguous, and multiplied in; where the layout keeps other channels between the cells, CHUNK cells at a time.
 */
#include "classes.h"
#include "kern/kern.h"
#include "runs.h"

typedef struct dropout_plan {
    hl_cpu_plan super;
    hl_strides x, y;
    int64_t x_first, y_first;
    bool along_channels;
} dropout_plan;

typedef struct dropout_run {
    const dropout_plan *p;
    const halo_step_record *record;
    const float *x;
    float *y;
    int64_t pieces_per_row;
} dropout_run;

enum { CHUNK = 1024 };

static bool valid(const halo_op_desc *d)
{
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    if (!hl_has_f32(d, HALO_X) || !hl_has_f32(d, HALO_Y) || !(d->keep > 0) || !hl_same_extents(x, y)) return false;
    for (int k = HALO_C; k < HALO_DIMS; k++)
        if (d->global_ext[k] < 1) return false;
    return true;
}

/* Channels are contiguous in both operands and in the global index. */
static bool channels_are_rows(const halo_op_desc *d)
{
    halo_operand unused;
    for (int k = HALO_D; k < HALO_DIMS; k++)
        if (d->t[HALO_X].ext[k] != 1 || d->global_ext[k] != 1) return false;
    return hl_vector_rows(&d->t[HALO_X], &unused) && hl_vector_rows(&d->t[HALO_Y], &unused);
}

static int dropout_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (!valid(d)) return 0;
    return hl_cpu_candidate(dev, "cpu", hl_items(hl_operand_box_elements(&d->t[HALO_X])), out);
}

static halo_status dropout_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    dropout_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    p->along_channels = channels_are_rows(d);
    p->x = hl_operand_strides(&d->t[HALO_X]);
    p->y = hl_operand_strides(&d->t[HALO_Y]);
    p->x_first = hl_box_offset(&d->t[HALO_X]);
    p->y_first = hl_box_offset(&d->t[HALO_Y]);
    *out = (halo_plan *)p;
    return HALO_OK;
}

/* Place in the global tensor of cell (n c d h w) of the box. */
static uint64_t global_index(const halo_op_desc *d, const halo_step_record *record, const int64_t i[HALO_DIMS])
{
    uint64_t index = (uint64_t)(d->global_lo[HALO_N] + i[HALO_N] + record->first_sample);
    for (int k = HALO_C; k < HALO_DIMS; k++) index = index * (uint64_t)d->global_ext[k] + (uint64_t)(d->global_lo[k] + i[k]);
    return index;
}

/* Cells i[W] .. i[W] + n - 1 (or channels from i[C] on). */
static void stretch(const dropout_run *r, const int64_t i[HALO_DIMS], int64_t n)
{
    const dropout_plan *p = r->p;
    const halo_op_desc *d = &p->super.d;
    const hl_kern *kern = p->super.dev->kern;
    float mask[CHUNK];
    uint64_t index = global_index(d, r->record, i);
    int64_t xs = p->along_channels ? 1 : p->x.s[HALO_W], ys = p->along_channels ? 1 : p->y.s[HALO_W];
    const float *x = r->x + p->x_first + hl_offset(&p->x, i[0], i[1], i[2], i[3], i[4]);
    float *y = r->y + p->y_first + hl_offset(&p->y, i[0], i[1], i[2], i[3], i[4]);
    kern->dropout_mask(r->record->seed, r->record->step << 24 | d->layer, index, d->keep, (float)(1 / d->keep), mask, n);
    if (xs == 1 && ys == 1)
        kern->mul(x, mask, y, n);
    else
        for (int64_t w = 0; w < n; w++) y[w * ys] = x[w * xs] * mask[w];
}

static void dropout_piece(void *arg, int64_t at)
{
    const dropout_run *r = arg;
    const int64_t *e = r->p->super.d.t[HALO_X].ext;
    int axis = r->p->along_channels ? HALO_C : HALO_W;
    int64_t i[HALO_DIMS] = {0}, first = at % r->pieces_per_row * CHUNK, row = at / r->pieces_per_row;
    for (int k = HALO_W; k >= HALO_N; k--) {
        if (k == axis) continue;
        i[k] = row % e[k];
        row /= e[k];
    }
    i[axis] = first;
    stretch(r, i, hl_min64(CHUNK, e[axis] - first));
}

static halo_status dropout_do(halo_plan *plan, const halo_op_args *args)
{
    const dropout_plan *p = (const dropout_plan *)plan;
    const halo_operand *x = &p->super.d.t[HALO_X];
    int64_t length = x->ext[p->along_channels ? HALO_C : HALO_W], elements = hl_operand_box_elements(x);
    dropout_run r = {p, args->record, args->ptr[HALO_X], args->ptr[HALO_Y], hl_div_up(length, CHUNK)};
    int64_t pieces = elements / length * r.pieces_per_row;
    for (int64_t i = 0; elements < 4096 && i < pieces; i++) dropout_piece(&r, i);
    if (elements >= 4096) hl_parallel(p->super.dev, pieces, dropout_piece, &r);
    return HALO_OK;
}

const halo_op_class hl_cpu_dropout = {.kind = HALO_OP_DROPOUT,
                                      .candidates = dropout_candidates,
                                      .plan = dropout_make,
                                      .run = dropout_do,
                                      .destroy = hl_cpu_plan_free};
