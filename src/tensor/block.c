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

hl_sweep hl_sweep_of(hl_window1 w, int64_t n, int64_t m, bool wraps, int64_t parts, int64_t index)
{
    return (hl_sweep){.w = w, .n = n, .m = m, .x = hl_block_range(n, parts, index), .y = hl_block_range(m, parts, index), .wraps = wraps};
}

int64_t hl_sweep_pad(const hl_sweep *s) { return s->w.p + s->x.lo - s->y.lo * s->w.s; }

bool hl_sweep_even(const hl_sweep *s) { return s->wraps && s->m * s->w.s == s->n; }

/* What `want` has beyond `have`, within [0, n) unless the axis wraps. */
static void beyond(hl_range want, hl_range have, int64_t n, bool wraps, int64_t margin[2])
{
    if (!wraps) want = hl_range_meet(want, (hl_range){0, n});
    margin[0] = hl_max64(0, have.lo - want.lo);
    margin[1] = hl_max64(0, want.hi - have.hi);
    if (want.hi <= want.lo) margin[0] = margin[1] = 0;
}

void hl_sweep_need(const hl_sweep *s, int64_t margin[2]) { beyond(hl_window_need(s->y, s->w), s->x, s->n, s->wraps, margin); }

static int64_t div_down(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* Outputs o with o s - p <= x < o s - p + l (k-1) + 1 for some x of the block: hl_window_reach without a border. */
void hl_sweep_reach(const hl_sweep *s, int64_t margin[2])
{
    int64_t first = s->x.lo + s->w.p - s->w.l * (s->w.k - 1), last = s->x.hi - 1 + s->w.p;
    beyond((hl_range){-div_down(-first, s->w.s), div_down(last, s->w.s) + 1}, s->y, s->m, hl_sweep_even(s), margin);
}

/* margin <= the blocks of the neighbours of block `index` of an axis of n cells. */
static bool held(const int64_t margin[2], int64_t n, int64_t parts, int64_t index)
{
    return margin[0] <= hl_range_len(hl_block_range(n, parts, (index + parts - 1) % parts)) &&
           margin[1] <= hl_range_len(hl_block_range(n, parts, (index + 1) % parts));
}

bool hl_sweep_fits(hl_window1 w, int64_t n, int64_t m, bool wraps, int64_t parts, bool reach)
{
    int64_t margin[2];
    if (parts == 1) return true;
    if (n < parts || m < parts) return false;
    for (int64_t i = 0; i < parts; i++) {
        hl_sweep s = hl_sweep_of(w, n, m, wraps, parts, i);
        hl_sweep_need(&s, margin);
        if (!held(margin, n, parts, i)) return false;
        hl_sweep_reach(&s, margin);
        if (reach && !held(margin, m, parts, i)) return false;
    }
    return true;
}
