/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c -- see nodes.h. */
#include "comm/nodes.h"

/* Ranks of r's node among the first n. */
static int count(const int *leader, int n, int r)
{
    int found = 0;
    for (int q = leader[r]; q < n; q++) found += leader[q] == leader[r];
    return found;
}

void hl_node_order(const int *leader, int ranks, int *order)
{
    int begin = 0; /* of the node whose leader is r */
    for (int r = 0; r < ranks; r++) {
        if (leader[r] != r) {
            order[r] = order[leader[r]] + count(leader, r, r);
            continue;
        }
        order[r] = begin;
        begin += count(leader, ranks, r);
    }
}

hl_node_place hl_node_find(const int *leader, int ranks, int rank)
{
    hl_node_place p = {.local = count(leader, rank, rank), .locals = count(leader, ranks, rank)};
    p.node_size = p.locals;
    for (int r = 0; r < ranks; r++) {
        if (leader[r] != r) continue;
        p.nodes++;
        p.node += r < leader[rank];
        if (count(leader, ranks, r) != p.locals) p.node_size = 0;
    }
    return p;
}

bool hl_grid_make(int ranks, int rank, const int part[3], hl_grid *grid)
{
    int64_t spatial = 1;
    for (int i = 0; i < 3; i++) {
        if (part[i] < 1) return false;
        spatial *= part[i];
        if (spatial > ranks) return false;
    }
    if (ranks % spatial != 0) return false;
    int inside = rank % (int)spatial;
    *grid = (hl_grid){.data = ranks / (int)spatial, .part = {part[0], part[1], part[2]}, .at_data = rank / (int)spatial};
    grid->at[2] = inside % part[2];
    grid->at[1] = inside / part[2] % part[1];
    grid->at[0] = inside / part[2] / part[1];
    return true;
}

int hl_grid_rank(const hl_grid *g, int at_data, const int at[3])
{
    return ((at_data * g->part[0] + at[0]) * g->part[1] + at[1]) * g->part[2] + at[2];
}

static int spatial_size(const hl_grid *g) { return g->part[0] * g->part[1] * g->part[2]; }

static int spatial_index(const hl_grid *g) { return hl_grid_rank(g, 0, g->at); }

hl_ranks hl_grid_spatial(const hl_grid *g)
{
    return (hl_ranks){g->at_data * spatial_size(g), 1, spatial_size(g), spatial_index(g)};
}

hl_ranks hl_grid_data(const hl_grid *g) { return (hl_ranks){spatial_index(g), spatial_size(g), g->data, g->at_data}; }
