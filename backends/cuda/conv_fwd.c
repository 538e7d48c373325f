/* SPDX-License-Identifier: Apache-2.0 */
/* conv_fwd.c -- y[n,o,p] = act(b[o] + sum_{i,k} w[o,i,k] x[n,i, p s - pad + k l]): all of it by a graph of cuDNN, which writes y once; or the convolution by
 * cuDNN, then bias and activation in one pass in place. */
#include "conv.h"

static const char *name_of(int algorithm)
{
    static const char *const names[] = {
        [CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM] = "implicit-gemm",
        [CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM] = "implicit-precomp-gemm",
        [CUDNN_CONVOLUTION_FWD_ALGO_GEMM] = "gemm",
        [CUDNN_CONVOLUTION_FWD_ALGO_DIRECT] = "direct",
        [CUDNN_CONVOLUTION_FWD_ALGO_FFT] = "fft",
        [CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING] = "fft-tiling",
        [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD] = "winograd",
        [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED] = "winograd-nonfused",
    };
    return (size_t)algorithm < HL_COUNT(names) ? names[algorithm] : "?";
}

static int ask(hl_cuda_device *dev, const hl_conv_piece *p, int list[HALO_MAX_CANDIDATES])
{
    cudnnConvolutionFwdAlgoPerf_t perf[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int found = 0, n = 0;
    if (cudnnGetConvolutionForwardAlgorithm_v7(dev->dnn, p->near, p->filter, p->conv, p->far, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &found, perf) != CUDNN_STATUS_SUCCESS) return 0;
    for (int i = 0; i < found && n < HALO_MAX_CANDIDATES; i++)
        if (perf[i].status == CUDNN_STATUS_SUCCESS && (dev->any_order || perf[i].determinism == CUDNN_DETERMINISTIC)) list[n++] = (int)perf[i].algo;
    return n;
}

static bool size_of(hl_cuda_device *dev, const hl_conv_piece *p, int algorithm, size_t *bytes)
{
    return cudnnGetConvolutionForwardWorkspaceSize(dev->dnn, p->near, p->filter, p->conv, p->far, (cudnnConvolutionFwdAlgo_t)algorithm, bytes) == CUDNN_STATUS_SUCCESS;
}

static const hl_conv_way way = {false, name_of, ask, size_of};

int hl_conv_forward_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out) { return hl_conv_ways(dev, d, &way, out); }

halo_status hl_conv_forward_plan(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out) { return hl_conv_ways_plan(dev, d, &way, choice, out); }

halo_status hl_conv_forward(const hl_conv_plan *p, char *x, char *w, char *b, char *y, void *scratch)
{
    const hl_cuda_plan *s = &p->super;
    const float one = 1, zero = 0;
    char *moved = hl_conv_moved(p, scratch);
    for (size_t i = 0; i < p->pieces.n; i++) {
        hl_conv_piece *e = &p->pieces.piece[i];
        char *from = (e->moved ? moved : x) + hl_conv_byte(p, e->near_at), *to = y + hl_conv_byte(p, e->far_at), *filter = w + hl_conv_byte(p, e->filter_at);
        if (e->moved) HL_CUDA(s->dev, hl_cuda_copy_window(s->dev->compute, p->type, &e->move, x + hl_conv_byte(p, e->move_at), moved));
        if (e->graph)
            HL_TRY(hl_conv_graph_put(p, e, from, filter, b ? b + (size_t)e->channel * sizeof(float) : NULL, to, scratch));
        else
            HL_DNN(s->dev, cudnnConvolutionForward(s->dev->dnn, &one, e->near, from, e->filter, filter, e->conv, (cudnnConvolutionFwdAlgo_t)p->algorithm, scratch, p->workspace, &zero,
                                                   e->far, to));
    }
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const hl_conv_plan *p = (const hl_conv_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    char *y = hl_cuda_ptr(s, args, HALO_Y), *b = hl_cuda_ptr(s, args, HALO_B);
    HL_TRY(hl_conv_forward(p, hl_cuda_ptr(s, args, HALO_X), hl_conv_weights(p, args), b, y, args->scratch));
    if (p->algorithm != HL_CONV_FUSED && (b || s->d.act != HALO_ACT_NONE))
        HL_CUDA(s->dev, hl_cuda_bias_act(s->dev->compute, p->type, &p->finish, y, (const float *)b, s->d.act, s->d.slope));
    return HALO_OK;
}

const halo_op_class hl_cuda_conv_fwd = {.kind = HALO_OP_CONV_FWD, .candidates = hl_conv_forward_candidates, .plan = hl_conv_forward_plan, .run = run, .destroy = hl_conv_plan_free};
