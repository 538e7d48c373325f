/* SPDX-License-Identifier: Apache-2.0 */
#include "optim/schedule.h"

static double progress(const hl_schedule *s, double epoch)
{
    double span = s->length - s->warmup;
    if (!(span > 0)) return 1;
    double x = (epoch - s->warmup) / span;
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double decayed(const hl_schedule *s, double epoch)
{
    double rate = s->peak;
    for (int i = 0; i < s->boundaries; i++)
        if (epoch >= s->boundary[i]) rate *= s->factor;
    return rate;
}

double hl_scaled_rate(hl_rate_rule rule, double peak, double batch, double base)
{
    return rule == HL_RATE_LINEAR ? peak * (batch / base) : rule == HL_RATE_SQRT ? peak * sqrt(batch / base) : peak;
}

double hl_schedule_rate(const hl_schedule *s, int64_t step, int64_t steps_per_epoch)
{
    double epoch = (double)step / (double)steps_per_epoch;
    if (epoch < s->warmup)
        return s->warmup_start + (s->peak - s->warmup_start) * fmin(1, (double)(step + 1) / (s->warmup * (double)steps_per_epoch));
    switch (s->shape) {
    case HL_CONSTANT: return s->peak;
    case HL_STEP: return decayed(s, epoch);
    case HL_POLYNOMIAL: return s->end + (s->peak - s->end) * pow(1 - progress(s, epoch), s->power);
    case HL_COSINE: return s->end + (s->peak - s->end) * 0.5 * (1 + cos(3.141592653589793 * progress(s, epoch)));
    }
    return s->peak;
}

double hl_schedule_delta(double first, double factor, double end, int64_t step, int64_t steps_per_epoch)
{
    return fmax(first * pow(factor, (double)step / (double)steps_per_epoch), fmin(first, end));
}
