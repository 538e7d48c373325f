/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.c -- y = x * mask / keep, the mask a function of seed, step, layer and the element's place in the global tensor (tensor/dropout.h).
 *
 * The mask runs along w (along the channels where the spatial extents are 1, which is where dropout is used most). Work is dealt by (n, tile of
 * channels, d, h); a tile is what the layout keeps together, so that each stretch of memory is visited once: the masks of its channels are made
 * into a small buffer and multiplied in crosswise.
 */
#include "classes.h"
#include "kern/kern.h"
#include "runs.h"

enum { MASKS = 4096, TILE = 16 }; /* numbers in the buffer; most channels of a tile */

typedef struct dropout_plan {
    hl_cpu_plan super;
    hl_strides x, y;
    int64_t x_first, y_first;
    bool along_channels;
    int64_t tile, chunk; /* channels of a piece, cells of each in one go */
} dropout_plan;

typedef struct dropout_run {
    const dropout_plan *p;
    const halo_step_record *record;
    const float *x;
    float *y;
} dropout_run;

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

/* Channels that lie side by side in both operands. */
static int64_t tile_of(const halo_op_desc *d, const dropout_plan *p)
{
    if (p->along_channels) return MASKS;
    if (d->t[HALO_X].layout != d->t[HALO_Y].layout) return 1;
    return hl_min64(TILE, d->t[HALO_X].layout == HALO_NDHWC ? d->t[HALO_X].ext[HALO_C] : p->x.block);
}

static int dropout_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (!valid(d)) return 0;
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[HALO_X]), out);
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
    p->tile = tile_of(d, p);
    p->chunk = p->along_channels ? MASKS : MASKS / p->tile;
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

/* The masks of n elements each of `channels` channels, the first at cell i, in rows of `chunk`. */
static void make_masks(const dropout_run *r, const int64_t i[HALO_DIMS], int64_t channels, int64_t n, float *mask)
{
    const dropout_plan *p = r->p;
    const halo_op_desc *d = &p->super.d;
    int64_t at[HALO_DIMS];
    memcpy(at, i, sizeof(at));
    for (int64_t c = 0; c < channels; c++, at[HALO_C]++)
        p->super.dev->kern->dropout_mask(r->record->seed, r->record->step << 24 | d->layer, global_index(d, r->record, at), d->keep,
                                         (float)(1 / d->keep), mask + c * p->chunk, n);
}

/* Cells i[W] .. i[W] + n - 1 of `channels` channels (or the channels i[C] .. i[C] + n - 1). */
static void stretch(const dropout_run *r, const int64_t i[HALO_DIMS], int64_t channels, int64_t n)
{
    const dropout_plan *p = r->p;
    float mask[MASKS];
    int64_t xs = p->along_channels ? 1 : p->x.s[HALO_W], ys = p->along_channels ? 1 : p->y.s[HALO_W], chunk = p->chunk;
    const float *x = r->x + p->x_first + hl_offset(&p->x, i[0], i[1], i[2], i[3], i[4]);
    float *y = r->y + p->y_first + hl_offset(&p->y, i[0], i[1], i[2], i[3], i[4]);
    make_masks(r, i, channels, n, mask);
    if (xs == 1 && ys == 1)
        p->super.dev->kern->mul(x, mask, y, n);
    else
        for (int64_t w = 0; w < n; w++)
            for (int64_t c = 0; c < channels; c++) y[w * ys + c] = x[w * xs + c] * mask[c * chunk + w];
}

static void dropout_piece(void *arg, int64_t at)
{
    const dropout_run *r = arg;
    const dropout_plan *p = r->p;
    const int64_t *e = p->super.d.t[HALO_X].ext;
    int axis = p->along_channels ? HALO_C : HALO_W;
    int64_t i[HALO_DIMS] = {0}, tiles = hl_div_up(e[HALO_C], p->tile);
    i[HALO_H] = at % e[HALO_H];
    i[HALO_D] = at / e[HALO_H] % e[HALO_D];
    i[HALO_C] = at / e[HALO_H] / e[HALO_D] % tiles * p->tile;
    i[HALO_N] = at / e[HALO_H] / e[HALO_D] / tiles;
    int64_t channels = hl_min64(p->tile, e[HALO_C] - i[HALO_C]), first = i[axis], length = p->along_channels ? channels : e[HALO_W];
    for (int64_t w = 0; w < length; w += p->chunk) {
        i[axis] = first + w;
        stretch(r, i, p->along_channels ? 1 : channels, hl_min64(p->chunk, length - w));
    }
}

static halo_status dropout_do(halo_plan *plan, const halo_op_args *args)
{
    const dropout_plan *p = (const dropout_plan *)plan;
    const halo_operand *x = &p->super.d.t[HALO_X];
    int64_t elements = hl_operand_box_elements(x);
    dropout_run r = {p, args->record, args->ptr[HALO_X], args->ptr[HALO_Y]};
    int64_t pieces = x->ext[HALO_N] * hl_div_up(x->ext[HALO_C], p->tile) * x->ext[HALO_D] * x->ext[HALO_H];
    for (int64_t i = 0; elements < 4096 && i < pieces; i++) dropout_piece(&r, i);
    if (elements >= 4096) hl_parallel(p->super.dev, pieces, dropout_piece, &r);
    return HALO_OK;
}

const halo_op_class hl_cpu_dropout = {.kind = HALO_OP_DROPOUT,
                                      .candidates = dropout_candidates,
                                      .plan = dropout_make,
                                      .run = dropout_do,
                                      .destroy = hl_cpu_plan_free};
