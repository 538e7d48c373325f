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

void HL_K(pool_save)(const hl_pool_saved *s, hl_pool_taps taps, const float *x, float *y, uint8_t *aux)
{
    const int64_t lanes = s->lanes;
    const float factor = s->factor;
    for (int64_t j = 0; j < s->cells; j++, x += s->x_step, y += s->y_step, aux = aux ? aux + s->aux_step : NULL) {
        if (s->max)
            LANES(max_save_cell, x + l, taps, y + l, aux ? aux + l : NULL);
        else
            LANES(mean_save_cell, x + l, taps, factor, y + l, aux ? aux + l : NULL);
    }
}

void HL_K(unpool)(const hl_unpool *u, const float *dy, const float *y, const uint8_t *aux, float *dx)
{
    const int64_t lanes = u->s.lanes;
    for (int64_t j = 0; j < u->s.cells; j++, dx += u->s.x_step, dy += u->s.y_step) {
        if (u->s.max)
            LANES(unpool_max_cell, u, dy + l, y ? y + l : NULL, aux + l, dx + l);
        else
            LANES(unpool_mean_cell, u, dy + l, aux ? aux + l : NULL, dx + l);
        if (y) y += u->act_step;
        if (aux) aux += u->s.aux_step;
    }
}

void HL_K(signs)(const hl_pool_saved *s, hl_pool_taps taps, const float *x, uint8_t *aux)
{
    const int64_t lanes = s->lanes;
    for (int64_t j = 0; j < s->cells; j++, x += s->x_step, aux += s->aux_step) LANES(signs_cell, x + l, taps, aux + l);
}

void HL_K(sum_rows)(const hl_unaverage *u, float *t)
{
    const int64_t lanes = u->lanes;
    for (int64_t j = 0; j < u->cells; j++) LANES(sum_rows_cell, u, j * u->y_step + l, t + j * lanes + l);
}

void HL_K(unaverage)(const hl_unaverage *u, const float *t, const uint8_t *aux, float *dx)
{
    const int64_t lanes = u->lanes;
    for (int64_t j = 0; j < u->cells; j++, t += lanes, aux += u->aux_step, dx += u->x_step) LANES(unaverage_cell, u, t + l, aux + l, dx + l);
}
