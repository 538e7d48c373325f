/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h -- what travels: native (the buffer's own f32 or f64), or bf16 or f16, rounded to nearest. Sums are always in the buffer's type.
 *
 * With a narrow wire both partners of an addition round their share, the one who keeps it and the one who sends it: r(a) + r(b) does not depend on
 * which of them owns an element. What a rank loses in rounding its own gradients for the first time is kept and added to its next gradients (error feedback:
 * Seide et al., "1-bit stochastic gradient descent", 2014).
 */
#ifndef HL_WIRE_H
#define HL_WIRE_H

#include "base/base.h"
#include "halo/backend.h"

typedef enum hl_wire { HL_WIRE_NATIVE = 0, HL_WIRE_BF16, HL_WIRE_F16 } hl_wire;

/* Bytes of one element on the wire. */
size_t hl_wire_size(hl_wire wire, halo_dtype type);

/* The arithmetic of one (wire, type); `n` elements each. A table, so that a simulated machine can put costs in its place. */
typedef struct hl_arithmetic {
    /* out = r(x), as it travels. Native buffers travel as they are: NULL */
    void (*encode)(int64_t n, const void *x, void *out);
    /* x = in. Native: NULL */
    void (*decode)(int64_t n, const void *in, void *x);
    /* x = r(x) + in[0] + ... in the order of ranks: `before` of the `fan` parts come before x. fan = 1: x = r(x) + in[0]. */
    void (*sum)(int64_t n, int fan, int before, const void *const *in, void *x);
    /* x = r(x). Native: NULL */
    void (*settle)(int64_t n, void *x);
    /* x = r(x + e), e = what was lost (0 where that is not finite). Native: NULL */
    void (*feed)(int64_t n, void *x, void *e);
} hl_arithmetic;

/* type: f32 or f64. */
const hl_arithmetic *hl_wire_arithmetic(hl_wire wire, halo_dtype type);

#endif
