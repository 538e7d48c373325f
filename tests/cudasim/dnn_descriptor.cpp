/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_descriptor.cpp -- cuDNN's descriptors. Stricter than the real ones on purpose: tensors have 3 to 5
 * dimensions and positive strides, convolutions and pools 2 or 3 spatial dimensions, elements are f32, f64,
 * f16 or bf16.
 */
#include "dnn.hpp"
#include <cstring>

using namespace sim;

/* Packed strides of a layout: the channel is the fastest in NHWC, the slowest after N in NCHW */
static void pack(cudnnTensorFormat_t format, int rank, const int *extent, int *stride)
{
    int step = 1;
    if (format == CUDNN_TENSOR_NHWC) {
        stride[1] = 1;
        step = extent[1];
    }
    for (int i = rank - 1; i >= 0; i--) {
        if (i == 1 && format == CUDNN_TENSOR_NHWC) continue;
        stride[i] = step;
        step *= extent[i];
    }
}

#define MAKE_AND_DROP(Name, Struct)                                                                          \
    cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t *d)                                \
    {                                                                                                        \
        *d = new Struct;                                                                                     \
        return CUDNN_STATUS_SUCCESS;                                                                         \
    }                                                                                                        \
    cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t d)                                \
    {                                                                                                        \
        delete d;                                                                                            \
        return CUDNN_STATUS_SUCCESS;                                                                         \
    }
MAKE_AND_DROP(Tensor, cudnnTensorStruct)
MAKE_AND_DROP(Filter, cudnnFilterStruct)
MAKE_AND_DROP(Convolution, cudnnConvolutionStruct)
MAKE_AND_DROP(Pooling, cudnnPoolingStruct)
MAKE_AND_DROP(Activation, cudnnActivationStruct)
MAKE_AND_DROP(OpTensor, cudnnOpTensorStruct)
MAKE_AND_DROP(ReduceTensor, cudnnReduceTensorStruct)

/* --- tensors */

static cudnnStatus_t extents_hold(cudnnDataType_t type, int rank, const int *extent)
{
    DNN_PARAM(kind_of(type) != Kind::none);
    DNN_PARAM(extent);
    DNN_SUPPORT(rank >= 3 && rank <= 5);
    int64_t all = 1;
    for (int i = 0; i < rank; i++) {
        DNN_PARAM(extent[i] > 0);
        all *= extent[i];
        DNN_SUPPORT(all <= settings().elements);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int rank,
                                         const int *extent, const int *stride)
{
    DNN_PARAM(t && stride);
    DNN_TRY(extents_hold(type, rank, extent));
    for (int i = 0; i < rank; i++) DNN_PARAM(stride[i] > 0);
    t->type = type;
    t->rank = rank;
    memcpy(t->extent, extent, (size_t)rank * sizeof(int));
    memcpy(t->stride, stride, (size_t)rank * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int rank, const int *extent)
{
    int stride[CUDNN_DIM_MAX];
    DNN_PARAM(t);
    DNN_TRY(extents_hold(type, rank, extent));
    DNN_SUPPORT(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC);
    pack(format, rank, extent, stride);
    return cudnnSetTensorNdDescriptor(t, type, rank, extent, stride);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t t, cudnnDataType_t type, int n, int c,
                                           int h, int w, int ns, int cs, int hs, int ws)
{
    const int extent[4] = {n, c, h, w}, stride[4] = {ns, cs, hs, ws};
    return cudnnSetTensorNdDescriptor(t, type, 4, extent, stride);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    const int extent[4] = {n, c, h, w};
    return cudnnSetTensorNdDescriptorEx(t, format, type, 4, extent);
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t t, int most, cudnnDataType_t *type,
                                         int *rank, int *extent, int *stride)
{
    DNN_PARAM(t && t->rank);
    *type = t->type;
    *rank = t->rank;
    for (int i = 0; i < t->rank && i < most; i++) {
        extent[i] = t->extent[i];
        stride[i] = t->stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t t, size_t *bytes)
{
    DNN_PARAM(t && t->rank && bytes);
    *bytes = touch_of(*t, nullptr, false).bytes;
    return CUDNN_STATUS_SUCCESS;
}

/* --- filters */

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int *extent)
{
    DNN_PARAM(f);
    DNN_TRY(extents_hold(type, rank, extent));
    DNN_SUPPORT(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC);
    f->type = type;
    f->format = format;
    f->rank = rank;
    memcpy(f->extent, extent, (size_t)rank * sizeof(int));
    pack(format, rank, extent, f->stride);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    const int extent[4] = {k, c, h, w};
    return cudnnSetFilterNdDescriptor(f, type, format, 4, extent);
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t f, size_t *bytes)
{
    DNN_PARAM(f && f->rank && bytes);
    *bytes = touch_of(*f, nullptr, false).bytes;
    return CUDNN_STATUS_SUCCESS;
}

/* --- convolutions */

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int rank, const int *pad,
                                              const int *stride, const int *dilation,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
    DNN_PARAM(c && pad && stride && dilation);
    DNN_SUPPORT(rank == 2 || rank == 3);
    DNN_SUPPORT(compute == CUDNN_DATA_FLOAT ||
                compute == CUDNN_DATA_DOUBLE); /* sums in half are refused on purpose */
    for (int i = 0; i < rank; i++) {
        DNN_PARAM(pad[i] >= 0 && stride[i] > 0 && dilation[i] > 0);
        c->pad[i] = pad[i];
        c->stride[i] = stride[i];
        c->dilation[i] = dilation[i];
    }
    c->rank = rank;
    c->mode = mode;
    c->compute = compute;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math)
{
    DNN_PARAM(c);
    c->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t *math)
{
    DNN_PARAM(c && math);
    *math = c->math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups)
{
    DNN_PARAM(c && groups > 0);
    DNN_SUPPORT(groups == 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t c,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int rank, int *extent)
{
    DNN_PARAM(c && c->rank && x && x->rank && w && w->rank && extent);
    DNN_PARAM(rank == x->rank && rank == w->rank && rank == c->rank + 2);
    DNN_PARAM(x->extent[1] == w->extent[1]);
    extent[0] = x->extent[0];
    extent[1] = w->extent[0];
    for (int i = 0; i < c->rank; i++) {
        int room = x->extent[i + 2] + 2 * c->pad[i] - (w->extent[i + 2] - 1) * c->dilation[i] - 1;
        DNN_PARAM(room >= 0);
        extent[i + 2] = room / c->stride[i] + 1;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* --- pools */

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t p, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int rank, const int *window,
                                          const int *pad, const int *stride)
{
    DNN_PARAM(p && window && pad && stride);
    DNN_SUPPORT(rank == 2 || rank == 3);
    for (int i = 0; i < rank; i++) {
        DNN_PARAM(window[i] > 0 && stride[i] > 0 && pad[i] >= 0 && pad[i] < window[i]);
        p->window[i] = window[i];
        p->pad[i] = pad[i];
        p->stride[i] = stride[i];
    }
    p->rank = rank;
    p->mode = mode;
    p->nan = nan;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t p,
                                                const cudnnTensorDescriptor_t x, int rank, int *extent)
{
    DNN_PARAM(p && p->rank && x && x->rank && extent && rank == x->rank && rank == p->rank + 2);
    extent[0] = x->extent[0];
    extent[1] = x->extent[1];
    for (int i = 0; i < p->rank; i++) {
        int room = x->extent[i + 2] + 2 * p->pad[i] - p->window[i];
        DNN_PARAM(room >= 0);
        extent[i + 2] = room / p->stride[i] + 1;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* --- pointwise ones */

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t a, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient)
{
    DNN_PARAM(a);
    *a = {true, mode, nan, coefficient};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t o, cudnnOpTensorOp_t op,
                                         cudnnDataType_t compute, cudnnNanPropagation_t nan)
{
    DNN_PARAM(o);
    DNN_SUPPORT(compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_DOUBLE);
    *o = {true, op, compute, nan};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t r, cudnnReduceTensorOp_t op,
                                             cudnnDataType_t compute, cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices, cudnnIndicesType_t)
{
    DNN_PARAM(r);
    DNN_SUPPORT(indices == CUDNN_REDUCE_TENSOR_NO_INDICES);
    DNN_SUPPORT(compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_DOUBLE);
    *r = {true, op, compute, nan, indices};
    return CUDNN_STATUS_SUCCESS;
}
