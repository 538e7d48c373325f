/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn.cpp -- the simulated cuDNN: handles, versions, messages, and how an operation is queued. Every pointer
 * must lie in device memory with room for what its descriptor says; workspaces hold NaN before and after the
 * operation, so that nobody can lean on their contents.
 */
#include "dnn.hpp"
#include <cstdio>
#include <cstring>
#include <set>

namespace sim {

static std::set<cudnnHandle_t> &handles()
{
    static auto *set = new std::set<cudnnHandle_t>;
    return *set;
}

static thread_local char last_message[256];
bool dnn_quiet;

Kind kind_of(cudnnDataType_t t)
{
    switch (t) {
    case CUDNN_DATA_FLOAT:
        return Kind::f32;
    case CUDNN_DATA_DOUBLE:
        return Kind::f64;
    case CUDNN_DATA_HALF:
        return Kind::f16;
    case CUDNN_DATA_BFLOAT16:
        return Kind::bf16;
    default:
        return Kind::none;
    }
}

cudnnStatus_t dnn_refused(cudnnStatus_t status, const char *what)
{
    snprintf(last_message, sizeof(last_message), "needs %s", what);
    if (!dnn_quiet) refused("cuDNN: needs %s", what);
    return status;
}

double factor(const void *p, cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE ? *(const double *)p : (double)*(const float *)p;
}

DnnOp::DnnOp(cudnnHandle_t h, const char *name) : handle(h)
{
    task.what = name;
    if (!handles().count(h))
        wrong = "a live handle";
    else if (h->device != current_device())
        wrong = "a handle of the current device";
}

void *DnnOp::place(Touch t, size_t align)
{
    void *at = translate(t.p, t.bytes, false);
    if (!at && wrong.empty()) wrong = "device memory for its operands: " + why_not(t.p, t.bytes);
    if ((uintptr_t)t.p % align && wrong.empty())
        wrong = text("aligned operands: %p is not aligned to %zu bytes", t.p, align);
    task.touches.push_back(std::move(t));
    return at;
}

void *DnnOp::scratch(void *p, size_t bytes)
{
    if (bytes == 0) return nullptr;
    work = place(span(p, bytes, true), 16);
    work_bytes = bytes;
    return work;
}

cudnnStatus_t DnnOp::queue(std::function<void()> run)
{
    if (!wrong.empty()) return dnn_refused(CUDNN_STATUS_BAD_PARAM, (task.what + ": " + wrong).c_str());
    if (usable()) return CUDNN_STATUS_EXECUTION_FAILED;
    if (planted(CUDASIM_CUDNN)) return CUDNN_STATUS_EXECUTION_FAILED;
    void *w = work;
    size_t n = work_bytes;
    task.run = [=] {
        if (n) memset(w, 0xff, n);
        run();
        if (n) memset(w, 0xff, n);
    };
    return enqueue(handle->stream, std::move(task)) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    Lock lock;
    if (usable())
        return dnn_refused(CUDNN_STATUS_NOT_INITIALIZED, "cudaGetDeviceCount(&count) == cudaSuccess");
    if (planted(CUDASIM_CREATE)) return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new cudnnContext;
    (*handle)->device = current_device();
    handles().insert(*handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    Lock lock;
    DNN_PARAM(handles().count(handle));
    handles().erase(handle);
    delete handle;
    if (handles().empty() && graph_descriptors())
        refused("cuDNN: %zu descriptors of graphs outlive the last handle", graph_descriptors());
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    Lock lock;
    DNN_PARAM(handles().count(handle));
    Stream *s = resolve(stream);
    DNN_PARAM(s && s->device == handle->device);
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    Lock lock;
    DNN_PARAM(handles().count(handle) && stream);
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return (size_t)settings().cudnn;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
    int v = settings().cudnn, unit = v >= 90000 ? 10000 : 1000;
    *value = type == MAJOR_VERSION ? v / unit : type == MINOR_VERSION ? v % unit / 100 : v % 100;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    default:
        return "CUDNN_UNKNOWN_STATUS";
    }
}

#if CUDNN_VERSION >= 90000
void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "%s", last_message);
}
#endif
