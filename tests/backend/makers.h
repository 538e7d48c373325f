/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makers.h -- what suite.c's trials are made by: a function for each family of operations, and what these have in common. Trials are what seeds say only as long as all draw in the same order.
 */
#ifndef HL_TESTS_MAKERS_H
#define HL_TESTS_MAKERS_H

#include "suite.h"

/* One of the values. */
#define PICK(r, ...) pick(r, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
int64_t pick(rng *r, const int64_t *from, size_t n);

/* Gives a role its operand: how it is stored, whether the operation reads and writes it, and its extents. */
operand *use(trial *t, halo_role role, dress how, bool in, bool out, const int64_t ext[HALO_DIMS]);
operand *use5(trial *t, halo_role role, dress how, bool in, bool out, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w);
operand *use_flat(trial *t, halo_role role, dress how, bool in, bool out, int64_t n);

/* Each side has a margin up to 3 with that chance. */
void random_margin(rng *r, operand *o, int percent);

/* Values an f32 holds exactly; fill_rest: of all that is read and has none yet. */
void fill_normal(rng *r, operand *o);
void fill_integers(rng *r, operand *o, int64_t lo, int64_t hi);
void fill_positive(rng *r, operand *o);
void fill_rest(rng *r, trial *t);

/* pointwise: as random_extents; one in ten is large enough to be dealt to several threads. */
void random_extents(rng *r, int64_t ext[HALO_DIMS], int64_t most);
void pointwise_extents(rng *r, int64_t ext[HALO_DIMS]);
int64_t flat_length(rng *r);
void random_act(rng *r, halo_op_desc *d);
int64_t product(const int64_t *e, int n);

/* make_windows.c: convolutions, pools and what is fused with them. */
void make_conv(trial *t, rng *r);
void make_conv_pool(trial *t, rng *r);
void make_act_pool(trial *t, rng *r);
void make_bias_bwd(trial *t, rng *r);
void make_pool_fwd(trial *t, rng *r);
void make_pool_bwd(trial *t, rng *r, halo_device *oracle);
/* What a trial of CONV_POOL_FWD computes before it pools, into z. */
void unpool_trial(trial *t, halo_device *oracle);

/* make_cells.c: norms, operations on each cell alone, copies. */
void make_norm(trial *t, rng *r);
void make_act(trial *t, rng *r);
void make_add(trial *t, rng *r);
void make_dropout(trial *t, rng *r);
void make_copy(trial *t, rng *r);
void make_margin(trial *t, rng *r);
void make_flatten(trial *t, rng *r);
void make_upsample(trial *t, rng *r);

/* make_rows.c: dense layers, losses, and what a step does beside its network. */
void make_linear(trial *t, rng *r);
void make_loss_sums(trial *t, rng *r);
void make_loss(trial *t, rng *r);
void make_prepare(trial *t, rng *r);
void make_sumsq(trial *t, rng *r);
void make_update(trial *t, rng *r);
void make_norm_merge(trial *t, rng *r);
void make_decide(trial *t, rng *r);

#endif
