/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_CLOCK_H
#define HL_CLOCK_H

#include <stddef.h>

/* Seconds of a monotonic clock. */
double hl_now(void);

/* The middle one of n times, of an even number the mean of both in the middle; n > 0. Leaves them sorted. */
double hl_median(double *seconds, size_t n);

/* "2026-11-30T03:10:05Z" into 21 bytes. */
void hl_timestamp(char out[24]);

#endif
