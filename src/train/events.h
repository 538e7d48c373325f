/* SPDX-License-Identifier: Apache-2.0 */
/* events.h -- what happens during training, as told to observers: the run log is one, the terminal's progress line another. */
#ifndef HL_EVENTS_H
#define HL_EVENTS_H

#include "train/metrics.h"

typedef enum hl_event_kind {
    HL_EVENT_START = 0,
    HL_EVENT_STEP,
    HL_EVENT_EPOCH,
    HL_EVENT_VALIDATION,
    HL_EVENT_CHECKPOINT,
    HL_EVENT_STOP
} hl_event_kind;

typedef struct hl_event {
    hl_event_kind kind;
    int64_t step;  /* optimiser steps done in the whole run, resumed ones included */
    int64_t epoch; /* from 1: the one that is being run, or was just ended; of start: the one to be run next */
    double fraction; /* of the planned steps, 0..1 */
    double loss, lr, grad_norm;
    bool scaled, skipped; /* a step: its loss was scaled; its gradients overflowed and changed nothing */
    double loss_scale;
    double seconds, seconds_io, seconds_exposed; /* of this step; exposed: communication that nothing hid */
    double elapsed, left;                        /* of the run */
    double samples_per_second, gflops;
    int targets;
    const hl_target *target;
    const hl_score *score, *group_score;
    int64_t items, groups;
    int classes; /* of targets that are class numbers */
    const hl_class_score *of_class;
    bool best;
    const char *path;   /* checkpoint */
    const char *status; /* stop: "done", "stopped", "failed" */
    const char *reason;
} hl_event;

typedef void (*hl_observer)(void *user, const hl_event *event);

#endif
