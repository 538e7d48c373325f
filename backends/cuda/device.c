/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the cuda device: opening, describing, closing; failing calls of the vendor's libraries; what all plans share. */
#include "conv.h"
#include "kernels.h"

#include <stdio.h>

/* After these nothing that this process asks of the device works any more. */
static bool breaks(cudaError_t e)
{
    return e == cudaErrorECCUncorrectable || e == cudaErrorIllegalAddress || e == cudaErrorLaunchTimeout || e == cudaErrorAssert || (e >= cudaErrorHardwareStackError && e <= cudaErrorLaunchFailure);
}

halo_status hl_call_failed(const hl_cuda_device *dev, halo_status status, const char *call, const char *why)
{
    if (dev->broken) return status;
    const int to = (int)strcspn(call, "(");
    int from = to;
    while (from > 0 && call[from - 1] != ' ') from--;
    return hl_fail(dev->super.ctx, status, "cuda device %d: %.*s: %s", dev->index, to - from, call + from, why);
}

halo_status hl_cuda_failed(hl_cuda_device *dev, const char *call, cudaError_t e)
{
    cudaGetLastError(); /* not again at the next launch */
    char why[256];
    snprintf(why, sizeof(why), "%.200s%s", cudaGetErrorString(e), breaks(e) ? ", of something that was put on it before" : "");
    const halo_status st = hl_call_failed(dev, e == cudaErrorMemoryAllocation ? HALO_ERR_NOMEM : HALO_ERR_DEVICE, call, why);
    dev->broken = dev->broken || breaks(e);
    return st;
}

halo_status hl_dnn_failed(const hl_cuda_device *dev, const char *call, cudnnStatus_t e) { return hl_call_failed(dev, HALO_ERR_DEVICE, call, cudnnGetErrorString(e)); }

halo_status hl_blas_failed(const hl_cuda_device *dev, const char *call, cublasStatus_t e)
{
    static const struct {
        cublasStatus_t status;
        const char *name;
    } known[] = {{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"}, {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED"},
                 {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},     {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH"},
                 {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"}, {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR"},
                 {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"}};
    char number[32];
    snprintf(number, sizeof(number), "cuBLAS status %d", (int)e);
    for (size_t i = 0; i < HL_COUNT(known); i++)
        if (known[i].status == e) return hl_call_failed(dev, HALO_ERR_DEVICE, call, known[i].name);
    return hl_call_failed(dev, HALO_ERR_DEVICE, call, number);
}

halo_status hl_cuda_here(hl_cuda_device *dev)
{
    HL_CUDA(dev, cudaSetDevice(dev->index));
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------------------- plans */

halo_status hl_cuda_plan_new(halo_device *dev, const halo_op_desc *desc, size_t size, void *plan)
{
    hl_cuda_plan *p;
    HL_TRY(hl_calloc(dev->ctx, 1, size, "a plan", &p));
    p->dev = hl_cuda(dev);
    p->d = *desc;
    for (int i = 0; i < HALO_ROLES; i++)
        if (desc->t[i].dtype != HALO_NONE) p->at[i] = (size_t)hl_cuda_first(&desc->t[i]) * hl_dtype_size(desc->t[i].dtype);
    memcpy(plan, &p, sizeof(p));
    return HALO_OK;
}

halo_status hl_cuda_plan_plain(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    hl_cuda_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, desc, sizeof(*p), &p));
    *plan = (halo_plan *)p;
    return HALO_OK;
}

void hl_cuda_plan_free(halo_plan *plan) { free(plan); }

void *hl_cuda_ptr(const hl_cuda_plan *p, const halo_op_args *args, halo_role role)
{
    return hl_has(&p->d, role) ? (char *)args->ptr[role] + p->at[role] : NULL;
}

bool hl_cuda_activation(const halo_op_desc *d, halo_role role)
{
    const halo_operand *o = &d->t[role];
    return (o->dtype == HALO_F32 || o->dtype == HALO_F16 || o->dtype == HALO_BF16) && hl_operand_valid(o) && hl_layout_block(o->layout) == 1;
}

bool hl_cuda_like(const halo_op_desc *d, halo_role role, halo_role like, bool optional)
{
    if (!hl_has(d, role)) return optional;
    return hl_cuda_activation(d, role) && d->t[role].dtype == d->t[like].dtype && hl_same_extents(&d->t[role], &d->t[like]);
}

bool hl_cuda_vector(const halo_op_desc *d, halo_role role, halo_dtype type, bool optional)
{
    if (!hl_has(d, role)) return optional;
    return d->t[role].dtype == type && hl_operand_valid(&d->t[role]);
}

bool hl_cuda_parameters(const halo_op_desc *d, halo_role role, halo_dtype type, bool optional)
{
    return hl_cuda_vector(d, role, HALO_F32, optional) || hl_cuda_vector(d, role, type, optional);
}

int hl_cuda_offer(const char *impl, size_t scratch, halo_candidate *out)
{
    *out = (halo_candidate){.scratch = scratch, .items = 1};
    snprintf(out->impl, sizeof(out->impl), "%s", impl);
    return 1;
}

const halo_op_class *const hl_cuda_classes[HALO_OP_KINDS] = {
    [HALO_OP_CONV_FWD] = &hl_cuda_conv_fwd,
    [HALO_OP_CONV_BWD_DATA] = &hl_cuda_conv_bwd_data,
    [HALO_OP_CONV_BWD_WEIGHTS] = &hl_cuda_conv_bwd_weights,
    [HALO_OP_CONV_IMAGE] = &hl_cuda_conv_image,
    [HALO_OP_POOL_FWD] = &hl_cuda_pool_fwd,
    [HALO_OP_POOL_BWD] = &hl_cuda_pool_bwd,
    [HALO_OP_NORM_STATS] = &hl_cuda_norm_stats,
    [HALO_OP_NORM_APPLY] = &hl_cuda_norm_apply,
    [HALO_OP_NORM_BWD_STATS] = &hl_cuda_norm_bwd_stats,
    [HALO_OP_NORM_BWD_APPLY] = &hl_cuda_norm_bwd_apply,
    [HALO_OP_ACT_FWD] = &hl_cuda_act_fwd,
    [HALO_OP_ACT_BWD] = &hl_cuda_act_bwd,
    [HALO_OP_ADD] = &hl_cuda_add,
    [HALO_OP_COPY] = &hl_cuda_copy,
    [HALO_OP_MARGIN] = &hl_cuda_margin,
    [HALO_OP_FLATTEN] = &hl_cuda_flatten,
    [HALO_OP_UNFLATTEN] = &hl_cuda_unflatten,
    [HALO_OP_LINEAR_FWD] = &hl_cuda_linear_fwd,
    [HALO_OP_LINEAR_BWD_DATA] = &hl_cuda_linear_bwd_data,
    [HALO_OP_LINEAR_BWD_WEIGHTS] = &hl_cuda_linear_bwd_weights,
    [HALO_OP_DROPOUT] = &hl_cuda_dropout,
    [HALO_OP_LOSS] = &hl_cuda_loss,
    [HALO_OP_LOSS_SUMS] = &hl_cuda_loss_sums_class,
    [HALO_OP_UPSAMPLE_FWD] = &hl_cuda_upsample_fwd,
    [HALO_OP_UPSAMPLE_BWD] = &hl_cuda_upsample_bwd,
    [HALO_OP_PREPARE] = &hl_cuda_prepare,
    [HALO_OP_SUMSQ] = &hl_cuda_sumsq,
    [HALO_OP_DECIDE] = &hl_cuda_decide,
    [HALO_OP_NORM_MERGE] = &hl_cuda_norm_merge,
    [HALO_OP_UPDATE] = &hl_cuda_update,
    [HALO_OP_CAST] = &hl_cuda_cast,
    [HALO_OP_BIAS_BWD] = &hl_cuda_bias_bwd,
    [HALO_OP_CONV_POOL_FWD] = &hl_cuda_conv_pool_fwd,
    [HALO_OP_ACT_POOL_BWD] = &hl_cuda_act_pool_bwd,
};

/* -------------------------------------------------------------------------------------------------------------- device */

static const char *precision_of(const hl_cuda_device *dev)
{
    const halo_dtype type = dev->super.compute;
    return type == HALO_F16 ? ", f16" : type == HALO_BF16 ? ", bf16" : dev->tf32 ? ", tf32" : "";
}

static void enter(halo_device *dev) { cudaSetDevice(hl_cuda(dev)->index); }

static void describe(halo_device *device, halo_device_info *info)
{
    const hl_cuda_device *dev = hl_cuda(device);
    *info = (halo_device_info){.threads = 1};
    /* Measured choices are kept under this name: it has all that they depend on */
    char dnn[24];
    hl_cuda_dnn_version(dnn, sizeof(dnn));
    snprintf(info->name, sizeof(info->name), "cuda %.60s, sm_%d%d, cuDNN %s%s%s", dev->name, dev->major, dev->minor, dnn, precision_of(dev), dev->any_order ? ", any order" : "");
    hl_cuda_libraries(info->details, sizeof(info->details));
    snprintf(info->isa, sizeof(info->isa), "sm_%d%d", dev->major, dev->minor);
    snprintf(info->placement, sizeof(info->placement), "device %d of this process", dev->index);
    cudaSetDevice(dev->index);
    if (cudaMemGetInfo(&info->memory_free, &info->memory_total) != cudaSuccess) info->memory_free = info->memory_total = 0;
}

static void close_device(halo_device *device)
{
    hl_cuda_device *dev = hl_cuda(device);
    if (!dev) return;
    cudaSetDevice(dev->index);
    if (dev->compute) cudaStreamSynchronize(dev->compute);
    if (dev->copies) cudaStreamSynchronize(dev->copies);
    hl_conv_graphs_free(dev);
    if (dev->dnn) cudnnDestroy(dev->dnn);
    if (dev->blas) cublasDestroy(dev->blas);
    if (dev->blas_workspace) cudaFree(dev->blas_workspace);
    if (dev->record) cudaFree(dev->record);
    hl_cuda_stages_free(dev);
    if (dev->computed) cudaEventDestroy(dev->computed);
    if (dev->copied) cudaEventDestroy(dev->copied);
    if (dev->compute) cudaStreamDestroy(dev->compute);
    if (dev->copies) cudaStreamDestroy(dev->copies);
    free(dev);
}

static const halo_device_ops device_ops = {
    .alloc = hl_cuda_alloc,
    .release = hl_cuda_release,
    .upload = hl_cuda_upload,
    .download = hl_cuda_download,
    .copy = hl_cuda_copy_bytes,
    .fill = hl_cuda_fill,
    .wait = hl_cuda_wait,
    .enter = enter,
    .leave = enter,
    .describe = describe,
    .limits = hl_cuda_limits,
    .close = close_device,
    .record = hl_cuda_record_begin,
    .stop = hl_cuda_record_end,
    .replay = hl_cuda_replay,
    .forget = hl_cuda_forget,
    .queue = hl_cuda_queue,
    .unqueue = hl_cuda_unqueue,
    .follow = hl_cuda_queue_follow,
    .done = hl_cuda_queue_done,
    .pin = hl_cuda_pin,
    .unpin = hl_cuda_unpin,
#ifdef HL_HAVE_NCCL
    .link_id = hl_cuda_link_id,
    .link = hl_cuda_link,
    .link_sum = hl_cuda_link_sum,
    .link_scatter = hl_cuda_link_scatter,
    .link_gather = hl_cuda_link_gather,
    .link_move = hl_cuda_link_move,
    .unlink = hl_cuda_unlink,
#endif
};

/* Tensor cores take operands with channels last as they lie; f32 without them is at home in the plain order. */
static const halo_layout plain_layouts[] = {HALO_NCDHW, HALO_LAYOUTS}, core_layouts[] = {HALO_NDHWC, HALO_NCDHW, HALO_LAYOUTS};

/* A rank takes the device of its number on the node; launchers say it in variables of their own. */
static int rank_on_node(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
    for (size_t i = 0; i < HL_COUNT(variables); i++) {
        const char *text = getenv(variables[i]);
        if (text && *text >= '0' && *text <= '9') return (int)strtol(text, NULL, 10);
    }
    return 0;
}

/* Bytes that cuBLAS may use, ours, so that it allocates nothing within a step. */
enum { BLAS_WORKSPACE = 32 << 20 };

static halo_status make_handles(hl_cuda_device *dev)
{
    HL_CUDA(dev, cudaStreamCreateWithFlags(&dev->compute, cudaStreamNonBlocking));
    HL_CUDA(dev, cudaStreamCreateWithFlags(&dev->copies, cudaStreamNonBlocking));
    HL_CUDA(dev, cudaEventCreateWithFlags(&dev->computed, cudaEventDisableTiming));
    HL_CUDA(dev, cudaEventCreateWithFlags(&dev->copied, cudaEventDisableTiming));
    HL_TRY(hl_cuda_alloc(&dev->super, sizeof(*dev->record), (void **)&dev->record));
    HL_TRY(hl_cuda_stages_make(dev));
    HL_DNN(dev, cudnnCreate(&dev->dnn));
    HL_DNN(dev, cudnnSetStream(dev->dnn, dev->compute));
    HL_BLAS(dev, cublasCreate(&dev->blas));
    HL_BLAS(dev, cublasSetStream(dev->blas, dev->compute));
    HL_TRY(hl_cuda_alloc(&dev->super, BLAS_WORKSPACE, &dev->blas_workspace));
    HL_BLAS(dev, cublasSetWorkspace(dev->blas, dev->blas_workspace, BLAS_WORKSPACE));
    HL_BLAS(dev, cublasSetMathMode(dev->blas, dev->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    return HALO_OK;
}

/* Tests lower the size from which a convolution is done in parts. */
static int64_t most_elements(void)
{
    const char *text = getenv("HALO_TEST_CUDA_ELEMENTS");
    int64_t n = text ? strtoll(text, NULL, 10) : 0;
    return n > 0 ? n : INT32_MAX;
}

enum { WORKSPACE_SHARE = 8 }; /* of the device's memory */

/* What tensor cores know came with Ampere; f16 is older. */
static halo_status examine_precision(const hl_cuda_device *dev)
{
    const bool bf16 = dev->super.compute == HALO_BF16;
    if (dev->major >= 8 || !(bf16 || dev->tf32)) return HALO_OK;
    return hl_fail(dev->super.ctx, HALO_ERR_UNSUPPORTED, "device %d (%s) is sm_%d%d and has no %s: it came with sm_80; take f16 or f32", dev->index, dev->name, dev->major, dev->minor,
                   bf16 ? "bf16" : "tf32");
}

static halo_status open_device(halo_context *ctx, const halo_device_options *options, halo_device **out)
{
    int devices;
    hl_cuda_device *dev;
    if (options && options->compute == HALO_F64) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the cuda backend computes in f32: double precision is what backend 'ref' is for");
    if (options && options->isa && *options->isa)
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the cuda backend has no instruction set '%s' to choose", options->isa);
    const halo_dtype compute = options && options->compute != HALO_NONE ? options->compute : HALO_F32;
    if (compute != HALO_F32 && compute != HALO_F16 && compute != HALO_BF16)
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the cuda backend computes in f32, f16 or bf16, not in %s", hl_dtype_name(compute));
    HL_TRY(hl_cuda_examine(ctx, &devices));
    HL_TRY(hl_calloc(ctx, 1, sizeof(*dev), "a device", &dev));
    dev->super = (halo_device){.ops = &device_ops, .classes = hl_cuda_classes, .ctx = ctx, .compute = compute, .master = HALO_F32, .cuda = true, .layouts = plain_layouts};
    dev->index = rank_on_node() % devices;
    dev->most_elements = most_elements();
    dev->tf32 = options && options->tf32;
    if (compute != HALO_F32 || dev->tf32) dev->super.layouts = core_layouts;
    dev->any_order = options && options->any_order;
    halo_status st = HALO_OK;
    size_t free_bytes, total;
    HL_GOTO(st, hl_cuda_examine_device(ctx, dev->index, &dev->major, &dev->minor, dev->name, sizeof(dev->name)), close);
    HL_GOTO(st, examine_precision(dev), close);
    HL_GOTO(st, hl_cuda_here(dev), close);
    HL_GOTO(st, make_handles(dev), close);
    dev->workspace = cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? total / WORKSPACE_SHARE : 0;
    *out = &dev->super;
    return HALO_OK;
close:
    close_device(&dev->super);
    return st;
}

static const halo_backend backend = {
    .abi = HALO_BACKEND_ABI,
    .name = "cuda",
    .summary = "cuDNN, cuBLAS and own kernels on NVIDIA devices",
    .open = open_device,
};

const halo_backend *hl_backend_cuda(void) { return &backend; }

/* The one symbol of a module. */
HALO_API const halo_backend *halo_backend_entry(void);
const halo_backend *halo_backend_entry(void) { return &backend; }
