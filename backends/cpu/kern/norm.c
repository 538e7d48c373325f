/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c -- normalisation: sums about a centre in double, and the affine maps of both directions. Parameters repeat with period `tile` (kern.h).
 *
 * The mean enters as two floats, center and the rest folded into shift: x - center then is exact for x near the mean, so values of 1e4 with
 * deviations of 1e-2 are normalised as well as small ones.
 */
#include "elementary.h"
#include "kern.h"
#include "vec.h"

#define TILES(statement)                                                                                     \
    do {                                                                                                     \
        for (int64_t b = 0; b < n; b += tile) {                                                              \
            int64_t left = n - b < tile ? n - b : tile;                                                      \
            _Pragma("omp simd") for (int64_t i = 0; i < left; i++) statement;                                \
        }                                                                                                    \
    } while (0)

/* One tile of parameters stays in registers where it is one block of channels. */
#define TILES16(statement)                                                                                   \
    do {                                                                                                     \
        int64_t b = 0;                                                                                       \
        for (; b + HL_TILE <= n; b += HL_TILE) {                                                             \
            _Pragma("omp simd") for (int64_t i = 0; i < HL_TILE; i++) statement;                             \
        }                                                                                                    \
        for (int64_t i = 0; i < n - b; i++) statement;                                                       \
    } while (0)

#define ANY_TILE(statement)                                                                                  \
    do {                                                                                                     \
        if (tile == HL_TILE)                                                                                 \
            TILES16(statement);                                                                              \
        else                                                                                                 \
            TILES(statement);                                                                                \
    } while (0)

static inline float leaky(float slope, float v) { return v > 0 ? v : slope * v; }
static inline float relu(float v) { return v <= 0 ? 0.0f : v; }
#define AFFINE ((x[b + i] - center[i]) * scale[i] + shift[i])

void HL_K(affine)(halo_act act, float slope, const float *x, float *y, int64_t n, int64_t tile, const float *center, const float *scale,
                  const float *shift)
{
    switch (act) {
    case HALO_ACT_NONE: ANY_TILE(y[b + i] = AFFINE); return;
    case HALO_ACT_LEAKY_RELU: ANY_TILE(y[b + i] = leaky(slope, AFFINE)); return;
    case HALO_ACT_RELU: ANY_TILE(y[b + i] = relu(AFFINE)); return;
    case HALO_ACT_TANH: ANY_TILE(y[b + i] = hl_tanh(AFFINE)); return;
    case HALO_ACT_SIGMOID: ANY_TILE(y[b + i] = hl_logistic(AFFINE)); return;
    case HALO_ACT_SCALE: ANY_TILE(y[b + i] = slope * AFFINE); return;
    }
}

void HL_K(norm_bwd)(const float *x, const float *dy, float *dx, int64_t n, int64_t tile, const float *center, const float *scale,
                    const float *slope, const float *shift)
{
    ANY_TILE(dx[b + i] = scale[i] * dy[b + i] + (slope[i] * (x[b + i] - center[i]) + shift[i]));
}

static inline hl_vd load_vd(const double *p)
{
    hl_vd v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void add_vd(double *p, hl_vd v)
{
    v += load_vd(p);
    memcpy(p, &v, sizeof(v));
}

/* HL_TILE floats, a cache line, at a time: where tiles are longer than that, a pass over the stretch still uses whole lines. */
enum { GROUP = HL_TILE / HL_VDL };

void HL_K(moments)(const float *x, int64_t n, int64_t tile, const double *center, double *sum, double *square)
{
    int64_t whole = n - n % tile;
    for (int64_t v = 0; v < tile; v += HL_TILE) {
        hl_vd c[GROUP], s[GROUP] = {{0}}, q[GROUP] = {{0}};
        for (int k = 0; k < GROUP; k++) c[k] = load_vd(center + v + k * HL_VDL);
        for (int64_t b = v; b < whole; b += tile)
            for (int k = 0; k < GROUP; k++) {
                hl_vd d = hl_load_d(x + b + k * HL_VDL) - c[k];
                s[k] += d;
                q[k] += d * d;
            }
        for (int k = 0; k < GROUP; k++) {
            add_vd(sum + v + k * HL_VDL, s[k]);
            add_vd(square + v + k * HL_VDL, q[k]);
        }
    }
    for (int64_t i = 0; i < n - whole; i++) {
        double d = x[whole + i] - center[i];
        sum[i] += d;
        square[i] += d * d;
    }
}

void HL_K(moments2)(const float *x, const float *dy, int64_t n, int64_t tile, const double *center, double *sum, double *product)
{
    int64_t whole = n - n % tile;
    for (int64_t v = 0; v < tile; v += HL_TILE) {
        hl_vd c[GROUP], s[GROUP] = {{0}}, q[GROUP] = {{0}};
        for (int k = 0; k < GROUP; k++) c[k] = load_vd(center + v + k * HL_VDL);
        for (int64_t b = v; b < whole; b += tile)
            for (int k = 0; k < GROUP; k++) {
                hl_vd g = hl_load_d(dy + b + k * HL_VDL);
                s[k] += g;
                q[k] += g * (hl_load_d(x + b + k * HL_VDL) - c[k]);
            }
        for (int k = 0; k < GROUP; k++) {
            add_vd(sum + v + k * HL_VDL, s[k]);
            add_vd(product + v + k * HL_VDL, q[k]);
        }
    }
    for (int64_t i = 0; i < n - whole; i++) {
        double g = dy[whole + i];
        sum[i] += g;
        product[i] += g * (x[whole + i] - center[i]);
    }
}
