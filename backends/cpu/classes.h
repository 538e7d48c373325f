/* SPDX-License-Identifier: Apache-2.0 */
/* classes.h -- the operations of the cpu backend, and the libraries under it. */
#ifndef HL_CPU_CLASSES_H
#define HL_CPU_CLASSES_H

#ifdef HAVE_CONFIG_H
#include "halo_build.h" /* HAVE_KERN_* */
#endif
#include "cpu.h"

extern const halo_op_class *const hl_cpu_classes[HALO_OP_KINDS];

extern const halo_op_class hl_cpu_pool_fwd, hl_cpu_pool_bwd, hl_cpu_act_pool_bwd;
extern const halo_op_class hl_cpu_norm_stats, hl_cpu_norm_apply, hl_cpu_norm_bwd_stats, hl_cpu_norm_bwd_apply;
extern const halo_op_class hl_cpu_act_fwd, hl_cpu_act_bwd, hl_cpu_add;
extern const halo_op_class hl_cpu_upsample_fwd, hl_cpu_upsample_bwd, hl_cpu_prepare;
extern const halo_op_class hl_cpu_copy, hl_cpu_cast, hl_cpu_flatten, hl_cpu_unflatten, hl_cpu_margin;
extern const halo_op_class hl_cpu_linear_fwd, hl_cpu_linear_bwd_data, hl_cpu_linear_bwd_weights;
extern const halo_op_class hl_cpu_dropout, hl_cpu_loss, hl_cpu_loss_sums, hl_cpu_sumsq, hl_cpu_decide, hl_cpu_norm_merge, hl_cpu_update, hl_cpu_bias_bwd;

/* pool.c: averages whose windows overlap, under the class of act_pool.c, which hands on what has another id than its own. */
extern const halo_op_class hl_cpu_act_average_bwd;
enum { HL_ACT_POOL_ID = 1 };

/* cross_entropy.c: the loss of classes, under the class of all losses. */
int hl_cross_entropy_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out);
halo_status hl_cross_entropy_make(halo_device *dev, const halo_op_desc *d, halo_plan **plan);
halo_status hl_cross_entropy_run(halo_plan *plan, const halo_op_args *args);
void hl_cross_entropy_free(halo_plan *plan);
/* dice.c; freed as that. */
int hl_dice_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out);
halo_status hl_dice_make(halo_device *dev, const halo_op_desc *d, halo_plan **plan);
halo_status hl_dice_run(halo_plan *plan, const halo_op_args *args);
/* Targets of a whole sample, of which T may hold a part. */
double hl_loss_targets(const halo_op_desc *d);

/* The pointwise kernels compiled for `isa` (usable ones only). */
const struct hl_kern *hl_cpu_kern(hl_isa isa);

/* "OpenBLAS 0.3.21, oneDNN 2.6.3" into out. */
void hl_cpu_libraries(char *out, size_t size);

#endif
