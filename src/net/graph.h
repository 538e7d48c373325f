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
    HL_LAYER_CONV_TRANSPOSE,
    HL_LAYER_POOL,
    HL_LAYER_NORM, /* batch, group and instance norm */
    HL_LAYER_ACT,
    HL_LAYER_DROPOUT,
    HL_LAYER_FLATTEN,
    HL_LAYER_DENSE,
    HL_LAYER_ADD,
    HL_LAYER_CONCAT,
    HL_LAYER_CROP,
    HL_LAYER_UPSAMPLE,
    HL_LAYER_KINDS
} hl_layer_kind;

enum { HL_NAME_MAX = 64, HL_INPUTS_MAX = 16, HL_LAYERS_MAX = 4096, HL_CONV_KERNEL_MAX = 7, HL_WINDOW_MAX = 1024 };

typedef struct hl_layer {
    hl_layer_kind kind;
    char name[HL_NAME_MAX];
    int inputs;
    int input[HL_INPUTS_MAX]; /* indices of earlier layers */
    int line;                 /* of the network file, 0 = none; for messages */

    /* conv, conv-transpose, pool; a transposed convolution's window is that of the convolution from its output to its input, and so is upsample's, whose factor is the stride */
    int64_t filters; /* conv: output channels; dense: outputs */
    halo_window window;
    halo_padding padding[3];
    int64_t pad[3][2]; /* explicit as given; filled by shape inference for the others; window.pad_lo is pad[..][0] */
    int64_t output_padding[3]; /* conv-transpose: cells behind, as given: 0 where the padding is `same` */
    bool bias;
    halo_pool pool;
    bool count_pad;
    /* act; also the factor of `scale` */
    halo_act act;
    double slope;
    /* norm */
    halo_norm_scope scope;
    int64_t groups;       /* group norm: runs of channels */
    double eps, momentum; /* running = momentum * running + (1 - momentum) * new */
    /* dropout */
    double keep;
    /* flatten */
    bool channels_last;
    int64_t features; /* 0: all values in one row */
    /* crop: cells cut off before and behind */
    int64_t crop[3][2];
    /* initialisers of weights and bias (conv, dense), gamma (norm; beta is 0) */
    halo_init init;
    double init_bias, init_gamma;

    int64_t out[4]; /* C D H W of the output, filled by shape inference; a vector is F 1 1 1 */
    int64_t rows;   /* 1, or behind a flatten with `features`: the layer works on N * rows samples of shape out[] (a flattened sample's values are its
                     * rows in order, so this is a reinterpretation); targets and sample weights repeat, predictions are means over rows */
} hl_layer;

struct halo_network {
    halo_context *ctx;
    char name[HL_NAME_MAX]; /* "cosmoflow-sc18" */
    hl_layer *layer; /* [layers]; layer 0 is the input, the last one the output */
    int layers;
    size_t cap;
    int64_t parameters; /* trainable, of all layers so far */
    const char *source; /* while a network file is read: its name and the line being read, for messages; NULL else */
    int source_line;
};

/* halo_network_create, for a network read from a file too: source and the lines of its name and of its input are for messages.
 * shape: C D H W. */
halo_status hl_graph_create(halo_context *ctx, const char *source, const int line[2], const char *name,
                            const int64_t shape[4], struct halo_network **net);

/* Adds a layer whose settings are filled in: checks ranges, infers its shape, counts its parameters, copies it into the graph. On failure the
 * graph is as before. */
halo_status hl_graph_append(struct halo_network *net, hl_layer *layer, int *index);

/* Whether a norm has statistics of its own per sample, and how many features they are of. */
static inline bool hl_per_sample(const hl_layer *l) { return l->scope != HALO_NORM_BATCH; }
static inline int64_t hl_norm_features(const hl_layer *l) { return l->scope == HALO_NORM_GROUP ? l->groups : l->out[0]; }

/* The cells that a centre crop cuts off each side of `from` so that what is left is as large as `like`: of an odd number one more behind. */
halo_status hl_crop_like(const struct halo_network *net, const char *name, int from, int like, int64_t cells[3][2]);

/* "16 x 30 x 30 x 30" */
typedef struct hl_shape_text { char s[96]; } hl_shape_text;
hl_shape_text hl_shape_print(const int64_t *shape, int n);

/* Infers out[], rows, and pad[] and window.pad_lo of the layer from its inputs' shapes with checked arithmetic. An error names network, layer,
 * input extents, window, and the extent that came out. Called by the adding functions, so a graph is always inferred. */
halo_status hl_graph_infer(struct halo_network *net, hl_layer *layer);

/* Fails, naming the layer, where a layer's output is used by no other though it is not the last one: such a branch would never be trained.
 * For network files and the compiler. */
halo_status hl_graph_check(const struct halo_network *net);

/* "conv", "pool"...: also the stem of automatic names. */
const char *hl_layer_kind_name(hl_layer_kind kind);

/* Reports an error of the network, with file:line while a file is read. */
halo_status hl_graph_fail(const struct halo_network *net, halo_status status, const char *format, ...) HALO_PRINTF(3, 4);

/* Parameters of a layer: count, and each one's name ("weights", "bias", "gamma", "beta", "running_mean", "running_variance"), dims and role. */
typedef struct hl_param_info {
    char name[HL_NAME_MAX * 2]; /* "conv1/weights" */
    int layer;
    int ndim;
    int64_t dim[5];   /* (out, in, kd, kh, kw); (out, in); (C) */
    int64_t count;
    bool trainable;   /* running statistics are not, nor what a model was told to freeze */
    bool frozen;      /* in a model: left as it is; running statistics of a norm that is frozen as a whole, too */
    bool decay;       /* weights are decayed, biases and norm parameters are not */
    halo_role role;   /* HALO_WT, HALO_B, HALO_RUN */
} hl_param_info;

/* Those of one layer, in this order; `layer` is its number. *n <= 4. Counts are checked: HALO_ERR_SHAPE when they do not fit. */
halo_status hl_layer_params(const struct halo_network *net, const hl_layer *l, int layer, hl_param_info out[4], int *n);

/* All parameters of the network in layer order; *list is freed by the caller. */
halo_status hl_graph_params(const struct halo_network *net, hl_param_info **list, int *n);
/* Trainable parameters in all: what `explain` prints. */
int64_t hl_graph_param_count(const struct halo_network *net);

/* Initial value of parameter p into host[count]: a function of (seed, parameter name hash, element index) alone. */
void hl_param_init(const struct halo_network *net, const hl_param_info *p, uint64_t seed, double *host);

#endif
