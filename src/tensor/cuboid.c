/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/cuboid.h"

hl_cuboid hl_cuboid_whole(const int64_t extent[HALO_DIMS])
{
    hl_cuboid b;
    for (int a = 0; a < HALO_DIMS; a++) b.axis[a] = (hl_range){0, extent[a]};
    return b;
}

int64_t hl_cuboid_cells(const hl_cuboid *b)
{
    int64_t n = 1;
    for (int a = 0; a < HALO_DIMS; a++) n *= hl_range_len(b->axis[a]);
    return n;
}

hl_cuboid hl_cuboid_meet(const hl_cuboid *a, const hl_cuboid *b)
{
    hl_cuboid m;
    for (int k = 0; k < HALO_DIMS; k++) m.axis[k] = hl_range_meet(a->axis[k], b->axis[k]);
    return m;
}

bool hl_cuboid_equal(const hl_cuboid *a, const hl_cuboid *b)
{
    for (int k = 0; k < HALO_DIMS; k++)
        if (a->axis[k].lo != b->axis[k].lo || a->axis[k].hi != b->axis[k].hi) return false;
    return true;
}

bool hl_cuboid_inside(const hl_cuboid *a, const hl_cuboid *b)
{
    hl_cuboid m = hl_cuboid_meet(a, b);
    return hl_cuboid_cells(a) == hl_cuboid_cells(&m);
}

/* ---------------------------------------------------------------------------------------------------------- images */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Repetitions of the array that `want` reaches: their numbers along each axis. */
static void repetitions(const hl_cuboid *want, const int64_t *extent, const bool *periodic, hl_range *k)
{
    for (int a = 0; a < HALO_DIMS; a++) {
        k[a] = (hl_range){0, 1};
        if (periodic[a] && hl_range_len(want->axis[a]) > 0) k[a] = (hl_range){floor_div(want->axis[a].lo, extent[a]), floor_div(want->axis[a].hi - 1, extent[a]) + 1};
    }
}

static bool next(int64_t at[HALO_DIMS], const hl_range *k)
{
    for (int a = HALO_DIMS - 1; a >= 0; a--) {
        if (++at[a] < k[a].hi) return true;
        at[a] = k[a].lo;
    }
    return false;
}

int hl_cuboid_images(const hl_cuboid *have, const hl_cuboid *want, const int64_t extent[HALO_DIMS], const bool periodic[HALO_DIMS], int room, hl_image *image)
{
    hl_range k[HALO_DIMS];
    int64_t at[HALO_DIMS];
    int n = 0;
    repetitions(want, extent, periodic, k);
    for (int a = 0; a < HALO_DIMS; a++) at[a] = k[a].lo;
    do {
        hl_image i;
        for (int a = 0; a < HALO_DIMS; a++) {
            i.shift[a] = at[a] * extent[a];
            i.cells.axis[a] = hl_range_meet(have->axis[a], (hl_range){want->axis[a].lo - i.shift[a], want->axis[a].hi - i.shift[a]});
        }
        if (hl_cuboid_cells(&i.cells) == 0) continue;
        if (n < room) image[n] = i;
        n++;
    } while (next(at, k));
    return n;
}

/* ---------------------------------------------------------------------------------------------------------- tiling */

static void corner(const hl_cuboid *b, int64_t cell[HALO_DIMS])
{
    for (int a = 0; a < HALO_DIMS; a++) cell[a] = b->axis[a].lo;
}

/* A cell of `box` in none of the list: what the first box that meets it leaves is at most two slabs along each axis, each looked at in the same way. */
static bool find_hole(hl_cuboid box, const hl_cuboid *list, int n, int64_t cell[HALO_DIMS])
{
    for (int i = 0; i < n; i++) {
        hl_cuboid meet = hl_cuboid_meet(&box, &list[i]);
        if (hl_cuboid_cells(&meet) == 0) continue;
        for (int a = 0; a < HALO_DIMS; a++) {
            hl_cuboid below = box, above = box;
            below.axis[a].hi = meet.axis[a].lo;
            above.axis[a].lo = meet.axis[a].hi;
            if (hl_cuboid_cells(&below) > 0 && find_hole(below, list + i + 1, n - i - 1, cell)) return true;
            if (hl_cuboid_cells(&above) > 0 && find_hole(above, list + i + 1, n - i - 1, cell)) return true;
            box.axis[a] = meet.axis[a];
        }
        return false;
    }
    corner(&box, cell);
    return true;
}

static bool outside(const hl_cuboid *b, const hl_cuboid *whole, int64_t cell[HALO_DIMS])
{
    if (hl_cuboid_cells(b) == 0 || hl_cuboid_inside(b, whole)) return false;
    corner(b, cell);
    for (int a = 0; a < HALO_DIMS; a++)
        if (b->axis[a].hi > whole->axis[a].hi) cell[a] = b->axis[a].hi - 1;
    return true;
}

hl_tiling hl_cuboid_tiling(const hl_cuboid *list, int n, const int64_t extent[HALO_DIMS], int who[2], int64_t cell[HALO_DIMS])
{
    hl_cuboid whole = hl_cuboid_whole(extent);
    int64_t cells = 0;
    for (int i = 0; i < n; i++) {
        who[0] = i;
        if (outside(&list[i], &whole, cell)) return HL_TILING_OUTSIDE;
        cells += hl_cuboid_cells(&list[i]);
    }
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            hl_cuboid meet = hl_cuboid_meet(&list[i], &list[k]);
            if (hl_cuboid_cells(&meet) == 0) continue;
            who[0] = i;
            who[1] = k;
            corner(&meet, cell);
            return HL_TILING_OVERLAP;
        }
    if (cells == hl_cuboid_cells(&whole)) return HL_TILING_GOOD;
    HL_BUG_UNLESS(find_hole(whole, list, n, cell));
    return HL_TILING_HOLE;
}
