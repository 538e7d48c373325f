/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c -- between host arrays and the boxes of operands.
 *
 * Up: the host's bytes go through two pinned stages in turn, on the stream `copies`, to where they belong when no conversion is needed, else to a
 * landing place, from which a kernel on `compute` converts types and layouts. Down the same way back. The pinned stages mean that the host array is
 * free when the call returns, while the device may still be at it.
 */
#include "cuda.h"
#include "kernels.h"

halo_status hl_cuda_stages_make(hl_cuda_device *dev)
{
    for (int i = 0; i < HL_STAGES; i++) {
        HL_CUDA(dev, cudaMallocHost(&dev->stage[i].pinned, HL_STAGE_BYTES));
        HL_CUDA(dev, cudaEventCreateWithFlags(&dev->stage[i].free, cudaEventDisableTiming));
    }
    return HALO_OK;
}

void hl_cuda_stages_free(hl_cuda_device *dev)
{
    for (int i = 0; i < HL_STAGES; i++) {
        if (dev->stage[i].free) cudaEventDestroy(dev->stage[i].free);
        if (dev->stage[i].pinned) cudaFreeHost(dev->stage[i].pinned);
    }
    if (dev->landing) cudaFree(dev->landing);
}

/* What `later` gets from now on comes after all that `sooner` has. */
static halo_status follow(hl_cuda_device *dev, cudaStream_t later, cudaStream_t sooner, cudaEvent_t event)
{
    HL_CUDA(dev, cudaEventRecord(event, sooner));
    HL_CUDA(dev, cudaStreamWaitEvent(later, event, 0));
    return HALO_OK;
}

static halo_status need_landing(hl_cuda_device *dev, size_t bytes)
{
    if (bytes <= dev->landing_size) return HALO_OK;
    void *old = dev->landing;
    dev->landing = NULL;
    dev->landing_size = 0;
    hl_cuda_release(&dev->super, old);
    HL_TRY(hl_cuda_alloc(&dev->super, bytes, &dev->landing));
    dev->landing_size = bytes;
    return HALO_OK;
}

/* Host bytes to device memory, after what `compute` has and before what it gets. */
static halo_status bytes_up(hl_cuda_device *dev, char *to, const char *from, size_t bytes)
{
    HL_TRY(follow(dev, dev->copies, dev->compute, dev->computed));
    for (size_t at = 0; at < bytes; at += HL_STAGE_BYTES) {
        size_t n = bytes - at < HL_STAGE_BYTES ? bytes - at : HL_STAGE_BYTES;
        hl_stage *s = &dev->stage[dev->turn];
        dev->turn = (dev->turn + 1) % HL_STAGES;
        HL_CUDA(dev, cudaEventSynchronize(s->free));
        memcpy(s->pinned, from + at, n);
        HL_CUDA(dev, cudaMemcpyAsync(to + at, s->pinned, n, cudaMemcpyHostToDevice, dev->copies));
        HL_CUDA(dev, cudaEventRecord(s->free, dev->copies));
    }
    return follow(dev, dev->compute, dev->copies, dev->copied);
}

/* Device memory to the host, after what `compute` has. The next part comes in while one is taken out. */
static halo_status bytes_down(hl_cuda_device *dev, char *to, const char *from, size_t bytes)
{
    size_t parts = (bytes + HL_STAGE_BYTES - 1) / HL_STAGE_BYTES;
    HL_TRY(follow(dev, dev->copies, dev->compute, dev->computed));
    for (size_t i = 0; i <= parts; i++) {
        if (i < parts) {
            hl_stage *s = &dev->stage[(dev->turn + (int)(i % HL_STAGES)) % HL_STAGES];
            size_t at = i * HL_STAGE_BYTES, n = bytes - at < HL_STAGE_BYTES ? bytes - at : HL_STAGE_BYTES;
            HL_CUDA(dev, cudaEventSynchronize(s->free)); /* of an upload */
            HL_CUDA(dev, cudaMemcpyAsync(s->pinned, from + at, n, cudaMemcpyDeviceToHost, dev->copies));
            HL_CUDA(dev, cudaEventRecord(s->free, dev->copies));
        }
        if (i == 0) continue;
        hl_stage *s = &dev->stage[(dev->turn + (int)((i - 1) % HL_STAGES)) % HL_STAGES];
        size_t at = (i - 1) * HL_STAGE_BYTES, n = bytes - at < HL_STAGE_BYTES ? bytes - at : HL_STAGE_BYTES;
        HL_CUDA(dev, cudaEventSynchronize(s->free));
        memcpy(to + at, s->pinned, n);
    }
    return follow(dev, dev->compute, dev->copies, dev->copied);
}

/* The box is one run of the host's elements: *first is its place. */
static bool same_bytes(const halo_operand *op, halo_dtype host, int64_t *first)
{
    bool one_channel = op->ext[HALO_C] == 1 && op->alloc[HALO_C] == 1;
    bool plain = op->layout == HALO_NCDHW || (op->layout == HALO_NDHWC && one_channel);
    return op->dtype == host && plain && hl_operand_dense(op, first);
}

static halo_status host_operand(const halo_operand *op, halo_dtype type, halo_operand *dense, size_t *bytes)
{
    *dense = hl_operand_whole(type, HALO_NCDHW, op->ext);
    return hl_operand_bytes(dense, bytes) ? HALO_OK : HALO_ERR_SHAPE;
}

halo_status hl_cuda_upload(halo_device *device, const halo_operand *op, void *ptr, halo_dtype host_dtype, const void *host)
{
    hl_cuda_device *dev = hl_cuda(device);
    halo_operand dense;
    size_t bytes;
    int64_t first;
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(host_operand(op, host_dtype, &dense, &bytes));
    if (same_bytes(op, host_dtype, &first)) return bytes_up(dev, (char *)ptr + (size_t)first * hl_dtype_size(host_dtype), host, bytes);
    HL_TRY(need_landing(dev, bytes));
    HL_TRY(bytes_up(dev, dev->landing, host, bytes));
    hl_copying c = hl_cuda_copying(&dense, op);
    c.clear_lanes = op->lo[HALO_C] + op->ext[HALO_C] == op->alloc[HALO_C];
    HL_CUDA(dev, hl_cuda_convert(dev->compute, &c, dev->landing, (char *)ptr + (size_t)hl_cuda_first(op) * hl_dtype_size(op->dtype)));
    return HALO_OK;
}

halo_status hl_cuda_download(halo_device *device, const halo_operand *op, const void *ptr, halo_dtype host_dtype, void *host)
{
    hl_cuda_device *dev = hl_cuda(device);
    halo_operand dense;
    size_t bytes;
    int64_t first;
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(host_operand(op, host_dtype, &dense, &bytes));
    if (same_bytes(op, host_dtype, &first)) return bytes_down(dev, host, (const char *)ptr + (size_t)first * hl_dtype_size(host_dtype), bytes);
    HL_TRY(need_landing(dev, bytes));
    hl_copying c = hl_cuda_copying(op, &dense);
    HL_CUDA(dev, hl_cuda_convert(dev->compute, &c, (const char *)ptr + (size_t)hl_cuda_first(op) * hl_dtype_size(op->dtype), dev->landing));
    return bytes_down(dev, host, dev->landing, bytes);
}
