/* SPDX-License-Identifier: Apache-2.0 */
/* conv_image.c -- writes a weight image (layouts in conv.h) from the plain master (o, i, kd, kh, kw). */
#include "conv.h"

typedef struct image_plan {
    const hl_cpu_device *dev;
    int image, lanes;
    int64_t out, in, kernel[3], terms, origin;
} image_plan;

static hl_image image_base(int image)
{
    return (hl_image)(image - (image - HL_IMAGE_FWD8) % 2);
}

static int image_lanes(int image) { return (image - HL_IMAGE_FWD8) % 2 ? 16 : 8; }

int64_t hl_image_terms(int image, int64_t in, const int64_t kernel[3])
{
    hl_image base = image_base(image);
    bool blocked = base == HL_IMAGE_FWD8 || base == HL_IMAGE_BWD8;
    return (blocked ? hl_round_up(in, image_lanes(image)) : in) * kernel[0] * kernel[1] * kernel[2];
}

size_t hl_image_bytes(int image, int64_t o, int64_t i, const int64_t kernel[3])
{
    bool back = image_base(image) == HL_IMAGE_BWD8;
    int64_t out = back ? i : o, in = back ? o : i;
    return (size_t)(hl_round_up(out, image_lanes(image)) * hl_image_terms(image, in, kernel)) * sizeof(float);
}

/* The term of (in, kd, kh, kw) among those of an output. */
static int64_t image_term(const image_plan *p, int64_t in, int64_t kd, int64_t kh, int64_t kw)
{
    const int64_t *k = p->kernel;
    hl_image base = image_base(p->image);
    if (base == HL_IMAGE_LAST8) return ((kd * k[1] + kh) * k[2] + kw) * p->in + in;
    if (base == HL_IMAGE_PLAIN8) return ((in * k[0] + kd) * k[1] + kh) * k[2] + kw;
    if (base == HL_IMAGE_BWD8) kw = k[2] - 1 - kw;
    return (((in / p->lanes * k[0] + kd) * k[1] + kh) * k[2] + kw) * p->lanes + in % p->lanes;
}

/* The part of one output block that comes from inputs [in0, in1). */
static void image_block(const image_plan *p, const float *w, int64_t block, int64_t in0, int64_t in1, float *image)
{
    const int64_t *k = p->kernel, taps = k[0] * k[1] * k[2], lanes = p->lanes;
    bool back = image_base(p->image) == HL_IMAGE_BWD8;
    int64_t step_out = back ? taps : p->in * taps, step_in = back ? p->out * taps : taps;
    float *to = image + block * p->terms * lanes;
    const float *from = w + block * lanes * step_out;
    int64_t live = hl_min64(lanes, p->out - block * lanes);
    for (int64_t in = in0; in < in1; in++)
        for (int64_t t = 0; t < taps; t++) {
            float *v = to + image_term(p, in, t / (k[1] * k[2]), t / k[2] % k[1], t % k[2]) * lanes;
            bool real = in < p->in;
            for (int64_t l = 0; l < lanes; l++) v[l] = real && l < live ? from[l * step_out + in * step_in + t] : 0.0f;
        }
}

static int image_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    if (desc->t[HALO_X].dtype != HALO_F32 || desc->image < HL_IMAGE_FWD8 || desc->image >= HL_IMAGE_ONEDNN) return 0;
    hl_cpu_candidate(dev, "pack", (double)desc->t[HALO_X].ext[HALO_N], out);
    return 1;
}

static halo_status image_make(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    (void)choice;
    image_plan *p;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "weight image plan", &p));
    const halo_operand *m = &desc->t[HALO_X];
    p->dev = hl_cpu(dev);
    p->image = desc->image;
    p->lanes = image_lanes(desc->image);
    bool back = image_base(desc->image) == HL_IMAGE_BWD8;
    p->out = m->ext[back ? HALO_C : HALO_N];
    p->in = m->ext[back ? HALO_N : HALO_C];
    for (int i = 0; i < 3; i++) p->kernel[i] = m->ext[HALO_D + i];
    p->terms = hl_image_terms(p->image, p->in, p->kernel);
    p->origin = hl_box_offset(m);
    *plan = (halo_plan *)p;
    return HALO_OK;
}

static halo_status image_run(halo_plan *plan, const halo_op_args *args)
{
    const image_plan *p = (const image_plan *)plan;
    const float *w = (const float *)args->ptr[HALO_X] + p->origin;
    float *image = args->ptr[HALO_Y];
    int64_t blocks = hl_div_up(p->out, p->lanes), parts = hl_div_up(p->in, p->lanes), in = p->in;
    hl_image base = image_base(p->image);
    if (base == HL_IMAGE_FWD8 || base == HL_IMAGE_BWD8) in = parts * p->lanes;
#pragma omp parallel for num_threads(p->dev->threads) schedule(static)
    for (int64_t i = 0; i < blocks * parts; i++) {
        int64_t in0 = i % parts * p->lanes;
        image_block(p, w, i / parts, in0, hl_min64(in0 + p->lanes, in), image);
    }
    return HALO_OK;
}

static void image_destroy(halo_plan *plan) { free(plan); }

const halo_op_class hl_cpu_conv_image = {
    .kind = HALO_OP_CONV_IMAGE,
    .candidates = image_candidates,
    .plan = image_make,
    .run = image_run,
    .destroy = image_destroy,
};
