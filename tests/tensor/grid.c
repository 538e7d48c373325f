/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c -- processes laid out as data x d x h x w: places and numbers are each other's inverse, neighbours are each other's, blocks tile. */
#include "tensor/grid.h"
#include "tests/tap.h"

typedef struct result {
    int numbers, neighbours, peers, blocks;
} result;

/* One rank of a grid: what of it does not hold is counted. */
static void look(int64_t ranks, const int64_t part[3], int64_t rank, result *bad)
{
    hl_grid g = hl_grid_of(ranks, part, rank);
    int64_t group = hl_grid_group(&g), number = hl_grid_number(&g);
    bad->numbers += g.data_at * group + number != rank || g.data * group != ranks;
    bad->numbers += rank != ((g.data_at * part[0] + g.at[0]) * part[1] + g.at[1]) * part[2] + g.at[2];
    for (int a = 0; a < 3; a++)
        for (int64_t by = -2; by <= 2; by++) {
            int64_t there[3] = {g.at[0], g.at[1], g.at[2]};
            there[a] += by;
            hl_grid n = hl_grid_peer(&g, hl_grid_number_at(&g, there));
            int64_t back[3] = {n.at[0], n.at[1], n.at[2]};
            back[a] -= by;
            bad->neighbours += n.data_at != g.data_at || hl_grid_number_at(&n, back) != number;
            bad->neighbours += ((n.at[a] - g.at[a] - by) % part[a]) != 0;
        }
    for (int64_t k = 0; k < group; k++) {
        hl_grid p = hl_grid_peer(&g, k), same = hl_grid_of(ranks, part, g.data_at * group + k);
        bad->peers += hl_grid_number(&p) != k || p.at[0] != same.at[0] || p.at[1] != same.at[1] || p.at[2] != same.at[2];
    }
    bad->peers += hl_grid_split(&g) != (group > 1);
}

/* Every cell of 7 x 5 x 3 belongs to exactly one of the group. */
static bool tiles(const int64_t part[3])
{
    const int64_t n[3] = {7, 5, 3};
    int owned[7][5][3] = {0};
    for (int64_t r = 0; r < part[0] * part[1] * part[2]; r++) {
        hl_grid g = hl_grid_of(part[0] * part[1] * part[2], part, r);
        hl_range d = hl_grid_range(&g, 0, n[0]), h = hl_grid_range(&g, 1, n[1]), w = hl_grid_range(&g, 2, n[2]);
        for (int64_t z = d.lo; z < d.hi; z++)
            for (int64_t y = h.lo; y < h.hi; y++)
                for (int64_t x = w.lo; x < w.hi; x++) owned[z][y][x]++;
    }
    for (int i = 0; i < 7 * 5 * 3; i++)
        if ((&owned[0][0][0])[i] != 1) return false;
    return true;
}

int main(void)
{
    result bad = {0};
    int ranks = 0;
    for (int64_t data = 1; data <= 3; data++)
        for (int64_t i = 0; i < 64; i++) {
            const int64_t part[3] = {1 + i / 16, 1 + i / 4 % 4, 1 + i % 4}, all = data * part[0] * part[1] * part[2];
            for (int64_t r = 0; r < all; r++, ranks++) look(all, part, r, &bad);
            bad.blocks += !tiles(part);
        }
    tap_ok(bad.numbers == 0, "places of %d ranks have their numbers (%d have not)", ranks, bad.numbers);
    tap_ok(bad.neighbours == 0, "neighbours across borders too are each other's (%d are not)", bad.neighbours);
    tap_ok(bad.peers == 0, "ranks of a group know each other (%d do not)", bad.peers);
    tap_ok(bad.blocks == 0, "blocks of a group tile a sample, where there are more blocks than cells too (%d do not)", bad.blocks);
    hl_grid one = hl_grid_one();
    tap_ok(!hl_grid_split(&one) && hl_grid_group(&one) == 1 && hl_grid_number(&one) == 0 && one.data == 1, "one process alone");
    return tap_done();
}
