/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c -- a row of pooling windows, forward and backward. Channels are the lanes of a vector, as many registers as they need and the rest narrower;
 * a window's cells come as a list of offsets, so that every kernel, dilation and border is the same loop.
 */
#include "kern.h"
#include "vec.h"

#if HL_VL >= 16
#define HL_N 16
#include "pool_lanes.h"
#endif
#if HL_VL >= 8
#define HL_N 8
#include "pool_lanes.h"
#endif
#define HL_N 4
#include "pool_lanes.h"
#define HL_N 1
#include "pool_lanes.h"

/* Calls cell16, cell8 ... for the lanes of one window, widest first. */
#if HL_VL >= 16
#define WIDEST(cell, ...) for (; l + 16 <= lanes; l += 16) cell##16(__VA_ARGS__);
#else
#define WIDEST(cell, ...)
#endif
#if HL_VL >= 8
#define WIDE(cell, ...) for (; l + 8 <= lanes; l += 8) cell##8(__VA_ARGS__);
#else
#define WIDE(cell, ...)
#endif
#define LANES(cell, ...)                                                                                     \
    do {                                                                                                     \
        int64_t l = 0;                                                                                       \
        WIDEST(cell, __VA_ARGS__)                                                                            \
        WIDE(cell, __VA_ARGS__)                                                                              \
        for (; l + 4 <= lanes; l += 4) cell##4(__VA_ARGS__);                                                 \
        for (; l < lanes; l++) cell##1(__VA_ARGS__);                                                         \
    } while (0)

void HL_K(pool_max)(const float *x, int64_t step, int64_t cells, int64_t lanes, hl_pool_taps taps, float *y, int64_t ystep, int32_t *index)
{
    for (int64_t j = 0; j < cells; j++, x += step, y += ystep)
        LANES(max_cell, x + l, taps, y + l, index ? index + j * lanes + l : NULL);
}

void HL_K(pool_sum)(const float *x, int64_t step, int64_t cells, int64_t lanes, hl_pool_taps taps, float factor, float *y, int64_t ystep)
{
    for (int64_t j = 0; j < cells; j++, x += step, y += ystep) LANES(sum_cell, x + l, taps, factor, y + l);
}

void HL_K(pool_max_bwd)(float *dx, int64_t step, int64_t kstep, int taps, int32_t first, int64_t cells, int64_t lanes, const float *dy,
                        int64_t ystep, const int32_t *index)
{
    for (int64_t j = 0; j < cells; j++, dx += step, dy += ystep, index += lanes)
        LANES(max_back_cell, dx + l, kstep, taps, first, dy + l, index + l);
}

void HL_K(pool_sum_bwd)(float *dx, int64_t step, int64_t kstep, int taps, float factor, int64_t cells, int64_t lanes, const float *dy,
                        int64_t ystep)
{
    for (int64_t j = 0; j < cells; j++, dx += step, dy += ystep) LANES(sum_back_cell, dx + l, kstep, taps, factor, dy + l);
}
