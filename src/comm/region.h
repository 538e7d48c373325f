/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h -- strided parts of memory: packed into a message, and unpacked from one. Pure functions.
 *
 * The elements of a region have an order: the first dimension slowest, a run last. Packing writes them in this order, so sender and receiver may lay out the same cells
 * differently.
 */
#ifndef HL_REGION_H
#define HL_REGION_H

#include "base/base.h"
#include <halo/backend.h>

enum { HL_REGION_DIMS = 5 };

/* count[0] x ... runs of `run` elements each, at offset + sum i_k stride[k], in elements; unused dimensions have count 1. */
typedef struct hl_region {
    int64_t offset, run;
    int64_t count[HL_REGION_DIMS], stride[HL_REGION_DIMS];
} hl_region;

int64_t hl_region_elements(const hl_region *r);
/* The same elements in the same order with the longest runs and the fewest dimensions: dimensions of one go, what is contiguous becomes one. */
hl_region hl_region_merged(const hl_region *r);

/* out[0 .. elements) = the region of `from`. f32, f64, f16 or bf16. */
void hl_region_pack(const hl_region *r, halo_dtype type, const void *from, void *out);
/* The region of `to` = in[0 .. elements), or += with add. */
void hl_region_unpack(const hl_region *r, halo_dtype type, bool add, const void *in, void *to);

#endif
