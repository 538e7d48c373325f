/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h -- a run: settings made into a network, data, a model and its programs; the training loop; evaluation; prediction.
 *
 * On several ranks (a context with a communicator) everything here is collective unless it says otherwise: all ranks call it in the same order, and all fail
 * when one does. Every rank has the whole model and takes its share of each batch, or, with `parallel.spatial`, its group of ranks does, and each of these a
 * block of every sample of it (parallel.c). Rank 0 alone writes files and tells observers.
 */
#ifndef HL_RUN_H
#define HL_RUN_H

#include "base/context.h"
#include "comm/seats.h"
#include "io/io.h"
#include "net/program.h"
#include "optim/schedule.h"
#include "train/events.h"
#include "train/memory.h"
#include "train/settings.h"

typedef enum hl_split { HL_TRAIN = 0, HL_VALIDATION, HL_TEST, HL_SPLITS } hl_split;

enum { HL_OBSERVERS_MAX = 4 };

struct hl_shapes;

/* Where a run stands: everything that a checkpoint keeps beside the model. */
typedef struct hl_progress {
    int64_t epoch, step_in_epoch; /* the next step's place in the stream of samples */
    int64_t step;                 /* optimiser steps done */
    double best;                  /* best validation loss so far; infinity before the first */
    int64_t best_epoch;
    int64_t waited;               /* validations since then */
    double seconds;               /* training time, earlier parts included */
} hl_progress;

/* What a choice of groups expects: the backward pass takes so long, a sum costs so much, and the last sum ends so long after backward began (NaN: not modelled). */
typedef struct hl_hidden {
    double backward, end;
    hl_reduce_cost cost;
} hl_hidden;

/* What a rank did in a training, counted. */
typedef struct hl_counted {
    double read;     /* bytes of files */
    hl_traffic sent; /* to the others of its spatial group, by training steps */
} hl_counted;

typedef struct hl_run {
    halo_context *ctx;
    hl_settings set;
    halo_device *dev; /* the context's */
    hl_links *links;       /* between the ranks' devices; NULL: by way of the host */
    bool mpi_reaches;      /* the device's memory */
    hl_grid grid;     /* this rank among those that hold a sample together, and these among those that take other samples */
    hl_team *team;    /* the ranks of it; NULL: a run that is only looked at, or the library's of one rank */
    struct halo_network *net;
    hl_source *source[HL_SPLITS];
    int64_t universes; /* of data.train, where data.split cuts it; 0: not counted yet */
    hl_model *model;
    hl_program *train, *eval;
    char *plan_shared;        /* directory of measured choices of all runs; NULL: none, or not this rank's */
    struct hl_shapes *shapes; /* programs for other extents than the network's (shapes.h); NULL: none yet */
    hl_reducer *reducer; /* NULL on one rank */
    hl_hidden hidden;    /* what was expected of it */
    hl_seat *seat;       /* [ranks], from the start of training */
    hl_counted *counted; /* [ranks], at its end */
    bool lost;           /* a rank failed where the others cannot know of it: end by hl_comm_abort */
    hl_schedule schedule;
    hl_progress at;
    int observers;
    struct { hl_observer call; void *user; } observer[HL_OBSERVERS_MAX];
    int (*stop_requested)(void); /* polled between steps; NULL: never */
    void (*stop_reached)(void);  /* called when no more steps follow, before what is then written; may be NULL */
    double started, seconds_before; /* clock; training time of the parts before */
    int lock;                       /* of the run directory; 0 or -1: none */
    size_t resident;                /* memory of the process before the run's own */
    hl_forecast forecast;           /* of training: found before anything large is allocated */
    bool only_ask;                  /* outlines that do not fit are no error */
    size_t least;                   /* what one needs at least that did not fit */
    size_t eval_beside;             /* bytes of the program for evaluation that do not lie in training's activations */
    size_t program_limit[2];        /* most bytes of the programs for training and for evaluation; 0: no limit */
} hl_run;

/* What a run needs opened. */
typedef enum hl_need { HL_NEED_NETWORK = 0, HL_NEED_TRAINING, HL_NEED_EVALUATION } hl_need;

/*
 * Applies backend, threads, isa and seed of the settings to the context, opens the data of the splits in `splits` (bit 1 << split; missing
 * paths are errors for those), builds the network with sizes from settings and data, and makes model and programs as `need` says. Training whose memory does
 * not fit is refused, or with settings.check made without programs.
 */
halo_status hl_run_create(halo_context *ctx, const hl_settings *set, hl_need need, unsigned splits, hl_run **run);
void hl_run_destroy(hl_run *run);

/* As hl_run_create for training without data, compiled up to pass `after` (NULL: all). */
halo_status hl_run_explain(halo_context *ctx, const hl_settings *set, const char *after, hl_run **run);

halo_status hl_run_observe(hl_run *run, hl_observer call, void *user);
void hl_run_tell(hl_run *run, const hl_event *event);
/* The epoch, counted from 1, that the last step belonged to; 0 before the first step of all. */
static inline int64_t hl_run_epoch(const hl_run *run) { return run->at.epoch + (run->at.step_in_epoch > 0); }

/* The network of the settings for samples of ext (C D H W, 0 = from settings or the variant) and `outputs` targets. */
halo_status hl_run_network(halo_context *ctx, const hl_settings *set, const int64_t ext[4], int64_t outputs, struct halo_network **net);
/* What the settings say of files that were not written for halo. It points into the settings and the source of the training data. */
void hl_run_arrays(hl_run *run, hl_array_options *out);
/* The first group of the training data, for a run that opens no data: to be looked at, and closed. NULL where it cannot be opened, which is no error. */
hl_source *hl_run_look(hl_run *run);

/* ------------------------------------------------------------------------------------------- several ranks (parallel.c) */

/* Lays out the ranks as the settings ask: run->grid and run->team; to be looked at, without the team and as that one of as many ranks as are asked for which has
 * the most to do. All ranks fail together where their number does not fit. Collective. */
halo_status hl_run_make_grid(hl_run *run, bool look);

/* Samples of one run of a program: the largest share of any group of ranks, cut into train.accumulate parts; and how many parts there are. Not collective. */
int64_t hl_run_part(const hl_run *run);
int64_t hl_run_parts(const hl_run *run);

/* What this rank loads for a program: which samples, and which cells of them, into a loader's options. Not collective. */
void hl_run_cells(const hl_run *run, const hl_program *program, hl_loader_options *options);
/* Whether samples are patches of volumes of any extents. */
bool hl_run_patches(const hl_settings *set);
/* That volumes are resampled to; 0: none. */
void hl_run_spacing(const hl_settings *set, double spacing[3]);
/* What class k is called: its name in `data.classes`, else its number. Not collective. */
void hl_class_name(const hl_settings *set, int k, char *out, size_t size);
/* Classes that the targets number: the network's outputs with `loss: cross_entropy`, else 0. */
int hl_run_classes(const hl_run *run);
/* hl_loader_next, and then the transforms for which all of a sample is needed. Collective over the ranks that hold samples together; also after a failure. */
halo_status hl_run_next(hl_run *run, hl_loader *loader, const hl_loaded **batch);
/* Bytes of a file that this rank reads for a sample, margin and target volumes included; of a contiguous file exactly these. Not collective. */
int64_t hl_run_read_bytes(hl_run *run);
/* Memory of the loader of the training data: batches read ahead, and a sample as it is read and before it is turned. Not collective. */
int64_t hl_run_loader_bytes(hl_run *run);
/* Of all loaders that there are at the same time, and of what they deliver to. Not collective. */
int64_t hl_run_io_bytes(hl_run *run);
/* Of x and y of a part that is not whole (hl_part). Not collective. */
int64_t hl_run_batch_bytes(hl_run *run);

/* The training program of the run's grid place up to `fit`: nothing is allocated. */
halo_status hl_run_outline(hl_run *run, hl_program **program);
/* What the ranks of the run's grid hold and send in a step, the most of any; found on one process. */
typedef struct hl_figures {
    int64_t ranks;
    size_t peak_bytes_rank;      /* memory: weights, state, activations, scratch, messages, samples read ahead */
    int64_t halo_bytes[2];       /* forward, backward: margins sent to neighbours */
    int64_t halo_bytes_group[2]; /* by all ranks of a spatial group */
    int64_t halo_messages;       /* of both */
    int64_t gather_bytes;        /* blocks sent where tensors stop being split, and back */
    int64_t reduce_bytes;        /* of gradients that are summed, as they travel */
    int64_t read_bytes_sample;
} hl_figures;
halo_status hl_run_figures(hl_run *run, hl_figures *figures);

/* Cuts what a loader gave into these parts (part.c). */
typedef struct hl_part {
    int64_t samples;        /* of a part */
    size_t volume, targets; /* values of a sample */
    halo_device *device;    /* whose memory it is, where samples leave the loader as they are stored; else NULL */
    size_t value;           /* bytes of one of x */
    void *x;                /* room for a part that is not whole */
    float *y;
    double *weight, *numbers;
} hl_part;
halo_status hl_part_create(const hl_run *run, hl_part *part); /* hl_part_free also after a failure */
void hl_part_free(hl_part *part);
/* Valid until the next call, and as long as `b`. */
hl_batch hl_part_of(const hl_part *part, const hl_loaded *b, int64_t number);
/* The same, of a batch that is yet to come, where it is as it is stored and stays where it is; false: it is not. */
bool hl_part_next(const hl_part *part, const hl_loaded *b, int64_t number, hl_batch *batch);

/* Threads of this rank where the settings do not say: those of the context, but where its ranks are not bound to cores of their own, a fair share of the
 * node's. Not collective. */
int hl_run_threads(const halo_context *ctx);
/* What several ranks cannot do (yet), each in a sentence. Not collective. */
halo_status hl_run_check_ranks(const hl_run *run);
/* Fills in run->seat; rank 0 says who sits where, and warns of cores that ranks share and of threads beyond them. Collective. */
halo_status hl_run_seats(hl_run *run);
/* The reducer that the settings ask for, given to the training program. Nothing on one rank. */
halo_status hl_run_make_reducer(hl_run *run);
/* groups[gradients] as the settings ask, o->groups of them (groups.c). o->gradient is `gradient`, whose times may change. Collective. */
halo_status hl_run_choose_groups(hl_run *run, hl_reducer_options *o, hl_gradient *gradient, hl_group *groups);

/* HALO_ERR_USAGE where `reduce.group` asks for what this network cannot do, on any number of ranks. Not collective. */
halo_status hl_run_check_groups(const hl_run *run);

/* `data.zscore: set` becomes the mean and deviation of the training data, measured here. Collective. */
halo_status hl_run_standardise(hl_run *run);

/* The transforms of the settings into a loader's options. */
void hl_run_transforms(const hl_settings *set, hl_loader_options *options);

/* How batches of training are drawn. */
hl_loader_options hl_run_training_loader(const hl_run *run);
hl_vary hl_run_vary(const hl_settings *set);
/* stored.c: how samples may come to a program that is yet to be compiled, of the training data or what else was opened; whether a loader is to hand them out so; all of what it handed out. */
hl_stored hl_run_stored(hl_run *run, bool training);
void hl_run_store(const hl_run *run, const hl_program *program, const hl_source *source, hl_loader_options *options);
hl_batch hl_batch_of(const hl_loaded *loaded);
/* Running statistics of batch norms from the weights as they are (running.c). Collective. */
halo_status hl_run_measure_running(hl_run *run);

/* The compile options that the settings ask for. */
hl_compile_options hl_run_compile_options(const hl_settings *set, bool training);
hl_optim_spec hl_run_optim_spec(const hl_settings *set);

/* The whole of training: resume, epochs, validation, early stop, checkpoints, summary. HALO_ERR_STOPPED after a stop on request with a checkpoint. */
halo_status hl_run_train(hl_run *run);

/* What ranks say to each other with each step: a wish to stop, and data that cannot be read. */
enum { HL_VOTE_SIGNAL = 0, HL_VOTE_TIME, HL_VOTE_FAILED };
/* In training, does any rank want to stop? HALO_ERR_STOPPED then, on all, without a message. Collective. */
halo_status hl_run_look_for_stop(const hl_run *run);
/* This rank's, of signal and time. Not collective. */
void hl_run_vote(const hl_run *run, double votes[HL_VOTES]);

typedef struct hl_evaluation {
    double loss;
    int targets;
    const hl_target *target;
    hl_score *score, *group_score; /* [targets], owned; freed by hl_evaluation_free */
    int64_t items, groups;
    int classes;    /* of targets that are class numbers: the score is one of errors in shares (metrics.h); 0 */
    hl_class_score *of_class;  /* [classes], owned */
    hl_class_metrics *counted; /* what they were made of, owned */
    int64_t cases;             /* scored one by one: the samples, of volumes; 0 */
    hl_source *source;
    int64_t voxels; /* of each target of a sample: 1, or those of a volume, which are scored one by one; group_score is then score */
    bool own_extents, voxels_differ; /* samples are whole volumes of their own extents; whose numbers of voxels are not those of the first */
    int parts;                       /* that samples were told apart into; 0 */
    struct hl_part_scores *part;     /* [parts], owned */
    double seconds, samples_per_second;
} hl_evaluation;

/* Samples of a split told apart: each is in the part of_sample, from 0 to n - 1. */
typedef struct hl_parts {
    int n;
    const int *of_sample; /* [samples] */
} hl_parts;

/* score [targets], of_class [classes] or NULL, as hl_evaluation has them of all; NaN and NULL where nothing of a part counts. */
typedef struct hl_part_scores {
    hl_score *score;
    hl_class_score *of_class;
} hl_part_scores;

/* The prediction of a sample, in stored units: [targets] numbers, with the truth; or a box C D H W of its volumes. */
typedef struct hl_prediction {
    int64_t sample, lo[4], ext[4];
    const float *truth, *value;
} hl_prediction;
typedef halo_status (*hl_visit_prediction)(void *user, hl_source *source, const hl_prediction *p);

/* Every sample of the split once; in training HALO_ERR_STOPPED, without a message, as soon as any rank wants to stop. visit (may be NULL) gets each prediction,
 * on rank 0: samples in order, volumes in boxes that together are all of one before the next. parts (may be NULL): scores of each of them, too. Collective; the same on all ranks. */
halo_status hl_run_evaluate(hl_run *run, hl_split split, const hl_parts *parts, hl_visit_prediction visit, void *user, hl_evaluation *out);
void hl_evaluation_free(hl_evaluation *e);
void hl_evaluation_json(const hl_evaluation *e, hl_json *j); /* the members, into an open object */
/* Of them alone: what each class's scores are; and each case by itself. */
void hl_class_scores_json(int classes, const hl_class_score *of_class, hl_json *j);
void hl_cases_json(const hl_evaluation *e, hl_json *j);

/* ------------------------------------------------------------------------------------------------ checkpoints (state.c) */

/* Model, optimiser, progress, settings and network into one file (doc/formats.md). The three of state.c are not collective. */
halo_status hl_state_save(hl_run *run, const char *path);
/* Restores into a run of the same network; names the first difference. with_progress: also optimiser and position, refused when training
 * settings that change the sample stream differ. */
halo_status hl_state_load(hl_run *run, const char *path, bool with_progress);
/* The settings and the network (YAML text, freed by the caller) that a checkpoint was made with. */
halo_status hl_state_peek(halo_context *ctx, const char *path, char **settings, char **network);
/* What the targets of its training data were, [*n], freed by the caller; NULL where the file does not say. */
halo_status hl_state_targets(halo_context *ctx, const char *path, hl_target **target, int *n);

/* What `init` asks for: parameters of the same name and shape from a checkpoint, unless the run already is somewhere; says what was taken, what was not, and what is
 * frozen (start.c). Collective: rank 0 reads. */
halo_status hl_run_start_from(hl_run *run);

/* ------------------------------------------------------------------------------------------- run directory (rundir.c) */

/* Makes output/ and output/checkpoints/ and locks them for this run. Refuses a directory that another run uses, or whose checkpoints an earlier run
 * left unless resuming. */
halo_status hl_rundir_begin(hl_run *run);
/* What a run that could not begin, on a full disk for one, left of a directory that it made: nothing was said in the log. */
void hl_rundir_forget(const char *output);
/* The weights of a run that evaluation takes, as far as that can be told without loading them: best.h5, else the newest checkpoint that opens. *path NULL: none;
 * freed by the caller. */
halo_status hl_rundir_find(halo_context *ctx, const char *output, char **path);
/* config.yaml, once it is sure that the run goes on. */
halo_status hl_rundir_write_config(hl_run *run);
/* Writes checkpoints/step-NNNNNNNN.h5 (and first best.h5: *best is false afterwards where that failed), then removes the oldest beyond `keep`. This, begin and
 * summary are rank 0's alone. */
halo_status hl_rundir_checkpoint(hl_run *run, bool *best);
/* As `resume` asks: nothing, a file, or the newest checkpoint that loads whole (broken ones are warned of; none at all is no error). */
halo_status hl_rundir_resume(hl_run *run);
/* The weights alone of the newest checkpoint that loads whole; an error when there is none. */
halo_status hl_rundir_newest(hl_run *run);
halo_status hl_rundir_summary(hl_run *run, const char *status, const hl_evaluation *last, double samples_per_second, double gflops);

/* Observer that appends log.jsonl; user is an hl_runlog. */
typedef struct hl_runlog hl_runlog;
halo_status hl_runlog_open(hl_run *run, hl_runlog **log);
/* What each rank read from files, "read_bytes": a list; and sent in a step to those that hold samples with it, "sent": a list. Nothing before the end of training. */
void hl_counted_json(const hl_run *run, hl_json *j);
void hl_runlog_close(hl_runlog *log);
void hl_runlog_event(void *user, const hl_event *event);

#endif
