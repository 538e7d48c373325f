/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_algorithm.cpp -- which convolutions the simulated cuDNN takes, by which algorithms, and what it answers
 * when asked for the best. Fewer than the real one, on purpose: what passes here is in the documented tables
 * of cuDNN 8 and 9. Workspaces have invented sizes, so that a missing one shows; times are invented too, and
 * with a seed drawn, so that a choice by time is seldom the same on two ranks until they agree on it.
 *
 *     forward          0 implicit GEMM; 1 precomputed implicit GEMM: workspace
 *     backward data    0 not deterministic; 1 workspace
 *     backward filter  0 not deterministic; 1 workspace; 3 not deterministic, workspace, packed operands only
 *
 * Channels last: only algorithm 1, and all of x, w, y alike. dy: each sample packed. bf16 from sm_80 on.
 */
#include "dnn_conv.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sim {

bool lies(const cudnnTensorStruct &d, bool last, bool with_batch, bool packed)
{
    std::vector<int> order;
    int64_t step = 1;
    if (last) order.push_back(1);
    for (int i = d.rank - 1; i >= 2; i--) order.push_back(i);
    if (!last) order.push_back(1);
    if (with_batch) order.push_back(0);
    for (int i : order) {
        if (d.extent[i] == 1) continue;
        if (packed ? d.stride[i] != step : d.stride[i] < step) return false;
        step = d.stride[i] * (int64_t)d.extent[i];
    }
    return true;
}

cudnnStatus_t check_problem(const Problem &p)
{
    int extent[CUDNN_DIM_MAX];
    DNN_PARAM(p.x && p.w && p.c && p.y && p.x->rank && p.y->rank == p.x->rank);
    DNN_TRY(cudnnGetConvolutionNdForwardOutputDim(p.c, p.x, p.w, p.x->rank, extent));
    for (int i = 0; i < p.y->rank; i++) DNN_PARAM(p.y->extent[i] == extent[i]);
    DNN_PARAM(p.x->type == p.w->type && p.x->type == p.y->type);
    DNN_SUPPORT((p.x->type == CUDNN_DATA_DOUBLE) == (p.c->compute == CUDNN_DATA_DOUBLE));
    bool half = p.x->type == CUDNN_DATA_HALF || p.x->type == CUDNN_DATA_BFLOAT16;
    DNN_SUPPORT(half ||
                p.c->math !=
                    CUDNN_TENSOR_OP_MATH); /* asks for tensor cores where the elements do not suit them */
    DNN_NEED(p.x->type != CUDNN_DATA_BFLOAT16 || settings().sm >= 80, CUDNN_STATUS_ARCH_MISMATCH);
    bool last = p.w->format == CUDNN_TENSOR_NHWC; /* x, w and y are all of one layout */
    DNN_SUPPORT(lies(*p.x, last, true, false));
    DNN_SUPPORT(lies(*p.y, last, true, false));
    DNN_SUPPORT(p.pass == forward || lies(*p.y, last, false, true)); /* each sample of dy is packed */
    return CUDNN_STATUS_SUCCESS;
}

bool deterministic(Pass pass, int algorithm)
{
    return pass == forward || algorithm == 1;
}

cudnnStatus_t check_algorithm(const Problem &p, int algorithm, size_t *workspace)
{
    bool last = p.w->format == CUDNN_TENSOR_NHWC;
    DNN_SUPPORT(algorithm == 0 || algorithm == 1 || (p.pass == backward_filter && algorithm == 3));
    DNN_SUPPORT(!last || algorithm == 1);
    DNN_SUPPORT(algorithm != 3 || (lies(*p.x, last, true, true) && lies(*p.y, last, true, true)));
    size_t item = size_of(kind_of(p.x->type));
    *workspace = algorithm == 0 ? 0
                                : 256 * (size_t)algorithm +
                                      (size_t)(elements(*p.w) + p.y->extent[0] * p.y->extent[1]) * item;
    return CUDNN_STATUS_SUCCESS;
}

static void note_numbers(FILE *f, int n, const int *v)
{
    for (int i = 0; i < n; i++) fprintf(f, " %d", v[i]);
}

FILE *problems()
{
    static FILE *f = getenv("CUDASIM_PROBLEMS") ? fopen(getenv("CUDASIM_PROBLEMS"), "a") : nullptr;
    return f;
}

const char *type_name(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF ? "f16" : type == CUDNN_DATA_BFLOAT16 ? "bf16" : "f32";
}

/* A line for every convolution of five dimensions whose algorithms are asked for */
static void note_problem(const Problem &p)
{
    FILE *f = problems();
    if (!f || p.x->rank != 5) return;
    fprintf(f, "%d %s", (int)p.pass, type_name(p.x->type));
    note_numbers(f, 5, p.x->extent);
    note_numbers(f, 5, p.x->stride);
    note_numbers(f, 5, p.y->extent);
    note_numbers(f, 5, p.y->stride);
    fprintf(f, " %d", p.w->format == CUDNN_TENSOR_NHWC);
    note_numbers(f, 5, p.w->extent);
    note_numbers(f, 3, p.c->pad);
    note_numbers(f, 3, p.c->stride);
    note_numbers(f, 3, p.c->dilation);
    fprintf(f, "\n");
    fflush(f);
}

/* All algorithms, the fastest first; those that do not apply, or need more than `limit`, come last with a
 * status */
template <class Perf>
static cudnnStatus_t rank_algorithms(const Problem &p, size_t limit, int most, int *count, Perf *out)
{
    static const int known[] = {1, 0, 3};
    std::vector<Perf> all;
    DNN_PARAM(most > 0 && count && out);
    DNN_TRY(check_problem(p));
    note_problem(p);
    for (int a : known) {
        if (a == 3 && p.pass != backward_filter) continue;
        Perf perf;
        memset(&perf, 0, sizeof(perf));
        perf.algo = (decltype(perf.algo))a;
        dnn_quiet = true; /* what does not apply is no news */
        perf.status = check_algorithm(p, a, &perf.memory);
        dnn_quiet = false;
        if (!perf.status && perf.memory > limit) perf.status = CUDNN_STATUS_ALLOC_FAILED;
        perf.determinism = deterministic(p.pass, a) ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
        perf.mathType = p.c->math;
        perf.time = perf.status ? -1.0f : 1.0f + 0.1f * (float)all.size() + 0.001f * (float)draw(400);
        all.push_back(perf);
    }
    std::stable_sort(all.begin(), all.end(), [](const Perf &a, const Perf &b) {
        return !a.status != !b.status ? !a.status : a.time < b.time;
    });
    *count = std::min(most, (int)all.size());
    std::copy_n(all.begin(), *count, out);
    return CUDNN_STATUS_SUCCESS;
}

/* The trial runs of Find...Ex: the output and the workspace are spoilt, the inputs must be there, and the
 * host waits */
template <class Perf>
static cudnnStatus_t find(cudnnHandle_t handle, const Problem &p, const void *x, const void *w, const void *y,
                          int most, int *count, Perf *out, void *workspace, size_t bytes)
{
    DNN_NEED(!recording(false), CUDNN_STATUS_NOT_SUPPORTED);
    DNN_TRY(rank_algorithms(p, bytes, most, count, out));
    DnnOp op(handle, "the trial runs of cuDNN's Find");
    void *xw = op.operand(*p.x, x, p.pass == backward_data),
         *ww = op.operand(*p.w, w, p.pass == backward_filter);
    void *yw = op.operand(*p.y, y, p.pass == forward);
    op.scratch(workspace, bytes);
    auto kept = std::make_shared<Kept>(p);
    DNN_TRY(op.queue([=] {
        double nan = std::nan("");
        if (kept->pass == forward)
            blend(kept->y, yw, std::vector<double>((size_t)elements(kept->y), nan), 1, 0);
        if (kept->pass == backward_data)
            blend(kept->x, xw, std::vector<double>((size_t)elements(kept->x), nan), 1, 0);
        if (kept->pass == backward_filter)
            blend(kept->w, ww, std::vector<double>((size_t)elements(kept->w), nan), 1, 0);
    }));
    Stream *s = resolve(handle->stream);
    wait_for(s, s->next - 1);
    return usable() ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t workspace_of(const Problem &p, int algorithm, size_t *bytes)
{
    DNN_PARAM(bytes);
    DNN_TRY(check_problem(p));
    return check_algorithm(p, algorithm, bytes);
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    *count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    *count = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    *count = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int most,
                                                     int *count, cudnnConvolutionFwdAlgoPerf_t *out)
{
    Lock lock;
    return rank_algorithms({forward, x, y, w, c}, SIZE_MAX, most, count, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t x, const int most,
                                                          int *count, cudnnConvolutionBwdDataAlgoPerf_t *out)
{
    Lock lock;
    return rank_algorithms({backward_data, x, y, w, c}, SIZE_MAX, most, count, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t w, const int most,
                                                            int *count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *out)
{
    Lock lock;
    return rank_algorithms({backward_filter, x, y, w, c}, SIZE_MAX, most, count, out);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xd, const void *x, const cudnnFilterDescriptor_t wd,
    const void *w, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t yd, void *y,
    const int most, int *count, cudnnConvolutionFwdAlgoPerf_t *out, void *workspace, size_t bytes)
{
    Lock lock;
    return find(handle, {forward, xd, yd, wd, c}, x, w, y, most, count, out, workspace, bytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wd, const void *w, const cudnnTensorDescriptor_t yd,
    const void *dy, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t xd, void *dx,
    const int most, int *count, cudnnConvolutionBwdDataAlgoPerf_t *out, void *workspace, size_t bytes)
{
    Lock lock;
    return find(handle, {backward_data, xd, yd, wd, c}, dx, w, dy, most, count, out, workspace, bytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xd, const void *x, const cudnnTensorDescriptor_t yd,
    const void *dy, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t wd, void *dw,
    const int most, int *count, cudnnConvolutionBwdFilterAlgoPerf_t *out, void *workspace, size_t bytes)
{
    Lock lock;
    return find(handle, {backward_filter, xd, yd, wd, c}, x, dw, dy, most, count, out, workspace, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes)
{
    Lock lock;
    return workspace_of({forward, x, y, w, c}, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t y,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t x,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           size_t *bytes)
{
    Lock lock;
    return workspace_of({backward_data, x, y, w, c}, algorithm, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t y,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t w,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                             size_t *bytes)
{
    Lock lock;
    return workspace_of({backward_filter, x, y, w, c}, algorithm, bytes);
}
