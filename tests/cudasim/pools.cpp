/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.cpp -- pooling and the element-wise operations of the simulated cuDNN, and the matrix products of the
 * simulated cuBLAS, against plain loops.
 */
#include "tensor.hpp"
#include <cublas_v2.h>

static void pooling(cudnnPoolingMode_t mode, int window, int pad, int stride)
{
    cudnnHandle_t h;
    cudnnPoolingDescriptor_t pool;
    const int win[3] = {window, window, 2}, pads[3] = {pad, pad, 0}, strides[3] = {stride, stride, 2};
    const float one = 1, zero = 0;
    std::vector<int> ye(5);
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreatePoolingDescriptor(&pool));
    GOOD(cudnnSetPoolingNdDescriptor(pool, mode, CUDNN_PROPAGATE_NAN, 3, win, pads, strides));
    Tensor x = make(CUDNN_DATA_FLOAT, {2, 3, 5, 6, 4}, false, 1, 1);
    GOOD(cudnnGetPoolingNdForwardOutputDim(pool, x.d, 5, ye.data()));
    Tensor y = make(CUDNN_DATA_FLOAT, ye, true, 0, 2), dy = make(CUDNN_DATA_FLOAT, ye, true, 0, 3),
           dx = make(CUDNN_DATA_FLOAT, x.extent, false, 2, 4);
    std::vector<double> wy(y.v.size()), wx(x.v.size(), 0);
    bool max = mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
    for (size_t i = 0; i < wy.size(); i++) {
        int o[3] = {(int)i / (ye[3] * ye[4]) % ye[2], (int)i / ye[4] % ye[3], (int)i % ye[4]};
        size_t plane = i / (size_t)(ye[2] * ye[3] * ye[4]) * 120, best = 0;
        std::vector<size_t> cells;
        for (int t = 0; t < window * window * 2; t++) {
            int d = o[0] * stride - pad + t / (window * 2), v = o[1] * stride - pad + t / 2 % window,
                w = o[2] * 2 + t % 2;
            if (d >= 0 && d < 5 && v >= 0 && v < 6 && w < 4)
                cells.push_back(plane + (size_t)((d * 6 + v) * 4 + w));
        }
        double sum = 0, count = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? window * window * 2
                                                                                    : (double)cells.size();
        best = cells[0];
        for (size_t c : cells) {
            sum += x.v[c];
            if (x.v[c] > x.v[best]) best = c;
        }
        wy[i] = max ? x.v[best] : sum / count;
        if (max) wx[best] += dy.v[i];
        for (size_t c : cells)
            if (!max) wx[c] += dy.v[i] / count;
    }
    GOOD(cudnnPoolingForward(h, pool, &one, x.d, x.p, &zero, y.d, y.p));
    HOLDS(distance(y.read(), wy) <= 1e-6);
    GOOD(cudnnPoolingBackward(h, pool, &one, y.d, y.p, dy.d, dy.p, x.d, x.p, &zero, dx.d, dx.p));
    HOLDS(distance(dx.read(), wx) <= 1e-6);
}

static void pointwise()
{
    cudnnHandle_t h;
    cudnnOpTensorDescriptor_t op;
    cudnnReduceTensorDescriptor_t reduce;
    cudnnActivationDescriptor_t act;
    const float one = 1, part = 0.5f, zero = 0, three = 3;
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreateOpTensorDescriptor(&op));
    GOOD(cudnnCreateReduceTensorDescriptor(&reduce));
    GOOD(cudnnCreateActivationDescriptor(&act));
    GOOD(cudnnSetActivationDescriptor(act, CUDNN_ACTIVATION_ELU, CUDNN_PROPAGATE_NAN, 1));
    GOOD(cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
    GOOD(cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_FLOAT,
                                        CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                        CUDNN_32BIT_INDICES));
    Tensor a = make(CUDNN_DATA_FLOAT, {2, 3, 2, 2, 2}, false, 1, 1),
           b = make(CUDNN_DATA_FLOAT, {1, 3, 1, 1, 1}, false, 0, 2);
    Tensor c = make(CUDNN_DATA_FLOAT, a.extent, true, 0, 3), g = make(CUDNN_DATA_HALF, a.extent, true, 1, 4),
           dc = make(CUDNN_DATA_FLOAT, a.extent, false, 0, 6);
    std::vector<double> want = c.v, norm(3, 0);
    GOOD(cudnnOpTensor(h, op, &one, a.d, a.p, &part, b.d, b.p, &one, c.d, c.p));
    for (size_t i = 0; i < want.size(); i++) want[i] += a.v[i] * 0.5 * b.v[i / 8 % 3];
    HOLDS(distance(c.read(), want) <= 1e-6);
    GOOD(cudnnAddTensor(h, &three, b.d, b.p, &part, c.d, c.p));
    for (size_t i = 0; i < want.size(); i++) want[i] = 0.5 * want[i] + 3 * b.v[i / 8 % 3];
    HOLDS(distance(c.read(), want) <= 1e-6);
    GOOD(cudnnScaleTensor(h, c.d, c.p, &part));
    for (double &v : want) v *= 0.5;
    HOLDS(distance(c.read(), want) <= 1e-6);
    GOOD(cudnnTransformTensor(h, &one, c.d, c.p, &zero, g.d, g.p)); /* another layout and type */
    HOLDS(distance(g.read(), want) <= 1e-3);
    size_t bytes;
    void *scratch;
    GOOD(cudnnGetReductionWorkspaceSize(h, reduce, a.d, b.d, &bytes));
    GOOD(cudaMalloc(&scratch, bytes));
    GOOD(cudnnReduceTensor(h, reduce, nullptr, 0, scratch, bytes, &one, a.d, a.p, &zero, b.d, b.p));
    for (size_t i = 0; i < a.v.size(); i++) norm[i / 8 % 3] += a.v[i] * a.v[i];
    for (double &v : norm) v = std::sqrt(v);
    HOLDS(distance(b.read(), norm) <= 1e-6);
    GOOD(cudnnActivationForward(h, act, &one, a.d, a.p, &zero, c.d, c.p));
    for (size_t i = 0; i < want.size(); i++) want[i] = a.v[i] > 0 ? a.v[i] : std::exp(a.v[i]) - 1;
    HOLDS(distance(c.read(), want) <= 1e-6);
    Tensor dx = make(CUDNN_DATA_FLOAT, a.extent, false, 0, 9);
    GOOD(cudnnActivationBackward(h, act, &one, c.d, c.p, dc.d, dc.p, a.d, a.p, &zero, dx.d, dx.p));
    for (size_t i = 0; i < want.size(); i++) want[i] = dc.v[i] * (a.v[i] > 0 ? 1 : std::exp(a.v[i]));
    HOLDS(distance(dx.read(), want) <= 1e-6);
    GOOD(cudnnSetTensor(h, a.d, a.p, &three));
    for (double v : a.read()) HOLDS(v == 3);
}

/* C = 0.5 op(A) op(B) + 2 C, a batch of two, leading dimensions larger than the rows */
static void gemm(bool ta, bool tb, cudaDataType_t type, Kind kind, double tolerance)
{
    const int m = 3, n = 4, k = 5, pad = 2;
    const float alpha = 0.5f, beta = 2;
    int ra = ta ? k : m, ca = ta ? m : k, rb = tb ? n : k, cb = tb ? k : n, lda = ra + pad, ldb = rb + pad,
        ldc = m + pad;
    auto put = [&](int leading, int columns, int seed, std::vector<char> &host) {
        void *p;
        host.resize((size_t)(2 * leading * columns) * sim::size_of(kind));
        for (int i = 0; i < 2 * leading * columns; i++)
            sim::store(kind, host.data(), (size_t)i, noise(i + seed));
        GOOD(cudaMalloc(&p, host.size()));
        GOOD(cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice));
        return p;
    };
    std::vector<char> ha, hb, hc;
    void *a = put(lda, ca, 1, ha), *b = put(ldb, cb, 2, hb), *c = put(ldc, n, 3, hc);
    cublasHandle_t h;
    GOOD(cublasCreate(&h));
    GOOD(cublasGemmStridedBatchedEx(h, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n,
                                    k, &alpha, a, type, lda, lda * ca, b, type, ldb, ldb * cb, &beta, c, type,
                                    ldc, ldc * n, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    std::vector<char> now(hc.size());
    GOOD(cudaMemcpy(now.data(), c, now.size(), cudaMemcpyDeviceToHost));
    for (int q = 0; q < 2; q++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < ldc; i++) {
                size_t at = (size_t)((q * n + j) * ldc + i);
                double want = sim::load(kind, hc.data(), at);
                if (i < m) {
                    want *= 2;
                    for (int l = 0; l < k; l++)
                        want += 0.5 *
                                sim::load(kind, ha.data(),
                                          (size_t)(q * lda * ca + (ta ? i * lda + l : l * lda + i))) *
                                sim::load(kind, hb.data(),
                                          (size_t)(q * ldb * cb + (tb ? l * ldb + j : j * ldb + l)));
                }
                HOLDS(std::fabs(sim::load(kind, now.data(), at) - want) <= tolerance);
            }
}

int main(void)
{
    clean("maximum, windows side by side", "", [] { pooling(CUDNN_POOLING_MAX, 2, 0, 2); });
    clean("maximum, overlapping windows over the border", "",
          [] { pooling(CUDNN_POOLING_MAX_DETERMINISTIC, 3, 1, 2); });
    clean("average of what is inside", "",
          [] { pooling(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 3, 1, 2); });
    clean("average of the whole window", "",
          [] { pooling(CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 1, 1); });
    clean("element-wise operations, conversion and reduction", "", pointwise);
    for (int t = 0; t < 4; t++) {
        clean("a batch of products, f32", "", [t] { gemm(t & 1, t & 2, CUDA_R_32F, Kind::f32, 1e-6); });
        clean("a batch of products, f16", "", [t] { gemm(t & 1, t & 2, CUDA_R_16F, Kind::f16, 4e-3); });
    }
    return tap_done();
}
