/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.c -- the mask of hl_dropout_keeps (tensor/dropout.h) for a run of elements: Philox 4x32-10 on BATCH counters at a time, each giving four
 * neighbours. r < keep 2^32 for an integer r is r < ceil(keep 2^32), so the test is one of 64-bit integers.
 */
#include "kern.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { BATCH = 16 };

/* Philox of counters first .. first + BATCH - 1; the same arithmetic as hl_philox, lane by lane. */
static inline void philox(uint64_t seed, uint64_t first, uint64_t counter, uint32_t r[4][BATCH])
{
    uint32_t k0 = (uint32_t)seed ^ HL_STREAM_DROPOUT * 0x85ebca6bu, k1 = (uint32_t)(seed >> 32) + HL_STREAM_DROPOUT;
    for (int i = 0; i < BATCH; i++) {
        r[0][i] = (uint32_t)(first + (uint64_t)i);
        r[1][i] = (uint32_t)((first + (uint64_t)i) >> 32);
        r[2][i] = (uint32_t)counter;
        r[3][i] = (uint32_t)(counter >> 32);
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
#pragma omp simd
        for (int i = 0; i < BATCH; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * r[0][i], p1 = (uint64_t)0xCD9E8D57u * r[2][i];
            uint32_t c1 = r[1][i], c3 = r[3][i];
            r[0][i] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
            r[1][i] = (uint32_t)p1;
            r[2][i] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
            r[3][i] = (uint32_t)p0;
        }
    }
}

void HL_K(dropout_mask)(uint64_t seed, uint64_t counter, uint64_t index, double keep, float value, float *mask, int64_t n)
{
    const double threshold = ceil(keep * 4294967296.0);
    const uint64_t limit = threshold >= 4294967296.0 ? (uint64_t)1 << 32 : (uint64_t)threshold;
    const uint32_t last = (uint32_t)(limit - 1); /* r <= last; limit 0 is handled apart */
    uint32_t r[4][BATCH];
    float m[4 * BATCH];
    for (int64_t i = 0; i < n;) {
        int64_t skip = (int64_t)((index + (uint64_t)i) % 4), count = 4 * BATCH - skip < n - i ? 4 * BATCH - skip : n - i;
        philox(seed, (index + (uint64_t)i) / 4, counter, r);
        for (int k = 0; k < BATCH; k++)
            for (int v = 0; v < 4; v++) m[4 * k + v] = r[v][k] <= last ? value : 0.0f;
        memcpy(mask + i, m + skip, (size_t)count * sizeof(*m));
        i += count;
    }
    if (limit == 0) memset(mask, 0, (size_t)n * sizeof(*mask));
}
