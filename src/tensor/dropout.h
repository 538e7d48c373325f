/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.h -- which elements dropout keeps: one function for every backend, of the global index alone, so that no grid changes it. */
#ifndef HL_DROPOUT_H
#define HL_DROPOUT_H

#include "base/rng.h"

#include <stdbool.h>

/* index: position of the element in the global tensor (n c d h w, C order, global extents). layer < 2^24. */
static inline bool hl_dropout_keeps(uint64_t seed, uint64_t step, uint64_t layer, uint64_t index, double keep)
{
    hl_random r = hl_philox(seed, HL_STREAM_DROPOUT, index / 4, step << 24 | layer);
    return (double)r.v[index % 4] < keep * 4294967296.0;
}

#endif
