/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.cpp -- the numbers of the simulated cuDNN and cuBLAS against plain loops: convolutions in three
 * directions with strides, paddings and dilations, both layouts, every type, boxed operands; pooling;
 * element-wise operations; products of matrices. And what they refuse.
 */
#include "check.hpp"
#include "number.hpp"
#include <cmath>
#include <cublas_v2.h>
#include <cudnn.h>

using sim::Kind;

static double noise(int i)
{
    return (double)((i * 1103 + 12345) % 2003) / 1001.0 - 1;
}

/* A tensor on the device: values in logical order, where they lie, and a descriptor of them; cells between
 * them hold 77 and must keep it */
struct Tensor {
    cudnnDataType_t type;
    Kind kind;
    std::vector<int> extent, stride;
    std::vector<double> v;
    void *p = nullptr;
    size_t room = 0;
    cudnnTensorDescriptor_t d;

    size_t at(size_t i) const
    {
        size_t a = 0;
        for (int k = (int)extent.size() - 1; k >= 0; k--) {
            a += i % (size_t)extent[(size_t)k] * (size_t)stride[(size_t)k];
            i /= (size_t)extent[(size_t)k];
        }
        return a;
    }

    void write()
    {
        std::vector<char> host(room * sim::size_of(kind));
        for (size_t i = 0; i < room; i++) sim::store(kind, host.data(), i, 77);
        for (size_t i = 0; i < v.size(); i++) sim::store(kind, host.data(), at(i), v[i]);
        for (size_t i = 0; i < v.size(); i++) v[i] = sim::load(kind, host.data(), at(i)); /* as rounded */
        GOOD(cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice));
    }

    /* The values now; whatever lies between them is as it was */
    std::vector<double> read() const
    {
        std::vector<char> host(room * sim::size_of(kind)), ours(room, 0);
        std::vector<double> now(v.size());
        GOOD(cudaMemcpy(host.data(), p, host.size(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < v.size(); i++) {
            now[i] = sim::load(kind, host.data(), at(i));
            ours[at(i)] = 1;
        }
        for (size_t i = 0; i < room; i++) HOLDS(ours[i] || sim::load(kind, host.data(), i) == 77);
        return now;
    }
};

static Tensor make(cudnnDataType_t type, std::vector<int> extent, bool last, int margin, int seed)
{
    static const Kind kinds[] = {Kind::f32, Kind::f64, Kind::f16};
    Tensor t;
    t.type = type;
    t.kind = type == CUDNN_DATA_BFLOAT16 ? Kind::bf16 : kinds[type];
    t.extent = extent;
    t.stride.resize(extent.size());
    int step = 1;
    if (last) t.stride[1] = 1, step = extent[1];
    for (size_t i = extent.size(); i-- > 0;) {
        if (i == 1 && last) continue;
        t.stride[i] = step;
        step *= extent[i] + (i >= 2 ? margin : 0);
    }
    t.room = (size_t)step;
    size_t n = 1;
    for (int e : extent) n *= (size_t)e;
    for (size_t i = 0; i < n; i++) t.v.push_back(noise((int)i + seed));
    GOOD(cudaMalloc(&t.p, t.room * sim::size_of(t.kind)));
    GOOD(cudnnCreateTensorDescriptor(&t.d));
    GOOD(cudnnSetTensorNdDescriptor(t.d, type, (int)extent.size(), extent.data(), t.stride.data()));
    t.write();
    return t;
}

/* max |a - b| over max |b| */
static double distance(const std::vector<double> &a, const std::vector<double> &b)
{
    double worst = 0, scale = 0;
    for (size_t i = 0; i < b.size(); i++) {
        double d = std::fabs(a[i] - b[i]);
        if (!(d <= worst)) worst = d;
        scale = std::fmax(scale, std::fabs(b[i]));
    }
    return worst / (scale > 0 ? scale : 1);
}

struct Case {
    cudnnDataType_t type;
    bool last; /* channels last */
    int margin;
    int x[3], k[3], stride[3], pad[3], dilation[3];
    double tolerance;
};

/* The same sums, written the slow way */
template <class F> static void taps(const Case &c, const std::vector<int> &y, int n, int C, F f)
{
    for (int b = 0; b < n; b++)
        for (int o = 0; o < y[1]; o++)
            for (int ch = 0; ch < C; ch++)
                for (int q = 0; q < y[2] * y[3] * y[4]; q++)
                    for (int t = 0; t < c.k[0] * c.k[1] * c.k[2]; t++) {
                        int yo[3] = {q / (y[3] * y[4]), q / y[4] % y[3], q % y[4]},
                            to[3] = {t / (c.k[1] * c.k[2]), t / c.k[2] % c.k[1], t % c.k[2]};
                        int xi = 0;
                        bool inside = true;
                        for (int i = 0; i < 3; i++) {
                            int at = yo[i] * c.stride[i] - c.pad[i] + to[i] * c.dilation[i];
                            inside = inside && at >= 0 && at < c.x[i];
                            xi = xi * c.x[i] + at;
                        }
                        size_t X = (size_t)((b * C + ch) * c.x[0] * c.x[1] * c.x[2] + xi),
                               W = (size_t)((o * C + ch) * c.k[0] * c.k[1] * c.k[2] + t);
                        if (inside) f(X, W, (size_t)((b * y[1] + o) * y[2] * y[3] * y[4] + q));
                    }
}

static void convolution(const Case &c)
{
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t fd;
    const int C = 3, K = 4, N = 2;
    const double one64 = 1, zero64 = 0, half64 = 0.5;
    const float one32 = 1, zero32 = 0, half32 = 0.5f;
    bool f64 = c.type == CUDNN_DATA_DOUBLE;
    const void *one = f64 ? (const void *)&one64 : &one32, *zero = f64 ? (const void *)&zero64 : &zero32,
               *part = f64 ? (const void *)&half64 : &half32;
    std::vector<int> ye(5);
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreateConvolutionDescriptor(&conv));
    GOOD(cudnnCreateFilterDescriptor(&fd));
    GOOD(cudnnSetConvolutionNdDescriptor(conv, 3, c.pad, c.stride, c.dilation, CUDNN_CROSS_CORRELATION,
                                         f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    GOOD(cudnnSetConvolutionMathType(conv, c.type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
    Tensor x = make(c.type, {N, C, c.x[0], c.x[1], c.x[2]}, c.last, c.margin, 1),
           w = make(c.type, {K, C, c.k[0], c.k[1], c.k[2]}, c.last, 0, 2);
    GOOD(cudnnSetFilterNdDescriptor(fd, c.type, c.last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, 5,
                                    w.extent.data()));
    GOOD(cudnnGetConvolutionNdForwardOutputDim(conv, x.d, fd, 5, ye.data()));
    Tensor y = make(c.type, ye, c.last, c.margin, 3), dy = make(c.type, ye, c.last, 0, 4);
    std::vector<double> wy(y.v.size(), 0), wx(x.v.size(), 0), ww(w.v.size(), 0);
    taps(c, ye, N, C, [&](size_t X, size_t W, size_t Y) {
        wy[Y] += x.v[X] * w.v[W];
        wx[X] += dy.v[Y] * w.v[W];
        ww[W] += x.v[X] * dy.v[Y];
    });
    void *scratch;
    GOOD(cudaMalloc(&scratch, 1 << 20));
    GOOD(cudnnConvolutionForward(h, one, x.d, x.p, fd, w.p, conv,
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, scratch, 1 << 20, zero,
                                 y.d, y.p));
    HOLDS(distance(y.read(), wy) <= c.tolerance);
    GOOD(cudnnConvolutionForward(h, part, x.d, x.p, fd, w.p, conv,
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, scratch, 1 << 20, one, y.d,
                                 y.p));
    for (double &v : wy) v *= 1.5;
    HOLDS(distance(y.read(), wy) <= 2 * c.tolerance);
    GOOD(cudnnConvolutionBackwardFilter(h, one, x.d, x.p, dy.d, dy.p, conv,
                                        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, scratch, 1 << 20, zero, fd,
                                        w.p));
    HOLDS(distance(w.read(), ww) <= c.tolerance);
    w.write();
    GOOD(cudnnConvolutionBackwardData(h, one, fd, w.p, dy.d, dy.p, conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                      scratch, 1 << 20, zero, x.d, x.p));
    HOLDS(distance(x.read(), wx) <= c.tolerance);
}

static void fused(bool relu)
{
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t fd;
    cudnnActivationDescriptor_t act;
    const int one3[3] = {1, 1, 1}, two3[3] = {0, 0, 0};
    const float one = 1, two = 2, zero = 0;
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreateConvolutionDescriptor(&conv));
    GOOD(cudnnCreateFilterDescriptor(&fd));
    GOOD(cudnnCreateActivationDescriptor(&act));
    GOOD(cudnnSetActivationDescriptor(act, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                      CUDNN_PROPAGATE_NAN, 0));
    GOOD(cudnnSetConvolutionNdDescriptor(conv, 3, two3, one3, one3, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    GOOD(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
    Tensor x = make(CUDNN_DATA_FLOAT, {2, 3, 4, 4, 4}, false, 0, 1),
           w = make(CUDNN_DATA_FLOAT, {5, 3, 1, 1, 1}, false, 0, 2);
    Tensor y = make(CUDNN_DATA_FLOAT, {2, 5, 4, 4, 4}, false, 0, 3),
           z = make(CUDNN_DATA_FLOAT, {2, 5, 4, 4, 4}, false, 1, 4);
    Tensor b = make(CUDNN_DATA_FLOAT, {1, 5, 1, 1, 1}, false, 0, 5);
    GOOD(cudnnSetFilterNdDescriptor(fd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, w.extent.data()));
    void *scratch;
    GOOD(cudaMalloc(&scratch, 1 << 16));
    GOOD(cudnnConvolutionBiasActivationForward(h, &one, x.d, x.p, fd, w.p, conv,
                                               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, scratch,
                                               1 << 16, &two, z.d, z.p, b.d, b.p, act, y.d, y.p));
    std::vector<double> want(y.v.size());
    for (size_t i = 0; i < want.size(); i++) {
        size_t n = i / 320, k = i / 64 % 5;
        want[i] = b.v[k] + 2 * z.v[i];
        for (size_t c = 0; c < 3; c++) want[i] += w.v[k * 3 + c] * x.v[(n * 3 + c) * 64 + i % 64];
        if (relu && want[i] < 0) want[i] = 0;
    }
    HOLDS(distance(y.read(), want) <= 1e-6);
    GOOD(cudnnConvolutionBackwardBias(h, &one, y.d, y.p, &zero, b.d, b.p));
    std::vector<double> db(5, 0);
    for (size_t i = 0; i < want.size(); i++) db[i / 64 % 5] += want[i];
    HOLDS(distance(b.read(), db) <= 1e-6);
    cudnnConvolutionFwdAlgo_t other = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    cudnnStatus_t status = cudnnConvolutionBiasActivationForward(
        h, &one, x.d, x.p, fd, w.p, conv, other, nullptr, 0, &zero, y.d, y.p, b.d, b.p, act, y.d, y.p);
    HOLDS(relu ? status == CUDNN_STATUS_SUCCESS : status == CUDNN_STATUS_NOT_SUPPORTED);
}

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

/* f32 through tensor cores is TF32 unless that is forbidden */
static void tf32(bool expected, cudnnMathType_t math)
{
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t fd;
    const int zero3[3] = {0, 0, 0}, one3[3] = {1, 1, 1};
    const float one = 1, zero = 0;
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreateConvolutionDescriptor(&conv));
    GOOD(cudnnCreateFilterDescriptor(&fd));
    GOOD(cudnnSetConvolutionNdDescriptor(conv, 3, zero3, one3, one3, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    GOOD(cudnnSetConvolutionMathType(conv, math));
    Tensor x = make(CUDNN_DATA_FLOAT, {1, 1, 3, 3, 3}, false, 0, 1),
           w = make(CUDNN_DATA_FLOAT, {1, 1, 1, 1, 1}, false, 0, 2);
    Tensor y = make(CUDNN_DATA_FLOAT, x.extent, false, 0, 3);
    w.v[0] = 1;
    w.write();
    GOOD(cudnnSetFilterNdDescriptor(fd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, w.extent.data()));
    GOOD(cudnnConvolutionForward(h, &one, x.d, x.p, fd, w.p, conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                 nullptr, 0, &zero, y.d, y.p));
    double d = distance(y.read(), x.v);
    HOLDS(expected ? d > 1e-6 && d <= 5e-4 : d == 0);
}

/* What the library answers when asked for algorithms; the trial runs spoil the output */
static void algorithms(size_t limit, bool last)
{
    cudnnHandle_t h;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t fd;
    const int one3[3] = {1, 1, 1};
    GOOD(cudnnCreate(&h));
    GOOD(cudnnCreateConvolutionDescriptor(&conv));
    GOOD(cudnnCreateFilterDescriptor(&fd));
    GOOD(cudnnSetConvolutionNdDescriptor(conv, 3, one3, one3, one3, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    Tensor x = make(CUDNN_DATA_FLOAT, {1, 2, 4, 4, 4}, last, 0, 1),
           w = make(CUDNN_DATA_FLOAT, {2, 2, 3, 3, 3}, last, 0, 2),
           y = make(CUDNN_DATA_FLOAT, {1, 2, 4, 4, 4}, last, 0, 3);
    GOOD(cudnnSetFilterNdDescriptor(fd, CUDNN_DATA_FLOAT, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, 5,
                                    w.extent.data()));
    cudnnConvolutionBwdFilterAlgoPerf_t perf[8];
    int count = 0, usable = 0;
    void *scratch = nullptr;
    if (limit) GOOD(cudaMalloc(&scratch, limit));
    GOOD(cudnnFindConvolutionBackwardFilterAlgorithmEx(h, x.d, x.p, y.d, y.p, conv, fd, w.p, 8, &count, perf,
                                                       scratch, limit));
    HOLDS(count == 3);
    for (int i = 0; i < count; i++) {
        size_t bytes = 0;
        if (perf[i].status) continue;
        usable++;
        HOLDS(i == 0 || perf[i - 1].time <= perf[i].time);
        HOLDS((perf[i].determinism == CUDNN_DETERMINISTIC) ==
              (perf[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1));
        GOOD(cudnnGetConvolutionBackwardFilterWorkspaceSize(h, x.d, y.d, conv, fd, perf[i].algo, &bytes));
        HOLDS(bytes == perf[i].memory && bytes <= limit);
    }
    HOLDS(usable == (limit ? (last ? 1 : 3) : (last ? 0 : 1)));
    HOLDS(std::isnan(w.read()[0]));
}

int main(void)
{
    const Case cases[] = {
        {CUDNN_DATA_FLOAT, false, 0, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1e-6},
        {CUDNN_DATA_FLOAT, false, 2, {5, 6, 7}, {3, 2, 3}, {2, 1, 3}, {0, 1, 2}, {1, 1, 1}, 1e-6},
        {CUDNN_DATA_FLOAT, true, 1, {4, 6, 5}, {1, 3, 2}, {1, 2, 1}, {0, 2, 1}, {1, 2, 3}, 1e-6},
        {CUDNN_DATA_DOUBLE, false, 1, {5, 5, 5}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {2, 1, 1}, 1e-14},
        {CUDNN_DATA_HALF, true, 0, {4, 4, 4}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1e-3},
        {CUDNN_DATA_BFLOAT16, true, 1, {4, 4, 4}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 8e-3},
        {CUDNN_DATA_BFLOAT16, false, 0, {1, 4, 6}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, 8e-3},
    };
    for (const Case &c : cases) {
        char claim[120];
        snprintf(claim, sizeof(claim), "convolution %d: type %d, channels %s, gaps of %d", (int)(&c - cases),
                 (int)c.type, c.last ? "last" : "first", c.margin);
        clean(claim, "", [&] { convolution(c); });
    }
    clean("convolution + bias + sum + relu", "", [] { fused(true); });
    told("without relu, by one algorithm only", "",
         "act->mode == CUDNN_ACTIVATION_RELU || algorithm ==", [] { fused(false); });
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
    clean("f32 is TF32 on sm_80 by default", "CUDASIM_SM=80", [] { tf32(true, CUDNN_DEFAULT_MATH); });
    clean("and f32 where that is forbidden", "CUDASIM_SM=90", [] { tf32(false, CUDNN_FMA_MATH); });
    clean("and on sm_70", "CUDASIM_SM=70", [] { tf32(false, CUDNN_DEFAULT_MATH); });
    clean("all algorithms, the fastest first", "CUDASIM_SEED=3", [] { algorithms(1 << 16, false); });
    clean("those that need no workspace", "", [] { algorithms(0, false); });
    clean("channels last: one", "", [] { algorithms(1 << 16, true); });
    clean("channels last without workspace: none", "", [] { algorithms(0, true); });
    told("more elements than an index holds", "CUDASIM_CUDNN_ELEMENTS=100", "all <= settings().elements", [] {
        cudnnTensorDescriptor_t d;
        const int extent[5] = {1, 1, 5, 5, 5};
        GOOD(cudnnCreateTensorDescriptor(&d));
        HOLDS(cudnnSetTensorNdDescriptorEx(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, extent) ==
              CUDNN_STATUS_NOT_SUPPORTED);
    });
    return tap_done();
}
