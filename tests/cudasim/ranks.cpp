/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.cpp -- NCCL on the simulated device: four processes that find each other by the unique id, every
 * collective against plain sums, messages in groups, graphs, a host that waits for something else meanwhile,
 * and what goes wrong: calls that do not fit, a rank that never comes, a rank that dies.
 */
#include "check.hpp"
#include <atomic>
#include <cmath>
#include <csignal>
#include <cuda_bf16.h>
#include <nccl.h>
#include <sys/mman.h>

enum { ranks = 4, n = 40000 }; /* several chunks */
static ncclUniqueId id;

/* Runs the body as four processes and answers how many ended well; what they said is in the log of the child
 * that started them */
static int in_ranks(const std::function<void(int, ncclComm_t, cudaStream_t)> &body, int present = ranks)
{
    int well = 0;
    GOOD(ncclGetUniqueId(&id));
    for (int r = 0; r < present; r++) {
        if (fork() == 0) {
            ncclComm_t comm;
            cudaStream_t s = new_stream();
            GOOD(ncclCommInitRank(&comm, ranks, id, r));
            body(r, comm, s);
            GOOD(ncclCommDestroy(comm));
            _exit(0);
        }
    }
    for (int r = 0; r < present; r++) {
        int status;
        wait(&status); /* whichever ends first: a dead rank must not stay a zombie */
        well += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return well;
}

static float value(int r, int i)
{
    return 0.5f * (float)((i * 7 + r * 13) % 101) - 20;
}

static float *mine(int r, int count)
{
    std::vector<float> v((size_t)count);
    for (int i = 0; i < count; i++) v[(size_t)i] = value(r, i);
    return upload(v);
}

static float total(int i)
{
    return value(0, i) + value(1, i) + value(2, i) + value(3, i);
}

static void all_reduce(int r, ncclComm_t comm, cudaStream_t s)
{
    float *x = mine(r, n);
    GOOD(ncclAllReduce(x, x, n, ncclFloat32, ncclSum, comm, s));
    GOOD(cudaStreamSynchronize(s));
    std::vector<float> v = download(x, n);
    for (int i = 0; i < n; i++) HOLDS(std::fabs(v[(size_t)i] - total(i)) <= 1e-4);
    GOOD(ncclAllReduce(x, x, 1, ncclFloat32, ncclAvg, comm, s));
    GOOD(ncclAllReduce(x + 1, x + 1, 1, ncclFloat32, ncclMax, comm, s));
    GOOD(cudaStreamSynchronize(s));
    HOLDS(std::fabs(download(x, 2)[0] - total(0)) <= 1e-4 && std::fabs(download(x, 2)[1] - total(1)) <= 1e-4);
}

static void half_types(int r, ncclComm_t comm, cudaStream_t s)
{
    void *x;
    __nv_bfloat16 v = __float2bfloat16_rn((float)r + 1);
    GOOD(cudaMalloc(&x, 2));
    GOOD(cudaMemcpy(x, &v, 2, cudaMemcpyHostToDevice));
    GOOD(ncclAllReduce(x, x, 1, ncclBfloat16, ncclSum, comm, s));
    GOOD(cudaStreamSynchronize(s));
    GOOD(cudaMemcpy(&v, x, 2, cudaMemcpyDeviceToHost));
    HOLDS(__bfloat162float(v) == 10);
}

static void scatter_gather(int r, ncclComm_t comm, cudaStream_t s)
{
    const int part = n / ranks;
    float *x = mine(r, n), *y = device_floats(n);
    GOOD(ncclReduceScatter(x, x + r * part, part, ncclFloat32, ncclSum, comm, s)); /* in place */
    GOOD(ncclAllGather(x + r * part, y, part, ncclFloat32, comm, s));
    GOOD(ncclBroadcast(x, x, 5, ncclFloat32, 2, comm, s));
    GOOD(cudaStreamSynchronize(s));
    std::vector<float> v = download(y, n), b = download(x, 5);
    for (int i = 0; i < n; i++) HOLDS(std::fabs(v[(size_t)i] - total(i)) <= 1e-4);
    for (int i = 0; i < 5; i++) HOLDS(b[(size_t)i] == value(2, i)); /* rank 2's own slice lies elsewhere */
}

/* Everybody sends to the right and receives from the left, in a group, and the other way in the same group */
static void ring(int r, ncclComm_t comm, cudaStream_t s)
{
    int right = (r + 1) % ranks, left = (r + ranks - 1) % ranks;
    float *x = mine(r, n), *from_left = device_floats(n), *from_right = device_floats(3);
    GOOD(ncclGroupStart());
    GOOD(ncclSend(x, n, ncclFloat32, right, comm, s));
    GOOD(ncclSend(x + 10, 3, ncclFloat32, left, comm, s));
    GOOD(ncclRecv(from_right, 3, ncclFloat32, right, comm, s));
    GOOD(ncclRecv(from_left, n, ncclFloat32, left, comm, s));
    GOOD(ncclGroupEnd());
    GOOD(cudaStreamSynchronize(s));
    std::vector<float> v = download(from_left, n), w = download(from_right, 3);
    for (int i = 0; i < n; i++) HOLDS(v[(size_t)i] == value(left, i));
    for (int i = 0; i < 3; i++) HOLDS(w[(size_t)i] == value(right, i + 10));
}

/* Rank 0's host waits for a word of rank 3 that comes only after the collective: a lazy device must go on by
 * itself */
static std::atomic<int> *shared;
static void host_waits(int r, ncclComm_t comm, cudaStream_t s)
{
    float *x = mine(r, n);
    GOOD(ncclAllReduce(x, x, n, ncclFloat32, ncclSum, comm, s));
    if (r == 0)
        while (!*shared) usleep(100);
    GOOD(cudaStreamSynchronize(s));
    if (r == 3) *shared = 1;
}

static void in_graph(int r, ncclComm_t comm, cudaStream_t s)
{
    float *x = mine(r, 8), *y = device_floats(8);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    GOOD(cudaMemcpyAsync(y, x, 32, cudaMemcpyDeviceToDevice, s));
    GOOD(ncclAllReduce(y, y, 8, ncclFloat32, ncclSum, comm, s));
    GOOD(cudaStreamEndCapture(s, &graph));
    GOOD(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        GOOD(cudaGraphLaunch(exec, s));
        GOOD(cudaStreamSynchronize(s));
        HOLDS(std::fabs(download(y, 8)[3] - total(3)) <= 1e-4);
    }
}

/* Sums in two levels: slices in place, out to pinned memory, and back, as a graph on two streams */
static void slices_in_graph(int r, ncclComm_t comm, cudaStream_t s)
{
    enum { each = 8 };
    float *x = mine(r, ranks * each), *h = pinned_floats(each);
    cudaStream_t t = new_stream();
    cudaEvent_t e = new_event();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    GOOD(ncclReduceScatter(x, x + r * each, each, ncclFloat32, ncclSum, comm, s));
    GOOD(cudaEventRecord(e, s));
    GOOD(cudaStreamWaitEvent(t, e, 0));
    GOOD(cudaMemcpyAsync(h, x + r * each, each * 4, cudaMemcpyDefault, t));
    GOOD(cudaEventRecord(e, t));
    GOOD(cudaStreamWaitEvent(s, e, 0));
    GOOD(ncclAllGather(x + r * each, x, each, ncclFloat32, comm, s));
    GOOD(cudaStreamEndCapture(s, &graph));
    GOOD(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cudaGraphLaunch(exec, s));
    GOOD(cudaStreamSynchronize(s));
    for (int i = 0; i < each; i++) HOLDS(std::fabs(h[i] - total(r * each + i)) <= 1e-4);
    for (int i = 0; i < ranks * each; i++) HOLDS(std::fabs(download(x, ranks * each)[(size_t)i] - total(i)) <= 1e-4);
}

/* A slice that is fetched beside the sum that makes it */
static void early_slice(int r, ncclComm_t comm, cudaStream_t s)
{
    float *x = mine(r, ranks * 8), *h = pinned_floats(8);
    GOOD(ncclReduceScatter(x, x + r * 8, 8, ncclFloat32, ncclSum, comm, s));
    GOOD(cudaMemcpyAsync(h, x + r * 8, 32, cudaMemcpyDefault, new_stream()));
    GOOD(cudaDeviceSynchronize());
}

/* A collective on one stream and a kernel on another, with and without an event between */
static void raced(ncclComm_t comm, cudaStream_t s, bool ordered)
{
    float *x = mine(0, 64);
    cudaStream_t t = new_stream();
    cudaEvent_t e = new_event();
    GOOD(ncclAllReduce(x, x, 64, ncclFloat32, ncclSum, comm, s));
    if (ordered) GOOD(cudaEventRecord(e, s)), GOOD(cudaStreamWaitEvent(t, e, 0));
    GOOD(cudaMemsetAsync(x, 0, 256, t));
    GOOD(cudaDeviceSynchronize());
}

static void lost(int r, ncclComm_t comm, cudaStream_t s)
{
    float *x = mine(r, 8);
    ncclResult_t error = ncclSuccess;
    if (r == 2) raise(SIGKILL);
    GOOD(ncclAllReduce(x, x, 8, ncclFloat32, ncclSum, comm, s));
    while (cudaStreamQuery(s) == cudaErrorNotReady && error == ncclSuccess) {
        GOOD(ncclCommGetAsyncError(comm, &error));
        usleep(1000);
    }
    if (error == ncclSuccess)
        GOOD(ncclCommGetAsyncError(comm, &error)); /* another rank was quicker to abort */
    HOLDS(error == ncclRemoteError);
    GOOD(ncclCommAbort(comm));
    GOOD(cudaStreamSynchronize(s)); /* does not hang */
    _exit(0);
}

static void one_process()
{
    ncclComm_t comm[ranks];
    cudaStream_t s[ranks];
    float *x[ranks];
    GOOD(ncclCommInitAll(comm, ranks, nullptr));
    for (int r = 0; r < ranks; r++) {
        GOOD(cudaSetDevice(r));
        s[r] = new_stream();
        x[r] = mine(r, 100);
    }
    GOOD(ncclGroupStart());
    for (int r = 0; r < ranks; r++) GOOD(ncclAllReduce(x[r], x[r], 100, ncclFloat32, ncclSum, comm[r], s[r]));
    GOOD(ncclGroupEnd());
    for (int r = 0; r < ranks; r++) {
        GOOD(cudaSetDevice(r));
        GOOD(cudaStreamSynchronize(s[r]));
        HOLDS(std::fabs(download(x[r], 100)[99] - total(99)) <= 1e-4);
        GOOD(ncclCommDestroy(comm[r]));
    }
}

int main(void)
{
    struct {
        const char *claim;
        void (*body)(int, ncclComm_t, cudaStream_t);
    } cases[] = {{"allreduce: sum, average, maximum, several chunks", all_reduce},
                 {"allreduce of bf16", half_types},
                 {"reduce-scatter in place, allgather, broadcast", scatter_gather},
                 {"messages both ways round a ring, in one group", ring},
                 {"a collective in a graph, replayed", in_graph},
                 {"slices of a sum in a graph, on two streams", slices_in_graph}};
    shared =
        (std::atomic<int> *)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (auto &c : cases)
        for (const char *settings : {"CUDASIM_VERBOSE=0", "CUDASIM_SEED=1"})
            clean(c.claim, settings, [&] { HOLDS(in_ranks(c.body) == ranks); });
    clean("a collective goes on while a host waits for something else", "CUDASIM_TIMEOUT=20",
          [] { HOLDS(in_ranks(host_waits) == ranks); });
    clean("four devices of one process", "CUDASIM_DEVICES=4", one_process);
    clean("an event orders a collective and a fill", "",
          [] { HOLDS(in_ranks([](int, ncclComm_t c, cudaStream_t s) { raced(c, s, true); }) == ranks); });
    told("without it they race", "",
         "'fill of 256 bytes' on stream 2 and 'NCCL' on stream 1 touch the same bytes",
         [] { HOLDS(in_ranks([](int, ncclComm_t c, cudaStream_t s) { raced(c, s, false); }) == 0); });
    told("a slice that is fetched before it is a sum", "", "'copy of 32 bytes' on stream 2 and 'NCCL' on stream 1 touch",
         [] { HOLDS(in_ranks(early_slice) == 0); });
    told("ranks that disagree on the number of elements", "CUDASIM_TIMEOUT=3", "the ranks' calls do not fit",
         [] {
             HOLDS(in_ranks([](int r, ncclComm_t c, cudaStream_t s) {
                       float *x = mine(r, 100);
                       GOOD(ncclAllReduce(x, x, r == 3 ? 99 : 100, ncclFloat32, ncclSum, c, s));
                       GOOD(cudaStreamSynchronize(s));
                   }) < ranks);
         });
    told("a message longer than what is received", "CUDASIM_TIMEOUT=3",
         "rank 0 sends 40 bytes and rank 1 receives 36", [] {
             HOLDS(in_ranks([](int r, ncclComm_t c, cudaStream_t s) {
                       float *x = mine(r, 10);
                       if (r == 0) GOOD(ncclSend(x, 10, ncclFloat32, 1, c, s));
                       if (r == 1) GOOD(ncclRecv(x, 9, ncclFloat32, 0, c, s));
                       GOOD(cudaStreamSynchronize(s));
                   }) < ranks);
         });
    told("a rank that does not call the collective is named", "CUDASIM_TIMEOUT=1",
         "of its communicator for rank(s) 3", [] {
             HOLDS(in_ranks([](int r, ncclComm_t c, cudaStream_t s) {
                       float *x = mine(r, 10);
                       if (r == 3) {
                           sleep(2);
                           _exit(0);
                       }
                       GOOD(ncclAllReduce(x, x, 10, ncclFloat32, ncclSum, c, s));
                       GOOD(cudaStreamSynchronize(s));
                   }) == 1);
         });
    told("a rank that never comes", "CUDASIM_TIMEOUT=1",
         "waits for the other 1 of 4 ranks to make the communicator",
         [] { HOLDS(in_ranks([](int, ncclComm_t, cudaStream_t) {}, 3) == 0); });
    clean("a rank that dies is an asynchronous error, and the others can abort", "CUDASIM_TIMEOUT=30",
          [] { HOLDS(in_ranks(lost) == ranks - 1); });
    told("a planted fault", "CUDASIM_FAIL=nccl:1", "a planted fault: nccl number 1", [] {
        HOLDS(in_ranks([](int r, ncclComm_t c, cudaStream_t s) {
                  float *x = mine(r, 10);
                  HOLDS(ncclAllReduce(x, x, 10, ncclFloat32, ncclSum, c, s) == ncclSystemError);
                  GOOD(ncclAllReduce(x, x, 10, ncclFloat32, ncclSum, c, s));
                  GOOD(cudaStreamSynchronize(s));
              }) == ranks);
    });
    told("a host pointer", "", "is a host pointer", [] {
        HOLDS(in_ranks([](int, ncclComm_t c, cudaStream_t s) {
                  float x[4] = {};
                  HOLDS(ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, c, s) == ncclInvalidArgument);
              }) == ranks);
    });
    return tap_done();
}
