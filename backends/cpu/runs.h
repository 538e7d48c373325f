/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h -- boxes of equal extents and layout, seen as runs: stretches that are contiguous in every one of the operands. A whole tensor is one run; a
 * margined one has a run per row. What is pointwise needs to know no more of layouts than this.
 *
 * Where the box has a part of its last channel block, that block's channels make a second set with shorter runs (the lanes of one cell); but when
 * the lanes left over are padding in every operand and the operation maps zeros to zeros, the block is taken whole.
 */
#ifndef HL_RUNS_H
#define HL_RUNS_H

#include "tensor/block.h"
#include "tensor/operand.h"

enum { HL_RUN_OPERANDS = 4, HL_RUN_DIMS = 5 };

typedef struct hl_runs {
    int operands;
    int64_t count, len;                   /* runs; elements of each */
    int64_t ext[HL_RUN_DIMS];             /* outer extents, innermost first */
    int64_t offset[HL_RUN_OPERANDS];      /* element of the box's first cell */
    int64_t stride[HL_RUN_OPERANDS][HL_RUN_DIMS];
} hl_runs;

typedef struct hl_run_sets {
    int sets; /* 0: the operands do not go together */
    hl_runs set[2];
} hl_run_sets;

/* All operands valid, of one layout and the first one's extents. `zeros`: the operation maps zeros to zeros. */
hl_run_sets hl_runs_make(const halo_operand *const *ops, int operands, bool zeros);

/* The runs of one sample and one channel block: offsets are those of sample 0 and block 0; s[N] and s[C] of each operand's strides lead to others.
 * lanes: how many of the block's channels. */
hl_runs hl_runs_block(const halo_operand *const *ops, int operands, int64_t lanes);

static inline int64_t hl_runs_elements(const hl_runs *r) { return r->count * r->len; }

/* Walks a range of the elements of all runs, in order:
 *   hl_walk w = hl_walk_begin(r, range);
 *   while ((n = hl_walk_next(&w, most, at)) > 0) ... elements at[k] .. at[k] + n - 1 of operand k; n <= most */
typedef struct hl_walk {
    const hl_runs *r;
    int64_t i[HL_RUN_DIMS];
    int64_t base[HL_RUN_OPERANDS];
    int64_t in_run, left;
} hl_walk;

hl_walk hl_walk_begin(const hl_runs *r, hl_range elements);
int64_t hl_walk_next(hl_walk *w, int64_t most, int64_t at[HL_RUN_OPERANDS]);

/* Part i of `parts` of r's elements, cut at multiples of `unit` (which divides len). */
hl_range hl_runs_part(const hl_runs *r, int64_t unit, int64_t parts, int64_t i);
/* A unit for operations that may be cut anywhere: whole cache lines where runs allow. */
static inline int64_t hl_runs_unit(const hl_runs *r) { return r->len % 16 == 0 ? 16 : 1; }

/* An operand [N, F] (features counted over c d h w in logical order) whose features are contiguous, as {N,1,1,1,F} plain. False when they are not. */
bool hl_vector_rows(const halo_operand *op, halo_operand *plain);

#endif
