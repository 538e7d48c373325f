/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h -- processes laid out as data x d x h x w: where one of them is. Pure functions, no communication.
 *
 * rank = ((data_at * part[D] + at[D]) * part[H] + at[H]) * part[W] + at[W]: the ranks of one spatial group, which hold one sample together, are neighbours,
 * and data is outermost.
 */
#ifndef HL_GRID_H
#define HL_GRID_H

#include "tensor/block.h"

typedef struct hl_grid {
    int64_t data, part[3];  /* how many, [d h w] */
    int64_t data_at, at[3]; /* this process */
} hl_grid;

/* Of one process alone. */
hl_grid hl_grid_one(void);
/* Of `rank` in a grid of ranks / (d h w) times d h w processes; ranks must be a multiple. */
hl_grid hl_grid_of(int64_t ranks, const int64_t part[3], int64_t rank);
/* Processes of a spatial group, and this one's number among them. */
int64_t hl_grid_group(const hl_grid *g);
int64_t hl_grid_number(const hl_grid *g);
/* The number in the spatial group of the process at `at`, whose coordinates are taken modulo the grid: neighbours across a periodic border. */
int64_t hl_grid_number_at(const hl_grid *g, const int64_t at[3]);
/* The place of process `number` of the same spatial group. */
hl_grid hl_grid_peer(const hl_grid *g, int64_t number);
bool hl_grid_split(const hl_grid *g); /* more than one process holds a sample */

/* This process's range of an axis with n cells, D = 0. */
static inline hl_range hl_grid_range(const hl_grid *g, int axis, int64_t n) { return hl_block_range(n, g->part[axis], g->at[axis]); }

#endif
