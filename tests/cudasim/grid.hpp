/* SPDX-License-Identifier: Apache-2.0 */
/* grid.hpp -- what a kernel that the C++ compiler built calls: where its thread stands, how threads of a
 * block meet, shared memory. */
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>
#include <cstddef>
#include <functional>

namespace sim {

struct Thread {
    uint3 index, block;
    dim3 block_size, grid_size;
    unsigned linear; /* within the block */
};
extern Thread *thread_now;

/* Runs every thread of every block; `body` is one thread's call of the kernel */
void run_grid(const char *kernel, dim3 grid, dim3 block, size_t dynamic_bytes,
              const std::function<void()> &body);

void block_barrier();
/* All lanes of the mask meet; each gets the value of lane `source` (its own where that is not in the mask) */
unsigned long long warp_exchange(unsigned mask, unsigned long long value, int source);
unsigned warp_ballot(unsigned mask, bool vote);

/* The block's array of that declaration (one key for each), of NaN when first seen in a block */
void *shared_array(const void *key, size_t bytes);
void *shared_dynamic();

} // namespace sim
