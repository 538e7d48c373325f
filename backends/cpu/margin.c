/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margin.c -- fills the margin of an operand from the operand itself: zeros, or the periodic image. The definition is in backend.h.
 *
 * Work is dealt by rows (n, channel block, d, h) of box and margin. Forward, a row is written by its own piece and read from its source row, which
 * nobody writes there: a source has no wrapped coordinate. `reverse` turns it round: the piece of a source row collects all rows that wrap to it, in
 * a fixed order, and clears them; so no two pieces write one cell, and sums do not depend on threads.
 */
#include "classes.h"
#include "kern/kern.h"

typedef enum fate { INSIDE, KEEP, WRAP, ZERO } fate;

typedef struct margin_plan {
    hl_cpu_plan super;
    hl_strides t;
    int64_t first;       /* element of the box's first cell */
    int64_t blocks;      /* channel blocks */
    int64_t cell, lanes; /* elements from cell to cell, and of a cell that is ours (of all blocks but the last) */
    int64_t last_lanes;
    size_t size; /* of an element */
} margin_plan;

/* A row: cells -margin <= w < ext + margin; `lanes` elements of each. */
typedef struct row {
    const margin_plan *p;
    char *base; /* of cell w = 0 */
    int64_t lanes;
} row;

static const halo_operand *operand(const margin_plan *p) { return &p->super.d.t[HALO_Y]; }
static int64_t extent(const margin_plan *p, int k) { return operand(p)->ext[HALO_D + k]; }
static int64_t margin(const margin_plan *p, int k, int side) { return operand(p)->margin[k][side]; }

static fate fate_of(const margin_plan *p, int k, int64_t i)
{
    if (i >= 0 && i < extent(p, k)) return INSIDE;
    halo_margin_mode mode = p->super.d.margin_mode[k][i >= 0];
    return mode == HALO_MARGIN_ZERO ? ZERO : mode == HALO_MARGIN_WRAP ? WRAP : KEEP;
}

static int64_t wrapped(const margin_plan *p, int k, int64_t i)
{
    int64_t ext = extent(p, k);
    return fate_of(p, k, i) == WRAP ? (i % ext + ext) % ext : i;
}

static char *at(const row *r, int64_t w) { return r->base + w * r->p->cell * (int64_t)r->p->size; }

/* The three things that happen to `count` cells from w on. */
static void clear_cells(const row *r, int64_t w, int64_t count)
{
    bool whole = r->lanes == r->p->cell;
    for (int64_t i = 0; i < (whole ? 1 : count); i++) memset(at(r, w + i), 0, (size_t)(r->lanes * (whole ? count : 1)) * r->p->size);
}

static void copy_cells(const row *to, int64_t w, const row *from, int64_t v, int64_t count)
{
    bool whole = to->lanes == to->p->cell;
    for (int64_t i = 0; i < (whole ? 1 : count); i++)
        memcpy(at(to, w + i), at(from, v + i), (size_t)(to->lanes * (whole ? count : 1)) * to->p->size);
}

/* to[w] += from[v]; then from[v] = 0 */
static void take_cells(const row *to, int64_t w, const row *from, int64_t v, int64_t count)
{
    bool whole = to->lanes == to->p->cell;
    for (int64_t i = 0; i < (whole ? 1 : count); i++) {
        float *y = (float *)(void *)at(to, w + i);
        to->p->super.dev->kern->add(y, (const float *)(const void *)at(from, v + i), y, to->lanes * (whole ? count : 1));
    }
    clear_cells(from, v, count);
}

static row row_at(const margin_plan *p, char *y, int64_t n, int64_t block, int64_t d, int64_t h)
{
    const int64_t *s = p->t.s;
    int64_t element = p->first + n * s[HALO_N] + block * s[HALO_C] + d * s[HALO_D] + h * s[HALO_H];
    return (row){p, y + element * (int64_t)p->size, block == p->blocks - 1 ? p->last_lanes : p->lanes};
}

/* One side of w. `moved`: the row is not its own source. */
static void fill_side(const row *r, const row *from, bool moved, int side)
{
    const margin_plan *p = r->p;
    int64_t count = margin(p, 2, side), lo = side ? extent(p, 2) : -count;
    if (count == 0) return;
    fate f = fate_of(p, 2, lo);
    if (f == ZERO) clear_cells(r, lo, count);
    if (f == KEEP && moved) copy_cells(r, lo, from, lo, count);
    for (int64_t w = lo; f == WRAP && w < lo + count; w++) copy_cells(r, w, from, wrapped(p, 2, w), 1);
}

static void return_side(const row *r, const row *to, bool moved, int side)
{
    const margin_plan *p = r->p;
    int64_t count = margin(p, 2, side), lo = side ? extent(p, 2) : -count;
    if (count == 0) return;
    fate f = fate_of(p, 2, lo);
    if (f == ZERO) clear_cells(r, lo, count);
    if (f == KEEP && moved) take_cells(to, lo, r, lo, count);
    for (int64_t w = lo; f == WRAP && w < lo + count; w++) take_cells(to, wrapped(p, 2, w), r, w, 1);
}

static void fill_row(const row *r, const row *from, bool moved)
{
    if (moved) copy_cells(r, 0, from, 0, extent(r->p, 2));
    fill_side(r, from, moved, 0);
    fill_side(r, from, moved, 1);
}

static void return_row(const row *r, const row *to, bool moved)
{
    if (moved) take_cells(to, 0, r, 0, extent(r->p, 2));
    return_side(r, to, moved, 0);
    return_side(r, to, moved, 1);
}

/* First index >= -margin that wraps to i; then in steps of the extent. Only i itself where i is no inner cell. */
static int64_t first_image(const margin_plan *p, int k, int64_t i)
{
    int64_t ext = extent(p, k);
    if (fate_of(p, k, i) != INSIDE) return i;
    return i - (i + margin(p, k, 0)) / ext * ext;
}

static void collect(const margin_plan *p, char *y, int64_t n, int64_t block, int64_t d, int64_t h)
{
    row to = row_at(p, y, n, block, d, h);
    for (int64_t e = first_image(p, 0, d); e < extent(p, 0) + margin(p, 0, 1); e += extent(p, 0)) {
        if (wrapped(p, 0, e) != d) continue;
        for (int64_t g = first_image(p, 1, h); g < extent(p, 1) + margin(p, 1, 1); g += extent(p, 1)) {
            if (wrapped(p, 1, g) != h) continue;
            row r = row_at(p, y, n, block, e, g);
            return_row(&r, &to, e != d || g != h);
        }
    }
}

static int64_t span(const margin_plan *p, int k) { return extent(p, k) + margin(p, k, 0) + margin(p, k, 1); }

typedef struct margin_run {
    const margin_plan *p;
    char *y;
} margin_run;

static void margin_piece(void *arg, int64_t i)
{
    const margin_run *run = arg;
    const margin_plan *p = run->p;
    int64_t h = i % span(p, 1) - margin(p, 1, 0), rest = i / span(p, 1), d = rest % span(p, 0) - margin(p, 0, 0);
    int64_t block = rest / span(p, 0) % p->blocks, n = rest / span(p, 0) / p->blocks;
    fate fd = fate_of(p, 0, d), fh = fate_of(p, 1, h);
    row r = row_at(p, run->y, n, block, d, h);
    if (fd == ZERO || fh == ZERO) {
        clear_cells(&r, -margin(p, 2, 0), span(p, 2));
    } else if (!p->super.d.reverse) {
        row from = row_at(p, run->y, n, block, wrapped(p, 0, d), wrapped(p, 1, h));
        fill_row(&r, &from, fd == WRAP || fh == WRAP);
    } else if (fd != WRAP && fh != WRAP) {
        collect(p, run->y, n, block, d, h);
    }
}

static bool modes_valid(const halo_op_desc *d)
{
    for (int k = 0; k < 3; k++)
        for (int side = 0; side < 2; side++)
            if ((unsigned)d->margin_mode[k][side] > HALO_MARGIN_KEEP) return false;
    return true;
}

static int64_t pieces(const margin_plan *p) { return operand(p)->ext[HALO_N] * p->blocks * span(p, 0) * span(p, 1); }

static int margin_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *y = &d->t[HALO_Y];
    if (!hl_operand_valid(y) || !modes_valid(d) || (d->reverse && y->dtype != HALO_F32)) return 0;
    int64_t block = y->layout == HALO_NDHWC ? y->ext[HALO_C] : hl_layout_block(y->layout), lines = y->ext[HALO_N] * hl_div_up(y->ext[HALO_C], block);
    for (int k = 0; k < 2; k++) lines *= y->ext[HALO_D + k] + y->margin[k][0] + y->margin[k][1];
    return hl_cpu_candidate(dev, "cpu", (double)lines, out);
}

static halo_status margin_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    margin_plan *p;
    const halo_operand *y = &d->t[HALO_Y];
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    int64_t block = y->layout == HALO_NDHWC ? y->ext[HALO_C] : hl_layout_block(y->layout);
    p->t = hl_operand_strides(y);
    p->first = hl_box_offset(y);
    p->blocks = hl_div_up(y->ext[HALO_C], block);
    p->cell = p->t.s[HALO_W];
    p->lanes = block;
    p->last_lanes = y->ext[HALO_C] - (p->blocks - 1) * block;
    if (y->lo[HALO_C] + y->ext[HALO_C] == y->alloc[HALO_C] && y->layout != HALO_NDHWC) p->last_lanes = block; /* padding lanes: zeros anyway */
    p->size = hl_dtype_size(y->dtype);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status margin_do(halo_plan *plan, const halo_op_args *args)
{
    const margin_plan *p = (const margin_plan *)plan;
    margin_run run = {p, args->ptr[HALO_Y]};
    hl_parallel(p->super.dev, pieces(p), margin_piece, &run);
    return HALO_OK;
}

const halo_op_class hl_cpu_margin = {.kind = HALO_OP_MARGIN,
                                     .candidates = margin_candidates,
                                     .plan = margin_make,
                                     .run = margin_do,
                                     .destroy = hl_cpu_plan_free};
