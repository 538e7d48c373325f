/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/grid.h"

hl_grid hl_grid_one(void)
{
    return (hl_grid){.data = 1, .part = {1, 1, 1}};
}

static void place(hl_grid *g, int64_t number)
{
    for (int a = 2; a >= 0; number /= g->part[a--]) g->at[a] = number % g->part[a];
}

hl_grid hl_grid_of(int64_t ranks, const int64_t part[3], int64_t rank)
{
    hl_grid g = {.part = {part[0], part[1], part[2]}};
    int64_t group = hl_grid_group(&g);
    HL_BUG_UNLESS(ranks % group == 0 && rank < ranks);
    g.data = ranks / group;
    g.data_at = rank / group;
    place(&g, rank % group);
    return g;
}

int64_t hl_grid_group(const hl_grid *g)
{
    return g->part[0] * g->part[1] * g->part[2];
}

int64_t hl_grid_number_at(const hl_grid *g, const int64_t at[3])
{
    int64_t number = 0;
    for (int a = 0; a < 3; a++) number = number * g->part[a] + ((at[a] % g->part[a]) + g->part[a]) % g->part[a];
    return number;
}

int64_t hl_grid_number(const hl_grid *g)
{
    return hl_grid_number_at(g, g->at);
}

hl_grid hl_grid_peer(const hl_grid *g, int64_t number)
{
    hl_grid peer = *g;
    place(&peer, number);
    return peer;
}

bool hl_grid_split(const hl_grid *g)
{
    return hl_grid_group(g) > 1;
}
