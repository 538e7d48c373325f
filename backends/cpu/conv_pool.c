/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_pool.c -- what follows the convolution in a fused forward pass: pooling windows side by side over
 * cells that are in cache still.
 *
 *   y[n,o,p] = max or mean over k < side of z[n,o,p side + k]
 *
 * Convolutions compute z, activated, a few rows or one tile at a time into a thread's own memory
 * (conv_gather_run.c, winograd.c); z as a whole never exists. For backward the winner's index or a bit per
 * cell is saved, that is 1 byte where z would be 32.
 */
#include "conv.h"

bool hl_conv_pool_of(const halo_op_desc *d, hl_conv_pool *p, halo_op_desc *conv)
{
    *p = (hl_conv_pool){.cells = 0};
    *conv = *d;
    if (d->kind != HALO_OP_CONV_POOL_FWD) return true;
    const halo_operand *y = &d->t[HALO_Y], *a = &d->t[HALO_AUX];
    int64_t ext[HALO_DIMS], cells = 1;
    if (!hl_has_f32(d, HALO_Y) || d->accumulate) return false;
    memcpy(ext, y->ext, sizeof(ext));
    for (int k = 0; k < 3; k++) {
        if (d->pool_side[k] < 1 || d->pool_side[k] > HL_POOL_CELLS) return false;
        cells *= d->pool_side[k];
        if (!hl_mul64(ext[HALO_D + k], d->pool_side[k], &ext[HALO_D + k])) return false;
    }
    bool saved = a->dtype != HALO_NONE;
    if (cells > HL_POOL_CELLS || (saved && d->pool == HALO_POOL_AVG && cells > 8)) return false;
    if (saved &&
        !(a->dtype == HALO_U8 && hl_operand_valid(a) && a->layout == y->layout && hl_same_extents(a, y)))
        return false;
    conv->kind = HALO_OP_CONV_FWD;
    conv->t[HALO_Y] = hl_operand_whole(HALO_F32, y->layout, ext);
    conv->t[HALO_AUX].dtype = HALO_NONE;
    p->cells = (int)cells;
    p->saved = saved;
    p->how = (hl_pool_saved){.y_step = hl_operand_strides(y).s[HALO_W], .factor = 1.0f / (float)cells};
    p->how.max = d->pool == HALO_POOL_MAX;
    p->channels = y->ext[HALO_C];
    memcpy(p->side, d->pool_side, sizeof(p->side));
    p->ys = hl_operand_strides(y);
    p->y_first = hl_box_offset(y);
    if (!saved) return true;
    p->as = hl_operand_strides(a);
    p->a_first = hl_box_offset(a);
    p->how.aux_step = p->as.s[HALO_W];
    return true;
}

void hl_conv_pool_lay(hl_conv_pool *p, const int64_t step[3])
{
    int k = 0;
    for (int64_t d = 0; d < p->side[0]; d++)
        for (int64_t h = 0; h < p->side[1]; h++)
            for (int64_t w = 0; w < p->side[2]; w++, k++) {
                p->offset[k] = d * step[0] + h * step[1] + w * step[2];
                p->index[k] = k;
            }
    p->how.x_step = p->side[2] * step[2];
}

void hl_conv_pool_row(const hl_conv_pool *p, const struct hl_kern *kern, const float *z, int64_t cells,
                      const int64_t at[HALO_DIMS], float *y, uint8_t *aux)
{
    hl_pool_saved s = p->how;
    hl_pool_taps taps = {p->cells, p->offset, p->index};
    s.cells = cells;
    s.lanes = hl_min64(p->ys.block, p->channels - at[HALO_C]);
    y += p->y_first + hl_offset(&p->ys, at[0], at[1], at[2], at[3], at[4]);
    if (p->saved) aux += p->a_first + hl_offset(&p->as, at[0], at[1], at[2], at[3], at[4]);
    kern->pool_save(&s, taps, z, y, p->saved ? aux : NULL);
}
