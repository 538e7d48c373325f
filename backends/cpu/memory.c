/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c -- the memory of the cpu device.
 *
 * Large memory is aligned to the huge page, asks for huge pages, and its pages are touched by the threads that will work on them, in the places where
 * these will sit: the same static deal of addresses that the kernels use, so that on machines with several memories each thread finds its part near.
 * Where the machine has memory of high bandwidth (MCDRAM, HBM) and the build has memkind, large memory comes from there as long as there is some.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpu.h"

#ifdef HAVE_MEMKIND
#include <memkind.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#define TEAM_MEMBER omp_get_thread_num()
#else
#define TEAM_MEMBER 0
#endif
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

/* ------------------------------------------------------------------------------------------------------- high bandwidth */

#ifdef HAVE_MEMKIND
/* A block from there, so that it goes back there. */
struct hl_fast_block {
    struct hl_fast_block *next;
    void *memory;
};

bool hl_has_fast_memory(void) { return memkind_check_available(MEMKIND_HBW) == 0; }

static void *fast_alloc(hl_cpu_device *dev, size_t bytes)
{
    void *memory = NULL;
    if (!dev->fast_memory) return NULL;
    struct hl_fast_block *b = calloc(1, sizeof(*b));
    if (!b || memkind_posix_memalign(MEMKIND_HBW, &memory, HUGE_PAGE, bytes) != 0) {
        free(b);
        return NULL;
    }
    *b = (struct hl_fast_block){dev->fast, memory};
    dev->fast = b;
    return memory;
}

static bool fast_release(hl_cpu_device *dev, void *memory)
{
    for (struct hl_fast_block **at = &dev->fast; *at; at = &(*at)->next) {
        struct hl_fast_block *b = *at;
        if (b->memory != memory) continue;
        memkind_free(MEMKIND_HBW, memory);
        *at = b->next;
        free(b);
        return true;
    }
    return false;
}
#else
bool hl_has_fast_memory(void) { return false; }

static void *fast_alloc(hl_cpu_device *dev, size_t bytes)
{
    (void)dev, (void)bytes;
    return NULL;
}

static bool fast_release(hl_cpu_device *dev, void *memory)
{
    (void)dev, (void)memory;
    return false;
}
#endif

/* --------------------------------------------------------------------------------------------------------------- memory */

static void touch(hl_cpu_device *dev, char *memory, size_t bytes)
{
    int64_t page = sysconf(_SC_PAGESIZE), pages = hl_div_up((int64_t)bytes, page);
    hl_seats *seats = dev->entered ? NULL : dev->seats; /* within a step everyone has a place already */
#pragma omp parallel num_threads(dev->threads)
    {
        hl_seat_take(seats, TEAM_MEMBER);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < pages; i++) memory[i * page] = 0;
        hl_seat_leave(seats, TEAM_MEMBER);
    }
}

halo_status hl_cpu_alloc(halo_device *device, size_t bytes, void **ptr)
{
    hl_cpu_device *dev = hl_cpu(device);
    if (bytes < HL_LARGE) return hl_aligned(device->ctx, bytes, "device memory", ptr);
    void *memory = fast_alloc(dev, bytes);
    if (!memory && (bytes > SIZE_MAX - HUGE_PAGE || posix_memalign(&memory, HUGE_PAGE, bytes) != 0))
        return hl_fail(device->ctx, HALO_ERR_NOMEM, "out of memory: %zu bytes for device memory", bytes);
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE); /* a wish: refusal changes nothing but speed */
#endif
    touch(dev, memory, bytes);
    *ptr = memory;
    return HALO_OK;
}

void hl_cpu_release(halo_device *device, void *ptr)
{
    if (!fast_release(hl_cpu(device), ptr)) free(ptr);
}
