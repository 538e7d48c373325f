/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c -- how well work items keep threads busy, before anything runs: list scheduling, each item in order to the thread that is free first, as
 * OpenMP's schedule(dynamic) does (Graham, "Bounds on multiprocessing timing anomalies", 1969, bounds what the order can cost). The threads' loads
 * are a binary heap with the least at its top.
 */
#include "cpu.h"

static void sink(double *load, int n)
{
    double top = load[0];
    int at = 0;
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && load[child + 1] < load[child]) child++;
        if (load[child] >= top) break;
        load[at] = load[child];
    }
    load[at] = top;
}

double hl_share(int threads, int64_t items, double (*work)(const void *arg, int64_t item), const void *arg)
{
    double *load = calloc((size_t)threads, sizeof(*load)), total = 0, most = 0;
    if (!load) return 0;
    for (int64_t i = 0; i < items; i++) {
        double w = work(arg, i);
        total += w;
        load[0] += w;
        most = fmax(most, load[0]);
        sink(load, threads);
    }
    free(load);
    return most > 0 ? total / (threads * most) : 0;
}
