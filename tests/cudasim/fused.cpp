/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.cpp -- the simulated cuDNN's graphs of a convolution, a bias and relu: against plain loops, in both
 * layouts, every type, with other padding on either side, with boxed operands; which engines are offered; and
 * what a program may do wrong with them, planted and caught.
 */
#include "graph_case.hpp"
#include "tensor.hpp"
#include <cstdint>

/* A case with its operands on the device */
struct Layer {
    GraphCase g;
    cudnnHandle_t h;
    Tensor x, w, b, y;
};

static std::vector<int> ints(const std::vector<int64_t> &v)
{
    return std::vector<int>(v.begin(), v.end());
}

static std::vector<int64_t> wide(const std::vector<int> &v)
{
    return std::vector<int64_t>(v.begin(), v.end());
}

static Layer layer_of(GraphCase g, int margin)
{
    Layer l;
    GOOD(cudnnCreate(&l.h));
    l.x = make(g.type, ints(g.x), g.last, margin, 1);
    l.w = make(g.type, ints(g.w), g.last, 0, 2);
    l.b = make(g.bias_type, ints(g.b), g.last, 0, 3);
    l.y = make(g.type, ints(g.y), g.last, margin, 4);
    g.x_stride = wide(l.x.stride);
    g.y_stride = wide(l.y.stride);
    g.align = (int64_t)sim::size_of(l.x.kind);
    g.handle = l.h;
    if (g.bias) g.align = 4;
    if (g.bias_type == CUDNN_DATA_HALF) g.align = 2;
    l.g = g;
    return l;
}

static const Tensor &written(const Layer &l)
{
    return l.g.pass == 0 ? l.y : l.g.pass == 1 ? l.x : l.w;
}

/* A product, where it belongs: in y, x or w */
static void add(const Layer &l, size_t x, size_t w, size_t y, std::vector<double> &sum)
{
    if (l.g.pass == 0) sum[y] += l.x.v[x] * l.w.v[w];
    if (l.g.pass == 1) sum[x] += l.y.v[y] * l.w.v[w];
    if (l.g.pass == 2) sum[w] += l.x.v[x] * l.y.v[y];
}

static std::vector<double> expected(const Layer &l)
{
    const GraphCase &g = l.g;
    std::vector<double> want(written(l).v.size(), 0);
    for (size_t i = 0; i < l.y.v.size(); i++) {
        int64_t at[5], rest = (int64_t)i;
        for (size_t k = 5; k-- > 0;) at[k] = rest % g.y[k], rest /= g.y[k];
        for (int64_t c = 0; c < g.x[1]; c++)
            for (int64_t t = 0; t < g.w[2] * g.w[3] * g.w[4]; t++) {
                const int64_t tap[3] = {t / (g.w[3] * g.w[4]), t / g.w[4] % g.w[3], t % g.w[4]};
                int64_t from = at[0] * g.x[1] + c;
                bool inside = true;
                for (size_t k = 0; k < 3; k++) {
                    int64_t p = at[k + 2] * g.stride[k] - g.low[k] + tap[k] * g.dilation[k];
                    inside = inside && p >= 0 && p < g.x[k + 2];
                    from = from * g.x[k + 2] + p;
                }
                if (inside)
                    add(l, (size_t)from, (size_t)((at[1] * g.x[1] + c) * g.w[2] * g.w[3] * g.w[4] + t), i,
                        want);
            }
    }
    const std::vector<int> &extent = written(l).extent;
    const size_t plane = (size_t)extent[2] * (size_t)extent[3] * (size_t)extent[4];
    for (size_t i = 0; i < want.size(); i++) {
        if (g.bias) want[i] += l.b.v[i / plane % (size_t)extent[1]];
        if (g.relu && want[i] < 0) want[i] *= g.slope;
    }
    return want;
}

/* The configurations that are offered */
static std::vector<cudnnBackendDescriptor_t> configs(GraphCase &g, cudnnBackendHeurMode_t mode)
{
    cudnnBackendDescriptor_t graph, heuristics;
    int64_t n = 0;
    GOOD(g.graph(&graph));
    GOOD(g.create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics));
    GOOD(g.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
    GOOD(g.set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
    GOOD(cudnnBackendFinalize(heuristics));
    GOOD(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                  &n, nullptr));
    std::vector<cudnnBackendDescriptor_t> list((size_t)n);
    for (auto &c : list) GOOD(g.create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &c));
    GOOD(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
                                  &n, list.data()));
    return list;
}

/* The first numerical note of its engine, -1 without any */
static int note_of(GraphCase &g, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine;
    cudnnBackendNumericalNote_t notes[8];
    int64_t n = 0;
    GOOD(g.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    GOOD(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                  &engine));
    GOOD(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 8, &n,
                                  notes));
    return n ? (int)notes[0] : -1;
}

struct Planned {
    cudnnBackendDescriptor_t d;
    int64_t workspace;
};

static Planned plan_of(GraphCase &g, cudnnBackendDescriptor_t config)
{
    Planned p;
    int64_t one;
    GOOD(g.create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p.d));
    GOOD(g.set(p.d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g.handle));
    GOOD(g.set(p.d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config));
    GOOD(cudnnBackendFinalize(p.d));
    GOOD(cudnnBackendGetAttribute(p.d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                  &p.workspace));
    return p;
}

/* What is wrong with an execution */
enum Wrong { nothing, other_id, no_y, more, host_x, odd_x, short_workspace, other_handle, unfinished_pack };

static cudnnStatus_t execute(Layer &l, const Planned &p, Wrong wrong = nothing)
{
    cudnnBackendDescriptor_t pack;
    static float host[4096];
    int64_t id[] = {'x', 'w', 'y', 'b', 'z'};
    void *at[] = {l.x.p, l.w.p, l.y.p, l.b.p, l.b.p}, *scratch = nullptr;
    int64_t n = wrong == more ? 5 : l.g.bias ? 4 : 3;
    if (p.workspace) GOOD(cudaMalloc(&scratch, (size_t)p.workspace - (wrong == short_workspace)));
    if (wrong == other_id) id[1] = 'v';
    if (wrong == no_y) id[2] = 'b', id[3] = 'z';
    if (wrong == host_x) at[0] = host;
    if (wrong == odd_x) {
        GOOD(cudaMalloc(&at[0], 8192));
        at[0] = (char *)at[0] + 2;
    }
    GOOD(l.g.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch));
    if (wrong != unfinished_pack) GOOD(cudnnBackendFinalize(pack));
    cudnnHandle_t h = l.h;
    if (wrong == other_handle) GOOD(cudnnCreate(&h));
    return cudnnBackendExecute(h, p.d, pack);
}

/* By every engine that is offered */
static void numbers(GraphCase g, int margin, size_t offered, double tolerance)
{
    Layer l = layer_of(g, margin);
    std::vector<double> want = expected(l);
    auto list = configs(l.g, CUDNN_HEUR_MODE_A);
    HOLDS(list.size() == offered);
    for (auto config : list) {
        bool cores = note_of(l.g, config) == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        GOOD(execute(l, plan_of(l.g, config)));
        double d = distance(written(l).read(), want);
        HOLDS(d <= (g.type == CUDNN_DATA_FLOAT && cores ? 1e-3 : tolerance)); /* TF32 */
        HOLDS(g.type != CUDNN_DATA_FLOAT || !cores || d > 1e-6);
    }
    l.g.drop();
}

/* The engine that stands first for who wants none with a note */
static Planned careful(Layer &l)
{
    for (auto config : configs(l.g, CUDNN_HEUR_MODE_A)) {
        int note = note_of(l.g, config);
        if (note != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return plan_of(l.g, config);
    }
    HOLDS(!"an engine");
    return {};
}

static void planted(Wrong wrong, cudnnStatus_t status)
{
    Layer l = layer_of(GraphCase(), 0);
    cudnnStatus_t s = execute(l, careful(l), wrong);
    HOLDS(s == status);
    if (!s) HOLDS(distance(l.y.read(), expected(l)) <= 1e-3);
}

/* Descriptors may go once a plan has been made of them, and be changed after the call */
static void only_the_plan_lives(void)
{
    Layer l = layer_of(GraphCase(), 0);
    Planned p = careful(l);
    for (auto d : l.g.made)
        if (d != p.d) cudnnBackendDestroyDescriptor(d);
    l.g.made.clear();
    GOOD(execute(l, p));
    l.g.drop();
    HOLDS(distance(l.y.read(), expected(l)) <= 1e-3);
    GOOD(cudnnBackendDestroyDescriptor(p.d));
    GOOD(cudnnDestroy(l.h));
}

/* y is read in another stream, with an event in between or without */
static void two_streams(bool event)
{
    Layer l = layer_of(GraphCase(), 0);
    cudaStream_t s = new_stream(), s2 = new_stream();
    cudaEvent_t e = new_event();
    void *to;
    GOOD(cudaMalloc(&to, 4096 * sizeof(float)));
    GOOD(cudnnSetStream(l.h, s));
    GOOD(execute(l, careful(l)));
    GOOD(cudaEventRecord(e, s));
    if (event) GOOD(cudaStreamWaitEvent(s2, e, 0));
    GOOD(cudaMemcpyAsync(to, l.y.p, 64, cudaMemcpyDeviceToDevice, s2));
    GOOD(cudaDeviceSynchronize());
}

/* Recorded, then run twice */
static void captured(void)
{
    Layer l = layer_of(GraphCase(), 1);
    cudaStream_t s = new_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    Planned p = careful(l);
    GOOD(cudnnSetStream(l.h, s));
    GOOD(execute(l, p)); /* takes its workspace before */
    GOOD(cudaStreamSynchronize(s));
    cudnnBackendDescriptor_t pack;
    int64_t id[] = {'x', 'w', 'y', 'b'};
    void *at[] = {l.x.p, l.w.p, l.y.p, l.b.p}, *scratch = nullptr;
    if (p.workspace) GOOD(cudaMalloc(&scratch, (size_t)p.workspace));
    GOOD(l.g.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 4, id));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 4, at));
    GOOD(l.g.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch));
    GOOD(cudnnBackendFinalize(pack));
    l.y.write();
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    GOOD(cudnnBackendExecute(l.h, p.d, pack));
    GOOD(cudaStreamEndCapture(s, &graph));
    HOLDS(distance(l.y.read(), expected(l)) > 0.1); /* not yet */
    GOOD(cudaGraphInstantiate(&exec, graph, 0));
    l.g.drop();
    for (int i = 0; i < 2; i++) {
        GOOD(cudaGraphLaunch(exec, s));
        GOOD(cudaStreamSynchronize(s));
        HOLDS(distance(l.y.read(), expected(l)) <= 1e-3);
        l.y.write();
    }
}

static void offers(cudnnDataType_t type, bool last, double slope, bool bias, std::vector<int> notes)
{
    GraphCase g;
    g.type = type;
    g.last = last;
    g.slope = slope;
    g.bias = bias;
    Layer l = layer_of(g, 0);
    auto list = configs(l.g, CUDNN_HEUR_MODE_A);
    HOLDS(list.size() == notes.size());
    for (size_t i = 0; i < list.size(); i++) HOLDS(note_of(l.g, list[i]) == notes[i]);
}

static void all_numbers(void)
{
    const cudnnDataType_t f16 = CUDNN_DATA_HALF, bf16 = CUDNN_DATA_BFLOAT16;
    GraphCase g, strided;
    clean("f32, plain order: three engines", "", [&] { numbers(g, 0, 3, 1e-6); });
    clean("boxes, with what lies between", "CUDASIM_SEED=1", [&] { numbers(g, 2, 3, 1e-6); });
    g.last = true;
    clean("f32, channels last: four", "", [&] { numbers(g, 1, 4, 1e-6); });
    g.slope = 0.3;
    clean("a slope: the compiled one", "", [&] { numbers(g, 1, 1, 1e-6); });
    g.type = f16;
    clean("f16", "", [&] { numbers(g, 1, 1, 1e-3); });
    g.relu = false;
    clean("f16, bias alone", "CUDASIM_SM=70", [&] { numbers(g, 0, 1, 1e-3); });
    g.type = bf16;
    g.relu = true;
    g.bias = false;
    clean("bf16, relu alone", "CUDASIM_SM=90 CUDASIM_SEED=2", [&] { numbers(g, 0, 1, 8e-3); });
    g.relu = false;
    clean("bf16, neither", "", [&] { numbers(g, 0, 2, 8e-3); });
    strided.stride = {2, 1, 3};
    strided.dilation = {1, 2, 1};
    strided.low = {2, 0, 1};
    strided.high = {0, 3, 0};
    strided.y = {2, 4, 3, 5, 2};
    clean("strides, dilations, other padding on either side", "", [&] { numbers(strided, 1, 3, 1e-6); });
    strided.bias = strided.relu = false;
    strided.pass = 1;
    clean("backward, data", "", [&] { numbers(strided, 1, 3, 1e-6); });
    strided.pass = 2;
    clean("backward, filters", "", [&] { numbers(strided, 1, 3, 1e-6); });
    g = {};
    g.last = true;
    g.pass = 2;
    g.bias = g.relu = false;
    g.type = f16;
    clean("backward, filters, f16", "", [&] { numbers(g, 1, 1, 1e-3); });
    g.pass = 1;
    g.bias = g.relu = true;
    g.b = {1, 3, 1, 1, 1};
    g.slope = 0.1;
    clean("a transposed convolution with bias and a slope", "", [&] { numbers(g, 2, 1, 1e-3); });
}

static void all_offers(void)
{
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT, f16 = CUDNN_DATA_HALF, bf16 = CUDNN_DATA_BFLOAT16;
    const int any = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, cores = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    clean("f32 with a slope in the plain order: none", "", [&] { offers(f32, false, 0.3, true, {}); });
    clean("f32 with relu and no bias in the plain order: none", "",
          [&] { offers(f32, false, 0, false, {}); });
    clean("f32 on sm_70: no tensor cores", "CUDASIM_SM=70", [&] { offers(f32, false, 0, true, {any, -1}); });
    clean("bf16 on sm_75: none", "CUDASIM_SM=75", [&] { offers(bf16, true, 0.3, true, {}); });
    clean("f16 on sm_75", "CUDASIM_SM=75", [&] { offers(f16, true, 0.3, true, {cores}); });
    clean("f16 in the plain order with a bias in f32: none", "", [&] { offers(f16, false, 0, true, {}); });
}

int main(void)
{
    const cudnnStatus_t bad = CUDNN_STATUS_BAD_PARAM;
    all_numbers();
    all_offers();
    clean("a right execution", "", [] { planted(nothing, CUDNN_STATUS_SUCCESS); });
    clean("descriptors may go once the plan is there", "", only_the_plan_lives);
    told("and are missed when the last handle goes", "", "descriptors of graphs outlive", [] {
        Layer l = layer_of(GraphCase(), 0);
        careful(l);
        GOOD(cudnnDestroy(l.h));
    });
    clean("recorded, and run twice", "CUDASIM_SEED=4", captured);
    clean("two streams with an event", "", [] { two_streams(true); });
    caught("without the event", "", "RACE", [] { two_streams(false); });
    told("an address for a tensor that is not there", "", "needs (at[i] = address(pack, *all[i]))",
         [=] { planted(other_id, bad); });
    told("none for the output", "", "needs (at[i] = address(pack, *all[i]))", [=] { planted(no_y, bad); });
    told("one too many", "", "->count == wanted", [=] { planted(more, bad); });
    told("a host pointer", "", "device memory for its operands", [=] { planted(host_x, bad); });
    told("an address less aligned than was said", "", "is not aligned to 4 bytes",
         [=] { planted(odd_x, bad); });
    told("a workspace one byte short", "", "device memory for its operands",
         [=] { planted(short_workspace, bad); });
    told("another handle than the plan's", "", "handle == plan.handle", [=] { planted(other_handle, bad); });
    told("addresses that are not finalised", "", "v && v->final", [=] { planted(unfinished_pack, bad); });
    told("a planted fault", "CUDASIM_FAIL=cudnn:1", "a planted fault",
         [] { planted(nothing, CUDNN_STATUS_EXECUTION_FAILED); });
    told("more elements than an index holds", "CUDASIM_CUDNN_ELEMENTS=100", "all <= settings().elements", [] {
        GraphCase g;
        cudnnBackendDescriptor_t d;
        HOLDS(g.graph(&d) == CUDNN_STATUS_NOT_SUPPORTED);
    });
    return tap_done();
}
