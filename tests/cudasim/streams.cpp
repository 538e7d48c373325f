/* SPDX-License-Identifier: Apache-2.0 */
/* streams.cpp -- streams and events of the simulated device: order, races and what orders, the default
 * stream, copies in boxes, host functions. */
#include "check.hpp"

enum { n = 64 };
static const size_t bytes = n * sizeof(float);

static void deferred()
{
    cudaStream_t s = new_stream();
    float *x = device_floats(n);
    GOOD(cudaMemsetAsync(x, 0, bytes, s));
    HOLDS(cudasim_pending() == 1); /* nothing runs before it must */
    HOLDS(cudaStreamQuery(s) == cudaErrorNotReady);
    while (cudaStreamQuery(s) == cudaErrorNotReady) {
    }
    HOLDS(cudasim_pending() == 0);
    HOLDS(download(x, n)[5] == 0);
}

static void timed()
{
    cudaEvent_t a, b;
    float ms = -1;
    cudaStream_t s = new_stream();
    GOOD(cudaEventCreate(&a));
    GOOD(cudaEventCreate(&b));
    GOOD(cudaEventRecord(a, s));
    GOOD(cudaMemsetAsync(device_floats(n), 0, bytes, s));
    GOOD(cudaEventRecord(b, s));
    HOLDS(cudaEventElapsedTime(&ms, a, b) == cudaErrorNotReady);
    HOLDS(cudaEventQuery(b) == cudaErrorNotReady);
    GOOD(cudaEventSynchronize(b));
    GOOD(cudaEventElapsedTime(&ms, a, b));
    HOLDS(ms > 0 && ms < 1);
}

/* Who writes, who reads, and what stands between */
static void race(int order)
{
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t e = new_event();
    float *x = device_floats(n), *y = device_floats(n);
    GOOD(cudaMemsetAsync(x, 0, bytes, a));
    if (order == 1) GOOD(cudaEventRecord(e, a)), GOOD(cudaStreamWaitEvent(b, e, 0));
    if (order == 2) GOOD(cudaStreamSynchronize(a));
    if (order == 3) GOOD(cudaDeviceSynchronize());
    if (order == 4) GOOD(cudaEventRecord(e, b)), GOOD(cudaStreamWaitEvent(a, e, 0)); /* the wrong way round */
    if (order == 5)
        GOOD(cudaStreamWaitEvent(b, e, 0)), GOOD(cudaEventRecord(e, a)); /* awaited before it was recorded */
    GOOD(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, b));
    GOOD(cudaDeviceSynchronize());
    HOLDS(download(y, n)[n - 1] == 0);
}

static void second_hand()
{
    cudaStream_t a = new_stream(), b = new_stream(), c = new_stream();
    cudaEvent_t e = new_event(), f = new_event();
    float *x = device_floats(n);
    GOOD(cudaMemsetAsync(x, 0, bytes, a));
    GOOD(cudaEventRecord(e, a));
    GOOD(cudaStreamWaitEvent(b, e, 0));
    GOOD(cudaEventRecord(f, b));
    GOOD(cudaStreamWaitEvent(c, f, 0));
    GOOD(cudaMemsetAsync(x, 1, bytes, c));
    GOOD(cudaDeviceSynchronize());
}

/* Rows of two halves of an image: as ranges they overlap, as boxes only if they share a column */
static void columns(size_t first)
{
    cudaStream_t a = new_stream(), b = new_stream();
    char *x;
    GOOD(cudaMalloc((void **)&x, 1024));
    GOOD(cudaMemset2DAsync(x, 32, 0, 16, 32, a));
    GOOD(cudaMemset2DAsync(x + first, 32, 1, 16, 31, b));
    GOOD(cudaDeviceSynchronize());
}

static void default_stream(unsigned flags)
{
    cudaStream_t s;
    float *x = device_floats(n);
    GOOD(cudaStreamCreateWithFlags(&s, flags));
    GOOD(cudaMemsetAsync(x, 0, bytes, s));
    GOOD(cudaMemsetAsync(x, 1, bytes, nullptr));
    GOOD(cudaMemsetAsync(x, 2, bytes, s));
    GOOD(cudaDeviceSynchronize());
}

static void boxes()
{
    std::vector<float> v(4 * 5 * 6);
    for (size_t i = 0; i < v.size(); i++) v[i] = (float)i;
    float *x = upload(v), *h = pinned_floats(2 * 3 * 2);
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(x, 6 * sizeof(float), 6, 5);
    p.srcPos = make_cudaPos(2 * sizeof(float), 1, 1);
    p.dstPtr = make_cudaPitchedPtr(h, 2 * sizeof(float), 2, 3);
    p.extent = make_cudaExtent(2 * sizeof(float), 3, 2);
    p.kind = cudaMemcpyDeviceToHost;
    GOOD(cudaMemcpy3DAsync(&p, nullptr));
    GOOD(cudaStreamSynchronize(nullptr));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            for (int w = 0; w < 2; w++)
                HOLDS(h[(z * 3 + y) * 2 + w] == (float)(((z + 1) * 5 + y + 1) * 6 + w + 2));
}

static void host_function()
{
    static int calls;
    cudaStream_t s = new_stream();
    GOOD(cudaLaunchHostFunc(
        s, [](void *p) { ++*(int *)p; }, &calls));
    HOLDS(calls == 0);
    GOOD(cudaStreamSynchronize(s));
    HOLDS(calls == 1);
}

/* Pageable memory: taken at the call, as CUDA stages it */
static void pageable()
{
    cudaStream_t s = new_stream();
    std::vector<float> v(n, 3);
    float *x = device_floats(n);
    GOOD(cudaMemcpyAsync(x, v.data(), bytes, cudaMemcpyHostToDevice, s));
    v.assign(n, 4);
    GOOD(cudaMemcpyAsync(v.data(), x, bytes, cudaMemcpyDeviceToHost, s));
    HOLDS(v[n - 1] == 3);
}

/* The host may read what it has waited for, though other work goes on */
static void partly_waited()
{
    cudaStream_t a = new_stream(), b = new_stream();
    float *x = upload(std::vector<float>(n, 2)), *h = pinned_floats(n), *g = pinned_floats(n);
    GOOD(cudaMemcpyAsync(h, x, bytes, cudaMemcpyDeviceToHost, a));
    GOOD(cudaMemcpyAsync(g, x, bytes, cudaMemcpyDeviceToHost, b));
    GOOD(cudaStreamSynchronize(a));
    HOLDS(h[0] == 2);
    if (getenv("TOO_EARLY")) HOLDS(g[0] == 2);
    GOOD(cudaStreamSynchronize(b));
    HOLDS(g[0] == 2);
}

/* So it is with parts of one buffer that begin on pages of their own */
static void pages(void)
{
    enum { page = 4096 / sizeof(float) };
    cudaStream_t a = new_stream(), b = new_stream();
    float *x = upload(std::vector<float>(page, 2)), *h = pinned_floats(2 * page);
    GOOD(cudaMemcpyAsync(h, x, 4096, cudaMemcpyDeviceToHost, a));
    GOOD(cudaMemcpyAsync(h + page, x, 4096, cudaMemcpyDeviceToHost, b));
    GOOD(cudaStreamSynchronize(a));
    HOLDS(h[page - 1] == 2);
    h[0] = 3;
    if (getenv("TOO_EARLY")) HOLDS(h[page] == 2);
    GOOD(cudaStreamSynchronize(b));
    HOLDS(h[page] == 2);
}

/* A library of the host's that takes device memory: 0 as it should be, 1 before the host has waited for what it reads, 2 the device
 * writes before it is given back, 3 it only reads, and so does the device */
static void lent(int how)
{
    cudaStream_t s = new_stream();
    float *x = device_floats(n), *y = device_floats(n);
    GOOD(cudaMemsetAsync(x, 0, bytes, s));
    if (how != 1) GOOD(cudaStreamSynchronize(s));
    float *at = (float *)cudasim_lend(x, bytes, 0, "MPI_Isend"), local = 0;
    HOLDS(at && at[n - 1] == 0 && cudasim_find(x + 1, 4) == at + 1);
    HOLDS(!cudasim_lend(&local, 4, 0, "MPI_Isend"));
    if (how == 2) GOOD(cudaMemsetAsync(x, 0, 4, s));
    if (how == 3) GOOD(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, s));
    cudasim_give_back(x, "MPI_Isend");
    GOOD(cudaMemsetAsync(x, 0, 4, s));
    GOOD(cudaStreamSynchronize(s));
}

int main(void)
{
    const char *race_text = "touch the same bytes of allocation #1, and nothing orders them";
    clean("operations wait until something needs them", "", deferred);
    clean("events measure the simulator's own time", "", timed);
    caught("two streams, nothing between: a race", "", race_text, [] { race(0); });
    caught("and with a seed", "CUDASIM_SEED=2", race_text, [] { race(0); });
    clean("an event orders", "CUDASIM_SEED=1", [] { race(1); });
    clean("a wait of the host orders", "", [] { race(2); });
    clean("so does one for the device", "", [] { race(3); });
    caught("an event the wrong way round does not", "", race_text, [] { race(4); });
    caught("nor one that is recorded after the wait", "", race_text, [] { race(5); });
    clean("order is passed on", "CUDASIM_SEED=3", second_hand);
    clean("columns side by side are disjoint, as boxes", "", [] { columns(16); });
    caught("columns that share one are not", "", race_text, [] { columns(15); });
    clean("the default stream waits for the others and they for it", "CUDASIM_SEED=4",
          [] { default_stream(cudaStreamDefault); });
    caught("but not for non-blocking ones", "", race_text, [] { default_stream(cudaStreamNonBlocking); });
    clean("a box is copied from the middle of a volume", "", boxes);
    clean("a host function runs in its place", "", host_function);
    clean("pageable memory is taken at the call", "", pageable);
    told("and refused in strict mode", "CUDASIM_STRICT=1", "an asynchronous copy from pageable memory", [] {
        std::vector<float> v(n);
        HOLDS(cudaMemcpyAsync(device_floats(n), v.data(), bytes, cudaMemcpyHostToDevice, new_stream()) ==
              cudaErrorInvalidValue);
    });
    clean("the host reads what it waited for while other copies go on", "", partly_waited);
    caught("and not what it did not wait for", "TOO_EARLY=1 CUDASIM_SEED=1",
           "host code touched pinned memory", partly_waited);
    clean("so it is page by page", "", pages);
    caught("and no further", "TOO_EARLY=1 CUDASIM_SEED=1", "host code touched pinned memory", pages);
    clean("device memory is lent to a library of the host's", "", [] { lent(0); });
    caught("but not before the host has waited for what writes it", "", "and the host has not waited for it",
           [] { lent(1); });
    caught("and nothing writes it before it is given back", "", "and has not given back", [] { lent(2); });
    clean("both may read it", "", [] { lent(3); });
    told("a stream that was destroyed is no stream", "", "is not a live stream", [] {
        cudaStream_t s = new_stream();
        GOOD(cudaStreamDestroy(s));
        HOLDS(cudaMemsetAsync(device_floats(1), 0, 4, s) == cudaErrorInvalidResourceHandle);
    });
    return tap_done();
}
