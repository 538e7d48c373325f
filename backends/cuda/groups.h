/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h -- making hl_groups. */
#ifndef HL_CUDA_GROUPS_H
#define HL_CUDA_GROUPS_H

#include "cuda.h"

/* Groups of operands with the extents of op[0]: one per feature (runs of channels), and per sample or of all samples. */
void hl_cuda_groups_channels(const halo_operand *const *op, int operands, bool per_sample, int64_t features, hl_groups *g);
/* Sets parts and lanes from the cells and the steps of the operands. */
void hl_cuda_groups_part(hl_groups *g, int operands);
/* Scratch for the parts' sums. */
size_t hl_cuda_groups_bytes(const hl_groups *g);

#endif
