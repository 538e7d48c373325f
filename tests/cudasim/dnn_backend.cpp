/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_backend.cpp -- the calls of cuDNN's graph API: creation, attributes, finalisation, execution. A table
 * says which attributes a kind of descriptor has, of which type, how many of each, and which it must have:
 * more strictly than the real library on purpose, as attributes that nobody here simulates are refused.
 */
#include "dnn_graph.hpp"
#include <cstring>
#include <set>

namespace sim {

struct Rule {
    int kind, name, type;
    int64_t least, most; /* of values; least 0: it may be absent */
};

#define CONVOLUTION_TENSORS(kind, x, w, y)                                                                   \
    {kind, x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}, {kind, w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},          \
    {                                                                                                        \
        kind, y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1                                                         \
    }
#define CONVOLUTION(kind, name)                                                                              \
    {kind, name##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1}, {kind, name##_BETA, CUDNN_TYPE_FLOAT, 1, 1},               \
    {                                                                                                        \
        kind, name##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1                                          \
    }

static const Rule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, 5},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 3, 5},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 0, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
     1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 1, 3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 1, 3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 1, 3},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 1, 3},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 0,
     1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 0, 1},
    CONVOLUTION(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD),
    CONVOLUTION_TENSORS(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
    CONVOLUTION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA),
    CONVOLUTION_TENSORS(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
    CONVOLUTION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER),
    CONVOLUTION_TENSORS(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 0, 1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
     3},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 16},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1,
     16},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1},
};

static size_t size_of_type(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default: /* enumerations, and float */
        return 4;
    }
}

static std::set<Node *> &nodes()
{
    static auto *set = new std::set<Node *>;
    return *set;
}

size_t graph_descriptors()
{
    return nodes().size();
}

static Node *live(cudnnBackendDescriptor_t d)
{
    return nodes().count((Node *)d) ? (Node *)d : nullptr;
}

static bool knows(int kind)
{
    if (kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR) return true;
    for (const Rule &r : rules)
        if (r.kind == kind) return true;
    return false;
}

static const Rule *rule_of(int kind, int name)
{
    for (const Rule &r : rules)
        if (r.kind == kind && r.name == name) return &r;
    return nullptr;
}

static cudnnStatus_t set_attribute(Node &n, int name, cudnnBackendAttributeType_t type, int64_t count,
                                   const void *values)
{
    const Rule *r = rule_of(n.kind, name);
    Attribute a{type, count, {}, {}};
    DNN_NEED(!n.final, CUDNN_STATUS_NOT_INITIALIZED); /* as the real one says it */
    DNN_PARAM(r && (int)type == r->type);
    DNN_PARAM(count >= 1 && count <= r->most && values);
    a.bytes.assign((const char *)values, (const char *)values + (size_t)count * size_of_type(type));
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
        Node *of = live(((const cudnnBackendDescriptor_t *)values)[i]);
        DNN_PARAM(of && of->final);
        a.nodes.push_back(std::make_shared<Node>(*of));
    }
    n.set[name] = std::move(a);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t has_all(const Node &n)
{
    for (const Rule &r : rules)
        if (r.kind == n.kind && r.least > 0) {
            const Attribute *a = n.find(r.name);
            DNN_PARAM(a && a->count >= r.least);
        }
    return CUDNN_STATUS_SUCCESS;
}

/* What heuristics and plans answer: descriptors are filled that the caller made and did not finalise */
static cudnnStatus_t get_nodes(const Node &n, cudnnBackendDescriptorType_t kind, int64_t room, int64_t *count,
                               void *values)
{
    cudnnBackendDescriptor_t *out = (cudnnBackendDescriptor_t *)values;
    int64_t found = (int64_t)n.engines.size();
    if (count) *count = room > 0 && room < found ? room : found;
    for (int64_t i = 0; i < room && i < found; i++) {
        Node *to = live(out[i]);
        DNN_PARAM(to && to->kind == kind && !to->final);
        to->final = true;
        to->engines = {n.engines[(size_t)i]};
        to->fused = n.fused;
        to->handle = n.handle;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_numbers(int64_t found, const void *from, size_t size, int64_t room, int64_t *count,
                                 void *values)
{
    if (count) *count = found;
    DNN_PARAM(room == 0 || values);
    if (room < found) found = room;
    if (found > 0) memcpy(values, from, (size_t)found * size); /* of nothing there is no address */
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_attribute(const Node &n, int name, int type, int64_t room, int64_t *count,
                                   void *values)
{
    DNN_NEED(n.final, CUDNN_STATUS_NOT_INITIALIZED);
    DNN_PARAM(room >= 0);
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        DNN_PARAM(n.kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && type == CUDNN_TYPE_BACKEND_DESCRIPTOR);
        return get_nodes(n, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, room, count, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        DNN_PARAM(n.kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && type == CUDNN_TYPE_BACKEND_DESCRIPTOR);
        return get_nodes(n, CUDNN_BACKEND_ENGINE_DESCRIPTOR, room, count, values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
        DNN_PARAM(n.kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR && type == CUDNN_TYPE_NUMERICAL_NOTE);
        const auto &notes = n.engines[0].notes;
        return get_numbers((int64_t)notes.size(), notes.data(), sizeof(notes[0]), room, count, values);
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
        DNN_PARAM(n.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && type == CUDNN_TYPE_INT64 && room == 1);
        int64_t bytes = (int64_t)n.engines[0].workspace;
        return get_numbers(1, &bytes, sizeof(bytes), room, count, values);
    }
    default:
        return dnn_refused(CUDNN_STATUS_NOT_SUPPORTED, "an attribute that can be got");
    }
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d)
{
    Lock lock;
    DNN_PARAM(d);
    DNN_SUPPORT(knows(kind));
    Node *n = new Node;
    n->kind = kind;
    nodes().insert(n);
    *d = n;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    Lock lock;
    Node *n = live(d);
    DNN_PARAM(n);
    nodes().erase(n);
    delete n;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    Lock lock;
    Node *n = live(d);
    DNN_PARAM(n);
    return set_attribute(*n, name, type, count, values);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                       void *values)
{
    Lock lock;
    Node *n = live(d);
    DNN_PARAM(n);
    return get_attribute(*n, name, type, room, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    Lock lock;
    Node *n = live(d);
    DNN_PARAM(n && !n->final);
    DNN_TRY(has_all(*n));
    DNN_TRY(finalise(*n));
    n->final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    Lock lock;
    Node *p = live(plan), *v = live(pack);
    DNN_PARAM(p && p->final && p->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    DNN_PARAM(v && v->final && v->kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    return execute(handle, *p, *v);
}
