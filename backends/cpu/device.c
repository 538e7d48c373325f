/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the cpu device: copies, order (everything is done when a call returns), and opening. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpu.h"
#include "classes.h"
#include "base/context.h"
#include "base/topology.h"

#include <stdio.h>

static halo_status cpu_copy(halo_device *device, void *dst, const void *src, size_t bytes, halo_queue *queue)
{
    hl_cpu_device *dev = hl_cpu(device);
    (void)queue;
    int parts = bytes < HL_LARGE ? 1 : dev->threads;
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int t = 0; t < parts; t++) {
        hl_range r = hl_block_range((int64_t)bytes, parts, t);
        memcpy((char *)dst + r.lo, (const char *)src + r.lo, (size_t)(r.hi - r.lo));
    }
    return HALO_OK;
}

static halo_status cpu_fill(halo_device *device, void *dst, int byte, size_t bytes, halo_queue *queue)
{
    hl_cpu_device *dev = hl_cpu(device);
    (void)queue;
    int parts = bytes < HL_LARGE ? 1 : dev->threads;
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int t = 0; t < parts; t++) {
        hl_range r = hl_block_range((int64_t)bytes, parts, t);
        memset((char *)dst + r.lo, byte, (size_t)(r.hi - r.lo));
    }
    return HALO_OK;
}

static halo_status cpu_wait(halo_device *dev, halo_queue *queue)
{
    (void)dev;
    (void)queue;
    return HALO_OK;
}

static void cpu_describe(halo_device *device, halo_device_info *info)
{
    const hl_cpu_device *dev = hl_cpu(device);
    *info = (halo_device_info){.threads = dev->threads};
    snprintf(info->name, sizeof(info->name), "cpu %s, %d thread%s", hl_isa_name(dev->isa), dev->threads, dev->threads > 1 ? "s" : "");
    /* part of the name, since measured choices are kept by it: those of fewer candidates are not for more */
    if (dev->winograd) snprintf(info->name + strlen(info->name), sizeof(info->name) - strlen(info->name), ", Winograd F(%d)", abs(dev->winograd));
    hl_cpu_libraries(info->details, sizeof(info->details));
    snprintf(info->placement, sizeof(info->placement), "%s%s", dev->placement,
             dev->fast_memory ? "; large arrays in memory of high bandwidth" : "");
    snprintf(info->isa, sizeof(info->isa), "%s", hl_isa_name(dev->isa));
    size_t used = hl_rss_bytes();
    info->memory_total = hl_memory_limit();
    info->memory_free = info->memory_total > used ? info->memory_total - used : 0;
}

static void cpu_close(halo_device *device)
{
    if (!device) return;
    hl_seats_free(hl_cpu(device)->seats);
    free(hl_cpu(device)->modes);
    free(device);
}

static void *cpu_mpi_pointer(halo_device *dev, void *ptr)
{
    (void)dev;
    return ptr;
}

static const halo_device_ops cpu_ops = {
    .alloc = hl_cpu_alloc,
    .release = hl_cpu_release,
    .upload = hl_cpu_upload,
    .download = hl_cpu_download,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .wait = cpu_wait,
    .enter = hl_cpu_enter,
    .leave = hl_cpu_leave,
    .describe = cpu_describe,
    .close = cpu_close,
    .mpi_pointer = cpu_mpi_pointer,
    .limits = hl_cpu_limits,
};

/* The vector width of the machine first: a channel block is then one register. */
static const halo_layout wide_layouts[] = {HALO_NCDHW16C, HALO_NCDHW8C, HALO_NDHWC, HALO_NCDHW, HALO_LAYOUTS};
static const halo_layout narrow_layouts[] = {HALO_NCDHW8C, HALO_NCDHW16C, HALO_NDHWC, HALO_NCDHW, HALO_LAYOUTS};

enum { MOST_THREADS = 4096 };

static halo_status cpu_open(halo_context *ctx, const halo_device_options *options, halo_device **out)
{
    const halo_device_options defaults = {0};
    if (!options) options = &defaults;
    if (options->compute == HALO_F64) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the cpu backend computes in f32, f16 and bf16: double precision is what backend 'ref' is for");
    const char *isa_name = options->isa ? options->isa : ctx ? ctx->isa : NULL;
    int threads = options->threads > 0 ? options->threads : ctx ? ctx->threads : hl_default_threads();
    hl_isa isa;
    if (threads < 1 || threads > MOST_THREADS)
        return hl_fail(ctx, HALO_ERR_USAGE, "threads is %d, must be 1 to %d", threads, MOST_THREADS);
    HL_TRY(hl_isa_choose(ctx, isa_name, &isa));
    hl_cpu_device *dev;
    unsigned *modes;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*dev), "a device", &dev));
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_calloc(ctx, (size_t)threads, sizeof(*modes), "a device", &modes), free_dev);
    *dev = (hl_cpu_device){
        .super = {.ops = &cpu_ops,
                  .classes = hl_cpu_classes,
                  .ctx = ctx,
                  .compute = options->compute ? options->compute : HALO_F32,
                  .master = HALO_F32,
                  .layouts = isa == HL_ISA_AVX512F ? wide_layouts : narrow_layouts,
                  .wants_margins = true},
        .threads = threads,
        .isa = isa,
        .winograd = options->winograd,
        .kern = hl_cpu_kern(isa),
        .modes = modes,
        .fast_memory = hl_has_fast_memory(),
    };
    HL_GOTO(st, hl_seats_make(ctx, threads, dev->placement, sizeof(dev->placement), &dev->seats), free_modes);
    *out = &dev->super;
    return HALO_OK;
free_modes:
    free(modes);
free_dev:
    free(dev);
    return st;
}

static const halo_backend cpu_backend = {
    .abi = HALO_BACKEND_ABI,
    .name = "cpu",
    .summary = "own kernels (generic, AVX2, AVX-512F), oneDNN and CBLAS, OpenMP threads",
    .open = cpu_open,
};

const halo_backend *hl_backend_cpu(void) { return &cpu_backend; }
