/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the reference backend's device: host memory, one thread, no queue; and what all its operation classes share. */
#include "ref.h"

#include <stdio.h>

/* ---------------------------------------------------------------------------------------------------------- classes */

int64_t hl_ref_room(int64_t a, int64_t b, int64_t c)
{
    int64_t product, sum;
    if (a < 0 || b < 0 || c < 0 || !hl_mul64(a, b, &product) || !hl_add64(product, c, &sum)) return -1;
    return sum;
}

int hl_ref_offer(int64_t doubles, halo_candidate *out)
{
    int64_t bytes;
    if (doubles < 0 || !hl_mul64(doubles, (int64_t)sizeof(double), &bytes)) return 0;
    *out = (halo_candidate){.impl = "ref", .reference = true, .scratch = (size_t)bytes, .items = 1};
    return 1;
}

bool hl_ref_have(const halo_op_desc *d, const halo_role *roles)
{
    for (; *roles != HALO_ROLES; roles++)
        if (!hl_operand_valid(&d->t[*roles])) return false;
    return true;
}

bool hl_ref_like(const halo_operand *op, const halo_operand *like)
{
    return op->dtype == HALO_NONE || (hl_operand_valid(op) && hl_same_extents(op, like));
}

halo_status hl_ref_plan(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    (void)choice;
    halo_plan *p;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "a plan", &p));
    p->d = *desc;
    *plan = p;
    return HALO_OK;
}

void hl_ref_destroy(halo_plan *plan) { free(plan); }

static const halo_op_class *const classes[HALO_OP_KINDS] = {
    [HALO_OP_CONV_FWD] = &hl_ref_conv_fwd,
    [HALO_OP_CONV_BWD_DATA] = &hl_ref_conv_bwd_data,
    [HALO_OP_CONV_BWD_WEIGHTS] = &hl_ref_conv_bwd_weights,
    [HALO_OP_CONV_IMAGE] = &hl_ref_conv_image,
    [HALO_OP_POOL_FWD] = &hl_ref_pool_fwd,
    [HALO_OP_POOL_BWD] = &hl_ref_pool_bwd,
    [HALO_OP_NORM_STATS] = &hl_ref_norm_stats,
    [HALO_OP_NORM_APPLY] = &hl_ref_norm_apply,
    [HALO_OP_NORM_BWD_STATS] = &hl_ref_norm_bwd_stats,
    [HALO_OP_NORM_BWD_APPLY] = &hl_ref_norm_bwd_apply,
    [HALO_OP_ACT_FWD] = &hl_ref_act_fwd,
    [HALO_OP_ACT_BWD] = &hl_ref_act_bwd,
    [HALO_OP_ADD] = &hl_ref_add,
    [HALO_OP_COPY] = &hl_ref_copy,
    [HALO_OP_MARGIN] = &hl_ref_margin,
    [HALO_OP_FLATTEN] = &hl_ref_flatten,
    [HALO_OP_UNFLATTEN] = &hl_ref_unflatten,
    [HALO_OP_LINEAR_FWD] = &hl_ref_linear_fwd,
    [HALO_OP_LINEAR_BWD_DATA] = &hl_ref_linear_bwd_data,
    [HALO_OP_LINEAR_BWD_WEIGHTS] = &hl_ref_linear_bwd_weights,
    [HALO_OP_DROPOUT] = &hl_ref_dropout,
    [HALO_OP_LOSS] = &hl_ref_loss,
    [HALO_OP_SUMSQ] = &hl_ref_sumsq,
    [HALO_OP_DECIDE] = &hl_ref_decide,
    [HALO_OP_NORM_MERGE] = &hl_ref_norm_merge,
    [HALO_OP_UPDATE] = &hl_ref_update,
    [HALO_OP_CAST] = &hl_ref_cast,
    [HALO_OP_BIAS_BWD] = &hl_ref_bias_bwd,
    [HALO_OP_CONV_POOL_FWD] = &hl_ref_conv_pool_fwd,
    [HALO_OP_ACT_POOL_BWD] = &hl_ref_act_pool_bwd,
    [HALO_OP_LOSS_SUMS] = &hl_ref_loss_sums,
    [HALO_OP_UPSAMPLE_FWD] = &hl_ref_upsample_fwd,
    [HALO_OP_UPSAMPLE_BWD] = &hl_ref_upsample_bwd,
    [HALO_OP_PREPARE] = &hl_ref_prepare,
};

/* ----------------------------------------------------------------------------------------------------------- device */

static halo_status device_alloc(halo_device *dev, size_t bytes, void **ptr)
{
    return hl_aligned(dev->ctx, bytes, "a buffer", ptr);
}

static void device_release(halo_device *dev, void *ptr)
{
    (void)dev;
    free(ptr);
}

/* Lanes behind the allocation's last channel, at the cells of the box. */
static void clear_lanes(const hl_ref_view *v)
{
    const halo_operand *op = v->op;
    int64_t lanes = hl_round_up(op->alloc[HALO_C], hl_layout_block(op->layout)) - op->alloc[HALO_C];
    if (lanes == 0 || op->lo[HALO_C] + op->ext[HALO_C] != op->alloc[HALO_C]) return;
    double zero[REF_ROW] = {0};
    for (hl_ref_row r = hl_ref_rows_of(op, 0, op->ext[HALO_N], op->ext[HALO_C], lanes); hl_ref_more(&r); hl_ref_next(&r))
        hl_ref_write(v, &r, zero);
}

/* Both are one run of equal elements: bytes will do. */
static bool move_bytes(const hl_ref_view *from, const hl_ref_view *to)
{
    int64_t a, b;
    size_t size = hl_dtype_size(to->op->dtype);
    if (from->op->dtype != to->op->dtype || from->op->layout != to->op->layout ||
        hl_layout_block(to->op->layout) != 1)
        return false;
    if (!hl_operand_dense(from->op, &a) || !hl_operand_dense(to->op, &b)) return false;
    memcpy(to->base + (size_t)b * size, from->base + (size_t)a * size, (size_t)hl_operand_box_elements(to->op) * size);
    return true;
}

/* Box of `from` to the equal box of `to`. */
static void move_rows(const hl_ref_view *from, const hl_ref_view *to)
{
    double row[REF_ROW];
    if (move_bytes(from, to)) return;
    for (hl_ref_row r = hl_ref_rows(to->op); hl_ref_more(&r); hl_ref_next(&r)) {
        hl_ref_read(from, &r, row);
        hl_ref_write(to, &r, row);
    }
}

static halo_status device_upload(halo_device *dev, const halo_operand *op, void *ptr, halo_dtype host_dtype,
                                 const void *host)
{
    (void)dev;
    halo_operand dense = hl_operand_whole(host_dtype, HALO_NCDHW, op->ext);
    char *source;
    memcpy(&source, &host, sizeof(source)); /* a view has one kind of base; this one is only read */
    hl_ref_view from = {&dense, hl_operand_strides(&dense), source}, to = {op, hl_operand_strides(op), ptr};
    move_rows(&from, &to);
    clear_lanes(&to);
    return HALO_OK;
}

static halo_status device_download(halo_device *dev, const halo_operand *op, const void *ptr, halo_dtype host_dtype,
                                   void *host)
{
    (void)dev;
    halo_operand dense = hl_operand_whole(host_dtype, HALO_NCDHW, op->ext);
    char *source;
    memcpy(&source, &ptr, sizeof(source));
    hl_ref_view from = {op, hl_operand_strides(op), source}, to = {&dense, hl_operand_strides(&dense), host};
    move_rows(&from, &to);
    return HALO_OK;
}

static halo_status device_copy(halo_device *dev, void *dst, const void *src, size_t bytes, halo_queue *queue)
{
    (void)dev, (void)queue;
    memmove(dst, src, bytes);
    return HALO_OK;
}

static halo_status device_fill(halo_device *dev, void *dst, int byte, size_t bytes, halo_queue *queue)
{
    (void)dev, (void)queue;
    memset(dst, byte, bytes);
    return HALO_OK;
}

static halo_status device_wait(halo_device *dev, halo_queue *queue)
{
    (void)dev, (void)queue;
    return HALO_OK;
}

static void device_describe(halo_device *dev, halo_device_info *info)
{
    *info = (halo_device_info){.threads = 1};
    snprintf(info->name, sizeof(info->name), "ref %s, 1 thread", hl_dtype_name(dev->compute));
    snprintf(info->details, sizeof(info->details), "plain C loops, sums in f64");
}

static void device_close(halo_device *dev) { free(dev); }

static void *device_mpi_pointer(halo_device *dev, void *ptr)
{
    (void)dev;
    return ptr;
}

static const halo_device_ops device_ops = {
    .alloc = device_alloc,
    .release = device_release,
    .upload = device_upload,
    .download = device_download,
    .copy = device_copy,
    .fill = device_fill,
    .wait = device_wait,
    .describe = device_describe,
    .close = device_close,
    .mpi_pointer = device_mpi_pointer,
};

/* Every layout works; the plain one alone is worth a program's time. */
static const halo_layout layouts[] = {HALO_NCDHW, HALO_LAYOUTS};

static halo_status open_device(halo_context *ctx, const halo_device_options *options, halo_device **dev)
{
    halo_device *p;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*p), "a device", &p));
    p->ops = &device_ops;
    p->classes = classes;
    p->ctx = ctx;
    p->compute = options && options->compute ? options->compute : HALO_F32;
    p->master = p->compute == HALO_F64 ? HALO_F64 : HALO_F32;
    p->layouts = layouts;
    *dev = p;
    return HALO_OK;
}

static const halo_backend backend = {
    .abi = HALO_BACKEND_ABI,
    .name = "ref",
    .summary = "plain C loops in f32 or f64, for checking the others",
    .open = open_device,
};

const halo_backend *hl_backend_ref(void) { return &backend; }
