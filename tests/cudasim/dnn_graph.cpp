/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_graph.cpp -- what the simulated cuDNN makes of a descriptor of the graph API when that is finalised. Of
 * graphs it knows a pass of a convolution, then perhaps the sum with a bias, then perhaps relu, each reading
 * what the one before wrote without memory in between.
 */
#include "dnn_graph.hpp"

namespace sim {

GraphTensor tensor_of(const Node &n)
{
    GraphTensor g;
    g.t.type = n.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    g.t.rank = (int)n.find(CUDNN_ATTR_TENSOR_DIMENSIONS)->count;
    for (int i = 0; i < g.t.rank; i++) {
        g.t.extent[i] = (int)n.value<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        g.t.stride[i] = (int)n.value<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i);
    }
    g.id = n.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    g.align = n.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    g.is_virtual = n.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return g;
}

static bool same_extents(const GraphTensor &a, const GraphTensor &b)
{
    if (a.t.rank != b.t.rank) return false;
    for (int i = 0; i < a.t.rank; i++)
        if (a.t.extent[i] != b.t.extent[i]) return false;
    return true;
}

static cudnnStatus_t tensor_holds(const Node &n)
{
    int64_t rank = n.find(CUDNN_ATTR_TENSOR_DIMENSIONS)->count, all = 1;
    int64_t align = n.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    Kind kind = kind_of(n.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE));
    DNN_SUPPORT(kind != Kind::none);
    DNN_PARAM(n.find(CUDNN_ATTR_TENSOR_STRIDES)->count == rank);
    DNN_PARAM(align > 0 && (align & (align - 1)) == 0 && align >= (int64_t)size_of(kind));
    for (int i = 0; i < rank; i++) {
        int64_t extent = n.value<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        DNN_PARAM(extent > 0 && n.value<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i) > 0);
        all *= extent;
        DNN_SUPPORT(all <= settings().elements &&
                    n.value<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i) <= INT32_MAX);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t window_holds(const Node &n)
{
    static const int lists[] = {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                                CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES};
    int64_t rank = n.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    DNN_SUPPORT(rank >= 1 && rank <= 3);
    DNN_SUPPORT(n.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT);
    for (int list : lists) {
        DNN_PARAM(n.find(list)->count == rank);
        for (int i = 0; i < rank; i++) {
            int64_t least =
                list == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS || list == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS
                    ? 0
                    : 1;
            DNN_PARAM(n.value<int64_t>(list, i) >= least);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pointwise_holds(const Node &n)
{
    cudnnPointwiseMode_t mode = n.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    DNN_SUPPORT(mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_RELU_FWD);
    DNN_SUPPORT(n.value<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC) == CUDNN_DATA_FLOAT);
    /* others would make numbers of what is none */
    DNN_SUPPORT(mode == CUDNN_POINTWISE_ADD ||
                n.value<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN);
    return CUDNN_STATUS_SUCCESS;
}

static bool is(NodeRef n, cudnnBackendDescriptorType_t kind)
{
    return n && n->kind == kind;
}

/* The attributes of the three passes */
struct Names {
    cudnnBackendDescriptorType_t kind;
    int alpha, beta, window, x, w, y;
};
static const Names names[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

/* Its pass, or -1 */
static int pass_of(const Node &n)
{
    for (int i = 0; i < 3; i++)
        if (names[i].kind == n.kind) return i;
    return -1;
}

static cudnnStatus_t convolution_holds(const Node &n)
{
    const Names &at = names[pass_of(n)];
    NodeRef c = n.node(at.window), xd = n.node(at.x), wd = n.node(at.w), yd = n.node(at.y);
    DNN_PARAM(is(c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) && is(xd, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    DNN_PARAM(is(wd, CUDNN_BACKEND_TENSOR_DESCRIPTOR) && is(yd, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    GraphTensor x = tensor_of(*xd), w = tensor_of(*wd), y = tensor_of(*yd);
    int rank = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    DNN_PARAM(x.t.rank == rank + 2 && w.t.rank == x.t.rank && y.t.rank == x.t.rank);
    DNN_PARAM(w.t.extent[1] == x.t.extent[1]);
    DNN_PARAM(y.t.extent[0] == x.t.extent[0] && y.t.extent[1] == w.t.extent[0]);
    for (int i = 0; i < rank; i++) {
        int64_t room = x.t.extent[i + 2] + c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) +
                       c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) -
                       (w.t.extent[i + 2] - 1) * c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, i) - 1;
        DNN_PARAM(room >= 0 && y.t.extent[i + 2] ==
                                   room / c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) + 1);
    }
    /* scaling is refused on purpose */
    DNN_SUPPORT(n.value<float>(at.alpha) == 1);
    DNN_SUPPORT(n.value<float>(at.beta) == 0);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t step_holds(const Node &n)
{
    NodeRef p = n.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
            x = n.node(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
            b = n.node(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
            y = n.node(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    DNN_PARAM(is(p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR) && is(x, CUDNN_BACKEND_TENSOR_DESCRIPTOR) &&
              is(y, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    bool sum = p->value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD;
    DNN_PARAM(sum == is(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    GraphTensor from = tensor_of(*x), to = tensor_of(*y);
    DNN_PARAM(same_extents(from, to));
    if (!sum) return CUDNN_STATUS_SUCCESS;
    GraphTensor bias = tensor_of(*b);
    DNN_PARAM(bias.t.rank == to.t.rank);
    for (int i = 0; i < to.t.rank; i++)
        DNN_PARAM(bias.t.extent[i] == 1 || bias.t.extent[i] == to.t.extent[i]);
    for (int i = 0; i < to.t.rank; i++)
        DNN_SUPPORT(bias.t.extent[i] == (i == 1 ? to.t.extent[i] : 1)); /* one for each channel */
    return CUDNN_STATUS_SUCCESS;
}

static void take_convolution(const Node &n, Fused &f)
{
    const Names &at = names[pass_of(n)];
    NodeRef c = n.node(at.window);
    f.pass = (Pass)pass_of(n);
    f.x = tensor_of(*n.node(at.x));
    f.w = tensor_of(*n.node(at.w));
    f.y = tensor_of(*n.node(at.y));
    f.c.rank = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    f.c.mode = c->value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE);
    for (int i = 0; i < f.c.rank; i++) {
        f.c.pad[i] = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        f.high[i] = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        f.c.stride[i] = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        f.c.dilation[i] = (int)c->value<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
}

static cudnnStatus_t take_step(const Node &n, Fused &f)
{
    GraphTensor &y = f.result();
    NodeRef p = n.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    GraphTensor from = tensor_of(*n.node(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    DNN_PARAM(from.id == y.id && same_extents(from, y));
    DNN_PARAM(y.is_virtual);                   /* what is written on the way has no memory, */
    DNN_SUPPORT(y.t.type == CUDNN_DATA_FLOAT); /* and is not rounded */
    y = tensor_of(*n.node(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    if (p->value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD) {
        DNN_SUPPORT(!f.bias && !f.relu);
        f.bias = true;
        f.b = tensor_of(*n.node(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    } else {
        DNN_SUPPORT(!f.relu);
        f.relu = true;
        f.slope = p->value<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_graph(Node &n)
{
    const Attribute *ops = n.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    Fused f;
    DNN_SUPPORT(pass_of(*ops->nodes[0]) >= 0);
    take_convolution(*ops->nodes[0], f);
    for (size_t i = 1; i < ops->nodes.size(); i++) {
        DNN_SUPPORT(is(ops->nodes[i], CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
        DNN_TRY(take_step(*ops->nodes[i], f));
    }
    DNN_PARAM(!f.x.is_virtual && !f.w.is_virtual && !f.y.is_virtual && !f.b.is_virtual);
    DNN_PARAM(f.x.id != f.w.id && f.x.id != f.y.id && f.w.id != f.y.id);
    DNN_PARAM(!f.bias || (f.b.id != f.x.id && f.b.id != f.w.id && f.b.id != f.y.id));
    DNN_SUPPORT(f.x.t.type == f.w.t.type && f.x.t.type == f.y.t.type);
    n.handle = n.value<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    n.fused = std::make_shared<Fused>(f);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_heuristics(Node &n)
{
    NodeRef g = n.node(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    DNN_PARAM(is(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    DNN_PARAM(g->handle); /* which device is meant */
    n.handle = g->handle;
    n.fused = g->fused;
    n.engines = engines_for(*g->fused, n.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
    if (!n.engines.empty()) note_fused(*n.fused);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_plan(Node &n)
{
    NodeRef c = n.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    DNN_PARAM(is(c, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    n.handle = n.value<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    DNN_PARAM(n.handle == c->handle);
    n.fused = c->fused;
    n.engines = c->engines;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pack_holds(const Node &n)
{
    DNN_PARAM(n.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count ==
              n.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalise(Node &n)
{
    switch (n.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return tensor_holds(n);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return window_holds(n);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        return pointwise_holds(n);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolution_holds(n);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return step_holds(n);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return take_graph(n);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return take_heuristics(n);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return take_plan(n);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return pack_holds(n);
    default: /* configurations and engines are the heuristics' */
        return dnn_refused(CUDNN_STATUS_NOT_SUPPORTED, "a descriptor that one finalises oneself");
    }
}

} // namespace sim
