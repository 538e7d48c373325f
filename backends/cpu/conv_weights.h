/* SPDX-License-Identifier: Apache-2.0 */
/* conv_weights.h -- the inside of a backward-weights plan, shared by the file that prepares it and the file that runs it. */
#ifndef HL_CPU_CONV_WEIGHTS_H
#define HL_CPU_CONV_WEIGHTS_H

#include "backends/cpu/conv.h"

/* One call of a kernel per block of rows: taps (d, h, w ...) of one input block. */
typedef struct weights_call {
    hl_conv_corr_fn *fn;
    bool slide;
    int taps;        /* slide: along w */
    int64_t d, h, w; /* input cell relative to the output's first, d stride, h stride, w stride */
    int64_t lane;    /* first input lane; a call whose lanes are all padding is left out */
    int64_t x, dw;   /* offsets: of the lane; in the block of sums */
    int64_t dw_row, dw_col;
    const int64_t *at, *dw_at; /* runs */
} weights_call;

typedef struct hl_weights {
    struct hl_onednn *library; /* or */
    struct hl_wino_weights *winograd; /* else all that follows */
    const hl_cpu_device *dev;
    const hl_conv_kern *kern;
    hl_conv_shape s;
    bool blocked, pad, bias, accumulate;
    halo_operand x; /* as the kernels see it: padded when pad */
    hl_strides xs, ys;
    int64_t x_origin, y_origin, dw_origin, db_origin;
    int64_t valid[3][2];
    int64_t taps, block_in;         /* kernel cells; input channels of a block */
    int64_t out_blocks, in_blocks;
    int64_t block_floats;           /* sums of one (out block, in block): [block_in][taps][lanes] */
    int64_t group_out, group_in;    /* blocks of one item */
    int64_t out_groups, in_groups, splits;
    int64_t part_floats;            /* sums of one item, bias sums last */
    int64_t rows_d, rows_h;         /* a block of rows */
    int64_t pad_floats;
    int ncalls;
    weights_call *call;
    int64_t *lists; /* all at and dw_at */
} hl_weights;

size_t hl_weights_scratch(const hl_weights *p);
void hl_weights_run(const hl_weights *p, const float *x, const float *dy, float *dw, float *db, void *scratch);

#endif
