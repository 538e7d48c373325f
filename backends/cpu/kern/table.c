/* SPDX-License-Identifier: Apache-2.0 */
/* table.c -- the kernels of one instruction set. */
#include "kern.h"

const hl_kern HL_K(kern) = {
    .act_fwd = HL_K(act_fwd),
    .act_bwd = HL_K(act_bwd),
    .add = HL_K(add),
    .affine = HL_K(affine),
    .norm_bwd = HL_K(norm_bwd),
    .moments = HL_K(moments),
    .moments2 = HL_K(moments2),
    .pool_max = HL_K(pool_max),
    .pool_sum = HL_K(pool_sum),
    .pool_max_bwd = HL_K(pool_max_bwd),
    .pool_sum_bwd = HL_K(pool_sum_bwd),
    .pool_save = HL_K(pool_save),
    .unpool = HL_K(unpool),
    .narrow_u8 = HL_K(narrow_u8),
    .widen_u8 = HL_K(widen_u8),
    .f32_to_f16 = HL_K(f32_to_f16),
    .f16_to_f32 = HL_K(f16_to_f32),
    .f32_to_bf16 = HL_K(f32_to_bf16),
    .bf16_to_f32 = HL_K(bf16_to_f32),
    .dropout_mask = HL_K(dropout_mask),
    .mul = HL_K(mul),
    .loss = HL_K(loss),
    .cross_entropy = HL_K(cross_entropy),
    .sumsq = HL_K(sumsq),
    .update = HL_K(update),
    .dots = HL_K(dots),
    .combine = HL_K(combine),
    .triad = HL_K(triad),
};
