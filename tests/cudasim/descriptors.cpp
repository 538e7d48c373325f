/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.cpp -- a list of calls on cuDNN's descriptors, which need no device: one line for each with
 * whether it was accepted and the numbers it answered. Built against the simulated cuDNN and against the real
 * one; descriptors.test compares. A name that begins with "strict:" is refused by the simulated one on
 * purpose.
 */
#include "graph_case.hpp"
#include <cstdio>

using Ints = std::vector<int>;

static void line(const char *name, cudnnStatus_t status, const Ints &numbers)
{
    printf("%s %s", name, status == CUDNN_STATUS_SUCCESS ? "accepted" : "refused");
    if (status == CUDNN_STATUS_SUCCESS)
        for (int n : numbers) printf(" %d", n);
    putchar('\n');
}

static void tensor(const char *name, cudnnDataType_t type, Ints extent, Ints stride)
{
    cudnnTensorDescriptor_t t;
    size_t bytes = 0;
    cudnnCreateTensorDescriptor(&t);
    cudnnStatus_t s = cudnnSetTensorNdDescriptor(t, type, (int)extent.size(), extent.data(), stride.data());
    if (!s) s = cudnnGetTensorSizeInBytes(t, &bytes);
    line(name, s, {(int)bytes});
    cudnnDestroyTensorDescriptor(t);
}

static void packed(const char *name, cudnnTensorFormat_t format, Ints extent)
{
    cudnnTensorDescriptor_t t;
    cudnnDataType_t type;
    int rank = 0, e[8] = {}, st[8] = {};
    cudnnCreateTensorDescriptor(&t);
    cudnnStatus_t s =
        cudnnSetTensorNdDescriptorEx(t, format, CUDNN_DATA_HALF, (int)extent.size(), extent.data());
    if (!s) s = cudnnGetTensorNdDescriptor(t, 8, &type, &rank, e, st);
    Ints numbers;
    for (int i = 0; i < rank; i++) numbers.push_back(e[i]), numbers.push_back(st[i]);
    line(name, s, numbers);
    cudnnDestroyTensorDescriptor(t);
}

static void filter(const char *name, cudnnDataType_t type, cudnnTensorFormat_t format, Ints extent)
{
    cudnnFilterDescriptor_t f;
    size_t bytes = 0;
    cudnnCreateFilterDescriptor(&f);
    cudnnStatus_t s = cudnnSetFilterNdDescriptor(f, type, format, (int)extent.size(), extent.data());
    if (!s) s = cudnnGetFilterSizeInBytes(f, &bytes);
    line(name, s, {(int)bytes});
    cudnnDestroyFilterDescriptor(f);
}

/* The output of a convolution of x by w */
static void convolution(const char *name, Ints pad, Ints stride, Ints dilation, Ints x, Ints w,
                        cudnnDataType_t compute = CUDNN_DATA_FLOAT)
{
    cudnnConvolutionDescriptor_t c;
    cudnnTensorDescriptor_t t;
    cudnnFilterDescriptor_t f;
    Ints y(x.size());
    cudnnCreateConvolutionDescriptor(&c);
    cudnnCreateTensorDescriptor(&t);
    cudnnCreateFilterDescriptor(&f);
    cudnnStatus_t s = cudnnSetConvolutionNdDescriptor(c, (int)pad.size(), pad.data(), stride.data(),
                                                      dilation.data(), CUDNN_CROSS_CORRELATION, compute);
    if (!s) s = cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, (int)x.size(), x.data());
    if (!s) s = cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, (int)w.size(), w.data());
    if (!s) s = cudnnGetConvolutionNdForwardOutputDim(c, t, f, (int)y.size(), y.data());
    line(name, s, y);
    cudnnDestroyConvolutionDescriptor(c);
    cudnnDestroyTensorDescriptor(t);
    cudnnDestroyFilterDescriptor(f);
}

static void pool(const char *name, Ints window, Ints pad, Ints stride, Ints x)
{
    cudnnPoolingDescriptor_t p;
    cudnnTensorDescriptor_t t;
    Ints y(x.size());
    cudnnCreatePoolingDescriptor(&p);
    cudnnCreateTensorDescriptor(&t);
    cudnnStatus_t s =
        cudnnSetPoolingNdDescriptor(p, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, (int)window.size(),
                                    window.data(), pad.data(), stride.data());
    if (!s) s = cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, (int)x.size(), x.data());
    if (!s) s = cudnnGetPoolingNdForwardOutputDim(p, t, (int)y.size(), y.data());
    line(name, s, y);
    cudnnDestroyPoolingDescriptor(p);
    cudnnDestroyTensorDescriptor(t);
}

/* A graph with one call of it spoilt */
static void graph(const char *name, GraphCase g)
{
    cudnnBackendDescriptor_t d;
    line(name, g.graph(&d), {});
    g.drop();
}

static void spoilt(const char *name, Spoil how, int what, int nth = 0, int64_t value = 0, size_t bytes = 8)
{
    GraphCase g;
    g.spoil = how;
    g.spoilt = what;
    g.nth = nth;
    g.value = value;
    g.value_bytes = bytes;
    graph(name, g);
}

/* Tensors are made in the order: between, between, y, x, w, b */
static void graphs(void)
{
    GraphCase g;
    graph("graph", g);
    g.slope = 0.3;
    g.type = CUDNN_DATA_HALF;
    g.last = true;
    graph("graph-last", g);
    g.bias = g.relu = false;
    graph("graph-plain", g);
    g.y[2] = 5;
    graph("graph-y", g);
    g = {};
    g.b[1] = 3;
    graph("strict:graph-bias", g);
    g = {};
    g.b[2] = 4;
    graph("strict:graph-bias-everywhere", g);
    g = {};
    g.w[1] = 2;
    graph("graph-channels", g);
    spoilt("strict:graph-no-type", dropped, CUDNN_ATTR_TENSOR_DATA_TYPE, 3);
    spoilt("graph-no-extents", dropped, CUDNN_ATTR_TENSOR_DIMENSIONS, 3);
    spoilt("graph-no-strides", dropped, CUDNN_ATTR_TENSOR_STRIDES, 3);
    spoilt("strict:graph-no-id", dropped, CUDNN_ATTR_TENSOR_UNIQUE_ID, 3);
    spoilt("graph-no-align", dropped, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 3);
    spoilt("strict:graph-align-12", other_value, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 3, 12);
    spoilt("graph-align-0", other_value, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 3, 0);
    spoilt("graph-few-strides", one_less, CUDNN_ATTR_TENSOR_STRIDES, 3);
    spoilt("graph-strides-type", wrong_type, CUDNN_ATTR_TENSOR_STRIDES, 3);
    spoilt("graph-no-extent", other_value, CUDNN_ATTR_TENSOR_DIMENSIONS, 3, 0);
    spoilt("strict:graph-same-id", other_value, CUDNN_ATTR_TENSOR_UNIQUE_ID, 4, 'x');
    spoilt("strict:graph-memory-between", other_value, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0, 0, 1);
    spoilt("strict:graph-y-virtual", other_value, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 2, 1, 1);
    spoilt("graph-unfinished-tensor", unfinished, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 3);
    spoilt("graph-unfinished-window", unfinished, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    spoilt("strict:graph-unfinished-relu", unfinished, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 1);
    spoilt("graph-unfinished-operation", unfinished, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 1);
    spoilt("graph-finished-twice", twice, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 3);
    spoilt("graph-no-pad", dropped, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    spoilt("graph-few-pads", one_less, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    spoilt("graph-negative-pad", other_value, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0, -1);
    spoilt("graph-no-stride", other_value, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 0, 0);
    spoilt("strict:graph-no-mode", dropped, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
    spoilt("strict:graph-no-sums", dropped, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    spoilt("strict:graph-no-alpha", dropped, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
    spoilt("graph-alpha-type", wrong_type, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
    spoilt("graph-no-x", dropped, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
    spoilt("graph-no-window", dropped, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    spoilt("graph-no-pointwise-mode", dropped, CUDNN_ATTR_POINTWISE_MODE, 1);
    spoilt("strict:graph-no-precision", dropped, CUDNN_ATTR_POINTWISE_MATH_PREC, 1);
    spoilt("graph-slope-type", wrong_type, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
    spoilt("graph-no-bias", dropped, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    spoilt("graph-no-relu-y", dropped, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 1);
    spoilt("graph-no-operations", dropped, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    spoilt("strict:graph-relu-left-out", one_less, CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

/* Addresses without a device: nobody looks at them yet */
static void pack(const char *name, Spoil how, int what)
{
    GraphCase g;
    cudnnBackendDescriptor_t d;
    const int64_t id[3] = {'x', 'w', 'y'};
    char memory[64];
    void *address[3] = {memory, memory + 16, memory + 32}, *scratch = memory + 48;
    g.spoil = how;
    g.spoilt = what;
    cudnnStatus_t s = g.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &d);
    if (!s) s = g.set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, id);
    if (!s) s = g.set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, address);
    if (!s) s = g.set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    if (!s) s = g.finish(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, d);
    if (!s && how == right && what)
        s = g.set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    line(name, s, {});
    g.drop();
}

int main(void)
{
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    tensor("tensor-packed", f32, {2, 3, 4, 5, 6}, {360, 120, 30, 6, 1});
    tensor("tensor-last", CUDNN_DATA_HALF, {2, 3, 4, 5, 6}, {360, 1, 90, 18, 3});
    tensor("tensor-box", CUDNN_DATA_BFLOAT16, {2, 3, 4, 5, 6}, {1000, 300, 70, 8, 1});
    tensor("tensor-f64", CUDNN_DATA_DOUBLE, {1, 1, 4, 5, 6}, {120, 120, 30, 6, 1});
    tensor("tensor-4", f32, {2, 3, 5, 6}, {90, 30, 6, 1});
    tensor("tensor-3", f32, {2, 3, 5}, {15, 5, 1});
    tensor("tensor-no-extent", f32, {2, 0, 4, 5, 6}, {360, 120, 30, 6, 1});
    tensor("tensor-negative-extent", f32, {2, -3, 4, 5, 6}, {360, 120, 30, 6, 1});
    tensor("strict:tensor-negative-stride", f32, {2, 3, 4, 5, 6}, {360, 120, -30, 6, 1});
    tensor("strict:tensor-6", f32, {2, 3, 2, 2, 2, 2}, {48, 16, 8, 4, 2, 1});
    packed("packed-first", CUDNN_TENSOR_NCHW, {2, 3, 4, 5, 6});
    packed("packed-last", CUDNN_TENSOR_NHWC, {2, 3, 4, 5, 6});
    packed("packed-one-channel", CUDNN_TENSOR_NHWC, {2, 1, 4, 5, 6});
    filter("filter-first", f32, CUDNN_TENSOR_NCHW, {4, 3, 3, 3, 3});
    filter("filter-last", CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, {4, 3, 3, 3, 3});
    filter("filter-bf16", CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_NHWC, {4, 3, 1, 2, 3});
    filter("filter-no-extent", f32, CUDNN_TENSOR_NCHW, {4, 3, 0, 3, 3});
    convolution("conv-same", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-stride", {0, 1, 2}, {2, 3, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 3, 2, 3, 5});
    convolution("conv-dilation", {1, 2, 3}, {1, 2, 1}, {1, 2, 3}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-2d", {1, 1}, {2, 2}, {1, 1}, {2, 3, 9, 10}, {4, 3, 3, 3});
    convolution("conv-too-small", {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {2, 3, 2, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-channels", {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 5, 3, 3, 3});
    convolution("conv-no-stride", {0, 0, 0}, {1, 0, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-negative-pad", {0, -1, 0}, {1, 1, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-no-dilation", {0, 0, 0}, {1, 1, 1}, {1, 1, 0}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("conv-rank", {1, 1}, {1, 1}, {1, 1}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3});
    convolution("strict:conv-half-sums", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {2, 3, 8, 9, 10}, {4, 3, 3, 3, 3},
                CUDNN_DATA_HALF);
    pool("pool-halves", {2, 2, 2}, {0, 0, 0}, {2, 2, 2}, {2, 3, 8, 9, 10});
    pool("pool-over-border", {3, 3, 3}, {1, 1, 1}, {2, 2, 2}, {2, 3, 8, 9, 10});
    pool("pool-2d", {3, 2}, {1, 0}, {1, 2}, {2, 3, 9, 10});
    pool("pool-no-window", {3, 0, 3}, {1, 0, 1}, {2, 2, 2}, {2, 3, 8, 9, 10});
    pool("strict:pool-wide-pad", {2, 2, 2}, {2, 2, 2}, {2, 2, 2}, {2, 3, 8, 9, 10});
    graphs();
    pack("pack", right, 0);
    pack("pack-changed-after", right, 1);
    pack("pack-no-ids", dropped, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    pack("pack-few-addresses", one_less, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    pack("pack-no-addresses", dropped, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    pack("strict:pack-no-workspace", dropped, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    pack("pack-address-type", wrong_type, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    return 0;
}
