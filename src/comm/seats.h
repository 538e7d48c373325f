/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seats.h -- where ranks sit: host, cores, threads; said in a few lines however many ranks there are, and what is wrong with it: cores that two ranks of a host
 * share, more threads than cores. Pure functions of the list, but for hl_seat_here.
 */
#ifndef HL_SEATS_H
#define HL_SEATS_H

#include "base/json.h"
#include "base/str.h"
#include "base/topology.h"

typedef struct hl_seat {
    char host[64];
    int32_t threads;              /* that compute */
    int32_t cores;                /* as hl_cores counts */
    uint64_t mask[HL_CORE_WORDS]; /* no bit: not known */
} hl_seat;

/* This process's, with `threads` computing threads. */
hl_seat hl_seat_here(int threads);

/* "0-7,16" of a mask; "any" where it is not known. */
void hl_cores_text(const uint64_t mask[HL_CORE_WORDS], hl_str *out);
/* seat[ranks], those of a host contiguous: a line for each run of hosts that look the same, as in
 * "ranks 0-511 on n0 .. n127, 4 on each: 8 threads on cores 0-7, 8 threads on cores 8-15, ...". Lines are separated by '\n', none ends in one. */
void hl_seats_text(const hl_seat *seat, int ranks, hl_str *out);
/* The same as members of an open array: {"host", "first", "ranks", "threads": [..], "cores": [..]} for each host. */
void hl_seats_json(const hl_seat *seat, int ranks, hl_json *j);

/* One sentence each, or false: ranks of a host that share cores (the first two, and on how many hosts), and threads beyond the cores of a rank or a host. */
bool hl_seats_overlap(const hl_seat *seat, int ranks, char *text, size_t size);
bool hl_seats_crowded(const hl_seat *seat, int ranks, char *text, size_t size);

#endif
