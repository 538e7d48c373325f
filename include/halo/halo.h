/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo.h -- the public interface of libhalo, a trainer of 3-D convolutional networks on scientific volumes.
 *
 * Conventions (CONVENTIONS has the glossary)
 *   - Logical order of a tensor is always N C D H W (samples, channels, depth, height, width); 2-D networks have D = 1.
 *   - Every function that can fail returns a halo_status. Outputs come last and are written on success only.
 *   - A pointer may be NULL only where that is said; otherwise HALO_ERR_USAGE, and the message names the argument: "'x' must not be NULL".
 *   - On failure the cause is in halo_error_message(ctx), and was passed once to the context's log callback.
 *   - The library never exits, aborts on a user's error, prints, installs signal handlers, or leaves the floating-point mode, the
 *     locale or the affinity of the calling thread changed.
 *   - A context and what was made from it belong to one thread at a time; different contexts are independent.
 *   - "Collective" functions are called by all ranks of the context's communicator in the same order (halo_mpi.h); everything else
 *     is local. Without halo_mpi.h a context has one rank.
 */
#ifndef HALO_HALO_H
#define HALO_HALO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HALO_API __attribute__((visibility("default")))
#define HALO_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define HALO_API
#define HALO_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------- status */

/* Every status: name, value, what it means. */
#define HALO_STATUS_MAP(X)                                                                                   \
    X(HALO_OK, 0, "success")                                                                                 \
    X(HALO_ERR_USAGE, 1, "wrong use: configuration, option or argument")                                     \
    X(HALO_ERR_NOMEM, 2, "out of memory")                                                                    \
    X(HALO_ERR_IO, 3, "a file cannot be opened, read or written")                                            \
    X(HALO_ERR_FORMAT, 4, "a file's content is not what it should be")                                       \
    X(HALO_ERR_SHAPE, 5, "shapes do not fit")                                                                \
    X(HALO_ERR_UNSUPPORTED, 6, "not supported by this build, backend or machine")                            \
    X(HALO_ERR_NONFINITE, 7, "a loss, gradient or input value is not finite")                                \
    X(HALO_ERR_COMM, 8, "communication failed or another rank failed")                                       \
    X(HALO_ERR_DEVICE, 9, "a device or vendor library failed")                                               \
    X(HALO_ERR_STOPPED, 10, "stopped on request")                                                            \
    X(HALO_ERR_SYSTEM, 11, "the operating system refused")

typedef enum halo_status {
#define HALO_STATUS_ENUM(name, value, text) name = value,
    HALO_STATUS_MAP(HALO_STATUS_ENUM)
#undef HALO_STATUS_ENUM
} halo_status;

/* The short text of a status; never NULL. */
HALO_API const char *halo_status_text(halo_status status);

/* "0.1.0", and one line that names the libraries this build uses and their licences. Static strings. */
HALO_API const char *halo_version(void);
HALO_API const char *halo_version_details(void);

/* --------------------------------------------------------------------------------------------------------------- context */

/* A context carries the communicator, device, threads, log level and seed of everything made from it. Opaque. */
typedef struct halo_context halo_context;

typedef enum halo_dtype {
    HALO_NONE = 0, /* absent */
    HALO_F32,
    HALO_F64,
    HALO_F16,
    HALO_BF16,
    HALO_U8,
    HALO_I16,
    HALO_I32
} halo_dtype;

typedef enum halo_log_level { HALO_LOG_ERROR = 0, HALO_LOG_WARN, HALO_LOG_INFO, HALO_LOG_DEBUG } halo_log_level;

/* Receives one message, without newline. May be called from halo's own threads, one call at a time per context. */
typedef void (*halo_log_fn)(void *user, halo_log_level level, const char *message);

typedef struct halo_context_options {
    size_t size;              /* sizeof(halo_context_options), for growth; set by HALO_CONTEXT_OPTIONS_INIT */
    const char *backend;      /* "cpu", "ref", "cuda"; NULL: the first that this build and machine offer */
    const char *isa;          /* cpu backend: "generic", "avx2", "avx512f"; NULL: the best that cpuid allows */
    int threads;              /* OpenMP threads for computing; 0: OMP_NUM_THREADS, else the cores allowed to this process */
    uint64_t seed;            /* root of all random numbers */
    halo_log_level log_level; /* messages above it are not formatted */
    halo_log_fn log;          /* NULL: messages are dropped (errors stay readable by halo_error_message) */
    void *log_user;
    halo_dtype compute;       /* type of activations and their gradients: HALO_F32 (HALO_NONE as well), HALO_F16 or HALO_BF16, with f32 weights; HALO_F64: backend "ref" alone */
} halo_context_options;

#define HALO_CONTEXT_OPTIONS_INIT {.size = sizeof(halo_context_options), .seed = 1, .log_level = HALO_LOG_WARN}

/* Makes a context with one rank. options may be NULL (defaults). The caller owns *ctx. Not collective. */
HALO_API halo_status halo_context_create(const halo_context_options *options, halo_context **ctx);

/* Destroys a context made by halo_context_create or halo_mpi_context_create; everything made from it must be gone. NULL is allowed. */
HALO_API void halo_context_destroy(halo_context *ctx);

/* The last error of this context, "" if none; valid until the next failing call. ctx NULL: the last failed create of this thread. */
HALO_API const char *halo_error_message(const halo_context *ctx);

/* --------------------------------------------------------------------------------------------------------------- network */

/*
 * A network is a directed graph of layers. It is built from its input to its output by adding layers whose inputs exist already; the layer
 * added last is the output. Each halo_network_* function that adds a layer takes the numbers of its input layers (0 is the network's input)
 * and returns the new layer's number in its last argument, which may be NULL. `name` is unique in the network and made of letters, digits,
 * '_', '-' and '.', the first a letter; NULL makes one ("conv1"). Parameters are named after their layer: "conv1/weights".
 *
 * Shapes are C D H W of one sample; they are known as soon as a layer is added, by checked 64-bit arithmetic. Errors of all of them:
 *   HALO_ERR_USAGE  an option out of its range, a name that is taken or malformed, an input that does not exist
 *   HALO_ERR_SHAPE  the input does not suit the layer: the message names layer, input, window and what came out
 *   HALO_ERR_NOMEM
 * A failed call leaves the network as it was. Nothing here is collective, and nothing allocates parameters.
 *
 * Options structures begin with their size, for growth: start from the _INIT macro, which also sets the defaults named below. NULL stands
 * for the defaults where none of the options must be given.
 */
typedef struct halo_network halo_network;

/* Padding of one spatial axis, for input extent n, stride s and a window that spans k cells (dilation included):
 *   EXPLICIT  pad[0] zeros before, pad[1] behind:  out = (n + pad[0] + pad[1] - k) / s + 1
 *   SAME      zeros, as TensorFlow places them:    out = ceil(n / s); of an odd number the extra cell lies behind
 *   VALID     none
 *   PERIODIC  extents as SAME, but the cells beyond the border are those of the other side */
typedef enum halo_padding { HALO_PAD_EXPLICIT = 0, HALO_PAD_SAME, HALO_PAD_VALID, HALO_PAD_PERIODIC } halo_padding;

typedef enum halo_pool { HALO_POOL_MAX = 0, HALO_POOL_AVG } halo_pool;
typedef enum halo_act { HALO_ACT_NONE = 0, HALO_ACT_LEAKY_RELU, HALO_ACT_RELU, HALO_ACT_TANH, HALO_ACT_SIGMOID, HALO_ACT_SCALE } halo_act;

/* First values of weights, in = inputs of one output value, out = outputs of one input value (each channels times kernel cells; a transposed
 * convolution's inputs are so many only on the average over its stride):
 *   GLOROT_UNIFORM  |w| < sqrt(6 / (in + out))      (Glorot & Bengio 2010)      HE_UNIFORM  |w| < sqrt(6 / in)      (He et al. 2015)
 *   GLOROT_NORMAL   deviation sqrt(2 / (in + out)), not truncated              HE_NORMAL   deviation sqrt(2 / in), not truncated */
typedef enum halo_init { HALO_INIT_GLOROT_UNIFORM = 0, HALO_INIT_GLOROT_NORMAL, HALO_INIT_HE_UNIFORM, HALO_INIT_HE_NORMAL } halo_init;

/* An empty network for samples of `channels` x extents (D H W; a 2-D network has D = 1). `name` as for layers; the caller owns *net, which
 * must be destroyed before its context. */
HALO_API halo_status halo_network_create(halo_context *ctx, const char *name, int64_t channels, const int64_t extents[3],
                                         halo_network **net);
/* NULL is allowed. */
HALO_API void halo_network_destroy(halo_network *net);

/* Convolution [C D H W] -> [filters D' H' W'], weights (filters, C, kd, kh, kw), in the machine learner's sense: not mirrored. */
typedef struct halo_conv_options {
    size_t size;
    int64_t filters;                        /* must be given */
    int64_t kernel[3], stride[3], dilation[3]; /* D H W; kernel 1 to 7, the others 1 to 1024; default 3, 1, 1 */
    halo_padding padding[3];                /* default valid */
    int64_t pad[3][2];                      /* explicit: D H W, before and behind, 0 to 1024 */
    bool bias;                              /* default true */
    halo_init init;                         /* of the weights; default glorot uniform */
    double bias_init;                       /* default 0 */
} halo_conv_options;
#define HALO_CONV_OPTIONS_INIT                                                                               \
    {.size = sizeof(halo_conv_options),                                                                      \
     .kernel = {3, 3, 3},                                                                                    \
     .stride = {1, 1, 1},                                                                                    \
     .dilation = {1, 1, 1},                                                                                  \
     .padding = {HALO_PAD_VALID, HALO_PAD_VALID, HALO_PAD_VALID},                                            \
     .bias = true}
HALO_API halo_status halo_network_conv(halo_network *net, int input, const char *name, const halo_conv_options *options, int *layer);

/*
 * Transposed convolution [C D H W] -> [filters D' H' W'], weights (C, filters, kd, kh, kw): the backward-data pass of a convolution from the output to
 * the input, used forward. Input n, stride s, kernel spanning k cells, per axis:
 *   EXPLICIT  (n - 1) s - pad[0] - pad[1] + k + output_padding     VALID  without padding     SAME  n s
 * PERIODIC is an error. output_padding adds cells behind, which windows reach only in part, or hold the bias alone; it is less than stride or dilation,
 * and 0 with SAME.
 */
typedef struct halo_conv_transpose_options {
    size_t size;
    int64_t filters;                           /* must be given */
    int64_t kernel[3], stride[3], dilation[3]; /* D H W; kernel 1 to 7, the others 1 to 1024; default 2, 2, 1 */
    halo_padding padding[3];                   /* default valid */
    int64_t pad[3][2];                         /* explicit: cells cut off D H W, before and behind, 0 to 1024 */
    int64_t output_padding[3];                 /* default 0 */
    bool bias;                                 /* default true */
    halo_init init;                            /* of the weights; in = C times kernel cells / stride cells; default glorot uniform */
    double bias_init;                          /* default 0 */
} halo_conv_transpose_options;
#define HALO_CONV_TRANSPOSE_OPTIONS_INIT                                                                     \
    {.size = sizeof(halo_conv_transpose_options),                                                            \
     .kernel = {2, 2, 2},                                                                                    \
     .stride = {2, 2, 2},                                                                                    \
     .dilation = {1, 1, 1},                                                                                  \
     .padding = {HALO_PAD_VALID, HALO_PAD_VALID, HALO_PAD_VALID},                                            \
     .bias = true}
HALO_API halo_status halo_network_conv_transpose(halo_network *net, int input, const char *name, const halo_conv_transpose_options *options,
                                                 int *layer);

/* Pooling [C D H W] -> [C D' H' W']: the largest, or the mean, of each window's cells. The mean of a window that reaches into zero padding
 * is over its cells inside, or with count_pad over all of them. */
typedef struct halo_pool_options {
    size_t size;
    halo_pool kind;               /* default max */
    int64_t kernel[3], stride[3]; /* D H W, 1 to 1024; default 2, 2 */
    halo_padding padding[3];      /* default valid */
    int64_t pad[3][2];            /* explicit: less than the kernel */
    bool count_pad;               /* default false */
} halo_pool_options;
#define HALO_POOL_OPTIONS_INIT                                                                               \
    {.size = sizeof(halo_pool_options),                                                                      \
     .kernel = {2, 2, 2},                                                                                    \
     .stride = {2, 2, 2},                                                                                    \
     .padding = {HALO_PAD_VALID, HALO_PAD_VALID, HALO_PAD_VALID}}
HALO_API halo_status halo_network_pool(halo_network *net, int input, const char *name, const halo_pool_options *options, int *layer);

/* Normalisation, shape unchanged: y = gamma (x - mean) / sqrt(variance + eps) + beta with gamma and beta per channel. Statistics are those of
 *   BATCH     a channel, over all cells and all samples of the batch; evaluation uses running = momentum * running + (1 - momentum) * new
 *   GROUP     one sample's `groups` runs of channels (which divide C), over all cells, in training and evaluation alike   (Wu & He 2018)
 *   INSTANCE  one sample's channel, likewise                                                       (Ulyanov, Vedaldi & Lempitsky 2016)
 * beta begins at 0. */
typedef enum halo_norm_scope { HALO_NORM_BATCH = 0, HALO_NORM_GROUP, HALO_NORM_INSTANCE } halo_norm_scope;
typedef struct halo_norm_options {
    size_t size;
    double eps, momentum; /* eps > 0, 0 <= momentum < 1; default 1e-5, 0.99; momentum is for batch norm alone */
    double gamma_init;    /* default 1 */
    halo_norm_scope scope; /* default batch */
    int64_t groups;        /* of group norm, where it must be given */
} halo_norm_options;
#define HALO_NORM_OPTIONS_INIT {.size = sizeof(halo_norm_options), .eps = 1e-5, .momentum = 0.99, .gamma_init = 1}
HALO_API halo_status halo_network_norm(halo_network *net, int input, const char *name, const halo_norm_options *options, int *layer);

/* y = act(x), shape unchanged. slope: leaky relu's slope below 0 (0 < slope < 1), or the factor of `scale`; ignored by the others. */
HALO_API halo_status halo_network_activation(halo_network *net, int input, const char *name, halo_act act, double slope, int *layer);

/* In training each value is kept with probability `keep` (0 < keep <= 1) and then divided by it, else 0; otherwise the identity. */
HALO_API halo_status halo_network_dropout(halo_network *net, int input, const char *name, double keep, int *layer);

/* [C D H W] -> a vector in the order (c, d, h, w), or with channels_last (d, h, w, c). With features > 0 the vector is cut into rows of that
 * many values (it must be a multiple): what follows, down to the loss, treats each row as a sample of its own with the sample's targets, and
 * predictions are means over a sample's rows. Only dense, activation, dropout, add and concat may follow rows. */
typedef struct halo_flatten_options {
    size_t size;
    bool channels_last; /* default false */
    int64_t features;   /* default 0: one row */
} halo_flatten_options;
#define HALO_FLATTEN_OPTIONS_INIT {.size = sizeof(halo_flatten_options)}
HALO_API halo_status halo_network_flatten(halo_network *net, int input, const char *name, const halo_flatten_options *options, int *layer);

/* Fully connected, from a vector [F] (flatten, or D = H = W = 1) to [outputs]; weights (outputs, F). */
typedef struct halo_dense_options {
    size_t size;
    int64_t outputs;  /* must be given */
    bool bias;        /* default true */
    halo_init init;   /* default glorot uniform */
    double bias_init; /* default 0 */
} halo_dense_options;
#define HALO_DENSE_OPTIONS_INIT {.size = sizeof(halo_dense_options), .bias = true}
HALO_API halo_status halo_network_dense(halo_network *net, int input, const char *name, const halo_dense_options *options, int *layer);

/* The sum of 2 to 16 layers of equal shape; their concatenation along C, equal in D H W. */
HALO_API halo_status halo_network_add(halo_network *net, const int *inputs, int n, const char *name, int *layer);
HALO_API halo_status halo_network_concat(halo_network *net, const int *inputs, int n, const char *name, int *layer);

/* Linear enlargement: factor[D H W] cells, 1 or 2, for each cell, interpolated between the middles of cells (align_corners = false elsewhere); beyond the ends the last cell goes on. factor NULL: 2. */
HALO_API halo_status halo_network_upsample(halo_network *net, int input, const char *name, const int64_t factor[3], int *layer);

/* A range of the cells, channels unchanged: cells[D H W][before, behind] are cut off, 0 to 2^31 - 1 each. crop_like cuts equally off both ends (of an odd
 * number one more behind) so that D H W become those of layer `like`. */
HALO_API halo_status halo_network_crop(halo_network *net, int input, const char *name, const int64_t cells[3][2], int *layer);
HALO_API halo_status halo_network_crop_like(halo_network *net, int input, int like, const char *name, int *layer);

/* Layers, the input included; the number of a named layer, -1 if there is none; its name, and its output's C D H W (NULL and an error where
 * there is no such layer); trainable parameters in all. net NULL: 0 layers, none of any name or number, 0 parameters. */
HALO_API int halo_network_layers(const halo_network *net);
HALO_API int halo_network_find(const halo_network *net, const char *name);
HALO_API const char *halo_network_layer_name(const halo_network *net, int layer);
HALO_API halo_status halo_network_layer_shape(const halo_network *net, int layer, int64_t shape[4]);
HALO_API int64_t halo_network_parameters(const halo_network *net);

/* Networks by name: "cosmoflow" with variants "sc18" (wiring "paper" or "as-run"), "mlperf" and "hybrid". NULL and 0 mean the published
 * choice: the first variant, 128^3, 1 or 4 channels, 3 or 4 outputs. batch_norm puts a norm between each convolution and its activation,
 * and takes the convolution's bias away. "unet3d" with variants "batch", "group" and "instance", kinds of norm: a logit of 3 classes for every voxel of 1 channel;
 * extents must be multiples of 2^(levels - 1), 4 levels. "fcdensenet" with variants growth-kernel, "64-3" to "256-5": an image of 1 x 512 x 512 from as many of 1024 channels
 * (volumes where D is more than 1); extents must be multiples of 8. HALO_ERR_USAGE: an unknown name, variant or wiring; HALO_ERR_SHAPE: extents that the variant
 * cannot take. */
enum { HALO_ZOO_BLOCKS = 32 };
typedef struct halo_zoo_options {
    size_t size;
    const char *variant, *wiring;
    int64_t extents[3], channels, outputs;
    bool batch_norm;
    bool periodic;   /* padding that wraps round, where the network pads: whole simulation boxes */
    bool no_dropout;
    int64_t levels, first_channels; /* unet3d: resolutions, and channels of the first; 4, 32 */
    bool trilinear;                 /* and enlarges by linear interpolation instead of transposed convolutions */
    /* fcdensenet: channels that a layer adds and its kernel, as the variant says; the first convolution's channels (growth); the kernel of transposed convolutions (1); the share
     * that dropout keeps (0.8); layers of each block, an odd number of blocks and then 0 (2 2 3 4 3 2 2) */
    int64_t growth, kernel, stem, up_kernel;
    double keep;
    int64_t block[HALO_ZOO_BLOCKS];
} halo_zoo_options;
#define HALO_ZOO_OPTIONS_INIT {.size = sizeof(halo_zoo_options)}
HALO_API halo_status halo_network_zoo(halo_context *ctx, const char *name, const halo_zoo_options *options, halo_network **net);
/* Name of network i, its variant v; NULL behind the last one. Static strings. */
HALO_API const char *halo_network_zoo_name(int i);
HALO_API const char *halo_network_zoo_variant(int i, int v);

/* Reads a network file (YAML; doc/networks.md), or its text, which is then called `name` in errors. `channels` and `extents`, where not 0 and
 * not NULL, replace those of the file. HALO_ERR_IO, HALO_ERR_FORMAT with file:line. */
HALO_API halo_status halo_network_load(halo_context *ctx, const char *path, int64_t channels, const int64_t *extents, halo_network **net);
HALO_API halo_status halo_network_parse(halo_context *ctx, const char *name, const char *text, size_t bytes, int64_t channels,
                                        const int64_t *extents, halo_network **net);
/* The network as the text of such a file, from which halo_network_parse makes an equal one. *text is freed by the caller with free(). */
HALO_API halo_status halo_network_text(const halo_network *net, char **text);

/* -------------------------------------------------------------------------------------------------------------- training */

/*
 * A trainer is a network with its weights, an optimiser and room for one batch: training from arrays in memory, with no file and no loop of
 * halo's own. A simulation hands it volumes as it makes them (examples/insitu.c).
 */
typedef struct halo_trainer halo_trainer;

/* CROSS_ENTROPY: the network's output channels are logits of classes 0 to C - 1, softmax is part of the loss; targets are class numbers. DICE: of classes too, 1 - the mean over classes 1 to
 * C - 1 of each sample's soft Dice; DICE_CE: the sum of both.
 * RELATIVE_MSE: the squared error of a sample over the sum of squares of its targets; of whole samples: what cuts the network's output is HALO_ERR_UNSUPPORTED. */
typedef enum halo_loss { HALO_LOSS_MSE = 0, HALO_LOSS_MAE, HALO_LOSS_HUBER, HALO_LOSS_CROSS_ENTROPY, HALO_LOSS_DICE, HALO_LOSS_DICE_CE, HALO_LOSS_RELATIVE_MSE } halo_loss;
typedef enum halo_optimizer { HALO_SGD = 0, HALO_NESTEROV, HALO_ADAM, HALO_ADAMW } halo_optimizer;
typedef enum halo_larc { HALO_LARC_OFF = 0, HALO_LARC_CLIP, HALO_LARC_SCALE } halo_larc;

/* backend.h gives the optimisers' formulas. */
typedef struct halo_trainer_options {
    size_t size;
    int64_t batch; /* samples per step */
    halo_loss loss;
    double huber_delta;
    const double *class_weights; /* losses of classes: [classes], copied; cross entropy then is sum w loss / sum w over a step's cells. NULL: 1 */
    int classes;                 /* how many these are, 16 at most */
    bool ignore;                 /* cells whose class number is ignore_label do not count */
    int64_t ignore_label;
    halo_optimizer optimizer;
    halo_larc larc;
    double lr, momentum, beta1, beta2, epsilon, trust;
    double weight_decay; /* of convolution and dense weights */
    double clip_norm;    /* 0: no clipping */
    bool measure;        /* time the implementations on this machine when creating; else a fixed order, as always on several ranks */
    int64_t spatial[3];  /* parts into which the ranks of a group cut each sample, D H W; 0: 1. ranks = groups x D x H x W, and batch a multiple of groups */
} halo_trainer_options;

#define HALO_TRAINER_OPTIONS_INIT                                                                            \
    {.size = sizeof(halo_trainer_options), .batch = 1, .huber_delta = 1, .optimizer = HALO_ADAM, .lr = 1e-3, \
     .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .trust = 0.002}

/* options NULL: the defaults. HALO_ERR_USAGE names an option that is out of the range `halo help config` prints for its key.
 * Compiles `net` (copied) for the context's device and initialises the weights by the context's seed. Needs the
 * memory that `halo explain` prints. The caller owns *trainer and destroys it before the context.
 *
 * In a context of several ranks (halo_mpi.h) they make one trainer together: a step's batch is dealt to groups of ranks, and gradients are summed over all, so that
 * losses are those of one rank; options and networks that differ between ranks are HALO_ERR_USAGE. create and destroy, steps, predict, evaluate, save and load are
 * then collective, weights begin with the seed of rank 0, and after HALO_ERR_COMM ranks may be anywhere: end the program. */
HALO_API halo_status halo_trainer_create(halo_context *ctx, const halo_network *net, const halo_trainer_options *options,
                                         halo_trainer **trainer);
HALO_API void halo_trainer_destroy(halo_trainer *trainer); /* NULL is allowed */

/* One optimiser step on x [batch C D H W] and y [batch T], or [batch C D H W] of the output where the network ends in a volume (with HALO_LOSS_CROSS_ENTROPY
 * class numbers, [batch] or [batch 1 D H W]), dense, C order, on several
 * ranks the whole batch on each (halo_trainer_step_blocks takes parts); nothing is kept of them. lr replaces that of the options when > 0; negative or not finite
 * is HALO_ERR_USAGE. *loss (may be NULL) is the mean before the step.
 * HALO_ERR_NONFINITE: the step was not made, the message names the layer. With halo_context_options.compute HALO_F16 gradients are those of a scaled loss; a step in which they
 * overflow makes the scale smaller and changes nothing else. */
HALO_API halo_status halo_trainer_step(halo_trainer *trainer, const float *x, const float *y, double lr, double *loss);

/*
 * The part of a step's samples that a rank has: the box [lo, lo + extents) of the array [N C D H W] of all samples of the step, whatever the ranks' boxes are, as
 * long as together they are the array. Element (n c d h w) of the box is data[n stride[0] + ... + w stride[4]], strides in elements; all 0: dense, in this order.
 */
typedef struct halo_block {
    size_t size;
    halo_dtype type; /* F32, F64, F16, U8, I16 or I32 */
    int64_t lo[5], extents[5], stride[5]; /* N C D H W; an extent of 0: this rank has nothing */
    const void *data;
} halo_block;

#define HALO_BLOCK_INIT {.size = sizeof(halo_block), .type = HALO_F32}

/*
 * halo_trainer_step where the samples are spread over the ranks, as a parallel simulation has them: each rank hands over its block, and halo moves cells to the ranks that
 * compute with them, over the network and without a copy of the whole anywhere; where every rank has just what it computes with, dense and f32 or f64, nothing is
 * copied. The plan of that is kept while blocks stay as they are. Targets: y [batch T], the same on all ranks, and y_block NULL; or, where the network ends in a volume,
 * blocks of it, and y NULL. Blocks belong to the caller again when the call returns. HALO_ERR_USAGE names ranks and cells that are missing, or given twice.
 * Collective.
 */
HALO_API halo_status halo_trainer_step_blocks(halo_trainer *trainer, const halo_block *x, const float *y, const halo_block *y_block, double lr, double *loss);

/* Predictions for one batch of such samples, into the memory of `prediction`'s data: of the array [batch T 1 1 1], or [batch C D H W] where the network ends in a volume,
 * each rank gets the box that it asks for, f32, which others may ask for too. Collective. */
HALO_API halo_status halo_trainer_predict_blocks(halo_trainer *trainer, const halo_block *x, const halo_block *prediction);

/* prediction [samples T], or volumes, for x [samples C D H W], any number of samples; running statistics are used, nothing is dropped. */
HALO_API halo_status halo_trainer_predict(halo_trainer *trainer, int64_t samples, const float *x, float *prediction);

/* Mean loss over samples, as above. */
HALO_API halo_status halo_trainer_evaluate(halo_trainer *trainer, int64_t samples, const float *x, const float *y, double *loss);

/* Steps made so far; 0 of NULL. */
HALO_API int64_t halo_trainer_steps(const halo_trainer *trainer);

/* A parameter by name ("conv1/weights": (out, in, kd, kh, kw)) to or from values[count]; HALO_ERR_USAGE names an unknown one, HALO_ERR_SHAPE another count. */
HALO_API halo_status halo_trainer_get(halo_trainer *trainer, const char *name, float *values, int64_t count);
HALO_API halo_status halo_trainer_set(halo_trainer *trainer, const char *name, const float *values, int64_t count);

/* A checkpoint (doc/formats.md): weights, optimiser state, step count. Written whole or not at all. Loading refuses another network. */
HALO_API halo_status halo_trainer_save(halo_trainer *trainer, const char *path);
HALO_API halo_status halo_trainer_load(halo_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif

#endif
