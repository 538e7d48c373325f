/* SPDX-License-Identifier: Apache-2.0 */
/* conv_image.c -- writes a weight image (layouts in conv.h) from the plain master (o, i, kd, kh, kw). */
#include "winograd.h"

typedef struct image_plan {
    const hl_cpu_device *dev;
    int image, lanes;
    int64_t out, in, kernel[3], terms, origin;
} image_plan;

static int image_lanes(int image) { return image == HL_IMAGE_IO ? 1 : (image - HL_IMAGE_FWD8) % 2 ? 16 : 8; }
static hl_image image_base(int image) { return (hl_image)(image_lanes(image) == 16 ? image - 1 : image); }

/* In blocks of inputs too. */
static bool image_squares(int image)
{
    hl_image base = image_base(image);
    return base == HL_IMAGE_FWD8 || base == HL_IMAGE_BWD8 || base == HL_IMAGE_OI8;
}

int64_t hl_image_terms(int image, int64_t in, const int64_t kernel[3])
{
    return (image_squares(image) ? hl_round_up(in, image_lanes(image)) : in) * kernel[0] * kernel[1] * kernel[2];
}

size_t hl_image_bytes(int image, int64_t o, int64_t i, const int64_t kernel[3])
{
    bool back = image_base(image) == HL_IMAGE_BWD8;
    int64_t out = back ? i : o, in = back ? o : i;
    return (size_t)(hl_round_up(out, image_lanes(image)) * hl_image_terms(image, in, kernel)) * sizeof(float);
}

/* Where in the image the weights of (out, in) begin, and how far apart its taps are (kw reversed for BWD). */
static int64_t image_place(int image, int64_t out, int64_t in, int64_t outs, int64_t ins, const int64_t kernel[3], int64_t *step)
{
    int64_t lanes = image_lanes(image), taps = kernel[0] * kernel[1] * kernel[2], l = out % lanes;
    int64_t block = out / lanes * hl_image_terms(image, ins, kernel) * lanes, square = block + in / lanes * taps * lanes * lanes;
    switch (image_base(image)) {
    case HL_IMAGE_IO: *step = ins * outs; return in * outs + out;
    case HL_IMAGE_LAST8: *step = ins * lanes; return block + in * lanes + l;
    case HL_IMAGE_PLAIN8: *step = lanes; return block + in * taps * lanes + l;
    case HL_IMAGE_OI8: *step = lanes * lanes; return square + l * lanes + in % lanes;
    default: *step = lanes * lanes; return square + in % lanes * lanes + l;
    }
}

/* All taps of (out, in), zeros where these are padding. */
static void image_pair(const image_plan *p, const float *w, int64_t out, int64_t in, float *image)
{
    const int64_t *k = p->kernel, taps = k[0] * k[1] * k[2];
    bool back = image_base(p->image) == HL_IMAGE_BWD8, real = out < p->out && in < p->in;
    const float *from = w + (back ? in * p->out + out : out * p->in + in) * taps;
    int64_t step;
    float *to = image + image_place(p->image, out, in, p->out, p->in, k, &step);
    for (int64_t t = 0; t < taps; t++) {
        int64_t u = back ? t - t % k[2] + k[2] - 1 - t % k[2] : t;
        to[u * step] = real ? from[t] : 0.0f;
    }
}

void hl_image_unpack(int threads, int image, int64_t o, int64_t i, const int64_t kernel[3], const float *from, bool accumulate, float *dw)
{
    int64_t taps = kernel[0] * kernel[1] * kernel[2];
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t a = 0; a < o; a++)
        for (int64_t b = 0; b < i; b++) {
            int64_t step;
            const float *x = from + image_place(image, a, b, o, i, kernel, &step);
            float *to = dw + (a * i + b) * taps;
            for (int64_t t = 0; t < taps; t++) to[t] = accumulate ? to[t] + x[t * step] : x[t * step];
        }
}

enum { STRIP = 16 }; /* of inputs, for a block of outputs: what is read stays in the cache until it is written */

static int image_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    if (desc->t[HALO_X].dtype != HALO_F32) return 0;
    if (!hl_wino_is_image(desc->image) && (desc->image < HL_IMAGE_FWD8 || desc->image >= HL_IMAGES)) return 0;
    const int64_t *e = desc->t[HALO_X].ext;
    hl_cpu_candidate(dev, "pack", (double)(hl_div_up(e[HALO_N], STRIP) * hl_div_up(e[HALO_C], STRIP)), out);
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
    p->origin = hl_box_offset(m);
    *plan = (halo_plan *)p;
    if (hl_wino_is_image(p->image)) {
        p->out = m->ext[HALO_N];
        p->in = m->ext[HALO_C];
        return HALO_OK;
    }
    p->lanes = image_lanes(desc->image);
    bool back = image_base(desc->image) == HL_IMAGE_BWD8;
    p->out = m->ext[back ? HALO_C : HALO_N];
    p->in = m->ext[back ? HALO_N : HALO_C];
    for (int i = 0; i < 3; i++) p->kernel[i] = m->ext[HALO_D + i];
    p->terms = hl_image_terms(p->image, p->in, p->kernel);
    return HALO_OK;
}

static halo_status image_run(halo_plan *plan, const halo_op_args *args)
{
    const image_plan *p = (const image_plan *)plan;
    const float *w = (const float *)args->ptr[HALO_X] + p->origin;
    float *image = args->ptr[HALO_Y];
    if (hl_wino_is_image(p->image)) {
        hl_wino_image_write(p->dev, p->image, p->out, p->in, w, image);
        return HALO_OK;
    }
    int64_t lanes = p->lanes, outs = hl_round_up(p->out, lanes), ins = image_squares(p->image) ? hl_round_up(p->in, lanes) : p->in;
    const int64_t strip = STRIP;
    int64_t strips = hl_div_up(ins, strip);
#pragma omp parallel for num_threads(p->dev->threads) schedule(static)
    for (int64_t b = 0; b < hl_div_up(outs, strip) * strips; b++) {
        int64_t out0 = b / strips * strip, in0 = b % strips * strip;
        for (int64_t in = in0; in < hl_min64(in0 + strip, ins); in++)
            for (int64_t out = out0; out < hl_min64(out0 + strip, outs); out++) image_pair(p, w, out, in, image);
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
