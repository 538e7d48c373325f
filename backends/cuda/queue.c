/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c -- streams beside `compute`. While `compute` is captured, a stream that follows it is captured with it until `compute` follows that one. */
#include "cuda.h"

struct halo_queue {
    cudaStream_t stream;
    cudaEvent_t mark; /* of its end, and of that of `compute`, as another one is to follow it */
};

halo_status hl_cuda_queue(halo_device *device, halo_queue **out)
{
    hl_cuda_device *dev = hl_cuda(device);
    halo_queue *q;
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(hl_calloc(device->ctx, 1, sizeof(*q), "a queue", &q));
    cudaError_t e = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) e = cudaEventCreateWithFlags(&q->mark, cudaEventDisableTiming);
    if (e != cudaSuccess) {
        hl_cuda_unqueue(device, q);
        return hl_cuda_failed(dev, "cudaStreamCreateWithFlags", e);
    }
    *out = q;
    return HALO_OK;
}

void hl_cuda_unqueue(halo_device *device, halo_queue *q)
{
    if (!q) return;
    cudaSetDevice(hl_cuda(device)->index);
    if (q->stream) cudaStreamSynchronize(q->stream);
    if (q->mark) cudaEventDestroy(q->mark);
    if (q->stream) cudaStreamDestroy(q->stream);
    free(q);
}

cudaStream_t hl_cuda_stream(const hl_cuda_device *dev, const halo_queue *queue) { return queue ? queue->stream : dev->compute; }

halo_status hl_cuda_queue_follow(halo_device *device, halo_queue *later, halo_queue *sooner)
{
    hl_cuda_device *dev = hl_cuda(device);
    const cudaEvent_t mark = later ? later->mark : sooner ? sooner->mark : NULL;
    if (later == sooner) return HALO_OK;
    HL_TRY(hl_cuda_here(dev));
    HL_CUDA(dev, cudaEventRecord(mark, hl_cuda_stream(dev, sooner)));
    HL_CUDA(dev, cudaStreamWaitEvent(hl_cuda_stream(dev, later), mark, 0));
    return HALO_OK;
}

halo_status hl_cuda_queue_done(halo_device *device, halo_queue *queue, bool *all)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    const cudaError_t e = cudaStreamQuery(hl_cuda_stream(dev, queue));
    *all = e == cudaSuccess;
    return e == cudaSuccess || e == cudaErrorNotReady ? HALO_OK : hl_cuda_failed(dev, "cudaStreamQuery", e);
}
