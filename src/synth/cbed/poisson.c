/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poisson.c -- whole numbers with the Poisson distribution, by inversion: the least k with sum_{i <= k} exp(-m) m^i / i! >= u. A sum of independent ones is one of the sum of their means, so large means are drawn in parts below
 * 256, where exp(-m) is far from 0.
 */
#include <math.h>

#include "base/rng.h"
#include "synth/cbed/cbed.h"

static int64_t part_of(double mean, double u)
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

int64_t hl_poisson(double mean, uint64_t seed, uint64_t counter0, uint64_t counter1)
{
    int64_t parts = (int64_t)ceil(mean / 256), k = 0;
    for (int64_t i = 0; i < parts; i++) k += part_of(mean / (double)parts, hl_rng_uniform(seed, HL_STREAM_COUNTS, counter0 + ((uint64_t)i << 40), counter1));
    return k;
}

void hl_cbed_count(const hl_cbed *c, int part, int64_t number, int index, const float *patterns, uint16_t *counts)
{
    const int64_t pixels = c->s->size * c->s->size, n = c->s->scan * c->s->scan * pixels;
    const double scale = c->dose[index] / (double)pixels;
    const uint64_t which = (uint64_t)part << 60 | (uint64_t)index << 52 | (uint64_t)number;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < n; i++) counts[i] = (uint16_t)hl_min64(65535, hl_poisson(scale * (double)patterns[i], (uint64_t)c->s->seed, (uint64_t)i, which));
}
