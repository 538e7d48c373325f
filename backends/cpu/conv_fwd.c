/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_fwd.c -- y[n,o,p] = act(b[o] + sum_{i,k} w[o,i,k] x[n,i, p stride - pad_lo + k dilation]), as a gather of one phase.
 *
 * Candidates: "direct" reads x where it is (near the border of what may be read it leaves out taps or copies edges), "direct-pad" copies x with a
 * margin of zeros first, so that tiles at edges are like all others; "stream" stores a large y past the caches. Before them, where the device may offer
 * them, Winograd's (winograd.c).
 */
#include "winograd.h"

typedef struct fwd_plan {
    struct hl_onednn *library; /* or */
    hl_wino *winograd;         /* else: */
    hl_gather *gather;
    bool bias;
    int64_t bias_origin;
} fwd_plan;

static void fwd_dims(const hl_conv_shape *s, hl_gather_dim dim[3])
{
    for (int i = 0; i < 3; i++) {
        dim[i] = (hl_gather_dim){.n = s->y.ext[HALO_D + i], .out_step = 1, .in_step = s->w.stride[i], .taps = (int)s->w.kernel[i]};
        for (int t = 0; t < dim[i].taps; t++) {
            dim[i].off[t] = t * s->w.dilation[i] - s->w.pad_lo[i];
            dim[i].k[t] = t;
        }
    }
}

static int fwd_image(halo_layout x, int lanes)
{
    return hl_image_of(x == HALO_NDHWC ? HL_IMAGE_LAST8 : x == HALO_NCDHW ? HL_IMAGE_PLAIN8 : HL_IMAGE_FWD8, lanes);
}

static bool fwd_spec(const hl_cpu_device *dev, const halo_op_desc *fused, hl_conv_shape *s, hl_gather_dim dim[3], hl_gather_spec *spec)
{
    hl_conv_pool pool;
    halo_op_desc conv, *desc = &conv;
    if (!hl_conv_pool_of(fused, &pool, desc)) return false;
    if (!hl_conv_shape_of(desc, HALO_X, HALO_Y, s) || !hl_conv_kern_for(dev, s->y.layout)) return false;
    if (hl_layout_block(s->x.layout) > 1 && s->x.layout != s->y.layout) return false;
    fwd_dims(s, dim);
    *spec = (hl_gather_spec){.in = s->x,
                             .out = s->y,
                             .image = fwd_image(s->x.layout, (int)hl_layout_block(s->y.layout)),
                             .phases = 1,
                             .dims = (const hl_gather_dim(*)[3])dim,
                             .accumulate = desc->accumulate,
                             .act = desc->act,
                             .slope = (float)desc->slope,
                             .pool = pool};
    memcpy(spec->kernel, s->w.kernel, sizeof(spec->kernel));
    return true;
}

/* Fills one candidate from a trial plan; false when it cannot be made. */
static bool fwd_candidate(hl_cpu_device *dev, const hl_conv_shape *s, const hl_gather_spec *spec, halo_candidate *out)
{
    static const char *const names[] = {"direct", "direct-pad", "direct-stream", "direct-pad-stream", "direct-pool", "direct-pad-pool"};
    int id = (spec->pad ? HL_GATHER_PADDED : 0) | (spec->stream ? HL_GATHER_STREAMED : 0);
    hl_gather *g;
    if (hl_gather_make(dev, spec, &g) != HALO_OK) return false;
    hl_cpu_candidate(&dev->super, names[spec->pool.cells ? 4 + spec->pad : id], 1, out);
    hl_gather_share(g, out);
    out->id = id;
    out->scratch = hl_gather_scratch(g);
    out->image = spec->image;
    out->image_bytes = hl_image_bytes(spec->image, s->out, s->in, s->w.kernel);
    hl_gather_free(g);
    return true;
}

static int fwd_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    hl_conv_shape s;
    hl_gather_dim dim[3];
    hl_gather_spec spec;
    int n = hl_wino_candidates(hl_cpu(dev), desc, out);
    if (fwd_spec(hl_cpu(dev), desc, &s, dim, &spec)) {
        bool inside = hl_gather_inside(&spec), large = hl_gather_large(&spec) && !spec.pool.cells;
        for (int i = 0; i < 4; i++) {
            spec.stream = i < 2;
            spec.pad = i % 2;
            if ((spec.stream && !large) || (spec.pad && inside)) continue;
            n += fwd_candidate(hl_cpu(dev), &s, &spec, &out[n]);
        }
    }
    return desc->kind == HALO_OP_CONV_POOL_FWD ? n : n + hl_onednn_candidates(hl_cpu(dev), desc, &out[n]);
}

static halo_status fwd_make(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    hl_conv_shape s;
    hl_gather_dim dim[3];
    hl_gather_spec spec;
    fwd_plan *p;
    halo_status st;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "convolution plan", &p));
    if (choice->id >= HL_ONEDNN_ID) {
        HL_GOTO(st, hl_onednn_make(hl_cpu(dev), desc, choice, &p->library), undo_plan);
        *plan = (halo_plan *)p;
        return HALO_OK;
    }
    if (hl_wino_is(choice)) {
        HL_GOTO(st, hl_wino_make(hl_cpu(dev), desc, choice, &p->winograd), undo_plan);
        *plan = (halo_plan *)p;
        return HALO_OK;
    }
    HL_BUG_UNLESS(fwd_spec(hl_cpu(dev), desc, &s, dim, &spec));
    spec.pad = choice->id & HL_GATHER_PADDED;
    spec.stream = choice->id & HL_GATHER_STREAMED;
    HL_GOTO(st, hl_gather_make(hl_cpu(dev), &spec, &p->gather), undo_plan);
    p->bias = desc->t[HALO_B].dtype != HALO_NONE;
    if (p->bias) p->bias_origin = hl_box_offset(&desc->t[HALO_B]);
    *plan = (halo_plan *)p;
    return HALO_OK;

undo_plan:
    free(p);
    return st;
}

static halo_status fwd_run(halo_plan *plan, const halo_op_args *args)
{
    const fwd_plan *p = (const fwd_plan *)plan;
    if (p->library) return hl_onednn_run(p->library, args);
    if (p->winograd) {
        hl_wino_run(p->winograd, args);
        return HALO_OK;
    }
    const float *bias = p->bias ? (const float *)args->ptr[HALO_B] + p->bias_origin : NULL;
    hl_gather_run(p->gather, args->ptr[HALO_X], args->ptr[HALO_WT], bias, args->ptr[HALO_Y], args->ptr[HALO_AUX], args->scratch);
    return HALO_OK;
}

static void fwd_destroy(halo_plan *plan)
{
    fwd_plan *p = (fwd_plan *)plan;
    if (!p) return;
    hl_onednn_free(p->library);
    hl_wino_free(p->winograd);
    hl_gather_free(p->gather);
    free(p);
}

const halo_op_class hl_cpu_conv_fwd = {
    .kind = HALO_OP_CONV_FWD,
    .candidates = fwd_candidates,
    .plan = fwd_make,
    .run = fwd_run,
    .destroy = fwd_destroy,
};

/* With pooling in the same pass (conv_pool.c). */
const halo_op_class hl_cpu_conv_pool_fwd = {
    .kind = HALO_OP_CONV_POOL_FWD,
    .candidates = fwd_candidates,
    .plan = fwd_make,
    .run = fwd_run,
    .destroy = fwd_destroy,
};
