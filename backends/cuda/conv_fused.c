/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_fused.c -- graphs of cuDNN as a way to convolve: which convolutions, and the graphs that a device has. To build one the library may compile a kernel,
 * for seconds: a description is asked about once, whoever asks, and its graph (or that there is none) kept until the device closes.
 */
#include "conv.h"

/* Engines may take the larger of x and slope x: the same for these slopes. */
bool hl_conv_fusable(const halo_op_desc *d)
{
    if (d->act == HALO_ACT_NONE) return hl_has(d, HALO_B);
    return d->act == HALO_ACT_RELU || (d->act == HALO_ACT_LEAKY_RELU && d->slope >= 0 && d->slope <= 1);
}

halo_status hl_conv_graph_of(hl_cuda_device *dev, const hl_graph_conv *c, const hl_known_graph **out)
{
    hl_known_graph *k = dev->graphs;
    while (k && memcmp(&k->c, c, sizeof(*c)) != 0) k = k->next;
    if (!k) {
        HL_TRY(hl_calloc(dev->super.ctx, 1, sizeof(*k), "a graph", &k));
        *k = (hl_known_graph){.next = dev->graphs, .c = *c};
        if (hl_conv_graph_make(dev->dnn, NULL, c, &k->graph) != CUDNN_STATUS_SUCCESS) k->graph = NULL;
        dev->graphs = k;
    }
    *out = k->graph ? k : NULL;
    return HALO_OK;
}

/* As many bytes as an address is a multiple of, of those that it should be. */
static int64_t aligned(const void *p, int64_t align)
{
    while ((uintptr_t)p % (uintptr_t)align != 0) align /= 2;
    return align;
}

/* Programs' tensors begin where allocations may; for others there is a graph that expects less, asked for when it is needed. */
static halo_status graph_for(const hl_conv_plan *p, const hl_known_graph *k, const void *x, const void *w, const void *b, const void *y, const hl_known_graph **out)
{
    hl_graph_conv c = k->c;
    hl_cuda_device *dev = p->super.dev;
    c.x.align = aligned(x, c.x.align), c.w.align = aligned(w, c.w.align), c.y.align = aligned(y, c.y.align);
    if (c.bias) c.bias_align = aligned(b, c.bias_align);
    c.workspace = (int64_t)p->workspace;
    *out = k;
    if (c.x.align == k->c.x.align && c.w.align == k->c.w.align && c.y.align == k->c.y.align && c.bias_align == k->c.bias_align) return HALO_OK;
    HL_TRY(hl_conv_graph_of(dev, &c, out));
    return *out ? HALO_OK : hl_fail(dev->super.ctx, HALO_ERR_UNSUPPORTED, "cuDNN has no engine for a fused convolution of operands that are not aligned to 16 bytes");
}

halo_status hl_conv_graph_put(const hl_conv_plan *p, hl_conv_piece *e, void *x, void *w, void *b, void *y, void *workspace)
{
    const hl_known_graph *k;
    HL_TRY(graph_for(p, e->graph, x, w, b, y, &k));
    HL_DNN(p->super.dev, hl_conv_graph_run(p->super.dev->dnn, k->graph, &e->addresses, x, w, b, y, workspace));
    return HALO_OK;
}

void hl_conv_graphs_free(hl_cuda_device *dev)
{
    while (dev->graphs) {
        hl_known_graph *k = dev->graphs;
        dev->graphs = k->next;
        hl_conv_graph_free(k->graph);
        free(k);
    }
}

static const char *name_of(int way) { return way == HL_CONV_FUSED ? "graph:fused" : "graph"; }

static int ask(hl_cuda_device *dev, const hl_conv_piece *p, int list[HALO_MAX_CANDIDATES])
{
    (void)dev;
    list[0] = p->fused ? HL_CONV_FUSED : HL_CONV_PLAIN;
    return p->graph != NULL;
}

/* Engines that add to what is there are not looked for. */
static bool size_of(hl_cuda_device *dev, const hl_conv_piece *p, int way, size_t *bytes)
{
    (void)dev;
    if (!p->graph || p->adds || p->fused != (way == HL_CONV_FUSED)) return false;
    *bytes = (size_t)hl_conv_graph_workspace(p->graph->graph);
    return true;
}

const hl_conv_way hl_conv_graph_way = {true, name_of, ask, size_of};

int hl_conv_ways(halo_device *dev, const halo_op_desc *d, const hl_conv_way *older, halo_candidate *out)
{
    int n = 0;
    if (!hl_conv_fits(d)) return 0;
    if (hl_conv_fusable(d) || hl_conv_moves(hl_cuda(dev), d)) n = hl_conv_candidates(dev, d, &hl_conv_graph_way, out);
    return n + hl_conv_candidates(dev, d, older, out + n);
}

halo_status hl_conv_ways_plan(halo_device *dev, const halo_op_desc *d, const hl_conv_way *older, const halo_candidate *choice, halo_plan **out)
{
    return hl_conv_plan_make(dev, d, choice->id < 0 ? &hl_conv_graph_way : older, choice, out);
}
