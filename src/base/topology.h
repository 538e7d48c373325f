/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h -- what the machine offers this process. */
#ifndef HL_TOPOLOGY_H
#define HL_TOPOLOGY_H

#include "base/base.h"

/* Cores in this thread's affinity mask; at least 1. */
int hl_usable_cores(void);
/* Threads to compute with unless told: the first number of OMP_NUM_THREADS, else hl_usable_cores(). */
int hl_default_threads(void);

/* Bytes: resident now, highest resident so far, and the limit (the smaller of RAM and the cgroup's); 0 where unknown. */
size_t hl_rss_bytes(void);
size_t hl_peak_rss_bytes(void);
/* Starts the peak anew from what is resident now; no effect where the kernel has no such thing. */
void hl_reset_peak_rss(void);
size_t hl_memory_limit(void);

/* Host name into `out`. */
void hl_host_name(char *out, size_t size);

#endif
