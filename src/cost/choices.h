/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choices.h -- which candidate does an op: the first, or the fastest as measured. Measurements are kept,
 * under the op's description, the device and its threads, in memory and in a text file of the run, so that a
 * resumed run and the other programs of a run choose alike without measuring again. What no such file knows
 * is looked for in the cache of all runs (cache.h) before it is measured: the run's own file wins.
 */
#ifndef HL_CHOICES_H
#define HL_CHOICES_H

#include "backend/backend.h"
#include "base/str.h"

typedef struct hl_choices hl_choices;

/* `path` NULL: in memory alone. A file that cannot be read or is not ours is an error; one that does not
 * exist is empty. `cache`: the directory of all runs, NULL: none. */
halo_status hl_choices_open(halo_device *dev, const char *path, const char *cache, hl_choices **choices);
/* Writes the file when it lacks a choice, and the cache when something was measured. */
halo_status hl_choices_save(hl_choices *choices);
void hl_choices_close(hl_choices *choices);

/* One candidate and the seconds of a run (0 where not measured). Without `measure` the first. Reference
 * implementations are neither measured nor taken where there is another. The description must have a
 * candidate. */
halo_status hl_choices_pick(hl_choices *choices, const halo_op_desc *desc, bool measure,
                            halo_candidate *choice, double *seconds);

/* All that the speed of an op can depend on, in words without tabs. */
void hl_op_key(const halo_op_desc *desc, hl_str *out);

#endif
