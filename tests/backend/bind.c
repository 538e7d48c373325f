/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c -- where the threads of the cpu backend sit: one core each while they compute and where they were before afterwards; and not at all where
 * somebody else has placed them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "backend/backend.h"
#include "base/context.h"
#include "tests/check.h"
#include "tests/tap.h"

#ifdef _OPENMP
#include <omp.h>
#define MEMBER omp_get_thread_num()
#else
#define MEMBER 0
#endif
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct seating {
    int threads;
    cpu_set_t mask[MOST];
} seating;

static seating look(int threads)
{
    seating s = {.threads = threads};
#pragma omp parallel num_threads(threads)
    if (sched_getaffinity(0, sizeof(s.mask[MEMBER]), &s.mask[MEMBER]) != 0) CPU_ZERO(&s.mask[MEMBER]);
    return s;
}

static bool equal(const seating *a, const seating *b)
{
    for (int t = 0; t < a->threads; t++)
        if (!CPU_EQUAL(&a->mask[t], &b->mask[t])) return false;
    return true;
}

static bool one_core_each(const seating *s)
{
    cpu_set_t seen;
    CPU_ZERO(&seen);
    for (int t = 0; t < s->threads; t++) CPU_OR(&seen, &seen, &s->mask[t]);
    for (int t = 0; t < s->threads; t++)
        if (CPU_COUNT(&s->mask[t]) != 1) return false;
    return CPU_COUNT(&seen) == s->threads;
}

typedef struct wish {
    const char *bind;
    int threads, ranks;
} wish;

/* NULL when it does not open. */
static halo_device *open_device(halo_context **ctx, wish w, halo_device_info *info)
{
    halo_device *dev;
    check_status(NULL, halo_context_create(NULL, ctx), "context");
    snprintf((*ctx)->bind, sizeof((*ctx)->bind), "%s", w.bind);
    (*ctx)->ranks = w.ranks;
    if (hl_device_open(*ctx, "cpu", &(halo_device_options){.threads = w.threads}, &dev) != HALO_OK) return NULL;
    dev->ops->describe(dev, info);
    return dev;
}

static void close_device(halo_context *ctx, halo_device *dev)
{
    if (dev) dev->ops->close(dev);
    halo_context_destroy(ctx);
}

/* Allocates, enters, looks, leaves. */
static void check(wish w, bool bound, const char *what)
{
    halo_context *ctx;
    halo_device_info info = {0};
    void *memory;
    halo_device *dev = open_device(&ctx, w, &info);
    if (!dev) {
        tap_ok(false, "%s: %s", what, halo_error_message(ctx));
        close_device(ctx, dev);
        return;
    }
    seating before = look(w.threads);
    check_status(ctx, dev->ops->alloc(dev, (size_t)16 << 20, &memory), "memory");
    seating touched = look(w.threads);
    dev->ops->release(dev, memory);
    dev->ops->enter(dev);
    seating within = look(w.threads);
    dev->ops->leave(dev);
    seating after = look(w.threads);
    tap_note("%s", info.placement);
    tap_ok(bound ? one_core_each(&within) : equal(&within, &before), "%s: the threads %s", what, bound ? "sit on a core each" : "stay free");
    tap_ok(equal(&touched, &before) && equal(&after, &before), "%s: afterwards all is as before", what);
    tap_ok((strstr(info.placement, "bound") != NULL) == bound && (strstr(info.placement, "free to move") != NULL) == !bound,
           "%s: the device says so", what);
    close_device(ctx, dev);
}

static void check_refused(wish w, const char *what)
{
    halo_context *ctx;
    halo_device_info info;
    halo_device *dev = open_device(&ctx, w, &info);
    tap_ok(!dev && strstr(halo_error_message(ctx), "cpu.bind") != NULL, "%s is refused: %s", what, halo_error_message(ctx));
    close_device(ctx, dev);
}

int main(void)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) tap_skip_all("this system does not say which cores are allowed");
    unsetenv("OMP_PROC_BIND"), unsetenv("OMP_PLACES"), unsetenv("GOMP_CPU_AFFINITY"), unsetenv("KMP_AFFINITY");
    int cores = CPU_COUNT(&all) < MOST ? CPU_COUNT(&all) : MOST;
    check((wish){"none", 2, 1}, false, "none");
    check((wish){"", 2, 4}, false, "auto, one of four ranks");
    check((wish){"", 1, 1}, false, "auto, one thread");
    check((wish){"", cores + 1, 1}, false, "auto, more threads than cores");
    setenv("OMP_PROC_BIND", "close", 1);
    check((wish){"", cores, 1}, false, "auto under OMP_PROC_BIND");
    unsetenv("OMP_PROC_BIND");
    check_refused((wish){"cores", 4096, 1}, "cores for more threads than there are");
#if defined(HAVE_HWLOC) && defined(_OPENMP)
    check((wish){"cores", 1, 1}, true, "cores, one thread");
    if (cores >= 2)
        check((wish){"cores", 2, 1}, true, "cores, two threads"); /* two hardware threads of one core: refused, and told */
    else
        tap_skip("cores, two threads: one core here");
    if (cores >= 2 && sysconf(_SC_NPROCESSORS_ONLN) == CPU_COUNT(&all)) {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (size_t c = 0; CPU_COUNT(&one) == 0; c++)
            if (CPU_ISSET(c, &all)) CPU_SET(c, &one);
        check_status(NULL, sched_setaffinity(0, sizeof(one), &one) == 0 ? HALO_OK : HALO_ERR_SYSTEM, "mask");
        check((wish){"", 2, 1}, false, "auto with one core allowed");
    } else {
        tap_skip("auto with one core allowed: there is one only, or it is so already");
    }
#else
    tap_skip("binding: this build lacks hwloc or OpenMP");
#endif
    return tap_done();
}
