/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.h -- the inside of the reference backend: the oracle that other backends are compared with.
 *
 * Nothing here is fast on purpose, but for the loops of a convolution (correlate.c), where runs in double spend their time. Every operation reads
 * its operands into dense double arrays (any type, any layout, any box), computes the contract's formula with plain loops in double, and writes the
 * box back in the operand's type. So there is one copy of each formula, and with f64 operands nothing is rounded on the way.
 */
#ifndef HL_REF_H
#define HL_REF_H

#include "tensor/operand.h"

struct halo_plan {
    halo_op_desc d;
};

/* An operand at its address. Indices below are relative to the box: -margin <= index < ext + margin. */
typedef struct hl_ref_view {
    const halo_operand *op; /* NULL when the operand is absent */
    hl_strides s;
    char *base;
} hl_ref_view;

hl_ref_view hl_ref_operand(const halo_plan *plan, const halo_op_args *args, halo_role role);

double hl_ref_get(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w);
void hl_ref_set(const hl_ref_view *v, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w, double value);

/* Rows: pieces of at most REF_ROW cells along w that together make a range of samples and channels of a box.
 *   for (hl_ref_row r = hl_ref_rows(op); hl_ref_more(&r); hl_ref_next(&r)) { hl_ref_read(&x, &r, a); ...; hl_ref_write(&y, &r, a); } */
enum { REF_ROW = 256 };
typedef struct hl_ref_row {
    int64_t lo[HALO_DIMS], hi[HALO_DIMS]; /* the range */
    int64_t i[HALO_DIMS];                 /* where the piece begins */
    int64_t count;                        /* its cells */
} hl_ref_row;

hl_ref_row hl_ref_rows(const halo_operand *op);
hl_ref_row hl_ref_rows_of(const halo_operand *op, int64_t n, int64_t samples, int64_t c, int64_t channels);
static inline bool hl_ref_more(const hl_ref_row *r) { return r->i[HALO_N] < r->hi[HALO_N]; }
void hl_ref_next(hl_ref_row *r);
void hl_ref_read(const hl_ref_view *v, const hl_ref_row *r, double *out);
void hl_ref_write(const hl_ref_view *v, const hl_ref_row *r, const double *in);

/* Sample n, all channels, the range [lo, lo + ext) of d h w: out[c][d][h][w]; cells outside box and margin read as 0. */
void hl_ref_unpack(const hl_ref_view *v, int64_t n, const int64_t lo[3], const int64_t ext[3], double *out);
/* The same for the box alone: its cells in order (c,d,h,w). */
void hl_ref_unpack_box(const hl_ref_view *v, int64_t n, double *out);
void hl_ref_pack_box(const hl_ref_view *v, int64_t n, const double *in);
int64_t hl_ref_sample_size(const halo_operand *op); /* cells per sample of the box */

/* Dense plain vectors: elements i .. i+count-1 from the operand's first cell. */
void hl_ref_read_flat(const hl_ref_view *v, int64_t i, int64_t count, double *out);
void hl_ref_write_flat(const hl_ref_view *v, int64_t i, int64_t count, const double *in);

/* --- convolutions on dense doubles (correlate.c) */

/* Extents of one problem: i channels in, o channels out; r, from r_lo, is the region of x that the outputs p read, with the padding. */
typedef struct hl_ref_shape {
    int64_t i, o, taps, r_lo[3], r[3], p[3];
    halo_window w;
} hl_ref_shape;

/* tap[k]: from the cell of the region where an output's window begins to the cell of its tap k. */
void hl_ref_taps(const hl_ref_shape *s, int64_t *tap);
/* y[o][p] += sum_{i,k} w[o][i][k] x[i][p s + tap k] */
void hl_ref_correlate(const hl_ref_shape *s, const int64_t *tap, const double *w, const double *x, double *y);
/* dw[o][i][k] += sum_p dy[o][p] x[i][p s + tap k] */
void hl_ref_correlate_weights(const hl_ref_shape *s, const int64_t *tap, const double *x, const double *dy, double *dw);

double hl_ref_activate(halo_act act, double slope, double x);
/* Of an activation whose output is y. */
double hl_ref_derivative(halo_act act, double slope, double y);

/* --- making classes */

/* One candidate with room for `doubles` doubles of scratch; 0 candidates when that overflows or is negative. */
int hl_ref_offer(int64_t doubles, halo_candidate *out);
/* Sums for hl_ref_offer: a * b + c, -1 on overflow or when any is -1. */
int64_t hl_ref_room(int64_t a, int64_t b, int64_t c);
/* All the roles, ended by HALO_ROLES, are present and valid. */
bool hl_ref_have(const halo_op_desc *d, const halo_role *roles);
#define REF_HAVE(d, ...) hl_ref_have(d, (const halo_role[]){__VA_ARGS__, HALO_ROLES})
/* Absent, or valid with the extents of `like`. */
bool hl_ref_like(const halo_operand *op, const halo_operand *like);

halo_status hl_ref_plan(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan);
void hl_ref_destroy(halo_plan *plan);

#define REF_CLASS(name, op_kind, candidates_fn, run_fn)                                                      \
    const halo_op_class name = {                                                                             \
        .kind = op_kind, .candidates = candidates_fn, .plan = hl_ref_plan, .run = run_fn, .destroy = hl_ref_destroy}

extern const halo_op_class hl_ref_conv_fwd, hl_ref_conv_pool_fwd, hl_ref_conv_bwd_data, hl_ref_conv_bwd_weights, hl_ref_conv_image, hl_ref_bias_bwd;
extern const halo_op_class hl_ref_pool_fwd, hl_ref_pool_bwd, hl_ref_act_pool_bwd;
extern const halo_op_class hl_ref_norm_stats, hl_ref_norm_apply, hl_ref_norm_bwd_stats, hl_ref_norm_bwd_apply;
extern const halo_op_class hl_ref_act_fwd, hl_ref_act_bwd, hl_ref_add, hl_ref_dropout;
extern const halo_op_class hl_ref_copy, hl_ref_cast, hl_ref_margin, hl_ref_flatten, hl_ref_unflatten;
extern const halo_op_class hl_ref_linear_fwd, hl_ref_linear_bwd_data, hl_ref_linear_bwd_weights;
extern const halo_op_class hl_ref_loss, hl_ref_loss_sums, hl_ref_sumsq, hl_ref_decide, hl_ref_norm_merge, hl_ref_update;
extern const halo_op_class hl_ref_upsample_fwd, hl_ref_upsample_bwd, hl_ref_prepare;

/* cross_entropy.c: the classes' loss, one more formula of HALO_OP_LOSS. */
int hl_ref_cross_entropy_candidates(const halo_op_desc *d, halo_candidate *out);
halo_status hl_ref_cross_entropy(halo_plan *plan, const halo_op_args *args);
/* Loss of the cell whose logits are x[0], x[step], ...; they become the derivatives. */
double hl_ref_cross_entropy_cell(double *x, int64_t classes, int64_t step, double label);
/* What the losses of classes share: weights of classes, 1 where there are none; whether a cell does not count; what a sample's sum over cells is divided by. */
void hl_ref_class_weights(const halo_plan *plan, const halo_op_args *args, int64_t classes, double *out);
bool hl_ref_ignored(const halo_op_desc *d, double label);
double hl_ref_divisor(const halo_plan *plan, const halo_op_args *args, int64_t n);
/* dice.c */
int hl_ref_dice_candidates(const halo_op_desc *d, halo_candidate *out);
halo_status hl_ref_dice(halo_plan *plan, const halo_op_args *args);
/* Targets of a whole sample, of which T may hold a part. */
double hl_ref_targets(const halo_op_desc *d);

const halo_backend *hl_backend_ref(void);

#endif
