/* SPDX-License-Identifier: Apache-2.0 */
/* cuboid.c -- boxes of a global array, each claim by counting cells one by one. */
#include "base/rng.h"
#include "tensor/cuboid.h"
#include "tests/check.h"
#include "tests/tap.h"

enum { MOST = 8, IMAGES = 500 };

static uint64_t drawn;

static int64_t draw(int64_t n) { return (int64_t)(hl_rng_uniform(3, HL_STREAM_TEST, drawn++, 0) * (double)n); }

static hl_cuboid draw_cuboid(const int64_t extent[HALO_DIMS], int64_t beyond)
{
    hl_cuboid b;
    for (int a = 0; a < HALO_DIMS; a++) {
        b.axis[a].lo = draw(extent[a] + 2 * beyond) - beyond;
        b.axis[a].hi = b.axis[a].lo + draw(extent[a] + beyond - b.axis[a].lo + 1);
    }
    return b;
}

static bool holds(const hl_cuboid *b, const int64_t cell[HALO_DIMS])
{
    for (int a = 0; a < HALO_DIMS; a++)
        if (cell[a] < b->axis[a].lo || cell[a] >= b->axis[a].hi) return false;
    return true;
}

/* The next cell of a box; false after the last. */
static bool next(const hl_cuboid *b, int64_t cell[HALO_DIMS])
{
    for (int a = HALO_DIMS - 1; a >= 0; a--) {
        if (++cell[a] < b->axis[a].hi) return true;
        cell[a] = b->axis[a].lo;
    }
    return false;
}

static void first(const hl_cuboid *b, int64_t cell[HALO_DIMS])
{
    for (int a = 0; a < HALO_DIMS; a++) cell[a] = b->axis[a].lo;
}

/* Each cell that `want` reaches is the image of the right cell of `have`, once, or none of its cells. */
static bool images_agree(void)
{
    int64_t extent[HALO_DIMS], cell[HALO_DIMS];
    bool periodic[HALO_DIMS];
    hl_image image[IMAGES];
    for (int a = 0; a < HALO_DIMS; a++) {
        extent[a] = 1 + draw(3);
        periodic[a] = draw(2);
    }
    hl_cuboid have = draw_cuboid(extent, 0), want = draw_cuboid(extent, 2);
    int n = hl_cuboid_images(&have, &want, extent, periodic, IMAGES, image);
    int64_t total = 0, counted = 0;
    if (n > IMAGES || n != hl_cuboid_images(&have, &want, extent, periodic, 0, NULL)) return false;
    for (int i = 0; i < n; i++) total += hl_cuboid_cells(&image[i].cells);
    if (hl_cuboid_cells(&want) == 0) return n == 0;
    first(&want, cell);
    do {
        int64_t home[HALO_DIMS];
        bool in = true;
        int found = 0;
        for (int a = 0; a < HALO_DIMS; a++) {
            home[a] = periodic[a] ? ((cell[a] % extent[a]) + extent[a]) % extent[a] : cell[a];
        }
        in = holds(&have, home);
        counted += in;
        for (int i = 0; i < n; i++) {
            int64_t there[HALO_DIMS];
            bool same = true;
            for (int a = 0; a < HALO_DIMS; a++) {
                there[a] = cell[a] - image[i].shift[a];
                same = same && there[a] == home[a];
            }
            if (same && holds(&image[i].cells, there)) found++;
        }
        if (found != in) return false;
    } while (next(&want, cell));
    return total == counted;
}

/* Cuts a box of the list in two until there are n. */
static void cut(const int64_t extent[HALO_DIMS], hl_cuboid *list, int n)
{
    list[0] = hl_cuboid_whole(extent);
    for (int i = 1; i < n; i++) {
        int k = (int)draw(i), a = (int)draw(HALO_DIMS);
        int64_t at = list[k].axis[a].lo + draw(hl_range_len(list[k].axis[a]) + 1);
        list[i] = list[k];
        list[k].axis[a].hi = list[i].axis[a].lo = at;
    }
}

/* Cuts, sometimes spoiled; the verdict and the cell that it names. */
static bool tiling_agrees(int seen[4])
{
    int64_t extent[HALO_DIMS], cell[HALO_DIMS], at[HALO_DIMS], outside = 0, twice = 0, none = 0;
    hl_cuboid list[MOST], whole;
    int n = 1 + (int)draw(MOST), who[2];
    for (int a = 0; a < HALO_DIMS; a++) extent[a] = 1 + draw(4);
    cut(extent, list, n);
    if (draw(2)) {
        hl_range *r = &list[draw(n)].axis[draw(HALO_DIMS)];
        *(draw(2) ? &r->lo : &r->hi) += draw(3) - 1;
    }
    whole = hl_cuboid_whole(extent);
    first(&whole, at);
    do {
        int held = 0;
        for (int i = 0; i < n; i++) held += holds(&list[i], at);
        twice += held > 1;
        none += held == 0;
    } while (next(&whole, at));
    for (int i = 0; i < n; i++) outside += hl_cuboid_cells(&list[i]) > 0 && !hl_cuboid_inside(&list[i], &whole);
    hl_tiling got = hl_cuboid_tiling(list, n, extent, who, cell);
    seen[got]++;
    switch (got) {
    case HL_TILING_GOOD: return outside + twice + none == 0;
    case HL_TILING_OUTSIDE: return outside > 0 && holds(&list[who[0]], cell) && !holds(&whole, cell);
    case HL_TILING_OVERLAP: return twice > 0 && who[0] != who[1] && holds(&list[who[0]], cell) && holds(&list[who[1]], cell);
    default: break;
    }
    for (int i = 0; i < n; i++)
        if (holds(&list[i], cell)) return false;
    return none > 0 && holds(&whole, cell);
}

int main(void)
{
    int bad = 0;
    int seen[4] = {0};
    for (int i = 0; i < 500; i++) bad += !images_agree();
    tap_ok(bad == 0, "what one box takes of another, across periodic borders too: 500 cases by counting (%d differ)", bad);
    bad = 0;
    for (int i = 0; i < 2000; i++) bad += !tiling_agrees(seen);
    tap_ok(bad == 0, "boxes that tile an array, reach out of it, overlap or leave holes: 2000 cases by counting (%d differ)", bad);
    tap_ok(seen[0] > 100 && seen[1] > 50 && seen[2] > 20 && seen[3] > 50, "among them %d good, %d outside, %d overlaps, %d holes", seen[0], seen[1], seen[2], seen[3]);
    const int64_t huge[HALO_DIMS] = {1, 1, (int64_t)1 << 20, (int64_t)1 << 20, (int64_t)1 << 20};
    hl_cuboid whole = hl_cuboid_whole(huge);
    tap_ok(hl_cuboid_cells(&whole) == (int64_t)1 << 60, "an array of 2^60 cells");
    return tap_done();
}
