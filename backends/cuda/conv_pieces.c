/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_pieces.c -- from a convolution's description to pieces and their descriptors.
 *
 * Along an axis with kernel K, stride S, dilation L, span = (K - 1) L + 1, output p reads cells p S - pad + [0, span). Of P outputs:
 *
 *   forward, weights: cells [-pad, (P - 1) S - pad + span) are wanted, those in box and margin are there: lo <= q < hi. cuDNN pads lo + pad cells on both
 *     sides and makes floor((hi - lo + 2 (lo + pad) - span) / S) + 1 outputs: right when that is P. A graph pads what is missing on either side: always right.
 *   data: outputs p_lo <= p < p_hi are there and touch the box [0, E). cuDNN's padding is pad - p_lo S: right when it is not negative and its formula
 *     gives p_hi - p_lo for E. A graph pads (p_hi - p_lo - 1) S + span - E - (pad - p_lo S) cells behind it, or none where S covers what that is below 0.
 */
#include "conv.h"

static const halo_role near_role[] = {[HALO_OP_CONV_FWD] = HALO_X, [HALO_OP_CONV_BWD_DATA] = HALO_DX, [HALO_OP_CONV_BWD_WEIGHTS] = HALO_X};
static const halo_role far_role[] = {[HALO_OP_CONV_FWD] = HALO_Y, [HALO_OP_CONV_BWD_DATA] = HALO_DY, [HALO_OP_CONV_BWD_WEIGHTS] = HALO_DY};

halo_role hl_conv_near(const halo_op_desc *d) { return near_role[d->kind]; }
halo_role hl_conv_far(const halo_op_desc *d) { return far_role[d->kind]; }

/* Everything that a piece is made from: parts of the operands, and the window with its padding for them. */
typedef struct part {
    bool data, backward, graph;
    halo_operand near, far;
    int64_t near_first, far_first; /* elements from the operands' first cells */
    int64_t near_stride[HALO_DIMS], far_stride[HALO_DIMS];
    halo_window w;
} part;

static int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }
static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
static int64_t span_of(const halo_window *w, int k) { return (w->kernel[k] - 1) * w->dilation[k] + 1; }

/* One axis of a piece. near and far: first cell (relative to the box) and extent as cuDNN is told; pad, pad_hi for graphs alone */
typedef struct axis {
    int64_t near, near_ext, far, far_ext, pad, pad_hi;
    bool direct, empty;
} axis;

static axis read_axis(const part *t, int k)
{
    const halo_window *w = &t->w;
    int64_t outputs = t->far.ext[HALO_D + k], span = span_of(w, k), from = -w->pad_lo[k], to = (outputs - 1) * w->stride[k] + from + span;
    int64_t lo = hl_max64(from, -t->near.margin[k][0]), hi = hl_min64(to, t->near.ext[HALO_D + k] + t->near.margin[k][1]), extra = lo - from - (to - hi);
    axis a = {.near = lo, .near_ext = hi - lo, .far_ext = outputs, .pad = lo - from, .pad_hi = to - hi};
    a.direct = hi > lo && (t->graph || (extra >= 0 && extra < w->stride[k]));
    return a;
}

static axis data_axis(const part *t, int k)
{
    const halo_window *w = &t->w;
    int64_t e = t->near.ext[HALO_D + k], span = span_of(w, k), s = w->stride[k], pad = w->pad_lo[k];
    int64_t lo = hl_max64(-t->far.margin[k][0], ceil_div(pad - span + 1, s)), hi = hl_min64(t->far.ext[HALO_D + k] + t->far.margin[k][1], floor_div(e - 1 + pad, s) + 1);
    axis a = {.near_ext = e, .far = lo, .far_ext = hi - lo, .pad = pad - lo * s, .empty = hi <= lo};
    int64_t behind = (hi - lo - 1) * s + span - e - a.pad;
    a.pad_hi = t->graph ? hl_max64(behind, 0) : a.pad;
    a.direct = !a.empty && a.pad >= 0 && e + a.pad + a.pad_hi >= span && (e + a.pad + a.pad_hi - span) / s + 1 == hi - lo;
    return a;
}

/* As scratch has it: no padding. */
static void write_out(const part *t, int k, axis *a)
{
    int64_t from = (t->data ? a->far * t->w.stride[k] : 0) - t->w.pad_lo[k];
    a->near = from;
    a->near_ext = (a->far_ext - 1) * t->w.stride[k] + span_of(&t->w, k);
    a->pad = a->pad_hi = 0;
}

/* Elements from the first to behind the last cell of a view. */
static int64_t reach(const int64_t ext[HALO_DIMS], const int64_t stride[HALO_DIMS])
{
    int64_t n = 1;
    for (int k = 0; k < HALO_DIMS; k++) n += (ext[k] - 1) * stride[k];
    return n;
}

/* Of a tensor of its own in the layout of the others. */
static void dense_strides(halo_layout layout, const int64_t ext[HALO_DIMS], int64_t s[HALO_DIMS])
{
    const halo_operand whole = hl_operand_whole(HALO_F32, layout, ext);
    HL_BUG_UNLESS(hl_cuda_strides(&whole, s));
}

static bool is_packed(halo_layout layout, const int64_t ext[HALO_DIMS], const int64_t stride[HALO_DIMS])
{
    int64_t dense[HALO_DIMS];
    dense_strides(layout, ext, dense);
    for (int k = HALO_C; k < HALO_DIMS; k++)
        if (ext[k] > 1 && stride[k] != dense[k]) return false;
    return true;
}

/* What a piece would be. */
typedef struct geometry {
    axis a[3];
    bool moved, packed, empty;
    int64_t near_ext[HALO_DIMS], far_ext[HALO_DIMS], near_stride[HALO_DIMS], far_stride[HALO_DIMS];
} geometry;

/* False when something reaches past `most` elements. */
static bool geometry_of(const part *t, int64_t most, geometry *g)
{
    *g = (geometry){.near_ext = {t->near.ext[HALO_N], t->near.ext[HALO_C]}, .far_ext = {t->far.ext[HALO_N], t->far.ext[HALO_C]}};
    memcpy(g->near_stride, t->near_stride, sizeof(g->near_stride));
    memcpy(g->far_stride, t->far_stride, sizeof(g->far_stride));
    for (int k = 0; k < 3; k++) {
        g->a[k] = t->data ? data_axis(t, k) : read_axis(t, k);
        g->moved = g->moved || !g->a[k].direct;
        g->empty = g->empty || g->a[k].empty;
    }
    if (g->empty) return true;
    for (int k = 0; k < 3; k++) g->near_ext[HALO_D + k] = g->a[k].near_ext;
    g->moved = g->moved || reach(g->near_ext, g->near_stride) > most;
    for (int k = 0; k < 3; k++) {
        if (g->moved) write_out(t, k, &g->a[k]);
        g->near_ext[HALO_D + k] = g->a[k].near_ext;
        g->far_ext[HALO_D + k] = g->a[k].far_ext;
    }
    if (g->moved) dense_strides(t->near.layout, g->near_ext, g->near_stride);
    g->packed = t->backward && !t->graph && !is_packed(t->far.layout, g->far_ext, g->far_stride);
    if (g->packed) dense_strides(t->far.layout, g->far_ext, g->far_stride);
    return reach(g->near_ext, g->near_stride) <= most && reach(g->far_ext, g->far_stride) <= most;
}

/* --------------------------------------------------------------------------------------------------------- descriptors */

static cudnnDataType_t type_of(halo_dtype type) { return type == HALO_F16 ? CUDNN_DATA_HALF : type == HALO_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }

static halo_status tensor(hl_cuda_device *dev, halo_dtype type, const int64_t ext[HALO_DIMS], const int64_t stride[HALO_DIMS], cudnnTensorDescriptor_t *out)
{
    int e[HALO_DIMS], s[HALO_DIMS];
    for (int k = 0; k < HALO_DIMS; k++) {
        e[k] = (int)ext[k];
        /* of a dimension with one element the stride does not matter, but it must be an int */
        s[k] = ext[k] == 1 && stride[k] > INT32_MAX ? 1 : (int)stride[k];
    }
    HL_DNN(dev, cudnnCreateTensorDescriptor(out));
    HL_DNN(dev, cudnnSetTensorNdDescriptor(*out, type_of(type), HALO_DIMS, e, s));
    return HALO_OK;
}

static halo_status filter_of(hl_cuda_device *dev, const part *t, int64_t o, int64_t i, cudnnFilterDescriptor_t *out)
{
    const halo_window *w = &t->w;
    const int e[HALO_DIMS] = {(int)o, (int)i, (int)w->kernel[0], (int)w->kernel[1], (int)w->kernel[2]};
    HL_DNN(dev, cudnnCreateFilterDescriptor(out));
    HL_DNN(dev, cudnnSetFilterNdDescriptor(*out, type_of(t->near.dtype), t->near.layout == HALO_NDHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, HALO_DIMS, e));
    return HALO_OK;
}

static halo_status window_of(hl_cuda_device *dev, const part *t, const axis a[3], cudnnConvolutionDescriptor_t *out)
{
    const halo_window *w = &t->w;
    const bool half = t->near.dtype != HALO_F32;
    int pad[3], stride[3], dilation[3];
    for (int k = 0; k < 3; k++) pad[k] = (int)a[k].pad, stride[k] = (int)w->stride[k], dilation[k] = (int)w->dilation[k];
    HL_DNN(dev, cudnnCreateConvolutionDescriptor(out));
    HL_DNN(dev, cudnnSetConvolutionNdDescriptor(*out, 3, pad, stride, dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    HL_DNN(dev, cudnnSetConvolutionMathType(*out, half ? CUDNN_TENSOR_OP_MATH : dev->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
    return HALO_OK;
}

/* Bytes, at most 16, that an address is a multiple of when those before it are; samples further on, too. */
static int64_t alignment(size_t at, int64_t sample_bytes)
{
    const size_t bits = at | (size_t)sample_bytes | 16;
    return (int64_t)(bits & -bits);
}

static hl_graph_tensor graph_tensor(size_t at, size_t size, const int64_t ext[HALO_DIMS], const int64_t stride[HALO_DIMS])
{
    hl_graph_tensor t;
    memcpy(t.ext, ext, sizeof(t.ext));
    memcpy(t.stride, stride, sizeof(t.stride));
    t.align = alignment(at * size, stride[HALO_N] * (int64_t)size);
    return t;
}

/* Where an operand's box begins in its allocation, which is aligned. */
static size_t first_of(const halo_op_desc *d, halo_role role) { return hl_has(d, role) ? (size_t)hl_cuda_first(&d->t[role]) : 0; }

/* What engines must not do. */
static uint64_t refused(const hl_cuda_device *dev, halo_dtype type)
{
    const unsigned always = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS | 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    return always | (unsigned)!dev->any_order << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC | (unsigned)(type == HALO_F32 && !dev->tf32) << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
}

/* The piece's operands and window as a graph is told of them. */
static halo_status graph_of(hl_cuda_device *dev, const halo_op_desc *d, const part *t, const geometry *g, hl_conv_piece *p)
{
    static const int pass[] = {[HALO_OP_CONV_FWD] = HL_GRAPH_FORWARD, [HALO_OP_CONV_BWD_DATA] = HL_GRAPH_DATA, [HALO_OP_CONV_BWD_WEIGHTS] = HL_GRAPH_WEIGHTS};
    const halo_window *w = &t->w;
    const size_t size = hl_dtype_size(t->near.dtype);
    const halo_role weights = d->kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DW : HALO_WT;
    /* cells of dx that no output reads would lack the bias */
    const bool fused = hl_conv_fusable(d) && !(t->data && p->moved), own = hl_cuda_image(d->t[weights].dtype, t->near.dtype, t->near.layout) == 0;
    const int64_t filter[HALO_DIMS] = {g->far_ext[HALO_C], g->near_ext[HALO_C], w->kernel[0], w->kernel[1], w->kernel[2]};
    int64_t filter_stride[HALO_DIMS];
    hl_graph_conv c = {.pass = pass[d->kind], .type = (int)type_of(t->near.dtype), .bias = fused && hl_has(d, HALO_B), .relu = fused && d->act != HALO_ACT_NONE, .refuse = refused(dev, t->near.dtype)};
    dense_strides(t->near.layout, filter, filter_stride);
    c.slope = c.relu && d->act == HALO_ACT_LEAKY_RELU ? d->slope : 0;
    c.workspace = (int64_t)dev->workspace;
    c.bias_align = c.bias ? alignment((first_of(d, HALO_B) + (size_t)p->channel) * sizeof(float), 0) : 0;
    c.x = graph_tensor(p->moved ? 0 : first_of(d, hl_conv_near(d)) + (size_t)p->near_at, size, g->near_ext, g->near_stride);
    c.y = graph_tensor(first_of(d, hl_conv_far(d)) + (size_t)p->far_at, size, g->far_ext, g->far_stride);
    c.w = graph_tensor(hl_conv_indirect(d) ? 0 : (own ? first_of(d, weights) : 0) + (size_t)p->filter_at, size, filter, filter_stride);
    for (int k = 0; k < 3; k++) c.pad_lo[k] = g->a[k].pad, c.pad_hi[k] = g->a[k].pad_hi, c.stride[k] = w->stride[k], c.dilation[k] = w->dilation[k];
    p->fused = fused;
    return hl_conv_graph_of(dev, &c, &p->graph);
}

/* Between the operand's cells and scratch. */
static void moves(const part *t, const geometry *g, bool accumulate, hl_conv_piece *p)
{
    hl_window_copy *m = &p->move;
    int64_t lo[3] = {0, 0, 0}, hi[3];
    for (int k = 0; k < 3; k++) {
        if (!t->data) lo[k] = -t->near.margin[k][0];
        hi[k] = t->near.ext[HALO_D + k] + (t->data ? 0 : t->near.margin[k][1]);
    }
    hl_view operand = {.ext = {t->near.ext[HALO_N], t->near.ext[HALO_C], hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2]}}, scratch;
    memcpy(operand.stride, t->near_stride, sizeof(operand.stride));
    memcpy(scratch.ext, g->near_ext, sizeof(scratch.ext));
    memcpy(scratch.stride, g->near_stride, sizeof(scratch.stride));
    if (g->empty) scratch.ext[HALO_W] = 0;
    p->move_at = t->near_first;
    for (int k = 0; k < 3; k++) p->move_at += lo[k] * t->near_stride[HALO_D + k];
    *m = t->data ? (hl_window_copy){.from = scratch, .to = operand, .accumulate = accumulate} : (hl_window_copy){.from = operand, .to = scratch};
    for (int k = 0; k < 3; k++) m->shift[HALO_D + k] = t->data ? -g->a[k].near : g->a[k].near - lo[k];
    hl_cuda_places(t->near.layout, m->to.ext, &m->places);
}

/* The far side's cells, all of which are there. */
static void packs(const part *t, const geometry *g, hl_conv_piece *p)
{
    hl_window_copy *m = &p->pack;
    *m = (hl_window_copy){0};
    memcpy(m->from.ext, g->far_ext, sizeof(m->from.ext));
    memcpy(m->from.stride, t->far_stride, sizeof(m->from.stride));
    memcpy(m->to.ext, g->far_ext, sizeof(m->to.ext));
    memcpy(m->to.stride, g->far_stride, sizeof(m->to.stride));
    hl_cuda_places(t->near.layout, m->to.ext, &m->places);
    p->pack_at = p->far_at;
    p->far_at = 0;
    p->far_elements = reach(g->far_ext, g->far_stride);
}

static halo_status describe(hl_cuda_device *dev, const halo_op_desc *d, const part *t, const geometry *g, hl_conv_piece *p)
{
    p->moved = g->moved || g->empty;
    p->packed = g->packed;
    p->empty = g->empty;
    if (p->moved) moves(t, g, d->accumulate, p);
    if (p->empty) return HALO_OK;
    p->near_at = t->near_first, p->far_at = t->far_first;
    for (int k = 0; k < 3; k++) {
        p->near_at += g->a[k].near * t->near_stride[HALO_D + k];
        p->far_at += g->a[k].far * t->far_stride[HALO_D + k];
    }
    if (p->moved) p->near_at = 0, p->near_elements = reach(g->near_ext, g->near_stride);
    if (p->packed) packs(t, g, p);
    if (t->graph) return graph_of(dev, d, t, g, p);
    HL_TRY(tensor(dev, t->near.dtype, g->near_ext, g->near_stride, &p->near));
    HL_TRY(tensor(dev, t->far.dtype, g->far_ext, g->far_stride, &p->far));
    HL_TRY(filter_of(dev, t, g->far_ext[HALO_C], g->near_ext[HALO_C], &p->filter));
    return window_of(dev, t, g->a, &p->conv);
}

/* ------------------------------------------------------------------------------------------------------------- cutting */

/* How many samples, channels of the far side, and planes (of the far side; of the near side for data) a piece has; whether it is a graph. */
typedef struct cut {
    int64_t samples, channels, planes;
    bool graph;
} cut;

static const halo_operand *planes_of(const halo_op_desc *d) { return &d->t[d->kind == HALO_OP_CONV_BWD_DATA ? hl_conv_near(d) : hl_conv_far(d)]; }

static part part_of(const halo_op_desc *d, const cut *c, int64_t n, int64_t o, int64_t z)
{
    part t = {.data = d->kind == HALO_OP_CONV_BWD_DATA, .backward = d->kind != HALO_OP_CONV_FWD, .graph = c->graph, .near = d->t[hl_conv_near(d)], .far = d->t[hl_conv_far(d)], .w = d->window};
    halo_operand *cuts = t.data ? &t.near : &t.far;
    HL_BUG_UNLESS(hl_cuda_strides(&t.near, t.near_stride) && hl_cuda_strides(&t.far, t.far_stride));
    t.near.ext[HALO_N] = t.far.ext[HALO_N] = hl_min64(c->samples, t.far.ext[HALO_N] - n);
    t.far.ext[HALO_C] = hl_min64(c->channels, t.far.ext[HALO_C] - o);
    t.near_first = n * t.near_stride[HALO_N];
    t.far_first = n * t.far_stride[HALO_N] + o * t.far_stride[HALO_C];
    *(t.data ? &t.near_first : &t.far_first) += z * (t.data ? t.near_stride : t.far_stride)[HALO_D];
    cuts->ext[HALO_D] = hl_min64(c->planes, cuts->ext[HALO_D] - z);
    /* data: near cell q' = q - z;  else: output p' = p - z */
    t.w.pad_lo[0] += t.data ? z : -z * t.w.stride[0];
    return t;
}

static int64_t half(int64_t n) { return (n + 1) / 2; }

/* The first piece is as large as any but for what it pads, the last one may lack padding: all are tried. */
static bool fits_all(const halo_op_desc *d, const cut *c, int64_t most)
{
    geometry g;
    for (int64_t z = 0; z < planes_of(d)->ext[HALO_D]; z += c->planes) {
        part t = part_of(d, c, 0, 0, z);
        if (!geometry_of(&t, most, &g)) return false;
    }
    return true;
}

static bool choose_cut(const halo_op_desc *d, int64_t most, bool graph, cut *c)
{
    const halo_operand *far = &d->t[hl_conv_far(d)];
    *c = (cut){far->ext[HALO_N], far->ext[HALO_C], planes_of(d)->ext[HALO_D], graph};
    while (!fits_all(d, c, most)) {
        if (c->samples > 1)
            c->samples = half(c->samples);
        else if (c->channels > 1)
            c->channels = half(c->channels);
        else if (c->planes > 1)
            c->planes = half(c->planes), c->channels = far->ext[HALO_C];
        else
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- interface */

static bool fits_int(int64_t n) { return n <= INT32_MAX; }

bool hl_conv_fits(const halo_op_desc *d)
{
    halo_role near = hl_conv_near(d), far = hl_conv_far(d), weights = d->kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DW : HALO_WT;
    const halo_operand *n = &d->t[near], *f = &d->t[far], *w = &d->t[weights];
    if (!hl_cuda_activation(d, near) || !hl_cuda_activation(d, far) || n->dtype != f->dtype || n->layout != f->layout) return false;
    if (n->ext[HALO_N] != f->ext[HALO_N] || !hl_cuda_parameters(d, weights, n->dtype, false)) return false;
    if (!hl_cuda_vector(d, HALO_B, HALO_F32, true) || !hl_cuda_parameters(d, HALO_DB, n->dtype, true) || hl_has(d, HALO_AUX)) return false;
    int64_t taps = 1;
    for (int k = 0; k < 3; k++) {
        if (d->window.kernel[k] < 1 || d->window.stride[k] < 1 || d->window.dilation[k] < 1) return false;
        if (!fits_int(d->window.kernel[k]) || !fits_int(d->window.stride[k]) || !fits_int(d->window.dilation[k])) return false;
        taps *= d->window.kernel[k];
    }
    return hl_operand_box_elements(w) == taps * n->ext[HALO_C] * f->ext[HALO_C];
}

/* Of the pieces that add to the same cells or weights. */
static void mark_ends(const halo_op_desc *d, const cut *c, int64_t n, int64_t o, int64_t z, hl_conv_piece *p)
{
    bool data = d->kind == HALO_OP_CONV_BWD_DATA;
    p->first = data ? o == 0 : n == 0 && z == 0;
    p->last = !data || o + c->channels >= d->t[hl_conv_far(d)].ext[HALO_C];
}

static bool adds(const halo_op_desc *d, const hl_conv_piece *p)
{
    if (d->kind == HALO_OP_CONV_FWD) return false;
    if (d->kind == HALO_OP_CONV_BWD_DATA) return !p->first || (d->accumulate && !p->moved);
    return (!p->first || d->accumulate) && !hl_conv_indirect(d);
}

bool hl_conv_moves(const hl_cuda_device *dev, const halo_op_desc *d)
{
    cut c;
    geometry g;
    if (!choose_cut(d, dev->most_elements, false, &c)) return false;
    for (int64_t z = 0; z < planes_of(d)->ext[HALO_D]; z += c.planes) {
        part t = part_of(d, &c, 0, 0, z);
        if (geometry_of(&t, dev->most_elements, &g) && (g.moved || g.packed)) return true;
    }
    return false;
}

halo_status hl_conv_pieces_make(hl_cuda_device *dev, const halo_op_desc *d, bool graph, hl_conv_pieces *list)
{
    const halo_operand *far = &d->t[hl_conv_far(d)], *near = &d->t[hl_conv_near(d)];
    int64_t row = near->ext[HALO_C] * d->window.kernel[0] * d->window.kernel[1] * d->window.kernel[2];
    cut c;
    *list = (hl_conv_pieces){0};
    if (!choose_cut(d, dev->most_elements, graph, &c)) return hl_fail(dev->super.ctx, HALO_ERR_UNSUPPORTED, "a plane of a convolution has more than %lld elements", (long long)dev->most_elements);
    for (int64_t n = 0; n < far->ext[HALO_N]; n += c.samples)
        for (int64_t z = 0; z < planes_of(d)->ext[HALO_D]; z += c.planes)
            for (int64_t o = 0; o < far->ext[HALO_C]; o += c.channels) {
                geometry g;
                part t = part_of(d, &c, n, o, z);
                HL_BUG_UNLESS(geometry_of(&t, dev->most_elements, &g));
                HL_TRY(hl_grow(dev->super.ctx, &list->piece, &list->room, list->n + 1, sizeof(*list->piece), "a convolution"));
                hl_conv_piece *p = &list->piece[list->n++];
                *p = (hl_conv_piece){.filter_at = o * row, .filter_channels = t.far.ext[HALO_C], .channel = o};
                mark_ends(d, &c, n, o, z, p);
                HL_TRY(describe(dev, d, &t, &g, p));
                p->adds = adds(d, p);
                list->near_elements = hl_max64(list->near_elements, p->near_elements);
                list->far_elements = hl_max64(list->far_elements, p->far_elements);
                list->filter_elements = hl_max64(list->filter_elements, t.far.ext[HALO_C] * row);
            }
    return HALO_OK;
}

void hl_conv_pieces_free(hl_conv_pieces *list)
{
    for (size_t i = 0; i < list->n; i++) {
        hl_conv_piece *p = &list->piece[i];
        if (p->near) cudnnDestroyTensorDescriptor(p->near);
        if (p->far) cudnnDestroyTensorDescriptor(p->far);
        if (p->filter) cudnnDestroyFilterDescriptor(p->filter);
        if (p->conv) cudnnDestroyConvolutionDescriptor(p->conv);
        hl_graph_pack_free(&p->addresses);
    }
    free(list->piece);
}
