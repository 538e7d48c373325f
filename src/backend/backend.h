/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h -- the generic side of the contract: finding backends, opening the context's device, what an operation costs, running one. */
#ifndef HL_BACKEND_H
#define HL_BACKEND_H

#include "tensor/operand.h"

/* Backends of this build, in order of preference, ended by NULL (list written by configure: HALO_BACKENDS). */
const halo_backend *const *hl_backends(void);

/* The context's device, opened on first use; the context owns it. */
halo_status hl_context_device(halo_context *ctx, halo_device **dev);

/* Opens another device (tests; f64 reference). Closed with dev->ops->close. */
halo_status hl_device_open(halo_context *ctx, const char *backend, const halo_device_options *options, halo_device **dev);

const char *hl_op_kind_name(halo_op_kind kind); /* "conv-fwd" ... */
const char *hl_role_name(halo_role role);
const char *hl_act_name(halo_act act);

/* Sets of roles. */
#define HL_ROLE_BIT(role) (1u << (role))

/* Of an operand that is there: whether the operation writes it, and whether its content before matters. */
bool hl_op_writes(halo_op_kind kind, halo_role role);
bool hl_op_reads(const halo_op_desc *desc, halo_role role);

/* Floating-point operations (2 per multiply-add of the direct algorithm) and least bytes moved of one run. */
typedef struct hl_cost { double flops, bytes; } hl_cost;
hl_cost hl_op_cost(const halo_op_desc *desc);

/* Candidates of a kind; 0 when the class is absent or not applicable. Where the device has none for operands of 16 bits, those that it has for f32, done
 * between conversions (widen.h). */
int hl_op_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate out[HALO_MAX_CANDIDATES]);
/* What plans, runs and destroys such a candidate. */
const halo_op_class *hl_op_class(const halo_device *dev, halo_op_kind kind, const halo_candidate *choice);

/* The single-op helper of tests and small uses: plans the first candidate (or the one named `impl` when not NULL), runs it once on the given
 * addresses with own scratch, waits, destroys. Where the candidate wants an image of the weights, ptr[HALO_WT] is the plain master all the same. */
halo_status hl_op_run_once(halo_device *dev, const halo_op_desc *desc, const char *impl, void *const ptr[HALO_ROLES],
                           const halo_step_record *record);

#endif
