/* SPDX-License-Identifier: Apache-2.0 */
/* block.c -- the block algebra against counting: blocks tile a range, windows need and reach what an exhaustive search finds. */
#include "tensor/block.h"

#include "tests/tap.h"

/* Blocks follow one another, cover [0, n), differ by at most one, the larger first; the owner of every cell is the block that has it. */
static bool tiles(int64_t n, int64_t parts)
{
    int64_t at = 0, before = INT64_MAX;
    for (int64_t b = 0; b < parts; b++) {
        hl_range r = hl_block_range(n, parts, b);
        int64_t size = hl_range_len(r);
        if (r.lo != at || size > before || size < n / parts || size > n / parts + 1) return false;
        for (int64_t i = r.lo; i < r.hi; i++)
            if (hl_block_owner(n, parts, i) != b) return false;
        at = r.hi;
        before = size;
    }
    return at == n;
}

static void test_blocks(void)
{
    bool good = true;
    for (int64_t n = 1; n <= 40; n++)
        for (int64_t parts = 1; parts <= n; parts++) good = good && tiles(n, parts);
    tap_ok(good, "blocks tile every range up to 40 cells, the owner of each cell agrees");
    tap_ok(tiles(3, 5), "more blocks than cells: the last ones are empty");
    hl_range far = hl_block_range((int64_t)1 << 62, 3, 2);
    tap_ok(far.hi == (int64_t)1 << 62 && hl_block_owner((int64_t)1 << 62, 3, far.lo) == 2, "2^62 cells in 3 blocks");
}

/* How many windows fit, counted. */
static int64_t count_out(int64_t n, hl_window1 w, int64_t p_hi)
{
    int64_t out = 0;
    while (out * w.s - w.p + w.l * (w.k - 1) < n + p_hi) out++;
    return out;
}

static bool window_agrees(int64_t n, hl_window1 w, int64_t p_hi)
{
    int64_t outs = hl_window_out(n, w, p_hi);
    if (outs != count_out(n, w, p_hi)) return false;
    for (int64_t a = 0; a < outs; a++)
        for (int64_t b = a + 1; b <= outs; b++) {
            hl_range need = hl_window_need((hl_range){a, b}, w);
            if (need.lo != a * w.s - w.p || need.hi != (b - 1) * w.s - w.p + w.l * (w.k - 1) + 1) return false;
        }
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b <= n; b++) {
            hl_range reach = hl_window_reach((hl_range){a, b}, w, outs);
            for (int64_t o = 0; o < outs; o++) { /* no output outside `reach` reads a cell of [a, b) */
                bool reads = false;
                for (int64_t k = 0; k < w.k; k++)
                    reads = reads || (o * w.s - w.p + k * w.l >= a && o * w.s - w.p + k * w.l < b);
                if (reads && (o < reach.lo || o >= reach.hi)) return false;
            }
        }
    return true;
}

/* `reach` is as small as it can be where windows have no holes. */
static bool reach_is_tight(int64_t n, hl_window1 w)
{
    int64_t outs = hl_window_out(n, w, 0);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b <= n; b++) {
            hl_range reach = hl_window_reach((hl_range){a, b}, w, outs);
            for (int64_t o = reach.lo; o < reach.hi; o++) {
                hl_range need = hl_range_meet(hl_window_need((hl_range){o, o + 1}, w), (hl_range){a, b});
                if (w.l == 1 && hl_range_len(need) == 0) return false;
            }
        }
    return true;
}

static void test_windows(void)
{
    int failed = 0, tried = 0, loose = 0;
    for (int64_t n = 1; n <= 9; n++)
        for (int64_t k = 1; k <= 4; k++)
            for (int64_t s = 1; s <= 3; s++)
                for (int64_t l = 1; l <= 2; l++)
                    for (int64_t p = -1; p <= 3; p++, tried++) {
                        hl_window1 w = {k, s, p, l};
                        failed += !window_agrees(n, w, tried % 3);
                        loose += !reach_is_tight(n, w);
                    }
    tap_ok(failed == 0, "output extents, needed and reached ranges of %d windows agree with counting (%d do not)",
           tried, failed);
    tap_ok(loose == 0, "the reached range has no output that reads nothing of it (%d have)", loose);
}

static void test_absurd(void)
{
    const int64_t huge = INT64_MAX / 2;
    tap_ok(hl_window_out(2, (hl_window1){5, 1, 0, 1}, 0) == 0, "a kernel larger than the volume: 0 outputs");
    tap_ok(hl_window_out(huge, (hl_window1){1, 1, huge, 1}, huge) == -1, "padding past 2^63: -1");
    tap_ok(hl_window_out(8, (hl_window1){huge, 1, 0, 3}, 0) == -1, "dilation past 2^63: -1");
    tap_ok(hl_window_out((int64_t)1 << 40, (hl_window1){3, 1, 1, 1}, 1) == (int64_t)1 << 40,
           "2^40 cells, same padding");
    tap_ok(hl_range_len(hl_range_meet((hl_range){0, 3}, (hl_range){5, 9})) == 0,
           "ranges that do not meet have length 0");
}

int main(void)
{
    test_blocks();
    test_windows();
    test_absurd();
    return tap_done();
}
