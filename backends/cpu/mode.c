/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode.c -- denormal numbers, which cost a hundred times a normal one on many processors, count as zero while the backend computes.
 *
 * The mode belongs to each thread, so it is set in every thread of the team and each thread's own is put back afterwards. The OpenMP pool
 * gives the same threads the same numbers as long as the team's size is the same; a thread that is made meanwhile inherits the maker's mode.
 * LLVM's OpenMP, other than GNU's, gives a team the mode of the thread that forks it and puts that thread's own back at the join: so the caller's mode
 * is set outside the team, too.
 */
#include "cpu.h"

#ifdef _OPENMP
#include <omp.h>
#define TEAM_MEMBER omp_get_thread_num()
#else
#define TEAM_MEMBER 0
#endif

#if defined(__SSE2__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 }; /* FTZ: results; DAZ: operands */
static unsigned get_mode(void) { return _mm_getcsr(); }
static void set_mode(unsigned mode) { _mm_setcsr(mode); }
#else
enum { FLUSH = 0 };
static unsigned get_mode(void) { return 0; }
static void set_mode(unsigned mode) { (void)mode; }
#endif

/* Exception flags (low six bits) raised while computing stay as the caller had them. */
void hl_cpu_enter(halo_device *device)
{
    hl_cpu_device *dev = hl_cpu(device);
    if (dev->entered++ > 0) return;
#pragma omp parallel num_threads(dev->threads)
    {
        unsigned mode = get_mode();
        dev->modes[TEAM_MEMBER] = mode;
        set_mode(mode | FLUSH);
        hl_seat_take(dev->seats, TEAM_MEMBER);
    }
    set_mode(get_mode() | FLUSH);
}

void hl_cpu_leave(halo_device *device)
{
    hl_cpu_device *dev = hl_cpu(device);
    HL_BUG_UNLESS(dev->entered > 0);
    if (--dev->entered > 0) return;
    set_mode(dev->modes[0]);
#pragma omp parallel num_threads(dev->threads)
    {
        set_mode(dev->modes[TEAM_MEMBER]);
        hl_seat_leave(dev->seats, TEAM_MEMBER);
    }
}
