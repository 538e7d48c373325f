/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winograd.h -- the inner kernels of Winograd convolutions F(m^3, 3^3), m = 2 or 4 (backends/cpu/winograd.c),
 * one table per instruction set and channel block. A tile is a cube of m outputs, a = m + 2 inputs along each
 * side and a^3 points. Offsets and strides count floats.
 */
#ifndef HL_KERN_WINOGRAD_H
#define HL_KERN_WINOGRAD_H

#include "backends/cpu/isa.h"

enum { HL_WINO_SIDE = 6, HL_WINO_POINTS = 216, HL_WINO_ROWS = 14 };

/* Where a tile's outputs go: `block` channels of which `live` are ours, n cells along d, h, w. */
typedef struct hl_wino_out {
    float *y;
    int64_t y_d, y_h; /* along w: block */
    int n[3];
    int live;
    const float *bias; /* [block], NULL: none */
    bool accumulate;   /* y += */
    bool leaky;        /* y < 0: y *= slope */
    float slope;
} hl_wino_out;

/* m[row][v], v < nv vectors of this table, = sum over c < n of u[c / block][row][c % block] w[c * width + v];
 * rows of m are `width` apart */
typedef void hl_wino_product_fn(const float *u, const float *w, int64_t n, int64_t width, float *m);

typedef struct hl_wino_kern {
    int block;
    int lanes; /* floats in a vector */
    int rows;  /* tiles that a product takes at most; the length of a row group of u and m */
    /* u[point * u_step] = points of the tile whose cells begin at x; all of `block` channels */
    void (*input)(int m, const float *x, int64_t x_d, int64_t x_h, float *u, int64_t u_step);
    /* y = act(bias + outputs of the points p[point * p_step]) */
    void (*output)(int m, const float *p, int64_t p_step, const hl_wino_out *out);
    hl_wino_product_fn *product[3][HL_WINO_ROWS + 1]; /* [vectors, 1 or 2][rows] */
    /* backward weights: v[point * v_step] = points of the m^3 cells of dy that begin at y */
    void (*gradient)(int m, const float *y, int64_t y_d, int64_t y_h, float *v, int64_t v_step);
    /* g[i][l] (+)= sum over t < n of u[t][i] v[t][l]; u, v and g [.][block] */
    void (*correlate)(const float *u, const float *v, int64_t n, bool add, float *g);
    /* dw[27][block] = kernels of the points g[point * step] */
    void (*kernels)(int m, const float *g, int64_t step, float *dw);
    /* image[point * step] = the points of the kernels g[27][lanes], for `block` outputs */
    void (*weights)(int m, const float *g, float *image, int64_t step);
} hl_wino_kern;

/* NULL where this build has none for the block. */
const hl_wino_kern *hl_wino_kern_find(hl_isa isa, int block);

#endif
