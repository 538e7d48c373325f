/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h -- the ranks of a context as a grid (tensor/grid.h): those that hold one sample together, and those that hold the same part of other samples.
 */
#ifndef HL_TEAM_H
#define HL_TEAM_H

#include "base/context.h"
#include "tensor/grid.h"

typedef struct hl_team {
    hl_grid grid;
    halo_context *world; /* all; not owned */
    halo_context *group; /* those that hold one sample together: rank = hl_grid_number, world's rank = grid.data_at * ranks + rank; world itself where that is all */
    halo_context *peers; /* those at the same place of all groups: rank = grid.data_at */
} hl_team;

/* HALO_ERR_USAGE, the same on all ranks, when their number is no multiple of the parts'. Collective, as is the end. */
halo_status hl_team_create(halo_context *world, const int64_t part[3], hl_team **team);
void hl_team_destroy(hl_team *team);

#endif
