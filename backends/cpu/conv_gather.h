/* SPDX-License-Identifier: Apache-2.0 */
/* conv_gather.h -- the inside of a gather, shared by the file that prepares it and the file that runs it. */
#ifndef HL_CPU_CONV_GATHER_H
#define HL_CPU_CONV_GATHER_H

#include "backends/cpu/conv.h"

/* Where a row of the list comes from: the input line (d, h) relative to the output position's, and `span` positions from w on, `lanes` floats each. */
typedef struct gather_source {
    int64_t d, h, w, span, lanes;
} gather_source;

typedef struct gather_phase {
    hl_gather_dim dim[3];
    int64_t nrows;
    hl_conv_row *row;      /* x relative to the first input of the output position */
    gather_source *source; /* [nrows] */
    int64_t low[3], high[3]; /* outputs low <= j < high read nothing outside box and margin; below low: a tap before, from high on: one behind */
    int64_t tile[3];       /* positions of a tile along d h w */
    enum hl_conv_step step;
    bool cut;              /* tiles at the edge along w leave out one tap of one position: no copy of their inputs */
    int group_v;           /* output vectors of a tile, where so many are left */
    int64_t split[2];      /* parts of d and h */
    int64_t items;
} gather_phase;

/* Consecutive output blocks that one tile computes. */
typedef struct gather_group {
    int64_t block;
    int ov;
    bool shared; /* one block whose upper lanes belong to other channels */
} gather_group;

struct hl_gather {
    const hl_cpu_device *dev;
    const hl_conv_kern *kern;
    halo_operand in, out, padded; /* in as the kernels see it: `padded` when pad */
    hl_strides is, os;
    int64_t in_origin, out_origin;
    int64_t valid[3][2]; /* input cells that may be read, relative to the box */
    int64_t samples, blocks, w_vec, unit; /* unit: floats between inputs along w */
    int phases, ngroups;
    gather_phase *phase;
    gather_group *group;
    bool together; /* all groups per tile: the weights fit the cache; else group by group, chunk_terms at a time */
    int64_t chunk_terms;
    int64_t line_terms; /* narrow tiles: terms taken at a time along a line; else INT64_MAX */
    int64_t max_rows, edge_floats, tile_floats, bias_floats, pad_floats, thread_bytes;
    bool pad, accumulate, stream;
    halo_act act;
    float slope;
    hl_conv_pool pool;
    int64_t strip, strip_floats; /* pooling: outputs along h of a strip, whose cells lie in the thread's memory first */
};

/* One piece of work: a box of outputs of one sample and the groups of output blocks group0 <= . < group1. */
typedef struct gather_item {
    const gather_phase *phase;
    int64_t n;
    hl_range d, h;
    int group0, group1;
} gather_item;

gather_item hl_gather_item(const hl_gather *g, int64_t item);

#endif
