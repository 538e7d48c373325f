/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h -- number types as files have them, and their conversion to halo's types. Pure functions. */
#ifndef HL_IO_CONVERT_H
#define HL_IO_CONVERT_H

#include "tensor/operand.h"

/* A number in native byte order: 'i' 1 2 4 8, 'u' 1 2 4 8, 'f' 2 4 8 bytes. */
typedef struct hl_number {
    char kind;
    int bytes;
} hl_number;

/* "int16", "uint8", "float32"; static text. "?" for anything else. */
const char *hl_number_name(hl_number type);

/* The halo type that holds every value of `type`: int8 int16 -> I16, uint8 -> U8, uint16 int32 -> I32,
 * float16 float32 -> F32, others F64 (64-bit integers exact to 2^53). HALO_NONE for none. */
halo_dtype hl_number_dtype(hl_number type);
/* The number type of a halo type; {0, 0} for none and for bfloat16, which files do not have. */
hl_number hl_dtype_number(halo_dtype type);

/* Reverses the bytes of n numbers in place. */
void hl_swap_bytes(void *data, int bytes, int64_t n);

/* dst[i] = (to) src[i * stride], i < n. `to` is hl_number_dtype(from) or HALO_F32. */
void hl_convert(hl_number from, const void *src, int64_t stride, halo_dtype to, void *dst, int64_t n);

/* Element i as a double (64-bit integers: rounded). */
double hl_number_value(hl_number type, const void *data, int64_t i);

/* IEEE half to float, exact. */
float hl_half_to_float(uint16_t h);

/* dst = (float) src for the types a source delivers (F32 F64 U8 I16 I32). */
void hl_to_float(halo_dtype from, const void *src, float *dst, int64_t n);

#endif
