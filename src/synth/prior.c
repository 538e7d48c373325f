/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prior.c -- the published ranges and three ways to draw from them.
 *
 * SC18 (Mathuriya et al. 2018): Omega_m 0.25..0.35, sigma_8 0.78..0.95, n_s 0.9..1.0, H_0 70.3, Omega_b
 * 0.045. 2019 set (cosmoUniverse_2019_05_4parE): 0.3, 0.8, 0.96 and H_0 70, each times 1 +- 0.1, Omega_b
 * 0.045.
 *
 * A Latin hypercube (McKay, Beckman & Conover 1979) divides each range into n parts and permutes them: sample
 * i takes a uniform point of part pi(i). The permutation is a keyed bijection of [0, n) evaluated at i alone
 * (a Feistel network on the next even power of two, walking until it falls below n), so a sample costs no
 * memory and any sample can be made first.
 */
#include "synth/prior.h"

#include "base/rng.h"

hl_prior hl_prior_published(hl_prior_set set, bool hubble)
{
    bool sc18 = set == HL_PRIOR_SC18;
    hl_prior p = {
        .n = hubble ? 4 : 3,
        .parameter = {{"Omega_m", offsetof(hl_cosmology, omega_m), 1.0, sc18 ? 0.25 : 0.27,
                       sc18 ? 0.35 : 0.33},
                      {"sigma_8", offsetof(hl_cosmology, sigma_8), 1.0, sc18 ? 0.78 : 0.72,
                       sc18 ? 0.95 : 0.88},
                      {"N_spec", offsetof(hl_cosmology, n_s), 1.0, sc18 ? 0.9 : 0.864, sc18 ? 1.0 : 1.056},
                      {"H_0", offsetof(hl_cosmology, h), 0.01, 63.0, 77.0}},
        .fixed = {.omega_m = 0.3,
                  .omega_b = 0.045,
                  .h = sc18 ? 0.703 : 0.7,
                  .n_s = 0.96,
                  .sigma_8 = 0.8,
                  .t_cmb = HL_T_CMB},
    };
    return p;
}

static void set_parameter(const hl_prior *prior, int i, double physical, hl_draw *d)
{
    const hl_prior_parameter *p = &prior->parameter[i];
    double value = physical * p->factor;

    d->physical[i] = physical;
    d->unit[i] = (2.0 * physical - p->low - p->high) / (p->high - p->low);
    memcpy((char *)&d->cosmology + p->offset, &value, sizeof(value));
}

hl_draw hl_prior_at(const hl_prior *prior, const double *physical)
{
    hl_draw d = {.cosmology = prior->fixed};
    for (int i = 0; i < prior->n; i++) set_parameter(prior, i, physical[i], &d);
    return d;
}

static double within(const hl_prior_parameter *p, double u)
{
    return p->low + u * (p->high - p->low);
}

hl_draw hl_prior_uniform(const hl_prior *prior, uint64_t seed, uint64_t universe)
{
    double x[HL_PRIOR_MAX];
    for (int i = 0; i < prior->n; i++)
        x[i] =
            within(&prior->parameter[i], hl_rng_uniform(seed, HL_STREAM_PARAMETERS, universe, (uint64_t)i));
    return hl_prior_at(prior, x);
}

/* A bijection of [0, n) chosen by (seed, key). */
static int64_t permuted(int64_t i, int64_t n, uint64_t seed, uint64_t key)
{
    int bits = 1;
    while (((int64_t)1 << (2 * bits)) < n) bits++;
    uint64_t mask = ((uint64_t)1 << bits) - 1, x = (uint64_t)i;

    do {
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t left = x >> bits, right = x & mask;
            hl_random r = hl_philox(seed, HL_STREAM_PARAMETERS, key << 3 | round, UINT64_C(1) << 63 | right);
            x = right << bits | (left ^ (r.v[0] & mask));
        }
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

hl_draw hl_prior_latin(const hl_prior *prior, uint64_t seed, uint64_t key, int64_t i, int64_t n)
{
    double x[HL_PRIOR_MAX];
    for (int p = 0; p < prior->n; p++) {
        uint64_t own = key * HL_PRIOR_MAX + (uint64_t)p;
        double jitter = hl_rng_uniform(seed, HL_STREAM_PARAMETERS, (uint64_t)i, UINT64_C(1) << 62 | own);
        x[p] = within(&prior->parameter[p], ((double)permuted(i, n, seed, own) + jitter) / (double)n);
    }
    return hl_prior_at(prior, x);
}
