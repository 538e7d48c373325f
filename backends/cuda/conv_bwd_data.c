/* SPDX-License-Identifier: Apache-2.0 */
/* conv_bwd_data.c -- dx[n,i,q] = act(b[i] + sum over o,p,k with p s - pad + k l = q of w[o,i,k] dy[n,o,p]) by cuDNN; bias and activation (of a transposed
 * convolution) by the same graph, or in one pass in place. */
#include "conv.h"

static const char *name_of(int algorithm)
{
    static const char *const names[] = {
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_0] = "algo-0",
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_1] = "algo-1",
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT] = "fft",
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING] = "fft-tiling",
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD] = "winograd",
        [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED] = "winograd-nonfused",
    };
    return (size_t)algorithm < HL_COUNT(names) ? names[algorithm] : "?";
}

static int ask(hl_cuda_device *dev, const hl_conv_piece *p, int list[HALO_MAX_CANDIDATES])
{
    cudnnConvolutionBwdDataAlgoPerf_t perf[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
    int found = 0, n = 0;
    if (cudnnGetConvolutionBackwardDataAlgorithm_v7(dev->dnn, p->filter, p->far, p->conv, p->near, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &found, perf) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < found && n < HALO_MAX_CANDIDATES; i++)
        if (perf[i].status == CUDNN_STATUS_SUCCESS && (dev->any_order || perf[i].determinism == CUDNN_DETERMINISTIC)) list[n++] = (int)perf[i].algo;
    return n;
}

static bool size_of(hl_cuda_device *dev, const hl_conv_piece *p, int algorithm, size_t *bytes)
{
    return cudnnGetConvolutionBackwardDataWorkspaceSize(dev->dnn, p->filter, p->far, p->conv, p->near, (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes) == CUDNN_STATUS_SUCCESS;
}

static const hl_conv_way way = {false, name_of, ask, size_of};

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (d->accumulate && (hl_has(d, HALO_B) || d->act != HALO_ACT_NONE)) return 0;
    return hl_conv_ways(dev, d, &way, out);
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out) { return hl_conv_ways_plan(dev, d, &way, choice, out); }

static halo_status put(const hl_conv_plan *p, hl_conv_piece *e, char *dx, char *w, char *b, char *dy, void *scratch)
{
    const hl_cuda_plan *s = &p->super;
    const float one = 1, zero = 0;
    if (e->graph) return hl_conv_graph_put(p, e, dx, w, b, dy, scratch);
    HL_DNN(s->dev, cudnnConvolutionBackwardData(s->dev->dnn, &one, e->filter, w, e->far, dy, e->conv, (cudnnConvolutionBwdDataAlgo_t)p->algorithm, scratch, p->workspace,
                                                e->adds ? &one : &zero, e->near, dx));
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const hl_conv_plan *p = (const hl_conv_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    char *w = hl_conv_weights(p, args), *b = hl_cuda_ptr(s, args, HALO_B);
    char *dx = hl_cuda_ptr(s, args, HALO_DX), *dy = hl_cuda_ptr(s, args, HALO_DY), *moved = hl_conv_moved(p, args->scratch), *packed = hl_conv_packed(p, args->scratch);
    for (size_t i = 0; i < p->pieces.n; i++) {
        hl_conv_piece *e = &p->pieces.piece[i];
        if (e->packed) HL_CUDA(s->dev, hl_cuda_copy_window(s->dev->compute, p->type, &e->pack, dy + hl_conv_byte(p, e->pack_at), packed));
        if (!e->empty)
            HL_TRY(put(p, e, (e->moved ? moved : dx) + hl_conv_byte(p, e->near_at), w + hl_conv_byte(p, e->filter_at), b, (e->packed ? packed : dy) + hl_conv_byte(p, e->far_at), args->scratch));
        if (e->moved && e->last) HL_CUDA(s->dev, hl_cuda_copy_window(s->dev->compute, p->type, &e->move, moved, dx + hl_conv_byte(p, e->move_at)));
    }
    if (p->algorithm != HL_CONV_FUSED && (b || s->d.act != HALO_ACT_NONE))
        HL_CUDA(s->dev, hl_cuda_bias_act(s->dev->compute, p->type, &p->finish, dx, (const float *)b, s->d.act, s->d.slope));
    return HALO_OK;
}

const halo_op_class hl_cuda_conv_bwd_data = {.kind = HALO_OP_CONV_BWD_DATA, .candidates = candidates, .plan = make, .run = run, .destroy = hl_conv_plan_free};
