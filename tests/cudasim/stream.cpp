/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.cpp -- operations wait in streams until something makes them run. A call only queues: sizes, scalars
 * and descriptors are taken at the call, memory is read and written when the operation runs. Without a seed
 * an operation runs when a synchronisation needs it, as late as it may; with one, streams are picked at
 * random and run at random moments, also while the host goes on queuing. An operation that waits for other
 * processes (a collective) is asked whether it has ended; meanwhile the lock is given up and other streams go
 * on.
 */
#include "sim.hpp"
#include <algorithm>
#include <thread>

namespace sim {

uint64_t ticks;
static thread_local int device_now;
static bool broken; /* an operation failed: the rest is dropped */

int current_device()
{
    return device_now;
}

void set_current_device(int d)
{
    device_now = d;
}

std::vector<std::unique_ptr<Stream>> &streams()
{
    static auto *list = new std::vector<std::unique_ptr<Stream>>;
    return *list;
}

Stream *make_stream(int device, bool nonblocking, bool hidden)
{
    auto s = std::make_unique<Stream>();
    s->index = (int)streams().size();
    s->device = device;
    s->nonblocking = nonblocking;
    s->hidden = hidden;
    streams().push_back(std::move(s));
    return streams().back().get();
}

/* The default stream of each device is made first, so that stream d is that of device d */
static Stream *default_stream(int device)
{
    if (streams().empty())
        for (int d = 0; d < std::max(settings().devices, 1); d++) make_stream(d, false, false);
    return streams()[(size_t)device].get();
}

Stream *resolve(cudaStream_t handle)
{
    Stream *zero = default_stream(device_now);
    if (!handle || handle == cudaStreamLegacy) return zero;
    if (handle == cudaStreamPerThread) die("FATAL", "the per-thread default stream is not simulated");
    for (auto &s : streams())
        if ((cudaStream_t)s.get() == handle && !s->dead && !s->hidden) return s.get();
    refused("%p is not a live stream", (void *)handle);
    return nullptr;
}

/* --- queuing */

/* The default stream waits for all streams of its device that are not non-blocking, and they for it */
static void default_order(Stream *s, std::vector<Dep> &deps)
{
    Stream *zero = default_stream(s->device);
    for (auto &o : streams()) {
        bool waits = s == zero ? !o->nonblocking && o->device == s->device && o.get() != s
                               : !s->nonblocking && o.get() == zero;
        if (!waits) continue;
        deps.push_back({o.get(), o->next - 1});
        join(s->clock, o->clock);
    }
}

/* With a seed, operations also run while the host is still queuing */
static void run_some()
{
    if (settings().lazy) return;
    for (uint64_t n = draw(4); n > 0; n--) {
        Stream *s = streams()[draw(streams().size())].get();
        advance(s, s->next - 1);
    }
}

uint64_t push(Stream *s, const Task &task, std::vector<Dep> deps)
{
    join(s->clock, host_clock);
    if ((int)s->clock.size() <= s->index) s->clock.resize((size_t)s->index + 1);
    bool pinned = false;
    for (auto &t : task.touches) {
        check_race(s->index, s->next, s->clock, task.what, t);
        Block *b = find_block(t.p);
        pinned = pinned || (b && b->pinned);
    }
    s->clock[(size_t)s->index] = s->next;
    Op op{s->next, task.what, task.run, nullptr, task.on_host, std::move(deps)};
    if (task.start) {
        op.poll = task.start();
        s->polls++;
        watch_collectives();
    }
    s->queue.push_back(std::move(op));
    if (pinned) shield_pinned();
    note("queue  stream %d #%llu %s", s->index, (unsigned long long)s->next, task.what.c_str());
    uint64_t seq = s->next++;
    run_some();
    return seq;
}

cudaError_t enqueue(cudaStream_t handle, Task task)
{
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    if (s->device != device_now)
        return fail(cudaErrorInvalidResourceHandle, "%s: a stream of device %d while device %d is current",
                    task.what.c_str(), s->device, device_now);
    if (s->capture) return record(s, std::move(task));
    if (s == default_stream(s->device) && recording(true))
        return fail(cudaErrorStreamCaptureImplicit,
                    "%s: on the default stream while a stream that waits for it records a graph",
                    task.what.c_str());
    std::vector<Dep> deps;
    default_order(s, deps);
    push(s, task, std::move(deps));
    return cudaSuccess;
}

/* --- running */

static void run(Stream *s)
{
    Op op = std::move(s->queue.front());
    s->queue.pop_front();
    s->running = true;
    note("run    stream %d #%llu %s", s->index, (unsigned long long)op.seq, op.what.c_str());
    if (!broken && (op.run || op.poll) && planted(CUDASIM_EXECUTE)) {
        broken = true;
        break_device(op.what.c_str());
    }
    running_kernel = op.what.c_str();
    if (op.run && !broken) op.run();
    if (op.on_host) unlocked(op.on_host);
    running_kernel = nullptr;
    if (op.poll) s->polls--;
    ticks++;
    s->ran = op.seq;
    s->running = false;
}

bool advance(Stream *s, uint64_t seq)
{
    if (s->ran >= seq || s->running || s->queue.empty()) return false;
    Op &op = s->queue.front();
    for (auto &d : op.deps)
        if (d.stream->ran < d.seq) return advance(d.stream, d.seq);
    if (op.poll && !broken) {
        s->running = true; /* it may give the lock up */
        bool ended = op.poll();
        s->running = false;
        if (!ended) return false;
    }
    run(s);
    return true;
}

/* A step of the wanted stream, or with a seed of any; pauses where all that is needed waits for others */
static void drive(Stream *s, uint64_t seq)
{
    if (draw(2)) {
        Stream *other = streams()[draw(streams().size())].get();
        advance(other, other->next - 1);
    }
    if (s->ran < seq && !advance(s, seq)) pause();
}

void host_saw(const Clock &clock)
{
    join(host_clock, clock);
    shield_pinned();
}

static void finish(Stream *s, uint64_t seq)
{
    while (s->ran < seq) drive(s, seq);
}

void wait_for(Stream *s, uint64_t seq)
{
    Clock clock = s->clock; /* what is queued while we wait is not waited for */
    finish(s, seq);
    host_saw(clock);
}

void wait_device(int device)
{
    default_stream(device);
    std::vector<std::pair<Stream *, uint64_t>> tails;
    Clock clock;
    for (auto &s : streams()) {
        if (s->device != device) continue;
        tails.push_back({s.get(), s->next - 1});
        join(clock, s->clock);
    }
    for (auto &t : tails) finish(t.first, t.second);
    host_saw(clock);
}

void drop_stream(Stream *s)
{
    finish(s, s->next - 1);
    s->dead = true;
}

/* --- collectives go on while the host computes or waits in MPI: other ranks need this one's part */

static void watch()
{
    for (;;) {
        {
            Lock lock;
            for (size_t i = 0; i < streams().size(); i++) {
                Stream *s = streams()[i].get();
                while (s->polls > 0 && advance(s, s->next - 1)) {
                }
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

void watch_collectives()
{
    static bool watching;
    if (watching) return;
    watching = true;
    std::thread(watch).detach();
}

} // namespace sim

extern "C" int64_t cudasim_pending(void)
{
    sim::Lock lock;
    int64_t n = 0;
    for (auto &s : sim::streams()) n += (int64_t)s->queue.size();
    return n;
}
