/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c -- what the device itself can do, for bench: GF/s of a square product of the activations' type through cuBLAS, and GB/s of a copy within its memory,
 * read and written bytes together. Both grow until a run takes long enough for a launch not to count, as far as memory allows; best of some runs.
 */
#include "cuda.h"

#include "base/clock.h"

enum { LEAST_SIDE = 256, MOST_SIDE = 8192 };
static const size_t least_bytes = (size_t)16 << 20, most_bytes = (size_t)1 << 30;
static const double long_enough = 1e-3, enough_in_all = 0.5; /* seconds */

typedef struct limit {
    hl_cuda_device *dev;
    void *a, *b, *c;
    size_t bytes; /* of each */
    int64_t side; /* of a product; 0: a copy */
} limit;

static halo_status once(const limit *l)
{
    const float one = 1, zero = 0;
    hl_cuda_device *dev = l->dev;
    const int n = (int)l->side;
    const cudaDataType_t type = dev->super.compute == HALO_F16 ? CUDA_R_16F : dev->super.compute == HALO_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    if (n > 0)
        HL_BLAS(dev, cublasGemmEx(dev->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, l->a, type, n, l->b, type, n, &zero, l->c, type, n,
                                  dev->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    else
        HL_CUDA(dev, cudaMemcpyAsync(l->c, l->a, l->bytes, cudaMemcpyDeviceToDevice, dev->compute));
    HL_CUDA(dev, cudaStreamSynchronize(dev->compute));
    return HALO_OK;
}

/* Seconds of the fastest of some runs, after one to warm up. */
static halo_status fastest(const limit *l, int repetitions, double *seconds)
{
    const double began = hl_now();
    *seconds = INFINITY;
    HL_TRY(once(l));
    for (int i = 0; i < repetitions && (i == 0 || hl_now() - began < enough_in_all); i++) {
        const double start = hl_now();
        HL_TRY(once(l));
        const double t = hl_now() - start;
        if (t < *seconds) *seconds = t;
    }
    return HALO_OK;
}

static halo_status take(limit *l, size_t bytes)
{
    void **each[] = {&l->a, &l->b, &l->c};
    l->bytes = bytes;
    for (int i = 0; i < 3; i++) {
        HL_CUDA(l->dev, cudaMalloc(each[i], bytes));
        HL_CUDA(l->dev, cudaMemsetAsync(*each[i], 0x2c, bytes, l->dev->compute)); /* small positive numbers, whose products stay finite, in every type */
    }
    return HALO_OK;
}

static void give_back(limit *l)
{
    cudaFree(l->a);
    cudaFree(l->b);
    cudaFree(l->c);
    *l = (limit){.dev = l->dev};
}

static bool fits(size_t bytes)
{
    size_t free_bytes = 0, total;
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && 3 * bytes < free_bytes / 2;
}

static halo_status products(hl_cuda_device *dev, int repetitions, double *gflops)
{
    limit l = {.dev = dev};
    halo_status st = HALO_OK;
    double seconds = 0;
    for (int64_t side = LEAST_SIDE; st == HALO_OK && side <= MOST_SIDE && seconds < long_enough; side *= 2) {
        const size_t bytes = (size_t)(side * side) * hl_dtype_size(dev->super.compute);
        if (!fits(bytes)) break;
        if ((st = take(&l, bytes)) == HALO_OK) l.side = side, st = fastest(&l, repetitions, &seconds);
        if (st == HALO_OK) *gflops = fmax(*gflops, 2.0 * (double)side * (double)side * (double)side / seconds * 1e-9);
        give_back(&l);
    }
    return st;
}

static halo_status copies(hl_cuda_device *dev, int repetitions, double *gbs)
{
    limit l = {.dev = dev};
    halo_status st = HALO_OK;
    double seconds = 0;
    for (size_t bytes = least_bytes; st == HALO_OK && bytes <= most_bytes && seconds < long_enough; bytes *= 2) {
        if (!fits(bytes)) break;
        if ((st = take(&l, bytes)) == HALO_OK) st = fastest(&l, repetitions, &seconds);
        if (st == HALO_OK) *gbs = fmax(*gbs, 2.0 * (double)bytes / seconds * 1e-9);
        give_back(&l);
    }
    return st;
}

halo_status hl_cuda_limits(halo_device *device, int64_t n, int repetitions, double *gemm_gflops, double *stream_gbs)
{
    hl_cuda_device *dev = hl_cuda(device);
    double gflops = 0, gbs = 0;
    (void)n; /* a processor's size is nothing to a device */
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(products(dev, repetitions, &gflops));
    HL_TRY(copies(dev, repetitions, &gbs));
    *gemm_gflops = gflops > 0 ? gflops : NAN;
    *stream_gbs = gbs > 0 ? gbs : NAN;
    return HALO_OK;
}
