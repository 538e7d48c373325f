/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c -- the memory that the processes of a job may have on this node: the smallest of RAM (MemTotal), of what every control group from this process's own
 * up to the root allows (v2: memory.max; v1: memory.limit_in_bytes; in a container the groups' own path is often not there, and the root is the container's), and
 * of what Slurm says it granted, which it may watch over without control groups.
 */
#include "base/limits.h"

#include <stdio.h>

static void lower(hl_memory_bound *b, unsigned long long bytes, const char *what)
{
    if (bytes == 0 || (b->bytes > 0 && bytes >= b->bytes)) return;
    b->bytes = (size_t)bytes;
    snprintf(b->what, sizeof(b->what), "%s", what);
}

static void ram(const char *root, hl_memory_bound *b)
{
    char path[512], line[256];
    unsigned long long kib;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "MemTotal: %llu", &kib) == 1) lower(b, kib * 1024, "RAM");
    fclose(f);
}

/* A file of one number; "max" is none. */
static void one_group(const char *root, const char *mount, const char *group, const char *file, hl_memory_bound *b)
{
    char path[1024], what[256];
    unsigned long long bytes;
    int n = snprintf(path, sizeof(path), "%s%s%s/%s", root, mount, group, file);
    if (n < 0 || (size_t)n >= sizeof(path)) return;
    FILE *f = fopen(path, "r");
    if (!f) return;
    snprintf(what, sizeof(what), "control group %.200s", *group ? group : "/");
    if (fscanf(f, "%llu", &bytes) == 1) lower(b, bytes, what);
    fclose(f);
}

/* The group and all above it; cuts `group` short. */
static void groups_above(const char *root, char *group, bool v2, hl_memory_bound *b)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (;;) {
        size_t n = strlen(group);
        while (n > 0 && group[n - 1] == '/') group[--n] = '\0';
        if (!v2) one_group(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", b);
        for (size_t m = 0; m < HL_COUNT(mounts) && v2; m++) one_group(root, mounts[m], group, "memory.max", b);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* Lines "4:memory:/a/b" (v1) and "0::/a/b" (v2). */
static void groups(const char *root, hl_memory_bound *b)
{
    char path[512], line[1024], none[1] = "";
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        bool v2 = controllers[1] == '\0';
        if (v2 || strstr(controllers + 1, "memory")) groups_above(root, group, v2, b);
    }
    if (f) fclose(f);
    groups_above(root, none, false, b);
    groups_above(root, none, true, b);
}

/* Numbers of MiB. */
static unsigned long long number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : 0;
}

void hl_memory_bound_find(const char *root, hl_memory_bound *b)
{
    const unsigned long long mib = 1048576;
    *b = (hl_memory_bound){0};
    ram(root, b);
    groups(root, b);
    lower(b, number_of("SLURM_MEM_PER_NODE") * mib, "SLURM_MEM_PER_NODE");
    lower(b, number_of("SLURM_MEM_PER_CPU") * number_of("SLURM_CPUS_ON_NODE") * mib, "SLURM_MEM_PER_CPU");
}
