/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h -- the parts of setting up a run, in the order in which setup.c takes them. */
#ifndef HL_SETUP_H
#define HL_SETUP_H

#include "train/run.h"

/* Whether the loss is of classes. */
bool hl_run_of_classes(const hl_settings *set);

/* sources.c: the data of the splits in `splits`. */
halo_status hl_run_open_sources(hl_run *run, unsigned splits);

/* network.c: run->net, of which the data must be; norms that would see one value only. */
halo_status hl_run_make_network(hl_run *run);
halo_status hl_run_check_norms(const hl_run *run);

/* programs.c: model, and programs as `need` says, up to the pass `after` where that is not NULL; rank by rank where they measure. Collective. */
halo_status hl_run_make_programs(hl_run *run, hl_need need, const char *after);

#endif
