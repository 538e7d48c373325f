/* SPDX-License-Identifier: Apache-2.0 */
/* reducer_measure.c -- what a sum over all ranks costs here: medians of a few sizes, the slowest rank's, and a line through them. */
#include "base/clock.h"
#include "comm/reducer.h"

#include "tensor/operand.h"

enum { HL_MEASURE_SIZES = 5, HL_MEASURE_TIMES = 5 };
#define HL_MEASURE_SMALLEST 4096.0
#define HL_MEASURE_LARGEST 8388608.0

static halo_status time_size(halo_context *ctx, hl_transport *t, hl_reduction *r, const hl_route *route, void *buffer, int64_t n, halo_dtype type,
                             double *median)
{
    double seconds[HL_MEASURE_TIMES];
    for (int i = 0; i < HL_MEASURE_TIMES; i++) {
        HL_TRY(hl_comm_barrier(ctx));
        double start = hl_now();
        HL_TRY(route ? hl_reduction_run(r, route, buffer, NULL, HL_TAG_MEASURE) : t->ops->allreduce(t, buffer, n, type));
        seconds[i] = hl_now() - start;
    }
    *median = hl_median(seconds, HL_MEASURE_TIMES);
    return HALO_OK;
}

/* Rooms are made by the ranks alike, and all fail or none. */
static halo_status measure_size(halo_context *ctx, const hl_reducer_options *o, hl_transport *t, double bytes, double *median)
{
    int64_t n = (int64_t)(bytes / (double)hl_dtype_size(o->type)), segment = o->segment > 0 ? o->segment : 65536;
    hl_route_spec s = {.algorithm = o->algorithm, .ranks = {0, 1, t->ranks, t->rank}, .local = hl_comm_place(ctx).node_size, .elements = n, .segment = segment};
    hl_reduction r = {0};
    hl_route *route = NULL;
    void *buffer = NULL;
    halo_status st = hl_calloc(ctx, (size_t)n, hl_dtype_size(o->type), "a buffer to measure with", &buffer);
    if (st == HALO_OK && o->algorithm != HL_ALGORITHM_MPI) st = hl_route_create(ctx, &s, &route);
    if (st == HALO_OK && route) st = hl_reduction_create(ctx, t, o->type, o->wire, segment, route->fan, &r);
    st = hl_agree(ctx, st);
    if (st == HALO_OK) st = time_size(ctx, t, &r, route, buffer, n, o->type, median);
    hl_reduction_destroy(&r);
    hl_route_destroy(route);
    free(buffer);
    return st;
}

halo_status hl_reducer_measure(halo_context *ctx, const hl_reducer_options *o, int64_t bytes, hl_reduce_cost *cost)
{
    double size[HL_MEASURE_SIZES], seconds[HL_MEASURE_SIZES], largest = fmin(fmax((double)bytes, 2 * HL_MEASURE_SMALLEST), HL_MEASURE_LARGEST);
    hl_transport *t;
    halo_status st = HALO_OK;
    *cost = (hl_reduce_cost){0};
    if (!ctx->comm || ctx->ranks == 1) return HALO_OK;
    HL_TRY(hl_transport_open(ctx, &t));
    for (int i = 0; i < HL_MEASURE_SIZES && st == HALO_OK; i++) {
        size[i] = HL_MEASURE_SMALLEST * pow(largest / HL_MEASURE_SMALLEST, (double)i / (HL_MEASURE_SIZES - 1));
        st = measure_size(ctx, o, t, size[i], &seconds[i]);
    }
    if (st == HALO_OK) st = hl_comm_max(ctx, seconds, HL_MEASURE_SIZES);
    hl_transport_close(t);
    if (st == HALO_OK) *cost = hl_fit_cost(size, seconds, HL_MEASURE_SIZES);
    return st;
}
