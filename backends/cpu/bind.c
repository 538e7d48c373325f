/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c -- which core each computing thread sits on. A thread that stays where its memory was first touched reads it from near, and does not lose its
 * caches to a move; on a machine that others share, or where somebody has placed the threads already, binding can only do harm.
 *
 * `auto` therefore binds only where nobody else has a say: one rank, no OpenMP variable that places threads, all cores of the machine allowed, as
 * many threads as cores, and no other program at work when the device is opened. `cores` binds within whatever cores are allowed, `none` never. Cores
 * are hwloc's: of the hardware threads of a core one is taken, the first that is allowed; fewer threads than cores are spread evenly.
 *
 * The threads are those of the caller's OpenMP pool, the first is the caller itself. So binding lasts from enter to leave (and while new memory is touched):
 * each thread's own mask is kept and put back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpu.h"
#include "base/context.h"
#include "base/str.h"

#include <sched.h>
#include <stdio.h>
#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif
#include <unistd.h>

struct hl_seats {
    int threads;
    int *core;       /* [threads] number of a hardware thread, as the system counts */
    cpu_set_t *mask; /* [threads] what each had before */
};

/* ---------------------------------------------------------------------------------------------------------- the cores */

#ifdef HAVE_HWLOC
/* Whether hwloc can see the processor: where it cannot (a container without /sys) it says so on stderr, where a library has no business. */
static bool sees_cores(void)
{
    return access("/sys/devices/system/cpu/cpu0/topology", R_OK) == 0 || access("/sys/bus/cpu/devices/cpu0/topology", R_OK) == 0;
}

/* The first allowed hardware thread of each core that has one, in hwloc's order, into core[most]; returns how many. */
static int list_cores(const cpu_set_t *allowed, int *core, int most)
{
    hwloc_topology_t topology;
    int n = 0;
    if (!sees_cores() || hwloc_topology_init(&topology) != 0) return 0;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_obj_t c = NULL;
        while (n < most && (c = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, c))) {
            int pu = -1;
            while ((pu = hwloc_bitmap_next(c->cpuset, pu)) >= 0 && pu < CPU_SETSIZE)
                if (CPU_ISSET((size_t)pu, allowed)) break;
            if (pu >= 0 && pu < CPU_SETSIZE) core[n++] = pu;
        }
    }
    hwloc_topology_destroy(topology);
    return n;
}
#else
static int list_cores(const cpu_set_t *allowed, int *core, int most)
{
    (void)allowed, (void)core, (void)most;
    return 0;
}
#endif

/* ----------------------------------------------------------------------------------------------------------- the decision */

/* Threads of other programs that run or could run at this moment, as far as the system says. */
static int others_running(void)
{
    int running = 1;
    FILE *f = fopen("/proc/loadavg", "r");
    if (!f) return 0;
    if (fscanf(f, "%*f %*f %*f %d/", &running) != 1) running = 1;
    fclose(f);
    return running - 1;
}

/* Why `auto` leaves the threads where they are, from what costs nothing to ask; NULL: no reason. */
static const char *reason_against(const halo_context *ctx, int threads, int allowed)
{
    static const char *const variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    static const char *const reasons[] = {"OMP_PROC_BIND is set", "OMP_PLACES is set", "GOMP_CPU_AFFINITY is set", "KMP_AFFINITY is set"};
    for (size_t i = 0; i < HL_COUNT(variables); i++)
        if (getenv(variables[i])) return reasons[i];
    if (ctx && ctx->ranks > 1) return "the launcher places the ranks";
    if (threads < 2) return "one thread needs no place";
    if (allowed != sysconf(_SC_NPROCESSORS_ONLN)) return "only some of the machine's cores are allowed to this process";
    if (others_running() > threads / 8) return "other programs are running";
    return NULL;
}

/* "0-3 6" of a mask. */
static void text_of(const cpu_set_t *set, hl_str *out)
{
    for (size_t c = 0; c < CPU_SETSIZE; c++) {
        if (!CPU_ISSET(c, set)) continue;
        size_t first = c;
        while (c + 1 < CPU_SETSIZE && CPU_ISSET(c + 1, set)) c++;
        hl_str_addf(out, c > first ? " %zu-%zu" : " %zu", first, c);
    }
}

static void say(char *out, size_t size, int threads, const cpu_set_t *allowed, const hl_seats *seats, const char *reason)
{
    hl_str cores = {0};
    if (seats) {
        for (int t = 0; t < threads; t++) hl_str_addf(&cores, " %d", seats->core[t]);
        snprintf(out, size, "%d bound to cores%.120s while they compute", threads, cores.s ? cores.s : "");
    } else {
        text_of(allowed, &cores);
        snprintf(out, size, "%d free to move over cores%.80s: %s", threads, cores.s ? cores.s : "", reason);
    }
    hl_str_free(&cores);
}

static halo_status make_seats(halo_context *ctx, int threads, const int *core, int cores, hl_seats **out)
{
    hl_seats *s;
    halo_status st = HALO_OK;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "places of threads", &s));
    s->threads = threads;
    HL_GOTO(st, hl_calloc(ctx, (size_t)threads, sizeof(*s->core), "places of threads", &s->core), free_seats);
    HL_GOTO(st, hl_calloc(ctx, (size_t)threads, sizeof(*s->mask), "places of threads", &s->mask), free_seats);
    for (int t = 0; t < threads; t++) s->core[t] = core[(int64_t)t * cores / threads];
    *out = s;
    return HALO_OK;
free_seats:
    hl_seats_free(s);
    return st;
}

halo_status hl_seats_make(halo_context *ctx, int threads, char *words, size_t size, hl_seats **out)
{
    int core[CPU_SETSIZE], cores = 0;
    cpu_set_t allowed;
    const char *wish = ctx ? ctx->bind : "", *reason = NULL;
    bool must = strcmp(wish, "cores") == 0;
    CPU_ZERO(&allowed);
    *out = NULL;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) reason = "this system does not say which cores are allowed";
    if (!reason && strcmp(wish, "none") == 0) reason = "cpu.bind is none";
    if (!reason && !must) reason = reason_against(ctx, threads, CPU_COUNT(&allowed));
    if (!reason) {
        cores = list_cores(&allowed, core, CPU_SETSIZE);
        if (cores == 0) reason = "this build does not know the machine's cores (hwloc)";
        else if (must ? threads > cores : threads != cores) reason = "threads and cores are not as many";
    }
    if (must && reason)
        return hl_fail(ctx, HALO_ERR_USAGE, "'cpu.bind: cores' cannot bind %d thread%s to %d core%s: %s", threads, threads > 1 ? "s" : "", cores,
                       cores == 1 ? "" : "s", reason);
    if (!reason) HL_TRY(make_seats(ctx, threads, core, cores, out));
    say(words, size, threads, &allowed, *out, reason);
    return HALO_OK;
}

void hl_seats_free(hl_seats *s)
{
    if (!s) return;
    free(s->core);
    free(s->mask);
    free(s);
}

/* ---------------------------------------------------------------------------------------------------------- taking place */

void hl_seat_take(hl_seats *s, int thread)
{
    cpu_set_t one;
    if (!s || thread >= s->threads) return;
    CPU_ZERO(&one);
    CPU_SET((size_t)s->core[thread], &one);
    if (sched_getaffinity(0, sizeof(s->mask[thread]), &s->mask[thread]) != 0) CPU_ZERO(&s->mask[thread]);
    (void)sched_setaffinity(0, sizeof(one), &one); /* a core that went away since: the thread stays where it was */
}

void hl_seat_leave(hl_seats *s, int thread)
{
    if (s && thread < s->threads && CPU_COUNT(&s->mask[thread]) > 0) (void)sched_setaffinity(0, sizeof(s->mask[thread]), &s->mask[thread]);
}
