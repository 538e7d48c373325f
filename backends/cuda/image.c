/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c -- images of weights: the plain master (o,i,kd,kh,kw) in the type of the activations, and, where these have channels last, in the
 * order (o,kd,kh,kw,i), which is that of a tensor with channels last whose samples are o. Dense layers read images in the plain order.
 */
#include "conv.h"

typedef struct image_plan {
    hl_cuda_plan super;
    hl_copying c;
} image_plan;

/* 1 + type + TYPES * channels last. */
enum { TYPES = 3 };
static const halo_dtype types[TYPES] = {HALO_F32, HALO_F16, HALO_BF16};

int hl_cuda_image(halo_dtype weights, halo_dtype type, halo_layout layout)
{
    const bool last = layout == HALO_NDHWC;
    if (weights == type && !last) return 0;
    for (int i = 0; i < TYPES; i++)
        if (types[i] == type) return 1 + i + (last ? TYPES : 0);
    return 0;
}

static bool known(const halo_op_desc *d, halo_operand *to)
{
    const int n = d->image - 1;
    size_t bytes;
    if (n < 0 || n >= 2 * TYPES || !hl_operand_valid(&d->t[HALO_X])) return false;
    *to = hl_operand_whole(types[n % TYPES], n >= TYPES ? HALO_NDHWC : HALO_NCDHW, d->t[HALO_X].ext);
    return d->t[HALO_Y].dtype == HALO_U8 && hl_operand_bytes(to, &bytes) && hl_operand_box_elements(&d->t[HALO_Y]) == (int64_t)bytes;
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    halo_operand to;
    (void)dev;
    return known(d, &to) ? hl_cuda_offer("cuda", 0, out) : 0;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    image_plan *p;
    halo_operand to;
    (void)choice;
    HL_BUG_UNLESS(known(d, &to));
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    p->c = hl_cuda_copying(&d->t[HALO_X], &to);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const image_plan *p = (const image_plan *)plan;
    HL_CUDA(p->super.dev, hl_cuda_convert(p->super.dev->compute, &p->c, hl_cuda_ptr(&p->super, args, HALO_X), hl_cuda_ptr(&p->super, args, HALO_Y)));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_conv_image, HALO_OP_CONV_IMAGE, candidates, make, run);
