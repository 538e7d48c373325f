/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.cpp -- a list of calls on cuDNN's descriptors, which need no device: one line for each with
 * whether it was accepted and the numbers it answered. Built against the simulated cuDNN and against the real
 * one; descriptors.test compares. A name that begins with "strict:" is refused by the simulated one on
 * purpose.
 */
#include <cstdio>
#include <cudnn.h>
#include <vector>

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
    return 0;
}
