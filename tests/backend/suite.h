/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h -- random operations for the conformance suite. A trial is one operation with its operands as plain arrays of doubles (what it means),
 * free of any layout, box or type; the suite dresses it for a device. Equal seeds give equal trials.
 */
#ifndef HL_TESTS_SUITE_H
#define HL_TESTS_SUITE_H

#include "backend/backend.h"

typedef struct rng {
    uint64_t state;
} rng;
uint64_t rng_next(rng *r);
int64_t rng_int(rng *r, int64_t lo, int64_t hi); /* lo <= . <= hi */
bool rng_chance(rng *r, int percent);
double rng_normal(rng *r);
double rng_uniform(rng *r, double lo, double hi);

/* How an operand is stored when the suite dresses it. */
typedef enum dress {
    DRESS_NONE = 0, /* absent */
    DRESS_PROGRAM,  /* an activation: program layout, box in a larger allocation, the device's compute type */
    DRESS_ANY,      /* an activation in any layout of the device (copies) */
    DRESS_ROWS,     /* plain [N, F] */
    DRESS_MASTER,   /* dense, the device's master type */
    DRESS_STAT,     /* dense f64 */
    DRESS_AUX       /* program layout and box, the type in `type` */
} dress;

typedef struct operand {
    dress dress;
    halo_dtype type; /* NONE: as `dress` says */
    bool in, out;
    bool exact;      /* compare without tolerance */
    bool any_margin; /* output includes the margin */
    int64_t ext[HALO_DIMS], margin[3][2];
    double *value; /* box and margin, plain order; what goes in */
    double *want;  /* the same cells after the operation, by the oracle */
} operand;

typedef struct trial {
    uint64_t seed;
    halo_op_desc d; /* everything but the operands */
    operand t[HALO_ROLES];
    int alias[HALO_ROLES]; /* role whose memory this one shares (in place), or -1 */
    halo_step_record record;
    double *z;  /* conv-pool: what the convolution computes before it is pooled, activated, plain (n, c, d, h, w) */
    bool dense; /* no margins, no room around the boxes: what a vendor's library takes */
} trial;

/* A trial of `kind`. oracle: a ref device in f64, which makes inputs that come from other operations and the wanted results. */
void trial_make(trial *t, halo_op_kind kind, uint64_t seed, halo_device *oracle);
/* The same with activations, and the weights of convolutions and dense layers, that a 16-bit `grain` holds exactly (F16, BF16; else as above). */
void trial_make_of(trial *t, halo_op_kind kind, uint64_t seed, halo_device *oracle, halo_dtype grain);
/* Operations that multiply weights: what they do in 16 bits is rounded so in all their outputs. */
bool trial_multiplies(halo_op_kind kind);
void trial_free(trial *t);

/* Cells of box and margin. */
int64_t operand_cells(const operand *o);
/* The operand as the oracle holds it: f64 (16-bit and integer types as they are), plain, box and margin alone. */
halo_operand operand_plain(const operand *o);

/* Runs on the oracle; magnitude: on the absolute values of the inputs, which bounds what rounding can do. Results into `out` by role (owned by
 * the caller), NULL for roles that are not written. */
void trial_oracle(const trial *t, halo_device *oracle, bool magnitude, double *out[HALO_ROLES]);

/* Largest values of the kinds' multiply-adds, so that a suite takes seconds. */
enum { TRIAL_WORK = 400000 };

#endif
