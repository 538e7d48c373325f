/* SPDX-License-Identifier: Apache-2.0 */
/*
 * augment.c -- the 48 symmetries of the cube and periodic shifts, as one gather: y[c, i0, i1, i2] = x[c, j0,
 * j1, j2] with j[axis[k]] = (flip[k] ? n - 1 - ik : ik) + shift[axis[k]] mod n, row by row; a row whose
 * source is contiguous is copied in two pieces.
 */
#include "base/rng.h"
#include "io/pipeline.h"

enum { WHICH_SYMMETRY = 0, WHICH_SHIFT = 1 };

hl_symmetry hl_symmetry_of(int number)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    hl_symmetry s;
    HL_BUG_UNLESS(number >= 0 && number < HL_SYMMETRIES);
    for (int k = 0; k < 3; k++) {
        s.axis[k] = order[number / 8][k];
        s.flip[k] = number >> k & 1;
    }
    return s;
}

static int number_of(hl_symmetry s)
{
    for (int i = 0; i < HL_SYMMETRIES; i++) {
        hl_symmetry t = hl_symmetry_of(i);
        if (memcmp(t.axis, s.axis, sizeof(t.axis)) == 0 && memcmp(t.flip, s.flip, sizeof(t.flip)) == 0)
            return i;
    }
    return -1;
}

hl_symmetry hl_symmetry_inverse(hl_symmetry s)
{
    hl_symmetry r;
    for (int k = 0; k < 3; k++) {
        r.axis[s.axis[k]] = k;
        r.flip[s.axis[k]] = s.flip[k];
    }
    return r;
}

/* z[i] = y[b(i)], y[j] = x[a(j)]: axis k of z runs along axis b.axis[k] of y, which runs along
 * a.axis[b.axis[k]] of x. */
int hl_symmetry_after(int first, int second)
{
    hl_symmetry a = hl_symmetry_of(first), b = hl_symmetry_of(second), r;
    for (int k = 0; k < 3; k++) {
        r.axis[k] = a.axis[b.axis[k]];
        r.flip[k] = b.flip[k] != a.flip[b.axis[k]];
    }
    return number_of(r);
}

int hl_draw_symmetry(uint64_t seed, int64_t epoch, int64_t sample)
{
    return (int)hl_rng_below(seed, HL_STREAM_AUGMENT, (uint64_t)sample, (uint64_t)epoch << 1 | WHICH_SYMMETRY,
                             HL_SYMMETRIES);
}

void hl_draw_shift(uint64_t seed, int64_t epoch, int64_t sample, const int64_t ext[3], int64_t shift[3])
{
    hl_random r = hl_philox(seed, HL_STREAM_AUGMENT, (uint64_t)sample, (uint64_t)epoch << 1 | WHICH_SHIFT);
    for (int k = 0; k < 3; k++) shift[k] = (int64_t)((unsigned __int128)r.v[k] * (uint64_t)ext[k] >> 32);
}

static int64_t source_index(int64_t i, int64_t n, bool flip, int64_t shift)
{
    int64_t j = (flip ? n - 1 - i : i) + shift;
    return j < n ? j : j - n;
}

/* One row of w: a copy where the source runs forward, cut in two by the shift; else a strided gather
 * likewise. */
static void copy_row(const float *x, float *y, int64_t n, int64_t stride, bool flip, int64_t shift)
{
    int64_t first = source_index(0, n, flip, shift), step = flip ? -stride : stride;
    int64_t until_wrap = flip ? first + 1 : n - first;
    const float *p = x + first * stride;
    if (step == 1) {
        memcpy(y, p, (size_t)until_wrap * sizeof(*y));
        memcpy(y + until_wrap, x, (size_t)(n - until_wrap) * sizeof(*y));
        return;
    }
    for (int64_t i = 0; i < until_wrap; i++) y[i] = p[i * step];
    p = x + (flip ? n - 1 : 0) * stride;
    for (int64_t i = until_wrap; i < n; i++) y[i] = p[(i - until_wrap) * step];
}

void hl_augment(const float *x, float *y, int64_t channels, const int64_t ext[3], hl_symmetry s,
                const int64_t shift[3])
{
    const int64_t cells = ext[0] * ext[1] * ext[2];
    const int a = s.axis[0], b = s.axis[1], w = s.axis[2];
    int64_t in[3];
    for (int k = 0; k < 3; k++) in[s.axis[k]] = ext[k];
    const int64_t stride[3] = {in[1] * in[2], in[2], 1};
    for (int k = 0; k < 3; k++) HL_BUG_UNLESS(shift[k] >= 0 && shift[k] < in[k]);
    for (int64_t c = 0; c < channels; c++, x += cells)
        for (int64_t i = 0; i < ext[0]; i++) {
            const float *plane = x + source_index(i, ext[0], s.flip[0], shift[a]) * stride[a];
            for (int64_t j = 0; j < ext[1]; j++, y += ext[2])
                copy_row(plane + source_index(j, ext[1], s.flip[1], shift[b]) * stride[b], y, ext[2],
                         stride[w], s.flip[2], shift[w]);
        }
}
