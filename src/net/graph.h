/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h -- a network as a static directed graph of layers, in the order in which they were added (a topological order by construction:
 * a layer's inputs exist before it). Built by the public calls of halo.h alone; the zoo and network files use the same calls.
 */
#ifndef HL_GRAPH_H
#define HL_GRAPH_H

#include "tensor/operand.h"

typedef enum hl_layer_kind {
    HL_LAYER_INPUT = 0,
    HL_LAYER_CONV,
    HL_LAYER_POOL,
    HL_LAYER_NORM, /* batch norm; group and instance later */
    HL_LAYER_ACT,
    HL_LAYER_DROPOUT,
    HL_LAYER_FLATTEN,
    HL_LAYER_DENSE,
    HL_LAYER_ADD,
    HL_LAYER_CONCAT,
    HL_LAYER_KINDS
} hl_layer_kind;

typedef enum hl_padding { HL_PAD_EXPLICIT = 0, HL_PAD_SAME, HL_PAD_VALID, HL_PAD_PERIODIC } hl_padding;
/* SAME pads as TensorFlow: out = ceil(in / stride), the odd cell on the high side. PERIODIC: as SAME in extent, cells wrap. Per axis. */

typedef enum hl_init { HL_INIT_GLOROT_UNIFORM = 0, HL_INIT_GLOROT_NORMAL, HL_INIT_HE_UNIFORM, HL_INIT_HE_NORMAL, HL_INIT_CONSTANT } hl_init;

enum { HL_NAME_MAX = 64, HL_INPUTS_MAX = 16 };

typedef struct hl_layer {
    hl_layer_kind kind;
    char name[HL_NAME_MAX];
    int inputs;
    int input[HL_INPUTS_MAX]; /* indices of earlier layers */
    int line;                 /* of the network file, 0 = none; for messages */

    /* conv, pool */
    int64_t filters; /* conv: output channels; dense: outputs */
    halo_window window;
    hl_padding padding[3];
    int64_t pad[3][2]; /* explicit as given; filled by shape inference for the others */
    bool bias;
    halo_pool pool;
    bool count_pad;
    /* act; also the factor of `scale` */
    halo_act act;
    double slope;
    /* norm */
    double eps, momentum; /* running = momentum * running + (1 - momentum) * new */
    /* dropout */
    double keep;
    /* flatten */
    bool channels_last;
    /* initialisers of weights and bias (conv, dense), gamma and beta (norm) */
    hl_init init;
    double init_bias, init_gamma;

    int64_t out[4]; /* C D H W of the output, filled by shape inference */
} hl_layer;

struct halo_network {
    halo_context *ctx;
    char name[HL_NAME_MAX];
    char variant[HL_NAME_MAX];
    hl_layer *layer; /* [layers]; layer 0 is the input, the last one the output */
    int layers;
    size_t cap;
};

/* Infers out[] (and pad[] of same/periodic) of every layer from the input's C D H W with checked arithmetic. An error names network, layer,
 * input extents, window, and the extent that came out. Called by the adding functions, so a graph is always inferred. */
halo_status hl_graph_infer(struct halo_network *net, int layer);

/* Parameters of a layer: count, and each one's name ("weights", "bias", "gamma", "beta", "running_mean", "running_variance"), dims and role. */
typedef struct hl_param_info {
    char name[HL_NAME_MAX * 2]; /* "conv1/weights" */
    int layer;
    int ndim;
    int64_t dim[5];   /* (out, in, kd, kh, kw); (out, in); (C) */
    int64_t count;
    bool trainable;   /* running statistics are not */
    bool decay;       /* weights are decayed, biases and norm parameters are not */
    halo_role role;   /* HALO_WT, HALO_B, HALO_RUN */
} hl_param_info;

/* All parameters of the network in layer order; *list is freed by the caller. */
halo_status hl_graph_params(const struct halo_network *net, hl_param_info **list, int *n);
/* Trainable parameters in all: what `explain` prints. */
int64_t hl_graph_param_count(const struct halo_network *net);

/* Initial value of parameter p into host[count]: a function of (seed, parameter name hash, element index) alone. */
void hl_param_init(const struct halo_network *net, const hl_param_info *p, uint64_t seed, double *host);

#endif
