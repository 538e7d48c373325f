/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_onednn.c -- convolutions by oneDNN (2.6 and 3.x), a candidate where every box restates as a dense tensor and nothing is read from margins.
 *
 * The library chooses its weight format; where that is one of the images of conv.h, or the plain master, it is used as it is, else the primitive is
 * refused. So are its reference loops: they are slower than ours by orders of magnitude, without a word.
 */
#include "conv.h"

#include <stdio.h>

#ifdef HAVE_CONFIG_H
#include "halo_build.h"
#endif

#ifdef HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

/* A call of the library; its status becomes ours. */
#define DNN_TRY(expr)                                                                                        \
    do {                                                                                                     \
        if ((expr) != dnnl_success) return HALO_ERR_DEVICE;                                                  \
    } while (0)

enum { SRC, WEI, BIA, DST, SCRATCH, SLOTS };

/* --------------------------------------------------------------------------------------- the library's two generations */

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t md;
typedef const dnnl_memory_desc_t *md_ref;
typedef const_dnnl_primitive_desc_t pd_ref;
#define MD(m) (&(m))

static bool md_make(md *out, int ndims, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(out, ndims, dims, dnnl_f32, tag) == dnnl_success;
}
static void md_drop(md m) { (void)m; }
#else
typedef dnnl_memory_desc_t md;
typedef const_dnnl_memory_desc_t md_ref;
typedef const_dnnl_primitive_desc_t pd_ref;
#define MD(m) (m)

static bool md_make(md *out, int ndims, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(out, ndims, dims, dnnl_f32, tag) == dnnl_success;
}
static void md_drop(md m) { dnnl_memory_desc_destroy(m); }
#endif

typedef struct dnn_conv {
    md m[4]; /* SRC WEI BIA DST */
    bool bias;
    dnnl_dims_t stride, dilate, low, high;
} dnn_conv;

#if DNNL_VERSION_MAJOR < 3
static dnnl_status_t dnn_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t st = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &c->m[SRC], &c->m[WEI],
                                                                  c->bias ? &c->m[BIA] : NULL, &c->m[DST], c->stride, c->dilate, c->low, c->high);
    return st != dnnl_success ? st : dnnl_primitive_desc_create(pd, &d, a, e, NULL);
}

static dnnl_status_t dnn_data(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t st = dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &c->m[SRC], &c->m[WEI], &c->m[DST], c->stride,
                                                                        c->dilate, c->low, c->high);
    return st != dnnl_success ? st : dnnl_primitive_desc_create(pd, &d, a, e, hint);
}

static dnnl_status_t dnn_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t st = dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &c->m[SRC], &c->m[WEI],
                                                                           c->bias ? &c->m[BIA] : NULL, &c->m[DST], c->stride, c->dilate, c->low,
                                                                           c->high);
    return st != dnnl_success ? st : dnnl_primitive_desc_create(pd, &d, a, e, hint);
}

static dnnl_status_t dnn_leaky(dnnl_post_ops_t ops, float slope) { return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, slope, 0.0f); }
#else
static dnnl_status_t dnn_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a)
{
    return dnnl_convolution_forward_primitive_desc_create(pd, e, dnnl_forward_training, dnnl_convolution_direct, c->m[SRC], c->m[WEI],
                                                          c->bias ? c->m[BIA] : NULL, c->m[DST], c->stride, c->dilate, c->low, c->high, a);
}

static dnnl_status_t dnn_data(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_data_primitive_desc_create(pd, e, dnnl_convolution_direct, c->m[SRC], c->m[WEI], c->m[DST], c->stride,
                                                                c->dilate, c->low, c->high, hint, a);
}

static dnnl_status_t dnn_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const dnn_conv *c, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, e, dnnl_convolution_direct, c->m[SRC], c->m[WEI], c->bias ? c->m[BIA] : NULL,
                                                                   c->m[DST], c->stride, c->dilate, c->low, c->high, hint, a);
}

static dnnl_status_t dnn_leaky(dnnl_post_ops_t ops, float slope) { return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, slope, 0.0f); }
#endif

/* ------------------------------------------------------------------------------------------------------------------ plans */

typedef struct hl_onednn {
    const hl_cpu_device *dev;
    halo_op_kind kind;
    hl_conv_shape s;
    dnn_conv c;
    bool made[4];
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t hint, pd;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[SLOTS];
    int image;
    size_t bytes[SLOTS]; /* WEI and BIA: of the library's own gradients, in scratch */
    int64_t x_origin, y_origin, b_origin, dw_origin;
    bool accumulate;
} hl_onednn;

static dnnl_format_tag_t layout_tag(halo_layout layout)
{
    static const dnnl_format_tag_t tags[] = {dnnl_abcde, dnnl_acdeb, dnnl_aBcde8b, dnnl_aBcde16b};
    return tags[layout];
}

/* The image whose layout this is; -1: none. */
static int image_of(md_ref weights, int ndims, const dnnl_dims_t dims)
{
    static const struct {
        dnnl_format_tag_t tag;
        int image;
    } known[] = {{dnnl_abcde, HL_IMAGE_NONE},         {dnnl_ABcde8b8a, HL_IMAGE_FWD8},  {dnnl_ABcde16b16a, HL_IMAGE_FWD16},
                 {dnnl_ABcde8a8b, HL_IMAGE_OI8},      {dnnl_ABcde16a16b, HL_IMAGE_OI16}, {dnnl_Acdeb8a, HL_IMAGE_LAST8},
                 {dnnl_Acdeb16a, HL_IMAGE_LAST16},    {dnnl_cdeba, HL_IMAGE_IO}};
    for (size_t i = 0; i < HL_COUNT(known); i++) {
        md m;
        if (!md_make(&m, ndims, dims, known[i].tag)) continue;
        bool same = dnnl_memory_desc_equal(weights, MD(m));
        md_drop(m);
        if (same) return known[i].image;
    }
    return -1;
}

static int64_t window_span(const hl_conv_shape *s, int i) { return (s->w.kernel[i] - 1) * s->w.dilation[i] + 1; }

/* Cells of the last window behind x. */
static int64_t high_padding(const hl_conv_shape *s, int i)
{
    return hl_max64(0, (s->y.ext[2 + i] - 1) * s->w.stride[i] + window_span(s, i) - s->x.ext[2 + i] - s->w.pad_lo[i]);
}

static bool make_descs(hl_onednn *p)
{
    const hl_conv_shape *s = &p->s;
    const int64_t *k = s->w.kernel;
    const dnnl_dims_t x = {s->n, s->in, s->x.ext[2], s->x.ext[3], s->x.ext[4]}, y = {s->n, s->out, s->y.ext[2], s->y.ext[3], s->y.ext[4]};
    const dnnl_dims_t w = {s->out, s->in, k[0], k[1], k[2]}, b = {s->out};
    for (int i = 0; i < 3; i++) {
        p->c.stride[i] = s->w.stride[i];
        p->c.dilate[i] = s->w.dilation[i] - 1;
        p->c.low[i] = s->w.pad_lo[i];
        p->c.high[i] = high_padding(s, i);
    }
    p->made[SRC] = md_make(&p->c.m[SRC], 5, x, layout_tag(s->x.layout));
    p->made[DST] = md_make(&p->c.m[DST], 5, y, layout_tag(s->y.layout));
    p->made[WEI] = md_make(&p->c.m[WEI], 5, w, dnnl_format_tag_any);
    p->made[BIA] = md_make(&p->c.m[BIA], 1, b, dnnl_a);
    return p->made[SRC] && p->made[DST] && p->made[WEI] && p->made[BIA];
}

static halo_status make_attr(hl_onednn *p, const halo_op_desc *desc)
{
    DNN_TRY(dnnl_primitive_attr_create(&p->attr));
    DNN_TRY(dnnl_primitive_attr_set_scratchpad_mode(p->attr, dnnl_scratchpad_mode_user));
    if (desc->act == HALO_ACT_NONE) return HALO_OK;
    dnnl_post_ops_t ops;
    DNN_TRY(dnnl_post_ops_create(&ops));
    dnnl_status_t st = dnn_leaky(ops, desc->act == HALO_ACT_RELU ? 0.0f : (float)desc->slope);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(p->attr, ops);
    dnnl_post_ops_destroy(ops);
    return st == dnnl_success ? HALO_OK : HALO_ERR_DEVICE;
}

static halo_status make_desc(hl_onednn *p)
{
    if (p->kind == HALO_OP_CONV_FWD) {
        DNN_TRY(dnn_forward(&p->pd, p->engine, &p->c, p->attr));
        return HALO_OK;
    }
    DNN_TRY(dnn_forward(&p->hint, p->engine, &p->c, p->attr));
    if (p->kind == HALO_OP_CONV_BWD_DATA)
        DNN_TRY(dnn_data(&p->pd, p->engine, &p->c, p->attr, p->hint));
    else
        DNN_TRY(dnn_weights(&p->pd, p->engine, &p->c, p->attr, p->hint));
    return HALO_OK;
}

static md_ref query(const hl_onednn *p, dnnl_query_t what) { return dnnl_primitive_desc_query_md((pd_ref)p->pd, what, 0); }

static const char *impl_name(const hl_onednn *p)
{
    const char *s = "";
    dnnl_primitive_desc_query((pd_ref)p->pd, dnnl_query_impl_info_str, 0, &s);
    return s;
}

/* Everything but the primitive itself: enough to be a candidate. HALO_ERR_UNSUPPORTED without a message where the library does not fit. */
static halo_status prepare(hl_onednn *p, const halo_op_desc *desc)
{
    const hl_conv_shape *s = &p->s;
    const dnnl_dims_t w = {s->out, s->in, s->w.kernel[0], s->w.kernel[1], s->w.kernel[2]};
    bool weights = p->kind == HALO_OP_CONV_BWD_WEIGHTS;
    p->c.bias = desc->t[weights ? HALO_DB : HALO_B].dtype != HALO_NONE && p->kind != HALO_OP_CONV_BWD_DATA;
    if (!make_descs(p)) return HALO_ERR_UNSUPPORTED;
    DNN_TRY(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    HL_TRY(make_attr(p, desc));
    HL_TRY(make_desc(p));
    md_ref m = query(p, weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
    p->image = image_of(m, 5, w);
    if (p->image < 0 || strstr(impl_name(p), "ref")) return HALO_ERR_UNSUPPORTED;
    p->bytes[SCRATCH] = (size_t)hl_round_up((int64_t)dnnl_memory_desc_get_size(query(p, dnnl_query_scratchpad_md)), 64);
    bool direct = p->image == HL_IMAGE_NONE && !p->accumulate;
    if (weights && !direct) p->bytes[WEI] = (size_t)hl_round_up((int64_t)dnnl_memory_desc_get_size(m), 64);
    if (weights && p->c.bias && p->accumulate) p->bytes[BIA] = (size_t)hl_round_up(s->out * (int64_t)sizeof(float), 64);
    return HALO_OK;
}

void hl_onednn_free(hl_onednn *p)
{
    if (!p) return;
    for (int i = 0; i < SLOTS; i++)
        if (p->memory[i]) dnnl_memory_destroy(p->memory[i]);
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    if (p->pd) dnnl_primitive_desc_destroy(p->pd);
    if (p->hint) dnnl_primitive_desc_destroy(p->hint);
    if (p->attr) dnnl_primitive_attr_destroy(p->attr);
    if (p->stream) dnnl_stream_destroy(p->stream);
    if (p->engine) dnnl_engine_destroy(p->engine);
    for (int i = 0; i < 4; i++)
        if (p->made[i]) md_drop(p->c.m[i]);
    free(p);
}

static bool no_margin(const halo_operand *o)
{
    static const int64_t none[3][2];
    return memcmp(o->margin, none, sizeof(none)) == 0;
}

/* The library stays within the instruction set that the device was told to use. */
static bool isa_fits(const hl_cpu_device *dev)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    if (dev->isa == HL_ISA_AVX512F) return true;
    if (dev->isa == HL_ISA_AVX2) return isa == dnnl_cpu_isa_avx2 || isa == dnnl_cpu_isa_avx || isa == dnnl_cpu_isa_sse41;
    return isa == dnnl_cpu_isa_sse41;
}

/* Padding past half the window: backward weights of 2.6.3 then loses terms (jit:avx512_core, kernel 4, stride 2, padding 3). */
static bool hangs_over(const hl_conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (2 * hl_max64(s->w.pad_lo[i], high_padding(s, i)) > window_span(s, i)) return true;
    return false;
}

/* Elements of a tensor of which the library is not asked: 32 GiB of f32. It then looks for blockings for minutes, for what is only outlined to tell that it does not fit. */
#define TOO_LARGE (INT64_C(1) << 33)

/* The roles of the pass, dense operands, nothing to read from margins, an activation that the library fuses. */
static bool fits(const halo_op_desc *desc, hl_conv_shape *s)
{
    halo_role x = desc->kind == HALO_OP_CONV_BWD_DATA ? HALO_DX : HALO_X, y = desc->kind == HALO_OP_CONV_FWD ? HALO_Y : HALO_DY;
    int64_t offset;
    if (!hl_conv_shape_of(desc, x, y, s)) return false;
    if (!hl_operand_dense(&s->x, &offset) || !hl_operand_dense(&s->y, &offset)) return false;
    if (hl_operand_box_elements(&s->x) > TOO_LARGE || hl_operand_box_elements(&s->y) > TOO_LARGE) return false;
    if (!no_margin(desc->kind == HALO_OP_CONV_BWD_DATA ? &s->y : &s->x)) return false;
    for (int i = 0; i < 3; i++)
        if (s->w.pad_lo[i] < 0) return false;
    if (desc->kind == HALO_OP_CONV_FWD && desc->act > HALO_ACT_RELU) return false;
    if (desc->kind == HALO_OP_CONV_BWD_DATA && (desc->act != HALO_ACT_NONE || desc->t[HALO_B].dtype != HALO_NONE)) return false;
    if (desc->kind == HALO_OP_CONV_BWD_WEIGHTS && hangs_over(s)) return false;
    return desc->kind == HALO_OP_CONV_BWD_WEIGHTS || !desc->accumulate;
}

static halo_status start(hl_cpu_device *dev, const halo_op_desc *desc, hl_onednn **out)
{
    hl_conv_shape s;
    hl_onednn *p;
    if (!isa_fits(dev) || !fits(desc, &s)) return HALO_ERR_UNSUPPORTED;
    HL_TRY(hl_calloc(dev->super.ctx, 1, sizeof(*p), "convolution plan", &p));
    p->dev = dev;
    p->kind = desc->kind;
    p->s = s;
    p->accumulate = desc->accumulate;
    halo_status st = prepare(p, desc);
    if (st == HALO_OK)
        *out = p;
    else
        hl_onednn_free(p);
    return st;
}

int hl_onednn_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    hl_onednn *p;
    int old = hl_blas_enter(dev);
    if (start(dev, desc, &p) != HALO_OK) {
        hl_blas_leave(old);
        return 0;
    }
    hl_cpu_candidate(&dev->super, "onednn", 0, out);
    snprintf(out->impl, sizeof(out->impl), "onednn:%.40s", impl_name(p));
    out->id = HL_ONEDNN_ID;
    out->scratch = p->bytes[SCRATCH] + p->bytes[WEI] + p->bytes[BIA] + 64;
    out->items = (double)hl_div_up(p->s.out, 16) * (double)p->s.n * (double)p->s.y.ext[HALO_D] * (double)p->s.y.ext[HALO_H];
    if (p->kind != HALO_OP_CONV_BWD_WEIGHTS && p->image != HL_IMAGE_NONE) {
        out->image = p->image;
        out->image_bytes = hl_image_bytes(p->image, p->s.out, p->s.in, p->s.w.kernel);
    }
    hl_onednn_free(p);
    hl_blas_leave(old);
    return 1;
}

static halo_status make_memories(hl_onednn *p)
{
    static const dnnl_query_t queries[3][4] = {
        {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md, dnnl_query_dst_md},
        {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
    };
    const dnnl_query_t *q = queries[p->kind - HALO_OP_CONV_FWD];
    DNN_TRY(dnnl_primitive_create(&p->primitive, p->pd));
    DNN_TRY(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    for (int i = SRC; i <= DST; i++) {
        md_ref m = i == BIA ? MD(p->c.m[BIA]) : query(p, q[i]);
        DNN_TRY(dnnl_memory_create(&p->memory[i], m, p->engine, DNNL_MEMORY_NONE));
    }
    DNN_TRY(dnnl_memory_create(&p->memory[SCRATCH], query(p, dnnl_query_scratchpad_md), p->engine, DNNL_MEMORY_NONE));
    return HALO_OK;
}

halo_status hl_onednn_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice, hl_onednn **out)
{
    hl_onednn *p = NULL;
    int old = hl_blas_enter(dev);
    halo_status st = start(dev, desc, &p);
    if (st == HALO_OK) st = make_memories(p);
    hl_blas_leave(old);
    if (st != HALO_OK) {
        hl_onednn_free(p);
        return hl_fail(dev->super.ctx, st, "oneDNN cannot make '%s'", choice->impl);
    }
    const halo_role b = p->kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DB : HALO_B;
    p->x_origin = hl_box_offset(&p->s.x);
    p->y_origin = hl_box_offset(&p->s.y);
    if (p->c.bias) p->b_origin = hl_box_offset(&desc->t[b]);
    if (p->kind == HALO_OP_CONV_BWD_WEIGHTS) p->dw_origin = hl_box_offset(&desc->t[HALO_DW]);
    *out = p;
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------------------------- run */

static dnnl_status_t execute(hl_onednn *p, void *const at[SLOTS])
{
    static const int names[3][4] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
                                    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST},
                                    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST}};
    dnnl_exec_arg_t args[SLOTS];
    int n = 0;
    for (int i = 0; i < SLOTS; i++) {
        if (i == BIA && !p->c.bias) continue;
        dnnl_status_t st = dnnl_memory_set_data_handle(p->memory[i], at[i]);
        if (st != dnnl_success) return st;
        args[n++] = (dnnl_exec_arg_t){i == SCRATCH ? DNNL_ARG_SCRATCHPAD : names[p->kind - HALO_OP_CONV_FWD][i], p->memory[i]};
    }
    dnnl_status_t st = dnnl_primitive_execute(p->primitive, p->stream, n, args);
    return st == dnnl_success ? dnnl_stream_wait(p->stream) : st;
}

halo_status hl_onednn_run(hl_onednn *p, const halo_op_args *args)
{
    bool data = p->kind == HALO_OP_CONV_BWD_DATA, weights = p->kind == HALO_OP_CONV_BWD_WEIGHTS;
    char *scratch = (char *)hl_round_up((int64_t)(intptr_t)args->scratch, 64);
    float *dw = weights ? (float *)args->ptr[HALO_DW] + p->dw_origin : NULL;
    float *b = p->c.bias ? (float *)args->ptr[weights ? HALO_DB : HALO_B] + p->b_origin : NULL;
    float *own_dw = p->bytes[WEI] ? (float *)(scratch + p->bytes[SCRATCH]) : NULL;
    float *own_db = p->bytes[BIA] ? (float *)(scratch + p->bytes[SCRATCH] + p->bytes[WEI]) : NULL;
    void *at[SLOTS] = {[SRC] = (float *)args->ptr[data ? HALO_DX : HALO_X] + p->x_origin,
                       [WEI] = own_dw ? own_dw : weights ? dw : args->ptr[HALO_WT],
                       [BIA] = own_db ? own_db : b,
                       [DST] = (float *)args->ptr[p->kind == HALO_OP_CONV_FWD ? HALO_Y : HALO_DY] + p->y_origin,
                       [SCRATCH] = scratch};
    int old = hl_blas_enter(p->dev);
    dnnl_status_t st = execute(p, at);
    hl_blas_leave(old);
    if (st != dnnl_success) return hl_fail(p->dev->super.ctx, HALO_ERR_DEVICE, "oneDNN convolution failed with status %d", (int)st);
    if (own_dw && p->image == HL_IMAGE_NONE)
        for (int64_t i = 0, n = p->s.out * p->s.in * p->s.w.kernel[0] * p->s.w.kernel[1] * p->s.w.kernel[2]; i < n; i++) dw[i] += own_dw[i];
    else if (own_dw)
        hl_image_unpack(p->dev->threads, p->image, p->s.out, p->s.in, p->s.w.kernel, own_dw, p->accumulate, dw);
    if (own_db)
        for (int64_t i = 0; i < p->s.out; i++) b[i] += own_db[i];
    return HALO_OK;
}

#else

int hl_onednn_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    (void)dev, (void)desc, (void)out;
    return 0;
}

halo_status hl_onednn_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice, struct hl_onednn **out)
{
    (void)desc, (void)out;
    return hl_fail(dev->super.ctx, HALO_ERR_UNSUPPORTED, "no '%s': built without oneDNN", choice->impl);
}

halo_status hl_onednn_run(struct hl_onednn *p, const halo_op_args *args)
{
    (void)p, (void)args;
    return HALO_ERR_UNSUPPORTED;
}

void hl_onednn_free(struct hl_onednn *p) { (void)p; }

#endif
