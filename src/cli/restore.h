/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h -- a trained run for evaluate and predict: settings, data of one split, and the weights of a checkpoint. */
#ifndef HL_RESTORE_H
#define HL_RESTORE_H

#include "cli/command.h"
#include "train/run.h"

/*
 * CONFIG as for train, or a checkpoint file, or a run directory. Without --checkpoint the weights are those of best.h5, else of the newest
 * checkpoint, in the run directory. The run is opened for evaluation of `split`. label: data without targets are taken, with the names and units
 * that the checkpoint has of its training data (hl_source_info.unlabelled); else they are refused.
 */
halo_status hl_restore(hl_invocation *inv, bool label, hl_split *split, hl_run **run);

/* The rows of the options that hl_restore reads. */
#define HL_RESTORE_OPTIONS                                                                                                                   \
    {.name = "checkpoint", .letter = 'c', .type = HL_OPT_TEXT, .arg = "FILE", .help = "weights; default: the run's best checkpoint"},        \
        {.name = "split", .letter = 's', .type = HL_OPT_TEXT, .arg = "NAME", .help = "train, validation or test; default: test if set"}

#endif
