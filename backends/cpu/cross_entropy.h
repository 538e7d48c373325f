/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy.h -- what the losses of classes share: cells of a row brought together as [classes][HL_SPAN], whatever the layout is. */
#ifndef HL_CPU_CROSS_ENTROPY_H
#define HL_CPU_CROSS_ENTROPY_H

#include "classes.h"

enum { HL_SPAN = 64 };

typedef struct hl_entropy_plan {
    hl_cpu_plan super;
    hl_strides x, t, dx;
    int64_t x_origin, t_origin, dx_origin;
    int64_t classes, samples, sections, rows; /* rows of a sample; a piece of work is (sample, section of the rows) */
    double targets;
    bool weighs;  /* cells have weights: of their classes, or 0 where they are ignored */
    double *sums; /* [pieces] */
    float *room;  /* [pieces][classes][HL_SPAN] */
    double *part; /* dice.c: [pieces][2][classes] */
    float *slope; /* dice.c: [samples][2][classes] */
    double *total; /* dice.c: [2][classes] */
} hl_entropy_plan;

typedef struct hl_entropy_run {
    const hl_entropy_plan *p;
    const float *x, *t;
    float *dx;
    const double *weight;
    const double *of_class; /* [classes] weights; NULL: 1 */
    const double *divisor;  /* [samples] of the sums over cells; NULL: targets */
    double scale;
} hl_entropy_run;

/* What a piece of a row needs beside its logits. */
typedef struct hl_labels {
    float t[HL_SPAN], weight[HL_SPAN];
    bool ignored[HL_SPAN]; /* where the plan weighs */
} hl_labels;

/* The operands of a run; its scale is loss_scale / weight_sum where there is DX. */
hl_entropy_run hl_entropy_begin(const hl_entropy_plan *p, const halo_op_args *args);
/* Cells [w, w + n) of a row: logits to room [classes][HL_SPAN], labels, and weights where there are any: those that are ignored get class 0 with weight 0. Returns n, at most HL_SPAN;
 * 0 at the row's end. */
int64_t hl_entropy_bring(const hl_entropy_run *r, int64_t n, int64_t row, int64_t w, float *room, hl_labels *label);
/* The weights, for the kernels; NULL where all are 1. */
static inline const float *hl_label_weights(const hl_entropy_run *r, const hl_labels *label) { return r->p->weighs ? label->weight : NULL; }
/* What the sum over sample n's cells is divided by. */
static inline double hl_entropy_divisor(const hl_entropy_run *r, int64_t n) { return r->divisor ? r->divisor[n] : r->p->targets; }
void hl_entropy_put_back(const hl_entropy_run *r, int64_t n, int64_t row, int64_t w, int64_t cells, const float *room);

#endif
