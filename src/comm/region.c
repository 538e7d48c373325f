/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.c -- see region.h. The innermost dimension and its runs are a loop of their own; an odometer steps over the others. Long runs are copied by memcpy, short ones by
 * loops over elements, which a compiler can unroll where the run has one element (a face across the fastest axis).
 */
#include "comm/region.h"

#include "tensor/half.h"

enum { LONG_RUN = 16, INNER = HL_REGION_DIMS - 1 };

int64_t hl_region_elements(const hl_region *r)
{
    int64_t n = r->run;
    for (int k = 0; k < HL_REGION_DIMS; k++) n *= r->count[k];
    return n;
}

hl_region hl_region_merged(const hl_region *r)
{
    hl_region m = {.offset = r->offset, .run = r->run};
    int at = INNER;
    for (int k = 0; k < HL_REGION_DIMS; k++) m.count[k] = 1;
    for (int k = INNER; k >= 0; k--) {
        if (r->count[k] == 1) continue;
        if (at == INNER && r->stride[k] == m.run)
            m.run *= r->count[k];
        else if (at < INNER && r->stride[k] == m.count[at + 1] * m.stride[at + 1])
            m.count[at + 1] *= r->count[k];
        else {
            m.count[at] = r->count[k];
            m.stride[at--] = r->stride[k];
        }
    }
    return m;
}

/* Steps over all dimensions but the innermost; false after the last. `at` is where the next row begins. */
static bool step(const hl_region *r, int64_t i[HL_REGION_DIMS], int64_t *at)
{
    for (int k = INNER - 1; k >= 0; k--) {
        *at += r->stride[k];
        if (++i[k] < r->count[k]) return true;
        *at -= r->count[k] * r->stride[k];
        i[k] = 0;
    }
    return false;
}

/* Sums in the type itself; of 16 bits, in f32 and rounded. */
#define PLAIN_SUM(a, b) ((a) + (b))
#define F16_SUM(a, b) hl_f16_from_f32(hl_f32_from_f16(a) + hl_f32_from_f16(b))
#define BF16_SUM(a, b) hl_bf16_from_f32(hl_f32_from_bf16(a) + hl_f32_from_bf16(b))

#define ROWS(name, type, sum)                                                                                                                            \
    static void pack_##name(const hl_region *r, const type *from, type *out)                                                                        \
    {                                                                                                                                               \
        int64_t n = r->count[INNER], stride = r->stride[INNER], run = r->run;                                                                       \
        if (run == 1)                                                                                                                               \
            for (int64_t i = 0; i < n; i++) out[i] = from[i * stride];                                                                              \
        else if (run < LONG_RUN)                                                                                                                    \
            for (int64_t i = 0; i < n; i++, out += run)                                                                                             \
                for (int64_t k = 0; k < run; k++) out[k] = from[i * stride + k];                                                                    \
        else                                                                                                                                        \
            for (int64_t i = 0; i < n; i++) memcpy(out + i * run, from + i * stride, (size_t)run * sizeof(type));                                   \
    }                                                                                                                                               \
    static void put_##name(const hl_region *r, const type *in, type *to)                                                                            \
    {                                                                                                                                               \
        int64_t n = r->count[INNER], stride = r->stride[INNER], run = r->run;                                                                       \
        if (run == 1)                                                                                                                               \
            for (int64_t i = 0; i < n; i++) to[i * stride] = in[i];                                                                                 \
        else if (run < LONG_RUN)                                                                                                                    \
            for (int64_t i = 0; i < n; i++, in += run)                                                                                              \
                for (int64_t k = 0; k < run; k++) to[i * stride + k] = in[k];                                                                       \
        else                                                                                                                                        \
            for (int64_t i = 0; i < n; i++) memcpy(to + i * stride, in + i * run, (size_t)run * sizeof(type));                                      \
    }                                                                                                                                               \
    static void add_##name(const hl_region *r, const type *in, type *to)                                                                            \
    {                                                                                                                                               \
        int64_t n = r->count[INNER], stride = r->stride[INNER], run = r->run;                                                                       \
        for (int64_t i = 0; i < n; i++, in += run)                                                                                                  \
            for (int64_t k = 0; k < run; k++) to[i * stride + k] = sum(to[i * stride + k], in[k]);                                                                        \
    }

ROWS(f32, float, PLAIN_SUM)
ROWS(f64, double, PLAIN_SUM)
ROWS(f16, uint16_t, F16_SUM)
ROWS(bf16, uint16_t, BF16_SUM)

void hl_region_pack(const hl_region *r, halo_dtype type, const void *from, void *out)
{
    int64_t i[HL_REGION_DIMS] = {0}, at = r->offset, row = r->count[INNER] * r->run, done = 0;
    if (hl_region_elements(r) == 0) return;
    do {
        switch (type) {
        case HALO_F64: pack_f64(r, (const double *)from + at, (double *)out + done); break;
        case HALO_F16: pack_f16(r, (const uint16_t *)from + at, (uint16_t *)out + done); break;
        case HALO_BF16: pack_bf16(r, (const uint16_t *)from + at, (uint16_t *)out + done); break;
        default: pack_f32(r, (const float *)from + at, (float *)out + done);
        }
        done += row;
    } while (step(r, i, &at));
}

void hl_region_unpack(const hl_region *r, halo_dtype type, bool add, const void *in, void *to)
{
    int64_t i[HL_REGION_DIMS] = {0}, at = r->offset, row = r->count[INNER] * r->run, done = 0;
    if (hl_region_elements(r) == 0) return;
    do {
        switch (type) {
        case HALO_F64: (add ? add_f64 : put_f64)(r, (const double *)in + done, (double *)to + at); break;
        case HALO_F16: (add ? add_f16 : put_f16)(r, (const uint16_t *)in + done, (uint16_t *)to + at); break;
        case HALO_BF16: (add ? add_bf16 : put_bf16)(r, (const uint16_t *)in + done, (uint16_t *)to + at); break;
        default: (add ? add_f32 : put_f32)(r, (const float *)in + done, (float *)to + at);
        }
        done += row;
    } while (step(r, i, &at));
}
