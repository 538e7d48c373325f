/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.c -- the order of samples in an epoch.
 *
 * The permutation is one of the whole set, a function of (seed, epoch) alone, and is dealt to ranks
 * afterwards: whoever computes what share of a step, the global batch of that step is the same. (Dealing
 * first and shuffling inside shares, as loaders often do, never mixes them, and changes the training when the
 * number of ranks does.) Fisher & Yates 1938, in Durstenfeld's form (CACM 1964), with counter-based numbers.
 */
#include "base/rng.h"
#include "io/io.h"

void hl_permutation(uint64_t seed, int64_t epoch, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j =
            (int64_t)hl_rng_below(seed, HL_STREAM_SHUFFLE, (uint64_t)i, (uint64_t)epoch, (uint64_t)i + 1);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
