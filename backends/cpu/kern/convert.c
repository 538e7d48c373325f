/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c -- rows of f32 to and from the 16-bit types, and of pooling indices to and from bytes. The values are those of tensor/half.h, computed
 * without branches. Neither direction depends on whether the thread flushes denormals.
 */
#include "kern.h"
#include "tensor/half.h"

/* Exponent and fraction move by 13 bits and the bias by 112; a denormal is fraction * 2^-24, made as a difference of normal numbers. */
static inline float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + (112u << 23), special = normal + (112u << 23); /* infinity, NaN */
    float tiny = hl_f32_of_bits((rest & 0x3ffu) | 0x4b000000u) - 8388608.0f;        /* 2^23 + fraction - 2^23 */
    uint32_t denormal = hl_f32_bits(tiny * 0x1p-24f);
    return hl_f32_of_bits((rest < 0x400u ? denormal : rest < 0x7c00u ? normal : special) | sign);
}

static inline uint16_t to_f16(float f)
{
    uint32_t u = hl_f32_bits(f), sign = (u >> 16) & 0x8000u, rest = u & 0x7fffffffu;
    uint32_t normal = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
    uint32_t denormal = hl_f32_bits(hl_f32_of_bits(rest) + 0.5f) - 0x3f000000u; /* the last place of 1/2 is 2^-24: the sum rounds */
    uint32_t finite = rest < 0x38800000u ? denormal : normal;
    uint32_t large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (uint16_t)((rest < 0x477ff000u ? finite : large) | sign);
}

static inline uint16_t to_bf16(float f)
{
    uint32_t u = hl_f32_bits(f), rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
}

#define ROW(name, from, to, expression)                                                                      \
    void HL_K(name)(const from *in, to *out, int64_t n)                                                      \
    {                                                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = expression;                             \
    }

ROW(f32_to_f16, float, uint16_t, to_f16(in[i]))
ROW(f16_to_f32, uint16_t, float, from_f16(in[i]))
ROW(f32_to_bf16, float, uint16_t, to_bf16(in[i]))
ROW(bf16_to_f32, uint16_t, float, hl_f32_from_bf16(in[i]))
ROW(narrow_u8, int32_t, uint8_t, (uint8_t)in[i])
ROW(widen_u8, uint8_t, int32_t, in[i])
