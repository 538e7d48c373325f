/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_pool.cpp -- pooling of the simulated cuDNN. Windows reach over the border by the padding: the maximum
 * is over what is inside, an average divides by the whole window or by what is inside. Backward a maximum
 * gives its gradient to the first of equal cells, in order of d, h, w.
 */
#include "dnn.hpp"
#include <algorithm>

namespace sim {

struct Window {
    int x[3] = {1, 1, 1}, y[3] = {1, 1, 1}, size[3] = {1, 1, 1}, pad[3] = {}, stride[3] = {1, 1, 1};
    cudnnPoolingMode_t mode;
    bool nan;
};

static Window window_of(const cudnnPoolingStruct &p, const cudnnTensorStruct &x, const cudnnTensorStruct &y)
{
    Window w;
    for (int i = 0, at = 3 - p.rank; i < p.rank; i++, at++) {
        w.x[at] = x.extent[i + 2];
        w.y[at] = y.extent[i + 2];
        w.size[at] = p.window[i];
        w.pad[at] = p.pad[i];
        w.stride[at] = p.stride[i];
    }
    w.mode = p.mode;
    w.nan = p.nan == CUDNN_PROPAGATE_NAN;
    return w;
}

static bool is_max(cudnnPoolingMode_t m)
{
    return m == CUDNN_POOLING_MAX || m == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* Calls cells(output, inputs inside) for each output cell of one plane */
template <class F> static void windows(const Window &w, F cells)
{
    std::vector<size_t> inside;
    size_t out = 0;
    for (int a = 0; a < w.y[0]; a++)
        for (int b = 0; b < w.y[1]; b++)
            for (int c = 0; c < w.y[2]; c++) {
                int lo[3] = {a * w.stride[0] - w.pad[0], b * w.stride[1] - w.pad[1],
                             c * w.stride[2] - w.pad[2]},
                    hi[3];
                for (int i = 0; i < 3; i++) {
                    hi[i] = std::min(lo[i] + w.size[i], w.x[i]);
                    lo[i] = std::max(lo[i], 0);
                }
                inside.clear();
                for (int d = lo[0]; d < hi[0]; d++)
                    for (int h = lo[1]; h < hi[1]; h++)
                        for (int v = lo[2]; v < hi[2]; v++)
                            inside.push_back(((size_t)d * w.x[1] + h) * w.x[2] + v);
                cells(out++, inside);
            }
}

static double divisor(const Window &w, size_t inside)
{
    return w.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? (double)w.size[0] * w.size[1] * w.size[2]
                                                                 : (double)inside;
}

/* The cell that is the maximum; a NaN is one if it spreads, and never chosen otherwise */
static size_t largest(const Window &w, const std::vector<size_t> &inside, const double *x)
{
    size_t best = inside[0];
    for (size_t i : inside) {
        if (w.nan && std::isnan(x[i])) return i;
        if (x[i] > x[best] || std::isnan(x[best])) best = i;
    }
    return best;
}

static void pool(const Window &w, const double *x, double *y)
{
    windows(w, [&](size_t o, const std::vector<size_t> &inside) {
        double sum = 0;
        for (size_t i : inside) sum += x[i];
        y[o] = is_max(w.mode) ? x[largest(w, inside, x)] : sum / divisor(w, inside.size());
    });
}

static void unpool(const Window &w, const double *x, const double *dy, double *dx)
{
    windows(w, [&](size_t o, const std::vector<size_t> &inside) {
        if (is_max(w.mode))
            dx[largest(w, inside, x)] += dy[o];
        else
            for (size_t i : inside) dx[i] += dy[o] / divisor(w, inside.size());
    });
}

static cudnnStatus_t check(cudnnPoolingDescriptor_t p, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y)
{
    int extent[CUDNN_DIM_MAX];
    DNN_PARAM(p && x && y && x->rank == y->rank && x->type == y->type);
    DNN_TRY(cudnnGetPoolingNdForwardOutputDim(p, x, x->rank, extent));
    for (int i = 0; i < x->rank; i++) DNN_PARAM(y->extent[i] == extent[i]);
    return CUDNN_STATUS_SUCCESS;
}

static bool same_shape(const cudnnTensorStruct &a, const cudnnTensorStruct &b)
{
    return a.rank == b.rank && a.type == b.type && std::equal(a.extent, a.extent + a.rank, b.extent);
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t p, const void *alpha,
                                  const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t yd, void *y)
{
    Lock lock;
    DNN_PARAM(alpha && beta);
    DNN_TRY(check(p, xd, yd));
    DnnOp op(handle, "cudnnPoolingForward");
    void *xw = op.operand(*xd, x, false), *yw = op.operand(*yd, y, true);
    double a = factor(alpha, xd->type), b = factor(beta, xd->type);
    cudnnTensorStruct xt = *xd, yt = *yd;
    Window w = window_of(*p, xt, yt);
    return op.queue([=] {
        std::vector<double> in = gather(xt, xw), out((size_t)elements(yt));
        size_t planes = (size_t)xt.extent[0] * xt.extent[1];
        for (size_t i = 0; i < planes; i++)
            pool(w, &in[i * (in.size() / planes)], &out[i * (out.size() / planes)]);
        blend(yt, yw, out, a, b);
    });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t p, const void *alpha,
                                   const cudnnTensorDescriptor_t yd, const void *y,
                                   const cudnnTensorDescriptor_t dyd, const void *dy,
                                   const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dxd, void *dx)
{
    Lock lock;
    DNN_PARAM(alpha && beta && dyd && dxd);
    DNN_TRY(check(p, xd, yd));
    DNN_PARAM(same_shape(*xd, *dxd) && same_shape(*yd, *dyd));
    DnnOp op(handle, "cudnnPoolingBackward");
    void *xw = op.operand(*xd, x, false), *dyw = op.operand(*dyd, dy, false);
    op.operand(*yd, y, false);
    void *dxw = op.operand(*dxd, dx, true);
    double a = factor(alpha, xd->type), b = factor(beta, xd->type);
    cudnnTensorStruct xt = *xd, dyt = *dyd, dxt = *dxd;
    Window w = window_of(*p, xt, dyt);
    return op.queue([=] {
        std::vector<double> in = gather(xt, xw), grad = gather(dyt, dyw), out(in.size(), 0);
        size_t planes = (size_t)xt.extent[0] * xt.extent[1];
        for (size_t i = 0; i < planes; i++)
            unpool(w, &in[i * (in.size() / planes)], &grad[i * (grad.size() / planes)],
                   &out[i * (out.size() / planes)]);
        blend(dxt, dxw, out, a, b);
    });
}
