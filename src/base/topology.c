/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c -- read from the kernel: affinity mask, /proc/self. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/topology.h"
#include "base/limits.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* The union of OpenMP's places; false where there are none. */
static bool from_places(cpu_set_t *set)
{
    CPU_ZERO(set);
#ifdef _OPENMP
    for (int place = 0; place < omp_get_num_places(); place++) {
        int n = omp_get_place_num_procs(place);
        int *id = n > 0 ? calloc((size_t)n, sizeof(*id)) : NULL;
        if (!id) continue;
        omp_get_place_proc_ids(place, id);
        for (int i = 0; i < n; i++)
            if (id[i] >= 0 && id[i] < CPU_SETSIZE) CPU_SET((size_t)id[i], set);
        free(id);
    }
#endif
    return CPU_COUNT(set) > 0;
}

static bool cores(cpu_set_t *set) { return from_places(set) || (sched_getaffinity(0, sizeof(*set), set) == 0 && CPU_COUNT(set) > 0); }

int hl_cores(uint64_t mask[HL_CORE_WORDS])
{
    cpu_set_t set;
    memset(mask, 0, HL_CORE_WORDS * sizeof(*mask));
    if (!cores(&set)) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        return n > 0 ? (int)n : 1;
    }
    for (size_t c = 0; c < CPU_SETSIZE && c < 64 * HL_CORE_WORDS; c++)
        if (CPU_ISSET(c, &set)) mask[c / 64] |= UINT64_C(1) << (c % 64);
    return CPU_COUNT(&set);
}

int hl_usable_cores(void)
{
    uint64_t mask[HL_CORE_WORDS];
    return hl_cores(mask);
}

void hl_roam(void)
{
    cpu_set_t set;
    if (from_places(&set)) (void)sched_setaffinity(0, sizeof(set), &set);
}

int hl_default_threads(void)
{
    const char *said = getenv("OMP_NUM_THREADS");
    long n = said ? strtol(said, NULL, 10) : 0;
    return n > 0 && n <= 65536 ? (int)n : hl_usable_cores();
}

size_t hl_rss_bytes(void)
{
    unsigned long long total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%llu %llu", &total, &resident) != 2) resident = 0;
    fclose(f);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* VmHWM and not getrusage's ru_maxrss, which hl_reset_peak_rss does not touch. */
size_t hl_peak_rss_bytes(void)
{
    unsigned long long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return 0;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
    fclose(f);
    return (size_t)kib * 1024;
}

void hl_reset_peak_rss(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

size_t hl_memory_limit(void)
{
    hl_memory_bound bound;
    hl_memory_bound_find("", &bound);
    return bound.bytes;
}

void hl_processor_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');
        /* ARM's list has numbers: of the maker, of the part */
        if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "CPU part", 8) != 0)) continue;
        const char *name = colon + strspn(colon, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(name, "\n"), name);
        break;
    }
    if (f) fclose(f);
}

void hl_host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0) snprintf(out, size, "unknown");
    out[size - 1] = '\0';
}
