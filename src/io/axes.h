/* SPDX-License-Identifier: Apache-2.0 */
/* axes.h -- an array of any order of axes seen as samples of C D H W, and the order that was meant. */
#ifndef HL_IO_AXES_H
#define HL_IO_AXES_H

#include "base/config.h"
#include "io/array.h"

typedef struct hl_axes {
    int n;
    char letter[HL_ARRAY_RANK]; /* n c d h w, as the writer of the file numbers its axes; c may stand there more than once, n d h w may be missing */
} hl_axes;

/* `key` is what errors call it. No words: n = 0. */
halo_status hl_axes_parse(halo_context *ctx, const char *key, const hl_words *words, hl_axes *axes);
/* "[n, c, d, h, w]" into `out`; returns it. */
const char *hl_axes_text(const hl_axes *axes, char *out, size_t size);

typedef struct hl_view {
    int ndim;
    char letter[HL_ARRAY_RANK];    /* of each axis in storage order */
    int64_t channel[HL_ARRAY_RANK]; /* channels that a step along it skips, 0 where it is no c: the first c of the writer is the slowest */
    int64_t ext[5];                /* N C D H W */
} hl_view;

/* The axes must be as many as the array's. */
void hl_view_set(hl_view *view, const hl_array *array, const hl_axes *axes);

/*
 * Reads the cut (d h w) of the first `channels` channels of sample n to its place in out [channels, into] as `to` (hl_number_dtype of the array's type, or HALO_F32). The
 * array is read in its own order, in parts of some MiB; *scratch of *capacity bytes is grown as needed and freed by the caller.
 */
halo_status hl_view_read(hl_array *array, const hl_view *view, int64_t n, int64_t channels, const hl_cut *cut, halo_dtype to, void *out, char **scratch, size_t *capacity);

/*
 * Axes with which the array would give samples of `want` (C D H W, 0: any); `larger`: volumes may be larger, as they will be cut. Orders with d before h before w are
 * preferred. False where there is none, or nothing is wanted and the extents say nothing.
 */
bool hl_axes_suggest(const hl_array *array, const int64_t want[4], bool larger, hl_axes *axes);

#endif
