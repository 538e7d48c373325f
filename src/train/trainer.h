/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.h -- the inside of a public trainer, and how it takes samples that are spread over ranks (insitu.c). */
#ifndef HL_TRAINER_H
#define HL_TRAINER_H

#include "comm/redistribute.h"
#include "train/run.h"

/* One array of blocks on its way to where it is computed with. */
typedef struct hl_intake {
    halo_block block; /* of the step before; its data are not used */
    hl_redistribution *plan;
    hl_held have, want;
    halo_dtype type; /* that travels: f32 or f64 */
    void *converted; /* this rank's block where it is of another type; dense */
    void *taken;     /* what this rank wants; dense */
} hl_intake;

/* The part of [batch C D H W] that this rank wants. */
typedef struct hl_wish {
    int64_t extent[HALO_DIMS]; /* of the array */
    hl_cuboid cells;
    bool f64; /* may be f64 */
} hl_wish;

struct halo_trainer {
    hl_run run;
    int64_t share;           /* samples of a step that this rank's group takes: from first_sample on */
    int64_t first_sample;
    int64_t in[4], out[4];   /* of a whole sample, C D H W; numbers: T 1 1 1 */
    int64_t y_ext[4];        /* of its targets: those of the output, or a class number for all its channels */
    hl_cells x_box, y_box;   /* this rank's part of a sample */
    int64_t volume, outputs, truths; /* values of a whole sample, of what is made of it, and of its targets */
    int64_t part, targets;   /* of this rank's part of sample and output */
    /* room for `share` of them: a part of a batch, the last samples of a prediction */
    float *x, *y, *prediction;
    double *weight;
    hl_intake x_intake, y_intake, outlet; /* the last the other way: from what this rank makes to its block */
};

/* One step on the share of this rank, x [share, C, part] and y [share, targets]. Collective. */
halo_status hl_trainer_step(halo_trainer *t, halo_dtype type, const void *x, const float *y, double lr, double *loss);
void hl_intake_free(hl_intake *i);

#endif
