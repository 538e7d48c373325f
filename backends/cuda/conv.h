/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h -- a convolution as calls of cuDNN: pieces that cuDNN can do, each with its descriptors, and what has to be moved before and after. A piece may
 * be a graph instead (conv_graph.h), with bias and activation, with other padding on either side, and with gradients that are part of something.
 *
 * `near` is the side of x and dx, `far` the side of y and dy. cuDNN pads both sides of an axis alike, takes no negative padding, and writes what its own
 * formula says; boxes are strided views for it. Where that does not give the contract's meaning a piece goes through scratch: forward and weights read a
 * copy of x with its zeros written out; data writes the whole footprint of dy, from which dx's box is cut. Backward cuDNN takes no dy that is not
 * packed in c d h w: one that is part of something is copied, too. Tensors that reach past
 * 2^31 elements are cut over samples, then channels of the far side, then planes.
 *
 * Activations are f32, f16 or bf16 with sums in f32, in ncdhw or ndhwc; filters are of the same type, and in the order (o,kd,kh,kw,i) where
 * activations have channels last. Where that is not what the weights are, cuDNN reads an image of them (image.c), and gradients of weights are
 * converted from scratch: they are added up over pieces, and with `accumulate`, in their own type.
 */
#ifndef HL_CUDA_CONV_H
#define HL_CUDA_CONV_H

#include "conv_graph.h"
#include "groups.h"

/* A description that the device was asked about, and the graph: NULL where there is no engine for it. */
typedef struct hl_known_graph {
    struct hl_known_graph *next;
    hl_graph_conv c;
    hl_conv_graph *graph;
} hl_known_graph;

typedef struct hl_conv_piece {
    cudnnTensorDescriptor_t near, far;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    int64_t near_at, far_at, filter_at; /* elements from the first cell of the operand's box; of the weights */
    int64_t filter_channels;            /* of the far side that it has, */
    int64_t channel;                    /* from this one on */
    bool empty;                         /* data: no output reads these cells */
    bool moved;                         /* the near side is in scratch: packed before (forward, weights), cut out after (data) */
    bool first, last;                   /* of the pieces that add to one near side (data) or one part of the weights */
    bool packed;                        /* backward: the far side is in scratch */
    bool adds;                          /* what cuDNN computes is added to what is there */
    hl_window_copy move, pack;
    int64_t near_elements, far_elements; /* in scratch */
    int64_t move_at, pack_at;           /* of the operands, where moving begins */
    const hl_known_graph *graph;        /* NULL: none */
    bool fused;                         /* it has bias and activation */
    hl_graph_pack addresses;
} hl_conv_piece;

typedef struct hl_conv_pieces {
    hl_conv_piece *piece;
    size_t n, room;
    int64_t near_elements, far_elements, filter_elements; /* most of all */
} hl_conv_pieces;

/* The description's near and far role and weights. */
halo_role hl_conv_near(const halo_op_desc *d);
halo_role hl_conv_far(const halo_op_desc *d);

/* Operands are there and fit together. */
bool hl_conv_fits(const halo_op_desc *d);
/* Whether the older calls need a copy of the near side or the far side. */
bool hl_conv_moves(const hl_cuda_device *dev, const halo_op_desc *d);
/* graph: by graphs, else for the older calls. */
halo_status hl_conv_pieces_make(hl_cuda_device *dev, const halo_op_desc *d, bool graph, hl_conv_pieces *p);
void hl_conv_pieces_free(hl_conv_pieces *p);

typedef struct hl_conv_plan {
    hl_cuda_plan super;
    hl_conv_pieces pieces;
    int algorithm;
    size_t workspace;
    halo_dtype type;
    hl_cells finish; /* bias and activation: y or dx, channel */
    hl_groups db;
    int image;     /* of the weights that it reads, 0: themselves */
    bool indirect; /* weights' gradient: by way of scratch */
} hl_conv_plan;

/* The classes' common part. ask: cuDNN's algorithms for piece 0, best first, into list[HALO_MAX_CANDIDATES]; size: the workspace of one for a piece. */
typedef struct hl_conv_way {
    bool graph;
    const char *(*name)(int algorithm);
    int (*ask)(hl_cuda_device *dev, const hl_conv_piece *p, int list[HALO_MAX_CANDIDATES]);
    bool (*size)(hl_cuda_device *dev, const hl_conv_piece *p, int algorithm, size_t *bytes);
} hl_conv_way;
int hl_conv_candidates(halo_device *dev, const halo_op_desc *d, const hl_conv_way *way, halo_candidate *out);
halo_status hl_conv_plan_make(halo_device *dev, const halo_op_desc *d, const hl_conv_way *way, const halo_candidate *choice, halo_plan **out);
void hl_conv_plan_free(halo_plan *plan);
/* Scratch: workspace, then the near side of a piece, the far side, the weights' gradient, the bias's sums. */
void *hl_conv_moved(const hl_conv_plan *p, void *scratch);
void *hl_conv_packed(const hl_conv_plan *p, void *scratch);
void *hl_conv_filter(const hl_conv_plan *p, void *scratch);
void *hl_conv_sums(const hl_conv_plan *p, void *scratch);
char *hl_conv_weights(const hl_conv_plan *p, const halo_op_args *args);
/* The gradient of the weights is not what cuDNN writes. */
bool hl_conv_indirect(const halo_op_desc *d);

/* conv_fused.c: graphs. FUSED has bias and activation in it, PLAIN is the convolution alone: worth it where it saves moving. */
enum { HL_CONV_FUSED = -1, HL_CONV_PLAIN = -2 };
extern const hl_conv_way hl_conv_graph_way;
bool hl_conv_fusable(const halo_op_desc *d);
/* All candidates and the plan of an operation for which there are the older calls' algorithms, too. */
int hl_conv_ways(halo_device *dev, const halo_op_desc *d, const hl_conv_way *older, halo_candidate *out);
halo_status hl_conv_ways_plan(halo_device *dev, const halo_op_desc *d, const hl_conv_way *older, const halo_candidate *choice, halo_plan **out);
/* The device's graph of a description, made once; NULL where there is no engine for it. */
halo_status hl_conv_graph_of(hl_cuda_device *dev, const hl_graph_conv *c, const hl_known_graph **out);
void hl_conv_graphs_free(hl_cuda_device *dev);
/* A piece by its graph. */
halo_status hl_conv_graph_put(const hl_conv_plan *p, hl_conv_piece *e, void *x, void *w, void *b, void *y, void *workspace);

/* conv_fwd.c: all ways forward; the convolution of a plan, with bias and activation only where its graph has them; x and y at the first cells of their boxes. */
int hl_conv_forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out);
halo_status hl_conv_forward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out);
halo_status hl_conv_forward(const hl_conv_plan *p, char *x, char *w, char *b, char *y, void *scratch);

/* Byte of an element of the plan's type. */
static inline size_t hl_conv_byte(const hl_conv_plan *p, int64_t element) { return (size_t)element * hl_dtype_size(p->type); }

/* image.c: the image that an operation with activations of that type and layout reads of weights of another type; 0: the weights themselves. */
int hl_cuda_image(halo_dtype weights, halo_dtype type, halo_layout layout);

#endif
