/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.h -- an axis of n cells at another spacing: of n at s, n' = round(n s / s') at s', and, at the ratio s'/s, cell i lies at (i + 1/2) s'/s - 1/2 of the n, held at the border.
 * Images take the trilinear interpolation there, class numbers the nearest cell.
 */
#ifndef HL_RESAMPLE_H
#define HL_RESAMPLE_H

#include "base/base.h"

#include <math.h>

static inline int64_t hl_resample_extent(int64_t n, double from, double to) { return hl_max64(1, (int64_t)llround((double)n * from / to)); }

static inline double hl_resample_place(int64_t i, double ratio, int64_t n) { return fmin(fmax(((double)i + 0.5) * ratio - 0.5, 0), (double)(n - 1)); }

/* A place between cells lo and lo + 1; the weight of the latter, 0 or 1 where the nearest one is taken. */
typedef struct hl_spot { int64_t lo; float high; } hl_spot;

/* Of cell i, counted from the first of the `read` cells that are at hand. */
static inline hl_spot hl_resample_spot(int64_t i, double ratio, int64_t n, int64_t first, int64_t read, bool nearest)
{
    double at = hl_resample_place(i, ratio, n) - (double)first;
    hl_spot s = {.lo = hl_min64((int64_t)at, hl_max64(0, read - 2))};
    double high = read == 1 ? 0 : at - (double)s.lo;
    s.high = nearest ? (float)(high > 0.5) : (float)high;
    return s;
}

/* The `cells` spots from cell `from` on, which are those of every row along the axis. */
static inline void hl_resample_line(int64_t from, int64_t cells, double ratio, int64_t n, int64_t first, int64_t read, bool nearest, hl_spot *line)
{
    for (int64_t i = 0; i < cells; i++) line[i] = hl_resample_spot(from + i, ratio, n, first, read, nearest);
}

/* Of v [ext]: sums over the corners whose weight is not 0, so that a class stays exact. */
static inline float hl_resample_value(const float *v, const int64_t ext[3], const hl_spot at[3])
{
    float sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        float weight = 1;
        int64_t cell = 0;
        for (int k = 0; k < 3; k++) {
            int up = corner >> k & 1;
            weight *= up ? at[k].high : 1 - at[k].high;
            cell = cell * ext[k] + at[k].lo + up;
        }
        if (weight != 0) sum += weight * v[cell];
    }
    return sum;
}

/* The row at spots d and h, of the spots `line` along w. */
static inline void hl_resample_row(const float *v, const int64_t ext[3], hl_spot d, hl_spot h, const hl_spot *line, int64_t cells, float *row)
{
    for (int64_t w = 0; w < cells; w++) row[w] = hl_resample_value(v, ext, (const hl_spot[3]){d, h, line[w]});
}

#endif
