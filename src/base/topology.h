/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h -- what the machine offers this process. */
#ifndef HL_TOPOLOGY_H
#define HL_TOPOLOGY_H

#include "base/base.h"

enum { HL_CORE_WORDS = 16 }; /* 1024 cores, as in the C library's masks */

/* The cores that this process may use, bit c % 64 of word c / 64; returns how many, at least 1 (and no bit where the system does not say). Under
 * OMP_PROC_BIND OpenMP has bound the first thread to one core before main begins, so its places count where there are any. */
int hl_cores(uint64_t mask[HL_CORE_WORDS]);
int hl_usable_cores(void);
/* Lets the calling thread run on all of them: threads that are not OpenMP's inherit the one core of the thread that makes them. */
void hl_roam(void);
/* Threads to compute with unless told: the first number of OMP_NUM_THREADS, else hl_usable_cores(). */
int hl_default_threads(void);

/* Bytes: resident now, highest resident so far, and the limit (limits.h); 0 where unknown. */
size_t hl_rss_bytes(void);
size_t hl_peak_rss_bytes(void);
/* Starts the peak anew from what is resident now; no effect where the kernel has no such thing. */
void hl_reset_peak_rss(void);
size_t hl_memory_limit(void);

/* What the system calls the processor, such as "AMD EPYC 9654 96-Core Processor"; "unknown" where it does not say. */
void hl_processor_name(char *out, size_t size);

/* Host name into `out`. */
void hl_host_name(char *out, size_t size);

#endif
