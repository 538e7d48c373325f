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

#endif
