/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operand.h -- arithmetic on halo_operand: sizes, strides, boxes. Pure functions; the address of logical cell (n c d h w) of an allocation is
 *
 *   base + offset(n, c, d, h, w),   offset = n*stride[N] + (c/cb)*stride[C] + d*stride[D] + h*stride[H] + w*stride[W] + c%cb     (elements)
 *
 * with cb the layout's channel block: 1 for ncdhw, the (whole) channel count for ndhwc, 8 or 16 for the blocked layouts.
 */
#ifndef HL_OPERAND_H
#define HL_OPERAND_H

#include "base/base.h"
#include <halo/backend.h>

size_t hl_dtype_size(halo_dtype type); /* 0 for HALO_NONE */
const char *hl_dtype_name(halo_dtype type);
const char *hl_layout_name(halo_layout layout);

/* Channel block of a layout; 1 for ncdhw and ndhwc. */
int64_t hl_layout_block(halo_layout layout);

typedef struct hl_strides {
    int64_t s[HALO_DIMS]; /* s[C] is the stride between channel blocks */
    int64_t block;        /* cb above */
} hl_strides;

hl_strides hl_operand_strides(const halo_operand *o);

static inline int64_t hl_offset(const hl_strides *t, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    return n * t->s[HALO_N] + c / t->block * t->s[HALO_C] + c % t->block + d * t->s[HALO_D] + h * t->s[HALO_H] + w * t->s[HALO_W];
}

/* An operand that is a whole plain allocation, no margin. */
halo_operand hl_operand_whole(halo_dtype type, halo_layout layout, const int64_t ext[HALO_DIMS]);
/* A flat vector of n elements. */
halo_operand hl_operand_flat(halo_dtype type, int64_t n);
/* As whole, with room for margins: alloc = ext + margins, box inside. margin [d h w][low high]. */
halo_operand hl_operand_margined(halo_dtype type, halo_layout layout, const int64_t ext[HALO_DIMS], const int64_t margin[3][2]);

/* Elements and bytes of the allocation, padding lanes included; false on overflow. */
bool hl_operand_elements(const halo_operand *o, int64_t *n);
bool hl_operand_bytes(const halo_operand *o, size_t *bytes);
/* Elements of the box. The allocation must have been checked. */
int64_t hl_operand_box_elements(const halo_operand *o);

/* The box is inside the allocation, extents are positive, margins fit. */
bool hl_operand_valid(const halo_operand *o);
/* The box is the whole allocation. */
bool hl_operand_is_whole(const halo_operand *o);
bool hl_same_extents(const halo_operand *a, const halo_operand *b);
bool hl_operand_equal(const halo_operand *a, const halo_operand *b);

/* True when the box is one dense tensor of its layout at an offset (what a vendor library can take): *offset in elements. Channel-last: whole
 * C, H, W; blocked: whole D? H W of one sample or whole samples; see the cases in the source. */
bool hl_operand_dense(const halo_operand *o, int64_t *offset);

/* How many of n samples are none (halo_step_record.padding); record may be NULL. */
static inline int64_t hl_padding_samples(const halo_step_record *record, int64_t n)
{
    return record && record->batch > 0 ? n / record->batch * record->padding : 0;
}

/* Targets whose mean square is less count as if it were this, for an error that is relative to it. */
#define HL_LEAST_SQUARE 1e-12

/* Whether targets are class numbers and X logits. */
static inline bool hl_loss_of_classes(halo_loss loss) { return loss == HALO_LOSS_CROSS_ENTROPY || loss == HALO_LOSS_DICE || loss == HALO_LOSS_DICE_CE; }

#endif
