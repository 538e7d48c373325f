/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h -- what a person sees while training: one line that renews itself on a terminal, line-buffered lines in a batch log. To stderr. */
#ifndef HL_PROGRESS_H
#define HL_PROGRESS_H

#include "train/run.h"

typedef struct hl_progress_line {
    const hl_run *run;
    bool terminal, quiet;
    double last; /* clock of the last line */
} hl_progress_line;

void hl_progress_init(hl_progress_line *p, const hl_run *run, bool quiet);
void hl_progress_event(void *user, const hl_event *event);

/* "3h 05m", "2m 10s", "45s" */
void hl_duration(double seconds, char *out, size_t size);
/* "1.50 GiB" */
void hl_bytes_text(double bytes, char *out, size_t size);
/* "7,041,443" */
void hl_count_text(int64_t n, char *out, size_t size);

/* The table of an evaluation: target, error of the network, of the baseline (baseline may be NULL), of the best constant, correlation;
 * unlearned targets are marked. */
void hl_score_table(int targets, const hl_target *target, const hl_score *score, const double *baseline, const char *caption, hl_str *out);
/* Of each class, over all voxels and, with cases, the means over these; and which was taken for which. */
void hl_class_table(int classes, const hl_class_score *s, int64_t cases, hl_str *out);
void hl_confusion_table(const hl_evaluation *e, hl_str *out);

#endif
