/* SPDX-License-Identifier: Apache-2.0 */
/* conv_shape.c -- what the convolution classes have in common: reading a description, choosing a table of kernels. */
#include "conv.h"

#ifdef HAVE_CONFIG_H
#include "halo_build.h"
#endif

extern const hl_conv_kern hl_conv_kern_generic_8, hl_conv_kern_generic_16;
#ifdef HAVE_KERN_AVX2
extern const hl_conv_kern hl_conv_kern_avx2_8, hl_conv_kern_avx2_16;
#endif
#ifdef HAVE_KERN_AVX512F
extern const hl_conv_kern hl_conv_kern_avx512f_16;
#endif

const hl_conv_kern *hl_conv_kern_find(hl_isa isa, int lanes)
{
    if (lanes != 8 && lanes != 16) return NULL;
    (void)isa; /* a build without vector instructions */
#ifdef HAVE_KERN_AVX512F
    if (isa == HL_ISA_AVX512F && lanes == 16) return &hl_conv_kern_avx512f_16;
#endif
#ifdef HAVE_KERN_AVX2
    if (isa != HL_ISA_GENERIC) return lanes == 8 ? &hl_conv_kern_avx2_8 : &hl_conv_kern_avx2_16;
#endif
    return lanes == 8 ? &hl_conv_kern_generic_8 : &hl_conv_kern_generic_16;
}

const hl_conv_kern *hl_conv_kern_for(const hl_cpu_device *dev, halo_layout layout)
{
    return hl_conv_kern_find(dev->isa, (int)hl_layout_block(layout));
}

bool hl_conv_shape_of(const halo_op_desc *desc, halo_role x, halo_role y, hl_conv_shape *s)
{
    *s = (hl_conv_shape){.x = desc->t[x], .y = desc->t[y], .w = desc->window};
    if (s->x.dtype != HALO_F32 || s->y.dtype != HALO_F32 || desc->t[HALO_AUX].dtype != HALO_NONE) return false;
    if (!hl_operand_valid(&s->x) || !hl_operand_valid(&s->y) || s->x.ext[HALO_N] != s->y.ext[HALO_N]) return false;
    for (int i = 0; i < 3; i++) {
        const halo_window *w = &s->w;
        if (w->kernel[i] < 1 || w->kernel[i] > HL_CONV_TAPS || w->stride[i] < 1 || w->dilation[i] < 1) return false;
        int64_t reach;
        if (!hl_mul64(w->kernel[i], w->dilation[i], &reach) || reach > INT32_MAX || w->stride[i] > INT32_MAX) return false;
        if (w->pad_lo[i] > INT32_MAX || w->pad_lo[i] < INT32_MIN) return false;
    }
    s->n = s->x.ext[HALO_N];
    s->in = s->x.ext[HALO_C];
    s->out = s->y.ext[HALO_C];
    return true;
}

/* ----------------------------------------------------------------------------------------------------------------- padding */

/* Plane `i` of (sample, channel block, d) of the padded allocation. */
static void pad_plane(const halo_operand *from, const halo_operand *to, const float *in, float *out, int64_t i)
{
    hl_strides fs = hl_operand_strides(from), ts = hl_operand_strides(to);
    int64_t depth = to->alloc[HALO_D], block = ts.block, blocks = hl_div_up(to->ext[HALO_C], block);
    int64_t d = i % depth - to->lo[HALO_D], b = i / depth % blocks, n = i / depth / blocks;
    size_t live = (size_t)hl_min64(block, to->ext[HALO_C] - b * block) * sizeof(float);
    int64_t lo[3], hi[3];
    float *plane = out + i * ts.s[HALO_D];
    memset(plane, 0, (size_t)ts.s[HALO_D] * sizeof(float));
    for (int k = 0; k < 3; k++) {
        lo[k] = hl_max64(-to->lo[HALO_D + k], -from->margin[k][0]);
        hi[k] = hl_min64(to->alloc[HALO_D + k] - to->lo[HALO_D + k], from->ext[HALO_D + k] + from->margin[k][1]);
    }
    if (d < lo[0] || d >= hi[0]) return;
    const float *cell = in + hl_box_offset(from) + hl_offset(&fs, n, b * block, d, 0, 0);
    for (int64_t h = lo[1]; h < hi[1]; h++)
        for (int64_t w = lo[2]; w < hi[2]; w++)
            memcpy(plane + (h + to->lo[HALO_H]) * ts.s[HALO_H] + (w + to->lo[HALO_W]) * ts.s[HALO_W],
                   cell + h * fs.s[HALO_H] + w * fs.s[HALO_W], live);
}

void hl_conv_pad(const hl_cpu_device *dev, const halo_operand *from, const halo_operand *to, const float *in, float *out)
{
    int64_t block = hl_operand_strides(to).block, planes = to->alloc[HALO_N] * hl_div_up(to->ext[HALO_C], block) * to->alloc[HALO_D];
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < planes; i++) pad_plane(from, to, in, out, i);
}
