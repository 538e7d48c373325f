/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kern.h -- the kernels behind the pointwise, pooling, norm, linear and update operations: loops over contiguous floats, for one thread.
 *
 * Each source of this directory is compiled once per instruction set with HL_KERN set to its name; HL_K(x) then is hl_generic_x, hl_avx2_x or
 * hl_avx512f_x. A hl_kern is the table of one set. Nothing here allocates or knows of threads, operands or boxes. Where x and y may be the same
 * address, the comment says "in place".
 */
#ifndef HL_KERN_H
#define HL_KERN_H

#include <halo/backend.h>

#define HL_K_PASTE(set, name) hl_##set##_##name
#define HL_K_EXPAND(set, name) HL_K_PASTE(set, name)
#define HL_K(name) HL_K_EXPAND(HL_KERN, name)

/* Parameters that repeat along the channel are given as tiles: arrays of `tile` floats, tile a multiple of the channel count and of HL_TILE, so
 * that the parameter of element i is tile[i % tile]. A run begins with the first channel. */
enum { HL_TILE = 16 };

enum { HL_DOTS = 4 }; /* rows that dots and combine take at once */

/* Cells of pooling that lie in a row: cell j of x begins at x + j * step, `lanes` channels each. */
typedef struct hl_pool_taps {
    int count;
    const int64_t *offset; /* [count] of each tap from the cell's first, in elements */
    const int32_t *index;  /* [count] its number in the whole window */
} hl_pool_taps;

/* Windows of a row of `cells` pooled cells with what is saved of each, `lanes` channels: x_step, y_step, aux_step elements lie between neighbours. */
typedef struct hl_pool_saved {
    int64_t cells, lanes;
    int64_t x_step, y_step, aux_step;
    bool max;
    float factor; /* mean: 1 / cells of a window */
} hl_pool_saved;

/* The same backwards, for the `taps` cells along a row that are numbers first, first + 1, ... of their windows, tap_step elements apart. */
typedef struct hl_unpool {
    hl_pool_saved s;
    int taps;
    int32_t first;
    int64_t tap_step, act_step; /* act_step: between cells of y, s.y_step between those of dy */
    halo_act act;
    float slope;
} hl_unpool;

/* Backward of averages over windows that overlap, with the activation before them: first t[w] = sum over r < rows of factor[r] row[r][w], cells of t
 * `lanes` apart; then dx of cell k of window w = act' by bit first + k of (sum over from[k] <= i < from[k] + count[k] of t[w + i]). */
enum { HL_AVERAGE_ROWS = 16, HL_AVERAGE_TAPS = 8 };
typedef struct hl_unaverage {
    int64_t cells, lanes;
    int rows;
    const float *row[HL_AVERAGE_ROWS];
    float factor[HL_AVERAGE_ROWS];
    int64_t y_step;
    int taps, from[HL_AVERAGE_TAPS], count[HL_AVERAGE_TAPS];
    int32_t first;
    int64_t x_step, tap_step, aux_step;
    float slope;
} hl_unaverage;

typedef struct hl_update_kern {
    halo_optimizer kind;
    float scale;         /* of the gradient: grad_scale and LARC */
    float momentum, lr;  /* sgd, nesterov */
    float decay;         /* sgd, nesterov, adam: in the gradient; adamw: lr * decay on the weight */
    float beta1, beta2, rest1, rest2; /* adam; rest = 1 - beta, rounded once */
    float eps, rate;                  /* rate = lr sqrt(1-b2^t)/(1-b1^t) */
} hl_update_kern;

typedef struct hl_kern {
    /* y = act(x); in place */
    void (*act_fwd)(halo_act act, float slope, const float *x, float *y, int64_t n);
    /* dx = dy act'(y), or dx += ; in place on dy */
    void (*act_bwd)(halo_act act, float slope, const float *y, const float *dy, float *dx, bool accumulate, int64_t n);
    /* y = x + x2; in place */
    void (*add)(const float *x, const float *x2, float *y, int64_t n);
    /* y = scale[t] (x - center[t]) + shift[t], t = i % tile, then act; in place */
    void (*affine)(halo_act act, float slope, const float *x, float *y, int64_t n, int64_t tile, const float *center, const float *scale,
                   const float *shift);
    /* dx = scale[t] dy + slope[t] (x - center[t]) + shift[t]; in place on dy */
    void (*norm_bwd)(const float *x, const float *dy, float *dx, int64_t n, int64_t tile, const float *center, const float *scale,
                     const float *slope, const float *shift);
    /* sum[t] += x - center[t], square[t] += (x - center[t])^2 */
    void (*moments)(const float *x, int64_t n, int64_t tile, const double *center, double *sum, double *square);
    /* sum[t] += dy, product[t] += dy (x - center[t]) */
    void (*moments2)(const float *x, const float *dy, int64_t n, int64_t tile, const double *center, double *sum, double *product);

    /* y[j] = largest of x[j step + offset[k]], first one wins; index[j lanes + l] = index[k] when index is not NULL. y's cells are ystep apart. */
    void (*pool_max)(const float *x, int64_t step, int64_t cells, int64_t lanes, hl_pool_taps taps, float *y, int64_t ystep, int32_t *index);
    /* y[j] = factor * sum of x[j step + offset[k]] */
    void (*pool_sum)(const float *x, int64_t step, int64_t cells, int64_t lanes, hl_pool_taps taps, float factor, float *y, int64_t ystep);
    /* dx[j step + k kstep] += dy[j] where index[j lanes + l] == first + k, for k < taps */
    void (*pool_max_bwd)(float *dx, int64_t step, int64_t kstep, int taps, int32_t first, int64_t cells, int64_t lanes, const float *dy,
                         int64_t ystep, const int32_t *index);
    /* dx[j step + k kstep] += factor * dy[j] for k < taps */
    void (*pool_sum_bwd)(float *dx, int64_t step, int64_t kstep, int taps, float factor, int64_t cells, int64_t lanes, const float *dy,
                         int64_t ystep);
    /* y[j] = largest, aux = its index (first one wins); or factor * sum, bit index[k] of aux set where tap k > 0. aux may be NULL. */
    void (*pool_save)(const hl_pool_saved *s, hl_pool_taps taps, const float *x, float *y, uint8_t *aux);
    /* aux bit index[k] set where tap k > 0 */
    void (*signs)(const hl_pool_saved *s, hl_pool_taps taps, const float *x, uint8_t *aux);
    /* the two halves of hl_unaverage */
    void (*sum_rows)(const hl_unaverage *u, float *t);
    void (*unaverage)(const hl_unaverage *u, const float *t, const uint8_t *aux, float *dx);
    /* dx of tap k = g where k is the winner (aux), else 0, g = dy act'(y); or factor dy act' by the bit of aux. y, aux NULL where act does not ask for them. */
    void (*unpool)(const hl_unpool *u, const float *dy, const float *y, const uint8_t *aux, float *dx);
    /* between the index as stored (u8) and as computed with (i32) */
    void (*narrow_u8)(const int32_t *in, uint8_t *out, int64_t n);
    void (*widen_u8)(const uint8_t *in, int32_t *out, int64_t n);

    /* out[i] = in[i], flat; f16 and bf16 round to nearest even */
    void (*f32_to_f16)(const float *in, uint16_t *out, int64_t n);
    void (*f16_to_f32)(const uint16_t *in, float *out, int64_t n);
    void (*f32_to_bf16)(const float *in, uint16_t *out, int64_t n);
    void (*bf16_to_f32)(const uint16_t *in, float *out, int64_t n);

    /* mask[i] = hl_dropout_keeps(index + i) ? value : 0 */
    void (*dropout_mask)(uint64_t seed, uint64_t counter, uint64_t index, double keep, float value, float *mask, int64_t n);
    /* y = x * m; in place */
    void (*mul)(const float *x, const float *m, float *y, int64_t n);

    /* returns the sum of losses of x - t; dx = derivative * scale when dx is not NULL */
    double (*loss)(halo_loss kind, float delta, const float *x, const float *t, float *dx, float scale, int64_t n);
    /* x[c][i] = (exp(x[c][i] - max_c) / sum_c exp - [c = t[i]]) * scale where `derivative` (else x is spoiled), for i < n, x[c] at c * step; returns the
     * sum over i of log(sum_c exp(x[c][i])) - x[t[i]][i]. NaN where t[i] is no whole number from 0 to classes - 1. Both times weight[i] where it is not NULL. */
    double (*cross_entropy)(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight, float scale, bool derivative);
    /* Logits to probabilities; returns the cross entropy, as above. */
    double (*softmax)(float *x, int64_t classes, int64_t step, int64_t n, const float *t, const float *weight);
    /* returns the sum of squares; *bad += values that are not finite */
    double (*sumsq)(const float *x, int64_t n, int64_t *bad, float *largest);
    /* one optimiser step; m and s may be NULL where the kind has none. Returns the sum of squares of the new weights. */
    double (*update)(const hl_update_kern *u, float *w, const float *g, float *m, float *s, int64_t n);

    /* out[k] = the sum of w[i] x[k stride + i], for k < count <= HL_DOTS */
    void (*dots)(const float *w, const float *x, int64_t stride, int64_t n, int count, float *out);
    /* y = (accumulate ? y : 0) + the sum over k < count <= HL_DOTS of a[k astride] x[k stride + i] */
    void (*combine)(const float *a, int64_t astride, const float *x, int64_t stride, int count, bool accumulate, float *y, int64_t n);
    /* a = b + s c */
    void (*triad)(float *a, const float *b, const float *c, float s, int64_t n);
} hl_kern;

extern const hl_kern hl_generic_kern, hl_avx2_kern, hl_avx512f_kern;

#ifdef HL_KERN /* inside the kernels: what the table of this instruction set is made of */
void HL_K(act_fwd)(halo_act, float, const float *, float *, int64_t);
void HL_K(act_bwd)(halo_act, float, const float *, const float *, float *, bool, int64_t);
void HL_K(add)(const float *, const float *, float *, int64_t);
void HL_K(affine)(halo_act, float, const float *, float *, int64_t, int64_t, const float *, const float *, const float *);
void HL_K(norm_bwd)(const float *, const float *, float *, int64_t, int64_t, const float *, const float *, const float *, const float *);
void HL_K(moments)(const float *, int64_t, int64_t, const double *, double *, double *);
void HL_K(moments2)(const float *, const float *, int64_t, int64_t, const double *, double *, double *);
void HL_K(pool_max)(const float *, int64_t, int64_t, int64_t, hl_pool_taps, float *, int64_t, int32_t *);
void HL_K(pool_sum)(const float *, int64_t, int64_t, int64_t, hl_pool_taps, float, float *, int64_t);
void HL_K(pool_max_bwd)(float *, int64_t, int64_t, int, int32_t, int64_t, int64_t, const float *, int64_t, const int32_t *);
void HL_K(pool_sum_bwd)(float *, int64_t, int64_t, int, float, int64_t, int64_t, const float *, int64_t);
void HL_K(pool_save)(const hl_pool_saved *, hl_pool_taps, const float *, float *, uint8_t *);
void HL_K(signs)(const hl_pool_saved *, hl_pool_taps, const float *, uint8_t *);
void HL_K(sum_rows)(const hl_unaverage *, float *);
void HL_K(unaverage)(const hl_unaverage *, const float *, const uint8_t *, float *);
void HL_K(unpool)(const hl_unpool *, const float *, const float *, const uint8_t *, float *);
void HL_K(narrow_u8)(const int32_t *, uint8_t *, int64_t);
void HL_K(widen_u8)(const uint8_t *, int32_t *, int64_t);
void HL_K(f32_to_f16)(const float *, uint16_t *, int64_t);
void HL_K(f16_to_f32)(const uint16_t *, float *, int64_t);
void HL_K(f32_to_bf16)(const float *, uint16_t *, int64_t);
void HL_K(bf16_to_f32)(const uint16_t *, float *, int64_t);
void HL_K(dropout_mask)(uint64_t, uint64_t, uint64_t, double, float, float *, int64_t);
void HL_K(mul)(const float *, const float *, float *, int64_t);
double HL_K(loss)(halo_loss, float, const float *, const float *, float *, float, int64_t);
double HL_K(cross_entropy)(float *, int64_t, int64_t, int64_t, const float *, const float *, float, bool);
double HL_K(softmax)(float *, int64_t, int64_t, int64_t, const float *, const float *);
double HL_K(sumsq)(const float *, int64_t, int64_t *, float *);
double HL_K(update)(const hl_update_kern *, float *, const float *, float *, float *, int64_t);
void HL_K(dots)(const float *, const float *, int64_t, int64_t, int, float *);
void HL_K(combine)(const float *, int64_t, const float *, int64_t, int, bool, float *, int64_t);
void HL_K(triad)(float *, const float *, const float *, float, int64_t);
#endif

#endif
