/* SPDX-License-Identifier: Apache-2.0 */
/* device.cpp -- the devices and what they say of themselves: capability, limits, versions of driver and
 * runtime. */
#include "sim.hpp"
#include <cstdio>
#include <cstring>

namespace sim {
void set_current_device(int d);

/* Shared memory that a block may ask for beyond the 48 KiB that all have, by capability */
size_t shared_limit()
{
    switch (settings().sm) {
    case 70:
        return 96 << 10;
    case 75:
        return 64 << 10;
    case 80:
        return 163 << 10;
    case 90:
        return 227 << 10;
    default:
        return 99 << 10;
    }
}

bool has_image()
{
    const std::vector<int> &images = settings().images;
    if (images.empty()) return true;
    for (int i : images) /* a binary runs on the same major version from its minor on */
        if (i / 10 == settings().sm / 10 && i <= settings().sm) return true;
    return false;
}

static int attribute(enum cudaDeviceAttr a)
{
    int sm = settings().sm;
    switch (a) {
    case cudaDevAttrMaxThreadsPerBlock:
        return 1024;
    case cudaDevAttrMaxBlockDimX:
        return 1024;
    case cudaDevAttrMaxBlockDimY:
        return 1024;
    case cudaDevAttrMaxBlockDimZ:
        return 64;
    case cudaDevAttrMaxGridDimX:
        return 2147483647;
    case cudaDevAttrMaxGridDimY:
        return 65535;
    case cudaDevAttrMaxGridDimZ:
        return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return (int)shared_limit();
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return (int)shared_limit() + 1024;
    case cudaDevAttrWarpSize:
        return 32;
    case cudaDevAttrMultiProcessorCount:
        return 4;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return 2048;
    case cudaDevAttrMaxRegistersPerBlock:
        return 65536;
    case cudaDevAttrComputeCapabilityMajor:
        return sm / 10;
    case cudaDevAttrComputeCapabilityMinor:
        return sm % 10;
    case cudaDevAttrUnifiedAddressing:
        return 1;
    case cudaDevAttrCanMapHostMemory:
        return 1;
    case cudaDevAttrAsyncEngineCount:
        return 2;
    case cudaDevAttrConcurrentKernels:
        return 1;
    case cudaDevAttrL2CacheSize:
        return 4 << 20;
    default:
        return 0;
    }
}

} // namespace sim

using namespace sim;

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = settings().driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    Lock lock;
    if (cudaError_t e = usable()) return e; /* the count stays as it was, as with the real one */
    *count = settings().devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int d)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (d < 0 || d >= settings().devices)
        return fail(cudaErrorInvalidDevice, "cudaSetDevice(%d) of %d", d, settings().devices);
    set_current_device(d);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *d)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    *d = current_device();
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int)
{
    Lock lock;
    return usable();
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr a, int d)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (d < 0 || d >= settings().devices)
        return fail(cudaErrorInvalidDevice, "cudaDeviceGetAttribute of device %d", d);
    *value = attribute(a);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (d < 0 || d >= settings().devices)
        return fail(cudaErrorInvalidDevice, "cudaGetDeviceProperties of device %d", d);
    memset(p, 0, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "cudasim sm_%d", settings().sm);
    memcpy(p->uuid.bytes, "cudasim", 7);
    p->uuid.bytes[15] = (char)d;
    p->totalGlobalMem = settings().memory;
    p->sharedMemPerBlock = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = shared_limit();
    p->sharedMemPerMultiprocessor = shared_limit() + 1024;
    p->regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->major = settings().sm / 10;
    p->minor = settings().sm % 10;
    p->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
    p->maxThreadsPerMultiProcessor = 2048;
    p->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
    p->unifiedAddressing = p->canMapHostMemory = p->concurrentKernels = 1;
    p->asyncEngineCount = 2;
    p->pciBusID = d + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int d)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    snprintf(id, (size_t)length, "0000:%02x:00.0", d + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
    Lock lock;
    *can = 0;
    return usable();
}

/* What a kernel was built for: whether it can run here at all */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (!kernel) return fail(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes of no kernel");
    if (!has_image()) return failed(cudaErrorNoKernelImageForDevice);
    memset(attributes, 0, sizeof(*attributes));
    attributes->maxThreadsPerBlock = 1024;
    attributes->binaryVersion = attributes->ptxVersion = settings().sm;
    attributes->numRegs = 32;
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks_per, const void *, int threads, size_t)
{
    Lock lock;
    *blocks_per = threads > 0 && threads <= 1024 ? 2048 / threads : 0;
    return usable();
}
