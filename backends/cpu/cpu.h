/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h -- the inside of the cpu backend: its device, the instruction sets its kernels are compiled for, and how work is dealt to threads.
 *
 * Threads: every parallel region is `#pragma omp parallel num_threads(dev->threads)`, so that one OpenMP pool serves the backend's own kernels,
 * CBLAS and oneDNN. Work is dealt by the pure function hl_block_range, never dynamically where a result depends on who did what: equal thread
 * counts give equal bits.
 */
#ifndef HL_CPU_H
#define HL_CPU_H

#include "backends/cpu/isa.h"
#include "tensor/block.h"
#include "tensor/operand.h"

struct hl_kern; /* kern/pointwise.h */

typedef struct hl_cpu_device {
    halo_device super;
    int threads;
    hl_isa isa;
    const struct hl_kern *kern; /* pointwise kernels of `isa` */
    int winograd;               /* largest F(m, 3) on offer: 0, 2, 4; negative: even where it cannot pay */
    int entered;                /* depth of enter/leave */
    unsigned *modes;            /* [threads] floating-point control of each thread before enter */
    struct hl_seats *seats;     /* where the threads sit; NULL: where the system puts them */
    char placement[256];        /* the same in words */
    bool fast_memory;           /* there is memory of high bandwidth, and a way to get it */
    struct hl_fast_block *fast; /* what is had of it */
} hl_cpu_device;

static inline hl_cpu_device *hl_cpu(halo_device *dev) { return (hl_cpu_device *)dev; }

const halo_backend *hl_backend_cpu(void);

/* mode.c: flush-to-zero and denormals-are-zero in every thread of the team, each in its place; leave restores what each thread had. May nest. */
void hl_cpu_enter(halo_device *dev);
void hl_cpu_leave(halo_device *dev);

/* bind.c: places of the threads by ctx->bind ("" = auto, none, cores), NULL where they are not to be bound; the decision in words. */
typedef struct hl_seats hl_seats;
halo_status hl_seats_make(halo_context *ctx, int threads, char *words, size_t size, hl_seats **out);
void hl_seats_free(hl_seats *s);
/* By each thread of a team for itself: to its place, and back to where it might be before. Nothing where seats is NULL. */
void hl_seat_take(hl_seats *s, int thread);
void hl_seat_leave(hl_seats *s, int thread);

/* memory.c: as in halo_device_ops. */
enum { HL_LARGE = 4 << 20 }; /* bytes from which it is worth to ask all threads */
bool hl_has_fast_memory(void);
halo_status hl_cpu_alloc(halo_device *dev, size_t bytes, void **ptr);
void hl_cpu_release(halo_device *dev, void *ptr);

/* transfer.c: as in halo_device_ops. */
halo_status hl_cpu_upload(halo_device *dev, const halo_operand *op, void *ptr, halo_dtype host_dtype, const void *host);
halo_status hl_cpu_download(halo_device *dev, const halo_operand *op, const void *ptr, halo_dtype host_dtype, void *host);

/* limits.c: as in halo_device_ops. */
halo_status hl_cpu_limits(halo_device *dev, int64_t n, int repetitions, double *gemm_gflops, double *stream_gbs);

/* CBLAS on the device's threads, whatever the caller's OpenMP default is: old = hl_blas_enter(dev); cblas_...; hl_blas_leave(old). */
int hl_blas_enter(const hl_cpu_device *dev);
void hl_blas_leave(int old);

/* ------------------------------------------------------------------------------------------------------ operations */

/* Every plan of this backend begins with it. */
typedef struct hl_cpu_plan {
    hl_cpu_device *dev;
    halo_op_desc d;
} hl_cpu_plan;

/* Zeroed plan of `size` bytes that begins with a hl_cpu_plan. hl_cpu_plan_free frees it: enough for a plan that owns nothing else. */
halo_status hl_cpu_plan_new(halo_device *dev, const halo_op_desc *desc, size_t size, void *plan);
halo_status hl_cpu_plan_plain(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan);
void hl_cpu_plan_free(halo_plan *plan);

/* "act:avx2" and the like into a candidate, all else zero; `items` independent pieces of work, equal ones. Returns 1, the number of candidates. */
int hl_cpu_candidate(halo_device *dev, const char *algorithm, double items, halo_candidate *out);
/* The same for pointwise work on `elements`, cut into hl_parts. */
int hl_cpu_pointwise(halo_device *dev, const char *algorithm, int64_t elements, halo_candidate *out);

/* share.c: the best efficiency, work / (threads x the most that one gets), of items that threads take in order as they become free. 0: no memory. */
double hl_share(int threads, int64_t items, double (*work)(const void *arg, int64_t item), const void *arg);

static inline bool hl_has(const halo_op_desc *d, halo_role role) { return d->t[role].dtype != HALO_NONE; }
/* Present, valid, f32. */
static inline bool hl_has_f32(const halo_op_desc *d, halo_role role)
{
    return d->t[role].dtype == HALO_F32 && hl_operand_valid(&d->t[role]);
}

/* Address of the box's first element; the operand's type must be T. */
#define HL_BOX(T, op, ptr) ((T *)(ptr) + hl_box_offset(op))
int64_t hl_box_offset(const halo_operand *op);

/* Runs part(arg, i) for 0 <= i < parts on the device's threads, contiguous ranges of i per thread. One part runs in the caller. */
void hl_parallel(const hl_cpu_device *dev, int64_t parts, void (*part)(void *arg, int64_t i), void *arg);

/* In how many parts to cut `elements` of pointwise work: as many as threads, none smaller than some thousands. */
int64_t hl_parts(const hl_cpu_device *dev, int64_t elements);
double hl_items(int64_t elements); /* how many there could be */

#endif
