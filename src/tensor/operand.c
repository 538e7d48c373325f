/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/operand.h"

size_t hl_dtype_size(halo_dtype type)
{
    switch (type) {
    case HALO_F64: return 8;
    case HALO_F32:
    case HALO_I32: return 4;
    case HALO_F16:
    case HALO_BF16:
    case HALO_I16: return 2;
    case HALO_U8: return 1;
    case HALO_NONE: break;
    }
    return 0;
}

const char *hl_dtype_name(halo_dtype type)
{
    static const char *const names[] = {"none", "f32", "f64", "f16", "bf16", "u8", "i16", "i32"};
    return (size_t)type < HL_COUNT(names) ? names[type] : "?";
}

const char *hl_layout_name(halo_layout layout)
{
    static const char *const names[] = {"ncdhw", "ndhwc", "nCdhw8c", "nCdhw16c"};
    return (size_t)layout < HL_COUNT(names) ? names[layout] : "?";
}

int64_t hl_layout_block(halo_layout layout)
{
    return layout == HALO_NCDHW8C ? 8 : layout == HALO_NCDHW16C ? 16 : 1;
}

hl_strides hl_operand_strides(const halo_operand *o)
{
    const int64_t *a = o->alloc;
    hl_strides t;
    if (o->layout == HALO_NDHWC) {
        t.block = hl_max64(a[HALO_C], 1); /* all channels are one block: c/cb is 0 */
        t.s[HALO_W] = a[HALO_C];
    } else {
        t.block = hl_layout_block(o->layout);
        t.s[HALO_W] = t.block;
    }
    t.s[HALO_H] = t.s[HALO_W] * a[HALO_W];
    t.s[HALO_D] = t.s[HALO_H] * a[HALO_H];
    t.s[HALO_C] = t.s[HALO_D] * a[HALO_D];
    t.s[HALO_N] = o->layout == HALO_NDHWC ? t.s[HALO_C] : t.s[HALO_C] * hl_div_up(a[HALO_C], t.block);
    return t;
}

halo_operand hl_operand_margined(halo_dtype type, halo_layout layout, const int64_t ext[HALO_DIMS], const int64_t margin[3][2])
{
    halo_operand o = {.dtype = type, .layout = layout};
    for (int i = 0; i < HALO_DIMS; i++) {
        int64_t low = i >= HALO_D ? margin[i - HALO_D][0] : 0, high = i >= HALO_D ? margin[i - HALO_D][1] : 0;
        o.ext[i] = ext[i];
        o.lo[i] = low;
        o.alloc[i] = ext[i] + low + high;
    }
    memcpy(o.margin, margin, sizeof(o.margin));
    return o;
}

halo_operand hl_operand_whole(halo_dtype type, halo_layout layout, const int64_t ext[HALO_DIMS])
{
    static const int64_t none[3][2];
    return hl_operand_margined(type, layout, ext, none);
}

halo_operand hl_operand_flat(halo_dtype type, int64_t n)
{
    const int64_t ext[HALO_DIMS] = {1, 1, 1, 1, n};
    return hl_operand_whole(type, HALO_NCDHW, ext);
}

bool hl_operand_elements(const halo_operand *o, int64_t *n)
{
    int64_t product = 1, block = hl_layout_block(o->layout);
    for (int i = 0; i < HALO_DIMS; i++) {
        int64_t extent = o->alloc[i];
        if (i == HALO_C && extent > INT64_MAX - block) return false;
        if (i == HALO_C) extent = hl_round_up(extent, block);
        if (!hl_mul64(product, extent, &product)) return false;
    }
    *n = product;
    return true;
}

bool hl_operand_bytes(const halo_operand *o, size_t *bytes)
{
    int64_t n;
    if (!hl_operand_elements(o, &n) || !hl_mul64(n, (int64_t)hl_dtype_size(o->dtype), &n)) return false;
    *bytes = (size_t)n;
    return true;
}

int64_t hl_operand_box_elements(const halo_operand *o)
{
    int64_t n = 1;
    for (int i = 0; i < HALO_DIMS; i++) n *= o->ext[i];
    return n;
}

bool hl_operand_valid(const halo_operand *o)
{
    for (int i = 0; i < HALO_DIMS; i++) {
        int64_t low = i >= HALO_D ? o->margin[i - HALO_D][0] : 0, high = i >= HALO_D ? o->margin[i - HALO_D][1] : 0;
        if (o->ext[i] < 1 || low < 0 || high < 0 || o->lo[i] < low || o->alloc[i] - o->lo[i] - o->ext[i] < high) return false;
    }
    return o->dtype != HALO_NONE && o->lo[HALO_C] % hl_layout_block(o->layout) == 0;
}

bool hl_operand_is_whole(const halo_operand *o)
{
    for (int i = 0; i < HALO_DIMS; i++)
        if (o->lo[i] != 0 || o->ext[i] != o->alloc[i]) return false;
    return true;
}

bool hl_same_extents(const halo_operand *a, const halo_operand *b) { return memcmp(a->ext, b->ext, sizeof(a->ext)) == 0; }

bool hl_operand_equal(const halo_operand *a, const halo_operand *b)
{
    return a->dtype == b->dtype && a->layout == b->layout && memcmp(a->alloc, b->alloc, sizeof(a->alloc)) == 0 &&
           memcmp(a->lo, b->lo, sizeof(a->lo)) == 0 && memcmp(a->ext, b->ext, sizeof(a->ext)) == 0 &&
           memcmp(a->margin, b->margin, sizeof(a->margin)) == 0;
}

/*
 * Physical order of the dimensions, outermost first. A box is dense when, from the innermost outwards, dimensions are whole, then one may be a
 * part, and all further out have extent 1.
 */
bool hl_operand_dense(const halo_operand *o, int64_t *offset)
{
    static const int plain[] = {HALO_N, HALO_C, HALO_D, HALO_H, HALO_W}, last[] = {HALO_N, HALO_D, HALO_H, HALO_W, HALO_C};
    const int *order = o->layout == HALO_NDHWC ? last : plain;
    int64_t block = hl_layout_block(o->layout);
    bool parted = false;
    for (int k = HALO_DIMS - 1; k >= 0; k--) {
        int i = order[k];
        bool whole = o->lo[i] == 0 && o->ext[i] == o->alloc[i];
        bool ends = o->lo[i] + o->ext[i] == o->alloc[i];
        if (i == HALO_C && o->ext[i] % block != 0 && !ends) return false; /* lanes past the box belong to somebody */
        if (parted && o->ext[i] > (i == HALO_C ? block : 1)) return false;
        if (!whole) parted = true;
    }
    hl_strides t = hl_operand_strides(o);
    *offset = hl_offset(&t, o->lo[HALO_N], o->lo[HALO_C], o->lo[HALO_D], o->lo[HALO_H], o->lo[HALO_W]);
    return true;
}
