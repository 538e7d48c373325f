/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h -- the inner kernels of convolution, one table per instruction set and lane count. They know nothing of tensors: a driver
 * (conv_gather.c, conv_weights.c) turns boxes, margins, strides and borders into base addresses and lists of runs.
 *
 * V below is a vector of `lanes` channels. Offsets and steps count floats.
 */
#ifndef HL_KERN_CONV_H
#define HL_KERN_CONV_H

#include "backends/cpu/isa.h"

/* ------------------------------------------------------------------------------------------- gather: forward, backward data */

/* n consecutive inputs, starting `x` after a position's first input, meet n consecutive weight vectors, starting at `w`. */
typedef struct hl_conv_row {
    int64_t x, w, n;
} hl_conv_row;

enum hl_conv_start { HL_START_ZERO, HL_START_BIAS, HL_START_LOAD };

/*
 * A tile of P positions by OV output vectors, held in registers over all rows:
 *   y[o][p] = act(start[o][p] + sum over rows r, 0 <= j < r.n of x[pos p + r.x + j] * V(w + o * w_vec + (r.w + j) * lanes))
 * Positions are a fixed step apart (lanes, 1 or 4 floats in x, y_step in y) or listed.
 */
typedef struct hl_conv_tile {
    const float *x, *w;
    const hl_conv_row *rows;
    int64_t nrows;
    int64_t w_vec;
    float *y;
    int64_t y_step, y_vec;
    const int64_t *x_at, *y_at; /* list form: offset of each position */
    const float *bias;          /* HL_START_BIAS: OV vectors */
    enum hl_conv_start start;
    bool leaky; /* y < 0: y *= slope */
    bool stream; /* store past the caches; y aligned to V; fence before others read */
    float slope;
} hl_conv_tile;

typedef void hl_conv_tile_fn(const hl_conv_tile *t);

/* THREE: as ONE, all rows of three terms.
 * LEFT, RIGHT, BOTH: as LANES, for rows of two and more taps on full channel blocks, at the edge of the input: the first position lacks the first
 * tap, the last position the last. */
enum hl_conv_step { HL_STEP_LANES, HL_STEP_LEFT, HL_STEP_RIGHT, HL_STEP_BOTH, HL_STEP_ONE, HL_STEP_THREE, HL_STEP_FOUR, HL_STEP_LIST, HL_STEPS };
enum { HL_TILE_V = 4, HL_TILE_P = 14, HL_TILE_LIST = 8 };

/* ------------------------------------------------------------------------------------------------ correlate: backward weights */

/*
 * Both kernels add to V sums in dw, kept in registers over the rows (d, h) of a block:
 *   run:   dw[dw_at[r] + j dw_col] += sum over d, h, w of x[at[r] + d x_d + h x_h + w x_w + j] * V(dy[d][h][w]),   r < R listed runs, j < J
 *   slide: dw[k dw_row + i dw_col] += sum over d, h, x0 <= q < x1 of x[d x_d + h x_h + q * lanes + i] * V(dy[d][h][q - k]),   k < K taps along
 *          w, i < I lanes; dy is zero outside 0 <= q - k < nw: each input is loaded once and meets K outputs that stay in registers.
 */
typedef struct hl_conv_corr {
    const float *x, *dy;
    const int64_t *at, *dw_at;
    float *dw;
    int64_t dw_row, dw_col;
    int64_t nd, nh, nw;
    int64_t x_d, x_h, x_w, dy_d, dy_h;
    int64_t x0, x1;
} hl_conv_corr;

typedef void hl_conv_corr_fn(const hl_conv_corr *c);

enum { HL_RUN_R = 9, HL_RUN_J = 4, HL_SLIDE_K = 3 };

/* ------------------------------------------------------------------------------------------------------------------- tables */

typedef struct hl_conv_kern {
    int lanes;
    int max_v;                     /* largest OV of this table */
    int max_p[HL_TILE_V + 1];      /* [OV]: most positions of a tile; 0: no such tile */
    int max_r[HL_RUN_J + 1];       /* [J]: most runs */
    int slide_i[HL_SLIDE_K + 1];   /* [K]: lanes I of a slide; 0: none */
    hl_conv_tile_fn *tile[HL_STEPS][HL_TILE_V + 1][HL_TILE_P + 1]; /* [step][OV][P] */
    hl_conv_corr_fn *run[HL_RUN_J + 1][HL_RUN_R + 1];              /* [J][R] */
    hl_conv_corr_fn *slide[HL_SLIDE_K + 1];                        /* [K] */
    void (*fence)(void); /* after streamed stores of this thread */
    /* sum[lanes] += V(dy) over a block of rows */
    void (*sum)(const hl_conv_corr *c);
    /* out[v * out_step + t] (+)= in[t * lanes + v], v < nv, t < nt: channel-blocked weight gradients to plain ones */
    void (*spread)(const float *in, int64_t nt, int64_t nv, float *out, int64_t out_step, bool accumulate);
} hl_conv_kern;

/* NULL where this build has no such table. */
const hl_conv_kern *hl_conv_kern_find(hl_isa isa, int lanes);

#endif
