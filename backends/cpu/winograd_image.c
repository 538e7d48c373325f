/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_image.c -- weights transformed for Winograd convolutions (layout in winograd.h), once per update:
 * U = G g G' along d, h and w. */
#include "winograd.h"

size_t hl_wino_image_bytes(int image, int64_t o, int64_t i)
{
    bool back = hl_wino_image_back(image);
    int64_t out = back ? i : o, in = back ? o : i;
    return (size_t)(hl_round_up(out, hl_wino_image_block(image)) * in *
                    hl_wino_points(hl_wino_image_m(image))) *
           sizeof(float);
}

typedef struct image_job {
    const hl_wino_kern *kern;
    int m;
    bool back;
    int64_t o, i;
    const float *w;
    float *to;
} image_job;

/* g[27][block]: the kernels of out block b and input c, zeros where the block is padding. */
static void gather(const image_job *j, int64_t b, int64_t c, float *g)
{
    int64_t block = j->kern->block, out = j->back ? j->i : j->o;
    for (int64_t l = 0; l < block; l++) {
        int64_t k = b * block + l;
        const float *from = j->w + (j->back ? c * j->i + k : k * j->i + c) * 27;
        for (int t = 0; t < 27; t++) g[t * block + l] = k >= out ? 0.0f : from[j->back ? 26 - t : t];
    }
}

void hl_wino_image_write(const hl_cpu_device *dev, int image, int64_t o, int64_t i, const float *w, float *to)
{
    int block = hl_wino_image_block(image);
    const image_job j = {
        hl_wino_kern_find(dev->isa, block), hl_wino_image_m(image), hl_wino_image_back(image), o, i, w, to};
    int64_t out = j.back ? i : o, in = j.back ? o : i, blocks = hl_div_up(out, block);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t k = 0; k < blocks * in; k++) {
        float g[27 * 16];
        int64_t b = k / in, c = k % in, width = hl_wino_width(out, block, b / 2);
        gather(&j, b, c, g);
        j.kern->weights(j.m, g, to + hl_wino_group_at(in, block, j.m, b / 2) + c * width + b % 2 * block,
                        in * width);
    }
}
