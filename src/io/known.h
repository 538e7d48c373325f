/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h -- what is found out of whole samples once, and kept with their source: moments for transforms, and where cells of each class are. Thread-safe; not collective.
 */
#ifndef HL_IO_KNOWN_H
#define HL_IO_KNOWN_H

#include "io/io.h"

enum { HL_KNOWN_TRANSFORMS = 4, HL_KNOWN_CELLS = 256 };

/* Cells of a sample that have a class above 0: of each class up to HL_KNOWN_CELLS, spread evenly. */
typedef struct hl_labelled {
    int classes;    /* that the sample has, but for 0 */
    int64_t *first; /* [classes + 1] into cell */
    int64_t *cell;  /* index in C order of the sample's D H W */
} hl_labelled;

typedef struct hl_known hl_known;

/* Makes source->known where there is none. */
halo_status hl_known_create(hl_source *source);
void hl_known_free(hl_known *known); /* NULL is allowed */

/* Those that transform number k of a list finds; false: nobody has put them. */
bool hl_known_moments(hl_known *known, int64_t sample, int k, hl_moments *moments);
void hl_known_put_moments(hl_known *known, int64_t sample, int k, hl_moments moments);
/* The least and the largest value after all transforms. */
bool hl_known_range(hl_known *known, int64_t sample, float range[2]);
void hl_known_put_range(hl_known *known, int64_t sample, const float range[2]);
/* Valid as long as the source; NULL: nobody has put them. Putting takes the arrays over; where another was faster they are freed. */
const hl_labelled *hl_known_labelled(hl_known *known, int64_t sample);
void hl_known_put_labelled(hl_known *known, int64_t sample, hl_labelled *labelled);

#endif
