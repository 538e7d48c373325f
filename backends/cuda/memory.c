/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c -- device memory, and the order of what is done with it. Each allocation is the driver's own: a program makes a handful, at its
 * start, and so memory checkers and the simulated device see every one of them.
 */
#include "cuda.h"

halo_status hl_cuda_alloc(halo_device *device, size_t bytes, void **ptr)
{
    hl_cuda_device *dev = hl_cuda(device);
    size_t free_bytes = 0, total = 0;
    void *p = NULL;
    HL_TRY(hl_cuda_here(dev));
    cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) free_bytes = total = 0;
        return hl_fail(device->ctx, HALO_ERR_NOMEM, "cuda device %d is out of memory: %.1f MiB are needed at once, %.1f of its %.1f MiB are free", dev->index, (double)bytes / 1048576,
                       (double)free_bytes / 1048576, (double)total / 1048576);
    }
    if (e != cudaSuccess) return hl_cuda_failed(dev, "cudaMalloc", e);
    *ptr = p;
    return HALO_OK;
}

void hl_cuda_release(halo_device *device, void *ptr)
{
    hl_cuda_device *dev = hl_cuda(device);
    if (!ptr) return;
    cudaSetDevice(dev->index);
    cudaStreamSynchronize(dev->copies);
    cudaStreamSynchronize(dev->compute);
    cudaFree(ptr);
}

halo_status hl_cuda_pin(halo_device *device, size_t bytes, void **host)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    cudaError_t e = cudaMallocHost(host, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return hl_fail(device->ctx, HALO_ERR_NOMEM, "the host gives cuda device %d no %zu bytes of pinned memory, which stays where it is", dev->index, bytes);
    }
    return e == cudaSuccess ? HALO_OK : hl_cuda_failed(dev, "cudaMallocHost", e);
}

void hl_cuda_unpin(halo_device *device, void *host)
{
    if (!host) return;
    cudaSetDevice(hl_cuda(device)->index);
    cudaDeviceSynchronize();
    cudaFreeHost(host);
}

halo_status hl_cuda_copy_bytes(halo_device *device, void *dst, const void *src, size_t bytes, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    if (bytes) HL_CUDA(dev, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, hl_cuda_stream(dev, queue)));
    return HALO_OK;
}

halo_status hl_cuda_fill(halo_device *device, void *dst, int byte, size_t bytes, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    if (bytes) HL_CUDA(dev, cudaMemsetAsync(dst, byte, bytes, hl_cuda_stream(dev, queue)));
    return HALO_OK;
}

halo_status hl_cuda_wait(halo_device *device, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    HL_CUDA(dev, queue ? cudaStreamSynchronize(hl_cuda_stream(dev, queue)) : cudaDeviceSynchronize());
    return HALO_OK;
}
