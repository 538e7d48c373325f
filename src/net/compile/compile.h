/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.h -- the passes that turn a graph into a program, in the order in which hl_compile runs them. Each
 * takes a program and leaves it a step nearer to running; each can be the last one
 * (hl_compile_options.after), and what it left can be printed.
 */
#ifndef HL_COMPILE_H
#define HL_COMPILE_H

#include "net/ir.h"

halo_status hl_pass_shape(hl_program *p);         /* a value per live layer, forward steps of whole layers */
halo_status hl_pass_place(hl_program *p);         /* margins of activations */
halo_status hl_pass_differentiate(hl_program *p); /* gradients, backward steps of whole layers */
halo_status hl_pass_precision(hl_program *p);     /* a dtype per value */
halo_status hl_pass_lower(hl_program *p);         /* layers to ops, fused where the backend can */
halo_status hl_pass_inplace(hl_program *p);       /* outputs that may overwrite an input */
halo_status hl_pass_margins(hl_program *p);       /* the ops that write margins */
halo_status hl_pass_choose(hl_program *p);        /* layouts and implementations */
halo_status hl_pass_fit(hl_program *p);           /* lifetimes and slots */
halo_status hl_pass_bind(hl_program *p);          /* buffers, plans, addresses */

/* --------------------------------------------------------------------- margins, shared by place and lower */

/* Cells outside a window layer's input that its outputs read, [d h w][low high]. */
void hl_window_margin(const hl_program *p, int layer, int64_t out[3][2]);
/* True when the axis wraps around and the windows tile it evenly, so that the output continues periodically
 * as the input does. */
bool hl_wraps_evenly(const hl_program *p, int layer, int axis);
/* A window layer's use of its input: the part of the input's margin that holds true values for it. */
hl_use hl_use_window(const hl_program *p, int layer, int value);
/* For backward-data of a convolution: cells of its input's gradient beyond the box that must be formed before
 * they are folded back... */
void hl_window_grow(const hl_program *p, int layer, int64_t grow[3][2]);
/* ...and the margin of its output's gradient that is read for that; `mode` says what the cells hold. */
void hl_gradient_margin(const hl_program *p, int layer, int64_t out[3][2], halo_margin_mode mode[3]);
/* Widens a value's margin. False, and nothing done, when the value's margin holds something else. */
bool hl_widen_margin(hl_value *v, const int64_t by[3][2], const halo_margin_mode mode[3]);

/* ---------------------------------------------------------------------------------- lower, in three files */

typedef halo_status (*hl_lower_fn)(hl_program *p, int layer);
extern const hl_lower_fn hl_lower_forward[HL_LAYER_KINDS];
extern const hl_lower_fn hl_lower_backward[HL_LAYER_KINDS];
halo_status hl_lower_loss(hl_program *p);
/* transposed.c, crop.c: kinds of layers that have a file of their own. */
halo_status hl_transposed_op(hl_program *p, int layer, hl_step **step);
halo_status hl_backward_transposed(hl_program *p, int layer);
halo_status hl_forward_crop(hl_program *p, int layer);
halo_status hl_backward_crop(hl_program *p, int layer);

/* Where a backward op leaves the gradient of a layer's (first) input: the gradient's value, or, when the op cannot add to it, a temporary that is
 * added afterwards: open, emit the op, close. */
typedef struct hl_sink {
    int value, sum; /* sum: -1 or the gradient that `value` is added to */
    bool accumulate;
} hl_sink;
halo_status hl_open_sink(hl_program *p, int layer, bool op_adds, hl_sink *out);
halo_status hl_close_sink(hl_program *p, int layer, const hl_sink *k);
/* Whether a backward op has to form the gradient of input k. */
bool hl_wanted(const hl_program *p, int layer, int k);
/* dy before the activation that the layer's op computed too: act'(y) dy. */
halo_status hl_through_act(hl_program *p, int layer, int *dy);
/* WT of a backward step; DW and DB, overwritten, or added to when the program accumulates. */
halo_status hl_use_weights(hl_program *p, hl_step *s);
halo_status hl_use_gradients(hl_program *p, hl_step *s);
/* Norms of weights and gradients, updates. */
halo_status hl_lower_update(hl_program *p);
/* Window and pool fields of a convolution's or pool's op. */
void hl_set_window(const hl_layer *l, halo_op_desc *desc);
/* Scope, eps and momentum of a norm's ops. */
void hl_set_norm(const hl_layer *l, halo_op_desc *desc);
/* True when a concatenation can write its inputs side by side into its output as it is stored. */
bool hl_concat_aligned(const hl_program *p, int layer);
/* Extents of the global tensor for dropout. */
void hl_set_global(const hl_program *p, int layer, halo_op_desc *desc);
/* Forward op of a convolution, dense layer or norm with the activation layer `act` (-1: none) inside, as
 * lower emits it. */
halo_status hl_forward_op(hl_program *p, int layer, int act, hl_step **step);

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
