/* SPDX-License-Identifier: Apache-2.0 */
/* cutting.h -- what the files of the cutter (cutter.h) share: reading in cutter.c, drawing in patch.c, changing in vary.c. */
#ifndef HL_IO_CUTTING_H
#define HL_IO_CUTTING_H

#include "base/context.h"
#include "base/rng.h"
#include "io/cells.h"
#include "io/cutter.h"

struct hl_cutter {
    hl_source *source;
    hl_loader_options o;
    char *raw, *plain; /* the part of a box that lies in the sample: as read, as floats */
    char *wide;        /* the box that a turned one lies in */
    size_t raw_room, plain_room, wide_room;
};

/* Cells inside a sample: x [C, inside] after the first k transforms; y [targets, inside], checked. */
halo_status hl_cutter_inside(hl_cutter *cutter, int64_t sample, const hl_cells *inside, int k, float *x);
halo_status hl_cutter_targets(hl_cutter *cutter, int64_t sample, const hl_cells *inside, float *y);
/* Slab by slab, of some MiB or one plane each, a whole sample: x [C, slab] after the first k transforms; or y [targets, slab], where k is HL_SLABS_OF_TARGETS. `first`: the number of the slab's first cell. */
enum { HL_SLABS_OF_TARGETS = -1 };
halo_status hl_cutter_each_slab(hl_cutter *cutter, int64_t sample, int k, void (*take)(void *user, int64_t first, const float *v, int64_t n), void *user);

/* What is drawn of a patch. */
enum { HL_WHICH_KIND = 0, HL_WHICH_PLACE, HL_WHICH_TURN, HL_WHICH_GRAY, HL_WHICHES = 8 };
hl_random hl_cutter_random(const hl_cutter *cutter, int64_t epoch, int64_t sample, int64_t number, int which);

#endif
