/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.c -- the mask of hl_dropout_keeps (tensor/dropout.h) for a run of elements: Philox 4x32-10 on BATCH counters at a time, each giving four
 * neighbours. r < keep 2^32 for an integer r is r < ceil(keep 2^32), so the test is one of integers.
 *
 * A counter word lives in the low half of a 64-bit lane; what is in the high half does not matter to the next product, which reads low halves only.
 */
#include "kern.h"
#include "vec.h"
#include "base/rng.h"

#include <math.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef uint64_t hl_vu __attribute__((vector_size(HL_VL * 4)));
#if defined(__AVX512F__)
enum { CHAINS = 4 }; /* as many as registers hold: a product takes several cycles */
#else
enum { CHAINS = 2 };
#endif
enum { LANES = HL_VL / 2, BATCH = CHAINS * LANES };

/* Low half times m, all 64 bits: one instruction, which the compiler cannot find by itself. */
static inline hl_vu times(hl_vu a, uint32_t m)
{
    hl_vu b = (hl_vu){0} + m;
#if defined(__AVX512F__)
    return (hl_vu)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (hl_vu)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && HL_VL == 4
    return (hl_vu)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * b;
#endif
}

/* The 4 BATCH numbers of counters first .. first + BATCH - 1, in order. */
static inline void philox(uint64_t seed, uint64_t first, uint64_t counter, uint64_t out[2 * BATCH])
{
    uint32_t k0 = (uint32_t)seed ^ HL_STREAM_DROPOUT * 0x85ebca6bu, k1 = (uint32_t)(seed >> 32) + HL_STREAM_DROPOUT;
    hl_vu c0[CHAINS], c1[CHAINS], c2[CHAINS], c3[CHAINS];
    uint64_t counters[BATCH];
    for (int i = 0; i < BATCH; i++) counters[i] = first + (uint64_t)i;
    for (int j = 0; j < CHAINS; j++) {
        memcpy(&c0[j], counters + j * LANES, sizeof(c0[j]));
        c1[j] = c0[j] >> 32;
        c2[j] = (hl_vu){0} + counter;
        c3[j] = c2[j] >> 32;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        for (int j = 0; j < CHAINS; j++) {
            hl_vu p0 = times(c0[j], 0xD2511F53u), p1 = times(c2[j], 0xCD9E8D57u);
            c0[j] = (p1 >> 32) ^ c1[j] ^ k0;
            c1[j] = p1;
            c2[j] = (p0 >> 32) ^ c3[j] ^ k1;
            c3[j] = p0;
        }
    for (int j = 0; j < CHAINS; j++) {
        hl_vu low = (c0[j] & 0xffffffffu) | c1[j] << 32, high = (c2[j] & 0xffffffffu) | c3[j] << 32;
        for (int l = 0; l < LANES; l++) {
            out[2 * (j * LANES + l)] = low[l];
            out[2 * (j * LANES + l) + 1] = high[l];
        }
    }
}

void HL_K(dropout_mask)(uint64_t seed, uint64_t counter, uint64_t index, double keep, float value, float *mask, int64_t n)
{
    const double threshold = ceil(keep * 4294967296.0);
    if (threshold < 1) {
        memset(mask, 0, (size_t)n * sizeof(*mask));
        return;
    }
    const uint32_t last = threshold >= 4294967296.0 ? UINT32_MAX : (uint32_t)threshold - 1; /* r <= last is kept */
    uint64_t pairs[2 * BATCH];
    uint32_t r[4 * BATCH];
    for (int64_t i = 0; i < n;) {
        int64_t skip = (int64_t)((index + (uint64_t)i) % 4), count = 4 * BATCH - skip < n - i ? 4 * BATCH - skip : n - i;
        philox(seed, (index + (uint64_t)i) / 4, counter, pairs);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(r, pairs, sizeof(r));
#else
        for (int k = 0; k < 4 * BATCH; k++) r[k] = (uint32_t)(pairs[k / 2] >> (k % 2 * 32));
#endif
#pragma omp simd
        for (int64_t k = 0; k < count; k++) mask[i + k] = r[skip + k] <= last ? value : 0.0f;
        i += count;
    }
}
