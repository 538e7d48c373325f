/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_conv.cpp -- the convolutions of the simulated cuDNN, in double over dense copies of the operands:
 *
 *     y[n,k,o]  = sum_{c,t} w[k,c,t] x[n,c,i]
 *     dx[n,c,i] = sum_{k,t,o} w[k,c,t] dy[n,k,o]
 *     dw[k,c,t] = sum_{n,o} x[n,c,i] dy[n,k,o]
 *
 * with i = o * stride - pad + t * dilation in each spatial dimension. Tensor cores round their operands: f32
 * becomes TF32 where the device has it and the math type does not forbid it (as the real library does by
 * default), half where conversion is allowed. An algorithm that sums with atomics gives other last bits in
 * every run, once there is a seed.
 */
#include "dnn_conv.hpp"
#include <algorithm>

namespace sim {

struct Axis { /* one spatial dimension */
    int x = 1, y = 1, w = 1, pad = 0, stride = 1, dilation = 1;
};

/* The outputs o in [first, end) whose input lies inside, for tap t; the input of o is o * stride + shift */
struct Reach {
    int first, end, shift;
};

static Reach reach(const Axis &a, int t)
{
    int shift = t * a.dilation - a.pad, last = a.x - 1 - shift;
    int first = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
    return {first, last < 0 ? 0 : std::min(a.y, last / a.stride + 1), shift};
}

static void axes_of(const Problem &p, Axis *axes)
{
    for (int i = 0, at = 3 - p.c->rank; i < p.c->rank; i++, at++)
        axes[at] = {p.x->extent[i + 2], p.y->extent[i + 2], p.w->extent[i + 2],
                    p.c->pad[i],        p.c->stride[i],     p.c->dilation[i]};
}

static std::vector<double> rounded(const Problem &p, std::vector<double> v)
{
    if (p.x->type != CUDNN_DATA_FLOAT) return v;
    bool half = p.c->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    if (!half && (settings().sm < 80 || p.c->math == CUDNN_FMA_MATH)) return v;
    for (double &d : v) d = half ? round_f16(d) : round_tf32(d);
    return v;
}

/* Runs `row(x, y, n, stride)` for every pair of rows that tap (t0, t1, t2) brings together, n elements with x
 * in steps of stride */
template <class F> static void rows(const Axis *a, int t0, int t1, int t2, F row)
{
    Reach r0 = reach(a[0], t0), r1 = reach(a[1], t1), r2 = reach(a[2], t2);
    int n = r2.end - r2.first;
    if (n <= 0) return;
    for (int o0 = r0.first; o0 < r0.end; o0++)
        for (int o1 = r1.first; o1 < r1.end; o1++) {
            int64_t i0 = o0 * a[0].stride + r0.shift, i1 = o1 * a[1].stride + r1.shift,
                    i2 = r2.first * a[2].stride + r2.shift;
            row((i0 * a[1].x + i1) * a[2].x + i2, ((int64_t)o0 * a[1].y + o1) * a[2].y + r2.first, n,
                a[2].stride);
        }
}

/* One tap between one plane of x and one of y */
static void tap(Pass pass, const Axis *a, const int *t, double *x, double *w, double *y)
{
    rows(a, t[0], t[1], t[2], [=](int64_t xi, int64_t yi, int n, int stride) {
        double *xs = x + xi, *ys = y + yi, sum = 0;
        if (pass == forward)
            for (int i = 0; i < n; i++) ys[i] += *w * xs[i * stride];
        else if (pass == backward_data)
            for (int i = 0; i < n; i++) xs[i * stride] += *w * ys[i];
        else
            for (int i = 0; i < n; i++) sum += xs[i * stride] * ys[i];
        if (pass == backward_filter) *w += sum;
    });
}

std::vector<double> convolve(const Problem &p, const void *x, const void *w, const void *y)
{
    Axis a[3];
    axes_of(p, a);
    std::vector<double> X = p.pass == backward_data ? std::vector<double>((size_t)elements(*p.x), 0)
                                                    : rounded(p, gather(*p.x, x));
    std::vector<double> W = p.pass == backward_filter ? std::vector<double>((size_t)elements(*p.w), 0)
                                                      : rounded(p, gather(*p.w, w));
    std::vector<double> Y =
        p.pass == forward ? std::vector<double>((size_t)elements(*p.y), 0) : rounded(p, gather(*p.y, y));
    int C = p.x->extent[1], K = p.y->extent[1];
    size_t taps = (size_t)a[0].w * a[1].w * a[2].w, px = (size_t)a[0].x * a[1].x * a[2].x,
           py = (size_t)a[0].y * a[1].y * a[2].y;
    for (int n = 0; n < p.x->extent[0]; n++)
        for (int k = 0; k < K; k++)
            for (int c = 0; c < C; c++)
                for (size_t i = 0; i < taps; i++) {
                    const int t[3] = {(int)(i / (size_t)(a[1].w * a[2].w)),
                                      (int)(i / (size_t)a[2].w) % a[1].w, (int)(i % (size_t)a[2].w)};
                    size_t flipped = p.c->mode == CUDNN_CONVOLUTION ? taps - 1 - i : i;
                    tap(p.pass, a, t, &X[(size_t)(n * C + c) * px], &W[(size_t)(k * C + c) * taps + flipped],
                        &Y[(size_t)(n * K + k) * py]);
                }
    return p.pass == forward ? Y : p.pass == backward_data ? X : W;
}

void disturb(std::vector<double> &v)
{
    for (double &d : v) d *= 1 + ((double)draw(3) - 1) * 0x1p-23;
}

static cudnnStatus_t run(cudnnHandle_t handle, const char *name, const Problem &p, int algorithm,
                         const void *alpha, const void *beta, const void *x, const void *w, const void *y,
                         void *workspace, size_t bytes)
{
    size_t need;
    DNN_PARAM(alpha && beta);
    DNN_TRY(check_problem(p));
    DNN_TRY(check_algorithm(p, algorithm, &need));
    DNN_NEED(bytes >= need, CUDNN_STATUS_BAD_PARAM);
    DnnOp op(handle, name);
    void *xw = op.operand(*p.x, x, p.pass == backward_data),
         *ww = op.operand(*p.w, w, p.pass == backward_filter);
    void *yw = op.operand(*p.y, y, p.pass == forward);
    op.scratch(workspace, need);
    double a = factor(alpha, p.x->type), b = factor(beta, p.x->type);
    auto kept = std::make_shared<Kept>(p);
    bool exact = deterministic(p.pass, algorithm);
    return op.queue([=] {
        std::vector<double> v = convolve(kept->problem(), xw, ww, yw);
        if (!exact) disturb(v);
        if (kept->pass == forward)
            blend(kept->y, yw, v, a, b);
        else if (kept->pass == backward_data)
            blend(kept->x, xw, v, a, b);
        else
            blend(kept->w, ww, v, a, b);
    });
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t xd, const void *x,
                                      const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    Lock lock;
    return run(handle, "cudnnConvolutionForward", {forward, xd, yd, wd, c}, algorithm, alpha, beta, x, w, y,
               workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t wd, const void *w,
                                           const cudnnTensorDescriptor_t yd, const void *dy,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
                                           size_t bytes, const void *beta, const cudnnTensorDescriptor_t xd,
                                           void *dx)
{
    Lock lock;
    return run(handle, "cudnnConvolutionBackwardData", {backward_data, xd, yd, wd, c}, algorithm, alpha, beta,
               dx, w, dy, workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t xd, const void *x,
                                             const cudnnTensorDescriptor_t yd, const void *dy,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace,
                                             size_t bytes, const void *beta, const cudnnFilterDescriptor_t wd,
                                             void *dw)
{
    Lock lock;
    return run(handle, "cudnnConvolutionBackwardFilter", {backward_filter, xd, yd, wd, c}, algorithm, alpha,
               beta, x, dw, dy, workspace, bytes);
}

/* y = act(alpha1 conv(x, w) + alpha2 z + b); the identity only with the precomputed implicit GEMM, as
 * documented */
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t xd, const void *x,
    const cudnnFilterDescriptor_t wd, const void *w, const cudnnConvolutionDescriptor_t c,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes, const void *alpha2,
    const cudnnTensorDescriptor_t zd, const void *z, const cudnnTensorDescriptor_t bd, const void *b,
    const cudnnActivationDescriptor_t act, const cudnnTensorDescriptor_t yd, void *y)
{
    Lock lock;
    size_t need;
    Problem p{forward, xd, yd, wd, c};
    DNN_PARAM(alpha1 && alpha2 && zd && bd && act && act->set);
    DNN_TRY(check_problem(p));
    DNN_TRY(check_algorithm(p, algorithm, &need));
    DNN_NEED(bytes >= need, CUDNN_STATUS_BAD_PARAM);
    DNN_SUPPORT(act->mode == CUDNN_ACTIVATION_RELU || act->mode == CUDNN_ACTIVATION_IDENTITY);
    DNN_SUPPORT(act->mode == CUDNN_ACTIVATION_RELU ||
                algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
    DNN_PARAM(zd->rank == yd->rank && bd->rank == yd->rank);
    for (int i = 0; i < yd->rank; i++) {
        DNN_PARAM(zd->extent[i] == yd->extent[i]);
        DNN_PARAM(bd->extent[i] == (i == 1 ? yd->extent[1] : 1));
    }
    DnnOp op(handle, "cudnnConvolutionBiasActivationForward");
    void *xw = op.operand(*xd, x, false), *ww = op.operand(*wd, w, false), *bw = op.operand(*bd, b, false);
    double a1 = factor(alpha1, xd->type), a2 = factor(alpha2, xd->type);
    void *zw = a2 != 0 ? op.operand(*zd, z, false) : nullptr, *yw = op.operand(*yd, y, true);
    op.scratch(workspace, need);
    auto kept = std::make_shared<Kept>(p);
    cudnnTensorStruct ztensor = *zd, btensor = *bd;
    bool relu = act->mode == CUDNN_ACTIVATION_RELU;
    return op.queue([=] {
        std::vector<double> v = convolve(kept->problem(), xw, ww, yw), add, bias = gather(btensor, bw);
        if (zw) add = gather(ztensor, zw);
        size_t K = bias.size(), plane = v.size() / K / (size_t)kept->y.extent[0];
        for (size_t i = 0; i < v.size(); i++) {
            v[i] = a1 * v[i] + bias[i / plane % K] + (zw ? a2 * add[i] : 0);
            if (relu && v[i] < 0) v[i] = 0;
        }
        blend(kept->y, yw, v, 1, 0);
    });
}

/* db[k] = alpha sum_{n,o} dy[n,k,o] + beta db[k] */
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t yd, const void *dy, const void *beta,
                                           const cudnnTensorDescriptor_t bd, void *db)
{
    Lock lock;
    DNN_PARAM(alpha && beta && yd && yd->rank && bd && bd->rank == yd->rank && bd->type == yd->type);
    for (int i = 0; i < yd->rank; i++) DNN_PARAM(bd->extent[i] == (i == 1 ? yd->extent[1] : 1));
    DnnOp op(handle, "cudnnConvolutionBackwardBias");
    void *yw = op.operand(*yd, dy, false), *bw = op.operand(*bd, db, true);
    double a = factor(alpha, yd->type), b = factor(beta, yd->type);
    cudnnTensorStruct ytensor = *yd, btensor = *bd;
    return op.queue([=] {
        std::vector<double> v = gather(ytensor, yw), sum((size_t)ytensor.extent[1], 0);
        size_t K = sum.size(), plane = v.size() / K / (size_t)ytensor.extent[0];
        for (size_t i = 0; i < v.size(); i++) sum[i / plane % K] += v[i];
        blend(btensor, bw, sum, a, b);
    });
}
