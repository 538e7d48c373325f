/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.h -- evaluation programs of one network for volumes of other extents than those it is trained on: a bounded cache, a program for each distinct shape.
 *
 * Each has a copy of the weights in a model of its own, since a program's network says its extents; hl_shapes_refresh gives them those of the run's model. Collective over the ranks that hold samples
 * together (run->team->group) unless it says otherwise.
 */
#ifndef HL_TRAIN_SHAPES_H
#define HL_TRAIN_SHAPES_H

#include "train/run.h"

enum { HL_SHAPES_MOST = 4 };

typedef struct hl_shape {
    int64_t ext[3];       /* D H W of what the program takes */
    int64_t batch;        /* volumes of one run */
    hl_program *program;
    hl_cells x, y;        /* this rank's part of them, and of what comes out */
    hl_cells *of_rank;    /* [ranks of the group] y of each */
    struct halo_network *net; /* owned, as are model and program; NULL of the run's own */
    hl_model *model;
    uint64_t used;
} hl_shape;

typedef struct hl_shapes hl_shapes;

/* Keeps run->shapes, where there are none yet, and gives copies of weights those that they have now. */
halo_status hl_shapes_refresh(hl_run *run);
void hl_shapes_free(hl_shapes *shapes); /* not collective; NULL is allowed */

/*
 * The shape in which a volume of extents n is taken: as a whole, extents rounded up to what the network can halve, where `predict.volumes` is whole, or auto and it fits into memory (in training, and of
 * networks that normalise single samples: into a patch); else the patch. Valid until the next call.
 */
halo_status hl_shapes_choose(hl_run *run, const int64_t n[3], const hl_shape **shape);

/* What extents must be a multiple of, so that each layer of the network halves them evenly: how much smaller its smallest tensor is. Not collective. */
void hl_network_unit(const struct halo_network *net, int64_t unit[3]);

#endif
