/* SPDX-License-Identifier: Apache-2.0 */
/* number.hpp -- elements of any type as doubles, and the roundings of the types. */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sim {

enum class Kind { none, f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64 };

inline size_t size_of(Kind k)
{
    switch (k) {
    case Kind::none:
        return 0;
    case Kind::i8:
    case Kind::u8:
        return 1;
    case Kind::f16:
    case Kind::bf16:
        return 2;
    case Kind::f32:
    case Kind::i32:
    case Kind::u32:
        return 4;
    default:
        return 8;
    }
}

inline double load(Kind k, const void *p, size_t i)
{
    switch (k) {
    case Kind::f32:
        return ((const float *)p)[i];
    case Kind::f64:
        return ((const double *)p)[i];
    case Kind::f16:
        return __half2float(((const __half *)p)[i]);
    case Kind::bf16:
        return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    case Kind::i8:
        return ((const int8_t *)p)[i];
    case Kind::u8:
        return ((const uint8_t *)p)[i];
    case Kind::i32:
        return ((const int32_t *)p)[i];
    case Kind::u32:
        return ((const uint32_t *)p)[i];
    case Kind::i64:
        return (double)((const int64_t *)p)[i];
    case Kind::u64:
        return (double)((const uint64_t *)p)[i];
    default:
        return 0;
    }
}

inline void store(Kind k, void *p, size_t i, double v)
{
    switch (k) {
    case Kind::f32:
        ((float *)p)[i] = (float)v;
        break;
    case Kind::f64:
        ((double *)p)[i] = v;
        break;
    case Kind::f16:
        ((__half *)p)[i] = __float2half_rn((float)v);
        break;
    case Kind::bf16:
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn((float)v);
        break;
    case Kind::i8:
        ((int8_t *)p)[i] = (int8_t)v;
        break;
    case Kind::u8:
        ((uint8_t *)p)[i] = (uint8_t)v;
        break;
    case Kind::i32:
        ((int32_t *)p)[i] = (int32_t)v;
        break;
    case Kind::u32:
        ((uint32_t *)p)[i] = (uint32_t)v;
        break;
    case Kind::i64:
        ((int64_t *)p)[i] = (int64_t)v;
        break;
    case Kind::u64:
        ((uint64_t *)p)[i] = (uint64_t)v;
        break;
    default:
        break;
    }
}

/* TF32: f32 with ten bits of mantissa, to nearest (ties away, as the conversion instruction does) */
inline double round_tf32(double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    if (!std::isfinite(f)) return v;
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

inline double round_f16(double v)
{
    return __half2float(__float2half_rn((float)v));
}

} // namespace sim
