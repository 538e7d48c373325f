/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h -- counter-based random numbers: a value is a pure function of (key, counter), so it depends on no rank, thread or order.
 *
 * Philox 4x32 with 10 rounds (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The key is
 * (seed, stream): a stream per purpose, HL_STREAM_*; the counter is what the number belongs to, e.g. (element index, step).
 */
#ifndef HL_RNG_H
#define HL_RNG_H

#include <math.h>
#include <stdint.h>

enum hl_stream {
    HL_STREAM_INIT = 1,
    HL_STREAM_SHUFFLE,
    HL_STREAM_AUGMENT,
    HL_STREAM_DROPOUT,
    HL_STREAM_SYNTHETIC,
    HL_STREAM_UNIVERSE,
    HL_STREAM_PARAMETERS,
    HL_STREAM_TEST,
    HL_STREAM_PHANTOM,
    HL_STREAM_PHANTOM_NOISE,
    HL_STREAM_PATCH,
    HL_STREAM_INTENSITY,
    HL_STREAM_CRYSTAL,
    HL_STREAM_COUNTS
};

typedef struct hl_random { uint32_t v[4]; } hl_random;

static inline hl_random hl_philox(uint64_t seed, uint32_t stream, uint64_t counter0, uint64_t counter1)
{
    uint32_t c0 = (uint32_t)counter0, c1 = (uint32_t)(counter0 >> 32), c2 = (uint32_t)counter1, c3 = (uint32_t)(counter1 >> 32);
    uint32_t k0 = (uint32_t)seed ^ stream * 0x85ebca6bu, k1 = (uint32_t)(seed >> 32) + stream;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (hl_random){{c0, c1, c2, c3}};
}

/* In (0, 1): never 0 or 1, 53 bits. */
static inline double hl_uniform53(uint32_t a, uint32_t b)
{
    return ((double)((((uint64_t)a << 32) | b) >> 11) + 0.5) * (1.0 / 9007199254740992.0);
}

static inline double hl_rng_uniform(uint64_t seed, uint32_t stream, uint64_t counter0, uint64_t counter1)
{
    hl_random r = hl_philox(seed, stream, counter0, counter1);
    return hl_uniform53(r.v[0], r.v[1]);
}

/* Two independent standard normal numbers (Box & Muller 1958). */
static inline void hl_rng_normal2(uint64_t seed, uint32_t stream, uint64_t counter0, uint64_t counter1, double out[2])
{
    hl_random r = hl_philox(seed, stream, counter0, counter1);
    double radius = sqrt(-2.0 * log(hl_uniform53(r.v[0], r.v[1]))), angle = 6.283185307179586477 * hl_uniform53(r.v[2], r.v[3]);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

static inline double hl_rng_normal(uint64_t seed, uint32_t stream, uint64_t counter0, uint64_t counter1)
{
    double z[2];
    hl_rng_normal2(seed, stream, counter0, counter1, z);
    return z[0];
}

/* Uniform in 0 <= r < n (n > 0); the bias is below n / 2^64. */
static inline uint64_t hl_rng_below(uint64_t seed, uint32_t stream, uint64_t counter0, uint64_t counter1, uint64_t n)
{
    hl_random r = hl_philox(seed, stream, counter0, counter1);
    return (uint64_t)(((unsigned __int128)(((uint64_t)r.v[0] << 32) | r.v[1]) * n) >> 64);
}

#endif
