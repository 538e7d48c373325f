/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_pointwise.cpp -- the element-wise operations of the simulated cuDNN: activations, binary operations and
 * sums with broadcasting, scaling, filling, conversion of layout and type; and reductions. All are out =
 * alpha f(...) + beta out, the old values unread where beta is 0.
 */
#include "dnn.hpp"
#include <algorithm>

namespace sim {

static bool equal_extents(const cudnnTensorStruct &a, const cudnnTensorStruct &b)
{
    return a.rank == b.rank && std::equal(a.extent, a.extent + a.rank, b.extent);
}

/* Every extent is that of the other, or 1 */
static bool spreads(const cudnnTensorStruct &a, const cudnnTensorStruct &to)
{
    if (a.rank != to.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.extent[i] != to.extent[i] && a.extent[i] != 1) return false;
    return true;
}

/* A descriptor of the shape of `to` that reads `a` again and again where its extent is 1 */
static cudnnTensorStruct spread(cudnnTensorStruct a, const cudnnTensorStruct &to)
{
    for (int i = 0; i < a.rank; i++) {
        if (a.extent[i] != to.extent[i]) a.stride[i] = 0;
        a.extent[i] = to.extent[i];
    }
    return a;
}

static double activate(const cudnnActivationStruct &act, double x)
{
    switch (act.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
        return 1 / (1 + std::exp(-x));
    case CUDNN_ACTIVATION_RELU:
        return x > 0 || std::isnan(x) ? x : 0;
    case CUDNN_ACTIVATION_TANH:
        return std::tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
        return std::min(std::max(x, 0.0), act.coefficient);
    case CUDNN_ACTIVATION_ELU:
        return x > 0 ? x : act.coefficient * (std::exp(x) - 1);
    default:
        return x;
    }
}

/* dx/dy from the input and the output */
static double slope(const cudnnActivationStruct &act, double x, double y)
{
    switch (act.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
        return y * (1 - y);
    case CUDNN_ACTIVATION_RELU:
        return x > 0;
    case CUDNN_ACTIVATION_TANH:
        return 1 - y * y;
    case CUDNN_ACTIVATION_CLIPPED_RELU:
        return x > 0 && x < act.coefficient;
    case CUDNN_ACTIVATION_ELU:
        return x > 0 ? 1 : y + act.coefficient;
    default:
        return 1;
    }
}

static double binary(cudnnOpTensorOp_t op, double a, double b)
{
    switch (op) {
    case CUDNN_OP_TENSOR_ADD:
        return a + b;
    case CUDNN_OP_TENSOR_MUL:
        return a * b;
    case CUDNN_OP_TENSOR_MIN:
        return std::min(a, b);
    case CUDNN_OP_TENSOR_MAX:
        return std::max(a, b);
    case CUDNN_OP_TENSOR_SQRT:
        return std::sqrt(a);
    default:
        return 1 - a; /* NOT */
    }
}

static double gathered(cudnnReduceTensorOp_t op, double sum, double v)
{
    switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return sum * v;
    case CUDNN_REDUCE_TENSOR_MIN:
        return std::min(sum, v);
    case CUDNN_REDUCE_TENSOR_MAX:
        return std::max(sum, v);
    case CUDNN_REDUCE_TENSOR_AMAX:
        return std::max(sum, std::fabs(v));
    case CUDNN_REDUCE_TENSOR_NORM1:
        return sum + std::fabs(v);
    case CUDNN_REDUCE_TENSOR_NORM2:
        return sum + v * v;
    default:
        return sum + v; /* ADD, AVG */
    }
}

static double first(cudnnReduceTensorOp_t op)
{
    switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return 1;
    case CUDNN_REDUCE_TENSOR_MIN:
        return INFINITY;
    case CUDNN_REDUCE_TENSOR_MAX:
        return -INFINITY;
    default:
        return 0;
    }
}

/* One input, one output: y = alpha f(x) + beta y */
template <class F>
static cudnnStatus_t map(cudnnHandle_t handle, const char *name, const void *alpha,
                         const cudnnTensorStruct &xt, const void *x, const void *beta,
                         const cudnnTensorStruct &yt, void *y, F f)
{
    DnnOp op(handle, name);
    void *xw = op.operand(xt, x, false), *yw = op.operand(yt, y, true);
    double a = factor(alpha, yt.type), b = factor(beta, yt.type);
    cudnnTensorStruct in = spread(xt, yt);
    return op.queue([=] {
        std::vector<double> v = gather(in, xw);
        for (double &d : v) d = f(d);
        blend(yt, yw, v, a, b);
    });
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t act, const void *alpha,
                                     const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                     const cudnnTensorDescriptor_t yd, void *y)
{
    Lock lock;
    DNN_PARAM(act && act->set && alpha && beta && xd && yd && xd->rank && equal_extents(*xd, *yd) &&
              xd->type == yd->type);
    cudnnActivationStruct kept = *act;
    return map(handle, "cudnnActivationForward", alpha, *xd, x, beta, *yd, y,
               [=](double v) { return activate(kept, v); });
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t act,
                                      const void *alpha, const cudnnTensorDescriptor_t yd, const void *y,
                                      const cudnnTensorDescriptor_t dyd, const void *dy,
                                      const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                      const cudnnTensorDescriptor_t dxd, void *dx)
{
    Lock lock;
    DNN_PARAM(act && act->set && alpha && beta && xd && yd && dyd && dxd && xd->rank);
    DNN_PARAM(equal_extents(*xd, *yd) && equal_extents(*xd, *dyd) && equal_extents(*xd, *dxd));
    DnnOp op(handle, "cudnnActivationBackward");
    void *xw = op.operand(*xd, x, false), *yw = op.operand(*yd, y, false), *dyw = op.operand(*dyd, dy, false);
    void *dxw = op.operand(*dxd, dx, true);
    double a = factor(alpha, dxd->type), b = factor(beta, dxd->type);
    cudnnTensorStruct xt = *xd, yt = *yd, dyt = *dyd, dxt = *dxd;
    cudnnActivationStruct kept = *act;
    return op.queue([=] {
        std::vector<double> in = gather(xt, xw), out = gather(yt, yw), v = gather(dyt, dyw);
        for (size_t i = 0; i < v.size(); i++) v[i] *= slope(kept, in[i], out[i]);
        blend(dxt, dxw, v, a, b);
    });
}

/* C = op(alpha1 A, alpha2 B) + beta C; B may have extents of 1 */
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t o, const void *alpha1,
                            const cudnnTensorDescriptor_t ad, const void *a, const void *alpha2,
                            const cudnnTensorDescriptor_t bd, const void *b, const void *beta,
                            const cudnnTensorDescriptor_t cd, void *c)
{
    Lock lock;
    DNN_PARAM(o && o->set && alpha1 && alpha2 && beta && ad && bd && cd && ad->rank);
    DNN_PARAM(equal_extents(*ad, *cd) && spreads(*bd, *cd));
    DNN_SUPPORT((cd->type == CUDNN_DATA_DOUBLE) == (o->compute == CUDNN_DATA_DOUBLE));
    DnnOp op(handle, "cudnnOpTensor");
    void *aw = op.operand(*ad, a, false), *bw = op.operand(*bd, b, false), *cw = op.operand(*cd, c, true);
    double fa = factor(alpha1, cd->type), fb = factor(alpha2, cd->type), fc = factor(beta, cd->type);
    cudnnTensorStruct at = *ad, bt = spread(*bd, *cd), ct = *cd;
    cudnnOpTensorOp_t what = o->op;
    return op.queue([=] {
        std::vector<double> va = gather(at, aw), vb = gather(bt, bw);
        for (size_t i = 0; i < va.size(); i++) va[i] = binary(what, fa * va[i], fb * vb[i]);
        blend(ct, cw, va, 1, fc);
    });
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t ad,
                             const void *a, const void *beta, const cudnnTensorDescriptor_t cd, void *c)
{
    Lock lock;
    DNN_PARAM(alpha && beta && ad && cd && ad->rank && ad->type == cd->type && spreads(*ad, *cd));
    return map(handle, "cudnnAddTensor", alpha, *ad, a, beta, *cd, c, [](double v) { return v; });
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
                                   const void *x, const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    Lock lock;
    DNN_PARAM(alpha && beta && xd && yd && xd->rank && equal_extents(*xd, *yd));
    return map(handle, "cudnnTransformTensor", alpha, *xd, x, beta, *yd, y, [](double v) { return v; });
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yd, void *y,
                               const void *alpha)
{
    Lock lock;
    DNN_PARAM(alpha && yd && yd->rank);
    const double zero = 0; /* its first bytes are a float zero as well */
    return map(handle, "cudnnScaleTensor", alpha, *yd, y, &zero, *yd, y, [](double v) { return v; });
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yd, void *y,
                             const void *value)
{
    Lock lock;
    DNN_PARAM(value && yd && yd->rank);
    DnnOp op(handle, "cudnnSetTensor");
    void *yw = op.operand(*yd, y, true);
    cudnnTensorStruct yt = *yd;
    double v = load(kind_of(yt.type), value, 0);
    return op.queue([=] { blend(yt, yw, std::vector<double>((size_t)elements(yt), v), 1, 0); });
}

/* --- reductions over the dimensions in which C has extent 1 */

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t, const cudnnReduceTensorDescriptor_t,
                                           const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
                                           size_t *bytes)
{
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t, const cudnnReduceTensorDescriptor_t,
                                             const cudnnTensorDescriptor_t ad,
                                             const cudnnTensorDescriptor_t cd, size_t *bytes)
{
    DNN_PARAM(ad && cd && bytes);
    *bytes = 128 + 16 * (size_t)elements(*cd);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t r, void *, size_t,
                                void *workspace, size_t bytes, const void *alpha,
                                const cudnnTensorDescriptor_t ad, const void *a, const void *beta,
                                const cudnnTensorDescriptor_t cd, void *c)
{
    Lock lock;
    DNN_PARAM(r && r->set && alpha && beta && ad && cd && ad->rank && spreads(*cd, *ad));
    size_t need = 0;
    cudnnGetReductionWorkspaceSize(handle, r, ad, cd, &need);
    DNN_NEED(bytes >= need, CUDNN_STATUS_BAD_PARAM);
    DnnOp op(handle, "cudnnReduceTensor");
    void *aw = op.operand(*ad, a, false), *cw = op.operand(*cd, c, true);
    op.scratch(workspace, need);
    double fa = factor(alpha, ad->type), fc = factor(beta, cd->type);
    cudnnTensorStruct at = *ad, ct = *cd, packed = *cd;
    for (int i = packed.rank - 1, step = 1; i >= 0; step *= packed.extent[i--]) packed.stride[i] = step;
    packed = spread(packed, *ad);
    cudnnReduceTensorOp_t what = r->op;
    return op.queue([=] {
        std::vector<double> v = gather(at, aw), out((size_t)elements(ct), first(what));
        std::vector<size_t> to = offsets(packed);
        for (size_t i = 0; i < v.size(); i++) out[to[i]] = gathered(what, out[to[i]], v[i]);
        for (double &d : out) {
            if (what == CUDNN_REDUCE_TENSOR_AVG) d *= (double)out.size() / (double)v.size();
            if (what == CUDNN_REDUCE_TENSOR_NORM2) d = std::sqrt(d);
        }
        blend(ct, cw, out, fa, fc);
    });
}
