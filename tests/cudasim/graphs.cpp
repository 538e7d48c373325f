/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.cpp -- stream capture and graphs on the simulated device: replays, forks and joins, races inside a
 * graph, and what a capture forbids. */
#include "check.hpp"

enum { n = 32 };
static const size_t bytes = n * sizeof(float);

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    GOOD(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cudaGraphDestroy(graph));
    return exec;
}

/* y = x, then z = y on another stream, joined again: replayed with other contents of x */
static void replay(bool fork, bool join, bool order)
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event(), f = new_event();
    float *x = upload(std::vector<float>(n, 1)), *y = device_floats(n), *z = device_floats(n);
    cudaGraph_t graph;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    if (fork && !order) GOOD(cudaEventRecord(e, s)), GOOD(cudaStreamWaitEvent(t, e, 0));
    GOOD(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, s));
    if (fork && order) GOOD(cudaEventRecord(e, s)), GOOD(cudaStreamWaitEvent(t, e, 0));
    GOOD(cudaMemcpyAsync(z, y, bytes, cudaMemcpyDeviceToDevice, fork ? t : s));
    if (join) GOOD(cudaEventRecord(f, t)), GOOD(cudaStreamWaitEvent(s, f, 0));
    HOLDS(cudasim_pending() == 0); /* recorded, not queued */
    cudaError_t ended = cudaStreamEndCapture(s, &graph);
    if (fork && !join) {
        HOLDS(ended == cudaErrorStreamCaptureUnjoined && graph == nullptr);
        return;
    }
    GOOD(ended);
    size_t nodes = 0;
    GOOD(cudaGraphGetNodes(graph, nullptr, &nodes));
    HOLDS(nodes == 2);
    cudaGraphExec_t exec = instantiate(graph);
    for (int round = 1; round <= 3; round++) {
        GOOD(cudaMemsetAsync(x, round, bytes, s));
        GOOD(cudaGraphLaunch(exec, s));
        GOOD(cudaStreamSynchronize(s));
        float want;
        memset(&want, round, sizeof(want));
        HOLDS(download(z, n)[n - 1] == want);
    }
    GOOD(cudaGraphExecDestroy(exec));
}

static void spoilt(const std::function<cudaError_t(cudaStream_t)> &call, cudaError_t want)
{
    float *x = device_floats(n);
    cudaStream_t s = new_stream();
    cudaGraph_t graph;
    cudaStreamCaptureStatus status;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GOOD(cudaMemsetAsync(x, 0, bytes, s));
    HOLDS(call(s) == want);
    if (want == cudaErrorStreamCaptureUnsupported) {
        GOOD(cudaStreamIsCapturing(s, &status));
        HOLDS(status == cudaStreamCaptureStatusInvalidated);
        HOLDS(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
    }
}

static void two_launches(bool ordered)
{
    cudaStream_t s = new_stream(), t = new_stream();
    float *x = device_floats(n), *y = device_floats(n);
    cudaGraph_t graph;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    GOOD(cudaMemsetAsync(x, 0, bytes, s));
    GOOD(cudaStreamEndCapture(s, &graph));
    GOOD(cudaGraphLaunch(instantiate(graph), s));
    if (ordered) {
        cudaEvent_t e = new_event();
        GOOD(cudaEventRecord(e, s));
        GOOD(cudaStreamWaitEvent(t, e, 0));
    }
    GOOD(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, t));
    GOOD(cudaDeviceSynchronize());
}

static void pinned_in_graph(bool wait)
{
    cudaStream_t s = new_stream();
    float *x = upload(std::vector<float>(n, 4)), *h = pinned_floats(n);
    cudaGraph_t graph;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GOOD(cudaMemcpyAsync(h, x, bytes, cudaMemcpyDeviceToHost, s));
    h[0] = 1; /* nothing is in flight yet */
    GOOD(cudaStreamEndCapture(s, &graph));
    GOOD(cudaGraphLaunch(instantiate(graph), s));
    if (wait) GOOD(cudaStreamSynchronize(s));
    HOLDS(h[0] == 4);
}

int main(void)
{
    for (const char *settings : {"CUDASIM_VERBOSE=0", "CUDASIM_SEED=1", "CUDASIM_SEED=2"}) {
        clean("a line of nodes is replayed", settings, [] { replay(false, false, false); });
        clean("a fork and a join", settings, [] { replay(true, true, true); });
        caught("a fork before the node that it should follow: a race within the graph", settings,
               "touch the same bytes", [] { replay(true, true, false); });
        clean("a later stream that waits for the launch", settings, [] { two_launches(true); });
    }
    told("a fork that is not joined", "", "took part in the capture", [] { replay(true, false, true); });
    caught("a later stream that does not wait for the launch", "", "touch the same bytes",
           [] { two_launches(false); });
    told("an allocation in a capture", "", "cudaMalloc: not allowed while stream 1 records a graph", [] {
        spoilt(
            [](cudaStream_t) {
                void *p;
                return cudaMalloc(&p, 8);
            },
            cudaErrorStreamCaptureUnsupported);
    });
    told("a wait of the host in a capture", "", "cudaStreamSynchronize: not allowed", [] {
        spoilt([](cudaStream_t s) { return cudaStreamSynchronize(s); }, cudaErrorStreamCaptureUnsupported);
    });
    told("a query of an event in a capture", "", "cudaEventQuery: not allowed", [] {
        spoilt([](cudaStream_t) { return cudaEventQuery(new_event()); }, cudaErrorStreamCaptureUnsupported);
    });
    told("an event from outside a capture", "", "waits for an event from outside", [] {
        cudaEvent_t e = new_event();
        GOOD(cudaEventRecord(e, new_stream()));
        spoilt([e](cudaStream_t s) { return cudaStreamWaitEvent(s, e, 0); }, cudaErrorStreamCaptureIsolation);
    });
    told("pageable memory in a capture", "", "pageable memory", [] {
        static float host[n];
        float *x = device_floats(n);
        spoilt([x](cudaStream_t s) { return cudaMemcpyAsync(x, host, bytes, cudaMemcpyHostToDevice, s); },
               cudaErrorInvalidValue);
    });
    clean("streams that take no part go on while one records", "", [] {
        cudaGraph_t graph;
        cudaStream_t s = new_stream(), other = new_stream();
        float *x = device_floats(n);
        GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        GOOD(cudaMemsetAsync(x, 0, bytes, other));
        HOLDS(cudasim_pending() == 1);
        GOOD(cudaStreamEndCapture(s, &graph));
        size_t nodes = 7;
        GOOD(cudaGraphGetNodes(graph, nullptr, &nodes));
        HOLDS(nodes == 0);
    });
    told("a graph that touches memory which was freed", "", "touches memory that is no longer there", [] {
        cudaStream_t s = new_stream();
        float *x = device_floats(n);
        cudaGraph_t graph;
        GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        GOOD(cudaMemsetAsync(x, 0, bytes, s));
        GOOD(cudaStreamEndCapture(s, &graph));
        GOOD(cudaFree(x));
        HOLDS(cudaGraphLaunch(instantiate(graph), s) == cudaErrorInvalidValue);
    });
    clean("pinned memory that a graph writes may be read after a wait", "", [] { pinned_in_graph(true); });
    caught("and not before", "", "host code touched pinned memory", [] { pinned_in_graph(false); });
    return tap_done();
}
