/* SPDX-License-Identifier: Apache-2.0 */
/*
 * widen.c -- operations on f16 and bf16 by a device that has them in f32 alone.
 *
 *   y = round(op(x)),   x, y of 16 bits, op in f32
 *
 * Each 16-bit operand of the description is replaced by an f32 copy of its box and margin in scratch: what the operation reads is converted before it, what it
 * writes is rounded to nearest even after it. A sum inside an operation thus is kept in f32, as on hardware that has 16-bit arithmetic with wide accumulators, and
 * results of one operation agree with such hardware to its rounding. Memory between operations has 16 bits; the copies of the largest operation are scratch.
 */
#include "backend/widen.h"

#include <stdio.h>

enum { ALIGN = 256 };

/* A 16-bit operand and its copy. */
typedef struct piece {
    halo_role role;
    halo_operand narrow, wide; /* box and margin as box, for the conversions */
    size_t offset, bytes;      /* of the copy, in scratch */
    bool padded;               /* lanes of its last channel block are not in the box: zero, as the operation may take for granted */
    halo_plan *widen, *round;  /* NULL where it is not read, or not written */
} piece;

typedef struct widened_plan {
    halo_device *dev;
    const halo_op_class *inner_class;
    halo_plan *inner;
    int pieces;
    piece piece[HALO_ROLES];
    size_t own; /* bytes of scratch before the operation's */
} widened_plan;

static bool is_short(halo_dtype type) { return type == HALO_F16 || type == HALO_BF16; }

/* Box and margin as a box. */
static halo_operand grown(const halo_operand *o)
{
    halo_operand g = *o;
    for (int k = 0; k < 3; k++) {
        g.lo[HALO_D + k] -= o->margin[k][0];
        g.ext[HALO_D + k] += o->margin[k][0] + o->margin[k][1];
        g.margin[k][0] = g.margin[k][1] = 0;
    }
    return g;
}

/* The description in f32, and where its copies lie. False where it has no operand of 16 bits, or one that cannot be copied. */
static bool widen(const halo_op_desc *d, halo_op_desc *inner, piece out[HALO_ROLES], int *pieces, size_t *own)
{
    *inner = *d;
    *pieces = 0;
    *own = 0;
    for (int r = 0; r < HALO_ROLES; r++) {
        if (!is_short(d->t[r].dtype)) continue;
        halo_operand *w = &inner->t[r];
        piece *p = &out[(*pieces)++];
        if (!hl_operand_valid(&d->t[r])) return false;
        *w = hl_operand_margined(HALO_F32, d->t[r].layout, d->t[r].ext, d->t[r].margin);
        *p = (piece){.role = (halo_role)r, .narrow = grown(&d->t[r]), .wide = grown(w), .offset = *own};
        if (!hl_operand_bytes(w, &p->bytes)) return false;
        p->padded = w->ext[HALO_C] % hl_layout_block(w->layout) != 0;
        *own += (p->bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    return *pieces > 0;
}

static int widened_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    halo_op_desc inner;
    piece list[HALO_ROLES];
    int pieces;
    size_t own;
    const halo_op_class *class = dev->classes[d->kind];
    if (!class || !dev->classes[HALO_OP_COPY] || !widen(d, &inner, list, &pieces, &own)) return 0;
    int n = class->candidates(dev, &inner, out);
    for (int i = 0; i < n; i++) {
        size_t length = strnlen(out[i].impl, sizeof(out[i].impl));
        out[i].widened = true;
        out[i].scratch += own;
        snprintf(out[i].impl + length, sizeof(out[i].impl) - length, " in f32");
    }
    return n;
}

static void widened_destroy(halo_plan *plan)
{
    widened_plan *p = (widened_plan *)plan;
    if (!p) return;
    const halo_op_class *copy = p->dev->classes[HALO_OP_COPY];
    for (int i = 0; i < p->pieces; i++) {
        if (p->piece[i].widen) copy->destroy(p->piece[i].widen);
        if (p->piece[i].round) copy->destroy(p->piece[i].round);
    }
    if (p->inner) p->inner_class->destroy(p->inner);
    free(p);
}

static halo_status plan_copy(halo_device *dev, const halo_operand *from, const halo_operand *to, halo_plan **plan)
{
    const halo_op_class *copy = dev->classes[HALO_OP_COPY];
    halo_op_desc d = {.kind = HALO_OP_COPY};
    halo_candidate c[HALO_MAX_CANDIDATES];
    d.t[HALO_X] = *from;
    d.t[HALO_Y] = *to;
    for (int i = 0, n = copy->candidates(dev, &d, c); i < n; i++)
        if (c[i].scratch == 0) return copy->plan(dev, &d, &c[i], plan);
    return hl_fail(dev->ctx, HALO_ERR_UNSUPPORTED, "no conversion between %s and %s", hl_dtype_name(from->dtype), hl_dtype_name(to->dtype));
}

/* A conversion takes box and margin; only what may have been written goes back. */
static halo_status plan_piece(halo_device *dev, const halo_op_desc *d, const halo_op_desc *inner, piece *p)
{
    bool margin = d->kind == HALO_OP_MARGIN;
    if (hl_op_reads(d, p->role)) HL_TRY(plan_copy(dev, &p->narrow, &p->wide, &p->widen));
    if (hl_op_writes(d->kind, p->role)) HL_TRY(plan_copy(dev, margin ? &p->wide : &inner->t[p->role], margin ? &p->narrow : &d->t[p->role], &p->round));
    return HALO_OK;
}

static halo_status plan_all(widened_plan *p, const halo_op_desc *d, const halo_candidate *choice)
{
    halo_op_desc inner;
    halo_candidate c = *choice;
    HL_BUG_UNLESS(widen(d, &inner, p->piece, &p->pieces, &p->own));
    c.widened = false;
    c.scratch -= p->own;
    for (int i = 0; i < p->pieces; i++) HL_TRY(plan_piece(p->dev, d, &inner, &p->piece[i]));
    return p->inner_class->plan(p->dev, &inner, &c, &p->inner);
}

static halo_status widened_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    widened_plan *p;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "a plan", &p));
    p->dev = dev;
    p->inner_class = dev->classes[d->kind];
    halo_status st = plan_all(p, d, choice);
    if (st != HALO_OK)
        widened_destroy((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

static halo_status convert(const widened_plan *p, const halo_op_args *args, halo_plan *plan, void *from, void *to)
{
    halo_op_args a = {.record = args->record, .queue = args->queue};
    a.ptr[HALO_X] = from;
    a.ptr[HALO_Y] = to;
    return p->dev->classes[HALO_OP_COPY]->run(plan, &a);
}

static halo_status widened_run(halo_plan *plan, const halo_op_args *args)
{
    const widened_plan *p = (const widened_plan *)plan;
    halo_op_args inner = *args;
    char *scratch = args->scratch;
    for (int i = 0; i < p->pieces; i++) {
        const piece *k = &p->piece[i];
        inner.ptr[k->role] = scratch + k->offset;
        if (k->padded) HL_TRY(p->dev->ops->fill(p->dev, inner.ptr[k->role], 0, k->bytes, args->queue));
        if (k->widen) HL_TRY(convert(p, args, k->widen, args->ptr[k->role], inner.ptr[k->role]));
    }
    inner.scratch = scratch + p->own;
    HL_TRY(p->inner_class->run(p->inner, &inner));
    for (int i = 0; i < p->pieces; i++) {
        const piece *k = &p->piece[i];
        if (k->round) HL_TRY(convert(p, args, k->round, inner.ptr[k->role], args->ptr[k->role]));
    }
    return HALO_OK;
}

const halo_op_class hl_widened = {
    .kind = HALO_OP_KINDS, .candidates = widened_candidates, .plan = widened_make, .run = widened_run, .destroy = widened_destroy};
