/* SPDX-License-Identifier: Apache-2.0 */
/* classes.h -- the operations of the cpu backend, and the libraries under it. */
#ifndef HL_CPU_CLASSES_H
#define HL_CPU_CLASSES_H

#ifdef HAVE_CONFIG_H
#include "halo_build.h" /* HAVE_KERN_* */
#endif
#include "cpu.h"

extern const halo_op_class *const hl_cpu_classes[HALO_OP_KINDS];

extern const halo_op_class hl_cpu_pool_fwd, hl_cpu_pool_bwd;
extern const halo_op_class hl_cpu_norm_stats, hl_cpu_norm_apply, hl_cpu_norm_bwd_stats, hl_cpu_norm_bwd_apply;
extern const halo_op_class hl_cpu_act_fwd, hl_cpu_act_bwd, hl_cpu_add;
extern const halo_op_class hl_cpu_copy, hl_cpu_cast, hl_cpu_flatten, hl_cpu_unflatten, hl_cpu_margin;
extern const halo_op_class hl_cpu_linear_fwd, hl_cpu_linear_bwd_data, hl_cpu_linear_bwd_weights;
extern const halo_op_class hl_cpu_dropout, hl_cpu_loss, hl_cpu_sumsq, hl_cpu_update;

/* The pointwise kernels compiled for `isa` (usable ones only). */
const struct hl_kern *hl_cpu_kern(hl_isa isa);

/* "OpenBLAS 0.3.21, oneDNN 2.6.3" into out. */
void hl_cpu_libraries(char *out, size_t size);

#endif
