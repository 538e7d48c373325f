/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaler.h -- loss scaling: gradients of 16 bits are formed of scale times the loss, so that small ones do not vanish, and divided by it in the update.
 *
 * A step in which some gradient is not finite overflowed: its update is left out, on all ranks alike since their summed gradients have equal bits.
 *
 *   backoff   scale / 2 after an overflow, scale * 2 after `every` steps in a row without one, from `start` on (Micikevicius et al., "Mixed precision training",
 *             2018; start 2^24 and every 2000 as in Laanait et al., "Exascale deep learning for scientific inverse problems", 2019)
 *   logmax    scale = 2^(16 - mean - 3.09 deviation) of x = log2(largest magnitude of the unscaled gradients), running averages with 0.99 for the mean and 0.999
 *             for the deviation, as "LogMax" in that work: a fraction of 0.001 of the steps overflows if x is normal. An overflow counts as the least
 *             x that overflows and one more, and halves the scale at once.
 *
 * Scales are powers of 2, so that scaling is exact; at least 1, at most 2^24.
 */
#ifndef HL_SCALER_H
#define HL_SCALER_H

#include "base/base.h"

typedef enum hl_scaling_rule { HL_SCALING_NONE = 0, HL_SCALING_BACKOFF, HL_SCALING_LOGMAX } hl_scaling_rule;

typedef struct hl_scaling {
    hl_scaling_rule rule;
    double start;  /* a power of 2, 1 to 2^24 */
    int64_t every; /* backoff: > 0 */
} hl_scaling;

/* All that goes from step to step, as plain numbers, which is how checkpoints keep it. */
typedef struct hl_scaler {
    double scale;
    double clean;        /* steps since the last overflow or change */
    double skipped;      /* steps in all */
    double mean, slow, square; /* logmax: running sums of x with 0.99, x and x^2 with 0.999 */
    double seen;         /* logmax: values in them */
} hl_scaler;
enum { HL_SCALER_NUMBERS = sizeof(hl_scaler) / sizeof(double) };

hl_scaler hl_scaler_begin(const hl_scaling *scaling);
/* After a step whose gradients were finite; the largest magnitude of the unscaled ones. */
void hl_scaler_fits(const hl_scaling *scaling, hl_scaler *s, double largest);
/* After one in which some were not. False: the scale is 1 already, so it is not the scale that overflows. */
bool hl_scaler_overflows(const hl_scaling *scaling, hl_scaler *s);

#endif
