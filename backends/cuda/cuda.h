/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h -- the inside of the cuda backend, for its C files: the device, calls of vendors, geometry, what all plans share.
 *
 * Order: `run` puts everything on one stream, `compute`; uploads come in on `copies`, and events order the two. What changes per step is in a record
 * on the device that kernels read (record.c). A plan knows streams, descriptors and geometry; run launches and does nothing else.
 */
#ifndef HL_CUDA_H
#define HL_CUDA_H

#include "cells.h"
#include "kernels.h"
#include "tensor/operand.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

enum { HL_STAGES = 2, HL_STAGE_BYTES = 8 << 20 };

/* Pinned memory on its way to the device; `free` is recorded when the copy out of it is done. */
typedef struct hl_stage {
    void *pinned;
    cudaEvent_t free;
} hl_stage;

typedef struct hl_cuda_device {
    halo_device super;
    int index, major, minor;
    char name[96];
    cudaStream_t compute, copies;
    cudaEvent_t computed, copied; /* order the two streams */
    hl_stage stage[HL_STAGES];
    int turn;            /* the stage to take next */
    void *landing;       /* device memory where host arrays lie before they are converted */
    size_t landing_size;
    cudnnHandle_t dnn;
    cublasHandle_t blas;
    void *blas_workspace;
    halo_step_record *record, seen; /* on the device, and what was written there last */
    bool recorded, capturing;
    bool broken; /* by what has been told */
    bool tf32, any_order;
    int64_t most_elements; /* of a tensor that is given to cuDNN */
    size_t workspace;      /* most bytes of an algorithm's workspace */
    struct hl_known_graph *graphs; /* that were asked for (conv_fused.c) */
} hl_cuda_device;

static inline hl_cuda_device *hl_cuda(halo_device *dev) { return (hl_cuda_device *)dev; }

const halo_backend *hl_backend_cuda(void);
extern const halo_op_class *const hl_cuda_classes[HALO_OP_KINDS];

/* ------------------------------------------------------------------------------------------------------ vendors' calls */

/* Tells of the function that a call's text names; once only of a device that broke: what fails then fails for that. */
halo_status hl_call_failed(const hl_cuda_device *dev, halo_status status, const char *call, const char *why);
halo_status hl_cuda_failed(hl_cuda_device *dev, const char *call, cudaError_t e);
halo_status hl_dnn_failed(const hl_cuda_device *dev, const char *call, cudnnStatus_t e);
halo_status hl_blas_failed(const hl_cuda_device *dev, const char *call, cublasStatus_t e);

#define HL_CUDA(dev, call)                                                                                   \
    do {                                                                                                     \
        cudaError_t hl_e_ = (call);                                                                          \
        if (hl_e_ != cudaSuccess) return hl_cuda_failed(dev, #call, hl_e_);                                  \
    } while (0)
#define HL_DNN(dev, call)                                                                                    \
    do {                                                                                                     \
        cudnnStatus_t hl_e_ = (call);                                                                        \
        if (hl_e_ != CUDNN_STATUS_SUCCESS) return hl_dnn_failed(dev, #call, hl_e_);                          \
    } while (0)
#define HL_BLAS(dev, call)                                                                                   \
    do {                                                                                                     \
        cublasStatus_t hl_e_ = (call);                                                                       \
        if (hl_e_ != CUBLAS_STATUS_SUCCESS) return hl_blas_failed(dev, #call, hl_e_);                        \
    } while (0)

/* This thread's calls go to this device. Every entry that may come from another thread begins with it. */
halo_status hl_cuda_here(hl_cuda_device *dev);

/* doctor.c: whether this node can run the build, in one sentence with the remedy when not. */
halo_status hl_cuda_examine(halo_context *ctx, int *devices);
halo_status hl_cuda_examine_device(halo_context *ctx, int index, int *major, int *minor, char *name, size_t size);
void hl_cuda_libraries(char *out, size_t size);
void hl_cuda_dnn_version(char *out, size_t size);

/* memory.c, transfer.c: as in halo_device_ops. */
halo_status hl_cuda_alloc(halo_device *dev, size_t bytes, void **ptr);
void hl_cuda_release(halo_device *dev, void *ptr);
halo_status hl_cuda_pin(halo_device *dev, size_t bytes, void **host);
void hl_cuda_unpin(halo_device *dev, void *host);
halo_status hl_cuda_copy_bytes(halo_device *dev, void *dst, const void *src, size_t bytes, halo_queue *queue);
halo_status hl_cuda_fill(halo_device *dev, void *dst, int byte, size_t bytes, halo_queue *queue);
halo_status hl_cuda_wait(halo_device *dev, halo_queue *queue);
halo_status hl_cuda_upload(halo_device *dev, const halo_operand *op, void *ptr, halo_dtype host_dtype, const void *host);
halo_status hl_cuda_download(halo_device *dev, const halo_operand *op, const void *ptr, halo_dtype host_dtype, void *host);
halo_status hl_cuda_stages_make(hl_cuda_device *dev);
void hl_cuda_stages_free(hl_cuda_device *dev);

/* queue.c: queue, unqueue, follow, done of halo_device_ops; the stream of a queue, `compute` for NULL. */
halo_status hl_cuda_queue(halo_device *dev, halo_queue **queue);
void hl_cuda_unqueue(halo_device *dev, halo_queue *queue);
halo_status hl_cuda_queue_follow(halo_device *dev, halo_queue *later, halo_queue *sooner);
halo_status hl_cuda_queue_done(halo_device *dev, halo_queue *queue, bool *all);
cudaStream_t hl_cuda_stream(const hl_cuda_device *dev, const halo_queue *queue);

/* limits.c: limits of halo_device_ops. */
halo_status hl_cuda_limits(halo_device *dev, int64_t n, int repetitions, double *gemm_gflops, double *stream_gbs);

/* link.c: link_id, link, link_sum, link_scatter, link_gather, link_move, unlink of halo_device_ops, with NCCL; ", NCCL 2.28.9", or nothing without. */
halo_status hl_cuda_link_id(halo_device *dev, unsigned char id[HALO_LINK_ID]);
halo_status hl_cuda_link(halo_device *dev, const unsigned char id[HALO_LINK_ID], int size, int rank, halo_link **link);
halo_status hl_cuda_link_sum(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
halo_status hl_cuda_link_scatter(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
halo_status hl_cuda_link_gather(halo_device *dev, halo_link *link, void *data, halo_dtype type, int64_t n, halo_queue *queue);
halo_status hl_cuda_link_move(halo_device *dev, halo_link *link, const halo_parcel *parcel, int n, halo_queue *queue);
void hl_cuda_unlink(halo_device *dev, halo_link *link);
void hl_cuda_nccl_version(char *out, size_t size);

/* recording.c: record, stop, replay, forget of halo_device_ops. */
halo_status hl_cuda_record_begin(halo_device *dev);
halo_status hl_cuda_record_end(halo_device *dev, halo_recording **recording);
halo_status hl_cuda_replay(halo_device *dev, halo_recording *recording, const halo_step_record *step);
void hl_cuda_forget(halo_device *dev, halo_recording *recording);

/* record.c: the device's copy of a step record, written on `compute` when it is another one than last time. NULL gives zeros. */
halo_status hl_cuda_record(hl_cuda_device *dev, const halo_step_record *record, const halo_step_record **out);

/* ------------------------------------------------------------------------------------------------------------ geometry */

/* Strides in n c d h w order; false for channel-blocked layouts, which only copies know. */
bool hl_cuda_strides(const halo_operand *op, int64_t s[HALO_DIMS]);
/* Element of the allocation where the box begins. */
int64_t hl_cuda_first(const halo_operand *op);
bool hl_cuda_view(const halo_operand *op, hl_view *v);
/* Cells of `ext`, ordered as operand 0 lies in memory. */
void hl_cuda_cells(const int64_t ext[HALO_DIMS], const int64_t *const *stride, int operands, hl_cells *c);
/* For kernels that go by coordinates: neighbours in memory are neighbours in number, w fastest, or c where the layout has channels last. */
void hl_cuda_places(halo_layout layout, const int64_t ext[HALO_DIMS], hl_cells *c);
/* Of the box of op[0], for operands of equal extents; false when one is channel-blocked. */
bool hl_cuda_cells_of(const halo_operand *const *op, int operands, hl_cells *c);
extern const int64_t hl_cuda_channel[HALO_DIMS], hl_cuda_sample[HALO_DIMS];

/* --------------------------------------------------------------------------------------------------------------- plans */

/* Every plan of this backend begins with it; `at` is the byte where each operand's box begins in its allocation. */
typedef struct hl_cuda_plan {
    hl_cuda_device *dev;
    halo_op_desc d;
    size_t at[HALO_ROLES];
} hl_cuda_plan;

halo_status hl_cuda_plan_new(halo_device *dev, const halo_op_desc *desc, size_t size, void *plan);
/* Enough for a plan that has nothing of its own. */
halo_status hl_cuda_plan_plain(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan);
void hl_cuda_plan_free(halo_plan *plan);

/* Address of the first cell of a role's box, NULL where the role is absent. */
void *hl_cuda_ptr(const hl_cuda_plan *p, const halo_op_args *args, halo_role role);

static inline bool hl_has(const halo_op_desc *d, halo_role role) { return d->t[role].dtype != HALO_NONE; }
/* Activations: present, valid, f32 or a 16-bit type, not channel-blocked. */
bool hl_cuda_activation(const halo_op_desc *d, halo_role role);
/* The same, with type and extents of `like`; absent is good, too, when `optional`. */
bool hl_cuda_like(const halo_op_desc *d, halo_role role, halo_role like, bool optional);
/* Dense vectors: absent where optional, or valid and of that type. */
bool hl_cuda_vector(const halo_op_desc *d, halo_role role, halo_dtype type, bool optional);
/* Weights, biases and their gradients: f32, or of the activations' type. */
bool hl_cuda_parameters(const halo_op_desc *d, halo_role role, halo_dtype type, bool optional);
/* One candidate; returns 1. */
int hl_cuda_offer(const char *impl, size_t scratch, halo_candidate *out);

#define HL_CUDA_CLASS(name, op_kind, candidates_fn, plan_fn, run_fn)                                         \
    const halo_op_class name = {                                                                             \
        .kind = op_kind, .candidates = candidates_fn, .plan = plan_fn, .run = run_fn, .destroy = hl_cuda_plan_free}

extern const halo_op_class hl_cuda_conv_image, hl_cuda_conv_fwd, hl_cuda_conv_bwd_data, hl_cuda_conv_bwd_weights, hl_cuda_bias_bwd;
extern const halo_op_class hl_cuda_pool_fwd, hl_cuda_pool_bwd, hl_cuda_conv_pool_fwd, hl_cuda_act_pool_bwd;
extern const halo_op_class hl_cuda_norm_stats, hl_cuda_norm_apply, hl_cuda_norm_bwd_stats, hl_cuda_norm_bwd_apply;
extern const halo_op_class hl_cuda_act_fwd, hl_cuda_act_bwd, hl_cuda_add, hl_cuda_dropout;
extern const halo_op_class hl_cuda_copy, hl_cuda_cast, hl_cuda_margin, hl_cuda_flatten, hl_cuda_unflatten;
extern const halo_op_class hl_cuda_linear_fwd, hl_cuda_linear_bwd_data, hl_cuda_linear_bwd_weights;
extern const halo_op_class hl_cuda_loss, hl_cuda_loss_sums_class, hl_cuda_sumsq, hl_cuda_decide, hl_cuda_norm_merge, hl_cuda_update;
extern const halo_op_class hl_cuda_upsample_fwd, hl_cuda_upsample_bwd, hl_cuda_prepare;

/* Between two boxes of equal extents, any types and layouts (copy.c). */
struct hl_copying hl_cuda_copying(const halo_operand *from, const halo_operand *to);

/* loss.c's and linear.c's: the features of a sample as one dimension; false where they are no single run. *step: elements between neighbours. */
bool hl_cuda_features(const halo_operand *op, int64_t *count, int64_t *step, int64_t *row);

#endif
