/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/block.h"

hl_range hl_range_meet(hl_range a, hl_range b)
{
    hl_range r = {hl_max64(a.lo, b.lo), hl_min64(a.hi, b.hi)};
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

hl_range hl_block_range(int64_t n, int64_t parts, int64_t index)
{
    int64_t small = n / parts, larger = n % parts;
    int64_t lo = index * small + hl_min64(index, larger);
    return (hl_range){lo, lo + small + (index < larger ? 1 : 0)};
}

int64_t hl_block_owner(int64_t n, int64_t parts, int64_t i)
{
    int64_t small = n / parts, larger = n % parts, in_larger = larger * (small + 1);
    return i < in_larger ? i / (small + 1) : larger + (i - in_larger) / small;
}

int64_t hl_window_out(int64_t n, hl_window1 w, int64_t p_hi)
{
    int64_t padded, span;
    if (!hl_add64(n, w.p, &padded) || !hl_add64(padded, p_hi, &padded) || !hl_mul64(w.l, w.k - 1, &span)) return -1;
    if (!hl_add64(span, 1, &span)) return -1;
    return padded < span ? 0 : (padded - span) / w.s + 1;
}

hl_range hl_window_need(hl_range out, hl_window1 w)
{
    return (hl_range){out.lo * w.s - w.p, (out.hi - 1) * w.s - w.p + w.l * (w.k - 1) + 1};
}

/* Smallest o with o s - p + l (k-1) >= in.lo, largest with o s - p <= in.hi - 1. */
hl_range hl_window_reach(hl_range in, hl_window1 w, int64_t n_out)
{
    int64_t first = in.lo + w.p - w.l * (w.k - 1), last = in.hi - 1 + w.p;
    hl_range r = {first <= 0 ? 0 : hl_div_up(first, w.s), last < 0 ? 0 : last / w.s + 1};
    return hl_range_meet(r, (hl_range){0, n_out});
}
