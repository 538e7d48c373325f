/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c -- whose limit of memory counts: trees that look like /proc and /sys of machines, containers and jobs. */
#include "base/limits.h"
#include "base/file.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <stdio.h>
#include <unistd.h>

static char root[] = "limits.XXXXXX";

static void put(const char *path, const char *text)
{
    char dir[600], file[600];
    snprintf(file, sizeof(file), "%s%s", root, path);
    snprintf(dir, sizeof(dir), "%s", file);
    *strrchr(dir, '/') = '\0';
    check_status(NULL, hl_make_dirs(NULL, dir), dir);
    check_status(NULL, hl_file_write(NULL, file, text, strlen(text)), file);
}

static void expect(unsigned long long bytes, const char *what, const char *sentence)
{
    hl_memory_bound b;
    hl_memory_bound_find(root, &b);
    tap_ok(b.bytes == bytes && strcmp(b.what, what) == 0, "%s: %zu, %s", sentence, b.bytes, b.what);
}

int main(void)
{
    const char *const slurm[] = {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"};
    for (size_t i = 0; i < HL_COUNT(slurm); i++) unsetenv(slurm[i]);
    if (!mkdtemp(root)) tap_bail("no directory");
    expect(0, "", "nothing is known");
    put("/proc/meminfo", "MemTotal:        1000000 kB\nMemFree: 7 kB\n");
    expect(1024000000, "RAM", "a machine");
    put("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/slurm/job_7/step_0\n0::/user\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "500000000\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
    expect(500000000, "control group /slurm/job_7", "version 1, of a group above");
    put("/sys/fs/cgroup/user/memory.max", "400000000\n");
    expect(400000000, "control group /user", "version 2");
    put("/sys/fs/cgroup/memory.max", "max\n");
    expect(400000000, "control group /user", "version 2, none above");
    put("/proc/self/cgroup", "0::/not/seen/from/here\n");
    put("/sys/fs/cgroup/memory.max", "300000000\n");
    expect(300000000, "control group /", "a container that does not see its own group");
    setenv("SLURM_MEM_PER_NODE", "200", 1);
    expect(200u << 20, "SLURM_MEM_PER_NODE", "what Slurm granted");
    setenv("SLURM_MEM_PER_CPU", "50", 1);
    setenv("SLURM_CPUS_ON_NODE", "3", 1);
    expect(150u << 20, "SLURM_MEM_PER_CPU", "what Slurm granted by cores");
    setenv("SLURM_MEM_PER_NODE", "0", 1);
    unsetenv("SLURM_MEM_PER_CPU");
    expect(300000000, "control group /", "all of the node's is no limit");
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    if (system(command) != 0) tap_note("%s stays", root);
    return tap_done();
}
