/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_CLOCK_H
#define HL_CLOCK_H

/* Seconds of a monotonic clock. */
double hl_now(void);

/* "2026-11-30T03:10:05Z" into 21 bytes. */
void hl_timestamp(char out[24]);

#endif
