/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_graph.c -- a convolution or a backward pass of it, bias and relu as a graph of operations, an engine for it, and its execution. Between the operations are tensors without
 * memory, in f32. Descriptors refer to those that they are made of, so all live as long as the graph.
 */
#include "conv_graph.h"

#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        cudnnStatus_t try_ = (call);                                                                         \
        if (try_ != CUDNN_STATUS_SUCCESS) return try_;                                                       \
    } while (0)

/* Slopes of relu and the modes of the heuristics came with 8.3. */
#if CUDNN_VERSION >= 8300

enum { DESCRIPTORS = 24, CONFIGS = 32, NOTES = 16 };
enum { UID_X = 1, UID_W, UID_B, UID_Y, UID_VIRTUAL };

struct hl_conv_graph {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device, made[DESCRIPTORS], plan; /* made: in the order they were */
    int n;
    int64_t workspace;
    bool bias;
};

typedef struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    const void *value;
} attribute;

#define COUNT(list) (int)(sizeof(list) / sizeof((list)[0]))

static cudnnStatus_t finalised(cudnnBackendDescriptorType_t kind, const attribute *a, int n, cudnnBackendDescriptor_t *out)
{
    cudnnStatus_t st = cudnnBackendCreateDescriptor(kind, out);
    if (st != CUDNN_STATUS_SUCCESS) return st;
    for (int i = 0; i < n && st == CUDNN_STATUS_SUCCESS; i++)
        if (a[i].n > 0) st = cudnnBackendSetAttribute(*out, a[i].name, a[i].type, a[i].n, a[i].value);
    if (st == CUDNN_STATUS_SUCCESS) st = cudnnBackendFinalize(*out);
    if (st != CUDNN_STATUS_SUCCESS) cudnnBackendDestroyDescriptor(*out), *out = NULL;
    return st;
}

/* One that lives as long as the graph. */
static cudnnStatus_t make(hl_conv_graph *g, cudnnBackendDescriptorType_t kind, const attribute *a, int n, cudnnBackendDescriptor_t *out)
{
    if (g->n == DESCRIPTORS) return CUDNN_STATUS_INTERNAL_ERROR;
    TRY(finalised(kind, a, n, out));
    g->made[g->n++] = *out;
    return CUDNN_STATUS_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- the graph */

static cudnnStatus_t tensor(hl_conv_graph *g, int64_t id, cudnnDataType_t type, const hl_graph_tensor *t, bool virtual, cudnnBackendDescriptor_t *out)
{
    const attribute a[] = {
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, HL_GRAPH_DIMS, t->ext},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, HL_GRAPH_DIMS, t->stride},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &t->align},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, virtual, &virtual},
    };
    return make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, a, COUNT(a), out);
}

static cudnnStatus_t window(hl_conv_graph *g, const hl_graph_conv *c, cudnnBackendDescriptor_t *out)
{
    const int64_t dims = 3;
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const attribute a[] = {
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims},
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 3, c->pad_lo},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 3, c->pad_hi},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 3, c->stride},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 3, c->dilation},
    };
    return make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, a, COUNT(a), out);
}

/* What the pass writes goes to `to`. */
static cudnnStatus_t convolution(hl_conv_graph *g, const hl_graph_conv *c, cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *out)
{
    static const cudnnBackendDescriptorType_t kinds[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                                         CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const int first[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA};
    const int name = first[c->pass]; /* alpha, beta, convolution, w, x, y follow each other in all three */
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t x = to, w = to, y = to, conv;
    if (c->pass != HL_GRAPH_DATA) TRY(tensor(g, UID_X, (cudnnDataType_t)c->type, &c->x, false, &x));
    if (c->pass != HL_GRAPH_WEIGHTS) TRY(tensor(g, UID_W, (cudnnDataType_t)c->type, &c->w, false, &w));
    if (c->pass != HL_GRAPH_FORWARD) TRY(tensor(g, UID_Y, (cudnnDataType_t)c->type, &c->y, false, &y));
    TRY(window(g, c, &conv));
    const attribute a[] = {
        {(cudnnBackendAttributeName_t)name, CUDNN_TYPE_FLOAT, 1, &one},
        {(cudnnBackendAttributeName_t)(name + 1), CUDNN_TYPE_FLOAT, 1, &zero},
        {(cudnnBackendAttributeName_t)(name + 2), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv},
        {(cudnnBackendAttributeName_t)(name + 3), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
        {(cudnnBackendAttributeName_t)(name + 4), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {(cudnnBackendAttributeName_t)(name + 5), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
    };
    return make(g, kinds[c->pass], a, COUNT(a), out);
}

/* to = from + b, or to = relu(from) where b is NULL. What is not a number stays so. */
static cudnnStatus_t pointwise(hl_conv_graph *g, cudnnBackendDescriptor_t from, cudnnBackendDescriptor_t b, double slope, cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *out)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnPointwiseMode_t mode = b ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    cudnnBackendDescriptor_t how;
    const attribute p[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &sums},
        {CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, !b, &nan},
        {CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, !b && slope != 0, &slope},
    };
    TRY(make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, p, COUNT(p), &how));
    const attribute a[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &from},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b != NULL, &b},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to},
    };
    return make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, a, COUNT(a), out);
}

static const hl_graph_tensor *written(const hl_graph_conv *c) { return c->pass == HL_GRAPH_DATA ? &c->x : c->pass == HL_GRAPH_WEIGHTS ? &c->w : &c->y; }

/* In the order of what is written, but packed. */
static hl_graph_tensor between(const hl_graph_tensor *to)
{
    hl_graph_tensor t = *to;
    const bool last = to->stride[1] == 1;
    int64_t step = last ? t.ext[1] : 1;
    for (int k = HL_GRAPH_DIMS - 1; k >= 0; k--) {
        if (k == 1 && last) continue;
        t.stride[k] = step;
        step *= t.ext[k];
    }
    t.align = 16;
    return t;
}

static cudnnStatus_t biases(hl_conv_graph *g, const hl_graph_conv *c, cudnnBackendDescriptor_t *out)
{
    const int64_t n = written(c)->ext[1];
    const hl_graph_tensor b = {.ext = {1, n, 1, 1, 1}, .stride = {n, 1, n, n, n}, .align = c->bias_align};
    return tensor(g, UID_B, CUDNN_DATA_FLOAT, &b, false, out);
}

static cudnnStatus_t operations(hl_conv_graph *g, const hl_graph_conv *c, cudnnBackendDescriptor_t *graph)
{
    static const int64_t id[] = {UID_Y, UID_X, UID_W};
    const int last = c->bias + c->relu;
    const hl_graph_tensor z = between(written(c));
    cudnnBackendDescriptor_t step[3], op[3], b = NULL; /* step: what each operation writes */
    for (int i = 0; i < last; i++) TRY(tensor(g, UID_VIRTUAL + i, CUDNN_DATA_FLOAT, &z, true, &step[i]));
    TRY(tensor(g, id[c->pass], (cudnnDataType_t)c->type, written(c), false, &step[last]));
    TRY(convolution(g, c, step[0], &op[0]));
    if (c->bias) TRY(biases(g, c, &b));
    if (c->bias) TRY(pointwise(g, step[0], b, 0, step[1], &op[1]));
    if (c->relu) TRY(pointwise(g, step[last - 1], NULL, c->slope, step[last], &op[last]));
    const attribute a[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, g->handle != NULL, &g->handle},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, last + 1, op},
    };
    return make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, a, COUNT(a), graph);
}

/* --------------------------------------------------------------------------------------------------------- the engine */

static bool refused(const hl_graph_conv *c, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine;
    cudnnBackendNumericalNote_t note[NOTES];
    int64_t n = 0, one;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return true;
    bool no = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) != CUDNN_STATUS_SUCCESS ||
              cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &n, note) != CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; i < n && !no; i++) no = c->refuse >> note[i] & 1;
    cudnnBackendDestroyDescriptor(engine);
    return no;
}

static cudnnStatus_t plan(const hl_conv_graph *g, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *out)
{
    const attribute a[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, g->handle != NULL, &g->handle},
#if CUDNN_VERSION >= 90000
        {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->device != NULL, &g->device},
#endif
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
    };
    return finalised(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, a, COUNT(a), out);
}

/* The first that will do becomes the graph's plan: its number, or -1. */
static int64_t take_first(hl_conv_graph *g, const hl_graph_conv *c, const cudnnBackendDescriptor_t *config, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t one;
        if (refused(c, config[i]) || plan(g, config[i], &g->plan) != CUDNN_STATUS_SUCCESS) continue;
        if (cudnnBackendGetAttribute(g->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one, &g->workspace) == CUDNN_STATUS_SUCCESS && g->workspace <= c->workspace) return i;
        cudnnBackendDestroyDescriptor(g->plan);
        g->plan = NULL;
    }
    return -1;
}

static cudnnStatus_t ask(hl_conv_graph *g, const hl_graph_conv *c, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
    cudnnBackendDescriptor_t heuristics, config[CONFIGS] = {NULL};
    int64_t n = 0, taken = -1, made = 0;
    const attribute a[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
#if CUDNN_VERSION >= 90000
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->device != NULL, &g->device},
#endif
    };
    TRY(make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, a, COUNT(a), &heuristics));
    while (made < CONFIGS && cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[made]) == CUDNN_STATUS_SUCCESS) made++;
    cudnnStatus_t st = cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, config);
    if (n > made) n = made;
    if (st == CUDNN_STATUS_SUCCESS) taken = take_first(g, c, config, n);
    for (int64_t i = 0; i < made; i++)
        if (i == taken)
            g->made[g->n++] = config[i];
        else
            cudnnBackendDestroyDescriptor(config[i]);
    return st;
}

cudnnStatus_t hl_conv_graph_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device, const hl_graph_conv *c, hl_conv_graph **out)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t graph;
    hl_conv_graph *g = calloc(1, sizeof(*g));
    if (!g) return CUDNN_STATUS_ALLOC_FAILED;
    *g = (hl_conv_graph){.handle = device ? NULL : handle, .device = device, .bias = c->bias};
    cudnnStatus_t st = operations(g, c, &graph);
    for (int i = 0; i < COUNT(modes) && st == CUDNN_STATUS_SUCCESS && !g->plan; i++) (void)ask(g, c, graph, modes[i]);
    if (st == CUDNN_STATUS_SUCCESS && !g->plan) st = CUDNN_STATUS_NOT_SUPPORTED;
    if (st != CUDNN_STATUS_SUCCESS)
        hl_conv_graph_free(g);
    else
        *out = g;
    return st;
}

void hl_conv_graph_free(hl_conv_graph *g)
{
    if (!g) return;
    if (g->plan) cudnnBackendDestroyDescriptor(g->plan);
    while (g->n > 0) cudnnBackendDestroyDescriptor(g->made[--g->n]);
    free(g);
}

int64_t hl_conv_graph_workspace(const hl_conv_graph *g) { return g->workspace; }

/* ---------------------------------------------------------------------------------------------------------- execution */

void hl_graph_pack_free(hl_graph_pack *pack)
{
    if (pack->descriptor) cudnnBackendDestroyDescriptor(pack->descriptor);
    pack->descriptor = NULL;
}

/* address: x w y workspace b */
static cudnnStatus_t fill(const hl_conv_graph *g, hl_graph_pack *pack, void *const address[5])
{
    static const int64_t id[] = {UID_X, UID_W, UID_Y, UID_B};
    void *pointer[] = {address[0], address[1], address[2], address[4]};
    const int n = g->bias ? 4 : 3;
    const attribute a[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointer},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &address[3]},
    };
    hl_graph_pack_free(pack);
    TRY(finalised(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, a, COUNT(a), &pack->descriptor));
    memcpy(pack->address, address, sizeof(pack->address));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hl_conv_graph_run(cudnnHandle_t handle, const hl_conv_graph *g, hl_graph_pack *pack, void *x, void *w, void *b, void *y, void *workspace)
{
    void *const address[5] = {x, w, y, workspace, b};
    if (!pack->descriptor || memcmp(address, pack->address, sizeof(address)) != 0) TRY(fill(g, pack, address));
    return cudnnBackendExecute(handle, g->plan, pack->descriptor);
}

#else

cudnnStatus_t hl_conv_graph_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device, const hl_graph_conv *c, hl_conv_graph **out)
{
    (void)handle, (void)device, (void)c, (void)out;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

void hl_conv_graph_free(hl_conv_graph *g) { (void)g; }
int64_t hl_conv_graph_workspace(const hl_conv_graph *g) { return (void)g, 0; }
void hl_graph_pack_free(hl_graph_pack *pack) { (void)pack; }

cudnnStatus_t hl_conv_graph_run(cudnnHandle_t handle, const hl_conv_graph *g, hl_graph_pack *pack, void *x, void *w, void *b, void *y, void *workspace)
{
    (void)handle, (void)g, (void)pack, (void)x, (void)w, (void)b, (void)y, (void)workspace;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

#endif
