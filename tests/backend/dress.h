/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dress.h -- a trial put on for a device: operands in its types and layouts, as boxes of larger allocations, as a careless caller could have them.
 *
 * Before the run every byte that the operation must not read is a NaN (or a fixed pattern for integers), padding lanes of channel blocks are zero,
 * and vectors start at odd element offsets. After it, cells of outputs agree with the oracle, and every other byte is what it was.
 */
#ifndef HL_TESTS_DRESS_H
#define HL_TESTS_DRESS_H

#include "suite.h"

typedef struct stored {
    halo_operand op;
    size_t bytes, offset;  /* of the memory; where the operand's allocation starts in it */
    unsigned char *before; /* [bytes], NULL when the role is absent or shares another's memory */
    unsigned char *after;
    void *memory;          /* the device's */
} stored;

typedef struct dressed {
    const trial *t;
    halo_device *dev;
    halo_layout layout;
    halo_op_desc d;
    stored s[HALO_ROLES];
    double tolerance, change; /* change: the largest of the output being checked */
    halo_device *oracle;
    char why[512]; /* the first failure */
    double worst;  /* largest error as a fraction of the tolerance */
} dressed;

void dress_up(dressed *x, const trial *t, halo_device *dev, halo_layout layout, halo_device *oracle, double tolerance);
void dress_off(dressed *x);

/* Runs one candidate `times` times on fresh operands (1 or 2; the second time must give equal bits) and checks; false with x->why. */
bool dress_run(dressed *x, const halo_candidate *c, int times);

/* The whole description, for a failure's note. */
void dress_print(const dressed *x, const halo_candidate *c);

#endif
