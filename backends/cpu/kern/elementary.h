/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementary.h -- exp, tanh and the logistic function of f32 without branches or tables, so that loops over them become vector code.
 *
 * exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2)/2 (the reduction in two parts after Cody & Waite, "Software Manual for the Elementary
 * Functions", 1980), exp(r) by its Taylor polynomial of degree 7: the rest is below 2^-27. Errors, from
 * a run over every seventh float of either sign within +-87: exp 1.2 ulp, logistic 2.5 ulp, tanh 1.6 ulp.
 */
#ifndef HL_ELEMENTARY_H
#define HL_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

static inline float hl_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

/* For -87 <= x <= 88; outside it is cut to that. NaN gives NaN. */
static inline float hl_exp(float x)
{
    float cut = x > 88.0f ? 88.0f : x < -87.0f ? -87.0f : x;
    float shifted = cut * 1.44269504f + 12582912.0f; /* 1.5 2^23: the sum's last bits are the rounded integer */
    float n = shifted - 12582912.0f;
    float r = cut - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1.98412698e-4f;
    p = p * r + 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    return p * hl_from_bits((uint32_t)(bits - 0x4b400000 + 127) << 23);
}

static inline float hl_logistic(float x) { return 1.0f / (1.0f + hl_exp(-x)); }

/* Below 0.55 the odd polynomial a + a q P(q), q = a^2, P interpolating (tanh(a)/a - 1)/q at Chebyshev's points (error 0.06 ulp); else
 * 1 - 2 / (exp(2a) + 1), which loses nothing there; with x's sign. */
static inline float hl_tanh(float x)
{
    float a = x < 0 ? -x : x, q = a * a;
    float p = -6.61022784e-3f;
    p = p * q + 2.13093887e-2f;
    p = p * q - 5.39094288e-2f;
    p = p * q + 1.33331137e-1f;
    p = p * q - 3.33333320e-1f;
    float near = a + a * (q * p);
    float far = 1.0f - 2.0f / (hl_exp(a + a) + 1.0f);
    float t = a < 0.55f ? near : far;
    return x < 0 ? -t : t;
}

#endif
