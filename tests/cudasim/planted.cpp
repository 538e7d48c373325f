/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planted.cpp -- each defect of a program that the simulated device is there to catch, planted and caught: a
 * small step of upload, convolution, own kernel and download, as it should be and then with one thing wrong.
 * Also what the environment may ask for: faults, versions, capability.
 */
#include "check.hpp"
#include "example.hpp"
#include "sanitize.hpp"
#include <cmath>
#include <csignal>
#include <cublas_v2.h>
#include <cudnn.h>
#include <nccl.h>

enum Wrong {
    nothing,
    read_early,        /* the host reads the result before it has waited */
    write_early,       /* the host writes an upload buffer that is in flight */
    read_device,       /* the host reads through a device pointer */
    host_to_cudnn,     /* a host pointer as an operand */
    no_event,          /* the second stream does not wait for the first */
    with_event,        /* it does: right */
    short_workspace,   /* one byte less than asked for */
    wrong_output,      /* a descriptor that is not the output's */
    no_zero,           /* the sum starts from fresh memory */
    after_free,        /* an operand was freed */
    wrong_way,         /* a copy declared the other way */
    wrong_type,        /* operands of different types */
    changed_descriptor /* changed after the call: right, descriptors are read at the call */
};

struct Layer {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t c;
};

static Layer make_layer(cudnnDataType_t type, int grow)
{
    Layer l;
    const int x[5] = {1, 2, 4, 4, 4}, w[5] = {3, 2, 3, 3, 3}, y[5] = {1, 3, 4 + grow, 4, 4},
              one[3] = {1, 1, 1};
    GOOD(cudnnCreateTensorDescriptor(&l.x));
    GOOD(cudnnCreateTensorDescriptor(&l.y));
    GOOD(cudnnCreateFilterDescriptor(&l.w));
    GOOD(cudnnCreateConvolutionDescriptor(&l.c));
    GOOD(cudnnSetTensorNdDescriptorEx(l.x, CUDNN_TENSOR_NCHW, type, 5, x));
    GOOD(cudnnSetTensorNdDescriptorEx(l.y, CUDNN_TENSOR_NCHW, type, 5, y));
    GOOD(cudnnSetFilterNdDescriptor(l.w, type, CUDNN_TENSOR_NCHW, 5, w));
    GOOD(cudnnSetConvolutionNdDescriptor(l.c, 3, one, one, one, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    return l;
}

enum { nx = 2 * 64, nw = 3 * 2 * 27, ny = 3 * 64 };

/* Ones everywhere: an output cell is 2 times the taps that lie inside */
static void check_result(const float *y, float sum)
{
    auto inside = [](int i) { return i == 0 || i == 3 ? 2 : 3; };
    double all = 0;
    for (int i = 0; i < ny; i++) {
        float want = 2.0f * (float)(inside(i / 16 % 4) * inside(i / 4 % 4) * inside(i % 4));
        HOLDS(y[i] == want);
        all += want;
    }
    HOLDS(std::fabs(sum - all) <= 1e-3);
}

static void step(Wrong wrong)
{
    cudaStream_t s = new_stream(), s2 = new_stream();
    cudaEvent_t e = new_event();
    float *hx = pinned_floats(nx), *hw = pinned_floats(nw), *hy = pinned_floats(ny), *hs = pinned_floats(1);
    float *x = device_floats(nx), *w = device_floats(nw), *y = device_floats(ny), *z = device_floats(ny),
          *sum = device_floats(1);
    for (int i = 0; i < nx; i++) hx[i] = 1;
    for (int i = 0; i < nw; i++) hw[i] = 1;
    cudnnHandle_t h;
    GOOD(cudnnCreate(&h));
    GOOD(cudnnSetStream(h, s));
    Layer l = make_layer(CUDNN_DATA_FLOAT, wrong == wrong_output);
    if (wrong == wrong_type) l.y = make_layer(CUDNN_DATA_HALF, 0).y;
    const float one = 1, zero = 0;
    size_t bytes = 0;
    void *workspace = nullptr;
    const cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    if (wrong != wrong_output && wrong != wrong_type) {
        GOOD(cudnnGetConvolutionForwardWorkspaceSize(h, l.x, l.w, l.c, l.y, algorithm, &bytes));
        HOLDS(bytes > 0);
        GOOD(cudaMalloc(&workspace, bytes));
    }
    if (wrong == wrong_way) {
        HOLDS(cudaMemcpyAsync(x, hx, nx * sizeof(float), cudaMemcpyDeviceToHost, s) == cudaErrorInvalidValue);
        _exit(0);
    }
    GOOD(cudaMemcpyAsync(x, hx, nx * sizeof(float), cudaMemcpyHostToDevice, s));
    GOOD(cudaMemcpyAsync(w, hw, nw * sizeof(float), cudaMemcpyHostToDevice, s));
    if (wrong == write_early) hx[0] = 2;
    if (wrong == read_device) hs[0] = ((volatile float *)x)[3];
    if (wrong == after_free) GOOD(cudaFree(w));
    if (wrong == short_workspace) bytes--;
    int status = cudnnConvolutionForward(h, &one, l.x, wrong == host_to_cudnn ? hx : x, l.w, w, l.c,
                                         algorithm, workspace, bytes, &zero, l.y, y);
    if (status) _exit(status == CUDNN_STATUS_BAD_PARAM ? 0 : 5); /* refused, as some should be */
    if (wrong == changed_descriptor) GOOD(cudnnDestroyTensorDescriptor(l.y));
    if (wrong == with_event) {
        GOOD(cudaEventRecord(e, s));
        GOOD(cudaStreamWaitEvent(s2, e, 0));
    }
    cudaStream_t last = wrong == no_event || wrong == with_event ? s2 : s;
    GOOD(example_scale(last, z, y, 1, ny));
    if (wrong != no_zero) GOOD(cudaMemsetAsync(sum, 0, sizeof(float), last));
    GOOD(example_sum(last, sum, z, ny));
    GOOD(cudaMemcpyAsync(hy, z, ny * sizeof(float), cudaMemcpyDeviceToHost, last));
    GOOD(cudaMemcpyAsync(hs, sum, sizeof(float), cudaMemcpyDeviceToHost, last));
    if (wrong != read_early) GOOD(cudaStreamSynchronize(last));
    if (wrong == no_zero) {
        HOLDS(std::isnan(hs[0]));
        _exit(0);
    }
    check_result(hy, hs[0]);
    GOOD(cudnnDestroy(h));
    for (void *p : {(void *)x, (void *)w, (void *)y, (void *)z, (void *)sum, workspace}) GOOD(cudaFree(p));
    HOLDS(cudasim_live(nullptr) == 0 && cudasim_pending() == 0);
}

static void defects()
{
    clean("a right step is right, and nothing is said", "", [] { step(nothing); });
    for (int seed = 1; seed <= 4; seed++)
        clean("and in any order", "CUDASIM_SEED=" + std::to_string(seed), [] { step(nothing); });
    clean("on two streams with an event", "CUDASIM_SEED=7", [] { step(with_event); });
    clean("descriptors are read at the call", "", [] { step(changed_descriptor); });
    caught("a result read before the host waited", "", "while an asynchronous operation on it is pending",
           [] { step(read_early); });
    caught("a result read too early though it has run", "CUDASIM_SEED=3",
           "while an asynchronous operation on it is pending", [] { step(read_early); });
    caught("an upload buffer written while in flight", "", "host code touched pinned memory",
           [] { step(write_early); });
    caught("a device pointer read by the host", "",
           "host code touched device memory: allocation #5 of 512 bytes, offset 12",
           [] { step(read_device); });
    told("a host pointer as cuDNN's operand", "", "is pinned host memory", [] { step(host_to_cudnn); });
    caught("a second stream that does not wait", "",
           "'scale' on stream 2 and 'cudnnConvolutionForward' on stream 1 touch the same bytes",
           [] { step(no_event); });
    told("a workspace one byte short", "", "needs bytes >= need", [] { step(short_workspace); });
    told("a descriptor of another output", "", "needs p.y->extent[i] == extent[i]",
         [] { step(wrong_output); });
    told("operands of two types", "", "p.x->type == p.y->type", [] { step(wrong_type); });
    clean("a sum that starts from fresh memory is NaN", "", [] { step(no_zero); });
    told("an operand that was freed", "", "is freed or was never allocated", [] { step(after_free); });
    told("a copy declared the other way", "", "a copy declared device to host: the destination is device",
         [] { step(wrong_way); });
    told("memory freed twice", "", "not the start of a live device allocation", [] {
        float *p = device_floats(4);
        GOOD(cudaFree(p));
        HOLDS(cudaFree(p) == cudaErrorInvalidValue);
    });
    caught("freed device memory read by the host", "", "a freed or unallocated device address", [] {
        float *p = device_floats(4);
        GOOD(cudaFree(p));
        HOLDS(((volatile float *)p)[0] == 0);
    });
}

/* --- what the environment asks for */

static void faults()
{
    told("the third allocation fails", "CUDASIM_FAIL=malloc:3", "a planted fault: malloc number 3", [] {
        void *p;
        GOOD(cudaMalloc(&p, 10));
        GOOD(cudaMalloc(&p, 10));
        HOLDS(cudaMalloc(&p, 10) == cudaErrorMemoryAllocation);
        GOOD(cudaMalloc(&p, 10));
        HOLDS(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    });
    told("so does a launch, and the test can ask for it", "", "a planted fault: launch number 2", [] {
        float *y = upload(std::vector<float>(8, 1));
        cudasim_fail(CUDASIM_LAUNCH, 2);
        GOOD(example_scale(nullptr, y, y, 2, 8));
        HOLDS(example_scale(nullptr, y, y, 2, 8) == cudaErrorLaunchOutOfResources);
        HOLDS(cudasim_count(CUDASIM_LAUNCH) == 2 && download(y, 1)[0] == 2);
    });
    told("an operation that fails as it runs breaks the device", "CUDASIM_FAIL=execute:2",
         "'scale' failed as it ran", [] {
             float *y = upload(std::vector<float>(8, 1));
             GOOD(example_scale(nullptr, y, y, 2, 8));
             HOLDS(cudaDeviceSynchronize() == cudaErrorLaunchFailure &&
                   cudaGetLastError() == cudaErrorLaunchFailure);
             void *p;
             HOLDS(cudaMalloc(&p, 8) == cudaErrorLaunchFailure &&
                   cudaGetLastError() == cudaErrorLaunchFailure);
         });
    told("cuDNN, cuBLAS, copies, host memory, handles fail when asked to",
         "CUDASIM_FAIL=cudnn:1,cublas:1,copy:1,hostalloc:1,create:1", "a planted fault: cudnn number 1", [] {
             cudnnHandle_t h;
             cublasHandle_t b;
             void *p;
             const float one = 1;
             HOLDS(cudnnCreate(&h) == CUDNN_STATUS_NOT_INITIALIZED);
             GOOD(cudnnCreate(&h));
             GOOD(cublasCreate(&b));
             HOLDS(cudaHostAlloc(&p, 8, 0) == cudaErrorMemoryAllocation);
             HOLDS(cudaMemset(device_floats(4), 0, 16) == cudaErrorInvalidValue);
             HOLDS(cudnnSetTensor(h, make_layer(CUDNN_DATA_FLOAT, 0).x, device_floats(nx), &one) ==
                   CUDNN_STATUS_EXECUTION_FAILED);
             HOLDS(cublasSgemm(b, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, device_floats(1), 1,
                               device_floats(1), 1, &one, device_floats(1),
                               1) == CUBLAS_STATUS_EXECUTION_FAILED);
         });
    clean("a device has only so much memory", "CUDASIM_MEMORY=1000000", [] {
        size_t free, total;
        void *p, *q;
        GOOD(cudaMalloc(&p, 600000));
        GOOD(cudaMemGetInfo(&free, &total));
        HOLDS(total == 1000000 && free >= 390000 && free <= 400000);
        HOLDS(cudaMalloc(&q, 500000) == cudaErrorMemoryAllocation);
        GOOD(cudaFree(p));
        GOOD(cudaMalloc(&q, 500000));
    });
}

static void environments()
{
    clean("no driver: version 0, and every call says so", "CUDASIM_DRIVER=0", [] {
        int v = -1, n = -1;
        GOOD(cudaDriverGetVersion(&v));
        HOLDS(v == 0 && cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver && n == -1);
    });
    told("cuDNN and NCCL start no better without one", "CUDASIM_DRIVER=0", "needs cudaGetDeviceCount", [] {
        cudnnHandle_t h;
        cublasHandle_t b;
        HOLDS(cudnnCreate(&h) == CUDNN_STATUS_NOT_INITIALIZED &&
              cublasCreate(&b) == CUBLAS_STATUS_NOT_INITIALIZED);
    });
    clean("a driver of an older CUDA", "CUDASIM_DRIVER=10020", [] {
        int v, n;
        GOOD(cudaDriverGetVersion(&v));
        HOLDS(v == 10020 && cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver);
    });
    clean("a driver and no device", "CUDASIM_DEVICES=0", [] {
        int n;
        HOLDS(cudaGetDeviceCount(&n) == cudaErrorNoDevice);
    });
    clean("four devices of sm_90", "CUDASIM_DEVICES=4 CUDASIM_SM=90", [] {
        int n, major, d;
        cudaDeviceProp p;
        GOOD(cudaGetDeviceCount(&n));
        GOOD(cudaSetDevice(3));
        GOOD(cudaGetDevice(&d));
        GOOD(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 3));
        GOOD(cudaGetDeviceProperties(&p, 3));
        HOLDS(n == 4 && d == 3 && major == 9 && p.minor == 0 && strstr(p.name, "cudasim"));
    });
    told("a stream of one device while another is current", "CUDASIM_DEVICES=2",
         "a stream of device 0 while device 1 is current", [] {
             cudaStream_t s = new_stream();
             GOOD(cudaSetDevice(1));
             HOLDS(example_scale(s, device_floats(1), device_floats(1), 1, 1) ==
                   cudaErrorInvalidResourceHandle);
         });
    told("bf16 is refused on sm_70", "CUDASIM_SM=70", "needs p.x->type != CUDNN_DATA_BFLOAT16", [] {
        cudnnHandle_t h;
        size_t n;
        GOOD(cudnnCreate(&h));
        Layer l = make_layer(CUDNN_DATA_BFLOAT16, 0);
        HOLDS(cudnnGetConvolutionForwardWorkspaceSize(h, l.x, l.w, l.c, l.y,
                                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &n));
    });
    clean("another cuDNN and NCCL than those compiled for", "CUDASIM_CUDNN=8904 CUDASIM_NCCL=21805", [] {
        int v;
        GOOD(ncclGetVersion(&v));
        HOLDS(cudnnGetVersion() == 8904 && v == 21805);
    });
    Outcome o = in_child("", [] { device_floats(1); });
    tap_ok(o.said.find("nothing measured here is a figure of a GPU") != std::string::npos,
           "it says that it is a simulation");
}

int main(void)
{
    defects();
    faults();
    environments();
    return tap_done();
}
