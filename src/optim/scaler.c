/* SPDX-License-Identifier: Apache-2.0 */
/* scaler.c -- see scaler.h. */
#include "optim/scaler.h"

static const double most = 16777216, fast = 0.99, steady = 0.999, deviations = 3.09, ceiling = 16;

hl_scaler hl_scaler_begin(const hl_scaling *scaling)
{
    return (hl_scaler){.scale = scaling->rule == HL_SCALING_NONE ? 1 : scaling->start};
}

static double within(double scale) { return fmin(fmax(scale, 1), most); }

static void learn(hl_scaler *s, double x)
{
    s->mean = fast * s->mean + (1 - fast) * x;
    s->slow = steady * s->slow + (1 - steady) * x;
    s->square = steady * s->square + (1 - steady) * x * x;
    s->seen++;
}

/* Running sums begin at 0: divided by the weight that they have so far. */
static double scale_of(const hl_scaler *s)
{
    double quick = 1 - pow(fast, s->seen), slow = 1 - pow(steady, s->seen);
    double mean = s->mean / quick, center = s->slow / slow;
    double deviation = sqrt(fmax(s->square / slow - center * center, 0));
    return within(exp2(floor(ceiling - mean - deviations * deviation)));
}

void hl_scaler_fits(const hl_scaling *scaling, hl_scaler *s, double largest)
{
    s->clean++;
    if (scaling->rule == HL_SCALING_LOGMAX && largest > 0) {
        learn(s, log2(largest));
        s->scale = scale_of(s);
    }
    if (scaling->rule == HL_SCALING_BACKOFF && s->clean >= (double)scaling->every) {
        s->scale = within(s->scale * 2);
        s->clean = 0;
    }
}

bool hl_scaler_overflows(const hl_scaling *scaling, hl_scaler *s)
{
    bool could_be = s->scale > 1;
    if (scaling->rule == HL_SCALING_NONE) return false;
    s->clean = 0;
    s->skipped++;
    if (scaling->rule == HL_SCALING_LOGMAX) learn(s, ceiling - log2(s->scale) + 1);
    s->scale = within(scaling->rule == HL_SCALING_LOGMAX ? fmin(s->scale / 2, scale_of(s)) : s->scale / 2);
    return could_be;
}
