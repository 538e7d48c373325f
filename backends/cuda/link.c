/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c -- NCCL: sums over the ranks' devices and messages between them, without the host. Both go on a stream, in the order of operations, so nothing waits
 * for anything that the stream does not say. Ranks need a device each: NCCL refuses two on one.
 */
#include "cuda.h"

#include <assert.h>
#include <stdio.h>

#ifdef HL_HAVE_NCCL

#include <nccl.h>

/* As the library has known it since 2.10; headers before 2.24 show it to C++ alone. */
enum { BFLOAT16 = 9 };

struct halo_link {
    ncclComm_t comm;
    int rank;
};

static_assert(sizeof(ncclUniqueId) <= HALO_LINK_ID, "NCCL's id fits");

static halo_status failed(const hl_cuda_device *dev, const char *call, ncclResult_t e)
{
    return hl_call_failed(dev, HALO_ERR_DEVICE, call, ncclGetErrorString(e));
}

#define HL_NCCL(dev, call)                                                                                   \
    do {                                                                                                     \
        ncclResult_t hl_e_ = (call);                                                                         \
        if (hl_e_ != ncclSuccess) return failed(dev, #call, hl_e_);                                          \
    } while (0)

halo_status hl_cuda_link_id(halo_device *device, unsigned char id[HALO_LINK_ID])
{
    hl_cuda_device *dev = hl_cuda(device);
    ncclUniqueId mine;
    HL_TRY(hl_cuda_here(dev));
    HL_NCCL(dev, ncclGetUniqueId(&mine));
    memset(id, 0, HALO_LINK_ID);
    memcpy(id, &mine, sizeof(mine));
    return HALO_OK;
}

halo_status hl_cuda_link(halo_device *device, const unsigned char id[HALO_LINK_ID], int size, int rank, halo_link **out)
{
    hl_cuda_device *dev = hl_cuda(device);
    ncclUniqueId theirs;
    halo_link *l;
    memcpy(&theirs, id, sizeof(theirs));
    HL_TRY(hl_cuda_here(dev));
    HL_TRY(hl_calloc(device->ctx, 1, sizeof(*l), "a link between devices", &l));
    ncclResult_t e = ncclCommInitRank(&l->comm, size, theirs, rank);
    if (e != ncclSuccess) {
        free(l);
        return failed(dev, "ncclCommInitRank", e);
    }
    l->rank = rank;
    *out = l;
    return HALO_OK;
}

static ncclDataType_t type_of(halo_dtype type)
{
    return type == HALO_F64 ? ncclFloat64 : type == HALO_F16 ? ncclFloat16 : type == HALO_BF16 ? (ncclDataType_t)BFLOAT16 : ncclFloat32;
}

halo_status hl_cuda_link_sum(halo_device *device, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    HL_NCCL(dev, ncclAllReduce(data, data, (size_t)n, type_of(type), ncclSum, link->comm, hl_cuda_stream(dev, queue)));
    return HALO_OK;
}

static char *part_of(const halo_link *link, void *data, halo_dtype type, int64_t n) { return (char *)data + (size_t)n * (size_t)link->rank * hl_dtype_size(type); }

halo_status hl_cuda_link_scatter(halo_device *device, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    HL_NCCL(dev, ncclReduceScatter(data, part_of(link, data, type, n), (size_t)n, type_of(type), ncclSum, link->comm, hl_cuda_stream(dev, queue)));
    return HALO_OK;
}

halo_status hl_cuda_link_gather(halo_device *device, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    HL_TRY(hl_cuda_here(dev));
    HL_NCCL(dev, ncclAllGather(part_of(link, data, type, n), data, (size_t)n, type_of(type), link->comm, hl_cuda_stream(dev, queue)));
    return HALO_OK;
}

halo_status hl_cuda_link_move(halo_device *device, halo_link *link, const halo_parcel *parcel, int n, halo_queue *queue)
{
    hl_cuda_device *dev = hl_cuda(device);
    const cudaStream_t stream = hl_cuda_stream(dev, queue);
    ncclResult_t e = ncclSuccess;
    HL_TRY(hl_cuda_here(dev));
    HL_NCCL(dev, ncclGroupStart());
    for (int i = 0; i < n && e == ncclSuccess; i++)
        e = parcel[i].send ? ncclSend(parcel[i].ptr, parcel[i].bytes, ncclUint8, parcel[i].peer, link->comm, stream)
                           : ncclRecv(parcel[i].ptr, parcel[i].bytes, ncclUint8, parcel[i].peer, link->comm, stream);
    ncclResult_t end = ncclGroupEnd();
    return e == ncclSuccess && end == ncclSuccess ? HALO_OK : failed(dev, "ncclSend, ncclRecv", e != ncclSuccess ? e : end);
}

void hl_cuda_unlink(halo_device *device, halo_link *link)
{
    hl_cuda_device *dev = hl_cuda(device);
    if (!link) return;
    cudaSetDevice(dev->index);
    cudaDeviceSynchronize();
    ncclCommDestroy(link->comm);
    free(link);
}

void hl_cuda_nccl_version(char *out, size_t size)
{
    int v = 0;
    if (ncclGetVersion(&v) != ncclSuccess) v = 0;
    snprintf(out, size, ", NCCL %d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
}

#else

void hl_cuda_nccl_version(char *out, size_t size)
{
    if (size) *out = 0;
}

#endif
