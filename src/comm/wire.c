/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c -- see wire.h. */
#include "comm/wire.h"

#include "tensor/half.h"
#include "tensor/operand.h"

size_t hl_wire_size(hl_wire wire, halo_dtype type) { return wire == HL_WIRE_NATIVE ? hl_dtype_size(type) : 2; }

#define HL_NATIVE_SUM(name, T)                                                                                   \
    static void name(int64_t n, int fan, int before, const void *const *in, void *x)                             \
    {                                                                                                            \
        T *a = x;                                                                                                \
        const T *b = in[0];                                                                                      \
        if (fan == 1) {                                                                                          \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) a[i] += b[i];                                    \
            return;                                                                                              \
        }                                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                        \
            T own = a[i], s = before > 0 ? b[i] : own;                                                           \
            for (int k = 1; k < before; k++) s += ((const T *)in[k])[i];                                         \
            if (before > 0) s += own;                                                                            \
            for (int k = before; k < fan; k++) s += ((const T *)in[k])[i];                                       \
            a[i] = s;                                                                                            \
        }                                                                                                        \
    }
HL_NATIVE_SUM(native_f32_sum, float)
HL_NATIVE_SUM(native_f64_sum, double)

static const hl_arithmetic native_f32 = {.sum = native_f32_sum}, native_f64 = {.sum = native_f64_sum};

#define T float
#define NAME(f) bf16_f32_##f
#define R hl_bf16_from_f32
#define F hl_f32_from_bf16
#include "comm/wire_body.h"
#undef T
#undef NAME
#define T double
#define NAME(f) bf16_f64_##f
#include "comm/wire_body.h"
#undef NAME
#undef R
#undef F
#define NAME(f) f16_f64_##f
#define R hl_f16_from_f32
#define F hl_f32_from_f16
#include "comm/wire_body.h"
#undef T
#undef NAME
#define T float
#define NAME(f) f16_f32_##f
#include "comm/wire_body.h"

const hl_arithmetic *hl_wire_arithmetic(hl_wire wire, halo_dtype type)
{
    HL_BUG_UNLESS(type == HALO_F32 || type == HALO_F64);
    bool wide = type == HALO_F64;
    if (wire == HL_WIRE_NATIVE) return wide ? &native_f64 : &native_f32;
    if (wire == HL_WIRE_BF16) return wide ? &bf16_f64_table : &bf16_f32_table;
    return wide ? &f16_f64_table : &f16_f32_table;
}
