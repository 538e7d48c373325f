/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h -- the learning rate as a pure function of the position in training, so that resuming needs no state.
 *
 * With e = step / steps_per_epoch (fractional epochs done before this step), w = warm-up epochs, E = length:
 *   warm-up (e < w):  start + (peak - start) (step + 1) / (w steps_per_epoch)      reaches the peak at its last step
 *   constant:         peak
 *   step:             peak * factor^(number of boundaries b with e >= b)
 *   polynomial:       end + (peak - end) (1 - x)^power,    x = (e - w) / (E - w) in [0, 1]
 *   cosine:           end + (peak - end) (1 + cos(pi x)) / 2     (Loshchilov & Hutter 2017, no restarts)
 */
#ifndef HL_SCHEDULE_H
#define HL_SCHEDULE_H

#include "base/base.h"

typedef enum hl_schedule_shape { HL_CONSTANT = 0, HL_STEP, HL_POLYNOMIAL, HL_COSINE } hl_schedule_shape;

enum { HL_BOUNDARIES_MAX = 16 };

typedef struct hl_schedule {
    hl_schedule_shape shape;
    double peak, end, power, factor;
    double warmup, warmup_start; /* epochs; rate */
    double length;               /* epochs */
    int boundaries;
    double boundary[HL_BOUNDARIES_MAX]; /* epochs, ascending */
} hl_schedule;

/* How the peak follows the batch: not at all; in proportion (Goyal et al., "Accurate, large minibatch SGD", 2017); as its square root, which keeps the variance
 * of an update (Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014). */
typedef enum hl_rate_rule { HL_RATE_NONE = 0, HL_RATE_LINEAR, HL_RATE_SQRT } hl_rate_rule;

/* A peak that was found for `base` samples a step, for `batch` of them. Both positive. */
double hl_scaled_rate(hl_rate_rule rule, double peak, double batch, double base);

/* Learning rate of step `step` (from 0). steps_per_epoch > 0. */
double hl_schedule_rate(const hl_schedule *s, int64_t step, int64_t steps_per_epoch);

/* Huber's delta at a step: `first`, multiplied by `factor` per epoch, step by step, not below `end` (nor above `first`). The error that is still taken
 * for one of noise shrinks as the network gets better. */
double hl_schedule_delta(double first, double factor, double end, int64_t step, int64_t steps_per_epoch);

#endif
