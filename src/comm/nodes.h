/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h -- the order of ranks in which each node's are contiguous, and the grid of processes over it. Pure functions.
 */
#ifndef HL_NODES_H
#define HL_NODES_H

#include "comm/transport.h"

/* leader[r]: the lowest rank on the node of rank r. order[r]: the new rank of r: nodes by their leaders, ranks of a node as they were. Rank 0 stays 0. */
void hl_node_order(const int *leader, int ranks, int *order);

/* Where rank r stands; node_size as in hl_place. leader as above. */
typedef struct hl_node_place {
    int local, locals, node, nodes, node_size;
} hl_node_place;
hl_node_place hl_node_find(const int *leader, int ranks, int rank);

/* data x d x h x w ranks; data outermost, so that the ranks that share a sample are contiguous. */
typedef struct hl_grid {
    int data, part[3]; /* ranks per axis */
    int at_data, at[3]; /* this rank's place */
} hl_grid;

/* False when d h w does not divide the number of ranks. */
bool hl_grid_make(int ranks, int rank, const int part[3], hl_grid *grid);
int hl_grid_rank(const hl_grid *grid, int at_data, const int at[3]);
/* The ranks that share this rank's samples, and those that hold the same block of other samples. */
hl_ranks hl_grid_spatial(const hl_grid *grid);
hl_ranks hl_grid_data(const hl_grid *grid);

#endif
