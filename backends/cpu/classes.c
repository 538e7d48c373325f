/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c -- which operations this build of the cpu backend has. */
#include "classes.h"
#include "conv.h"
#include "kern/kern.h"

#include <stdio.h>
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif
#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

const halo_op_class *const hl_cpu_classes[HALO_OP_KINDS] = {
    [HALO_OP_CONV_FWD] = &hl_cpu_conv_fwd,
    [HALO_OP_CONV_BWD_DATA] = &hl_cpu_conv_bwd_data,
    [HALO_OP_CONV_BWD_WEIGHTS] = &hl_cpu_conv_bwd_weights,
    [HALO_OP_CONV_IMAGE] = &hl_cpu_conv_image,
    [HALO_OP_POOL_FWD] = &hl_cpu_pool_fwd,
    [HALO_OP_POOL_BWD] = &hl_cpu_pool_bwd,
    [HALO_OP_NORM_STATS] = &hl_cpu_norm_stats,
    [HALO_OP_NORM_APPLY] = &hl_cpu_norm_apply,
    [HALO_OP_NORM_BWD_STATS] = &hl_cpu_norm_bwd_stats,
    [HALO_OP_NORM_BWD_APPLY] = &hl_cpu_norm_bwd_apply,
    [HALO_OP_ACT_FWD] = &hl_cpu_act_fwd,
    [HALO_OP_ACT_BWD] = &hl_cpu_act_bwd,
    [HALO_OP_ADD] = &hl_cpu_add,
    [HALO_OP_COPY] = &hl_cpu_copy,
    [HALO_OP_MARGIN] = &hl_cpu_margin,
    [HALO_OP_FLATTEN] = &hl_cpu_flatten,
    [HALO_OP_UNFLATTEN] = &hl_cpu_unflatten,
    [HALO_OP_LINEAR_FWD] = &hl_cpu_linear_fwd,
    [HALO_OP_LINEAR_BWD_DATA] = &hl_cpu_linear_bwd_data,
    [HALO_OP_LINEAR_BWD_WEIGHTS] = &hl_cpu_linear_bwd_weights,
    [HALO_OP_DROPOUT] = &hl_cpu_dropout,
    [HALO_OP_LOSS] = &hl_cpu_loss,
    [HALO_OP_SUMSQ] = &hl_cpu_sumsq,
    [HALO_OP_DECIDE] = &hl_cpu_decide,
    [HALO_OP_NORM_MERGE] = &hl_cpu_norm_merge,
    [HALO_OP_UPDATE] = &hl_cpu_update,
    [HALO_OP_CAST] = &hl_cpu_cast,
    [HALO_OP_BIAS_BWD] = &hl_cpu_bias_bwd,
    [HALO_OP_CONV_POOL_FWD] = &hl_cpu_conv_pool_fwd,
    [HALO_OP_ACT_POOL_BWD] = &hl_cpu_act_pool_bwd,
    [HALO_OP_LOSS_SUMS] = &hl_cpu_loss_sums,
    [HALO_OP_UPSAMPLE_FWD] = &hl_cpu_upsample_fwd,
    [HALO_OP_UPSAMPLE_BWD] = &hl_cpu_upsample_bwd,
    [HALO_OP_PREPARE] = &hl_cpu_prepare,
};

const struct hl_kern *hl_cpu_kern(hl_isa isa)
{
#ifdef HAVE_KERN_AVX512F
    if (isa == HL_ISA_AVX512F) return &hl_avx512f_kern;
#endif
#ifdef HAVE_KERN_AVX2
    if (isa == HL_ISA_AVX2) return &hl_avx2_kern;
#endif
    HL_BUG_UNLESS(isa == HL_ISA_GENERIC);
    return &hl_generic_kern;
}

void hl_cpu_libraries(char *out, size_t size)
{
    char blas[160] = "CBLAS";
#ifdef HAVE_OPENBLAS
    snprintf(blas, sizeof(blas), "%s", openblas_get_config()); /* begins with "OpenBLAS 0.3.21" */
#endif
#ifdef HAVE_ONEDNN
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, size, "%s; oneDNN %d.%d.%d", blas, v->major, v->minor, v->patch);
#else
    snprintf(out, size, "%s; without oneDNN", blas);
#endif
}

int hl_cpu_candidate(halo_device *dev, const char *algorithm, double items, halo_candidate *out)
{
    int threads = hl_cpu(dev)->threads;
    *out = (halo_candidate){.items = items, .efficiency = items / (ceil(items / threads) * threads)};
    snprintf(out->impl, sizeof(out->impl), "%s:%s", algorithm, hl_isa_name(hl_cpu(dev)->isa));
    return 1;
}

halo_status hl_cpu_plan_new(halo_device *dev, const halo_op_desc *desc, size_t size, void *plan)
{
    hl_cpu_plan *p;
    HL_TRY(hl_calloc(dev->ctx, 1, size, "a plan", &p));
    p->dev = hl_cpu(dev);
    p->d = *desc;
    memcpy(plan, &p, sizeof(p));
    return HALO_OK;
}

halo_status hl_cpu_plan_plain(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    hl_cpu_plan *p;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, desc, sizeof(*p), &p));
    *plan = (halo_plan *)p;
    return HALO_OK;
}

void hl_cpu_plan_free(halo_plan *plan) { free(plan); }

int64_t hl_box_offset(const halo_operand *op)
{
    hl_strides t = hl_operand_strides(op);
    return hl_offset(&t, op->lo[HALO_N], op->lo[HALO_C], op->lo[HALO_D], op->lo[HALO_H], op->lo[HALO_W]);
}

void hl_parallel(const hl_cpu_device *dev, int64_t parts, void (*part)(void *arg, int64_t i), void *arg)
{
    (void)dev; /* without OpenMP */
    if (parts == 1) {
        part(arg, 0);
        return;
    }
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < parts; i++) part(arg, i);
}

enum { GRAIN = 8192 };

int64_t hl_parts(const hl_cpu_device *dev, int64_t elements) { return hl_max64(1, hl_min64(dev->threads, elements / GRAIN)); }

int hl_cpu_pointwise(halo_device *dev, const char *algorithm, int64_t elements, halo_candidate *out)
{
    hl_cpu_candidate(dev, algorithm, hl_items(elements), out);
    /* parts differ by less than a cache line's worth */
    out->efficiency = (double)hl_parts(hl_cpu(dev), elements) / hl_cpu(dev)->threads;
    return 1;
}

double hl_items(int64_t elements) { return (double)hl_max64(1, elements / GRAIN); }
