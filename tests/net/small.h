/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small.h -- small networks that between them have every kind of layer and every way of joining them, and
 * what tests of programs do with a network: fill a batch, make one step, read gradients.
 */
#ifndef HL_TESTS_SMALL_H
#define HL_TESTS_SMALL_H

#include "net/ir.h"
#include "tests/check.h"

typedef struct small_network {
    const char *name;
    void (*build)(halo_network *net);
    int64_t channels, extents[3];
} small_network;

extern const small_network small_networks[]; /* ended by a NULL name */

halo_network *small_build(halo_context *ctx, const small_network *s);

/* A batch of normal numbers, different targets, everything owned by it. */
typedef struct small_data {
    hl_batch batch;
    float *x, *y;
} small_data;

small_data small_fill(const halo_network *net, int64_t samples, uint64_t seed);
void small_free(small_data *d);

/* SGD without momentum, no decay. */
hl_optim_spec small_sgd(void);
/* Training, batch of `samples`, mse, fixed choices. */
hl_compile_options small_options(int64_t samples);

/* One forward and backward pass without update; returns the loss. */
double small_step(halo_context *ctx, hl_program *p, const small_data *d);

/* A whole array of a parameter; freed by the caller. */
double *small_get(halo_context *ctx, hl_model *m, int param, hl_array a);

/* max |a - b| / max |b|, or max |a - b| where b is all zero. */
double small_distance(const double *a, const double *b, int64_t n);

/* Bits of all masters of two models are equal. */
bool small_equal(halo_context *ctx, hl_model *a, hl_model *b);

#endif
