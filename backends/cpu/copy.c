/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c -- a box to a box of equal extents: layout and type conversion, sums, flattening of volumes to vectors and back, flat casts.
 *
 *   copy       y = x, or y += x                         any types, any layouts
 *   flatten    y[n, f] = x[n,c,d,h,w]                   f counts (c,d,h,w) or (d,h,w,c)
 *   unflatten  dx[n,c,d,h,w] = dy[n, f], or +=
 *   cast       flat copy between types
 *
 * Same layout: whole runs (memcpy, an addition, or a vector conversion between f32 and the 16-bit types). Other layouts in f32: tiles of up to
 * 16 channels by a row of w, one side of which is contiguous. Anything else: rows through double.
 */
#include "classes.h"
#include "kern/kern.h"
#include "rows.h"
#include "runs.h"

hl_side hl_side_of(const halo_operand *op) { return (hl_side){op->dtype, hl_operand_strides(op), hl_box_offset(op)}; }

bool hl_side_of_vector(const halo_operand *op, const int64_t ext[HALO_DIMS], bool channels_last, hl_side *side)
{
    halo_operand rows, volume;
    if (!hl_vector_rows(op, &rows)) return false;
    volume = hl_operand_whole(op->dtype, channels_last ? HALO_NDHWC : HALO_NCDHW, ext);
    *side = (hl_side){op->dtype, hl_operand_strides(&volume), hl_box_offset(&rows)};
    side->t.s[HALO_N] = rows.alloc[HALO_W];
    return true;
}

/* ------------------------------------------------------------------------------------------------ any two arrangements */

typedef struct sides {
    const int64_t *ext;
    hl_side x, y;
    const void *xp;
    void *yp;
    bool accumulate;
    int64_t tile; /* channels of a piece of work */
} sides;

enum { CHUNK = 256, TILE = 16 };

static int64_t channel_step(const hl_side *s) { return s->t.block > 1 ? 1 : s->t.s[HALO_C]; }

/* y[w, c] = x[w, c] for a tile of channels; the innermost loop runs where the output is contiguous. */
static void tile_f32(const float *x, int64_t xw, int64_t xc, float *y, int64_t yw, int64_t yc, int64_t nw, int64_t nc, bool accumulate)
{
    if (yw == 1)
        for (int64_t c = 0; c < nc; c++)
            for (int64_t w = 0; w < nw; w++) y[c * yc + w] = x[w * xw + c * xc] + (accumulate ? y[c * yc + w] : 0.0f);
    else
        for (int64_t w = 0; w < nw; w++)
            for (int64_t c = 0; c < nc; c++) y[w * yw + c * yc] = x[w * xw + c * xc] + (accumulate ? y[w * yw + c * yc] : 0.0f);
}

static void row_any(const sides *s, int64_t from, int64_t to)
{
    double a[CHUNK], b[CHUNK];
    int64_t xw = s->x.t.s[HALO_W], yw = s->y.t.s[HALO_W];
    for (int64_t w = 0; w < s->ext[HALO_W]; w += CHUNK) {
        int n = (int)hl_min64(CHUNK, s->ext[HALO_W] - w);
        hl_row_load(s->x.type, s->xp, from + w * xw, xw, n, a);
        if (s->accumulate) {
            hl_row_load(s->y.type, s->yp, to + w * yw, yw, n, b);
            for (int i = 0; i < n; i++) a[i] += b[i];
        }
        hl_row_store(s->y.type, s->yp, to + w * yw, yw, n, a);
    }
}

/* Piece i: (n, d, h, tile of channels), tiles innermost. */
static void piece(void *arg, int64_t i)
{
    const sides *s = arg;
    const int64_t *e = s->ext;
    int64_t tiles = hl_div_up(e[HALO_C], s->tile), c = i % tiles * s->tile, row = i / tiles;
    int64_t h = row % e[HALO_H], d = row / e[HALO_H] % e[HALO_D], n = row / e[HALO_H] / e[HALO_D], nc = hl_min64(s->tile, e[HALO_C] - c);
    int64_t from = s->x.offset + hl_offset(&s->x.t, n, c, d, h, 0), to = s->y.offset + hl_offset(&s->y.t, n, c, d, h, 0);
    int64_t xc = channel_step(&s->x), yc = channel_step(&s->y);
    if (s->x.type == HALO_F32 && s->y.type == HALO_F32)
        tile_f32((const float *)s->xp + from, s->x.t.s[HALO_W], xc, (float *)s->yp + to, s->y.t.s[HALO_W], yc, e[HALO_W], nc, s->accumulate);
    else
        for (int64_t k = 0; k < nc; k++) row_any(s, from + k * xc, to + k * yc);
}

void hl_copy_sides(const hl_cpu_device *dev, const int64_t ext[HALO_DIMS], const hl_side *x, const void *xp, const hl_side *y, void *yp,
                   bool accumulate)
{
    sides s = {ext, *x, *y, xp, yp, accumulate, TILE};
    if (x->t.block == 8 || y->t.block == 8) s.tile = 8; /* a tile must not leave a block; ndhwc has one block of all channels */
    int64_t pieces = ext[HALO_N] * ext[HALO_D] * ext[HALO_H] * hl_div_up(ext[HALO_C], s.tile);
    bool small = pieces * s.tile * ext[HALO_W] < 16384;
    for (int64_t i = 0; small && i < pieces; i++) piece(&s, i);
    if (!small) hl_parallel(dev, pieces, piece, &s);
}

/* ---------------------------------------------------------------------------------------------------------- operations */

typedef struct copy_plan {
    hl_cpu_plan super;
    halo_role from, to;
    int64_t ext[HALO_DIMS];
    hl_side x, y;
    hl_run_sets runs; /* sets = 0: by pieces */
    int64_t parts;
} copy_plan;

typedef struct copy_run {
    const copy_plan *p;
    const char *x;
    char *y;
} copy_run;

static bool runs_do(halo_dtype x, halo_dtype y, bool accumulate)
{
    if (accumulate) return x == HALO_F32 && y == HALO_F32;
    bool half = (x == HALO_F32 && (y == HALO_F16 || y == HALO_BF16)) || (y == HALO_F32 && (x == HALO_F16 || x == HALO_BF16));
    return x == y || half;
}

static void convert(const hl_kern *kern, halo_dtype from, halo_dtype to, const void *x, void *y, int64_t n)
{
    if (from == to)
        memcpy(y, x, (size_t)n * hl_dtype_size(from));
    else if (to == HALO_F16)
        kern->f32_to_f16(x, y, n);
    else if (to == HALO_BF16)
        kern->f32_to_bf16(x, y, n);
    else if (from == HALO_F16)
        kern->f16_to_f32(x, y, n);
    else
        kern->bf16_to_f32(x, y, n);
}

static void copy_part(void *arg, int64_t i)
{
    const copy_run *r = arg;
    const hl_kern *kern = r->p->super.dev->kern;
    halo_dtype from = r->p->x.type, to = r->p->y.type;
    int64_t xs = (int64_t)hl_dtype_size(from), ys = (int64_t)hl_dtype_size(to), at[HL_RUN_OPERANDS], n;
    for (int s = 0; s < r->p->runs.sets; s++) {
        const hl_runs *runs = &r->p->runs.set[s];
        hl_walk w = hl_walk_begin(runs, hl_runs_part(runs, hl_runs_unit(runs), r->p->parts, i));
        while ((n = hl_walk_next(&w, INT64_MAX, at)) > 0) {
            const void *x = r->x + at[0] * xs;
            void *y = r->y + at[1] * ys;
            if (r->p->super.d.accumulate)
                kern->add(x, y, y, n);
            else
                convert(kern, from, to, x, y, n);
        }
    }
}

static halo_status copy_do(halo_plan *plan, const halo_op_args *args)
{
    copy_plan *p = (copy_plan *)plan;
    copy_run r = {p, args->ptr[p->from], args->ptr[p->to]};
    if (p->runs.sets)
        hl_parallel(p->super.dev, p->parts, copy_part, &r);
    else
        hl_copy_sides(p->super.dev, p->ext, &p->x, r.x, &p->y, r.y, p->super.d.accumulate);
    return HALO_OK;
}

/* The sides of the operation; false when it is not one that we do. */
static bool sides_of(const halo_op_desc *d, copy_plan *p)
{
    bool back = d->kind == HALO_OP_UNFLATTEN, vector = back || d->kind == HALO_OP_FLATTEN;
    p->from = back ? HALO_DY : HALO_X;
    p->to = back ? HALO_DX : HALO_Y;
    const halo_operand *x = &d->t[p->from], *y = &d->t[p->to], *volume = back ? y : x;
    if (!hl_operand_valid(x) || !hl_operand_valid(y) || x->ext[HALO_N] != y->ext[HALO_N]) return false;
    memcpy(p->ext, volume->ext, sizeof(p->ext));
    p->x = hl_side_of(x);
    p->y = hl_side_of(y);
    if (!vector && hl_same_extents(x, y)) return true;
    if (hl_operand_box_elements(x) != hl_operand_box_elements(y)) return false;
    if (vector) return hl_side_of_vector(back ? x : y, p->ext, d->channels_last, back ? &p->x : &p->y);
    return d->kind == HALO_OP_CAST && hl_side_of_vector(y, p->ext, false, &p->y);
}

static int copy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    copy_plan p;
    if (!sides_of(d, &p)) return 0;
    return hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(&d->t[p.from]), out);
}

static halo_status copy_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    copy_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    sides_of(d, p);
    const halo_operand *ops[] = {&d->t[p->from], &d->t[p->to]};
    bool same = hl_same_extents(ops[0], ops[1]) && d->kind != HALO_OP_FLATTEN && d->kind != HALO_OP_UNFLATTEN;
    if (same && runs_do(p->x.type, p->y.type, d->accumulate)) p->runs = hl_runs_make(ops, 2, true);
    if (p->runs.sets) p->parts = hl_parts(p->super.dev, hl_runs_elements(&p->runs.set[0]));
    *out = (halo_plan *)p;
    return HALO_OK;
}

#define COPY(name, op)                                                                                       \
    const halo_op_class name = {                                                                             \
        .kind = op, .candidates = copy_candidates, .plan = copy_make, .run = copy_do, .destroy = hl_cpu_plan_free}

COPY(hl_cpu_copy, HALO_OP_COPY);
COPY(hl_cpu_cast, HALO_OP_CAST);
COPY(hl_cpu_flatten, HALO_OP_FLATTEN);
COPY(hl_cpu_unflatten, HALO_OP_UNFLATTEN);
