/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h -- the contract between halo's core and a compute backend, for authors of backends.
 *
 * FFTW's idea: `plan` chooses, allocates and prepares; `run` only runs. A backend is a constant table; `open` gives a device; a
 * device gives memory, order, and per kind of operation a halo_op_class. All shapes are fixed when a plan is made; a run receives
 * nothing but addresses and the step record, allocates nothing, searches nothing, and does not wait for the device.
 *
 * Slots are marked REQUIRED or OPTIONAL. An operation that a backend lacks, or cannot do for the given description, answers with no
 * candidates: the compiler then uses simpler operations, or names the layer in an error.
 *
 * Letters: N samples, C channels, D H W extents; x input, y output, w weights, b bias, dx dy dw db their gradients.
 */
#ifndef HALO_BACKEND_H
#define HALO_BACKEND_H

#include <halo/halo.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HALO_BACKEND_ABI 3

/* ------------------------------------------------------------------------------------------------------- tensors */

/* Physical order of an allocation with extents n c d h w. In the blocked ones c is rounded up to a multiple of the block and the
 * padding lanes hold zero. Flat things (weights, vectors, statistics) are HALO_NCDHW. */
typedef enum halo_layout {
    HALO_NCDHW = 0, /* plain: w fastest */
    HALO_NDHWC,     /* channels last */
    HALO_NCDHW8C,   /* n, c/8, d, h, w, 8 */
    HALO_NCDHW16C,  /* n, c/16, d, h, w, 16 */
    HALO_LAYOUTS
} halo_layout;

enum { HALO_N = 0, HALO_C, HALO_D, HALO_H, HALO_W, HALO_DIMS };

/*
 * An operand is a box of an allocation: cells lo[i] <= index < lo[i] + ext[i] in each dimension, in logical order N C D H W.
 * Around the box, `margin` cells on the low and high side of d, h, w hold true values (a neighbour's block, the periodic image, or
 * the zeros of the padding) that the operation may read; cells beyond are not to be touched. An operation reads outside its box only
 * where its definition asks for it, writes only inside it, and where its definition reads past the margin the value is zero.
 * Operations accept lo[C] that is a multiple of the channel block only (their ext[C] may be anything): lanes past the box belong to other
 * channels of the allocation, or are padding lanes, which hold zero before and after.
 *
 * Weights (o,i,kd,kh,kw | out,in), biases, gamma, beta, their gradients, statistics, running statistics and sample weights are dense, plain and
 * start at lo; an operation takes their sizes from its activations. A vector [N, F] of features is an activation whose F elements per sample are
 * counted over c d h w in logical order, whatever of these it is stored in.
 */
typedef struct halo_operand {
    halo_dtype dtype;
    halo_layout layout;
    int64_t alloc[HALO_DIMS];
    int64_t lo[HALO_DIMS];
    int64_t ext[HALO_DIMS];
    int64_t margin[3][2]; /* [d h w][low high] */
} halo_operand;

/* ---------------------------------------------------------------------------------------------------- operations */

/* The roles of operands, fixed names for all kinds; each kind says which it uses. */
typedef enum halo_role {
    HALO_X = 0, /* input */
    HALO_X2,    /* second input */
    HALO_Y,     /* output */
    HALO_WT,    /* weights: an image for convolutions, (out, in) for linear, gamma for norm, the flat master for update */
    HALO_B,     /* bias, or beta */
    HALO_DX,
    HALO_DY,
    HALO_DW,
    HALO_DB,
    HALO_AUX,   /* saved between forward and backward: argmax, sign mask */
    HALO_STAT,  /* statistics, f64 */
    HALO_STAT2, /* backward statistics, f64 */
    HALO_RUN,   /* running statistics of a norm, f32 [2][C]: mean, variance */
    HALO_T,     /* targets */
    HALO_SW,    /* weight of each sample, f64 [N] */
    HALO_M1,    /* optimiser state 1 */
    HALO_M2,    /* optimiser state 2 */
    HALO_NUM,   /* numbers of the step, f64 [HALO_NUMBERS] */
    HALO_ROLES
} halo_role;

typedef enum halo_op_kind {
    /* Windows: pad_lo may be negative (a rank's block may begin before the first cell that it needs). Backward-data reads DY in
     * its margin too where a cell of DX depends on it; backward-weights and pool backward use DY's box alone (split pools add up in an exchange).
     * Where a convolution's candidate names an image, t[WT] of the description still is the plain master; ptr[WT] is the image. */
    /* y[n,o,p] = act(b[o] + sum_{i,k} w[o,i,k] x[n,i, p*stride - pad_lo + k*dilation]), cross-correlation as in every framework */
    HALO_OP_CONV_FWD = 0, /* X WT B? Y AUX? */
    /* dx[n,i,q] = act(b[i] + sum over o,p,k with p*stride - pad_lo + k*dilation = q of w[o,i,k] dy[n,o,p]). `accumulate`: dx +=, without B and act.
     * Used forward it is a transposed convolution from DY to DX, which is where B and act come from; CONV_FWD then is its backward-data, and
     * CONV_BWD_WEIGHTS with X and DY exchanged gives its dw. */
    HALO_OP_CONV_BWD_DATA, /* DY WT B? DX */
    /* dw[o,i,k] = sum_{n,p} dy[n,o,p] x[n,i,p*stride - pad_lo + k*dilation], plain (o,i,kd,kh,kw) f32; db[o] = sum dy. `accumulate`: += */
    HALO_OP_CONV_BWD_WEIGHTS, /* X DY DW DB? */
    /* writes the image `image` of the plain master weights (o,i,kd,kh,kw) that a convolution's candidate asked for */
    HALO_OP_CONV_IMAGE, /* X = master with extents o i kd kh kw, Y = u8 [image_bytes], window as the convolution's */
    /* max: largest of the window's cells that are inside x's box and margin, AUX its index in the window (u8, i32 above 256 cells), first one wins;
     * avg: sum / (cells of the window) with count_pad, else / (cells inside), for both directions; a window with no cell inside: 0;
     * AUX of avg, u8, of strides of at most 8 cells: bit k is set where cell p stride + k, k < stride, of x's box is above 0. */
    HALO_OP_POOL_FWD, /* X Y AUX? */
    HALO_OP_POOL_BWD, /* DY AUX? DX, `accumulate` */
    /* STAT f64 [G][F][3] = count, mean, sum of squared deviations of x over the group (two passes or Welford); G = 1 (batch) or N (group,
     * instance), F = features: C or groups. Merged across ranks by Chan's formula outside. `accumulate`: merged with what is there */
    HALO_OP_NORM_STATS, /* X STAT */
    /* y = act(gamma (x - mean) / sqrt(var + eps) + beta), var biased; training updates RUN = momentum RUN + (1 - momentum) new (unbiased variance
     * when `unbiased`; only with G = 1 and one feature per channel), inference reads RUN instead of STAT */
    HALO_OP_NORM_APPLY, /* X STAT|RUN WT B RUN? Y */
    /* STAT2 f64 [G][F][2] with per-channel factors folded: [G][C][2] = sum dy, sum dy * xhat; dy is the gradient before the fused activation;
     * group norm multiplies by gamma and sums over a group's channels in BWD_APPLY. `accumulate`: += */
    HALO_OP_NORM_BWD_STATS, /* X DY STAT STAT2 */
    HALO_OP_NORM_BWD_APPLY, /* X DY STAT STAT2 WT DX DW DB; DW = sum over G of STAT2[..][1], DB of [..][0], `accumulate` for DW DB;
                              * dx = gamma/sqrt(var+eps) (dy - sum(dy)/count - xhat sum(dy xhat)/count); in place on DY allowed */
    /* y = act(x): leaky relu (slope), relu, tanh, sigmoid, scale (slope * x); in place allowed */
    HALO_OP_ACT_FWD, /* X Y */
    HALO_OP_ACT_BWD, /* Y DY DX: from the output y alone; in place on DY allowed; `accumulate` */
    /* y = x + x2; in place allowed */
    HALO_OP_ADD, /* X X2 Y */
    /* y box = x box (equal extents; layouts and dtypes may differ); `accumulate`: y += x */
    HALO_OP_COPY, /* X Y */
    /* writes the margin of Y itself, by margin_mode[d h w][low high]. A margin cell with any coordinate in a ZERO side becomes 0; else it takes the
     * value of the cell whose WRAP coordinates are wrapped into the box (modulo its extent), KEEP coordinates kept; cells with KEEP sides only are
     * untouched. `reverse` is the adjoint: a WRAP cell is added to the cell it came from, and it and every ZERO cell become 0 */
    HALO_OP_MARGIN, /* Y */
    /* Y [N, F] plain = X [N, C, D, H, W] flattened C-order over (c,d,h,w) or (d,h,w,c) */
    HALO_OP_FLATTEN,  /* X Y */
    HALO_OP_UNFLATTEN, /* DY [N, F] -> DX; `accumulate` */
    /* y[n,o] = act(b[o] + sum_i w[o,i] x[n,i]) */
    HALO_OP_LINEAR_FWD,         /* X WT B? Y */
    HALO_OP_LINEAR_BWD_DATA,    /* DY WT DX, `accumulate` */
    HALO_OP_LINEAR_BWD_WEIGHTS, /* X DY DW DB?, `accumulate` */
    /* y = x * mask / keep; mask = hash(seed, step, layer, global index) < keep, the same function on every backend and grid (see
     * hl_dropout_keeps in tensor/dropout.h); the backward step is the same operation on dy; in place allowed */
    HALO_OP_DROPOUT, /* X Y */
    /* T is f32 where X has 16 bits, else of X's type. STAT f64 [2] += sum_n sw[n] * loss_n, sum_n sw[n]; loss_n = mean over a sample's targets (product of global_ext[C..W] of T where that is set:
     * a split sample); DX = d/dx sum_n sw[n] loss_n * loss_scale / weight_sum. SW absent: 1. mse d^2, mae |d|, huber d^2/2 up to delta, then
     * delta (|d| - delta/2); the derivative of |d| at 0 is 0. cross entropy: T has one channel, of class numbers t, and
     * the loss of a cell is log(sum_c exp(x[c])) - x[t], its derivative softmax(x) - [c = t]; where t is no whole number from 0 to C - 1 both are NaN. WT f64 [C] weighs
     * classes: a cell's loss and derivative are multiplied by WT[t]; a cell whose t is `ignore` (with `ignores`) counts 0, whatever its logits are; X2 f64 [N] is what the sum
     * over a sample's cells is divided by, then, instead of their number.
     * dice, of whole samples: 1 - mean over classes c >= 1 of (2 sum p_c [t = c] + 1) / (sum p_c + sum [t = c] + 1), p the softmax and sums over a sample's cells but those that
     * are ignored, the mean weighted by WT; dice_ce: that + the cross entropy. With STAT2, as LOSS_SUMS finds it and ranks add it up, X may be a part of the samples:
     * STAT then counts that part of their dice.
     * relative mse, of whole samples: sum d^2 / max(sum t^2, 1e-12 targets), sums over a sample */
    HALO_OP_LOSS, /* X T SW STAT DX? WT? X2? STAT2? */
    /* STAT f64 [3] = sum of squares (any value when the count is not 0), count of values that are not finite, largest magnitude of those that are */
    HALO_OP_SUMSQ, /* X STAT */
    /* one optimiser step on a contiguous range; see halo_update_params */
    HALO_OP_UPDATE, /* WT DW M1? M2? NUM? STAT (of the gradient) STAT2 (of the weights: read for LARC, written for the next step) */
    HALO_OP_CAST,   /* X Y: flat conversion; to f16 and bf16 round to nearest even, to integers round to nearest and saturate */
    /* db[c] = sum over n,d,h,w of dy: the bias's gradient where no other op reads dy's box as DY (a transposed convolution, whose backward-weights
     * has it as X). A reduction of its own rather than a mode of backward-weights: it is one pass at the speed of memory. `accumulate`: += */
    HALO_OP_BIAS_BWD, /* DY DB */
    /* A convolution, its activation and pooling windows of pool_side cells that lie side by side, in one pass:
     * y[n,o,p] = max or mean over k < pool_side of z[n,o,p pool_side + k], z = act(conv) as CONV_FWD has it; what z has beyond the last window is not
     * computed. AUX u8: max, the index in the window of its first largest cell; avg, of windows of at most 8 cells: bit k is set where the window's cell k
     * is above 0, which is all that the derivatives of relu and leaky relu ask of it. */
    HALO_OP_CONV_POOL_FWD, /* X WT B? Y AUX? */
    /* Backward of such windows (kernel = stride, no dilation, `window`) and of the activation before them: dx[q] = act'(z[q]) dy[p] for q the winner
     * of window p (max, with act' from y[p] = z[q]) or act'(z[q]) dy[p] / cells (avg, with act' from bit k of AUX where it has two values, else a
     * constant); all other cells of dx's box become 0. Windows may reach out of the box: it then is a part of the tensor.
     * Or, where kernel and stride differ, backward of an average without dilation and of an activation of two values, from AUX as POOL_FWD leaves it:
     * dx as POOL_BWD forms it, times act'; where no window reaches further than the cells that AUX has bits for (kernel - pad_lo <= stride). */
    HALO_OP_ACT_POOL_BWD, /* DY Y? AUX? DX */
    /* STAT2 f64 [N][2][C]: sum p_c [t = c], sum p_c + sum [t = c] over the cells of X's box that are not ignored, p the softmax: what dice is made of */
    HALO_OP_LOSS_SUMS, /* X T STAT2 */
    /* Twice as many cells along the axes of stride 2 (kernel 4; elsewhere both are 1), linear between their middles; a transposed convolution of each channel by itself:
     * y[q] = sum of w[k] x[p] over p, k with 2 p - pad_lo + k = q, w = [1 3 3 1]/4, where a p beyond the volume is its last cell: global_lo, global_ext [d h w] of X's box in it (ext 0:
     * the box is the volume). X is read in its margin. Backward is the adjoint: DY is read in its margin, global_lo is DX's. */
    HALO_OP_UPSAMPLE_FWD, /* X Y */
    HALO_OP_UPSAMPLE_BWD, /* DY DX, `accumulate` */
    /* What is done with a step's gradients, decided where they are: from X f64 [n][3], SUMSQ's of n tensors, and the loss in NUM, fills NUM from FACTOR on. norm =
     * sqrt(SQUARES) |record.grad_scale|; FACTOR = clip_norm / norm where clip_norm > 0 and norm is larger, else 1. */
    HALO_OP_DECIDE, /* X NUM */
    /* Samples as they are stored, and what is done with them before the network sees them. X is plain and dense, of any type, and has as many cells of as many channels as Y's box, each sample in the
     * order of its own axes. Cell i of Y's box is cell j of the sample, j[AXIS[k]] = (FLIP[k] ? e[k] - 1 - i[k] : i[k]) + SHIFT[AXIS[k]] modulo the sample's extent e[k] of that axis, e those of Y's box
     * [d h w]; its value goes through the `transforms` one after the other, the t-th with the constants CONSTANT[t]. STAT f64 [N][HALO_SAMPLE_NUMBERS] are those of each sample; one that is not THERE becomes 0. */
    HALO_OP_PREPARE, /* X STAT Y */
    /* NORM_STATS's STAT f64 [G][F][3] as sums that ranks can add up: n, mean mu, squared deviations M2 become n, n (mu - r), M2 + n (mu - r)^2, r = RUN's mean (G = 1) or 0; `reverse`: back, where a
     * count of 0 becomes 1 */
    HALO_OP_NORM_MERGE, /* STAT RUN? */
    HALO_OP_KINDS
} halo_op_kind;

/* What is done with each value of a sample, with two constants a and b of that sample. */
typedef enum halo_transform {
    HALO_TRANSFORM_LOG1P = 0, /* ln(1 + x) */
    HALO_TRANSFORM_STANDARD,  /* (x - a) / b */
    HALO_TRANSFORM_WINDOW,    /* (min(max(x, a), b) - a) / (b - a) */
    HALO_TRANSFORMS
} halo_transform;

/* Numbers of a sample that is prepared. */
enum {
    HALO_MAX_TRANSFORMS = 4,
    HALO_SAMPLE_THERE = 0,                                             /* 0 or 1 */
    HALO_SAMPLE_AXIS,                                                  /* [3] */
    HALO_SAMPLE_FLIP = HALO_SAMPLE_AXIS + 3,                           /* [3] 0 or 1 */
    HALO_SAMPLE_SHIFT = HALO_SAMPLE_FLIP + 3,                          /* [3] at least 0, below the extent */
    HALO_SAMPLE_CONSTANT = HALO_SAMPLE_SHIFT + 3,                      /* [HALO_MAX_TRANSFORMS][2] */
    HALO_SAMPLE_NUMBERS = HALO_SAMPLE_CONSTANT + 2 * HALO_MAX_TRANSFORMS
};

/* halo_act and halo_pool stand in halo.h */
typedef enum halo_margin_mode { HALO_MARGIN_ZERO = 0, HALO_MARGIN_WRAP, HALO_MARGIN_KEEP } halo_margin_mode;

/* What a step finds out on the device and the host reads when it is over: the weighted sum of losses and that of weights, which LOSS adds to; numbers that are only summed over ranks;
 * DECIDE's: what gradients are to be multiplied by, 1 where nothing may be updated (the loss or a gradient is not finite), sum of squares, count of values that are not finite
 * and largest magnitude of the others, over all gradients. */
typedef enum halo_number {
    HALO_NUM_LOSS = 0,
    HALO_NUM_WEIGHT,
    HALO_NUM_VOTE,
    HALO_NUM_VOTES = 3, /* so many of these */
    HALO_NUM_FACTOR = HALO_NUM_VOTE + HALO_NUM_VOTES,
    HALO_NUM_SKIP,
    HALO_NUM_SQUARES,
    HALO_NUM_BAD,
    HALO_NUM_LARGEST,
    HALO_NUMBERS
} halo_number;

/* Convolution and pooling windows. The high padding follows from the extents of x and y. */
typedef struct halo_window {
    int64_t kernel[3], stride[3], dilation[3], pad_lo[3];
} halo_window;

/*
 * Optimisers, g = gradient * grad_scale, grad_scale = record.grad_scale * NUM[FACTOR], t = record.t, decay = weight_decay, lr = record.lr * lr_factor:
 *   SGD, Keras momentum: v = momentum v - lr (g + decay w);  w += v
 *   NESTEROV:            v as above;                          w += momentum v - lr (g + decay w)
 *   ADAM:  g += decay w; m = b1 m + (1-b1) g; s = b2 s + (1-b2) g^2; w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(s) + eps)   (Kingma & Ba 2015, eps as in
 *          TensorFlow's "epsilon hat")
 *   ADAMW: as ADAM without decay in g; w -= lr decay w   (Loshchilov & Hutter 2019)
 * LARC (You, Gitman & Ginsburg 2017), local = trust |w| / (|g| + larc_eps), with |g| after grad_scale; clip: min(local, 1), scale: local; if either
 * norm is 0: larc_zero; not below larc_min. It multiplies g before the optimiser. |g|^2 = STAT[0] grad_scale^2, |w|^2 = STAT2[0]; afterwards
 * STAT2[0] = sum of squares of the new weights (where STAT2 is present). STAT is needed for LARC only. SGD without momentum may lack M1. Where
 * NUM[SKIP] is not 0 nothing is written. NUM absent: a factor of 1, and no skipping.
 */
typedef struct halo_update_params {
    halo_optimizer kind;
    halo_larc larc;
    double momentum, beta1, beta2, eps;
    double weight_decay, lr_factor;
    double trust, larc_eps, larc_zero, larc_min;
} halo_update_params;

typedef struct halo_op_desc {
    halo_op_kind kind;
    halo_operand t[HALO_ROLES]; /* dtype HALO_NONE where absent */
    halo_window window;         /* conv, pool */
    halo_act act;               /* act; fused activation of conv, linear, norm */
    double slope;               /* leaky relu: negative slope; scale: factor */
    halo_pool pool;
    int64_t pool_side[3]; /* conv-pool: cells of a pooling window */
    bool count_pad;    /* average pooling counts padding cells */
    bool accumulate;   /* gradient is added to what is there */
    bool inference;    /* norm: use running statistics */
    bool unbiased;     /* norm: running variance is unbiased */
    bool channels_last; /* flatten order (d,h,w,c) */
    bool reverse;      /* margin: add back */
    int image;         /* CONV_IMAGE: which image, as named by the candidate */
    int64_t groups;    /* norm: features; 0 = one per channel (batch, instance) */
    bool per_sample;   /* norm: G = N */
    double eps, momentum;      /* norm */
    halo_loss loss;
    double delta;              /* huber */
    bool ignores;              /* loss of classes: cells of this class number do not count */
    int64_t ignore;
    double keep;               /* dropout */
    uint64_t layer;            /* dropout: id that goes into the hash */
    int64_t global_lo[HALO_DIMS]; /* dropout: position of X's box in the global tensor; N is added to record.first_sample */
    int64_t global_ext[HALO_DIMS];
    halo_margin_mode margin_mode[3][2];
    halo_update_params update;
    double clip_norm;          /* decide: largest norm of all gradients; 0: none */
    int transforms;            /* prepare: at most HALO_MAX_TRANSFORMS */
    halo_transform transform[HALO_MAX_TRANSFORMS];
} halo_op_desc;

/* What changes from step to step, readable by the device. One per program. */
typedef struct halo_step_record {
    uint64_t seed, step; /* for dropout */
    int64_t t;           /* optimiser steps done, this one included */
    int64_t first_sample; /* global index within the step's batch of this rank's first sample */
    double lr;
    double grad_scale; /* 1 / loss scale, times clipping */
    double loss_scale; /* DX of a loss is multiplied by loss_scale / (sum of sample weights over all ranks) */
    double weight_sum; /* that sum, known before the step */
    double delta;      /* of huber in this step; 0: as the description has it */
    /* Where `batch` is not 0: of so many samples the last `padding` are none (their weight is 0). Statistics of norms over the batch leave them out, and
     * these norms give them a DX of 0; norms per sample treat them as any (their DY is 0, and so is their DX then). An operand whose N is a multiple of `batch` has that many times as many of each. */
    int64_t batch, padding;
} halo_step_record;

typedef struct halo_device halo_device;
typedef struct halo_plan halo_plan;   /* a backend's own */
typedef struct halo_queue halo_queue; /* an ordered stream of work; NULL: the device's default queue */

/* One way to do an operation. */
typedef struct halo_candidate {
    char impl[48];      /* what `explain` prints, e.g. "direct:avx512f", "onednn:jit:avx2", "ref" */
    int id;             /* the backend's own */
    bool widened;       /* set by the core: 16-bit operands, of which the backend has this in f32 */
    bool reference;     /* slow loops: a warning when chosen in a backend that should be fast */
    size_t scratch;     /* bytes, from the program's shared scratch */
    int image;          /* convolutions: image of the weights it reads; 0 = the plain master */
    size_t image_bytes;
    double items;       /* independent work items, as dealt to the device's threads, for `explain threads=` */
    double efficiency;  /* the best that these allow: work / (threads x the most that one thread gets); 0: as follows from equal items */
} halo_candidate;

enum { HALO_MAX_CANDIDATES = 16 };

typedef struct halo_op_args {
    void *ptr[HALO_ROLES]; /* device addresses of the allocations (their first byte, not the box) */
    void *scratch;
    const halo_step_record *record;
    halo_queue *queue;
} halo_op_args;

typedef struct halo_op_class {
    halo_op_kind kind;
    /* REQUIRED. Writes at most HALO_MAX_CANDIDATES ways, best guess first; returns how many, 0 = not applicable. */
    int (*candidates)(halo_device *dev, const halo_op_desc *desc, halo_candidate *out);
    /* REQUIRED. Prepares one of them; the caller owns *plan. */
    halo_status (*plan)(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan);
    /* REQUIRED. Puts the work on the queue; never waits, never allocates. */
    halo_status (*run)(halo_plan *plan, const halo_op_args *args);
    /* REQUIRED. NULL plan is allowed. */
    void (*destroy)(halo_plan *plan);
} halo_op_class;

/* ---------------------------------------------------------------------------------------------------------- device */

typedef struct halo_device_info {
    char name[128];       /* "cpu avx512f, 2 threads" */
    char details[256];    /* libraries and versions */
    char isa[16];         /* instruction set of its kernels; "" where that says nothing */
    char placement[320];  /* where its threads sit and its memory lies, and why; "" where that says nothing */
    size_t memory_total, memory_free; /* bytes; 0 = unknown */
    int threads;
} halo_device_info;

/* Work that was recorded on a device, to be put there again as a whole. */
typedef struct halo_recording halo_recording;

/* Devices of several ranks that exchange data by means of the backend's own, without the host. */
typedef struct halo_link halo_link;
enum { HALO_LINK_ID = 128 };

/* One message of link_move: `bytes` at a device address, to or from a rank of the link. */
typedef struct halo_parcel {
    int peer;
    bool send;
    void *ptr;
    size_t bytes;
} halo_parcel;

typedef struct halo_device_ops {
    /* REQUIRED memory. Addresses are device addresses; offsets may be added; alignment at least 64 bytes. New memory is not cleared. */
    halo_status (*alloc)(halo_device *dev, size_t bytes, void **ptr);
    void (*release)(halo_device *dev, void *ptr);
    /* REQUIRED. Between a dense host array (type host_dtype, plain order n c d h w, extents of the box) and an operand's box at `ptr`; converts type
     * and layout, clears padding lanes of channel blocks on upload. The host array may be reused when the call returns. */
    halo_status (*upload)(halo_device *dev, const halo_operand *op, void *ptr, halo_dtype host_dtype, const void *host);
    halo_status (*download)(halo_device *dev, const halo_operand *op, const void *ptr, halo_dtype host_dtype, void *host);
    /* REQUIRED. Bytes within the device, or between it and memory of `pin`; fill with a byte value. */
    halo_status (*copy)(halo_device *dev, void *dst, const void *src, size_t bytes, halo_queue *queue);
    halo_status (*fill)(halo_device *dev, void *dst, int byte, size_t bytes, halo_queue *queue);
    /* REQUIRED. Waits until the queue (NULL: everything) is done. */
    halo_status (*wait)(halo_device *dev, halo_queue *queue);
    /* OPTIONAL. Called around every step and evaluation in the thread that runs it: the cpu backend flushes denormals in its threads while
     * computing and restores the caller's mode. */
    void (*enter)(halo_device *dev);
    void (*leave)(halo_device *dev);
    /* REQUIRED. */
    void (*describe)(halo_device *dev, halo_device_info *info);
    void (*close)(halo_device *dev);
    /* OPTIONAL. NULL where the host cannot touch the memory; else the address MPI may use. */
    void *(*mpi_pointer)(halo_device *dev, void *ptr);
    /* OPTIONAL. The machine's limits, for bench: best GF/s of an n x n x n f32 matrix product through the vendor's library, GB/s of a triad. */
    halo_status (*limits)(halo_device *dev, int64_t n, int repetitions, double *gemm_gflops, double *stream_gbs);
    /* OPTIONAL, all four or none. Between record and stop, what operations, copy and fill put on the device is kept instead of done; replay puts all of it
     * there, with `step` as the step record that it reads. Addresses stay as they were. stop after a failure in between gives no recording. */
    halo_status (*record)(halo_device *dev);
    halo_status (*stop)(halo_device *dev, halo_recording **recording);
    halo_status (*replay)(halo_device *dev, halo_recording *recording, const halo_step_record *step);
    void (*forget)(halo_device *dev, halo_recording *recording);
    /* OPTIONAL, both or none. Memory of the host's that the device reaches while both go on with other things. */
    halo_status (*pin)(halo_device *dev, size_t bytes, void **host);
    void (*unpin)(halo_device *dev, void *host);
    /* OPTIONAL, all four or none. One more queue, which work may be put on beside the default one; follow: what `later` gets from now on comes after all that `sooner` has, without the
     * host waiting. What is put on a queue that follows the default one, and that the default one follows again, is recorded with it. */
    halo_status (*queue)(halo_device *dev, halo_queue **queue);
    void (*unqueue)(halo_device *dev, halo_queue *queue);
    halo_status (*follow)(halo_device *dev, halo_queue *later, halo_queue *sooner);
    halo_status (*done)(halo_device *dev, halo_queue *queue, bool *all); /* whether it has done all that was put on it; does not wait */
    /* OPTIONAL, all seven or none. One rank asks for an id and gives it to the others; link is collective over `size` ranks. link_sum adds up n elements in
     * place over the ranks (all get equal bits). link_scatter: of size * n elements rank r gets the sums of its own n, those from r n on, in their place, and the others' become anything;
     * link_gather: everybody gets everybody's n. link_move exchanges messages, matched between two ranks by their order. All are put on the
     * queue like an operation, and collective: the same calls in the same order on all ranks. */
    halo_status (*link_id)(halo_device *dev, unsigned char id[HALO_LINK_ID]);
    halo_status (*link)(halo_device *dev, const unsigned char id[HALO_LINK_ID], int size, int rank, halo_link **link);
    halo_status (*link_sum)(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
    halo_status (*link_scatter)(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
    halo_status (*link_gather)(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
    halo_status (*link_move)(halo_device *dev, halo_link *link, const halo_parcel *parcel, int n, halo_queue *queue);
    void (*unlink)(halo_device *dev, halo_link *link);
} halo_device_ops;

/* Every device begins with this; backends put their own state behind it. */
struct halo_device {
    const halo_device_ops *ops;
    const halo_op_class *const *classes; /* [HALO_OP_KINDS], NULL where the kind is absent */
    halo_context *ctx;                   /* for errors and logs */
    halo_dtype compute;                  /* type of activations: f32, f16, bf16; f64 in ref */
    halo_dtype master;                   /* type of master weights and gradients: f32; f64 in ref on request */
    const halo_layout *layouts;          /* program layouts this device can use, best guess first, ended by HALO_LAYOUTS */
    bool wants_margins;                  /* its fast kernels like zero padding written out as margins */
    bool cuda;                           /* its addresses are CUDA's: an MPI that knows these sends from them and receives there */
};

typedef struct halo_device_options {
    int threads;     /* 0: the context's */
    const char *isa; /* cpu */
    halo_dtype compute; /* type of activations and their gradients; HALO_NONE: f32. f64: ref alone, which has f64 masters then. f16, bf16: masters stay f32; what a
                         * device has no operation for is done in f32 between conversions (hl_op_candidates), so that none needs to refuse them */
    int winograd;    /* cpu: largest m of Winograd's F(m, 3) among the candidates of convolutions, 2 or 4; negative: even where they cannot pay; 0: none.
                      * Errors are at most 2e-6 (m = 2) and 2e-4 (m = 4) of the largest output */
    bool tf32;          /* cuda: products of f32 with 10 bits of fraction, on tensor cores */
    bool any_order;     /* cuda: algorithms too whose sums have no fixed order */
} halo_device_options;

typedef struct halo_backend {
    int abi; /* HALO_BACKEND_ABI */
    const char *name;
    const char *summary;
    /* REQUIRED. Opens a device; says in one sentence why it cannot. */
    halo_status (*open)(halo_context *ctx, const halo_device_options *options, halo_device **dev);
} halo_backend;

/* The one symbol that a backend module exports. */
typedef const halo_backend *(*halo_backend_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
