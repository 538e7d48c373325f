/* SPDX-License-Identifier: Apache-2.0 */
/*
 * correlate.c -- the loops of a convolution on dense doubles.
 *
 *   y[o,p] += sum_{i,k} w[o,i,k] x[i, p s + k l]          dw[o,i,k] += sum_p dy[o,p] x[i, p s + k l]
 *
 * Both are the same small product, held in eight registers of two doubles (every 64-bit processor has
 * sixteen): 2 output channels by 4 columns. Forward a column is a pair of neighbouring outputs along w,
 * anywhere in a plane, and the sum runs over the channels and taps, in their order. For the weights a column
 * is one (i, k) and the sum runs over pairs of outputs, some planes at a time, so that what is read again is
 * in cache. An odd last output is a pair whose second half is not used.
 */
#include "ref.h"

typedef double pair __attribute__((vector_size(16)));
typedef double pair_any __attribute__((vector_size(16), aligned(8), may_alias));

enum {
    COLUMNS = 4,
    CHANNELS = 2,
    BLOCK = 8,   /* input channels whose rows under a few outputs stay in the first cache */
    CELLS = 1024 /* at least as many a pass over the weights, where there are */
};

static int64_t volume(const int64_t e[3]) { return e[0] * e[1] * e[2]; }

/* Two outputs' values at the same tap; constant steps become one load. */
static inline pair load(const double *x, int64_t step)
{
    return step == 1 ? (pair) * (const pair_any *)x : (pair){x[0], x[step]};
}

/* sum[c][j] += u[j] weight[c], for the two channels c and the four columns j. Constant indices: all of it
 * stays in registers. */
typedef pair sums[CHANNELS][COLUMNS];

static inline void add(sums sum, pair u0, pair u1, pair u2, pair u3, pair first, pair second)
{
    sum[0][0] += u0 * first, sum[0][1] += u1 * first, sum[0][2] += u2 * first, sum[0][3] += u3 * first;
    sum[1][0] += u0 * second, sum[1][1] += u1 * second, sum[1][2] += u2 * second, sum[1][3] += u3 * second;
}

void hl_ref_taps(const hl_ref_shape *s, int64_t *tap)
{
    const halo_window *w = &s->w;
    for (int64_t d = 0; d < w->kernel[0]; d++)
        for (int64_t h = 0; h < w->kernel[1]; h++)
            for (int64_t k = 0; k < w->kernel[2]; k++)
                *tap++ = (d * w->dilation[0] * s->r[1] + h * w->dilation[1]) * s->r[2] + k * w->dilation[2];
}

/* ------------------------------------------------------------------------------------------------------------ forward */

/* Four pairs of outputs: where each one's window begins in x, the pair itself in y and how many of its two
 * cells there are. */
typedef struct tile {
    const double *x[COLUMNS];
    double *y[COLUMNS];
    bool both[COLUMNS];
} tile;

/* Pairs q .. q + 3 of plane d; past the last one, the last one again. */
static tile tile_at(const hl_ref_shape *s, int64_t d, int64_t q, const double *x, double *y)
{
    tile t;
    int64_t row = (s->p[2] + 1) / 2, last = row * s->p[1] - 1;
    for (int j = 0; j < COLUMNS; j++) {
        int64_t at = hl_min64(q + j, last), h = at / row, w = at % row * 2;
        const int64_t *step = s->w.stride;
        t.x[j] = x + (d * step[0] * s->r[1] + h * step[1]) * s->r[2] + w * step[2];
        t.y[j] = y + (d * s->p[1] + h) * s->p[2] + w;
        t.both[j] = w + 1 < s->p[2];
    }
    return t;
}

static inline pair begin(const tile *t, int j, int64_t channel)
{
    const double *y = t->y[j] + channel;
    return (pair){y[0], t->both[j] ? y[1] : 0};
}

static inline void end(const tile *t, int j, int64_t channel, pair sum)
{
    double *y = t->y[j] + channel;
    y[0] = sum[0];
    if (t->both[j]) y[1] = sum[1];
}

/* Channel y with the weights w, and the channel `next` cells on with the weights v; some input channels. */
static inline __attribute__((always_inline)) void forward_tile(const hl_ref_shape *s, const int64_t *tap,
                                                               const double *w, const double *v, int64_t inputs,
                                                               const tile *t, int64_t next, int64_t step)
{
    sums sum = {{begin(t, 0, 0), begin(t, 1, 0), begin(t, 2, 0), begin(t, 3, 0)},
                {begin(t, 0, next), begin(t, 1, next), begin(t, 2, next), begin(t, 3, next)}};
    const double *x0 = t->x[0], *x1 = t->x[1], *x2 = t->x[2], *x3 = t->x[3];
    int64_t channel = volume(s->r);
    for (int64_t i = 0; i < inputs; i++, w += s->taps, v += s->taps)
        for (int64_t k = 0; k < s->taps; k++) {
            int64_t at = i * channel + tap[k];
            add(sum, load(x0 + at, step), load(x1 + at, step), load(x2 + at, step), load(x3 + at, step),
                (pair){w[k], w[k]}, (pair){v[k], v[k]});
        }
    end(t, 0, 0, sum[0][0]), end(t, 1, 0, sum[0][1]), end(t, 2, 0, sum[0][2]), end(t, 3, 0, sum[0][3]);
    end(t, 0, next, sum[1][0]), end(t, 1, next, sum[1][1]), end(t, 2, next, sum[1][2]),
        end(t, 3, next, sum[1][3]);
}

/* What input channels i .. i + BLOCK give to all the outputs of plane d of channels o and o + 1 (o alone where it is the last). */
static void forward_plane(const hl_ref_shape *s, const int64_t *tap, const double *w, const double *x, int64_t d,
                          int64_t i, int64_t o, double *y)
{
    int64_t pairs = (s->p[2] + 1) / 2 * s->p[1], both = o + 1 < s->o, points = volume(s->p);
    int64_t inputs = hl_min64(BLOCK, s->i - i), next = both * points;
    const double *first = w + (o * s->i + i) * s->taps, *second = first + both * s->i * s->taps;
    for (int64_t q = 0; q < pairs; q += COLUMNS) {
        tile t = tile_at(s, d, q, x + i * volume(s->r), y + o * points);
        if (s->w.stride[2] == 1)
            forward_tile(s, tap, first, second, inputs, &t, next, 1);
        else
            forward_tile(s, tap, first, second, inputs, &t, next, s->w.stride[2]);
    }
}

void hl_ref_correlate(const hl_ref_shape *s, const int64_t *tap, const double *w, const double *x, double *y)
{
    for (int64_t d = 0; d < s->p[0]; d++)
        for (int64_t i = 0; i < s->i; i += BLOCK)
            for (int64_t o = 0; o < s->o; o += CHANNELS) forward_plane(s, tap, w, x, d, i, o, y);
}

/* ------------------------------------------------------------------------------------------------------------ weights */

/* Some planes of two channels of dy, and of x for four columns. */
typedef struct slab {
    const double *x[COLUMNS], *dy[CHANNELS];
    int64_t planes;
} slab;

static inline pair half(const double *x) { return (pair){*x, 0}; }

/* sum[c][j] = sum_p dy[c][p] x[j][p s] */
static inline __attribute__((always_inline)) void weights_slab(const hl_ref_shape *s, const slab *t,
                                                               int64_t step, sums out)
{
    const double *x0 = t->x[0], *x1 = t->x[1], *x2 = t->x[2], *x3 = t->x[3], *y0 = t->dy[0], *y1 = t->dy[1];
    sums sum = {{{0}}};
    for (int64_t d = 0; d < t->planes; d++)
        for (int64_t h = 0; h < s->p[1]; h++, y0 += s->p[2], y1 += s->p[2]) {
            int64_t at = (d * s->w.stride[0] * s->r[1] + h * s->w.stride[1]) * s->r[2], p = 0;
            for (; p + 1 < s->p[2]; p += 2, at += 2 * step)
                add(sum, load(x0 + at, step), load(x1 + at, step), load(x2 + at, step), load(x3 + at, step),
                    load(y0 + p, 1), load(y1 + p, 1));
            if (p < s->p[2])
                add(sum, half(x0 + at), half(x1 + at), half(x2 + at), half(x3 + at), half(y0 + p),
                    half(y1 + p));
        }
    memcpy(out, sum, sizeof(sum));
}

/* dw of columns c .. c + 3 (column = i taps + k) of channels o and o + 1, over the slab's planes. */
static void weights_tile(const hl_ref_shape *s, const int64_t *tap, const double *x, slab *t, int64_t o,
                         int64_t c, double *dw)
{
    int64_t columns = s->i * s->taps;
    sums sum;
    for (int j = 0; j < COLUMNS; j++) {
        int64_t column = hl_min64(c + j, columns - 1);
        t->x[j] = x + column / s->taps * volume(s->r) + tap[column % s->taps];
    }
    if (s->w.stride[2] == 1)
        weights_slab(s, t, 1, sum);
    else
        weights_slab(s, t, s->w.stride[2], sum);
    for (int64_t k = 0; k < CHANNELS && o + k < s->o; k++)
        for (int64_t j = 0; j < COLUMNS && c + j < columns; j++)
            dw[(o + k) * columns + c + j] += sum[k][j][0] + sum[k][j][1];
}

void hl_ref_correlate_weights(const hl_ref_shape *s, const int64_t *tap, const double *x, const double *dy,
                           double *dw)
{
    int64_t plane = s->p[1] * s->p[2], step = CELLS / plane + 1;
    for (int64_t d = 0; d < s->p[0]; d += step)
        for (int64_t o = 0; o < s->o; o += CHANNELS) {
            const double *y = dy + o * volume(s->p) + d * plane;
            slab t = {.dy = {y, o + 1 < s->o ? y + volume(s->p) : y}, .planes = hl_min64(step, s->p[0] - d)};
            for (int64_t c = 0; c < s->i * s->taps; c += COLUMNS)
                weights_tile(s, tap, x + d * s->w.stride[0] * s->r[1] * s->r[2], &t, o, c, dw);
        }
}
