/* SPDX-License-Identifier: Apache-2.0 */
/* team.c -- see team.h. */
#include "comm/team.h"

#include "comm/comm.h"

static halo_status check(halo_context *world, const int64_t part[3])
{
    int64_t group = 1;
    for (int a = 0; a < 3; a++)
        if (part[a] < 1 || !hl_mul64(group, part[a], &group))
            return hl_fail(world, HALO_ERR_USAGE, "a sample cannot be split in %" PRId64 " x %" PRId64 " x %" PRId64 " parts", part[0], part[1], part[2]);
    if (world->ranks % group == 0) return HALO_OK;
    return hl_fail(world, HALO_ERR_USAGE, "%d rank%s cannot hold samples split in %" PRId64 " x %" PRId64 " x %" PRId64 " parts: no multiple of %" PRId64, world->ranks,
                   world->ranks > 1 ? "s" : "", part[0], part[1], part[2], group);
}

/* Where one of the two is the world, the other has one rank. */
static halo_status make_contexts(hl_team *t)
{
    int group = (int)hl_grid_group(&t->grid), number = (int)hl_grid_number(&t->grid), at = (int)t->grid.data_at;
    if (group == t->world->ranks)
        t->group = t->world;
    else
        HL_TRY(hl_comm_inner(t->world, at, at * group, 1, &t->group));
    if (t->grid.data == t->world->ranks && group == 1)
        t->peers = t->world;
    else
        HL_TRY(hl_comm_inner(t->world, number, number, group, &t->peers));
    return HALO_OK;
}

halo_status hl_team_create(halo_context *world, const int64_t part[3], hl_team **out)
{
    hl_team *t = NULL;
    HL_TRY(check(world, part));
    halo_status st = hl_agree(world, hl_calloc(world, 1, sizeof(*t), "a grid of ranks", &t));
    if (st != HALO_OK) {
        free(t);
        return st;
    }
    *t = (hl_team){.grid = hl_grid_of(world->ranks, part, world->rank), .world = world};
    st = make_contexts(t);
    if (st == HALO_OK)
        *out = t;
    else
        hl_team_destroy(t);
    return st;
}

void hl_team_destroy(hl_team *t)
{
    if (!t) return;
    if (t->peers != t->world) halo_context_destroy(t->peers);
    if (t->group != t->world) halo_context_destroy(t->group);
    free(t);
}
