/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_bwd_data.c -- dx[n,i,q] (+)= sum over o,p,k with p stride - pad_lo + k dilation = q of w[o,i,k] dy[n,o,p], as a gather from dy. Used forward, as
 * a transposed convolution, it takes a bias and an activation as any gather does.
 *
 * With stride s the positions q fall into s residue classes per dimension. In class r, q = r + s j, a tap k takes part when s divides
 * r + pad_lo - k dilation, and then reads dy at p = j + (r + pad_lo - k dilation) / s: each class is a convolution of stride 1 with its own taps, and
 * no product with an inserted zero is ever computed. Classes without taps only clear, or hold act(bias).
 */
#include "winograd.h"

enum { MOST_PHASES = 4096 };

typedef struct bwd_plan {
    struct hl_onednn *library; /* or */
    hl_wino *winograd;         /* else: */
    hl_gather *gather;
    bool bias;
    int64_t bias_origin;
} bwd_plan;

static void class_dim(const hl_conv_shape *s, int i, int64_t r, hl_gather_dim *d)
{
    int64_t stride = s->w.stride[i], ext = s->x.ext[HALO_D + i];
    *d = (hl_gather_dim){.n = r < ext ? hl_div_up(ext - r, stride) : 0, .out0 = r, .out_step = stride, .in_step = 1};
    for (int64_t k = s->w.kernel[i] - 1; k >= 0; k--) { /* from the last: offsets ascend */
        int64_t at = r + s->w.pad_lo[i] - k * s->w.dilation[i];
        if (at % stride != 0) continue;
        d->off[d->taps] = at / stride;
        d->k[d->taps++] = i == 2 ? s->w.kernel[2] - 1 - k : k; /* the image is reversed along w */
    }
}

/* One phase per residue class; NULL when there are too many. */
static hl_gather_dim (*make_classes(const hl_conv_shape *s, int *phases))[3]
{
    int64_t c[3], n = 1;
    for (int i = 0; i < 3; i++) {
        c[i] = hl_min64(s->w.stride[i], s->x.ext[HALO_D + i]);
        if (!hl_mul64(n, c[i], &n) || n > MOST_PHASES) return NULL;
    }
    hl_gather_dim(*dims)[3] = calloc((size_t)n, sizeof(*dims));
    if (!dims) return NULL;
    for (int64_t k = 0; k < n; k++) {
        class_dim(s, 0, k / (c[1] * c[2]), &dims[k][0]);
        class_dim(s, 1, k / c[2] % c[1], &dims[k][1]);
        class_dim(s, 2, k % c[2], &dims[k][2]);
    }
    *phases = (int)n;
    return dims;
}

/* On success the caller frees *dims. */
static bool bwd_spec(const hl_cpu_device *dev, const halo_op_desc *desc, hl_conv_shape *s, hl_gather_dim (**dims)[3], hl_gather_spec *spec)
{
    if (!hl_conv_shape_of(desc, HALO_DX, HALO_DY, s) || !hl_conv_kern_for(dev, s->x.layout) || s->x.layout != s->y.layout) return false;
    if (desc->accumulate && (hl_has(desc, HALO_B) || desc->act != HALO_ACT_NONE)) return false;
    if (hl_has(desc, HALO_B) && desc->t[HALO_B].dtype != HALO_F32) return false;
    int phases = 0;
    *dims = make_classes(s, &phases);
    if (!*dims) return false;
    *spec = (hl_gather_spec){.in = s->y,
                             .out = s->x,
                             .image = hl_image_of(HL_IMAGE_BWD8, (int)hl_layout_block(s->x.layout)),
                             .phases = phases,
                             .dims = (const hl_gather_dim(*)[3]) * dims,
                             .accumulate = desc->accumulate,
                             .act = desc->act,
                             .slope = (float)desc->slope};
    memcpy(spec->kernel, s->w.kernel, sizeof(spec->kernel));
    return true;
}

static bool bwd_candidate(hl_cpu_device *dev, const hl_conv_shape *s, const hl_gather_spec *spec, halo_candidate *out)
{
    static const char *const names[] = {"direct", "direct-pad", "direct-stream", "direct-pad-stream"};
    int id = (spec->pad ? HL_GATHER_PADDED : 0) | (spec->stream ? HL_GATHER_STREAMED : 0);
    hl_gather *g;
    if (hl_gather_make(dev, spec, &g) != HALO_OK) return false;
    hl_cpu_candidate(&dev->super, names[id], 1, out);
    hl_gather_share(g, out);
    out->id = id;
    out->scratch = hl_gather_scratch(g);
    out->image = spec->image;
    out->image_bytes = hl_image_bytes(spec->image, s->out, s->in, s->w.kernel);
    hl_gather_free(g);
    return true;
}

static int bwd_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    hl_conv_shape s;
    hl_gather_dim(*dims)[3];
    hl_gather_spec spec;
    int n = hl_wino_candidates(hl_cpu(dev), desc, out);
    if (bwd_spec(hl_cpu(dev), desc, &s, &dims, &spec)) {
        bool inside = hl_gather_inside(&spec), large = hl_gather_large(&spec);
        for (int i = 0; i < 4; i++) {
            spec.stream = i < 2;
            spec.pad = i % 2;
            if ((spec.stream && !large) || (spec.pad && inside)) continue;
            n += bwd_candidate(hl_cpu(dev), &s, &spec, &out[n]);
        }
        free(dims);
    }
    return n + hl_onednn_candidates(hl_cpu(dev), desc, &out[n]);
}

static halo_status make_gather(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, hl_gather **out)
{
    hl_conv_shape s;
    hl_gather_dim(*dims)[3];
    hl_gather_spec spec;
    if (!bwd_spec(hl_cpu(dev), desc, &s, &dims, &spec)) return hl_fail(dev->ctx, HALO_ERR_UNSUPPORTED, "no '%s' for this convolution", choice->impl);
    spec.pad = choice->id & HL_GATHER_PADDED;
    spec.stream = choice->id & HL_GATHER_STREAMED;
    halo_status st = hl_gather_make(hl_cpu(dev), &spec, out);
    free(dims);
    return st;
}

static void bwd_destroy(halo_plan *plan)
{
    bwd_plan *p = (bwd_plan *)plan;
    if (!p) return;
    hl_onednn_free(p->library);
    hl_wino_free(p->winograd);
    hl_gather_free(p->gather);
    free(p);
}

static halo_status bwd_make(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    bwd_plan *p;
    halo_status st;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "convolution plan", &p));
    if (choice->id >= HL_ONEDNN_ID)
        HL_GOTO(st, hl_onednn_make(hl_cpu(dev), desc, choice, &p->library), undo_plan);
    else if (hl_wino_is(choice))
        HL_GOTO(st, hl_wino_make(hl_cpu(dev), desc, choice, &p->winograd), undo_plan);
    else
        HL_GOTO(st, make_gather(dev, desc, choice, &p->gather), undo_plan);
    p->bias = hl_has(desc, HALO_B);
    if (p->bias) p->bias_origin = hl_box_offset(&desc->t[HALO_B]);
    *plan = (halo_plan *)p;
    return HALO_OK;

undo_plan:
    bwd_destroy((halo_plan *)p);
    return st;
}

static halo_status bwd_run(halo_plan *plan, const halo_op_args *args)
{
    const bwd_plan *p = (const bwd_plan *)plan;
    if (p->library) return hl_onednn_run(p->library, args);
    if (p->winograd) {
        hl_wino_run(p->winograd, args);
        return HALO_OK;
    }
    const float *bias = p->bias ? (const float *)args->ptr[HALO_B] + p->bias_origin : NULL;
    hl_gather_run(p->gather, args->ptr[HALO_DY], args->ptr[HALO_WT], bias, args->ptr[HALO_DX], NULL, args->scratch);
    return HALO_OK;
}

const halo_op_class hl_cpu_conv_bwd_data = {
    .kind = HALO_OP_CONV_BWD_DATA,
    .candidates = bwd_candidates,
    .plan = bwd_make,
    .run = bwd_run,
    .destroy = bwd_destroy,
};
