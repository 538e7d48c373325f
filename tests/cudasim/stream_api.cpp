/* SPDX-License-Identifier: Apache-2.0 */
/* stream_api.cpp -- cudart's calls on streams and events, and host functions in streams. */
#include "sim.hpp"
#include <set>

namespace sim {
void drop_stream(Stream *s);

struct Event {
    unsigned flags;
    Mark mark;
};

static std::set<Event *> &events()
{
    static auto *set = new std::set<Event *>;
    return *set;
}

static Event *event_of(cudaEvent_t handle)
{
    Event *e = (Event *)handle;
    if (events().count(e)) return e;
    refused("%p is not a live event", (void *)handle);
    return nullptr;
}

static bool reached(const Mark &m)
{
    return !m.stream || m.stream->ran >= m.seq;
}

} // namespace sim

using namespace sim;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned int flags, int priority)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking)
        return fail(cudaErrorInvalidValue, "cudaStreamCreateWithPriority: flags %#x", flags);
    if (planted(CUDASIM_CREATE)) return failed(cudaErrorMemoryAllocation);
    resolve(nullptr);
    Stream *s = make_stream(current_device(), flags == cudaStreamNonBlocking, false);
    s->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    *handle = (cudaStream_t)s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned int flags)
{
    return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *handle)
{
    return cudaStreamCreateWithPriority(handle, cudaStreamDefault, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    Lock lock;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    *priority = s->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Stream *s = handle ? resolve(handle) : nullptr;
    if (!s) return fail(cudaErrorInvalidResourceHandle, "cudaStreamDestroy(%p)", (void *)handle);
    if (s->capture)
        return fail(cudaErrorInvalidValue, "cudaStreamDestroy: stream %d records a graph", s->index);
    drop_stream(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaStreamSynchronize")) return e;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    if (s == resolve(nullptr)) { /* it comes after the streams that it waits for */
        if (cudaError_t e =
                enqueue(handle, Task{"wait for the default stream", {}, nullptr, nullptr, nullptr}))
            return e;
    }
    wait_for(s, s->next - 1);
    return usable();
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaStreamQuery")) return e;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    if (s->ran < s->next - 1) {
        advance(s, s->next - 1); /* who only asks must get there as well */
        return cudaErrorNotReady;
    }
    host_saw(s->clock);
    return usable();
}

cudaError_t cudaDeviceSynchronize(void)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaDeviceSynchronize")) return e;
    wait_device(current_device());
    return usable();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void *data)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    return enqueue(handle, Task{"host function", {}, nullptr, nullptr, [fn, data] { fn(data); }});
}

/* --- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned int flags)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (planted(CUDASIM_CREATE)) return failed(cudaErrorMemoryAllocation);
    Event *e = new Event{flags, {}};
    events().insert(e);
    *handle = (cudaEvent_t)e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *handle)
{
    return cudaEventCreateWithFlags(handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    Lock lock;
    Event *e = event_of(handle);
    if (!e) return failed(cudaErrorInvalidResourceHandle);
    events().erase(e);
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Event *e = event_of(handle);
    Stream *s = resolve(stream);
    if (!e || !s) return failed(cudaErrorInvalidResourceHandle);
    Mark mark;
    mark.stream = s;
    mark.tick = std::make_shared<uint64_t>(0);
    if (s->capture) {
        mark.capture = s->capture;
        mark.heads = s->heads;
    } else {
        auto tick = mark.tick;
        if (cudaError_t error =
                enqueue(stream, Task{"event record", {}, [tick] { *tick = ticks + 1; }, nullptr, nullptr}))
            return error;
        mark.seq = s->next - 1;
        mark.clock = s->clock;
    }
    e->mark = std::move(mark);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned int)
{
    return cudaEventRecord(handle, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned int)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Event *e = event_of(handle);
    Stream *s = resolve(stream);
    if (!e || !s) return failed(cudaErrorInvalidResourceHandle);
    Mark &m = e->mark;
    if (!m.stream) return cudaSuccess; /* never recorded: nothing to wait for, as in CUDA */
    if (s->capture || m.capture) return capture_wait(s, m);
    join(s->clock, m.clock);
    push(s, Task{"event wait", {}, nullptr, nullptr, nullptr}, {{m.stream, m.seq}});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaEventSynchronize")) return e;
    Event *e = event_of(handle);
    if (!e) return failed(cudaErrorInvalidResourceHandle);
    Mark m = e->mark;
    if (m.capture)
        return fail(cudaErrorCapturedEvent, "the host waits for an event that was recorded in a capture");
    if (!m.stream) return cudaSuccess;
    while (!reached(m))
        if (!advance(m.stream, m.seq)) pause();
    host_saw(m.clock);
    return usable();
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (cudaError_t e = capture_forbids("cudaEventQuery")) return e;
    Event *e = event_of(handle);
    if (!e) return failed(cudaErrorInvalidResourceHandle);
    Mark &m = e->mark;
    if (m.capture)
        return fail(cudaErrorCapturedEvent, "the host asks for an event that was recorded in a capture");
    if (!reached(m)) {
        advance(m.stream, m.seq);
        return cudaErrorNotReady;
    }
    host_saw(m.clock);
    return usable();
}

/* A microsecond for each operation that ran between: no time of any GPU */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    Lock lock;
    Event *a = event_of(start), *b = event_of(end);
    if (!a || !b) return failed(cudaErrorInvalidResourceHandle);
    if ((a->flags | b->flags) & cudaEventDisableTiming)
        return fail(cudaErrorInvalidResourceHandle, "an event without timing is timed");
    if (!a->mark.stream || !b->mark.stream || a->mark.capture || b->mark.capture)
        return fail(cudaErrorInvalidResourceHandle, "an event that was never recorded in a stream is timed");
    if (!reached(a->mark) || !reached(b->mark)) return cudaErrorNotReady;
    *ms = 0.001f * (float)((int64_t)*b->mark.tick - (int64_t)*a->mark.tick);
    return cudaSuccess;
}
