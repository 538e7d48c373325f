/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h -- who owns what, who needs what: pure functions of (n, parts, index), no communication. One dimension at a time.
 *
 * A range is [lo, hi). Extent n is dealt to `parts` blocks, the first n % parts of them one larger.
 */
#ifndef HL_BLOCK_H
#define HL_BLOCK_H

#include "base/base.h"

typedef struct hl_range { int64_t lo, hi; } hl_range;

static inline int64_t hl_range_len(hl_range r) { return r.hi > r.lo ? r.hi - r.lo : 0; }
hl_range hl_range_meet(hl_range a, hl_range b);

/* Range of block `index`. */
hl_range hl_block_range(int64_t n, int64_t parts, int64_t index);
/* Which block owns cell i. */
int64_t hl_block_owner(int64_t n, int64_t parts, int64_t i);

/* One window dimension: kernel k, stride s, padding before p, dilation l. */
typedef struct hl_window1 { int64_t k, s, p, l; } hl_window1;

/* Output extent for input n with padding p before and p_hi after: floor((n + p + p_hi - l (k-1) - 1) / s) + 1; 0 when not positive, -1 on overflow. */
int64_t hl_window_out(int64_t n, hl_window1 w, int64_t p_hi);
/* Input cells read by outputs `out` (may reach outside [0, n): that is the padding). */
hl_range hl_window_need(hl_range out, hl_window1 w);
/* Outputs that read any of the inputs `in`, cut to [0, n_out). */
hl_range hl_window_reach(hl_range in, hl_window1 w, int64_t n_out);

/*
 * A window between a long axis, the input of a convolution, and a short one, its output, when a process holds a block of each. A transposed convolution is
 * the same the other way round.
 */
typedef struct hl_sweep {
    hl_window1 w;
    int64_t n, m;  /* cells in all: long, short */
    hl_range x, y; /* the blocks: long, short */
    bool wraps;    /* beyond the long axis' border come the cells of the other side */
} hl_sweep;

/* The blocks of process `index` of `parts`. */
hl_sweep hl_sweep_of(hl_window1 w, int64_t n, int64_t m, bool wraps, int64_t parts, int64_t index);
/* The window's padding when cells are counted from the first of each block; may be negative. */
int64_t hl_sweep_pad(const hl_sweep *s);
/* The short axis continues beyond its border as the long one does: the windows tile it. */
bool hl_sweep_even(const hl_sweep *s);
/* Cells before and behind block x that the outputs of block y read, those of the padding not counted. */
void hl_sweep_need(const hl_sweep *s, int64_t margin[2]);
/* Cells before and behind block y whose windows hold cells of block x. */
void hl_sweep_reach(const hl_sweep *s, int64_t margin[2]);
/* Whether an axis can be cut so: no block is empty, and no process needs (reach: of the short axis too) more than its neighbours hold. */
bool hl_sweep_fits(hl_window1 w, int64_t n, int64_t m, bool wraps, int64_t parts, bool reach);

#endif
