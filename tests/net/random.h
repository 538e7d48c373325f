/* SPDX-License-Identifier: Apache-2.0 */
/* random.h -- random networks: layers of every kind with random windows and paddings on random earlier values, joined where shapes allow. A function of the seed. */
#ifndef HL_TESTS_RANDOM_H
#define HL_TESTS_RANDOM_H

#include "tests/net/small.h"

/* Inputs of `least` to least + 4 cells along each axis. Starts the stream of random_below. */
halo_network *random_network(halo_context *ctx, uint64_t seed, int64_t least);
/* Blocks of layers that read what all layers before them made, in several ways of writing that; planes and volumes. */
halo_network *random_dense_network(halo_context *ctx, uint64_t seed, int64_t least);
/* The next number of that network's stream, below n. */
int64_t random_below(int64_t n);

#endif
