/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.cpp -- device memory that the host cannot touch. Two ranges of addresses of the same layout: the
 * first is never accessible, and its addresses are the device pointers; the second is where the simulator
 * finds the bytes. A host access therefore always faults, at no cost to the rest and without a moment in
 * which it would not. Blocks end at a page that is never mapped, the slack before it holds canaries,
 * addresses are never used twice, and fresh memory is all ones: NaN in f64, f32, f16 and bf16.
 */
#include "sim.hpp"
#include "sanitize.hpp"
#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace sim {

static const size_t page = 4096, grain = 256; /* cudaMalloc aligns to 256 bytes */
#if SIM_TSAN
static const size_t reserved = size_t(1)
                               << 36; /* the thread sanitizer wants memory of its own for each of these */
#else
static const size_t reserved = size_t(1) << 40;
#endif
static char *device_base, *work_base;
static size_t used; /* addresses handed out so far */
static int last_id;
std::map<char *, Block> &blocks =
    *new std::map<char *, Block>; /* never destroyed: threads may outlive static objects */

static void reserve()
{
    if (device_base) return;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    device_base = (char *)mmap(nullptr, reserved, PROT_NONE, flags, -1, 0);
    work_base = (char *)mmap(nullptr, reserved, PROT_NONE, flags, -1, 0);
    if (device_base == MAP_FAILED || work_base == MAP_FAILED)
        die("FATAL", "cannot reserve addresses for device memory");
    install_trap();
}

bool is_device(const void *p)
{
    return device_base && (const char *)p >= device_base && (const char *)p < device_base + reserved;
}

Block *find_block(const void *p)
{
    auto it = blocks.upper_bound((char *)p);
    if (it == blocks.begin()) return nullptr;
    Block &b = std::prev(it)->second;
    return (char *)p < b.address + std::max(b.bytes, size_t(1)) ? &b : nullptr;
}

size_t room(const void *p)
{
    Block *b = find_block(p);
    return b ? (size_t)(b->address + b->bytes - (const char *)p) : 0;
}

std::string why_not(const void *p, size_t bytes)
{
    Block *b = find_block(p);
    if (!b && is_device(p)) return text("device address %p is freed or was never allocated", p);
    if (!b) return text("%p is a host pointer, device memory is wanted", p);
    if (bytes > room(p))
        return text("%zu bytes at offset %zu run past allocation #%d of %zu bytes", bytes,
                    (size_t)((const char *)p - b->address), b->id, b->bytes);
    return text("%p is pinned host memory, device memory is wanted", p);
}

void *translate(const void *p, size_t bytes, bool pinned_too)
{
    Block *b = find_block(p);
    if (!b || (b->pinned && !pinned_too) || bytes > room(p)) return nullptr;
    return b->work + ((const char *)p - b->address);
}

static size_t in_use(int device)
{
    size_t sum = 0;
    for (auto &it : blocks)
        if (!it.second.pinned && it.second.device == device) sum += it.second.span;
    return sum;
}

cudaError_t device_alloc(void **p, size_t bytes)
{
    *p = nullptr;
    if (bytes == 0) return cudaSuccess;
    reserve();
    size_t span = (bytes + grain - 1) / grain * grain, pages = (span + page - 1) / page * page;
    if (bytes > settings().memory || in_use(current_device()) + span > settings().memory)
        return failed(cudaErrorMemoryAllocation);
    if (used + pages + page > reserved) die("FATAL", "addresses for device memory are used up");
    char *first = work_base + used + page, *work = first + pages - span;
    if (mprotect(first, pages, PROT_READ | PROT_WRITE)) return failed(cudaErrorMemoryAllocation);
    memset(first, 0xff, pages);
    SIM_POISON(first, pages);
    SIM_UNPOISON(work, bytes);
    char *address = device_base + (work - work_base);
    blocks[address] = {address, work, bytes, span, current_device(), ++last_id, false, {}, {}};
    used += page + pages;
    note("allocation #%d: %zu bytes at %p", last_id, bytes, (void *)address);
    *p = address;
    return cudaSuccess;
}

cudaError_t device_release(void *p)
{
    if (!p) return cudaSuccess;
    auto it = blocks.find((char *)p);
    if (it == blocks.end() || it->second.pinned)
        return fail(cudaErrorInvalidValue, "cudaFree(%p): not the start of a live device allocation", p);
    wait_device(it->second.device);
    Block &b = it->second;
    SIM_UNPOISON(b.work, b.span);
    for (size_t i = b.bytes; i < b.span; i++)
        if ((unsigned char)b.work[i] != 0xff)
            die("FATAL", "something wrote past the end of allocation #%d (%zu bytes), at offset %zu", b.id,
                b.bytes, i);
    size_t first = (size_t)(b.work - work_base) / page * page, end = (size_t)(b.work - work_base) + b.span;
    SIM_UNPOISON(work_base + first, end - first);
    madvise(work_base + first, end - first, MADV_DONTNEED);
    mprotect(work_base + first, end - first, PROT_NONE);
    blocks.erase(it);
    return cudaSuccess;
}

std::string explain_address(const char *a)
{
    if (device_base && a >= device_base && a < device_base + reserved) {
        Block *b = find_block(a);
        if (b && running_kernel)
            return text(
                "kernel '%s' followed a device pointer that was no argument of it: allocation #%d of %zu "
                "bytes, offset %zu",
                running_kernel, b->id, b->bytes, (size_t)(a - b->address));
        if (b)
            return text("host code touched device memory: allocation #%d of %zu bytes, offset %zu", b->id,
                        b->bytes, (size_t)(a - b->address));
        return text("host code touched a freed or unallocated device address %p", (const void *)a);
    }
    if (work_base && a >= work_base && a < work_base + reserved)
        return text(
            "kernel or operation '%s' touched device memory outside any live allocation (device address %p)",
            running_kernel ? running_kernel : "?", (const void *)(a - work_base + device_base));
    for (auto &it : blocks)
        if (it.second.pinned && a >= it.second.address && a < it.second.address + it.second.span)
            return text("host code touched pinned memory (allocation #%d, offset %zu) while an asynchronous "
                        "operation on it is pending: a "
                        "synchronisation is missing",
                        it.second.id, (size_t)(a - it.second.address));
    return "";
}

int next_block_id()
{
    return ++last_id;
}

} // namespace sim

using namespace sim;

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (!p) return fail(cudaErrorInvalidValue, "cudaMalloc: a null pointer for the result");
    if (cudaError_t e = capture_forbids("cudaMalloc")) return e;
    if (planted(CUDASIM_MALLOC)) return failed(cudaErrorMemoryAllocation);
    return device_alloc(p, bytes);
}

cudaError_t cudaFree(void *p)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (p) {
        if (cudaError_t e = capture_forbids("cudaFree")) return e;
    }
    return device_release(p);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    *total = settings().memory;
    *free = *total - std::min(*total, in_use(current_device()));
    return cudaSuccess;
}

extern "C" int64_t cudasim_live(int64_t *bytes)
{
    Lock lock;
    int64_t count = 0, sum = 0;
    for (auto &it : blocks) {
        if (it.second.pinned) continue;
        count++;
        sum += (int64_t)it.second.bytes;
    }
    if (bytes) *bytes = sum;
    return count;
}
