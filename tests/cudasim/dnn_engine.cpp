/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_engine.cpp -- the engines of the simulated cuDNN for graphs, as its version 9.19 was found to offer
 * them for described devices (tests/cuda/support.test holds the one against the other):
 *
 *     1  tensor cores, workspace; a bias of the operands' type, relu without slope and with a bias only
 *     2  sums by atomics; f32, otherwise as 1: stands first, to be refused by who wants one order
 *     3  no tensor cores, workspace; f32, otherwise as 1
 *     7  compiled as it is needed: tensor cores, channels last, any bias and slope; forward, or data
 *        backward without strides
 *
 * Backward 1 to 3 know no bias and no relu.
 *
 * Tensor cores take f16; bf16 and f32, which they round to TF32, from sm_80 on.
 */
#include "dnn_graph.hpp"

namespace sim {

/* Whether all three are of that layout; filters are packed */
static bool of_layout(const Fused &f, bool last)
{
    return lies(f.w.t, last, true, true) && lies(f.x.t, last, true, false) && lies(f.y.t, last, true, false);
}

/* Compiled kernels know no filters' gradients, and strides only forward */
static bool compiles(const Fused &f)
{
    bool strided = false;
    for (int i = 0; i < f.c.rank; i++) strided = strided || f.c.stride[i] > 1;
    return f.pass == forward || (f.pass == backward_data && !strided);
}

static bool in_advance(const Fused &f)
{
    if (!of_layout(f, true) && !of_layout(f, false)) return false;
    if (f.pass != forward && (f.bias || f.relu)) return false;
    return f.slope == 0 && (f.bias || !f.relu) && (!f.bias || f.b.t.type == f.x.t.type);
}

std::vector<Engine> engines_for(const Fused &f, cudnnBackendHeurMode_t mode)
{
    const cudnnDataType_t type = f.x.t.type;
    const bool f32 = type == CUDNN_DATA_FLOAT, f16 = type == CUDNN_DATA_HALF,
               bf16 = type == CUDNN_DATA_BFLOAT16;
    const bool cores = f16 || ((f32 || bf16) && settings().sm >= 80),
               fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
    const size_t room = 512 + (size_t)(elements(f.w.t) + f.y.t.extent[1]) * size_of(kind_of(type));
    std::vector<Engine> list;
    if (in_advance(f) && f32 && !fallback)
        list.push_back({2, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, CUDNN_FMA_MATH, false});
    if (in_advance(f) && cores && !fallback)
        list.push_back({1, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, room, CUDNN_DEFAULT_MATH, true});
    if (compiles(f) && of_layout(f, true) && cores &&
        (!f.bias || f.b.t.type == CUDNN_DATA_FLOAT || f.b.t.type == type))
        list.push_back({7, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 0, CUDNN_DEFAULT_MATH, true});
    if (in_advance(f) && f32) list.push_back({3, {}, room + 256, CUDNN_FMA_MATH, true});
    return list;
}

static void note_numbers(FILE *out, int n, const int *v)
{
    for (int i = 0; i < n; i++) fprintf(out, " %d", v[i]);
}

/* As tests/cuda/support.c reads it */
void note_fused(const Fused &f)
{
    FILE *out = problems();
    if (!out || f.c.rank != 3) return;
    fprintf(out, "3 %s %d", type_name(f.x.t.type), (int)f.pass);
    for (const GraphTensor *t : {&f.x, &f.y, &f.w}) {
        note_numbers(out, 5, t->t.extent);
        note_numbers(out, 5, t->t.stride);
        fprintf(out, " %d", (int)t->align);
    }
    note_numbers(out, 3, f.c.pad);
    note_numbers(out, 3, f.high);
    note_numbers(out, 3, f.c.stride);
    note_numbers(out, 3, f.c.dilation);
    fprintf(out, " %d %d %g %d\n", f.bias, f.relu, f.slope, f.bias ? (int)f.b.align : 0);
    fflush(out);
}

/* The address of a tensor in a pack, or null */
static void *address(const Node &pack, const GraphTensor &t)
{
    const Attribute *ids = pack.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    for (int64_t i = 0; i < ids->count; i++)
        if (pack.value<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, (int)i) == t.id)
            return pack.value<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, (int)i);
    return nullptr;
}

static void finish(const Fused &f, const std::vector<double> &bias, std::vector<double> &v)
{
    const int *extent = f.result().t.extent;
    size_t K = (size_t)extent[1], plane = v.size() / K / (size_t)extent[0];
    for (size_t i = 0; i < v.size(); i++) {
        if (f.bias) v[i] += bias[i / plane % K];
        if (f.relu && v[i] < 0) v[i] *= f.slope;
    }
}

cudnnStatus_t execute(cudnnHandle_t handle, const Node &plan, const Node &pack)
{
    std::shared_ptr<const Fused> f = plan.fused;
    const Engine engine = plan.engines[0];
    const GraphTensor *all[] = {&f->x, &f->w, &f->y, &f->b};
    const int64_t wanted = f->bias ? 4 : 3;
    void *at[4];
    DNN_PARAM(handle == plan.handle);
    DNN_PARAM(pack.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count == wanted);
    for (int i = 0; i < wanted; i++)
        DNN_PARAM((at[i] = address(pack, *all[i]))); /* an address for every tensor */
    DnnOp op(handle, "cudnnBackendExecute");
    void *xw = op.operand(f->x.t, at[0], f->pass == backward_data, (size_t)f->x.align);
    void *ww = op.operand(f->w.t, at[1], f->pass == backward_filter, (size_t)f->w.align);
    void *bw = f->bias ? op.operand(f->b.t, at[3], false, (size_t)f->b.align) : nullptr;
    void *yw = op.operand(f->y.t, at[2], f->pass == forward, (size_t)f->y.align);
    op.scratch(pack.value<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), engine.workspace);
    return op.queue([=] {
        cudnnTensorStruct x = f->x.t, y = f->y.t;
        cudnnConvolutionStruct c = f->c;
        cudnnFilterStruct w;
        w.type = f->w.t.type;
        w.rank = f->w.t.rank;
        for (int i = 0; i < w.rank; i++) w.extent[i] = f->w.t.extent[i], w.stride[i] = f->w.t.stride[i];
        c.math = engine.math;
        std::vector<double> v = convolve({f->pass, &x, &y, &w, &c}, xw, ww, yw);
        if (!engine.exact) disturb(v);
        finish(*f, f->bias ? gather(f->b.t, bw) : std::vector<double>(), v);
        blend(f->result().t, f->pass == forward ? yw : f->pass == backward_data ? xw : ww, v, 1, 0);
    });
}

} // namespace sim
