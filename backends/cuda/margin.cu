/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margin.cu -- an operand's margin from the operand itself. Forward each margin cell looks up its source. Reverse is a gather, so that the order of
 * additions is fixed: each source takes the sum of its images, and a second pass clears the cells that were added or lie in a ZERO side.
 */
#include "words.cuh"

enum { KEEP, ZERO, WRAP };

/* What becomes of a cell (d h w, relative to the box), and the cell that it comes from. */
static __device__ inline int fate(const hl_margins &m, const int64_t cell[3], int64_t from[3])
{
    int f = KEEP;
    for (int k = 0; k < 3; k++) {
        from[k] = cell[k];
        if (cell[k] >= 0 && cell[k] < m.ext[k]) continue;
        int mode = m.mode[k][cell[k] >= m.ext[k]];
        if (mode == HALO_MARGIN_ZERO) return ZERO;
        if (mode == HALO_MARGIN_KEEP) continue;
        f = WRAP;
        from[k] = (cell[k] % m.ext[k] + m.ext[k]) % m.ext[k];
    }
    return f;
}

static __device__ inline int64_t cell_offset(const hl_margins &m, int64_t n, int64_t c, const int64_t i[3])
{
    return n * m.stride[0] + c * m.stride[1] + i[0] * m.stride[2] + i[1] * m.stride[3] + i[2] * m.stride[4];
}

template <class T> HL_KERNEL(HL_BLOCK) margin_fill(hl_margins m, T *y)
{
    for (int64_t i = HL_INDEX; i < m.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(m.places, i);
        int64_t cell[3] = {p.i[2] + m.lo[0], p.i[3] + m.lo[1], p.i[4] + m.lo[2]}, from[3];
        int f = fate(m, cell, from);
        if (f == KEEP) continue;
        float v = f == WRAP ? hl_load(y, cell_offset(m, p.i[0], p.i[1], from)) : 0;
        hl_store(y, cell_offset(m, p.i[0], p.i[1], cell), v);
    }
}

extern "C" cudaError_t hl_cuda_margin_fill(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y)
{
    HL_BY_TYPE(type, HL_LAUNCH(margin_fill<T>, hl_grid(m->places.total), HL_BLOCK, 0, stream, *m, (T *)y));
}

/* Along axis k: image j of coordinate x; j = 0 is x itself. False: there are no more. */
static __device__ inline bool image(const hl_margins &m, int k, int64_t x, int64_t j, int64_t *at)
{
    *at = x;
    if (j == 0) return true;
    if (x < 0 || x >= m.ext[k]) return false;
    int64_t low = m.mode[k][0] == HALO_MARGIN_WRAP ? m.margin[k][0] : 0, high = m.mode[k][1] == HALO_MARGIN_WRAP ? m.margin[k][1] : 0;
    int64_t below = (low - 1 - (m.ext[k] - 1 - x)) / m.ext[k] + 1; /* images at x - ext, x - 2 ext, ... that are not below -low */
    if (low < m.ext[k] - x) below = 0;
    if (j <= below) {
        *at = x - j * m.ext[k];
        return true;
    }
    *at = x + (j - below) * m.ext[k];
    return *at < m.ext[k] + high;
}

template <class T> HL_KERNEL(HL_BLOCK) margin_gather(hl_margins m, T *y)
{
    for (int64_t i = HL_INDEX; i < m.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(m.places, i);
        int64_t cell[3] = {p.i[2] + m.lo[0], p.i[3] + m.lo[1], p.i[4] + m.lo[2]}, from[3], at[3];
        if (fate(m, cell, from) != KEEP) continue;
        float sum = 0;
        int images = 0;
        for (int64_t a = 0; image(m, 0, cell[0], a, &at[0]); a++)
            for (int64_t b = 0; image(m, 1, cell[1], b, &at[1]); b++)
                for (int64_t c = 0; image(m, 2, cell[2], c, &at[2]); c++) {
                    sum += hl_load(y, cell_offset(m, p.i[0], p.i[1], at));
                    images++;
                }
        if (images > 1) hl_store(y, cell_offset(m, p.i[0], p.i[1], cell), sum);
    }
}

extern "C" cudaError_t hl_cuda_margin_gather(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y)
{
    HL_BY_TYPE(type, HL_LAUNCH(margin_gather<T>, hl_grid(m->places.total), HL_BLOCK, 0, stream, *m, (T *)y));
}

template <class T> HL_KERNEL(HL_BLOCK) margin_clear(hl_margins m, T *y)
{
    for (int64_t i = HL_INDEX; i < m.places.total; i += HL_STRIDE) {
        hl_place p = hl_place_of(m.places, i);
        int64_t cell[3] = {p.i[2] + m.lo[0], p.i[3] + m.lo[1], p.i[4] + m.lo[2]}, from[3];
        if (fate(m, cell, from) != KEEP) hl_store(y, cell_offset(m, p.i[0], p.i[1], cell), 0);
    }
}

extern "C" cudaError_t hl_cuda_margin_clear(cudaStream_t stream, halo_dtype type, const hl_margins *m, void *y)
{
    HL_BY_TYPE(type, HL_LAUNCH(margin_clear<T>, hl_grid(m->places.total), HL_BLOCK, 0, stream, *m, (T *)y));
}
