/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c -- runs of operations as CUDA graphs: `compute` is captured while they are put on it, and a launch of the graph puts all of them there at once.
 *
 * What changes per step is read from the record on the device: it is written before a launch, never within (record.c), so that a graph needs no new arguments.
 * Everything that operations need, scratch and workspaces included, was allocated when they were planned, so nothing that cannot be captured happens in between.
 */
#include "cuda.h"

struct halo_recording {
    cudaGraphExec_t exec;
};

halo_status hl_cuda_record_begin(halo_device *device)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    HL_CUDA(dev, cudaStreamBeginCapture(dev->compute, cudaStreamCaptureModeThreadLocal));
    dev->capturing = true;
    return HALO_OK;
}

halo_status hl_cuda_record_end(halo_device *device, halo_recording **out)
{
    hl_cuda_device *dev = hl_cuda(device);
    cudaGraph_t graph = NULL;
    halo_recording *r;
    dev->capturing = false;
    HL_CUDA(dev, cudaStreamEndCapture(dev->compute, &graph));
    halo_status st = hl_calloc(device->ctx, 1, sizeof(*r), "a recording", &r);
    if (st == HALO_OK) {
        cudaError_t e = cudaGraphInstantiateWithFlags(&r->exec, graph, 0);
        if (e != cudaSuccess) {
            free(r);
            st = hl_cuda_failed(dev, "cudaGraphInstantiateWithFlags", e);
        }
    }
    cudaGraphDestroy(graph);
    if (st == HALO_OK) *out = r;
    return st;
}

halo_status hl_cuda_replay(halo_device *device, halo_recording *recording, const halo_step_record *step)
{
    hl_cuda_device *dev = hl_cuda(device);
    const halo_step_record *record;
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(hl_cuda_record(dev, step, &record));
    HL_CUDA(dev, cudaGraphLaunch(recording->exec, dev->compute));
    return HALO_OK;
}

void hl_cuda_forget(halo_device *device, halo_recording *recording)
{
    hl_cuda_device *dev = hl_cuda(device);
    if (!recording) return;
    cudaSetDevice(dev->index);
    cudaStreamSynchronize(dev->compute);
    cudaGraphExecDestroy(recording->exec);
    free(recording);
}
