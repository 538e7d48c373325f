/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h -- a network compiled for fixed shapes on a device: the ordered plans of one training step or one evaluation.
 *
 * A *model* holds what outlives any program: master weights, gradients, optimiser state and running statistics, each kind contiguous per
 * group. Programs of different batch sizes or of training and evaluation share one model. After hl_compile a step only runs: no allocation, no
 * lookup by name, no lock.
 *
 * Values: logical tensor, dtype, distribution, margins, storage slot, lifetime. Steps: an op's plan, later exchanges, redistributions,
 * reductions. Both are readable: hl_program_print shows them after any pass.
 */
#ifndef HL_PROGRAM_H
#define HL_PROGRAM_H

#include "backend/backend.h"
#include "net/graph.h"
#include "base/config.h"
#include "base/json.h"
#include "comm/reducer.h"
#include "comm/team.h"
#include "optim/scaler.h"

/* ------------------------------------------------------------------------------------------------------------ model */

typedef struct hl_model hl_model;

/* Optimiser settings that decide how much state there is. */
typedef struct hl_optim_spec {
    halo_update_params update; /* lr_factor and weight_decay are per layer class: see decay below */
    double weight_decay;       /* applied to parameters whose info.decay is set, of layers matched by decay_layers */
    double dense_decay;        /* < 0: same as weight_decay */
    double clip_norm;          /* 0 = off: all updates wait for the global norm */
    hl_scaling scaling;        /* of the loss; where it is on, all updates wait too */
    const hl_words *freeze;    /* patterns of layers or parameters that stay as they are (freeze.c); read by hl_model_create alone, NULL: none */
} hl_optim_spec;

/* Allocates on the context's device and initialises parameters by the context's seed. `optim` NULL: no gradients and no state (evaluation). */
halo_status hl_model_create(halo_context *ctx, halo_device *dev, const struct halo_network *net, const hl_optim_spec *optim, hl_model **model);
/* As hl_model_create, but without the arrays: shapes and places alone, for programs that are compiled up to `fit` to be looked at. */
halo_status hl_model_outline(halo_context *ctx, halo_device *dev, const struct halo_network *net, const hl_optim_spec *optim, hl_model **model);
void hl_model_destroy(hl_model *model);

int hl_model_params(const hl_model *model, const hl_param_info **list);
/* Whether a shell pattern is that of the parameter's name or of its layer's: "conv1/weights", "conv*". */
bool hl_param_matches(const struct halo_network *net, const hl_param_info *p, const char *pattern);

/* Which array of a parameter. */
typedef enum hl_array { HL_MASTER = 0, HL_GRADIENT, HL_STATE1, HL_STATE2, HL_ARRAYS } hl_array;
const char *hl_array_name(hl_array a); /* "value", "gradient", "momentum"/"m", "variance"/"v" */
bool hl_model_has(const hl_model *model, int param, hl_array a);
/* To and from host double? No: native type f32 (f64 on a double device) through double is exact both ways; host[count] doubles. */
halo_status hl_model_get(hl_model *model, int param, hl_array a, double *host);
halo_status hl_model_set(hl_model *model, int param, hl_array a, const double *host);
/* Raw bytes in the device's master type, for checkpoints: dtype, then count elements. */
halo_dtype hl_model_dtype(const hl_model *model);
halo_status hl_model_get_raw(hl_model *model, int param, hl_array a, void *host);
halo_status hl_model_set_raw(hl_model *model, int param, hl_array a, const void *host);
/* All gradients, contiguous, in backward order. */
int64_t hl_model_gradient_bytes(const hl_model *model);
halo_status hl_model_gradient_range(hl_model *model, void **ptr, int64_t *elements);
int64_t hl_model_steps(const hl_model *model); /* optimiser steps done: t of Adam */
void hl_model_set_steps(hl_model *model, int64_t t);
/* The state of loss scaling, which updates move. */
hl_scaler hl_model_scaler(const hl_model *model);
void hl_model_set_scaler(hl_model *model, const hl_scaler *scaler);

/* ---------------------------------------------------------------------------------------------------------- compile */

typedef enum hl_plan_mode { HL_PLAN_MEASURE = 0, HL_PLAN_FIXED } hl_plan_mode;

typedef struct hl_program hl_program;

enum { HL_LINK_MARKS = 8 };

/* Links between the devices of all ranks, or of a node's (link.c). */
typedef struct hl_links {
    struct halo_link *order; /* what is put on it comes in the order of steps */
    struct halo_link *sums;  /* of gradients, on `beside` */
    struct halo_link *group, *peers; /* as in team.h, for small sums in the order of steps; NULL where that is all ranks, or this one */
    struct halo_queue *beside;
    int first, size, rank;   /* these ranks are first, first + 1, ... of the context's; this one among them */
    halo_context *between;   /* of a node's: the ranks of this one's number on all nodes, which sum what the nodes have (node_sums.c); NULL: links are between all ranks */
    struct halo_queue *mark[HL_LINK_MARKS]; /* of a node's: they tell when something on `beside` is done */
} hl_links;

/* auto: all ranks if that works, else each node's if that does. */
typedef enum hl_link_way { HL_LINK_AUTO = 0, HL_LINK_ALL, HL_LINK_NODE, HL_LINK_NONE } hl_link_way;

/* NULL where devices cannot: then rank 0 says why, unless it is plain. The caller closes them, NULL is allowed. Both collective. */
halo_status hl_links_open(const hl_team *team, halo_device *dev, hl_link_way way, hl_links **links);
void hl_links_close(halo_device *dev, hl_links *links);
/* Times sums of several sizes up to that of all gradients, in their memory and before the first step, and fits their cost: the slowest rank's. Collective. */
halo_status hl_links_measure(const hl_model *model, const hl_links *links, hl_reduce_cost *cost);

/* Samples as they are stored, for a device that turns, shifts and transforms them itself (HALO_OP_PREPARE), where it reads memory of the host by itself (halo_device_ops.pin); elsewhere it means nothing. */
typedef struct hl_stored {
    halo_dtype type; /* of x; HALO_NONE: they all come as the network takes them */
    int transforms;
    halo_transform transform[HALO_MAX_TRANSFORMS];
    bool targets;    /* are volumes, which are turned and shifted, too */
} hl_stored;

typedef struct hl_compile_options {
    int64_t batch;         /* samples of one run on this rank */
    bool training;         /* false: forward (and loss) only, norms use running statistics, dropout off */
    bool accumulate;       /* training: steps may add to the gradients of the steps before (hl_step_options.accumulate) */
    halo_loss loss;
    double huber_delta;
    const hl_words *class_weights; /* of losses of classes: a number for each class; NULL or none: 1. Read while compiling */
    bool ignores;                  /* and cells of this class number do not count */
    int64_t ignore;
    hl_plan_mode plan;
    const char *plan_cache; /* file of measured choices, NULL = none */
    const char *plan_shared; /* directory of those of all runs, NULL = none */
    size_t memory_limit;    /* 0 = none; else values are made anew in slabs instead of stored until the program fits (economy.c), or HALO_ERR_NOMEM */
    size_t memory_beside;   /* what else of a user's limit is taken, for the message that it is not enough */
    bool only_ask;          /* HALO_ERR_NOMEM without a message where the limit is too little */
    size_t *least;          /* where it is: what the program needs at least; NULL: nobody asks */
    int slabs;              /* in so many; 0: as it takes */
    halo_layout layout;     /* HALO_LAYOUTS: choose */
    hl_grid grid;           /* this process among those that hold a sample together; zero: alone. With `team`, that one's */
    const char *split_until; /* the last layer that may be split; NULL or "": as far as it fits */
    const hl_team *team;    /* the ranks themselves, for programs that run; NULL: one rank, or a program that is only looked at */
    const hl_links *links;  /* between the devices of all ranks, or of a node's; NULL: what they exchange goes by way of the host, or MPI reaches their memory. Outlive the program */
    bool mpi_reaches;       /* the memory of a device that the host does not reach: what ranks exchange and no link carries, is sent from there */
    hl_stored stored;       /* how samples may come that the device prepares */
    hl_program *beside;     /* a bound program of the same device that never runs at the same time: its memory of activations is used too where it is large
                             * enough. Either may be destroyed first. NULL: own memory */
    const char *after;      /* explain --after PASS: stop there; NULL = all. shape place differentiate precision lower slabs inplace views margins
                             * overlap choose fit bind. Up to fit nothing of the size of the network is allocated (measuring apart), and info and ops are
                             * complete; only a bound program runs. */
} hl_compile_options;

halo_status hl_compile(hl_model *model, const hl_compile_options *options, hl_program **program);
/* The last pass of a program that was compiled up to `fit`, whose memory is allocated now; beside as in hl_compile_options. Compiling several programs before any is
 * bound, operations are measured while there is least in memory. */
halo_status hl_program_bind(hl_program *program, hl_program *beside);
void hl_program_destroy(hl_program *program);

/* Of a training program: its gradients as the reducer wants them, in backward order, with the time at which each is complete as estimated from
 * operation counts. list has room for hl_model_params. Returns their number. */
int hl_program_gradients(const hl_program *program, hl_gradient *list);
/* Times the backward pass, for hl_program_gradients: before the first run, since gradients are overwritten. Not collective; takes as long as two of them. */
halo_status hl_program_time_backward(hl_program *program);
/* With links of nodes, before the reducer is made, over `between`: a rank's slices of the groups in *options are what it sums. Their buffer goes to *options, their places to
 * gradient[], which options->gradient is. */
halo_status hl_program_share_sums(hl_program *program, hl_reducer_options *options, hl_gradient *gradient);
/* From now on runs with `update` are collective: gradients, losses and votes are summed over the ranks of the reducer, which was made of
 * hl_program_gradients and of hl_model_gradient_range, and is not owned. */
halo_status hl_program_reduce(hl_program *program, hl_reducer *reducer);
/* After hl_program_reduce: gradients are no longer summed. Every rank steps on its own share's mean gradient, and after every `steps` updates parameters, optimiser
 * state and running statistics are averaged. average_now does so at once unless it was just done: before ranks evaluate or save together. Collective. */
halo_status hl_program_average(hl_program *program, int64_t steps);
halo_status hl_program_average_now(hl_program *program);
/* Statistics of batch norms are then those of all ranks, and so is what weighted losses of classes divide by: every run of a program that has either is collective (hl_program_merges). */
bool hl_program_merges(const hl_program *program);
/* Seconds that runs spent on that, all steps since the last reset. */
double hl_program_merge_seconds(hl_program *program, bool reset);

/* The cells [lo, lo + ext) of each sample's D H W that this process's program takes as input, margin included: what hl_batch.x holds. Beyond the volume's border
 * only where an axis is periodic: cells wrap around. And those of the output that it makes: of targets that are volumes, and predictions. */
void hl_program_input_box(const hl_program *program, int64_t lo[3], int64_t ext[3]);
void hl_program_output_box(const hl_program *program, int64_t lo[3], int64_t ext[3]);

/* -------------------------------------------------------------------------------------------------------------- run */

typedef struct hl_batch {
    halo_dtype dtype;     /* of x */
    const void *x;        /* host [batch, C, D, H, W], D H W those of hl_program_input_box */
    const float *y;       /* host [batch, T]: numbers, or volumes of the extents of hl_program_output_box; NULL in prediction */
    const double *weight; /* host [batch], 0 for padding samples; NULL = all 1 */
    int64_t first_sample; /* global index in the step of this rank's first sample */
    double weight_sum;    /* over all ranks; 0: of this batch */
    /* Of a batch as it is stored, in pinned memory: x of hl_stored.type, y unturned where targets are volumes, with the numbers [batch][HALO_SAMPLE_NUMBERS] of HALO_OP_PREPARE of x and of y. NULL: x and y are as
     * the network takes them. */
    const double *numbers, *numbers_y;
    uint64_t serial;                /* another one for every batch that ever has this x */
    const struct hl_batch *next;    /* what this program will run next, where that is known and there: it goes to the device beside this run, and stays as it is until its own run is over */
} hl_batch;

/* Whether batches may come as they are stored, and how. */
bool hl_program_lands(const hl_program *program);
const hl_stored *hl_program_stored(const hl_program *program);
/* The next batch was not to be: waits until nothing of it is on its way any more. */
halo_status hl_program_forget_next(hl_program *program);

enum { HL_VOTES = HALO_NUM_VOTES };

typedef struct hl_step_options {
    double lr;
    uint64_t seed, step;   /* dropout */
    bool accumulate;       /* gradients are added to those of the previous run; the program must be compiled with `accumulate` */
    bool update;           /* run the optimiser at the end */
    double grad_scale;     /* 1 / accumulated runs; 0 = 1 */
    double delta;          /* of a huber loss; 0: as the program was compiled */
    double vote[HL_VOTES]; /* summed over ranks with the loss: a wish to stop, say */
} hl_step_options;

typedef struct hl_step_result {
    double loss;      /* sum of weighted losses / sum of weights, of this rank; of all ranks in collective runs, as the next three. Where a sample is held by
                       * several ranks only the sums over all ranks mean something. */
    double loss_sum, weight_sum;
    double votes[HL_VOTES];
    double grad_norm; /* after scaling, before clipping; NaN when not measured */
    bool finite;
    bool skipped;     /* the gradients overflowed and the scale of the loss gave way: nothing was updated */
    double loss_scale; /* of this step; 1 without scaling */
    double seconds;
} hl_step_result;

/* Forward, loss, backward, update. A loss or gradient that is not finite: HALO_ERR_NONFINITE, result.finite is false, no update was done, and
 * the error message names the first layer whose output or gradient is not finite (found by hl_program_find_nonfinite). Gradients are looked
 * at in runs with `update`. result may be NULL. Collective in runs with `update` after hl_program_reduce: all ranks fail for the same value that is not
 * finite; after any other error the ranks may be anywhere (hl_comm_abort). */
halo_status hl_program_train(hl_program *program, const hl_batch *batch, const hl_step_options *options, hl_step_result *result);

/* Forward only, by a program compiled without `training`. prediction: host [batch, outputs] float or NULL. result may be NULL; its loss is NaN
 * where batch->y is NULL. A loss that is not finite is not an error here. */
halo_status hl_program_evaluate(hl_program *program, const hl_batch *batch, float *prediction, hl_step_result *result);

/* Whether the network has running statistics. */
bool hl_program_has_running(const hl_program *program);
/*
 * A forward pass of a training program for the running statistics alone: after batches 0 to n - 1 went through this, one after the other with the weights
 * untouched, they are the means of the statistics of those n batches (running.c). Collective where hl_program_merges or parameters are averaged.
 */
halo_status hl_program_measure_running(hl_program *program, const hl_batch *batch, int64_t number);

/* Name of the first layer with a non-finite value: the last run is done again from its input, without updates; NULL if none. */
const char *hl_program_find_nonfinite(hl_program *program);

/* ---------------------------------------------------------------------------------------------------------- explain */

/* What a process sends to the others of its spatial group. */
typedef struct hl_traffic {
    int64_t halo_bytes[2]; /* margins: forward; and backward, those of gradients and what is sent back */
    int64_t halo_messages; /* of both */
    int64_t gather_bytes;  /* blocks of tensors that are not split any more, both ways */
    int64_t runs;          /* counted: of the transfer that ran most often; all above are of one run */
    double exposed;        /* counted: seconds that computing waited */
} hl_traffic;

typedef struct hl_program_info {
    int64_t parameters;
    double flops_forward, flops_step;
    size_t peak_bytes, weight_bytes, state_bytes, activation_bytes, scratch_bytes;
    size_t image_bytes; /* of weight_bytes: this program's own */
    size_t landing_bytes; /* of scratch_bytes: for samples as they are stored, shared with a program beside that has as many */
    size_t record_bytes; /* host memory, not in peak_bytes: the program's steps and values themselves, much where there are many slabs */
    int reorders;    /* activation layout conversions inside the step */
    int references;  /* ops that got a reference implementation */
    halo_layout layout, input_layout; /* HALO_LAYOUTS before `choose` */
    int ops;
    int joined, copied; /* pieces of concatenations, forward and backward, that are written where they are joined; and that have to be copied */
    hl_traffic traffic; /* of a step of this rank */
    int slabs;          /* with a memory limit: in so many values are made anew (hl_program_anew); 0: all are stored */
    size_t plain_bytes; /* peak_bytes, were all stored... */
    double plain_flops; /* ...and flops_step; of the first implementations */
} hl_program_info;

/* What the ranks that really ran this program sent since it was made. Not collective. */
hl_traffic hl_program_counted(const hl_program *program);

typedef struct hl_op_info {
    const char *name; /* "conv1"; of updates, norms and weight images the parameter: "conv1/weights" */
    const char *kind; /* "conv-fwd" */
    const char *direction; /* "forward" | "backward" | "update" */
    const char *impl;
    bool reference;
    double flops, bytes;
    double seconds, seconds_least; /* median and minimum of the timed runs; NaN when not timed */
    double items;      /* independent pieces of work, as dealt to the device's threads */
    double efficiency; /* the best that these allow on so many threads: 1 = all are busy all the time */
    const halo_op_desc *desc;
} hl_op_info;

void hl_program_info_get(const hl_program *program, hl_program_info *info);
void hl_program_op(const hl_program *program, int i, hl_op_info *info);
/* The names of the values that are not stored, the first `most` of them: "act1, act1.gradient and 3 more". */
void hl_program_anew(const hl_program *program, int most, hl_str *out);
/* Every run records each step's time while on (bench), the last 64 of them; off by default. Switching on forgets the old ones. */
halo_status hl_program_time(hl_program *program, bool on);
/* A readable text of values and steps. */
halo_status hl_program_print(const hl_program *program, hl_str *out);
/* Of one that was compiled up to `fit`: which bytes are live at each step, and what is there at the peak. */
halo_status hl_program_print_memory(const hl_program *program, hl_str *out);
int hl_program_steps(const hl_program *program);
size_t hl_program_live(const hl_program *program, int step);

#endif
