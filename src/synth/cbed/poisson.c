/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poisson.c -- whole numbers with the Poisson distribution. Of means up to 256 by inversion: the least k with sum_{i <= k} exp(-m) m^i / i! >= u. Of larger ones, where exp(-m) nears 0 and the sum is long, by transformed
 * rejection, PTRS of W. Hoermann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12 (1993) 39-45: exact, and about 1.1 tries whatever the mean.
 */
#include <math.h>

#include "base/rng.h"
#include "synth/cbed/cbed.h"

#define INVERT_MOST 256
#define MEAN_MOST 1e15 /* whole numbers of doubles */

enum { COUNT_MOST = UINT16_MAX };

static int64_t invert(double mean, double u)
{
    double term = exp(-mean), sum = term;
    int64_t k = 0;
    while (sum < u && k < 4096) {
        k++;
        term *= mean / (double)k;
        sum += term;
    }
    return k;
}

/* log k! by Stirling's series; where k is small, whose chance is then nil, within 1e-3. */
static double log_factorial(double k)
{
    double x = k + 1;
    return (x - 0.5) * log(x) - x + 0.91893853320467274 + 1 / (12 * x) - 1 / (360 * x * x * x);
}

static int64_t reject(double mean, uint64_t seed, uint64_t counter0, uint64_t counter1)
{
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);
    for (uint64_t i = 0;; i++) {
        hl_random r = hl_philox(seed, HL_STREAM_COUNTS, counter0 + (i << 40), counter1);
        double u = hl_uniform53(r.v[0], r.v[1]) - 0.5, v = hl_uniform53(r.v[2], r.v[3]), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= vr) return (int64_t)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log(mean) - mean - log_factorial(k)) return (int64_t)k;
    }
}

int64_t hl_poisson(double mean, uint64_t seed, uint64_t counter0, uint64_t counter1)
{
    if (mean <= INVERT_MOST) return invert(mean, hl_rng_uniform(seed, HL_STREAM_COUNTS, counter0, counter1));
    return reject(fmin(mean, MEAN_MOST), seed, counter0, counter1);
}

halo_status hl_cbed_count(const hl_cbed *c, int part, int64_t number, int index, const float *patterns, uint16_t *counts)
{
    const int64_t pixels = c->s->size * c->s->size, n = c->s->scan * c->s->scan * pixels;
    const double scale = c->dose[index] / (double)pixels;
    const uint64_t which = (uint64_t)part << 60 | (uint64_t)index << 52 | (uint64_t)number;
    int64_t most = 0;
#pragma omp parallel for num_threads(c->threads) schedule(static) reduction(max : most)
    for (int64_t i = 0; i < n; i++) {
        int64_t k = hl_poisson(scale * (double)patterns[i], (uint64_t)c->s->seed, (uint64_t)i, which);
        counts[i] = (uint16_t)hl_min64(COUNT_MOST, k);
        most = hl_max64(most, k);
    }
    if (most <= COUNT_MOST) return HALO_OK;
    return hl_fail(c->ctx, HALO_ERR_USAGE, "'dose' %g is too high: a pixel would count %" PRId64 " electrons, and the counts' type, uint16, holds %d; choose one below about %.2g", c->dose[index], most, COUNT_MOST,
                   0.9 * c->dose[index] * COUNT_MOST / (double)most);
}
