/* SPDX-License-Identifier: Apache-2.0 */
/* loading.h -- what the two files of the loader (io.h) share: threads and their ring of batches in loader.c, what is done to each sample in loading.c. */
#ifndef HL_IO_LOADING_H
#define HL_IO_LOADING_H

#include "io/cells.h"
#include "io/cutter.h"
#include "tensor/block.h"

#include <pthread.h>

/* What is taken of x, or of targets that are volumes. */
typedef struct hl_aim {
    hl_cells cells;  /* as handed out */
    hl_cells from;   /* of the sample being loaded, as in the file */
    int64_t rest[3]; /* that is then still to be shifted */
} hl_aim;

struct hl_loader {
    halo_context *ctx;
    hl_source *source;
    hl_loader_options o;
    int64_t samples, steps, cells; /* samples in use, each as often as it gives patches; steps per epoch; C D H W of what is taken */
    int64_t patches;               /* of a sample; 1 where it is taken as it is */
    int64_t values;                /* likewise of the targets of a sample */
    hl_aim x, y;                      /* who fills uses these alone */
    int pending;                   /* transforms done here */
    hl_cutter *cutter;             /* of patches; NULL: samples are taken as they are */
    hl_range share;                /* of each batch */
    bool stored;                   /* samples leave as they are stored */
    uint64_t serial;               /* of the last batch that was begun */
    float *log_table;              /* NULL unless log1p of small integers comes first */
    void *raw;                     /* one sample as read; in its batch, where samples leave as they are stored */
    float *plain, *plain_y;        /* one sample, and its targets where they are volumes, before augmentation */
    struct hl_slot *ring; /* loader.c */
    int slots;
    int64_t *order;      /* of order_epoch; who fills uses these two alone */
    int64_t order_epoch; /* -1: none */

    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* guards what follows and the states of slots */
    pthread_cond_t room, arrived;
    bool quit;
    uint64_t generation;
    int64_t epoch, next_fill, next_take; /* next_fill == steps: nothing left to do */
    halo_status failed;                  /* at step failed_step */
    int64_t failed_step;
    char message[1024];
};

/* Where number `i` of a batch comes to lie. */
typedef struct hl_seat {
    float *x, *y;
    void *stored;
    double *number;
} hl_seat;
hl_seat hl_loading_seat(const hl_loader *loader, const hl_loaded *batch, int64_t i);

/* Number `number` of the list that is shuffled, as it is in this epoch. */
halo_status hl_load_entry(hl_loader *loader, int64_t epoch, int64_t number, hl_seat to);

/* Of the own cells of a sample. */
hl_moments hl_loading_moments(const hl_loader *loader, const float *x);

#endif
