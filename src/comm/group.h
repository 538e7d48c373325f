/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h -- which gradients are reduced together: pure functions.
 *
 * Gradients lie in backward order, so a group is a range. With b(i..j) the bytes of gradients i..j, t(j) the time at which gradient j is complete and
 * c(b) = latency + seconds_per_byte b what a reduction costs (messages, bandwidth and additions, fitted), groups are reduced one after the other:
 *     end(i..j) = max(end of the group before, t(j)) + c(b(i..j))
 * `auto` finds the partition whose last end is earliest. An earlier end of what came before never makes the rest later, so dynamic programming over the last
 * gradient of each group is exact: n^2 / 2 steps. Of equal ends the fewest groups are taken.
 */
#ifndef HL_GROUP_H
#define HL_GROUP_H

#include "base/base.h"
#include "base/str.h"

/* One gradient tensor, in backward order. */
typedef struct hl_gradient {
    const char *layer; /* its layer's name */
    int64_t lo, hi;    /* elements of the gradient buffer; lo is the hi of the one before */
    double seconds;    /* after the backward pass began, when it is complete; not decreasing. `auto` only */
} hl_gradient;

typedef struct hl_group {
    int first, last; /* gradients first <= i < last */
} hl_group;

typedef enum hl_grouping { HL_GROUP_AUTO = 0, HL_GROUP_PER_LAYER, HL_GROUP_SINGLE, HL_GROUP_BYTES, HL_GROUP_LAYERS } hl_grouping;

/* Cost of summing `bytes` over all ranks. */
typedef struct hl_reduce_cost {
    double latency, seconds_per_byte;
} hl_reduce_cost;

typedef struct hl_grouping_spec {
    hl_grouping kind;
    int64_t bytes;            /* HL_GROUP_BYTES: a group ends when it has this many */
    int layers;               /* HL_GROUP_LAYERS: names; a group ends behind the gradients of each, what is left is the last one */
    const char *const *layer;
    size_t element;           /* bytes of one */
    hl_reduce_cost cost;      /* HL_GROUP_AUTO */
} hl_grouping_spec;

/* groups[n] has room for n; *count of them are written. HALO_ERR_USAGE: a layer's name is unknown or out of backward order, bytes not positive. Deterministic. */
halo_status hl_group_gradients(halo_context *ctx, const hl_grouping_spec *spec, const hl_gradient *gradient, int n, hl_group *groups, int *count);

/* When the last group is summed, in seconds after the backward pass began. */
double hl_group_end(const hl_gradient *gradient, const hl_group *groups, int count, size_t element, hl_reduce_cost cost);

/* The last layer of each group but the last one, "conv6, conv3": what HL_GROUP_LAYERS makes the same groups from, where no layer is cut. */
void hl_group_text(const hl_gradient *gradient, const hl_group *groups, int count, hl_str *out);

/* latency and seconds_per_byte >= 0 from n measurements, by least squares of relative errors. */
hl_reduce_cost hl_fit_cost(const double *bytes, const double *seconds, int n);

#endif
