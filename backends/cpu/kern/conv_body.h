/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_body.h -- the source of the convolution kernels, compiled once per instruction set and lane count: the including file defines HL_LANES and
 * HL_TABLE (the name of the table it makes); the compiler's flags choose the instructions.
 *
 * GCC's vector types stand for the registers: HL_REGS vectors are what the register file holds beside operands. All tile loops have constant bounds
 * and are unrolled in full, so that the accumulators are registers, and a product and its sum contract to one fma.
 */
#include "backends/cpu/kern/conv.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors pass between inlined functions only */

typedef float vf __attribute__((vector_size(HL_LANES * 4)));
typedef int32_t vi __attribute__((vector_size(HL_LANES * 4)));
typedef float vfu __attribute__((vector_size(HL_LANES * 4), aligned(4), may_alias));

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define HL_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* code that a table never enters need not be unrolled */
#define HL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HL_UNROLL _Pragma("GCC unroll 32")
#endif

#define HL_IN_ORDER __asm__ volatile("" ::: "memory")

/* Vector registers of the target in units of V, less a few for operands. */
#if defined(__AVX512F__)
#define HL_REGS (28 * 16 / HL_LANES)
#elif defined(__AVX2__)
#define HL_REGS (12 * 8 / HL_LANES)
#elif defined(__aarch64__)
#define HL_REGS (24 * 4 / HL_LANES)
#else
#define HL_REGS (12 * 4 / HL_LANES)
#endif
#if HL_REGS > 28
#undef HL_REGS
#define HL_REGS 28
#endif

HL_INLINE vf load(const float *p) { return *(const vfu *)p; }
HL_INLINE void store(float *p, vf v) { *(vfu *)p = v; }

/* Past the caches: for results that nobody reads before they would have been evicted. p is aligned to V. */
HL_INLINE void stream(float *p, vf v)
{
#if defined(__AVX512F__) && HL_LANES == 16
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
    __m256 part[HL_LANES / 8];
    memcpy(part, &v, sizeof(v));
    HL_UNROLL for (int i = 0; i < HL_LANES / 8; i++) _mm256_stream_ps(p + i * 8, part[i]);
#elif defined(__SSE2__)
    __m128 part[HL_LANES / 4];
    memcpy(part, &v, sizeof(v));
    HL_UNROLL for (int i = 0; i < HL_LANES / 4; i++) _mm_stream_ps(p + i * 4, part[i]);
#else
    store(p, v);
#endif
}

static void fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* ------------------------------------------------------------------------------------------------------------------- tiles */

HL_INLINE vf leaky(vf v, float slope)
{
    vi positive = v > 0.0f;
    vf scaled = v * slope;
    return (vf)(((vi)v & positive) | ((vi)scaled & ~positive));
}

HL_INLINE float *tile_y(const hl_conv_tile *t, int o, int p, bool list)
{
    return t->y + o * t->y_vec + (list ? t->y_at[p] : p * t->y_step);
}

HL_INLINE void tile_start(const hl_conv_tile *t, int ov, int np, bool list, vf acc[HL_TILE_V][HL_TILE_P])
{
    if (t->start == HL_START_LOAD) {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) acc[o][p] = load(tile_y(t, o, p, list));
    } else if (t->start == HL_START_BIAS) {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) acc[o][p] = load(t->bias + o * HL_LANES);
    } else {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) acc[o][p] = (vf){0};
    }
}

HL_INLINE void tile_finish(const hl_conv_tile *t, int ov, int np, bool list, vf acc[HL_TILE_V][HL_TILE_P])
{
    if (t->leaky) {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) acc[o][p] = leaky(acc[o][p], t->slope);
    }
    if (t->stream) {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) stream(tile_y(t, o, p, list), acc[o][p]);
    } else {
        HL_UNROLL for (int o = 0; o < ov; o++)
            HL_UNROLL for (int p = 0; p < np; p++) store(tile_y(t, o, p, list), acc[o][p]);
    }
}

/* The terms [j0, j1) of a row for positions [p0, p1). */
HL_INLINE void tile_terms(vf acc[HL_TILE_V][HL_TILE_P], const float *x, const float *w, int64_t w_vec, int64_t j0, int64_t j1, int ov, int p0,
                          int p1, int step)
{
    for (int64_t j = j0; j < j1; j++) {
        vf wv[HL_TILE_V];
        HL_UNROLL for (int o = 0; o < ov; o++) wv[o] = load(w + o * w_vec + j * HL_LANES);
        HL_UNROLL for (int p = p0; p < p1; p++)
        {
            float v = x[p * step + j];
            HL_UNROLL for (int o = 0; o < ov; o++) acc[o][p] += wv[o] * v;
        }
    }
}

/* Step 1 in positions, rows of two taps and more: the first position lacks the first tap (left), the last one the last (right). */
HL_INLINE void tile_cut(const hl_conv_tile *t, int ov, int np, int left, int right)
{
    vf acc[HL_TILE_V][HL_TILE_P];
    tile_start(t, ov, np, false, acc);
    for (const hl_conv_row *row = t->rows, *end = t->rows + t->nrows; row < end; row++) {
        const float *x = t->x + row->x, *w = t->w + row->w * HL_LANES;
        const int64_t w_vec = t->w_vec, first = left * HL_LANES, last = row->n - right * HL_LANES;
        if (left) tile_terms(acc, x, w, w_vec, 0, first, ov, 1, np, HL_LANES);
        tile_terms(acc, x, w, w_vec, first, last, ov, 0, np, HL_LANES);
        if (right) tile_terms(acc, x, w, w_vec, last, row->n, ov, 0, np - 1, HL_LANES);
    }
    tile_finish(t, ov, np, false, acc);
}

/* One channel and three taps along w: rows of three terms, too short for a loop. */
HL_INLINE void tile_three(const hl_conv_tile *t, int ov, int np)
{
    vf acc[HL_TILE_V][HL_TILE_P];
    tile_start(t, ov, np, false, acc);
    for (const hl_conv_row *row = t->rows, *end = t->rows + t->nrows; row < end; row++) {
        const float *x = t->x + row->x, *w = t->w + row->w * HL_LANES;
        HL_UNROLL for (int j = 0; j < 3; j++)
        {
            vf wv[HL_TILE_V];
            HL_UNROLL for (int o = 0; o < ov; o++) wv[o] = load(w + o * t->w_vec + j * HL_LANES);
            HL_UNROLL for (int p = 0; p < np; p++)
            {
                HL_UNROLL for (int o = 0; o < ov; o++) acc[o][p] += wv[o] * x[p + j];
            }
        }
    }
    tile_finish(t, ov, np, false, acc);
}

/* step > 0: floats between positions of x; 0: listed. */
HL_INLINE void tile_body(const hl_conv_tile *t, int ov, int np, int step)
{
    vf acc[HL_TILE_V][HL_TILE_P];
    const float *at[HL_TILE_LIST];
    tile_start(t, ov, np, step == 0, acc);
    for (const hl_conv_row *row = t->rows, *end = t->rows + t->nrows; row < end; row++) {
        const float *x = t->x + row->x, *w = t->w + row->w * HL_LANES;
        const int64_t n = row->n, w_vec = t->w_vec;
        if (step == 0) {
            HL_UNROLL for (int p = 0; p < np; p++) at[p] = x + t->x_at[p];
        }
        for (int64_t j = 0; j < n; j++) {
            vf wv[HL_TILE_V];
            HL_UNROLL for (int o = 0; o < ov; o++) wv[o] = load(w + o * w_vec + j * HL_LANES);
            HL_UNROLL for (int p = 0; p < np; p++)
            {
                float v = step == 0 ? at[p][j] : x[p * step + j];
                HL_UNROLL for (int o = 0; o < ov; o++) acc[o][p] += wv[o] * v;
            }
        }
    }
    tile_finish(t, ov, np, step == 0, acc);
}

#define TILE(name, step, ov, np)                                                                             \
    static void tile_##name##_##ov##_##np(const hl_conv_tile *t)                                             \
    {                                                                                                        \
        if ((ov) * (np) <= HL_REGS) tile_body(t, ov, np, step);                                              \
    }
#define TILES_8(name, step, ov)                                                                              \
    TILE(name, step, ov, 1) TILE(name, step, ov, 2) TILE(name, step, ov, 3) TILE(name, step, ov, 4)          \
    TILE(name, step, ov, 5) TILE(name, step, ov, 6) TILE(name, step, ov, 7) TILE(name, step, ov, 8)
#define TILES_14(name, step, ov)                                                                             \
    TILES_8(name, step, ov)                                                                                  \
    TILE(name, step, ov, 9) TILE(name, step, ov, 10) TILE(name, step, ov, 11)                                \
    TILE(name, step, ov, 12) TILE(name, step, ov, 13) TILE(name, step, ov, 14)

#define AT(name, ov, np) [np] = (ov) * (np) <= HL_REGS ? tile_##name##_##ov##_##np : NULL
#define LIST_8(name, ov)                                                                                     \
    AT(name, ov, 1), AT(name, ov, 2), AT(name, ov, 3), AT(name, ov, 4), AT(name, ov, 5), AT(name, ov, 6),    \
        AT(name, ov, 7), AT(name, ov, 8)
#define LIST_14(name, ov)                                                                                    \
    LIST_8(name, ov), AT(name, ov, 9), AT(name, ov, 10), AT(name, ov, 11), AT(name, ov, 12),                 \
        AT(name, ov, 13), AT(name, ov, 14)

/* Output vectors per tile: 1, 2 and, where registers are few or positions short, 4. */
TILES_14(lanes, HL_LANES, 1)
TILES_14(lanes, HL_LANES, 2)
TILES_8(lanes, HL_LANES, 4)
TILES_14(one, 1, 1)
TILES_14(one, 1, 2)
TILES_8(one, 1, 4)
TILES_14(four, 4, 1)
TILES_14(four, 4, 2)
TILES_8(four, 4, 4)
TILES_8(list, 0, 1)
TILES_8(list, 0, 2)
TILES_8(list, 0, 4)

#undef TILE
#define TILE(name, cut, ov, np)                                                                              \
    static void tile_##name##_##ov##_##np(const hl_conv_tile *t)                                             \
    {                                                                                                        \
        if ((ov) * (np) <= HL_REGS) tile_cut(t, ov, np, (cut) % 2, (cut) / 2);                               \
    }
TILES_14(left, 1, 1)
TILES_14(left, 1, 2)
TILES_8(left, 1, 4)
TILES_14(right, 2, 1)
TILES_14(right, 2, 2)
TILES_8(right, 2, 4)
TILES_14(both, 3, 1)
TILES_14(both, 3, 2)
TILES_8(both, 3, 4)

#undef TILE
#define TILE(name, step, ov, np)                                                                             \
    static void tile_##name##_##ov##_##np(const hl_conv_tile *t)                                             \
    {                                                                                                        \
        if ((ov) * (np) <= HL_REGS) tile_three(t, ov, np);                                                   \
    }
TILES_14(three, 1, 1)
TILES_14(three, 1, 2)
TILES_8(three, 1, 4)

/* --------------------------------------------------------------------------------------------------------------------- runs */

HL_INLINE void run_body(const hl_conv_corr *c, int nr, int nj)
{
    vf acc[HL_RUN_R][HL_RUN_J];
    HL_UNROLL for (int r = 0; r < nr; r++)
        HL_UNROLL for (int j = 0; j < nj; j++) acc[r][j] = load(c->dw + c->dw_at[r] + j * c->dw_col);
    const int64_t nw = c->nw, x_w = c->x_w;
    for (int64_t d = 0; d < c->nd; d++)
        for (int64_t h = 0; h < c->nh; h++) {
            const float *dy = c->dy + d * c->dy_d + h * c->dy_h, *x = c->x + d * c->x_d + h * c->x_h;
            const float *at[HL_RUN_R];
            HL_UNROLL for (int r = 0; r < nr; r++) at[r] = x + c->at[r];
            for (int64_t w = 0, q = 0; w < nw; w++, q += x_w) {
                vf g = load(dy + w * HL_LANES);
                HL_UNROLL for (int r = 0; r < nr; r++)
                    HL_UNROLL for (int j = 0; j < nj; j++) acc[r][j] += g * at[r][q + j];
            }
        }
    HL_UNROLL for (int r = 0; r < nr; r++)
        HL_UNROLL for (int j = 0; j < nj; j++) store(c->dw + c->dw_at[r] + j * c->dw_col, acc[r][j]);
}

#define RUN(nj, nr)                                                                                          \
    static void run_##nj##_##nr(const hl_conv_corr *c)                                                       \
    {                                                                                                        \
        if ((nj) * (nr) <= HL_REGS) run_body(c, nr, nj);                                                     \
    }
#define RUNS(nj)                                                                                             \
    RUN(nj, 1) RUN(nj, 2) RUN(nj, 3) RUN(nj, 4) RUN(nj, 5) RUN(nj, 6) RUN(nj, 7) RUN(nj, 8) RUN(nj, 9)
#define RUN_AT(nj, nr) [nr] = (nj) * (nr) <= HL_REGS ? run_##nj##_##nr : NULL
#define RUN_LIST(nj)                                                                                         \
    [nj] = {RUN_AT(nj, 1), RUN_AT(nj, 2), RUN_AT(nj, 3), RUN_AT(nj, 4), RUN_AT(nj, 5), RUN_AT(nj, 6),        \
            RUN_AT(nj, 7), RUN_AT(nj, 8), RUN_AT(nj, 9)}

RUNS(1)
RUNS(2)
RUNS(3)
RUNS(4)

/* ------------------------------------------------------------------------------------------------------------------- slides */

#define SLIDE_LANES(k) ((k) * 16 <= HL_REGS && HL_LANES >= 16 ? 16 : (k) * 8 <= HL_REGS ? 8 : (k) * 4 <= HL_REGS ? 4 : (k) * 2 <= HL_REGS ? 2 : 1)

/* One input position: taps k0 <= k < k1 with g[k] = dy[q - k] meet ni lanes of x. */
HL_INLINE void slide_step(const float *x, const vf g[HL_SLIDE_K], int k0, int k1, int ni, vf acc[HL_SLIDE_K][16])
{
    HL_UNROLL for (int i = 0; i < ni; i++)
        HL_UNROLL for (int k = k0; k < k1; k++) acc[k][i] += g[k] * x[i];
}

/* The same with 16 registers: taps from the third on come from memory, as an operand of the fma, each time. */
#define HL_TIGHT (HL_REGS <= 12)
HL_INLINE void slide_tight(const float *x, const float *dy, int nk, int ni, vf acc[HL_SLIDE_K][16])
{
    vf g[2];
    HL_UNROLL for (int k = 0; k < (nk < 2 ? nk : 2); k++) g[k] = load(dy - k * HL_LANES);
    HL_UNROLL for (int i = 0; i < ni; i++)
    {
        HL_UNROLL for (int k = 0; k < nk; k++) acc[k][i] += (k < 2 ? g[k & 1] : load(dy - k * HL_LANES)) * x[i];
        HL_IN_ORDER;
    }
}

/* Lines shorter than the taps: zeros for what is missing. */
HL_INLINE void slide_short(const hl_conv_corr *c, const float *x, const float *dy, int nk, int ni, vf acc[HL_SLIDE_K][16])
{
    for (int64_t q = c->x0; q < c->x1; q++) {
        vf g[HL_SLIDE_K];
        HL_UNROLL for (int k = 0; k < nk; k++) g[k] = q >= k && q - k < c->nw ? load(dy + (q - k) * HL_LANES) : (vf){0};
        slide_step(x + q * HL_LANES, g, 0, nk, ni, acc);
    }
}

/*
 * One line. Inputs 0 to nk - 2 meet the first outputs only, inputs from nw on the last: these steps have fewer taps. Between them the registers g
 * turn: nk positions at a time, so that their roles come round without copies.
 */
HL_INLINE void slide_row(const hl_conv_corr *c, const float *x, const float *dy, int nk, int ni, vf acc[HL_SLIDE_K][16])
{
    int64_t q = c->x0, nw = c->nw, x1 = c->x1, inner = hl_min64(x1, nw);
    vf g[HL_SLIDE_K], t[HL_SLIDE_K];
    HL_UNROLL for (int s = 0; s < nk - 1; s++)
    {
        if (q != s || q >= x1) continue;
        HL_UNROLL for (int k = 0; k <= s; k++) g[k] = load(dy + (s - k) * HL_LANES);
        slide_step(x + s * HL_LANES, g, 0, s + 1, ni, acc);
        q++;
    }
    for (; HL_TIGHT && q < inner; q++) slide_tight(x + q * HL_LANES, dy + q * HL_LANES, nk, ni, acc);
    if (q < inner) {
        HL_UNROLL for (int k = 1; k < nk; k++) g[k] = load(dy + (q - k) * HL_LANES);
        for (; q + nk <= inner; q += nk) {
            HL_UNROLL for (int s = 0; s < nk; s++)
            {
                /* position q + s: tap k needs dy[q + s - k], which lies in register (k - s) mod nk */
                g[(nk - s) % nk] = load(dy + (q + s) * HL_LANES);
                HL_UNROLL for (int k = 0; k < nk; k++) t[k] = g[(k - s + nk) % nk];
                slide_step(x + (q + s) * HL_LANES, t, 0, nk, ni, acc);
                HL_IN_ORDER; /* loads of the next position, made early, would push sums out of the registers */
            }
        }
        for (; q < inner; q++) {
            g[0] = load(dy + q * HL_LANES);
            slide_step(x + q * HL_LANES, g, 0, nk, ni, acc);
            HL_UNROLL for (int k = nk - 1; k > 0; k--) g[k] = g[k - 1];
        }
    }
    HL_UNROLL for (int s = 0; s < nk - 1; s++)
    {
        if (q != nw + s || q >= x1) continue;
        HL_UNROLL for (int k = s + 1; k < nk; k++) g[k] = load(dy + (nw + s - k) * HL_LANES);
        slide_step(x + q * HL_LANES, g, s + 1, nk, ni, acc);
        q++;
    }
}

HL_INLINE void slide_body(const hl_conv_corr *c, int nk, int ni)
{
    vf acc[HL_SLIDE_K][16];
    HL_UNROLL for (int k = 0; k < nk; k++)
        HL_UNROLL for (int i = 0; i < ni; i++) acc[k][i] = load(c->dw + k * c->dw_row + i * c->dw_col);
    for (int64_t d = 0; d < c->nd; d++)
        for (int64_t h = 0; h < c->nh; h++) {
            const float *x = c->x + d * c->x_d + h * c->x_h, *dy = c->dy + d * c->dy_d + h * c->dy_h;
            if (c->nw >= nk && c->x0 >= 0)
                slide_row(c, x, dy, nk, ni, acc);
            else
                slide_short(c, x, dy, nk, ni, acc);
        }
    HL_UNROLL for (int k = 0; k < nk; k++)
        HL_UNROLL for (int i = 0; i < ni; i++) store(c->dw + k * c->dw_row + i * c->dw_col, acc[k][i]);
}

static void slide_1(const hl_conv_corr *c) { slide_body(c, 1, SLIDE_LANES(1)); }
static void slide_2(const hl_conv_corr *c) { slide_body(c, 2, SLIDE_LANES(2)); }
static void slide_3(const hl_conv_corr *c) { slide_body(c, 3, SLIDE_LANES(3)); }

/* -------------------------------------------------------------------------------------------------------------------- others */

static void sum_rows(const hl_conv_corr *c)
{
    vf a = load(c->dw), b = {0};
    for (int64_t d = 0; d < c->nd; d++)
        for (int64_t h = 0; h < c->nh; h++) {
            const float *dy = c->dy + d * c->dy_d + h * c->dy_h;
            int64_t w = 0;
            for (; w + 2 <= c->nw; w += 2) {
                a += load(dy + w * HL_LANES);
                b += load(dy + (w + 1) * HL_LANES);
            }
            if (w < c->nw) a += load(dy + w * HL_LANES);
        }
    store(c->dw, a + b);
}

static void spread(const float *in, int64_t nt, int64_t nv, float *out, int64_t out_step, bool accumulate)
{
    for (int64_t v = 0; v < nv; v++) {
        float *to = out + v * out_step;
        if (accumulate)
            for (int64_t t = 0; t < nt; t++) to[t] += in[t * HL_LANES + v];
        else
            for (int64_t t = 0; t < nt; t++) to[t] = in[t * HL_LANES + v];
    }
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))

const hl_conv_kern HL_TABLE = {
    .lanes = HL_LANES,
    .max_v = HL_REGS >= 4 ? 4 : HL_REGS >= 2 ? 2 : 1,
    .max_p = {[1] = LEAST(HL_REGS, 14), [2] = LEAST(HL_REGS / 2, 14), [4] = LEAST(HL_REGS / 4, 8)},
    .max_r = {[1] = LEAST(HL_REGS, 9), [2] = LEAST(HL_REGS / 2, 9), [3] = LEAST(HL_REGS / 3, 9), [4] = LEAST(HL_REGS / 4, 9)},
    .slide_i = {[1] = SLIDE_LANES(1), [2] = SLIDE_LANES(2), [3] = SLIDE_LANES(3)},
    .tile = {[HL_STEP_LANES] = {[1] = {LIST_14(lanes, 1)}, [2] = {LIST_14(lanes, 2)}, [4] = {LIST_8(lanes, 4)}},
             [HL_STEP_ONE] = {[1] = {LIST_14(one, 1)}, [2] = {LIST_14(one, 2)}, [4] = {LIST_8(one, 4)}},
             [HL_STEP_THREE] = {[1] = {LIST_14(three, 1)}, [2] = {LIST_14(three, 2)}, [4] = {LIST_8(three, 4)}},
             [HL_STEP_FOUR] = {[1] = {LIST_14(four, 1)}, [2] = {LIST_14(four, 2)}, [4] = {LIST_8(four, 4)}},
             [HL_STEP_LEFT] = {[1] = {LIST_14(left, 1)}, [2] = {LIST_14(left, 2)}, [4] = {LIST_8(left, 4)}},
             [HL_STEP_RIGHT] = {[1] = {LIST_14(right, 1)}, [2] = {LIST_14(right, 2)}, [4] = {LIST_8(right, 4)}},
             [HL_STEP_BOTH] = {[1] = {LIST_14(both, 1)}, [2] = {LIST_14(both, 2)}, [4] = {LIST_8(both, 4)}},
             [HL_STEP_LIST] = {[1] = {LIST_8(list, 1)}, [2] = {LIST_8(list, 2)}, [4] = {LIST_8(list, 4)}}},
    .run = {RUN_LIST(1), RUN_LIST(2), RUN_LIST(3), RUN_LIST(4)},
    .slide = {[1] = slide_1, [2] = slide_2, [3] = slide_3},
    .fence = fence,
    .sum = sum_rows,
    .spread = spread,
};
