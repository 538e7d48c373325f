/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.h -- Winograd convolutions of the cpu backend: see winograd.c. Candidates of the convolution
 * classes beside the direct kernels. */
#ifndef HL_CPU_WINOGRAD_H
#define HL_CPU_WINOGRAD_H

#include "backends/cpu/conv.h"
#include "backends/cpu/kern/winograd.h"

/* Candidate ids: the tile's side m comes on top. */
enum { HL_WINO_ID = 40, HL_WINO_IDS = 10 };
static inline bool hl_wino_is(const halo_candidate *c)
{
    return c->id >= HL_WINO_ID && c->id < HL_WINO_ID + HL_WINO_IDS;
}

/* 3^3, stride and dilation 1 */
bool hl_wino_window(const halo_window *w);
/* The cells of an a^3 tile that are in `valid`, x pointing to its first, which is cell from[], into a cube of
 * zeros. */
void hl_wino_cut(const hl_strides *s, const int64_t (*valid)[2], int64_t a, const float *x,
                 const int64_t *from, float *cube);

/* Fill `out` for a forward or backward-data convolution, best guess first; return how many. */
int hl_wino_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out);

typedef struct hl_wino hl_wino;
halo_status hl_wino_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                         hl_wino **out);
void hl_wino_run(const hl_wino *p, const halo_op_args *args);
void hl_wino_free(hl_wino *p);

/* winograd_weights.c: the same for backward weights. */
typedef struct hl_wino_weights hl_wino_weights;
int hl_wino_weights_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out);
halo_status hl_wino_weights_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                                 hl_wino_weights **out);
void hl_wino_weights_run(const hl_wino_weights *p, const halo_op_args *args);
void hl_wino_weights_free(hl_wino_weights *p);

/* ------------------------------------------------------------------------------------------------------------------
 * images */

/*
 * The points of the weights, [group of two out blocks][point][in][lanes of the group], the last group of one
 * block where their number is odd: what the products of one group read lies in a row. Backward: out = i, in =
 * o, kernels mirrored.
 */
enum { HL_WINO_IMAGE = 64, HL_WINO_IMAGES = 8 };
static inline int hl_wino_image(int m, bool backward, int block)
{
    return HL_WINO_IMAGE + (m == 4) * 4 + backward * 2 + (block == 16);
}
static inline bool hl_wino_is_image(int image)
{
    return image >= HL_WINO_IMAGE && image < HL_WINO_IMAGE + HL_WINO_IMAGES;
}
static inline int hl_wino_image_m(int image)
{
    return (image - HL_WINO_IMAGE) & 4 ? 4 : 2;
}
static inline bool hl_wino_image_back(int image)
{
    return (image - HL_WINO_IMAGE) & 2;
}
static inline int hl_wino_image_block(int image)
{
    return (image - HL_WINO_IMAGE) & 1 ? 16 : 8;
}
static inline int64_t hl_wino_points(int m)
{
    return (int64_t)(m + 2) * (m + 2) * (m + 2);
}

/* Channels of out group g, and where it begins in an image, in floats. */
static inline int64_t hl_wino_width(int64_t out, int block, int64_t g)
{
    return hl_min64(2 * block, hl_round_up(out, block) - g * 2 * block);
}
static inline int64_t hl_wino_group_at(int64_t in, int block, int m, int64_t g)
{
    return g * 2 * block * in * hl_wino_points(m);
}

size_t hl_wino_image_bytes(int image, int64_t o, int64_t i);
/* Writes the image of the plain master w (o, i, 3, 3, 3). */
void hl_wino_image_write(const hl_cpu_device *dev, int image, int64_t o, int64_t i, const float *w,
                         float *to);

#endif
