/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.cpp -- copies and fills, of one run, of rows and of boxes. The declared direction must be what the
 * pointers are. Pageable host memory in an asynchronous copy behaves as in CUDA: taken at the call on the way
 * to the device, waited for on the way back (CUDASIM_STRICT=1 refuses both, as they are slow there);
 * page-locked memory is read and written when the copy runs.
 */
#include "sim.hpp"
#include <cstring>

namespace sim {

struct Side { /* one end of a copy: rows of `width` bytes, `height` of them a `pitch` apart, `depth` planes of
                 `slice` bytes */
    const void *p;
    size_t pitch, slice;
};

struct Shape {
    size_t width, height, depth;
};

static Touch touch(const Side &side, const Shape &shape, bool write)
{
    int64_t extent[3] = {(int64_t)shape.depth, (int64_t)shape.height, (int64_t)shape.width};
    int64_t stride[3] = {(int64_t)side.slice, (int64_t)side.pitch, 1};
    return strided(side.p, 3, extent, stride, 1, write);
}

static void move(char *to, const Side &d, const char *from, const Side &s, const Shape &shape)
{
    for (size_t z = 0; z < shape.depth; z++)
        for (size_t y = 0; y < shape.height; y++)
            memcpy(to + z * d.slice + y * d.pitch, from + z * s.slice + y * s.pitch, shape.width);
}

static const char *direction(enum cudaMemcpyKind kind)
{
    static const char *const names[] = {"host to host", "host to device", "device to host",
                                        "device to device", "default"};
    return names[(unsigned)kind < 5 ? kind : 4];
}

static bool direction_holds(enum cudaMemcpyKind kind, bool to_device, bool from_device)
{
    if (kind == cudaMemcpyDefault) return true;
    return to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
           from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
}

/* The simulator's address of one side; pageable memory is its own */
static char *place(const Touch &t, bool device)
{
    if (device || find_block(t.p)) return (char *)translate(t.p, t.bytes, !device);
    return (char *)t.p;
}

static cudaError_t copy(const Side &d, const Side &s, const Shape &shape, enum cudaMemcpyKind kind,
                        cudaStream_t stream, bool async)
{
    bool to_device = is_device(d.p), from_device = is_device(s.p);
    if ((unsigned)kind > cudaMemcpyDefault || !direction_holds(kind, to_device, from_device))
        return fail(cudaErrorInvalidValue, "a copy declared %s: the destination is %s, the source %s",
                    direction(kind), to_device ? "device" : "host", from_device ? "device" : "host");
    if (planted(CUDASIM_COPY)) return failed(cudaErrorInvalidValue);
    if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return cudaSuccess;
    Touch to = touch(d, shape, true), from = touch(s, shape, false);
    char *dst = place(to, to_device), *src = place(from, from_device);
    if (!dst)
        return fail(cudaErrorInvalidValue, "copy: the destination: %s", why_not(to.p, to.bytes).c_str());
    if (!src) return fail(cudaErrorInvalidValue, "copy: the source: %s", why_not(from.p, from.bytes).c_str());
    bool loose_to = !to_device && !find_block(d.p), loose_from = !from_device && !find_block(s.p);
    if (async && (loose_to || loose_from)) {
        if (settings().strict || recording(false))
            return fail(cudaErrorInvalidValue, "an asynchronous copy %s pageable memory",
                        loose_to ? "to" : "from");
        if (loose_to) async = false;
    }
    std::shared_ptr<std::vector<char>> taken;
    if (loose_from && async) {
        taken = std::make_shared<std::vector<char>>(from.bytes);
        move(taken->data(), s, src, s, shape);
    }
    Task task{text("copy of %zu bytes", shape.width * shape.height * shape.depth),
              {to, from},
              nullptr,
              nullptr,
              nullptr};
    task.run = [=] { move(dst, d, taken ? taken->data() : src, s, shape); };
    if (cudaError_t e = enqueue(stream, task)) return e;
    if (!async) {
        Stream *queue = resolve(stream);
        wait_for(queue, queue->next - 1);
    }
    return async ? cudaSuccess : usable();
}

static cudaError_t fill(void *p, int value, size_t pitch, const Shape &shape, cudaStream_t stream)
{
    if (planted(CUDASIM_COPY)) return failed(cudaErrorInvalidValue);
    if (shape.width == 0 || shape.height == 0) return cudaSuccess;
    Side side{p, pitch, 0};
    Touch t = touch(side, shape, true);
    char *at = (char *)translate(p, t.bytes, true);
    if (!at) return fail(cudaErrorInvalidValue, "fill: %s", why_not(p, t.bytes).c_str());
    Task task{text("fill of %zu bytes", shape.width * shape.height), {t}, nullptr, nullptr, nullptr};
    task.run = [=] {
        for (size_t y = 0; y < shape.height; y++) memset(at + y * pitch, value, shape.width);
    };
    return enqueue(stream, task);
}

} // namespace sim

using namespace sim;

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    return copy({dst, n, n}, {src, n, n}, {n, 1, 1}, kind, stream, true);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaMemcpy")) return e;
    return copy({dst, n, n}, {src, n, n}, {n, 1, 1}, kind, nullptr, false);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (width > dpitch || width > spitch)
        return fail(cudaErrorInvalidPitchValue,
                    "cudaMemcpy2DAsync: rows of %zu bytes, pitches of %zu and %zu", width, dpitch, spitch);
    return copy({dst, dpitch, 0}, {src, spitch, 0}, {width, height, 1}, kind, stream, true);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    const cudaPitchedPtr &d = p->dstPtr, &s = p->srcPtr;
    if (p->srcArray || p->dstArray) return fail(cudaErrorNotSupported, "copies of arrays are not simulated");
    if (p->extent.width > d.pitch || p->extent.width > s.pitch)
        return fail(cudaErrorInvalidPitchValue,
                    "cudaMemcpy3DAsync: rows of %zu bytes, pitches of %zu and %zu", p->extent.width, d.pitch,
                    s.pitch);
    auto start = [](const cudaPitchedPtr &q, const cudaPos &at) {
        return (const void *)((const char *)q.ptr + at.z * q.ysize * q.pitch + at.y * q.pitch + at.x);
    };
    return copy({start(d, p->dstPos), d.pitch, d.pitch * d.ysize},
                {start(s, p->srcPos), s.pitch, s.pitch * s.ysize},
                {p->extent.width, p->extent.height, p->extent.depth}, p->kind, stream, true);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    return fill(p, value, n, {n, 1, 1}, stream);
}

cudaError_t cudaMemset(void *p, int value, size_t n)
{
    return cudaMemsetAsync(p, value, n, nullptr);
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    return fill(p, value, pitch, {width, height, 1}, stream);
}
