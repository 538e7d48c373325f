/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.cpp -- the convolutions of the simulated cuDNN against plain loops: three directions with strides,
 * paddings and dilations, both layouts, every type, boxed operands; with bias and activation; the rounding of
 * tensor cores; and what the library answers when asked for algorithms.
 */
#include "tensor.hpp"

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
