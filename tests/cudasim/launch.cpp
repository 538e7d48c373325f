/* SPDX-License-Identifier: Apache-2.0 */
/* launch.cpp -- what a launch checks and queues: the shape of the grid, every pointer argument, shared
 * memory, whether the kernel has an image. */
#include "launch.hpp"
#include "grid.hpp"
#include "sim.hpp"
#include <cstring>
#include <map>

namespace sim {

size_t shared_limit();
bool has_image();

static std::map<const void *, size_t> &
opted_in() /* dynamic shared memory that a kernel may have, where more than 48 KiB */
{
    static auto *map = new std::map<const void *, size_t>;
    return *map;
}

struct Launch::State {
    Lock lock;
    std::string name, wrong;
    const void *kernel;
    dim3 grid, block;
    size_t bytes;
    cudaStream_t stream;
    std::vector<Touch> touches;
};

Launch::Launch(const char *name, const void *kernel, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream)
    : state(new State{{}, name, "", kernel, grid, block, bytes, stream, {}})
{
}

Launch::~Launch() = default;

/* A bare pointer: all that follows in its block */
const void *Launch::rest(const void *p, bool write)
{
    const int64_t one = 1, n = (int64_t)room(p);
    return p ? box(p, 1, &n, &one, 1, write) : nullptr;
}

const void *Launch::box(const void *p, int rank, const int64_t *extent, const int64_t *stride, int64_t item,
                        bool write)
{
    if (!p) return nullptr;
    Touch t = strided(p, rank, extent, stride, item, write);
    const void *at = translate(p, t.bytes, true);
    if (!at && state->wrong.empty())
        state->wrong =
            text("pointer argument %zu: %s", state->touches.size() + 1, why_not(p, t.bytes).c_str());
    state->touches.push_back(std::move(t));
    return at;
}

static bool shape_holds(dim3 g, dim3 b)
{
    return g.x && g.y && g.z && b.x && b.y && b.z && b.x <= 1024 && b.y <= 1024 && b.z <= 64 &&
           (uint64_t)b.x * b.y * b.z <= 1024 && g.x <= 2147483647u && g.y <= 65535 && g.z <= 65535;
}

cudaError_t Launch::submit(std::function<void()> body)
{
    State &l = *state;
    const char *name = l.name.c_str();
    if (cudaError_t e = usable()) return e;
    if (planted(CUDASIM_LAUNCH)) return failed(cudaErrorLaunchOutOfResources);
    if (!has_image()) return failed(cudaErrorNoKernelImageForDevice);
    if (!shape_holds(l.grid, l.block))
        return fail(cudaErrorInvalidConfiguration, "kernel '%s': grid (%u,%u,%u) of blocks (%u,%u,%u)", name,
                    l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z);
    size_t most = opted_in().count(l.kernel) ? opted_in()[l.kernel] : 48 << 10;
    if (l.bytes > most)
        return fail(cudaErrorInvalidValue, "kernel '%s': %zu bytes of dynamic shared memory, %zu allowed",
                    name, l.bytes, most);
    if (!l.wrong.empty()) return fail(cudaErrorIllegalAddress, "kernel '%s': %s", name, l.wrong.c_str());
    Task task{l.name, l.touches, nullptr, nullptr, nullptr};
    std::string kept = l.name;
    dim3 grid = l.grid, block = l.block;
    size_t bytes = l.bytes;
    task.run = [=] { run_grid(kept.c_str(), grid, block, bytes, body); };
    return enqueue(l.stream, std::move(task));
}

} // namespace sim

using namespace sim;

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || (size_t)value > shared_limit())
        return fail(cudaErrorInvalidValue, "cudaFuncSetAttribute: %d bytes of dynamic shared memory", value);
    opted_in()[kernel] = (size_t)value;
    return cudaSuccess;
}
