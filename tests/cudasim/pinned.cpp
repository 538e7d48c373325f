/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned.cpp -- page-locked host memory: mapped twice, once for the program and once for the simulator. While
 * an operation that writes it may be pending the program's mapping is closed, while one only reads it may not
 * be written: a missing synchronisation faults at the very access. The mapping opens when the host's clock
 * has reached the operation, and not when the operation happens to have run. What is shielded is pages: a
 * buffer that is in use in parts wants them to begin on pages of their own.
 */
#include "sim.hpp"
#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {

static const size_t page = 4096;

int next_block_id();

cudaError_t pinned_alloc(void **p, size_t bytes)
{
    *p = nullptr;
    size_t span = (std::max(bytes, size_t(1)) + page - 1) / page * page;
    int fd = memfd_create("cudasim", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)span)) {
        if (fd >= 0) close(fd);
        return failed(cudaErrorMemoryAllocation);
    }
    char *user = (char *)mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *work = (char *)mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (user == MAP_FAILED || work == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
    install_trap();
    memset(work, 0xff, span);
    blocks[user] = {user, work, bytes, span, current_device(), next_block_id(), true,
                    std::vector<uint8_t>(span / page, PROT_READ | PROT_WRITE), {}};
    *p = user;
    return cudaSuccess;
}

cudaError_t pinned_release(void *p)
{
    if (!p) return cudaSuccess;
    auto it = blocks.find((char *)p);
    if (it == blocks.end() || !it->second.pinned)
        return fail(cudaErrorInvalidValue, "cudaFreeHost(%p): not the start of a live pinned allocation", p);
    for (int d = 0; d < settings().devices; d++) wait_device(d);
    munmap(it->second.address, it->second.span);
    munmap(it->second.work, it->second.span);
    blocks.erase(it);
    return cudaSuccess;
}

/* What the host may do with each page of a block */
static std::vector<uint8_t> allowed(const Block &b)
{
    std::vector<uint8_t> access(b.span / page, PROT_READ | PROT_WRITE);
    for (auto &a : b.history) {
        if (seen(host_clock, a.stream, a.seq) || a.touch.bytes == 0) continue;
        size_t at = (size_t)((const char *)a.touch.p - b.address);
        for (size_t i = at / page; i <= (at + a.touch.bytes - 1) / page; i++)
            access[i] = a.touch.write ? PROT_NONE : access[i] & PROT_READ;
    }
    return access;
}

void shield_pinned()
{
    for (auto &it : blocks) {
        Block &b = it.second;
        if (!b.pinned) continue;
        std::vector<uint8_t> access = allowed(b);
        for (size_t i = 0, end; i < access.size(); i = end) {
            for (end = i + 1; end < access.size() && access[end] == access[i] && b.shield[end] == b.shield[i];)
                end++;
            if (access[i] != b.shield[i]) mprotect(b.address + i * page, (end - i) * page, access[i]);
        }
        b.shield = std::move(access);
    }
}

} // namespace sim

using namespace sim;

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaHostAlloc")) return e;
    if (planted(CUDASIM_HOST_ALLOC)) return failed(cudaErrorMemoryAllocation);
    return pinned_alloc(p, bytes);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return cudaHostAlloc(p, bytes, 0);
}

cudaError_t cudaFreeHost(void *p)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    return pinned_release(p);
}

/* One address serves both sides, as on every 64-bit system */
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Block *b = find_block(host);
    if (!b || !b->pinned)
        return fail(cudaErrorInvalidValue, "cudaHostGetDevicePointer(%p): not pinned memory", host);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Block *b = find_block(p);
    memset(attributes, 0, sizeof(*attributes));
    attributes->type = !b          ? cudaMemoryTypeUnregistered
                       : b->pinned ? cudaMemoryTypeHost
                                   : cudaMemoryTypeDevice;
    attributes->device = b ? b->device : -1;
    attributes->devicePointer = b ? (void *)p : nullptr;
    attributes->hostPointer = b && !b->pinned ? nullptr : (void *)p;
    return cudaSuccess;
}
