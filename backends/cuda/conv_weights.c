/* SPDX-License-Identifier: Apache-2.0 */
/* conv_weights.c -- dw[o,i,k] = sum_{n,p} dy[n,o,p] x[n,i, p s - pad + k l] by cuDNN, db[o] = sum dy by a reduction of our own. 16-bit operands give cuDNN's
 * gradient in 16 bits, which is converted and added in dw's own type. */
#include "conv.h"

static const char *name_of(int algorithm)
{
    static const char *const names[] = {
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0] = "algo-0",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1] = "algo-1",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT] = "fft",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3] = "algo-3",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD] = "winograd",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED] = "winograd-nonfused",
        [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING] = "fft-tiling",
    };
    return (size_t)algorithm < HL_COUNT(names) ? names[algorithm] : "?";
}

static int ask(hl_cuda_device *dev, const hl_conv_piece *p, int list[HALO_MAX_CANDIDATES])
{
    cudnnConvolutionBwdFilterAlgoPerf_t perf[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
    int found = 0, n = 0;
    if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(dev->dnn, p->near, p->far, p->conv, p->filter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &found, perf) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < found && n < HALO_MAX_CANDIDATES; i++)
        if (perf[i].status == CUDNN_STATUS_SUCCESS && (dev->any_order || perf[i].determinism == CUDNN_DETERMINISTIC)) list[n++] = (int)perf[i].algo;
    return n;
}

static bool size_of(hl_cuda_device *dev, const hl_conv_piece *p, int algorithm, size_t *bytes)
{
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(dev->dnn, p->near, p->far, p->conv, p->filter, (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes) == CUDNN_STATUS_SUCCESS;
}

static const hl_conv_way way = {false, name_of, ask, size_of};

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out) { return hl_conv_ways(dev, d, &way, out); }

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out) { return hl_conv_ways_plan(dev, d, &way, choice, out); }

static halo_status put(const hl_conv_plan *p, hl_conv_piece *e, char *x, char *dy, char *to, void *scratch)
{
    const hl_cuda_plan *s = &p->super;
    const float one = 1, zero = 0;
    if (e->graph) return hl_conv_graph_put(p, e, x, to, NULL, dy, scratch);
    HL_DNN(s->dev, cudnnConvolutionBackwardFilter(s->dev->dnn, &one, e->near, x, e->far, dy, e->conv, (cudnnConvolutionBwdFilterAlgo_t)p->algorithm, scratch, p->workspace,
                                                  e->adds ? &one : &zero, e->filter, to));
    return HALO_OK;
}

/* A part of the gradient from scratch to where it belongs, in the types and orders of both. */
static halo_status settle(const hl_conv_plan *p, const hl_conv_piece *e, bool add, const char *from, char *dw)
{
    const hl_cuda_plan *s = &p->super;
    const halo_window *w = &s->d.window;
    const int64_t ext[HALO_DIMS] = {e->filter_channels, s->d.t[HALO_X].ext[HALO_C], w->kernel[0], w->kernel[1], w->kernel[2]};
    const halo_dtype type = s->d.t[HALO_DW].dtype;
    const halo_operand filter = hl_operand_whole(p->type, s->d.t[HALO_X].layout, ext), plain = hl_operand_whole(type, HALO_NCDHW, ext);
    hl_copying c = hl_cuda_copying(&filter, &plain);
    c.accumulate = add;
    HL_CUDA(s->dev, hl_cuda_convert(s->dev->compute, &c, from, dw + (size_t)e->filter_at * hl_dtype_size(type)));
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const hl_conv_plan *p = (const hl_conv_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    char *x = hl_cuda_ptr(s, args, HALO_X), *dy = hl_cuda_ptr(s, args, HALO_DY), *dw = hl_cuda_ptr(s, args, HALO_DW);
    char *moved = hl_conv_moved(p, args->scratch), *packed = hl_conv_packed(p, args->scratch), *filter = hl_conv_filter(p, args->scratch);
    for (size_t i = 0; i < p->pieces.n; i++) {
        hl_conv_piece *e = &p->pieces.piece[i];
        char *to = p->indirect ? filter : dw + hl_conv_byte(p, e->filter_at);
        if (e->packed) HL_CUDA(s->dev, hl_cuda_copy_window(s->dev->compute, p->type, &e->pack, dy + hl_conv_byte(p, e->pack_at), packed));
        if (e->moved) HL_CUDA(s->dev, hl_cuda_copy_window(s->dev->compute, p->type, &e->move, x + hl_conv_byte(p, e->move_at), moved));
        HL_TRY(put(p, e, (e->moved ? moved : x) + hl_conv_byte(p, e->near_at), (e->packed ? packed : dy) + hl_conv_byte(p, e->far_at), to, args->scratch));
        if (p->indirect) HL_TRY(settle(p, e, !e->first || s->d.accumulate, filter, dw));
    }
    if (hl_has(&s->d, HALO_DB))
        HL_CUDA(s->dev, hl_cuda_sum_cells(s->dev->compute, p->type, &p->db, dy, hl_conv_sums(p, args->scratch), s->d.t[HALO_DB].dtype, hl_cuda_ptr(s, args, HALO_DB), s->d.accumulate));
    return HALO_OK;
}

const halo_op_class hl_cuda_conv_bwd_weights = {.kind = HALO_OP_CONV_BWD_WEIGHTS, .candidates = candidates, .plan = make, .run = run, .destroy = hl_conv_plan_free};
