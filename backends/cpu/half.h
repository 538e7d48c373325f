/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h -- IEEE binary16 and bfloat16 to and from f32 by integer arithmetic without branches, so that the compiler turns loops over them into
 * vector code on every instruction set. Rounding is to nearest even; NaN stays NaN; f16 overflow gives infinity; f16 denormals are exact, whatever
 * the thread's denormal mode.
 */
#ifndef HL_CPU_HALF_H
#define HL_CPU_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hl_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float hl_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float hl_bf16_to_f32(uint16_t h) { return hl_float((uint32_t)h << 16); }

static inline uint16_t hl_f32_to_bf16(float f)
{
    uint32_t u = hl_bits(f), nan = (u & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)(nan ? (u >> 16) | 0x40u : rounded);
}

/* Exponent and fraction move by 13 bits and the bias by 112. A denormal h is fraction * 2^-24, built as a difference of normal numbers. */
static inline float hl_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + (112u << 23), special = normal + (112u << 23); /* special: infinity, NaN */
    float tiny = hl_float((rest & 0x3ffu) | 0x4b000000u) - 8388608.0f;              /* 2^23 + fraction, minus 2^23 */
    uint32_t denormal = hl_bits(tiny * 5.9604644775390625e-8f);
    uint32_t magnitude = rest < 0x400u ? denormal : rest < 0x7c00u ? normal : special;
    return hl_float(magnitude | sign);
}

static inline uint16_t hl_f32_to_f16(float f)
{
    uint32_t u = hl_bits(f), sign = (u >> 16) & 0x8000u, rest = u & 0x7fffffffu;
    uint32_t normal = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
    uint32_t denormal = hl_bits(hl_float(rest) + 0.5f) - 0x3f000000u; /* 0.5 has ulp 2^-24: the addition rounds */
    uint32_t magnitude = rest < (113u << 23) ? denormal : rest < 0x477ff000u ? normal : 0x7c00u;
    magnitude = rest > 0x7f800000u ? 0x7e00u : magnitude;
    return (uint16_t)(magnitude | sign);
}

#endif
