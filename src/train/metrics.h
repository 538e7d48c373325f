/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h -- how good predictions are, in physical units, against the best that a constant can do.
 *
 * Per target: error = mean |prediction - truth|; constant_error = min over c of mean |c - truth|, reached at the median of the truths themselves, so
 * the constant knows the answer's distribution and is as hard to beat as a constant can be; correlation = Pearson's. Once over samples
 * (sub-volumes), once over groups (universes) after averaging a group's predictions: neighbours cut from one universe share its truth.
 */
#ifndef HL_METRICS_H
#define HL_METRICS_H

#include "base/config.h"
#include "io/io.h"

typedef struct hl_score { double error, constant_error, correlation; } hl_score;

typedef struct hl_metrics hl_metrics;

halo_status hl_metrics_create(halo_context *ctx, int targets, const hl_target *target, hl_metrics **metrics);
void hl_metrics_destroy(hl_metrics *m);

/* One sample: stored units as the network predicts them and as the file holds them; converted by the target's range. */
halo_status hl_metrics_add(hl_metrics *m, int64_t group, const float *truth, const float *prediction);

int64_t hl_metrics_samples(const hl_metrics *m);
/* min over c of mean |c - truth[i]|; sorts `truth`. */
double hl_constant_error(double *truth, int64_t n);
/* score[targets]; NaN correlation where a side is constant. per_group: average each group's predictions first. Returns the number of items scored. */
halo_status hl_metrics_score(const hl_metrics *m, bool per_group, hl_score *score, int64_t *items);

/*
 * Targets that are volumes: every voxel is an item, nothing is kept per sample. Error and correlation are of all voxels; the constant's error is of all of
 * them up to 2^20 per target, beyond that of a subset of at least half as many, spread evenly over samples and voxels (the same on every run).
 */
typedef struct hl_voxel_metrics hl_voxel_metrics;
halo_status hl_voxel_metrics_create(halo_context *ctx, int targets, const hl_target *target, const int64_t ext[3], hl_voxel_metrics **metrics);
void hl_voxel_metrics_destroy(hl_voxel_metrics *m);
/* The cells `box`, which may be all, of sample number `sample` of those evaluated: [targets, cells of the box] each, in stored units. */
void hl_voxel_metrics_add(hl_voxel_metrics *m, int64_t sample, const hl_cells *box, const float *truth, const float *prediction);
/* Makes it that of all that any rank has added; each cell was added by one. Scores are those of one rank but for the order of sums. Collective. */
halo_status hl_voxel_metrics_merge(hl_voxel_metrics *m, halo_context *ctx);
/* Whether any cell was added; of class numbers, any that counts. */
bool hl_voxel_metrics_counts(const hl_voxel_metrics *m);
/* *samples: whole ones. */
halo_status hl_voxel_metrics_score(hl_voxel_metrics *m, hl_score *score, int64_t *samples);

/*
 * Targets that are class numbers, of cells or of whole samples. Their error is the share of cells that are taken for another class, the constant's that of answering the most frequent class
 * everywhere; there is no correlation. classes.c has the formulas, and what is said of a class that is nowhere.
 */
typedef struct hl_overlap { double dice, iou, volume_error; } hl_overlap;
typedef struct hl_class_score {
    char name[HL_WORD_MAX]; /* of the class; whoever asks for scores fills it in */
    hl_overlap global, per_case; /* over all cells; means over cases, NaN where these are not told apart */
    int64_t cases;          /* that have the class */
} hl_class_score;

typedef struct hl_class_metrics hl_class_metrics;
/* cases: samples, whose numbers are below it, where each is scored by itself; 0: not. Cells whose truth is `ignore` do not count; -1: none. */
halo_status hl_class_metrics_create(halo_context *ctx, int classes, int64_t cases, int64_t ignore, hl_class_metrics **metrics);
void hl_class_metrics_destroy(hl_class_metrics *m);
/* All cells of a sample, or some that nobody else adds. */
void hl_class_metrics_add(hl_class_metrics *m, int64_t sample, int64_t cells, const float *truth, const float *prediction);
/* Makes it that of all that any rank has added; each cell was added by one. Collective. */
halo_status hl_class_metrics_merge(hl_class_metrics *m, halo_context *ctx);
bool hl_class_metrics_counts(const hl_class_metrics *m);
/* One score, of_class[classes] but for names, the number of cells, those that are ignored too. */
halo_status hl_class_metrics_score(const hl_class_metrics *m, hl_score *score, hl_class_score *of_class, double *cells);
/* Class k in one case. */
hl_overlap hl_class_metrics_case(const hl_class_metrics *m, int64_t sample, int k);
/* How many cells of one class were taken for another. */
double hl_class_metrics_confused(const hl_class_metrics *m, int truth, int prediction);
/* Mean Dice of the classes from 1 on. */
double hl_foreground_dice(const hl_class_score *of_class, int classes, bool per_case);
/* The class with the largest logit, the first of equal ones: logits [samples, classes, cells] to out [samples, cells]. */
void hl_classes_of(const float *logits, int64_t samples, int classes, int64_t cells, float *out);

/* Physical value of a stored one. */
double hl_physical(const hl_target *t, double stored);

/* A target that nothing has learned: less than 5 % below the constant's error. */
bool hl_unconstrained(const hl_score *s);

#endif
