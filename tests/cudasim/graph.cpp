/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.cpp -- stream capture and graphs. While a stream records, its operations become nodes of a graph,
 * each after the last nodes of its stream; an event recorded there and awaited elsewhere draws that other
 * stream in. A launch queues the nodes on streams of the graph's own, one for each stream that took part,
 * between a begin and an end on the stream of the launch: so replays are raced, shuffled and shielded like
 * everything else. What CUDA forbids in a capture is refused and spoils it.
 */
#include "sim.hpp"
#include <algorithm>
#include <set>
#include <thread>

namespace sim {

struct Node {
    Task task;
    int lane;
    std::vector<int> deps;
};

struct Graph {
    std::vector<Node> nodes;
    int lanes = 0, device = 0;
};

struct Capture {
    unsigned long long id;
    std::unique_ptr<Graph> graph;
    Stream *origin;
    std::vector<Stream *> members;
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    bool spoilt;
};

struct Exec {
    Graph graph;
    std::vector<Stream *> lanes;
};

static std::set<Capture *> &captures()
{
    static auto *set = new std::set<Capture *>;
    return *set;
}

bool recording(bool blocking_only)
{
    for (auto *c : captures())
        for (auto *s : c->members)
            if (s->device == current_device() && (!blocking_only || !s->nonblocking)) return true;
    return false;
}

cudaError_t capture_forbids(const char *call)
{
    for (auto *c : captures()) {
        bool mine = c->thread == std::this_thread::get_id();
        if (c->mode == cudaStreamCaptureModeRelaxed || (c->mode == cudaStreamCaptureModeThreadLocal && !mine))
            continue;
        c->spoilt = true;
        return fail(cudaErrorStreamCaptureUnsupported, "%s: not allowed while stream %d records a graph",
                    call, c->origin->index);
    }
    return cudaSuccess;
}

cudaError_t record(Stream *s, Task task)
{
    Capture &c = *s->capture;
    if (c.spoilt) return failed(cudaErrorStreamCaptureInvalidated);
    note("record stream %d node %zu %s", s->index, c.graph->nodes.size(), task.what.c_str());
    c.graph->nodes.push_back({std::move(task), s->lane, s->heads});
    s->heads = {(int)c.graph->nodes.size() - 1};
    return cudaSuccess;
}

cudaError_t capture_wait(Stream *s, const Mark &mark)
{
    if (s->capture && !mark.capture)
        return fail(cudaErrorStreamCaptureIsolation,
                    "stream %d records a graph and waits for an event from outside", s->index);
    if (s->capture && s->capture != mark.capture)
        return fail(cudaErrorStreamCaptureMerge,
                    "stream %d records one graph and waits for an event of another", s->index);
    if (!s->capture) {
        s->capture = mark.capture;
        s->capture->members.push_back(s);
        s->lane = s->capture->graph->lanes++;
        s->heads.clear();
    }
    for (int h : mark.heads)
        if (std::find(s->heads.begin(), s->heads.end(), h) == s->heads.end()) s->heads.push_back(h);
    return cudaSuccess;
}

/* The nodes that come before the given ones, and these */
static std::set<int> ancestors(const Graph &g, std::vector<int> from)
{
    std::set<int> all;
    while (!from.empty()) {
        int n = from.back();
        from.pop_back();
        if (all.insert(n).second)
            from.insert(from.end(), g.nodes[(size_t)n].deps.begin(), g.nodes[(size_t)n].deps.end());
    }
    return all;
}

static cudaError_t end_capture(Stream *s, Graph **graph)
{
    std::shared_ptr<Capture> c = s->capture;
    std::set<int> joined = ancestors(*c->graph, s->heads);
    int loose = -1;
    for (auto *m : c->members) {
        for (int h : m->heads)
            if (!joined.count(h)) loose = m->index;
        m->capture.reset();
        m->heads.clear();
    }
    captures().erase(c.get());
    if (c->spoilt)
        return fail(cudaErrorStreamCaptureInvalidated,
                    "the capture of stream %d was spoilt by an earlier call", s->index);
    if (loose >= 0)
        return fail(cudaErrorStreamCaptureUnjoined,
                    "stream %d took part in the capture of stream %d and was not joined", loose, s->index);
    *graph = c->graph.release();
    return cudaSuccess;
}

/* Memory that was freed since the capture would be touched by the replay */
static bool alive(const Graph &g)
{
    for (auto &n : g.nodes)
        for (auto &t : n.task.touches)
            if (t.bytes && (!find_block(t.p) || room(t.p) < t.bytes)) {
                refused("graph: '%s' touches memory that is no longer there: %s", n.task.what.c_str(),
                        why_not(t.p, t.bytes).c_str());
                return false;
            }
    return true;
}

static void replay(Exec &e, Stream *s, uint64_t begin)
{
    std::vector<uint64_t> seq;
    std::vector<Clock> clocks;
    std::vector<Dep> ends;
    for (auto *lane : e.lanes) join(lane->clock, s->clock);
    for (auto &n : e.graph.nodes) {
        Stream *lane = e.lanes[(size_t)n.lane];
        std::vector<Dep> deps{{s, begin}};
        for (int d : n.deps) {
            deps.push_back({e.lanes[(size_t)e.graph.nodes[(size_t)d].lane], seq[(size_t)d]});
            join(lane->clock, clocks[(size_t)d]);
        }
        seq.push_back(push(lane, n.task, deps));
        clocks.push_back(lane->clock);
    }
    for (auto *lane : e.lanes) {
        ends.push_back({lane, lane->next - 1});
        join(s->clock, lane->clock);
    }
    push(s, Task{"graph end", {}, nullptr, nullptr, nullptr}, ends);
}

} // namespace sim

using namespace sim;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    static unsigned long long ids;
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    if (!handle || handle == cudaStreamLegacy)
        return fail(cudaErrorStreamCaptureUnsupported, "the default stream cannot record a graph");
    if (s->capture) return fail(cudaErrorIllegalState, "stream %d records a graph already", s->index);
    s->capture = std::make_shared<Capture>(
        Capture{++ids, std::make_unique<Graph>(), s, {s}, mode, std::this_thread::get_id(), false});
    s->capture->graph->device = s->device;
    s->capture->graph->lanes = 1;
    s->lane = 0;
    s->heads.clear();
    captures().insert(s->capture.get());
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    *graph = nullptr;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    if (!s->capture) return fail(cudaErrorIllegalState, "stream %d records no graph", s->index);
    if (s->capture->origin != s)
        return fail(cudaErrorStreamCaptureUnmatched, "the capture was begun on stream %d, not on %d",
                    s->capture->origin->index, s->index);
    return end_capture(s, (Graph **)graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Stream *s = resolve(handle);
    if (!s) return failed(cudaErrorInvalidResourceHandle);
    *status = !s->capture          ? cudaStreamCaptureStatusNone
              : s->capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

static cudaError_t capture_info(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                unsigned long long *id, cudaGraph_t *graph)
{
    cudaError_t e = cudaStreamIsCapturing(handle, status);
    if (e || *status == cudaStreamCaptureStatusNone) return e;
    Lock lock;
    Stream *s = resolve(handle);
    if (id) *id = s->capture->id;
    if (graph) *graph = (cudaGraph_t)s->capture->graph.get();
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **,
                                     const cudaGraphEdgeData **, size_t *count)
{
    if (count) *count = 0;
    return capture_info(handle, status, id, graph);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id)
{
    return capture_info(handle, status, id, nullptr);
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static thread_local cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
    std::swap(now, *mode);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    Lock lock;
    Graph *g = (Graph *)graph;
    if (!g || !count) return fail(cudaErrorInvalidValue, "cudaGraphGetNodes: no graph");
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < g->nodes.size() ? (cudaGraphNode_t)&g->nodes[i] : nullptr;
    *count = g->nodes.size();
    return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    if (!graph || !exec) return fail(cudaErrorInvalidValue, "cudaGraphInstantiate: no graph");
    if (planted(CUDASIM_CREATE)) return failed(cudaErrorMemoryAllocation);
    Exec *e = new Exec{*(Graph *)graph, {}};
    for (int i = 0; i < e->graph.lanes; i++) e->lanes.push_back(make_stream(e->graph.device, true, true));
    *exec = (cudaGraphExec_t)e;
    return cudaSuccess;
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    return instantiate(exec, graph);
}
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *, char *, size_t)
{
    return instantiate(exec, graph);
}
#endif

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    return instantiate(exec, graph);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
    Lock lock;
    if (cudaError_t e = usable()) return e;
    Exec *e = (Exec *)exec;
    Stream *s = resolve(handle);
    if (!s || !e) return failed(cudaErrorInvalidResourceHandle);
    if (s->capture) return fail(cudaErrorNotSupported, "a graph within a graph is not simulated");
    if (planted(CUDASIM_LAUNCH)) return failed(cudaErrorLaunchOutOfResources);
    if (!alive(e->graph)) return failed(cudaErrorInvalidValue);
    if (cudaError_t error = enqueue(handle, Task{"graph begin", {}, nullptr, nullptr, nullptr})) return error;
    replay(*e, s, s->next - 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    Lock lock;
    delete (Graph *)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    Lock lock;
    Exec *e = (Exec *)exec;
    if (!e) return failed(cudaErrorInvalidResourceHandle);
    for (auto *lane : e->lanes)
        while (lane->ran < lane->next - 1)
            if (!advance(lane, lane->next - 1)) pause();
    for (auto *lane : e->lanes) lane->dead = true;
    delete e;
    return cudaSuccess;
}
