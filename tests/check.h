/* SPDX-License-Identifier: Apache-2.0 */
/* check.h -- for tests: set-up that must work, or the program ends with the reason on stderr. */
#ifndef HL_TESTS_CHECK_H
#define HL_TESTS_CHECK_H

#include "base/base.h"

#include <stdio.h>

/* Zeroed, n >= 0 items. */
static inline void *check_alloc(int64_t n, int64_t size)
{
    void *p = calloc(n > 0 ? (size_t)n : 1, (size_t)size);
    if (!p) {
        fprintf(stderr, "out of memory: %" PRId64 " items of %" PRId64 " bytes\n", n, size);
        exit(99);
    }
    return p;
}

static inline void check_status(const halo_context *ctx, halo_status st, const char *what)
{
    if (st == HALO_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, halo_status_text(st), halo_error_message(ctx));
    exit(99);
}

/* The larger error; NaN counts as infinite (fmax would lose it). */
static inline double check_worse(double a, double b) { return isnan(a) || isnan(b) ? INFINITY : a > b ? a : b; }

#endif
