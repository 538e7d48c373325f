/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winograd.c -- transforms and products of Winograd convolutions, vectors over channels. One dimension of
 * F(m, 3) with a = m + 2 points is
 *
 *   y = A' [(G g) (B' x)],   B' a x a, G a x 3, A' m x a     (Winograd 1980; Lavin & Gray 2016)
 *
 * at the points 0, 1, -1, infinity for m = 2, and 2, -2 too for m = 4; three dimensions are three passes of
 * it over the cube. Small integers and powers of two: each line of B' is a few additions and fused
 * multiply-adds.
 */
#include "backends/cpu/kern/winograd.h"
#include "kern.h"
#include "vec.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors pass between inlined functions only */

#define HL_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#define HL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HL_UNROLL _Pragma("GCC unroll 32")
#endif

/* Tiles of a product by two vectors: with both weights and a factor, what the registers hold. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define ROWS 14
#else
#define ROWS 6
#endif

/* --------------------------------------------------------------------------------------------------------------
 * transforms */

/* B' x */
HL_INLINE void points_of_input(const int m, const hl_vf x[HL_WINO_SIDE], hl_vf p[HL_WINO_SIDE])
{
    if (m == 2) {
        p[0] = x[0] - x[2];
        p[1] = x[1] + x[2];
        p[2] = x[2] - x[1];
        p[3] = x[3] - x[1];
        return;
    }
    hl_vf even = x[4] - 4.0f * x[2], odd = x[3] - 4.0f * x[1], even2 = x[4] - x[2], odd2 = x[3] - x[1];
    p[0] = 4.0f * x[0] + (x[4] - 5.0f * x[2]);
    p[1] = even + odd;
    p[2] = even - odd;
    p[3] = even2 + 2.0f * odd2;
    p[4] = even2 - 2.0f * odd2;
    p[5] = 4.0f * x[1] + (x[5] - 5.0f * x[3]);
}

/* A' p */
HL_INLINE void outputs_of_points(const int m, const hl_vf p[HL_WINO_SIDE], hl_vf y[4])
{
    hl_vf even = p[1] + p[2], odd = p[1] - p[2];
    if (m == 2) {
        y[0] = p[0] + even;
        y[1] = odd + p[3];
        return;
    }
    hl_vf even2 = p[3] + p[4], odd2 = p[3] - p[4];
    y[0] = (p[0] + even) + even2;
    y[1] = odd + 2.0f * odd2;
    y[2] = even + 4.0f * even2;
    y[3] = (odd + p[5]) + 8.0f * odd2;
}

/* G g */
HL_INLINE void points_of_weights(const int m, const hl_vf g[3], hl_vf p[HL_WINO_SIDE])
{
    p[0] = g[0];
    if (m == 2) {
        hl_vf even = 0.5f * (g[0] + g[2]);
        p[1] = even + 0.5f * g[1];
        p[2] = even - 0.5f * g[1];
        p[3] = g[2];
        return;
    }
    hl_vf even = g[0] + g[2], even2 = g[0] + 4.0f * g[2], odd2 = 2.0f * g[1];
    p[0] = 0.25f * g[0];
    p[1] = (even + g[1]) * (-1.0f / 6);
    p[2] = (even - g[1]) * (-1.0f / 6);
    p[3] = (even2 + odd2) * (1.0f / 24);
    p[4] = (even2 - odd2) * (1.0f / 24);
    p[5] = g[2];
}

/* Backward weights is F(3, m) at the same points: B' is the same, G takes the m cells of dy */
HL_INLINE void points_of_gradient(const int m, const hl_vf g[4], hl_vf p[HL_WINO_SIDE])
{
    if (m == 2) {
        p[0] = g[0];
        p[1] = 0.5f * (g[0] + g[1]);
        p[2] = 0.5f * (g[0] - g[1]);
        p[3] = g[1];
        return;
    }
    hl_vf even = g[0] + g[2], odd = g[1] + g[3], even2 = g[0] + 4.0f * g[2],
          odd2 = 2.0f * (g[1] + 4.0f * g[3]);
    p[0] = 0.25f * g[0];
    p[1] = (even + odd) * (-1.0f / 6);
    p[2] = (even - odd) * (-1.0f / 6);
    p[3] = (even2 + odd2) * (1.0f / 24);
    p[4] = (even2 - odd2) * (1.0f / 24);
    p[5] = g[3];
}

/* and A' gives the three weights. */
HL_INLINE void kernel_of_points(const int m, const hl_vf p[HL_WINO_SIDE], hl_vf g[3])
{
    hl_vf even = p[1] + p[2], odd = p[1] - p[2];
    if (m == 2) {
        g[0] = p[0] + even;
        g[1] = odd;
        g[2] = even + p[3];
        return;
    }
    hl_vf even2 = p[3] + p[4], odd2 = p[3] - p[4];
    g[0] = (p[0] + even) + even2;
    g[1] = odd + 2.0f * odd2;
    g[2] = (even + p[5]) + 4.0f * even2;
}

/* W first, from the cells; H in place; D into the points. */
HL_INLINE void input_body(const int m, const int block, const float *x, int64_t x_d, int64_t x_h, float *u,
                          int64_t u_step)
{
    const int a = m + 2;
    hl_vf t[HL_WINO_SIDE][HL_WINO_SIDE][HL_WINO_SIDE], in[HL_WINO_SIDE], p[HL_WINO_SIDE];
    for (int d = 0; d < a; d++) {
        for (int h = 0; h < a; h++) {
            const float *row = x + d * x_d + h * x_h;
            HL_UNROLL for (int w = 0; w < a; w++) in[w] = hl_load(row + w * block);
            points_of_input(m, in, p);
            HL_UNROLL for (int w = 0; w < a; w++) t[d][h][w] = p[w];
        }
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int h = 0; h < a; h++) in[h] = t[d][h][w];
            points_of_input(m, in, p);
            HL_UNROLL for (int h = 0; h < a; h++) t[d][h][w] = p[h];
        }
    }
    for (int h = 0; h < a; h++)
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int d = 0; d < a; d++) in[d] = t[d][h][w];
            points_of_input(m, in, p);
            HL_UNROLL for (int d = 0; d < a; d++) hl_store(u + ((d * a + h) * a + w) * u_step, p[d]);
        }
}

/* Cells of a line along w; the first `v0` lanes of the block went before. */
HL_INLINE void store_line(const hl_wino_out *o, float *y, int n, int block, const hl_vf v[4], hl_vf bias,
                          hl_vi keep)
{
    for (int w = 0; w < n; w++) {
        hl_vf s = v[w] + bias, old = {0};
        float *to = y + w * block;
        bool blend = keep[HL_VL - 1] != 0;
        if (o->accumulate || blend) old = hl_load(to);
        if (o->accumulate) s += old;
        if (o->leaky) s = hl_select(s > 0.0f, s, s * o->slope);
        if (blend) s = hl_select(keep, old, s);
        hl_store(to, s);
    }
}

/* D from the points; H; W into the cells. */
HL_INLINE void output_body(const int m, const int block, const float *p, int64_t p_step, const hl_wino_out *o,
                           int v0)
{
    const int a = m + 2;
    hl_vf t[4][HL_WINO_SIDE][HL_WINO_SIDE], in[HL_WINO_SIDE], out[4];
    for (int h = 0; h < a; h++)
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int d = 0; d < a; d++) in[d] = hl_load(p + ((d * a + h) * a + w) * p_step);
            outputs_of_points(m, in, out);
            HL_UNROLL for (int d = 0; d < m; d++) t[d][h][w] = out[d];
        }
    hl_vi keep = {0};
    for (int l = 0; l < HL_VL; l++) keep[l] = v0 + l < o->live ? 0 : -1;
    hl_vf bias = {0};
    if (o->bias) bias = hl_load(o->bias + v0);
    for (int d = 0; d < o->n[0]; d++) {
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int h = 0; h < a; h++) in[h] = t[d][h][w];
            outputs_of_points(m, in, out);
            HL_UNROLL for (int h = 0; h < m; h++) t[d][h][w] = out[h];
        }
        for (int h = 0; h < o->n[1]; h++) {
            HL_UNROLL for (int w = 0; w < a; w++) in[w] = t[d][h][w];
            outputs_of_points(m, in, out);
            float *y = o->y + d * o->y_d + h * o->y_h + v0;
            if (o->n[2] == m)
                store_line(o, y, m, block, out, bias, keep);
            else
                store_line(o, y, o->n[2], block, out, bias, keep);
        }
    }
}

HL_INLINE void weights_body(const int m, const int block, const float *g, float *image, int64_t step)
{
    const int a = m + 2;
    hl_vf t[3][HL_WINO_SIDE][HL_WINO_SIDE], in[3], p[HL_WINO_SIDE];
    for (int d = 0; d < 3; d++) {
        for (int h = 0; h < 3; h++) {
            HL_UNROLL for (int w = 0; w < 3; w++) in[w] = hl_load(g + ((d * 3 + h) * 3 + w) * block);
            points_of_weights(m, in, p);
            HL_UNROLL for (int w = 0; w < a; w++) t[d][h][w] = p[w];
        }
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int h = 0; h < 3; h++) in[h] = t[d][h][w];
            points_of_weights(m, in, p);
            HL_UNROLL for (int h = 0; h < a; h++) t[d][h][w] = p[h];
        }
    }
    for (int h = 0; h < a; h++)
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int d = 0; d < 3; d++) in[d] = t[d][h][w];
            points_of_weights(m, in, p);
            HL_UNROLL for (int d = 0; d < a; d++) hl_store(image + ((d * a + h) * a + w) * step, p[d]);
        }
}

HL_INLINE void gradient_body(const int m, const int block, const float *y, int64_t y_d, int64_t y_h, float *v,
                             int64_t v_step)
{
    const int a = m + 2;
    hl_vf t[4][HL_WINO_SIDE][HL_WINO_SIDE], in[4], p[HL_WINO_SIDE];
    for (int d = 0; d < m; d++) {
        for (int h = 0; h < m; h++) {
            HL_UNROLL for (int w = 0; w < m; w++) in[w] = hl_load(y + d * y_d + h * y_h + w * block);
            points_of_gradient(m, in, p);
            HL_UNROLL for (int w = 0; w < a; w++) t[d][h][w] = p[w];
        }
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int h = 0; h < m; h++) in[h] = t[d][h][w];
            points_of_gradient(m, in, p);
            HL_UNROLL for (int h = 0; h < a; h++) t[d][h][w] = p[h];
        }
    }
    for (int h = 0; h < a; h++)
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int d = 0; d < m; d++) in[d] = t[d][h][w];
            points_of_gradient(m, in, p);
            HL_UNROLL for (int d = 0; d < a; d++) hl_store(v + ((d * a + h) * a + w) * v_step, p[d]);
        }
}

HL_INLINE void kernels_body(const int m, const int block, const float *g, int64_t step, float *dw)
{
    const int a = m + 2;
    hl_vf t[3][HL_WINO_SIDE][HL_WINO_SIDE], in[HL_WINO_SIDE], out[3];
    for (int h = 0; h < a; h++)
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int d = 0; d < a; d++) in[d] = hl_load(g + ((d * a + h) * a + w) * step);
            kernel_of_points(m, in, out);
            HL_UNROLL for (int d = 0; d < 3; d++) t[d][h][w] = out[d];
        }
    for (int d = 0; d < 3; d++) {
        for (int w = 0; w < a; w++) {
            HL_UNROLL for (int h = 0; h < a; h++) in[h] = t[d][h][w];
            kernel_of_points(m, in, out);
            HL_UNROLL for (int h = 0; h < 3; h++) t[d][h][w] = out[h];
        }
        for (int h = 0; h < 3; h++) {
            HL_UNROLL for (int w = 0; w < a; w++) in[w] = t[d][h][w];
            kernel_of_points(m, in, out);
            HL_UNROLL for (int w = 0; w < 3; w++) hl_store(dw + ((d * 3 + h) * 3 + w) * block, out[w]);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------------
 * products */

/* Eight or sixteen input channels by one vector of outputs. A batch's sum is made from zero and then added:
 * one chain of roundings over all tiles of a large volume would break the bound. */
HL_INLINE void correlate_body(const int block, const int rows, const float *u, const float *v, int64_t n,
                              bool add, float *g)
{
    hl_vf acc[16];
    HL_UNROLL for (int i = 0; i < rows; i++) acc[i] = (hl_vf){0};
    for (int64_t t = 0; t < n; t++) {
        hl_vf y = hl_load(v + t * block);
        HL_UNROLL for (int i = 0; i < rows; i++) acc[i] += y * u[t * block + i];
    }
    HL_UNROLL for (int i = 0; i < rows; i++)
        hl_store(g + i * block, add ? hl_load(g + i * block) + acc[i] : acc[i]);
}

HL_INLINE void product_body(const int block, const int nv, const int rows, const float *u, const float *w,
                            int64_t n, int64_t width, float *m)
{
    hl_vf acc[ROWS][2];
    HL_UNROLL for (int r = 0; r < rows; r++) HL_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = (hl_vf){0};
    for (; n > 0; n -= block, u += ROWS * block) {
        const int64_t live = n < block ? n : block;
        for (int64_t c = 0; c < live; c++, w += width) {
            hl_vf wv[2];
            HL_UNROLL for (int v = 0; v < nv; v++) wv[v] = hl_load(w + v * HL_VL);
            HL_UNROLL for (int r = 0; r < rows; r++)
            {
                float x = u[r * block + c];
                HL_UNROLL for (int v = 0; v < nv; v++) acc[r][v] += wv[v] * x;
            }
        }
    }
    HL_UNROLL for (int r = 0; r < rows; r++) HL_UNROLL for (int v = 0; v < nv; v++)
        hl_store(m + r * width + v * HL_VL, acc[r][v]);
}

#define PRODUCT(block, nv, rows)                                                                             \
    static void product_##block##_##nv##_##rows(const float *u, const float *w, int64_t n, int64_t width,    \
                                                float *m)                                                    \
    {                                                                                                        \
        if ((rows) <= ROWS) product_body(block, nv, rows, u, w, n, width, m);                                \
    }
#define PRODUCTS(block, nv)                                                                                  \
    PRODUCT(block, nv, 1)                                                                                    \
    PRODUCT(block, nv, 2) PRODUCT(block, nv, 3) PRODUCT(block, nv, 4) PRODUCT(block, nv, 5)                  \
        PRODUCT(block, nv, 6) PRODUCT(block, nv, 7) PRODUCT(block, nv, 8) PRODUCT(block, nv, 9)              \
            PRODUCT(block, nv, 10) PRODUCT(block, nv, 11) PRODUCT(block, nv, 12) PRODUCT(block, nv, 13)      \
                PRODUCT(block, nv, 14)
#define AT(block, nv, rows) [rows] = (rows) <= ROWS ? product_##block##_##nv##_##rows : NULL
#define LIST(block, nv)                                                                                      \
    {                                                                                                        \
        AT(block, nv, 1), AT(block, nv, 2), AT(block, nv, 3), AT(block, nv, 4), AT(block, nv, 5),            \
            AT(block, nv, 6), AT(block, nv, 7), AT(block, nv, 8), AT(block, nv, 9), AT(block, nv, 10),       \
            AT(block, nv, 11), AT(block, nv, 12), AT(block, nv, 13), AT(block, nv, 14)                       \
    }

/* ------------------------------------------------------------------------------------------------------------------
 * tables */

#define TABLE(block_)                                                                                        \
    PRODUCTS(block_, 1)                                                                                      \
    PRODUCTS(block_, 2)                                                                                      \
    static void input_##block_(int m, const float *x, int64_t x_d, int64_t x_h, float *u, int64_t u_step)    \
    {                                                                                                        \
        for (int v = 0; v < block_; v += HL_VL)                                                              \
            if (m == 2)                                                                                      \
                input_body(2, block_, x + v, x_d, x_h, u + v, u_step);                                       \
            else                                                                                             \
                input_body(4, block_, x + v, x_d, x_h, u + v, u_step);                                       \
    }                                                                                                        \
    static void output_##block_(int m, const float *p, int64_t p_step, const hl_wino_out *o)                 \
    {                                                                                                        \
        for (int v = 0; v < block_ && v < o->live; v += HL_VL)                                               \
            if (m == 2)                                                                                      \
                output_body(2, block_, p + v, p_step, o, v);                                                 \
            else                                                                                             \
                output_body(4, block_, p + v, p_step, o, v);                                                 \
    }                                                                                                        \
    static void weights_##block_(int m, const float *g, float *image, int64_t step)                          \
    {                                                                                                        \
        for (int v = 0; v < block_; v += HL_VL)                                                              \
            if (m == 2)                                                                                      \
                weights_body(2, block_, g + v, image + v, step);                                             \
            else                                                                                             \
                weights_body(4, block_, g + v, image + v, step);                                             \
    }                                                                                                        \
    static void gradient_##block_(int m, const float *y, int64_t y_d, int64_t y_h, float *u, int64_t u_step) \
    {                                                                                                        \
        for (int v = 0; v < block_; v += HL_VL)                                                              \
            if (m == 2)                                                                                      \
                gradient_body(2, block_, y + v, y_d, y_h, u + v, u_step);                                    \
            else                                                                                             \
                gradient_body(4, block_, y + v, y_d, y_h, u + v, u_step);                                    \
    }                                                                                                        \
    static void correlate_##block_(const float *u, const float *v, int64_t n, bool add, float *g)            \
    {                                                                                                        \
        enum { STEP = HL_VL == 16 ? 16 : 8 };                                                                \
        for (int l = 0; l < block_; l += HL_VL)                                                              \
            for (int i = 0; i < block_; i += STEP)                                                           \
                correlate_body(block_, STEP, u + i, v + l, n, add, g + i * block_ + l);                      \
    }                                                                                                        \
    static void kernels_##block_(int m, const float *g, int64_t step, float *dw)                             \
    {                                                                                                        \
        for (int v = 0; v < block_; v += HL_VL)                                                              \
            if (m == 2)                                                                                      \
                kernels_body(2, block_, g + v, step, dw + v);                                                \
            else                                                                                             \
                kernels_body(4, block_, g + v, step, dw + v);                                                \
    }                                                                                                        \
    const hl_wino_kern HL_K(wino_##block_) = {                                                               \
        .block = block_,                                                                                     \
        .lanes = HL_VL,                                                                                      \
        .rows = ROWS,                                                                                        \
        .input = input_##block_,                                                                             \
        .output = output_##block_,                                                                           \
        .product = {[1] = LIST(block_, 1), [2] = LIST(block_, 2)},                                           \
        .gradient = gradient_##block_,                                                                       \
        .correlate = correlate_##block_,                                                                     \
        .kernels = kernels_##block_,                                                                         \
        .weights = weights_##block_,                                                                         \
    };

extern const hl_wino_kern HL_K(wino_16);
TABLE(16)
#if HL_VL <= 8
extern const hl_wino_kern HL_K(wino_8);
TABLE(8)
#endif
