/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h -- our kernels as C calls them. Each puts its work on `stream` and returns what launching it said. Pointers are device addresses, those of
 * operands at the first cell of their box; `type` is f32, f16 or bf16, arithmetic is f32 and sums are f64. Sums have one order: equal input, equal bits.
 */
#ifndef HL_CUDA_KERNELS_H
#define HL_CUDA_KERNELS_H

#include "cells.h"

#include <halo/backend.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* record.cu */
cudaError_t hl_cuda_put_record(cudaStream_t stream, halo_step_record *to, const halo_step_record *record);

/* copy.cu: to = from, converted; with `accumulate` to += from. A side is channel-blocked where its block is not 1; clear_lanes writes zeros to the
 * lanes of the last block. cells: [to, from] where neither is blocked. */
typedef struct hl_copying {
    hl_cells cells;
    halo_dtype from_type, to_type;
    int64_t ext[HL_CELL_DIMS], from[HL_CELL_DIMS], to[HL_CELL_DIMS], from_block, to_block;
    int blocked, accumulate, clear_lanes;
} hl_copying;
cudaError_t hl_cuda_convert(cudaStream_t stream, const hl_copying *c, const void *from, void *to);

/* to[cell] (+)= from[cell + shift], 0 where that is not in from's extents. places: of to. */
typedef struct hl_window_copy {
    hl_cells places;
    hl_view from, to;
    int64_t shift[HL_CELL_DIMS];
    int accumulate;
} hl_window_copy;
cudaError_t hl_cuda_copy_window(cudaStream_t stream, halo_dtype type, const hl_window_copy *c, const void *from, void *to);

/* prepare.cu: places of y; ext: of its box, stride: its strides, n c d h w. x: from the first cell of the first sample on; numbers [N][HALO_SAMPLE_NUMBERS] */
typedef struct hl_preparing {
    hl_cells places;
    int64_t ext[HL_CELL_DIMS], stride[HL_CELL_DIMS];
    int x_type, transforms, transform[HALO_MAX_TRANSFORMS];
} hl_preparing;
cudaError_t hl_cuda_prepare_samples(cudaStream_t stream, halo_dtype type, const hl_preparing *p, const void *x, const double *numbers, void *y);

/* pointwise.cu. cells: operands in the order of the pointers; then what is said there */
cudaError_t hl_cuda_act_forward(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, halo_act act, double slope);
cudaError_t hl_cuda_act_backward(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *dx, const void *y, const void *dy, halo_act act, double slope, int accumulate);
cudaError_t hl_cuda_sum_two(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, const void *x2);
/* cells: y, number of the channel. y = act(y + bias[channel]); bias may be NULL */
cudaError_t hl_cuda_bias_act(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const float *bias, halo_act act, double slope);
/* cells: y, x, index in the global tensor, to which first + record->first_sample * per_sample is added */
typedef struct hl_dropping {
    hl_cells cells;
    uint64_t first, per_sample, layer;
    double keep;
} hl_dropping;
cudaError_t hl_cuda_drop(cudaStream_t stream, halo_dtype type, const hl_dropping *d, void *y, const void *x, const halo_step_record *record);

/* margin.cu: the cells of a part of box and margin, places of its extents, which begins at lo (relative to the box) */
typedef struct hl_margins {
    hl_cells places;
    int64_t lo[3], ext[3], margin[3][2]; /* ext: the box's */
    int mode[3][2];
    int64_t stride[HL_CELL_DIMS];
} hl_margins;
cudaError_t hl_cuda_margin_fill(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y);
cudaError_t hl_cuda_margin_gather(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y); /* reverse: adds to the sources */
cudaError_t hl_cuda_margin_clear(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y);  /* reverse: then clears what was added */

/* pool.cu: places of y (forward) or dx (backward) */
cudaError_t hl_cuda_pool_forward(cudaStream_t stream, halo_dtype type, const hl_cells *places, const hl_pooling *w, const hl_view *xv, const hl_view *yv, const hl_view *av,
                                 const void *x, void *y, void *aux);
cudaError_t hl_cuda_pool_backward(cudaStream_t stream, halo_dtype type, const hl_cells *places, const hl_pooling *w, const hl_view *dyv, const hl_view *dxv, const hl_view *av,
                                  const void *dy, const void *aux, void *dx, int accumulate);

/* pool.cu, with the activation: places of y, windows of `side` cells side by side in z. y, aux = the pooled act(z + bias[channel]); aux as CONV_POOL_FWD saves it */
typedef struct hl_act_pooling {
    hl_cells places;
    int64_t side[3], pad[3];
    hl_view z, y, aux; /* backward: z is dx */
    int max, act;
    float slope;
} hl_act_pooling;
cudaError_t hl_cuda_act_pool_forward(cudaStream_t stream, halo_dtype type, const hl_act_pooling *p, const void *z, const float *bias, void *y, uint8_t *aux);
/* places of dx; dyv: of dy; y and aux may be NULL as ACT_POOL_BWD says */
cudaError_t hl_cuda_act_pool_backward(cudaStream_t stream, halo_dtype type, const hl_act_pooling *p, const hl_view *dyv, const void *dy, const void *y, const uint8_t *aux, void *dx);

/* Sums over groups of cells. A group is `per` sums, as a rule one; sum s begins s / minor * major_step[a] + s % minor * minor_step[a] elements from operand a, and
 * is made in `parts` by as many blocks. Where neighbouring sums are neighbours in memory, as channels are with channels last, a block makes `lanes` of them side by
 * side, so that neighbouring threads read neighbours; else one. `chunks` blocks are side by side for the sums of a minor run, `columns` for all. */
typedef struct hl_groups {
    hl_cells cells;
    int64_t groups, per, minor, parts, major_step[HL_CELL_OPERANDS], minor_step[HL_CELL_OPERANDS];
    int64_t samples; /* outermost dimension of cells, where a record's padding shortens it; 0: it does not */
    int64_t lanes, chunks, columns;
} hl_groups;
enum { HL_GROUP_SUMS = 3 }; /* doubles of scratch per sum and part */

/* reduce.cu: stat[0] = sum of squares, [1] = not finite, [2] = largest finite magnitude; sum[group] (+)= sum of dy. partial: [groups][per][parts][HL_GROUP_SUMS] */
cudaError_t hl_cuda_sum_squares(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial, double *stat);
cudaError_t hl_cuda_sum_cells(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *dy, double *partial, halo_dtype sum_type, void *sum, int accumulate);

/* norm.cu */
typedef struct hl_norming {
    int64_t groups, features, channels; /* groups G of samples; features per group */
    double eps, momentum;
    int inference, unbiased, accumulate;
} hl_norming;
enum { HL_NORM_ROW = 6 }; /* floats per group and channel of the table that apply kernels read */
cudaError_t hl_cuda_norm_sums(cudaStream_t stream, halo_dtype type, const hl_groups *g, const void *x, double *partial, double *stat, const halo_step_record *record);
cudaError_t hl_cuda_norm_table(cudaStream_t stream, const hl_norming *n, const double *stat, const float *run, const float *gamma, const float *beta, float *table);
/* cells: y, x, row of the table */
cudaError_t hl_cuda_norm_write(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *y, const void *x, const float *table, halo_act act, double slope);
cudaError_t hl_cuda_norm_running(cudaStream_t stream, const hl_norming *n, const double *stat, float *run);
cudaError_t hl_cuda_norm_back_sums(cudaStream_t stream, halo_dtype type, const hl_groups *g, const hl_norming *n, const void *x, const void *dy, const double *stat, double *partial,
                                   double *stat2, const halo_step_record *record);
cudaError_t hl_cuda_norm_back_table(cudaStream_t stream, const hl_norming *n, const double *stat, const double *stat2, const float *gamma, float *table);
/* cells: dx, x, dy, row of the table, number of the sample; samples: 0 where padding does not matter */
cudaError_t hl_cuda_norm_back_write(cudaStream_t stream, halo_dtype type, const hl_cells *c, void *dx, const void *x, const void *dy, const float *table, int64_t samples,
                                    const halo_step_record *record);
cudaError_t hl_cuda_norm_back_vectors(cudaStream_t stream, const hl_norming *n, const double *stat2, float *dw, float *db);

/* loss.cu: groups are samples; operands x, t, dx. t_type: type or f32; stat is added to (hl_cuda_lose) or becomes the sums (hl_cuda_loss_sums) */
typedef struct hl_losing {
    halo_loss loss;
    double delta, targets, part; /* part: of a sample that this is */
    double least;                /* relative mse: of the mean square of targets */
    int of_classes, dice, entropy, ignores;
    float ignore;
    int64_t classes, x_step, dx_step; /* classes: channels and their strides */
} hl_losing;
typedef struct hl_loss_memory {
    const void *x, *t;
    const double *weight, *of_class, *divisor, *given; /* as roles SW, WT, X2, STAT2 of a loss; NULL where absent */
    void *dx, *scratch;
    double *stat;
} hl_loss_memory;
size_t hl_cuda_loss_bytes(const hl_groups *g, const hl_losing *l);
cudaError_t hl_cuda_lose(cudaStream_t stream, halo_dtype type, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record);
cudaError_t hl_cuda_loss_sums(cudaStream_t stream, halo_dtype type, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m);

/* upsample.cu: places of y (forward) or dx (backward); per axis as in tensor/upsample.h; lo, hi: cells of dy that are there */
typedef struct hl_upsampling {
    hl_cells places;
    hl_view x, y; /* dx, dy backward */
    int64_t stride[3], pad_lo[3], volume[3][2], lo[3], hi[3];
} hl_upsampling;
cudaError_t hl_cuda_upsample_forward(cudaStream_t stream, halo_dtype type, const hl_upsampling *u, const void *x, void *y);
cudaError_t hl_cuda_upsample_backward(cudaStream_t stream, halo_dtype type, const hl_upsampling *u, const void *dy, void *dx, int accumulate);

/* merge.cu: stat [n][3]; mean [n] or NULL */
cudaError_t hl_cuda_merge_statistics(cudaStream_t stream, int64_t n, double *stat, const float *mean, int back);

/* decide.cu: norms [tensors][3] */
cudaError_t hl_cuda_decide_step(cudaStream_t stream, int64_t tensors, double clip, const double *norms, double *number, const halo_step_record *record);

/* update.cu. number may be NULL. scratch: HL_UPDATE_CONSTANTS floats, then `blocks` doubles */
enum { HL_UPDATE_CONSTANTS = 16, HL_UPDATE_BLOCKS = 1024 };
cudaError_t hl_cuda_update_weights(cudaStream_t stream, const halo_update_params *u, int64_t n, float *w, const float *g, float *m1, float *m2, const double *number, const double *stat, double *stat2,
                                   void *scratch, const halo_step_record *record);

#ifdef __cplusplus
}
#endif

#endif
