/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c -- sums over groups of cells: in how many parts, and what scratch they need. */
#include "groups.h"

enum { PART = 8192, MOST_PARTS = 512 };

void hl_cuda_groups_part(hl_groups *g) { g->parts = hl_max64(1, hl_min64(MOST_PARTS, g->cells.total / PART)); }

size_t hl_cuda_groups_bytes(const hl_groups *g) { return (size_t)(g->groups * g->parts) * HL_GROUP_SUMS * sizeof(double); }

void hl_cuda_groups_channels(const halo_operand *const *op, int operands, bool per_sample, int64_t features, hl_groups *g)
{
    int64_t s[HL_CELL_OPERANDS][HALO_DIMS], ext[HALO_DIMS];
    const int64_t *stride[HL_CELL_OPERANDS];
    int64_t per = op[0]->ext[HALO_C] / features;
    memcpy(ext, op[0]->ext, sizeof(ext));
    *g = (hl_groups){.groups = (per_sample ? ext[HALO_N] : 1) * features, .minor = features, .samples = per_sample ? 0 : ext[HALO_N]};
    if (per_sample) ext[HALO_N] = 1;
    ext[HALO_C] = per;
    for (int a = 0; a < operands; a++) {
        HL_BUG_UNLESS(hl_cuda_strides(op[a], s[a]));
        stride[a] = s[a];
        g->major_step[a] = s[a][HALO_N];
        g->minor_step[a] = s[a][HALO_C] * per;
    }
    hl_cuda_cells(ext, stride, operands, &g->cells);
    hl_cuda_groups_part(g);
}
