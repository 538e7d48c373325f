/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h -- what happens to a sample between the file and the network: finite? transform, augment. Pure
 * functions. */
#ifndef HL_IO_PIPELINE_H
#define HL_IO_PIPELINE_H

#include "io/io.h"

/* ---------------------------------------------------------------------------------------------- transform */

/* Whether it needs to know all of a sample. */
bool hl_transform_whole(hl_transform kind);

/* Of values: how many, their mean and the sum of squares of what differs from it. Sums in double. */
hl_moments hl_moments_of(const float *x, int64_t n);
/* A transform that needs all of a sample, with the sample's moments, on n of its values; false where it is not defined. */
bool hl_transform_by(hl_transform kind, hl_moments all, float *x, int64_t n);

/* Index of the first value that is not finite, n when all are. */
int64_t hl_first_nonfinite(const float *x, int64_t n);

/* Makes *y the class number that it is: whole, one that the network knows or that does not count; what interpolation or scaling left a thousandth beside one is that one. False: it is none. */
bool hl_take_class(const hl_loader_options *o, float *y);

/*
 * In place over the n values of one sample; sums in double.
 *   log1p: x <- ln(1 + x)      over-mean: x <- x / mean(x)      z-score: x <- (x - mean(x)) / std(x), std
 * over n False where it is not defined: *bad is the index of a value <= -1, or -1 for a mean or a standard
 * deviation of 0.
 */
bool hl_transform_apply(hl_transform kind, float *x, int64_t n, int64_t *bad);
/* The same for every kind, with the constants that the options have for those of a whole data set. */
bool hl_transform_run(const hl_loader_options *o, hl_transform kind, float *x, int64_t n, int64_t *bad);
const char *hl_transform_name(hl_transform kind); /* "log1p", "over-mean", "z-score", "standard", "window" */
/* HL_STANDARD: x <- (x - mean) / std. */
void hl_standardise(float *x, int64_t n, double mean, double std);
/* HL_CLIP: x <- (clip(x, lo, hi) - lo) / (hi - lo). */
void hl_clip(float *x, int64_t n, double lo, double hi);

/* ln(1 + x) of integers by a table of all 65536 values of an int16 or the 256 of a uint8: y[i] =
 * table[(uint16_t)x[i]]. */
void hl_log1p_table(halo_dtype type, float *table);
bool hl_log1p_lookup(halo_dtype type, const float *table, const void *x, float *y, int64_t n, int64_t *bad);

/* ------------------------------------------------------------------------------------------------ augment */

/*
 * A symmetry of the cube as a signed permutation of the axes: output cell (i0, i1, i2) is taken from the
 * input cell whose index along axis axis[k] is ik, or n - 1 - ik where flip[k]. The 6 permutations times 8
 * flips are the 48 elements; number 0 is the identity.
 */
typedef struct hl_symmetry {
    int axis[3];
    bool flip[3];
} hl_symmetry;

enum { HL_SYMMETRIES = 48 };
hl_symmetry hl_symmetry_of(int number);
hl_symmetry hl_symmetry_inverse(hl_symmetry s);
/* Number of the symmetry that does a first and then b. */
int hl_symmetry_after(int a, int b);

/* What (seed, epoch, sample) draws: nothing else may matter, or ranks and resumed runs would see other
 * volumes. */
int hl_draw_symmetry(uint64_t seed, int64_t epoch, int64_t sample);
void hl_draw_shift(uint64_t seed, int64_t epoch, int64_t sample, const int64_t ext[3], int64_t shift[3]);

/* y[c, i] = x[c, s(i) + shift mod extents] for C channels of D H W cells; ext: of y, so that axis s.axis[k] of x
 * has ext[k] cells and shift[s.axis[k]] is below that. y must not overlap x. */
void hl_augment(const float *x, float *y, int64_t channels, const int64_t ext[3], hl_symmetry s,
                const int64_t shift[3]);

#endif
