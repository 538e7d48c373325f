/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upsample.h -- which cells linear upsampling by two takes, along one axis: pure arithmetic that backends share.
 *
 * With u = q + pad_lo - 1, counted as twice the cells of x's box, y[q] = x[i-1]/4 + 3 x[i]/4 where u = 2 i, and 3 x[i]/4 + x[i+1]/4 where u = 2 i + 1. Of stride 1 y[q] = x[q + pad_lo].
 * Cells beyond the volume are the last one. So it is a transposed convolution with the kernel [1 3 3 1]/4, stride 2, pad_lo 1 where boxes begin together.
 */
#ifndef HL_UPSAMPLE_H
#define HL_UPSAMPLE_H

#include "tensor/operand.h"

typedef struct hl_upsample {
    int64_t stride, pad_lo;
    int64_t lo, hi; /* the volume's cells, counted from x's box */
} hl_upsample;

typedef struct hl_upsample_taps {
    int64_t cell[2];
    float weight[2];
} hl_upsample_taps;

/* Axis a of [d h w]; false where the window is not one of these, or the boxes cannot be of one volume. */
static inline bool hl_upsample_axis(const halo_op_desc *d, int a, int64_t x_ext, int64_t y_ext, hl_upsample *out)
{
    const halo_window *w = &d->window;
    const bool two = w->stride[a] == 2;
    const int64_t whole = d->global_ext[HALO_D + a];
    if (w->kernel[a] != (two ? 4 : 1) || w->dilation[a] != 1 || w->stride[a] < 1 || w->stride[a] > 2) return false;
    *out = (hl_upsample){w->stride[a], w->pad_lo[a], whole > 0 ? -d->global_lo[HALO_D + a] : 0, whole > 0 ? whole - d->global_lo[HALO_D + a] : x_ext};
    return x_ext > 0 && y_ext > 0 && out->lo <= 0 && out->hi >= x_ext;
}

static inline int64_t hl_upsample_clamp(const hl_upsample *s, int64_t p) { return p < s->lo ? s->lo : p >= s->hi ? s->hi - 1 : p; }

static inline hl_upsample_taps hl_upsample_at(const hl_upsample *s, int64_t q)
{
    if (s->stride == 1) return (hl_upsample_taps){{q + s->pad_lo, q + s->pad_lo}, {1, 0}};
    int64_t u = q + s->pad_lo - 1, i = u >= 0 ? u / 2 : -((1 - u) / 2);
    bool odd = u - 2 * i != 0;
    return (hl_upsample_taps){{hl_upsample_clamp(s, odd ? i : i - 1), hl_upsample_clamp(s, odd ? i + 1 : i)}, {odd ? 0.75f : 0.25f, odd ? 0.25f : 0.75f}};
}

/* Whether y has a cell q. */
static inline bool hl_upsample_inside(const hl_upsample *s, int64_t q)
{
    int64_t u = q + s->pad_lo - (s->stride == 2);
    return u >= s->stride * s->lo && u < s->stride * s->hi;
}

#endif
