/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h -- vectors of the compiler, as wide as a register of the instruction set a kernel is compiled for. Comparisons give lanes of all ones or
 * zeros; hl_select chooses by them. Addresses need no alignment.
 */
#ifndef HL_VEC_H
#define HL_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define HL_VL 16 /* floats in a register */
#elif defined(__AVX__)
#define HL_VL 8
#else
#define HL_VL 4
#endif

typedef float hl_vf __attribute__((vector_size(HL_VL * 4)));
typedef int32_t hl_vi __attribute__((vector_size(HL_VL * 4)));
typedef float hl_vf_any __attribute__((vector_size(HL_VL * 4), aligned(4), may_alias));
typedef int32_t hl_vi_any __attribute__((vector_size(HL_VL * 4), aligned(4), may_alias));
typedef uint8_t hl_vb __attribute__((vector_size(HL_VL)));
typedef uint8_t hl_vb_any __attribute__((vector_size(HL_VL), aligned(1), may_alias));

static inline hl_vf hl_load(const float *p) { return *(const hl_vf_any *)p; }
static inline void hl_store(float *p, hl_vf v) { *(hl_vf_any *)p = v; }
static inline hl_vf hl_splat(float f) { return (hl_vf){0} + f; }
static inline hl_vi hl_splat_i(int32_t i) { return (hl_vi){0} + i; }

static inline hl_vi hl_select_i(hl_vi mask, hl_vi a, hl_vi b) { return (mask & a) | (~mask & b); }
static inline hl_vf hl_select(hl_vi mask, hl_vf a, hl_vf b) { return (hl_vf)hl_select_i(mask, (hl_vi)a, (hl_vi)b); }

/* A sum in double: lanes in two halves, added up in a fixed order by hl_vd_sum. */
typedef double hl_vd __attribute__((vector_size(HL_VL * 4)));
enum { HL_VDL = HL_VL / 2 };
typedef float hl_vh __attribute__((vector_size(HL_VL * 2)));
typedef float hl_vh_any __attribute__((vector_size(HL_VL * 2), aligned(4), may_alias));
static inline hl_vd hl_load_d(const float *p) { return __builtin_convertvector(*(const hl_vh_any *)p, hl_vd); }

static inline double hl_vd_sum(hl_vd v)
{
    double s = v[0];
    for (int i = 1; i < HL_VDL; i++) s += v[i];
    return s;
}

#endif
