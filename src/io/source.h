/* SPDX-License-Identifier: Apache-2.0 */
/* source.h -- what the formats share: sub-volumes, checks against the network, targets. The interface of
 * sources is io.h's. */
#ifndef HL_IO_SOURCE_H
#define HL_IO_SOURCE_H

#include "io/files.h"
#include "io/io.h"

halo_status hl_universe_open(halo_context *ctx, const hl_source_options *o, hl_source **source);
halo_status hl_halo_open(halo_context *ctx, const hl_source_options *o, hl_source **source);
halo_status hl_arrays_open(halo_context *ctx, const hl_source_options *o, hl_source **source);
halo_status hl_synthetic_open(halo_context *ctx, const hl_source_options *o, hl_source **source);

/* Sub-volumes of a box: n of them along each axis, x-major (the last axis runs fastest); what does not fill a
 * sub-volume is left out. */
typedef struct hl_crops {
    int64_t box[3], ext[3], n[3], count;
} hl_crops;

/* `what` is the file that the message names. */
halo_status hl_crops_set(halo_context *ctx, const char *what, const int64_t box[3],
                         const hl_source_options *o, hl_crops *crops);
void hl_crop_at(const hl_crops *crops, int64_t index, int64_t lo[3]);
/* The cut of that sub-volume as one of the box. */
hl_cut hl_crop_cut(const hl_crops *crops, int64_t index, const hl_cut *cut);

/* Sets info.ext after channels, crop and size of the options are checked against the file's channels and box;
 * `shape` describes the dataset. */
halo_status hl_source_fit(hl_source *s, const hl_source_options *o, const char *file, const char *shape,
                          int64_t channels, const int64_t box[3], hl_crops *crops);

/* The universes first .. first + count of `groups` that the options ask for; fails when there are none. */
halo_status hl_source_part(halo_context *ctx, const hl_source_options *o, int64_t groups, int64_t *first,
                           int64_t *count);

/* Allocates info.target with unknown ranges and names target_0 ..., after checking the count against the
 * network's. */
halo_status hl_source_targets(hl_source *s, const hl_source_options *o, const char *file, const char *dataset,
                              int64_t count);

/* Warns once when reading a sub-volume inflates more than twice what it needs. */
void hl_source_warn_waste(hl_source *s, const hl_volume *v, const hl_crops *crops);

/* The samples of `all` at one spacing, D H W. Owns `all` when it succeeds. HALO_ERR_USAGE: they have none. */
halo_status hl_resampled_open(hl_source *all, const double spacing[3], hl_source **source);
/* Frees what every source holds. */
void hl_source_free(hl_source *s);
/* `volumes` has no targets; o->label says what they are. Owns `volumes` when it succeeds. */
halo_status hl_unlabelled_open(hl_source *volumes, const hl_source_options *o, hl_source **source);

#endif
