/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c -- can this node run this build? Each reason why not is one sentence with its remedy.
 *
 * The driver is asked first: cudaDriverGetVersion works, and says 0, where there is none; every other call gives error 35 for an old driver and for
 * no driver alike. The libraries are compared with those of compile time: cuDNN and cuBLAS keep binary compatibility within a major version.
 */
#include "cuda.h"

#include <stdio.h>

/* "70 75 80" by configure: what the kernels were compiled for; machine code runs on later devices of the same major number. */
#ifndef HL_CUDA_ARCHS
#define HL_CUDA_ARCHS ""
#endif

static halo_status no(halo_context *ctx, const char *why) { return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "%s", why); }

static halo_status examine_libraries(halo_context *ctx)
{
    int runtime = 0, dnn = (int)(cudnnGetVersion() / (cudnnGetVersion() >= 90000 ? 10000 : 1000));
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || runtime / 1000 != CUDART_VERSION / 1000)
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the CUDA runtime found at run time is %d.%d, this halo was compiled with %d.%d: load that toolkit's module or build halo again",
                       runtime / 1000, runtime % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (dnn != CUDNN_MAJOR)
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the cuDNN found at run time is version %d, this halo was compiled with %d.%d: load that cuDNN's module or build halo again", dnn,
                       CUDNN_MAJOR, CUDNN_MINOR);
    if (cudnnGetVersion() < CUDNN_VERSION)
        HL_WARN(ctx, "the cuDNN found at run time is older (%zu) than the one this halo was compiled with (%d)", cudnnGetVersion(), CUDNN_VERSION);
    return HALO_OK;
}

halo_status hl_cuda_examine(halo_context *ctx, int *devices)
{
    int driver = 0, n = 0;
    cudaError_t e = cudaDriverGetVersion(&driver);
    if (e != cudaSuccess || driver == 0)
        return no(ctx, "no NVIDIA driver on this node: run on a node with a GPU, or choose backend 'cpu'");
    if (driver / 1000 < CUDART_VERSION / 1000)
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the NVIDIA driver of this node is for CUDA %d.%d at most, this halo was compiled with %d.%d: update the driver, or build halo with CUDA %d",
                       driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, driver / 1000);
    HL_TRY(examine_libraries(ctx));
    e = cudaGetDeviceCount(&n);
    if (e == cudaErrorNoDevice || (e == cudaSuccess && n == 0))
        return no(ctx, "the NVIDIA driver shows no device to this process: ask the job for a GPU (sbatch --gpus) and look at CUDA_VISIBLE_DEVICES");
    if (e != cudaSuccess) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the NVIDIA driver does not answer: %s: nvidia-smi says more", cudaGetErrorString(e));
    *devices = n;
    return HALO_OK;
}

/* Machine code of the same major number and no later minor one, or intermediate code of no later architecture. */
static bool built_for(int major, int minor)
{
    const char *s = HL_CUDA_ARCHS;
    long last = 0;
    if (!*s) return true;
    while (*s) {
        char *end;
        long arch = strtol(s, &end, 10);
        if (end == s) break;
        if (arch / 10 == major && arch % 10 <= minor) return true;
        if (arch > last) last = arch;
        s = end;
    }
    return last > 0 && last <= major * 10 + minor; /* the last one is there as intermediate code, too */
}

halo_status hl_cuda_examine_device(halo_context *ctx, int index, int *major, int *minor, char *name, size_t size)
{
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, index);
    if (e != cudaSuccess) return hl_fail(ctx, HALO_ERR_DEVICE, "cuda device %d does not answer: %s", index, cudaGetErrorString(e));
    if (!built_for(p.major, p.minor))
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "device %d (%s) is sm_%d%d, this halo was compiled for sm_%s: build it with --with-cuda-arch=%d%d%s", index, p.name, p.major, p.minor,
                       HL_CUDA_ARCHS, p.major, p.minor, p.major < 7 || (p.major == 7 && p.minor < 5) ? " and a toolkit up to 12.9 with cuDNN up to 9.10" : "");
    *major = p.major;
    *minor = p.minor;
    snprintf(name, size, "%.*s", (int)size - 1, p.name);
    return HALO_OK;
}

void hl_cuda_dnn_version(char *out, size_t size)
{
    size_t dnn = cudnnGetVersion(), major = dnn >= 90000 ? 10000 : 1000;
    snprintf(out, size, "%zu.%zu.%zu", dnn / major, dnn % major / 100, dnn % 100);
}

void hl_cuda_libraries(char *out, size_t size)
{
    char dnn[24], nccl[32];
    int runtime = 0, driver = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    hl_cuda_dnn_version(dnn, sizeof(dnn));
    hl_cuda_nccl_version(nccl, sizeof(nccl));
    snprintf(out, size, "CUDA %d.%d (driver up to %d.%d), cuDNN %s, cuBLAS %d.%d%s, compiled for sm_%s", runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, dnn,
             CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, nccl, HL_CUDA_ARCHS);
}
