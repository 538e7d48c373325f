/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c -- making hl_cells: order the dimensions as they lie in memory, join those that can be joined, prepare the divisions. */
#include "cuda.h"

bool hl_cuda_strides(const halo_operand *op, int64_t s[HALO_DIMS])
{
    hl_strides t = hl_operand_strides(op);
    if (hl_layout_block(op->layout) != 1) return false;
    memcpy(s, t.s, sizeof(t.s));
    if (op->layout == HALO_NDHWC) s[HALO_C] = 1;
    return true;
}

int64_t hl_cuda_first(const halo_operand *op)
{
    hl_strides t = hl_operand_strides(op);
    return hl_offset(&t, op->lo[HALO_N], op->lo[HALO_C], op->lo[HALO_D], op->lo[HALO_H], op->lo[HALO_W]);
}

bool hl_cuda_view(const halo_operand *op, hl_view *v)
{
    memcpy(v->ext, op->ext, sizeof(v->ext));
    return hl_cuda_strides(op, v->stride);
}

/* Samples stay outermost: how many of them there are may be known at run time only. The others by the first operand's strides, largest first. */
static int ordered(const int64_t ext[HALO_DIMS], const int64_t *stride, int order[HALO_DIMS])
{
    int n = 0;
    for (int k = 0; k < HALO_DIMS; k++) {
        if (ext[k] == 1) continue;
        int at = n++;
        for (; at > 0 && order[at - 1] != HALO_N && stride[order[at - 1]] < stride[k]; at--) order[at] = order[at - 1];
        order[at] = k;
    }
    return n;
}

static bool joins(const int64_t *const *stride, int operands, int outer, int inner, int64_t inner_ext)
{
    for (int a = 0; a < operands; a++)
        if (stride[a][outer] != stride[a][inner] * inner_ext) return false;
    return true;
}

static void prepare_division(hl_cells *c, int k)
{
    uint64_t d = (uint64_t)c->ext[k];
    uint32_t shift = 0;
    if (!c->few) return;
    while ((UINT64_C(1) << shift) < d) shift++;
    c->shift[k] = shift;
    c->multiplier[k] = (uint32_t)((((UINT64_C(1) << shift) - d) << 32) / d + 1);
}

void hl_cuda_cells(const int64_t ext[HALO_DIMS], const int64_t *const *stride, int operands, hl_cells *c)
{
    int order[HALO_DIMS], n = ordered(ext, stride[0], order);
    HL_BUG_UNLESS(operands <= HL_CELL_OPERANDS);
    *c = (hl_cells){.total = 1};
    for (int i = 0; i < n; i++) {
        int k = order[i];
        c->total *= ext[k];
        int to = c->dims;
        /* the dimension before has the strides of its innermost part */
        if (i > 0 && joins(stride, operands, order[i - 1], k, ext[k]))
            to--, c->ext[to] *= ext[k];
        else
            c->ext[to] = ext[k], c->dims++;
        for (int a = 0; a < operands; a++) c->stride[a][to] = stride[a][k];
    }
    if (c->dims == 0) c->ext[c->dims++] = 1;
    c->few = c->total < INT32_MAX;
    for (int k = 0; k < c->dims; k++) prepare_division(c, k);
}

void hl_cuda_places(halo_layout layout, const int64_t ext[HALO_DIMS], hl_cells *c)
{
    static const int plain[HALO_DIMS] = {HALO_N, HALO_C, HALO_D, HALO_H, HALO_W}, last[HALO_DIMS] = {HALO_N, HALO_D, HALO_H, HALO_W, HALO_C};
    *c = (hl_cells){.total = 1, .dims = HALO_DIMS, .last = layout == HALO_NDHWC};
    for (int k = 0; k < HALO_DIMS; k++) {
        c->ext[k] = ext[(c->last ? last : plain)[k]];
        c->total *= ext[k];
    }
    c->few = c->total < INT32_MAX;
    for (int k = 0; k < HALO_DIMS; k++) prepare_division(c, k);
}

bool hl_cuda_cells_of(const halo_operand *const *op, int operands, hl_cells *c)
{
    int64_t s[HL_CELL_OPERANDS][HALO_DIMS];
    const int64_t *stride[HL_CELL_OPERANDS];
    for (int a = 0; a < operands; a++) {
        if (!hl_cuda_strides(op[a], s[a])) return false;
        stride[a] = s[a];
    }
    hl_cuda_cells(op[0]->ext, stride, operands, c);
    return true;
}

/* The strides of the number of the channel, and of the sample. */
const int64_t hl_cuda_channel[HALO_DIMS] = {0, 1, 0, 0, 0};
const int64_t hl_cuda_sample[HALO_DIMS] = {1, 0, 0, 0, 0};
