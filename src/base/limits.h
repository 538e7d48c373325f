/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h -- how much memory the processes of a job may have on this node. */
#ifndef HL_LIMITS_H
#define HL_LIMITS_H

#include "base/base.h"

typedef struct hl_memory_bound {
    size_t bytes;   /* 0: not known */
    char what[256]; /* whose limit it is: "RAM", "control group /slurm/job_7", "SLURM_MEM_PER_NODE" */
} hl_memory_bound;

/* The smallest of RAM, the limits of all control groups that this process is in, and what Slurm granted. `root` stands before /proc and /sys: "" but in tests. */
void hl_memory_bound_find(const char *root, hl_memory_bound *bound);

#endif
