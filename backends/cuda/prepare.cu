/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.cu -- samples as they are stored become the network's input: y[n,c,i] = t(x[n,c,s(i)]), s a symmetry of the cube and a periodic shift, t a chain of transforms, both of sample n.
 *
 * A thread writes one cell; cells that lie together in y are written together, and what a turned row reads far apart is read again by its neighbours from cache: a channel of a sample is some MiB. Transforms are
 * rounded to float one by one, as the host does them; all but log1p go through double, since what is subtracted may be close to the values.
 */
#include "words.cuh"

/* The numbers of a sample, as integers. */
struct turning {
    int64_t e[3], stride[3], shift[3]; /* of the stored axes */
    int axis[3], flip[3];              /* of y's */
};

static __device__ inline turning turning_of(const double *number, const int64_t *ext)
{
    turning t;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        t.axis[k] = (int)number[HALO_SAMPLE_AXIS + k];
        t.flip[k] = number[HALO_SAMPLE_FLIP + k] != 0;
    }
#pragma unroll
    for (int a = 0; a < 3; a++) {
        t.e[a] = t.axis[0] == a ? ext[0] : t.axis[1] == a ? ext[1] : ext[2];
        t.shift[a] = (int64_t)number[HALO_SAMPLE_SHIFT + a];
    }
    t.stride[2] = 1;
    t.stride[1] = t.e[2];
    t.stride[0] = t.e[1] * t.e[2];
    return t;
}

/* Element of a channel from which the cell at i is taken. */
static __device__ inline int64_t taken_from(const turning &t, const int64_t *ext, const int64_t *i)
{
    int64_t at = 0;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        int64_t j = t.flip[k] ? ext[k] - 1 - i[k] : i[k];
#pragma unroll
        for (int a = 0; a < 3; a++) {
            if (t.axis[k] != a) continue;
            j += t.shift[a];
            at += (j < t.e[a] ? j : j - t.e[a]) * t.stride[a];
        }
    }
    return at;
}

static __device__ inline float stored(int type, const void *p, int64_t i)
{
    switch (type) {
    case HALO_F32: return ((const float *)p)[i];
    case HALO_F64: return (float)((const double *)p)[i];
    case HALO_F16: return __half2float(((const __half *)p)[i]);
    case HALO_BF16: return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    case HALO_U8: return (float)((const uint8_t *)p)[i];
    case HALO_I16: return (float)((const int16_t *)p)[i];
    case HALO_I32: return (float)((const int32_t *)p)[i];
    default: return 0;
    }
}

static __device__ inline float transformed(const hl_preparing &p, const double *constant, float v)
{
    for (int t = 0; t < p.transforms; t++) {
        const double a = constant[2 * t], b = constant[2 * t + 1];
        if (p.transform[t] == HALO_TRANSFORM_LOG1P) {
            v = log1pf(v);
        } else if (p.transform[t] == HALO_TRANSFORM_STANDARD) {
            v = (float)(((double)v - a) / b);
        } else {
            const float low = (float)a, high = (float)b, scale = (float)(1 / (b - a));
            v = ((v < low ? low : v > high ? high : v) - low) * scale;
        }
    }
    return v;
}

template <class T> HL_KERNEL(HL_BLOCK) prepare_cells(hl_preparing p, const void *x, const double *numbers, T *y)
{
    const int64_t channel = p.ext[2] * p.ext[3] * p.ext[4];
    for (int64_t i = HL_INDEX; i < p.places.total; i += HL_STRIDE) {
        const hl_place at = hl_place_of(p.places, i);
        const double *number = numbers + at.i[0] * HALO_SAMPLE_NUMBERS;
        float v = 0;
        if (number[HALO_SAMPLE_THERE] != 0) {
            const turning t = turning_of(number, p.ext + 2);
            v = stored(p.x_type, x, (at.i[0] * p.ext[1] + at.i[1]) * channel + taken_from(t, p.ext + 2, at.i + 2));
            v = transformed(p, number + HALO_SAMPLE_CONSTANT, v);
        }
        hl_store(y, hl_offset_of(p.stride, at), v);
    }
}

extern "C" cudaError_t hl_cuda_prepare_samples(cudaStream_t stream, halo_dtype type, const hl_preparing *p, const void *x, const double *numbers, void *y)
{
    HL_BY_TYPE(type, HL_LAUNCH(prepare_cells<T>, hl_grid(p->places.total), HL_BLOCK, 0, stream, *p, x, HL_SPAN(numbers, p->ext[0] * HALO_SAMPLE_NUMBERS), (T *)y));
}
