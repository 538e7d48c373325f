/* SPDX-License-Identifier: Apache-2.0 */
/* check.h -- a run tried out: everything but training, and what it would take. */
#ifndef HL_TRAIN_CHECK_H
#define HL_TRAIN_CHECK_H

#include "train/run.h"

typedef struct hl_check {
    hl_forecast memory;             /* as in hl_run, now of the programs as they were compiled */
    size_t resident;                /* the most of any rank after the steps, measured */
    int64_t threads;                /* of all ranks */
    int64_t steps_epoch, steps;     /* of an epoch; that the run has still to do */
    double start;                   /* seconds from the beginning of the program to the first step */
    double step, read;              /* seconds of a step, waiting for data included; and of reading the first batch, with nothing else to do */
    double validation, norms;       /* of a validation, and of the statistics of batch norms before it; 0: none */
    double epoch, total;            /* of an epoch; of the run from here on. Slowest rank, all of these */
    double core_hours;
    int64_t checkpoint_bytes;       /* 0: none is written */
    int64_t files;                  /* of training and validation data that were opened and read from */
} hl_check;

/*
 * On a run that was made with settings.check: reads a sample of every file, makes a step of every kind on the run's model, which is not what it was afterwards,
 * and multiplies. Where run->forecast does not fit nothing of this is done and only `memory` is filled in. `began` is a clock of hl_now. HALO_ERR_USAGE: `output`
 * cannot be used. Collective.
 */
halo_status hl_run_check(hl_run *run, double began, hl_check *out);

/* The parts of it that belong to the loop and to evaluation: seconds of a step as training makes it, of reading a batch; steps of an epoch and of the whole run. */
typedef struct hl_rehearsal {
    double step, read;
    int64_t steps_epoch, steps;
} hl_rehearsal;
halo_status hl_run_rehearse(hl_run *run, hl_rehearsal *out);
/* Seconds of a step of validation, and how many it takes. */
halo_status hl_run_rehearse_validation(hl_run *run, double *step, int64_t *steps);

#endif
