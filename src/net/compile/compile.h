/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.h -- the passes that turn a graph into a program, in the order in which hl_compile runs them. Each
 * takes a program and leaves it a step nearer to running; each can be the last one
 * (hl_compile_options.after), and what it left can be printed.
 */
#ifndef HL_COMPILE_H
#define HL_COMPILE_H

#include "net/ir.h"
#include "tensor/block.h"

halo_status hl_pass_shape(hl_program *p);         /* a value per live layer, forward steps of whole layers */
halo_status hl_pass_place(hl_program *p);         /* blocks, margins of activations */
halo_status hl_pass_differentiate(hl_program *p); /* gradients, backward steps of whole layers */
halo_status hl_pass_precision(hl_program *p);     /* a dtype per value */
halo_status hl_pass_lower(hl_program *p);         /* layers to ops, fused where the backend can */
halo_status hl_pass_slabs(hl_program *p);         /* loops over slabs that make anew what is not stored */
halo_status hl_pass_inplace(hl_program *p);       /* outputs that may overwrite an input */
halo_status hl_pass_views(hl_program *p);         /* concatenations without copies */
halo_status hl_pass_margins(hl_program *p);       /* the ops that write margins */
halo_status hl_pass_overlap(hl_program *p);       /* transfers between ranks behind computing */
halo_status hl_pass_choose(hl_program *p);        /* layouts and implementations */
halo_status hl_pass_fit(hl_program *p);           /* lifetimes and slots */
halo_status hl_pass_bind(hl_program *p);          /* buffers, plans, addresses */

/* transient.c: the axis that is cut, 0 to 2; whether a value, after `lower`, can be made anew in slabs instead of being stored. */
int hl_slab_axis(const hl_program *p);
bool hl_may_be_transient(const hl_program *p, int value);

/* Which layers work on blocks (distribute.c); part of `place`. */
halo_status hl_distribute(hl_program *p);

/* --------------------------------------------------------------------- margins, shared by place and lower */

/* Cells around a box, [d h w][low high], and what they hold. */
typedef struct hl_border {
    int64_t margin[3][2];
    int64_t near[3][2]; /* KEEP: what the neighbour before and the one behind get from this process */
    halo_margin_mode mode[3];
    bool any; /* some process of the group has a KEEP margin here */
} hl_border;

/* Convolutions and pools; and those whose output is the longer side of the window. */
bool hl_has_window(const hl_layer *l);
bool hl_is_transposed(const hl_layer *l);
/* A window layer's axis with the blocks of process `index` of `parts`. */
hl_sweep hl_layer_sweep(const hl_program *p, int layer, int axis, int64_t parts, int64_t index);
/* Cells outside a window layer's input that its outputs read. */
hl_border hl_window_border(const hl_program *p, int layer);
/* A window layer's use of its input: the part of the input's margin that holds true values for it. */
hl_use hl_use_window(const hl_program *p, int layer, int value);
/* For the gradient of its input: cells beyond the box that must be formed before they are folded back... */
hl_border hl_window_grow(const hl_program *p, int layer);
/* ...and, of a convolution, the margin of its output's gradient that is read. */
hl_border hl_gradient_margin(const hl_program *p, int layer);
/* Widens a value's margin. False, and nothing done, when the value's margin holds something else. */
bool hl_widen_margin(hl_value *v, const hl_border *b);
hl_border hl_border_of(const hl_value *v);
/* A value with so much of its margin. */
hl_use hl_use_bordered(int value, const hl_border *b);
/* Window and pool fields of an op, the window's padding as between the blocks of this process. */
void hl_set_window(const hl_program *p, int layer, halo_op_desc *desc);

/* ---------------------------------------------------------------------------------- lower, in three files */

typedef halo_status (*hl_lower_fn)(hl_program *p, int layer);
extern const hl_lower_fn hl_lower_forward[HL_LAYER_KINDS];
extern const hl_lower_fn hl_lower_backward[HL_LAYER_KINDS];
halo_status hl_lower_loss(hl_program *p);
/* transposed.c, crop.c, upsample.c: kinds of layers that have a file of their own. */
halo_status hl_transposed_op(hl_program *p, int layer, hl_step **step);
halo_status hl_backward_transposed(hl_program *p, int layer);
halo_status hl_forward_crop(hl_program *p, int layer);
halo_status hl_backward_crop(hl_program *p, int layer);
halo_status hl_forward_upsample(hl_program *p, int layer);
halo_status hl_backward_upsample(hl_program *p, int layer);

/* Where a backward op leaves the gradient of a layer's (first) input: the gradient's value, or, when the op cannot add to it, a temporary that is
 * added afterwards: open, emit the op, close. */
typedef struct hl_sink {
    int value, sum; /* sum: -1 or the gradient that `value` is added to */
    bool accumulate;
} hl_sink;
halo_status hl_open_sink(hl_program *p, int layer, bool op_adds, hl_sink *out);
halo_status hl_close_sink(hl_program *p, int layer, const hl_sink *k);
/* Room for a gradient that is formed on box and margin; and afterwards, the margin added to the cells that it stands for. */
halo_status hl_grow_sink(hl_program *p, int layer, const hl_border *grow, const hl_sink *k);
halo_status hl_fold(hl_program *p, int layer, int value, const hl_border *grow);
/* Whether a backward op has to form the gradient of input k. */
bool hl_wanted(const hl_program *p, int layer, int k);
/* dy before the activation that the layer's op computed too: act'(y) dy. */
halo_status hl_through_act(hl_program *p, int layer, int *dy);
/* WT of a backward step; DW and DB, overwritten, or added to when the program accumulates. */
halo_status hl_use_weights(hl_program *p, hl_step *s);
halo_status hl_use_gradients(hl_program *p, hl_step *s);
/* Norms of weights and gradients, updates. */
halo_status hl_lower_update(hl_program *p);
/* The forms of a layer's output that others want, and what their gradients add to its own (forms.c). */
halo_status hl_convert_output(hl_program *p, int layer);
halo_status hl_convert_gradient(hl_program *p, int layer);
/* Whether this process forms the gradients of the layer's parameters: of layers that all compute, one of a group does. And what the others do instead. */
bool hl_forms_gradients(const hl_program *p, int layer);
halo_status hl_no_gradients(hl_program *p, int layer);
/* y = x, or y += x. */
halo_status hl_add_copy(hl_program *p, hl_phase phase, int layer, int from, int to, bool accumulate);
/* Scope, eps and momentum of a norm's ops. */
void hl_set_norm(const hl_layer *l, halo_op_desc *desc);
/* A batch norm that is frozen as a whole: it uses its running statistics in training, too. */
bool hl_fixed_norm(const hl_program *p, int layer);
/* True when a concatenation can write its inputs side by side into its output as it is stored. */
bool hl_concat_aligned(const hl_program *p, int layer);
/* Extents of the global tensor for dropout. */
void hl_set_global(const hl_program *p, int layer, halo_op_desc *desc);
/* Forward op of a convolution, dense layer or norm with the activation layer `act` (-1: none) inside, as
 * lower emits it. */
halo_status hl_forward_op(hl_program *p, int layer, int act, hl_step **step);

/* pooled.c: convolutions that pool, too: the only reader of a layer's output, or -1; the convolution that does a pool's work, or -1; what is saved of a pool
 * for backward; the op of convolution, activation (-1: none) and pool; the gradient of pool and activation; and who does so: fills p->pooled. */
int hl_lone_reader(const hl_program *p, int layer);
int hl_pooled_by(const hl_program *p, int pool);
halo_status hl_new_saved(hl_program *p, int pool);
/* Whether the gradient of an activation layer is the work of the pool behind it. */
bool hl_act_unpooled(const hl_program *p, int act);
halo_status hl_pooled_forward(hl_program *p, int conv, int act, int pool, hl_step **step);
halo_status hl_pooled_backward(hl_program *p, int pool);
halo_status hl_fuse_pools(hl_program *p);

/* The activations that convolutions, dense layers and norms compute too, asked of the device for each layout:
 * fills p->fused. */
halo_status hl_fuse(hl_program *p);

/* True when channels from `at` on can be a range of a value of this class in every layout that may be chosen.
 */
bool hl_aligned_channels(const hl_program *p, hl_layout_class cls, int64_t at);

enum { HL_INPUT_LAYOUTS = 3 };
/* Layouts to try: those of the device, or the one asked for; and for the input under one of them. Both return
 * how many. */
int hl_program_layouts(const hl_program *p, halo_layout out[HALO_LAYOUTS]);
int hl_input_layouts(const hl_program *p, halo_layout layout, halo_layout out[HL_INPUT_LAYOUTS]);

#endif
