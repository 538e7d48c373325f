/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h -- convolutions of the cpu backend: the four classes, the weight images, and what their files share.
 *
 * Forward and backward data are one thing, a gather (conv_gather.c): every output position collects, over a list of taps, runs of input channels
 * times weight vectors. Backward weights correlates x with dy (conv_weights.c). Both take any box; y, dx and dy are channel-blocked, x is too, or
 * is plain or channels-last (the first tensor of a network).
 */
#ifndef HL_CPU_CONV_H
#define HL_CPU_CONV_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/kern/conv.h"
#include "backends/cpu/kern/kern.h"

struct hl_onednn;

extern const halo_op_class hl_cpu_conv_fwd, hl_cpu_conv_pool_fwd, hl_cpu_conv_bwd_data, hl_cpu_conv_bwd_weights, hl_cpu_conv_image;

enum { HL_CONV_TAPS = 32 }; /* longest kernel along one dimension */

/*
 * Images: [out block][t][lanes of out], out and its lanes zero-padded, t the position among the terms of one output:
 *   FWD   (in block, kd, kh, kw, lane of in)      out = o, in = i     x channel-blocked
 *   BWD   (in block, kd, kh, kw from the last, lane of in)   out = i, in = o     backward data
 *   LAST  (kd, kh, kw, i)                         out = o             x channels last
 *   PLAIN (i, kd, kh, kw)                         out = o             x plain
 */
typedef enum hl_image {
    HL_IMAGE_NONE = 0,
    HL_IMAGE_FWD8,
    HL_IMAGE_FWD16,
    HL_IMAGE_BWD8,
    HL_IMAGE_BWD16,
    HL_IMAGE_LAST8,
    HL_IMAGE_LAST16,
    HL_IMAGE_PLAIN8,
    HL_IMAGE_PLAIN16,
    HL_IMAGE_OI8, /* (o block, i block, kd, kh, kw, lane of o, lane of i), padded: oneDNN's for backward data */
    HL_IMAGE_OI16,
    HL_IMAGE_IO, /* (kd, kh, kw, i, o): oneDNN's for its matrix products */
    HL_IMAGES
} hl_image;

/* The image for `lanes` (8 or 16) of the kind whose 8-lane form is `base`. */
static inline int hl_image_of(hl_image base, int lanes) { return (int)base + (lanes == 16); }

/* Terms of one output (extent of t). */
int64_t hl_image_terms(int image, int64_t in, const int64_t kernel[3]);
size_t hl_image_bytes(int image, int64_t o, int64_t i, const int64_t kernel[3]);

/* dw, plain, (+)= an image (FWD, LAST, OI, IO) of it, at `threads`. */
void hl_image_unpack(int threads, int image, int64_t o, int64_t i, const int64_t kernel[3], const float *from, bool accumulate, float *dw);

/* What a convolution's description says, checked: f32, windows and extents that fit. x and y stand for dx and dy too. */
typedef struct hl_conv_shape {
    halo_operand x, y;
    int64_t n, in, out; /* samples, channels */
    halo_window w;
} hl_conv_shape;

bool hl_conv_shape_of(const halo_op_desc *desc, halo_role x, halo_role y, hl_conv_shape *s);

/* The kernels of the device for a blocked layout; NULL: none. */
const hl_conv_kern *hl_conv_kern_for(const hl_cpu_device *dev, halo_layout layout);

/* out, a whole dense allocation `to` with a margin, = from's box and its own margin, zeros around. Equal extents and layouts. */
void hl_conv_pad(const hl_cpu_device *dev, const halo_operand *from, const halo_operand *to, const float *in, float *out);

/* ---------------------------------------------------------------------------------------------------------------- pooling */

enum { HL_POOL_CELLS = 64 }; /* of a pooling window that a convolution takes with it */

/* Pooling in the same pass (conv_pool.c). */
typedef struct hl_conv_pool {
    int cells; /* of a window; 0: no pooling */
    bool saved;
    int64_t side[3], channels;
    hl_strides ys, as; /* of Y and AUX */
    int64_t y_first, a_first;
    hl_pool_saved how;
    int64_t offset[HL_POOL_CELLS];
    int32_t index[HL_POOL_CELLS];
} hl_conv_pool;

/* Of a description with or without: false where it cannot be. `conv` is the convolution alone, its Y a dense tensor that does not exist. */
bool hl_conv_pool_of(const halo_op_desc *d, hl_conv_pool *p, halo_op_desc *conv);
/* Steps along d h w, in floats, where the convolution leaves its cells. */
void hl_conv_pool_lay(hl_conv_pool *p, const int64_t step[3]);
/* Neighbouring windows along w, the first of them output `at` (n, first channel of a block, d, h, w), from the cells at z. y, aux: the allocations. */
void hl_conv_pool_row(const hl_conv_pool *p, const struct hl_kern *kern, const float *z, int64_t cells, const int64_t at[HALO_DIMS], float *y, uint8_t *aux);

/* ----------------------------------------------------------------------------------------------------------------- gather */

/* One dimension of one phase: outputs out0 + j out_step, 0 <= j < n; tap t reads input j in_step + off[t], and is number k[t] of the image. */
typedef struct hl_gather_dim {
    int64_t n, out0, out_step, in_step;
    int taps;
    int64_t off[HL_CONV_TAPS], k[HL_CONV_TAPS];
} hl_gather_dim;

typedef struct hl_gather hl_gather;

typedef struct hl_gather_spec {
    halo_operand in, out; /* in: x or dy; out: y or dx */
    int image;
    int64_t kernel[3];
    int phases;
    const hl_gather_dim (*dims)[3]; /* [phases], copied */
    bool accumulate;
    bool pad;    /* copy the input into scratch with a margin of zeros first */
    bool stream; /* store past the caches where the weights allow one pass */
    halo_act act;
    float slope;
    hl_conv_pool pool; /* out then is of the convolution alone */
} hl_gather_spec;

/* Candidate ids of the gathers: bits. */
enum { HL_GATHER_PADDED = 1, HL_GATHER_STREAMED = 2 };

/* Every input cell that is read lies in the box or its margin. */
bool hl_gather_inside(const hl_gather_spec *s);
/* The output is larger than caches are: streaming may pay. */
bool hl_gather_large(const hl_gather_spec *s);
halo_status hl_gather_make(hl_cpu_device *dev, const hl_gather_spec *s, hl_gather **out);
size_t hl_gather_scratch(const hl_gather *g);
/* items and efficiency of a candidate */
void hl_gather_share(const hl_gather *g, halo_candidate *out);
/* aux: with pooling that saves */
void hl_gather_run(const hl_gather *g, const float *in, const float *image, const float *bias, float *out, uint8_t *aux, void *scratch);
void hl_gather_free(hl_gather *g);

/* conv_onednn.c: library candidates for dense operands, ids from HL_ONEDNN_ID on; none where the build has no oneDNN. */
enum { HL_ONEDNN_ID = 100 };
int hl_onednn_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out);
halo_status hl_onednn_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice, struct hl_onednn **out);
halo_status hl_onednn_run(struct hl_onednn *p, const halo_op_args *args);
void hl_onednn_free(struct hl_onednn *p);

#endif
