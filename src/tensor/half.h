/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h -- scalar conversions between f32 and the 16-bit types, on the bits, so that every compiler and processor agrees.
 *
 * f16 (IEEE binary16): 5 bits of exponent, 10 of fraction; bf16: the upper half of an f32. To 16 bits: round to nearest, ties to even;
 * overflow gives infinity, NaN stays NaN. To f32 is exact.
 */
#ifndef HL_HALF_H
#define HL_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hl_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float hl_f32_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint16_t hl_f16_from_f32(float f)
{
    uint32_t u = hl_f32_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more round to infinity */
    if (a < 0x38800000u) /* below 2^-14: adding 1/2, whose last place is 2^-24, rounds to the subnormal grid */
        return (uint16_t)(sign | (hl_f32_bits(hl_f32_of_bits(a) + 0.5f) - 0x3f000000u));
    a -= 112u << 23; /* exponent bias 127 to 15 */
    return (uint16_t)(sign | (a + 0xfffu + (a >> 13 & 1u)) >> 13);
}

static inline float hl_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;
    if (a >= 0x7c00u) return hl_f32_of_bits(sign | 0x7f800000u | (a & 0x3ffu) << 13);
    if (a >= 0x0400u) return hl_f32_of_bits(sign | ((a << 13) + (112u << 23)));
    float magnitude = (float)a * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

static inline uint16_t hl_bf16_from_f32(float f)
{
    uint32_t u = hl_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float hl_f32_from_bf16(uint16_t h) { return hl_f32_of_bits((uint32_t)h << 16); }

#endif
