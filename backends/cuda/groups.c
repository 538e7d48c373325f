/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c -- sums over groups of cells: in how many parts, and what scratch they need. */
#include "groups.h"

enum { PART = 8192, MOST_PARTS = 512, MOST_LANES = 64 };

/* So many sums that a block makes side by side; of many as few blocks as can be, and all of them as full. */
static int64_t lanes_of(const hl_groups *g, int operands)
{
    for (int a = 0; a < operands; a++)
        if (g->minor_step[a] != 1) return 1;
    return hl_div_up(g->minor, hl_div_up(g->minor, MOST_LANES));
}

void hl_cuda_groups_part(hl_groups *g, int operands)
{
    if (g->per == 0) g->per = 1;
    g->lanes = lanes_of(g, operands);
    g->chunks = hl_div_up(g->minor, g->lanes);
    g->columns = g->groups * g->per / g->minor * g->chunks;
    g->parts = hl_max64(1, hl_min64(MOST_PARTS, g->cells.total * g->lanes / PART));
}

size_t hl_cuda_groups_bytes(const hl_groups *g) { return (size_t)(g->groups * g->per * g->parts) * HL_GROUP_SUMS * sizeof(double); }

/* Whether channels are neighbours in all of them. */
static bool channels_last(const int64_t *const *stride, int operands)
{
    for (int a = 0; a < operands; a++)
        if (stride[a][HALO_C] != 1) return false;
    return true;
}

void hl_cuda_groups_channels(const halo_operand *const *op, int operands, bool per_sample, int64_t features, hl_groups *g)
{
    int64_t s[HL_CELL_OPERANDS][HALO_DIMS], ext[HALO_DIMS];
    const int64_t *stride[HL_CELL_OPERANDS];
    memcpy(ext, op[0]->ext, sizeof(ext));
    for (int a = 0; a < operands; a++) {
        HL_BUG_UNLESS(hl_cuda_strides(op[a], s[a]));
        stride[a] = s[a];
    }
    /* a feature's channels are sums of their own where they are neighbours, else cells of one sum */
    const int64_t channels = ext[HALO_C] / features, per = channels_last(stride, operands) ? channels : 1, run = channels / per;
    *g = (hl_groups){.groups = (per_sample ? ext[HALO_N] : 1) * features, .per = per, .minor = features * per, .samples = per_sample ? 0 : ext[HALO_N]};
    if (per_sample) ext[HALO_N] = 1;
    ext[HALO_C] = run;
    for (int a = 0; a < operands; a++) {
        g->major_step[a] = s[a][HALO_N];
        g->minor_step[a] = s[a][HALO_C] * run;
    }
    hl_cuda_cells(ext, stride, operands, &g->cells);
    hl_cuda_groups_part(g, operands);
}
