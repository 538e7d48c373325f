/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c -- what this machine can do with these threads: a matrix product through CBLAS, and the triad a = b + s c (McCalpin's STREAM: 12 bytes an
 * element in f32, the write-allocate of a not counted) on arrays that no cache holds.
 */
#include "cpu.h"
#include "base/clock.h"
#include "kern/kern.h"

#include <cblas.h>
#include <limits.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <unistd.h>

#ifdef _OPENMP
int hl_blas_enter(const hl_cpu_device *dev)
{
    int old = omp_get_max_threads();
    omp_set_num_threads(dev->threads);
    return old;
}

void hl_blas_leave(int old) { omp_set_num_threads(old); }
#else
int hl_blas_enter(const hl_cpu_device *dev)
{
    (void)dev;
    return 1;
}

void hl_blas_leave(int old) { (void)old; }
#endif

static void fill_pattern(const hl_cpu_device *dev, float *a, int64_t n)
{
    (void)dev; /* without OpenMP */
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < n; i++) a[i] = (float)(i % 17) * 0.125f - 1.0f;
}

static halo_status gemm_limit(hl_cpu_device *dev, int64_t n, int repetitions, double *gflops)
{
    float *a;
    int64_t cells;
    if (n < 1 || n > 32768 || !hl_mul64(n, n, &cells))
        return hl_fail(dev->super.ctx, HALO_ERR_USAGE, "matrix size %" PRId64 " is outside 1..32768", n);
    HL_TRY(hl_aligned(dev->super.ctx, (size_t)cells * 3 * sizeof(*a), "a matrix product", &a));
    fill_pattern(dev, a, 3 * cells);
    double best = INFINITY;
    int old = hl_blas_enter(dev), m = (int)n;
    for (int r = 0; r < repetitions; r++) {
        double start = hl_now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, m, m, 1.0f, a, m, a + cells, m, 0.0f, a + 2 * cells, m);
        best = fmin(best, hl_now() - start);
    }
    hl_blas_leave(old);
    free(a);
    *gflops = 2.0 * (double)n * (double)n * (double)n / best * 1e-9;
    return HALO_OK;
}

/* Elements per array: four last-level caches altogether, 48 MiB at least. */
static int64_t triad_elements(void)
{
    long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    int64_t bytes = hl_max64(48 << 20, (int64_t)(cache > 0 ? cache : 0) * 4 / 3);
    return hl_min64(bytes, (int64_t)1 << 30) / (int64_t)sizeof(float);
}

typedef struct triad {
    const hl_cpu_device *dev;
    float *a, *b, *c;
    int64_t n;
} triad;

static void triad_part(void *arg, int64_t i)
{
    const triad *t = arg;
    hl_range r = hl_block_range(t->n, t->dev->threads, i);
    t->dev->kern->triad(t->a + r.lo, t->b + r.lo, t->c + r.lo, 0.5f, r.hi - r.lo);
}

static halo_status triad_limit(hl_cpu_device *dev, int repetitions, double *gbs)
{
    int64_t n = triad_elements();
    void *memory;
    HL_TRY(dev->super.ops->alloc(&dev->super, (size_t)n * 3 * sizeof(float), &memory));
    float *a = memory;
    triad t = {dev, a, a + n, a + 2 * n, n};
    fill_pattern(dev, a, 3 * n);
    double best = INFINITY;
    for (int r = 0; r < repetitions; r++) {
        double start = hl_now();
        hl_parallel(dev, dev->threads, triad_part, &t);
        best = fmin(best, hl_now() - start);
    }
    dev->super.ops->release(&dev->super, memory);
    *gbs = 12.0 * (double)n / best * 1e-9;
    return HALO_OK;
}

halo_status hl_cpu_limits(halo_device *device, int64_t n, int repetitions, double *gemm_gflops, double *stream_gbs)
{
    hl_cpu_device *dev = hl_cpu(device);
    double gemm = 0, stream = 0;
    if (repetitions < 1) repetitions = 1;
    HL_TRY(gemm_limit(dev, n, repetitions, &gemm));
    HL_TRY(triad_limit(dev, repetitions, &stream));
    *gemm_gflops = gemm;
    *stream_gbs = stream;
    return HALO_OK;
}
