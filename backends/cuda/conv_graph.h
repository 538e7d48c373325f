/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_graph.h -- y = act(b + conv(x, w)) as one call of cuDNN, by its graph API: y is written once. Or its backward passes. This file and conv_graph.c know cuDNN
 * alone, so that the very same graphs can be put to the real library for devices that are only described (tests/cuda/support.c).
 *
 * Other than the older calls a graph pads both sides of an axis as one likes, and takes a gradient that is part of something as it lies. Which of the graphs there is an engine for is the library's
 * to say; what cuDNN 9.19 answers for described devices: 16-bit operands with channels last: all that is said here, by kernels that it compiles itself (it loads libnvrtc); f32
 * so on tensor cores alone, as TF32; f32 in the plain order with bias and relu without a slope.
 */
#ifndef HL_CUDA_CONV_GRAPH_H
#define HL_CUDA_CONV_GRAPH_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

enum { HL_GRAPH_DIMS = 5 };

/* Extents and strides of elements, n c d h w; addresses are multiples of `align` bytes. */
typedef struct hl_graph_tensor {
    int64_t ext[HL_GRAPH_DIMS], stride[HL_GRAPH_DIMS], align;
} hl_graph_tensor;

enum { HL_GRAPH_FORWARD = 0, HL_GRAPH_DATA, HL_GRAPH_WEIGHTS };

/* No gaps: descriptions are compared byte by byte. */
typedef struct hl_graph_conv {
    int pass;              /* what is written: y; x, which is dx then, and y dy; w, which is dw */
    int type;              /* cudnnDataType_t of x, w, y; sums and bias are f32 */
    int bias, relu;        /* of what is written, which there are; relu with `slope` below 0 */
    double slope;
    uint64_t refuse;       /* bit n: no engine with numerical note n */
    int64_t bias_align, workspace; /* bytes at most */
    int64_t pad_lo[3], pad_hi[3], stride[3], dilation[3];
    hl_graph_tensor x, w, y;
} hl_graph_conv;

/* A graph with an engine. */
typedef struct hl_conv_graph hl_conv_graph;

/* Addresses as the engine takes them, made anew when they change. */
typedef struct hl_graph_pack {
    cudnnBackendDescriptor_t descriptor;
    void *address[5];
} hl_graph_pack;

/* The first engine that the heuristics offer, that is not refused and whose workspace is within the limit; with none CUDNN_STATUS_NOT_SUPPORTED, or what asking failed
 * with. device: described, then without handle; else NULL. */
cudnnStatus_t hl_conv_graph_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device, const hl_graph_conv *c, hl_conv_graph **out);
void hl_conv_graph_free(hl_conv_graph *g);
int64_t hl_conv_graph_workspace(const hl_conv_graph *g);
/* Puts it on the handle's stream; b may be NULL where there is none. */
cudnnStatus_t hl_conv_graph_run(cudnnHandle_t handle, const hl_conv_graph *g, hl_graph_pack *pack, void *x, void *w, void *b, void *y, void *workspace);
void hl_graph_pack_free(hl_graph_pack *pack);

#endif
