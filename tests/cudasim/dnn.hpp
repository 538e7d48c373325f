/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.hpp -- what the simulated cuDNN's files share: its descriptors, and one operation on a handle's stream.
 */
#pragma once
#include <cudnn.h>
#include "number.hpp"
#include "sim.hpp"

struct cudnnContext {
    cudaStream_t stream = nullptr;
    int device = 0;
};

/* Dimensions in logical order (N C and up to three spatial ones), strides in elements */
struct cudnnTensorStruct {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = 0, extent[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
};

struct cudnnFilterStruct {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    int rank = 0, extent[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
};

struct cudnnConvolutionStruct {
    int rank = 0, pad[3], stride[3], dilation[3], groups = 1;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

struct cudnnPoolingStruct {
    int rank = 0, window[3], pad[3], stride[3];
    cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
    cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

struct cudnnActivationStruct {
    bool set = false;
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coefficient;
};

struct cudnnOpTensorStruct {
    bool set = false;
    cudnnOpTensorOp_t op;
    cudnnDataType_t compute;
    cudnnNanPropagation_t nan;
};

struct cudnnReduceTensorStruct {
    bool set = false;
    cudnnReduceTensorOp_t op;
    cudnnDataType_t compute;
    cudnnNanPropagation_t nan;
    cudnnReduceTensorIndices_t indices;
};

namespace sim {

Kind kind_of(cudnnDataType_t t);
size_t graph_descriptors(); /* dnn_backend.cpp: live ones of the graph API */
extern bool dnn_quiet; /* refusals are not reported */
cudnnStatus_t dnn_refused(cudnnStatus_t status, const char *what);

/* Refuses with the condition that did not hold as the reason */
#define DNN_NEED(condition, status)                                                                          \
    do {                                                                                                     \
        if (!(condition)) return ::sim::dnn_refused(status, #condition);                                     \
    } while (0)
#define DNN_PARAM(condition)   DNN_NEED(condition, CUDNN_STATUS_BAD_PARAM)
#define DNN_SUPPORT(condition) DNN_NEED(condition, CUDNN_STATUS_NOT_SUPPORTED)
#define DNN_TRY(expression)                                                                                  \
    do {                                                                                                     \
        if (cudnnStatus_t status_ = (expression)) return status_;                                            \
    } while (0)

template <class D> int64_t elements(const D &d)
{
    int64_t n = 1;
    for (int i = 0; i < d.rank; i++) n *= d.extent[i];
    return n;
}

template <class D> Touch touch_of(const D &d, const void *p, bool write)
{
    int64_t extent[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
    for (int i = 0; i < d.rank; i++) {
        extent[i] = d.extent[i];
        stride[i] = d.stride[i];
    }
    return strided(p, d.rank, extent, stride, (int64_t)size_of(kind_of(d.type)), write);
}

/* Offsets in elements of all elements of a descriptor, in logical order, and their values densely */
template <class D> std::vector<size_t> offsets(const D &d)
{
    std::vector<size_t> at(1, 0);
    for (int i = 0; i < d.rank; i++) {
        std::vector<size_t> next;
        next.reserve(at.size() * (size_t)d.extent[i]);
        for (size_t base : at)
            for (int j = 0; j < d.extent[i]; j++) next.push_back(base + (size_t)j * (size_t)d.stride[i]);
        at = std::move(next);
    }
    return at;
}

template <class D> std::vector<double> gather(const D &d, const void *p)
{
    std::vector<double> v;
    Kind k = kind_of(d.type);
    for (size_t at : offsets(d)) v.push_back(load(k, p, at));
    return v;
}

/* out = alpha v + beta out; with beta = 0 the old values are not read */
template <class D> void blend(const D &d, void *p, const std::vector<double> &v, double alpha, double beta)
{
    Kind k = kind_of(d.type);
    size_t i = 0;
    for (size_t at : offsets(d)) store(k, p, at, alpha * v[i++] + (beta != 0 ? beta * load(k, p, at) : 0));
}

/* A scaling factor: double for double tensors, else float */
double factor(const void *p, cudnnDataType_t type);

/* One operation: checks its operands, then is queued */
class DnnOp {
  public:
    DnnOp(cudnnHandle_t handle, const char *name);
    /* align: bytes that the address was said to be a multiple of, 0: as its elements need it */
    template <class D> void *operand(const D &d, const void *p, bool write, size_t align = 0)
    {
        return place(touch_of(d, p, write), align ? align : size_of(kind_of(d.type)));
    }
    void *scratch(void *p, size_t bytes);
    cudnnStatus_t queue(std::function<void()> run);

  private:
    void *place(Touch t, size_t align);
    cudnnHandle_t handle;
    Task task;
    std::string wrong;
    void *work = nullptr;
    size_t work_bytes = 0;
};

} // namespace sim
