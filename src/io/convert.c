/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c -- y[i] = (T) x[i s]: one plain loop per pair of types, which compilers vectorise where s = 1.
 * HDF5's conversion of the same values takes 3-16 times as long (byte order, half precision).
 */
#include "io/convert.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "io writes little-endian images of memory: a big-endian machine needs swaps in ckpt.c and h5data.c"
#endif

#define NUMBERS(X)                                                                                           \
    X('i', 1, int8_t, "int8", HALO_I16)                                                                      \
    X('u', 1, uint8_t, "uint8", HALO_U8)                                                                     \
    X('i', 2, int16_t, "int16", HALO_I16)                                                                    \
    X('u', 2, uint16_t, "uint16", HALO_I32)                                                                  \
    X('i', 4, int32_t, "int32", HALO_I32)                                                                    \
    X('u', 4, uint32_t, "uint32", HALO_F64)                                                                  \
    X('i', 8, int64_t, "int64", HALO_F64)                                                                    \
    X('u', 8, uint64_t, "uint64", HALO_F64)                                                                  \
    X('f', 2, uint16_t, "float16", HALO_F32)                                                                 \
    X('f', 4, float, "float32", HALO_F32)                                                                    \
    X('f', 8, double, "float64", HALO_F64)

const char *hl_number_name(hl_number type)
{
#define NAME(k, b, ctype, text, dtype)                                                                       \
    if (type.kind == (k) && type.bytes == (b)) return text;
    NUMBERS(NAME)
#undef NAME
    return "?";
}

halo_dtype hl_number_dtype(hl_number type)
{
#define DTYPE(k, b, ctype, text, dtype)                                                                      \
    if (type.kind == (k) && type.bytes == (b)) return dtype;
    NUMBERS(DTYPE)
#undef DTYPE
    return HALO_NONE;
}

hl_number hl_dtype_number(halo_dtype type)
{
    char kind = type == HALO_U8 ? 'u' : type == HALO_I16 || type == HALO_I32 ? 'i' : 'f';
    if (type == HALO_NONE || type == HALO_BF16) return (hl_number){0, 0};
    return (hl_number){kind, (int)hl_dtype_size(type)};
}

void hl_swap_bytes(void *data, int bytes, int64_t n)
{
    if (bytes == 2) {
        uint16_t *v = data;
        for (int64_t i = 0; i < n; i++) v[i] = __builtin_bswap16(v[i]);
    } else if (bytes == 4) {
        uint32_t *v = data;
        for (int64_t i = 0; i < n; i++) v[i] = __builtin_bswap32(v[i]);
    } else if (bytes == 8) {
        uint64_t *v = data;
        for (int64_t i = 0; i < n; i++) v[i] = __builtin_bswap64(v[i]);
    }
}

float hl_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = (h >> 10) & 31u, mantissa = h & 1023u;
    if (exponent == 0) { /* zero and denormals: m 2^-24, exact in float */
        float v = (float)mantissa * 0x1p-24f;
        return sign ? -v : v;
    }
    uint32_t bits =
        exponent == 31 ? sign | 0x7f800000u | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

#define IDENTITY(v) (v)
#define LOOP(from_t, to_t, value)                                                                            \
    do {                                                                                                     \
        const from_t *x = src;                                                                               \
        to_t *y = dst;                                                                                       \
        if (stride == 1)                                                                                     \
            for (int64_t i = 0; i < n; i++) y[i] = (to_t)value(x[i]);                                        \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++) y[i] = (to_t)value(x[i * stride]);                               \
    } while (0)
/* HALO_F32 may always be asked for; else the one type that holds every value. */
#define TO(from_t, to_t, dtype)                                                                              \
    do {                                                                                                     \
        HL_BUG_UNLESS(to == (dtype) || to == HALO_F32);                                                      \
        if (to == HALO_F32)                                                                                  \
            LOOP(from_t, float, IDENTITY);                                                                   \
        else                                                                                                 \
            LOOP(from_t, to_t, IDENTITY);                                                                    \
    } while (0)

static void convert_integers(hl_number from, const void *src, int64_t stride, halo_dtype to, void *dst,
                             int64_t n)
{
    bool is_signed = from.kind == 'i';
    switch (from.bytes) {
    case 1:
        if (is_signed)
            TO(int8_t, int16_t, HALO_I16);
        else
            TO(uint8_t, uint8_t, HALO_U8);
        return;
    case 2:
        if (is_signed)
            TO(int16_t, int16_t, HALO_I16);
        else
            TO(uint16_t, int32_t, HALO_I32);
        return;
    case 4:
        if (is_signed)
            TO(int32_t, int32_t, HALO_I32);
        else
            TO(uint32_t, double, HALO_F64);
        return;
    default:
        HL_BUG_UNLESS(from.bytes == 8);
        if (is_signed)
            TO(int64_t, double, HALO_F64);
        else
            TO(uint64_t, double, HALO_F64);
    }
}

void hl_convert(hl_number from, const void *src, int64_t stride, halo_dtype to, void *dst, int64_t n)
{
    if (from.kind != 'f') {
        convert_integers(from, src, stride, to, dst, n);
        return;
    }
    switch (from.bytes) {
    case 2:
        HL_BUG_UNLESS(to == HALO_F32);
        LOOP(uint16_t, float, hl_half_to_float);
        return;
    case 4:
        HL_BUG_UNLESS(to == HALO_F32);
        LOOP(float, float, IDENTITY);
        return;
    default:
        HL_BUG_UNLESS(from.bytes == 8);
        TO(double, double, HALO_F64);
    }
}

void hl_to_float(halo_dtype from, const void *src, float *dst, int64_t n)
{
    hl_convert(hl_dtype_number(from), src, 1, HALO_F32, dst, n);
}

double hl_number_value(hl_number type, const void *data, int64_t i)
{
    const char *at = (const char *)data + i * type.bytes;
    if (type.kind == 'f' && type.bytes == 2) return (double)hl_half_to_float(((const uint16_t *)data)[i]);
#define VALUE(k, b, ctype, text, dtype)                                                                      \
    if (type.kind == (k) && type.bytes == (b)) {                                                             \
        ctype v;                                                                                             \
        memcpy(&v, at, sizeof(v));                                                                           \
        return (double)v;                                                                                    \
    }
    NUMBERS(VALUE)
#undef VALUE
    return NAN;
}
