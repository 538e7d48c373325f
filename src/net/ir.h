/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ir.h -- the inside of a program: what the compiler's passes work on, what a run runs, what `explain`
 * prints.
 *
 * A *value* is a logical tensor: extents N C D H W, dtype, layout class, margins and what they hold, and
 * where it is stored. A *step* is one operation with a *use* of a value per role. Before `lower` a step
 * stands for a whole layer; afterwards for one op of the backend contract. Steps are sorted by phase, and
 * their order is the order of execution.
 *
 * Nothing is named by address before `bind`: values are indices into hl_program.value, layers indices into
 * the graph, parameters indices into the model's list; -1 is none.
 */
#ifndef HL_IR_H
#define HL_IR_H

#include "comm/exchange.h"
#include "net/model.h"
#include "net/program.h"

/* ------------------------------------------------------------------------------------------------- values */

typedef enum hl_value_kind {
    HL_VALUE_INPUT = 0,
    HL_VALUE_ACTIVATION,
    HL_VALUE_GRADIENT,   /* of an activation */
    HL_VALUE_SAVED,      /* written forward for backward: argmax */
    HL_VALUE_STATISTICS, /* of norms, and the loss */
    HL_VALUE_TARGET,     /* targets and sample weights */
    HL_VALUE_PARAMETER, /* the model's: masters, their gradients, optimiser state, running statistics, squared
                           norms */
    HL_VALUE_IMAGE,     /* of weights, as a candidate wants them */
    HL_VALUE_KINDS
} hl_value_kind;

/* Which physical layout a value takes, decided for all values of a class at once (choose). */
typedef enum hl_layout_class {
    HL_CLASS_PLAIN = 0, /* vectors, statistics, parameters: ncdhw */
    HL_CLASS_INPUT,   /* the input, and what pointwise ops and pools make of it, where its channels are fewer
                         than a block */
    HL_CLASS_PROGRAM, /* every other activation and gradient */
    HL_CLASSES
} hl_layout_class;

typedef enum hl_storage { HL_REGION_ARENA = 0, HL_REGION_IMAGES, HL_REGION_MODEL, HL_REGIONS } hl_storage;

typedef struct hl_value {
    char name[HL_NAME_MAX + 16];
    hl_value_kind kind;
    int layer;
    int64_t ext[HALO_DIMS]; /* of this process's block */
    bool split;             /* over the spatial group; else every process has all of it */
    int64_t lo[3], whole[3]; /* of the block in the whole tensor, and that one's extents, [d h w] */
    halo_dtype dtype;
    hl_layout_class cls;
    int64_t margin[3][2];     /* cells allocated around the box */
    int64_t near[3][2];       /* KEEP axes: cells that the neighbour before has in its high margin, the one behind in its low: what they get from here */
    halo_margin_mode mode[3]; /* what the margin of an axis holds when fresh: ZERO, WRAP, or KEEP: what neighbouring processes sent */
    bool near_any;            /* some process of the group has a KEEP margin */
    bool dead;                /* merged into another value, or of no use */
    int slabs;                /* > 0: not stored, but made anew in so many (slabs) */
    int into;                 /* dead: the value that it was merged into; -1: none (inplace, views) */
    bool forever; /* keeps its content from run to run, or is read by the host: shares storage with nobody */

    halo_operand operand; /* geometry; margin = all of it (choose) */
    size_t bytes;
    int first, last; /* steps between which the content matters (fit) */
    bool alone; /* shares storage with nobody: margins and padding lanes stay as they were cleared (fit) */
    hl_storage region;
    size_t offset; /* in the region */
    int param;     /* HL_VALUE_PARAMETER, HL_VALUE_IMAGE */
    int array;     /* HL_VALUE_PARAMETER: hl_model_array */
    int image;     /* HL_VALUE_IMAGE: the candidates' name for it */
} hl_value;

/* -------------------------------------------------------------------------------------------------- steps */

typedef enum hl_step_kind {
    HL_STEP_LAYER = 0,
    HL_STEP_OP,
    HL_STEP_START,  /* a transfer begins: reads X, writes Y */
    HL_STEP_FINISH, /* and has arrived */
    HL_STEP_CLEAR,  /* Y becomes 0 */
    HL_STEP_SUM,    /* gradients lo to lo + n are summed over all ranks, beside what comes after (link.c); between nodes, n 0: the step's loss and votes (node_sums.c) */
    HL_STEP_JOIN,   /* sums are there */
    HL_STEP_ADD     /* n f64 at X are summed over the ranks of `link` */
} hl_step_kind;

typedef enum hl_phase {
    HL_PHASE_WEIGHT_NORMS = 0, /* when LARC is on and weights were changed from outside */
    HL_PHASE_IMAGES,           /* when they changed since this program's last run */
    HL_PHASE_FORWARD,
    HL_PHASE_LOSS,
    HL_PHASE_BACKWARD,
    HL_PHASE_GRADIENT_NORMS,
    HL_PHASE_DECIDE, /* whether there is to be an update, and clipping */
    HL_PHASE_UPDATE,
    HL_PHASES
} hl_phase;

/* A step's view of a value. */
typedef struct hl_use {
    int value;
    int64_t margin[3][2]; /* cells around the box that the op may read: what its window needs, at most the
                             value's margin */
    int64_t
        grow[3][2]; /* cells by which the box is larger than the value's own: gradients of periodic windows */
    int64_t c_lo, c_ext; /* a range of channels; c_ext 0: all */
    int64_t lo[3], ext[3]; /* a range of cells of the value's box, [d h w]; ext 0: all of that axis */
    bool flat;           /* seen as a vector of elements */
    int64_t rows;        /* > 1: rows of a vector seen as one sample: [N rows, F] as [N, rows F] */
    bool near;           /* some process of the group reads margins that neighbours send */
} hl_use;

typedef struct hl_step {
    hl_step_kind kind;
    hl_phase phase;
    int layer;
    int param;
    hl_use use[HALO_ROLES];
    halo_op_desc desc; /* all but the operands from lower on; the operands from choose on */
    int transfer;  /* START, FINISH: index into hl_program.transfer */
    halo_candidate choice;
    int image; /* the value that is given as weights, when the choice wants an image of them */
    const char *copied; /* of a concatenation: why it has to be; NULL: any other step (views) */
    int64_t lo, n; /* SUM, ADD */
    struct halo_link *link; /* ADD */
    int slab, slabs; /* one of the turns of a loop over slabs; slabs 0: none */
    double flops, bytes;
    halo_plan *plan;
    halo_op_args args;
    double *times; /* [HL_TIMES_MAX] of the last timed runs */
    int64_t timed;
} hl_step;

enum { HL_TIMES_MAX = 64 };

/* What travels between the processes of a spatial group (transfer.c). */
typedef enum hl_transfer_kind {
    HL_TRANSFER_MARGINS = 0, /* KEEP margins of a value */
    HL_TRANSFER_FOLD,        /* margins of a gradient are added to the cells that they stand for */
    HL_TRANSFER_GATHER       /* blocks of a split value become the whole on every process; its own block is copied by an op */
} hl_transfer_kind;

typedef struct hl_transfer {
    hl_transfer_kind kind;
    int layer, from, to;
    bool add;                           /* GATHER: to what is there */
    int64_t margin[3][2], near[3][2];   /* FOLD: as those of values */
    int64_t bytes;                      /* that this process sends to others, each time; from choose on */
    int messages;                       /* in so many */
    hl_exchange *exchange;              /* bound */
    struct hl_passage *passage;               /* where devices exchange data among themselves, else NULL (passage.c) */
    struct hl_mirror *mirror;           /* where MPI cannot reach the device's memory, else NULL (mirror.c) */
} hl_transfer;

/* How the gradient of a layer's input is formed by one of its consumers. */
typedef enum hl_edge {
    HL_EDGE_NONE = 0, /* not wanted */
    HL_EDGE_WRITE,    /* the first in backward order */
    HL_EDGE_ADD,      /* one more consumer */
    HL_EDGE_ALIAS     /* the gradient of the output is the gradient of the input: one value */
} hl_edge;

/* ------------------------------------------------------------------------------------------------ program */

/* What becomes of a gradient whose sum over ranks arrives (arrive.c). */
typedef struct hl_arrival {
    int param;
    int free_after;   /* last backward step that reads the parameter, -1: none */
    int norm, update; /* its steps, -1: none */
} hl_arrival;

/* For tests: what a pass would do is left out. */
typedef struct hl_compile_switches {
    bool no_fuse, no_inplace, no_reuse, no_alone, no_overlap, no_views;
    bool cut_all; /* into interior and border, however small */
    bool free_records; /* the memory of steps and values themselves does not count for the limit: for networks so small that little else is there */
    int slabs;    /* > 0: nothing is stored that could be made anew, in so many slabs */
} hl_compile_switches;

/* What is not stored, as economise decides and slabs carries out: per value, as numbered after `lower`, into how many slabs it is made anew; 0: stored. */
typedef struct hl_economy {
    int values;
    int *parts;
} hl_economy;

struct hl_program {
    halo_context *ctx;
    halo_device *dev;
    hl_model *model;
    const struct halo_network *net;
    hl_compile_options opt;
    hl_compile_switches off;
    const hl_economy *economy; /* NULL: everything is stored */
    int lowered_values;        /* how many there were after `lower` */
    int joined;                /* pieces of concatenations that need no copy (views) */
    size_t plain_bytes;        /* with an economy: what the program would need... */
    double plain_flops;        /* ...and do without */
    char after[16]; /* the last pass done */

    hl_value *value;
    int values;
    size_t value_cap;
    hl_step *step;
    int steps;
    size_t step_cap;
    int phase[HL_PHASES + 1]; /* first step of each phase, from bind on */

    hl_grid grid;
    hl_transfer *transfer;
    int transfers;
    size_t transfer_cap;

    /* per layer of the graph */
    bool *split; /* computed on blocks: its inputs and output are split over the grid (distribute) */
    int *other, *g_other; /* values: its output, and the gradient of that, split where it is not, or whole where it is split; -1: nobody wants it so */
    bool *g_first;        /* some consumer wrote the gradient of the output in its own form */
    bool *live;  /* the output depends on it */
    bool *needs; /* its output's gradient is wanted */
    int *y, *g;  /* values: output and its gradient */
    int *aux, *stat, *stat2;
    bool *early;   /* activation in front of a max pool: its derivative is applied to the pool's gradient */
    int *fused;    /* conv, dense, norm: the activation layer that it computes too */
    int *pooled;   /* conv: the pool layer that it computes too, behind its activation if it has one */
    bool *unpools; /* pool: its backward op takes its activation's with it */
    hl_edge *edge; /* [layers][HL_INPUTS_MAX] */

    int target, weight, numbers; /* values: targets, sample weights, the step's numbers */
    int class_weight, divisor; /* values: of losses of classes whose cells have weights; -1: none have */
    double *class_weights, *divisors; /* [classes], NULL: 1; [samples] */
    int *param_value;         /* [parameters][HL_MODEL_ARRAYS] */

    halo_layout layout, input_layout;
    double layout_seconds; /* of a step, when measured */
    size_t arena_bytes, image_bytes, scratch_bytes; /* of scratch_bytes hl_landing_bytes are the landing place, which is not at `scratch` */
    struct hl_arena *store; /* where `arena` lies (arena.c) */
    void *arena, *images, *scratch;
    double *host; /* [batch x rows] sample weights */
    halo_step_record record;
    uint64_t image_version;
    bool timing;
    bool merged;  /* the devices merge statistics of norms (merge.c), not the host */
    bool summing; /* this run's gradients are summed by links */
    bool forked;  /* some are on the queue beside, and nothing waits for them yet */

    struct hl_landing *landing;       /* of samples as they are stored; NULL: they come as the network takes them */
    struct hl_recordings *recordings; /* NULL: none yet */
    struct hl_node_sums *node_sums;   /* of links of nodes; NULL: others */
    struct hl_passage *packed;        /* started, and not sent yet (passage.c) */
    hl_reducer *reducer; /* NULL: gradients are of one rank */
    int *complete;       /* [gradients] the backward step after which each has its value; -1: nothing writes it */
    int gradients;
    double *seconds;      /* [steps] of backward ones, timed before the first step; NULL: not timed */
    int64_t average;      /* parameters are averaged over ranks after so many updates; 0: gradients are summed */
    int64_t averaged;     /* optimiser steps done at the last average */
    hl_arrival *arrival;  /* [gradients] */
    double square_sum;    /* of the gradients whose groups arrived in this step */
    double bad;           /* of their values, those that are not finite */
    double number[HALO_NUMBERS]; /* the votes that go up; all of them as last read */
    bool updated;         /* some weights were changed in this step */
    double *statistics;   /* host room for merging those of norms over ranks; NULL: not needed */
    double merge_seconds; /* of all steps, for that */
};

/* arena.c: memory of p->arena_bytes, in that of the program beside where it is large enough, NULL: there is none; before each run: it is this program's, cleared if another ran since. */
typedef struct hl_arena hl_arena;
halo_status hl_arena_open(hl_program *p, const hl_program *beside);
void hl_arena_close(hl_program *p);
halo_status hl_arena_take(hl_program *p);

/* load.c: input, targets, sample weights, numbers; what the step will divide by. */
halo_status hl_load(hl_program *p, const hl_batch *batch);
/* Address of a value of the arena. */
static inline void *hl_storage_of(const hl_program *p, int value) { return (char *)p->arena + p->value[value].offset; }
/* In so many are samples cut at the network's end. */
static inline int64_t hl_rows(const hl_program *p) { return p->net->layer[p->net->layers - 1].rows; }

/* landing.c: what it takes of the device's memory, and of that what it does not share with the program beside, NULL: none; a landing place, where the program is to prepare samples; a batch as it is stored becomes
 * input, and targets that are volumes, and the next one is sent behind it. */
size_t hl_landing_bytes(const hl_program *p);
size_t hl_landing_own_bytes(const hl_program *p, const hl_program *beside);
halo_status hl_landing_make(hl_program *p, const hl_program *beside);
void hl_landing_free(hl_program *p);
halo_status hl_landing_take(hl_program *p, const hl_batch *batch);
/* All that the step has put on the default queue is done; samples of the next one may be on their way still. */
halo_status hl_wait_for_step(hl_program *p);

/* run.c: one step, and nothing else... */
halo_status hl_execute(hl_program *p, hl_step *s);
/* ...timed and traced where that is on, statistics of norms merged. */
halo_status hl_run_step(hl_program *p, hl_step *s);
/* Steps from `first` on, as many as go together but none from `limit` on; *next: the first that was not run. The last ones may be on the device still. */
halo_status hl_run_some(hl_program *p, int first, int limit, int *next);
void hl_recordings_free(hl_program *p);
/* Progress for transfers where no thread gives it. */
halo_status hl_run_poll(hl_program *p);
/* Data up and the forward phase, no loss. Between the device's enter and leave. */
halo_status hl_run_forward(hl_program *p, const hl_batch *batch);
/* x[n] becomes its mean over all ranks. Collective. */
halo_status hl_average_buffer(hl_program *p, void *x, int64_t n, halo_dtype type);

/* arrive.c: param[gradients]: the parameter of each gradient; and backward, at the end of which all gradients are summed and, with `update`, their parameters
 * stepped unless something was not finite. */
halo_status hl_arrivals_prepare(hl_program *p, const int *param);
halo_status hl_backward_and_sum(hl_program *p, bool update);

/* transfer.c: a new one, as a start and a finish, appended; the messages of this process for it, once geometry is set: list freed by the caller. */
halo_status hl_transfer_new(hl_program *p, const hl_transfer *t, hl_phase phase);
halo_status hl_transfer_count(hl_program *p, hl_transfer *t);
halo_status hl_transfer_messages(const hl_program *p, const hl_transfer *t, hl_message **list, int *n);

/* mirror.c: host mirrors of the values of a transfer; start and finish of its exchange by way of them. from, to: device addresses of the values. */
typedef struct hl_mirror hl_mirror;
/* The region again as a box of its operand, whose memory is in the order of the region (mirror.c). */
halo_operand hl_region_box(const halo_operand *o, const hl_region *r);
halo_status hl_mirror_make(hl_program *p, const hl_transfer *t, const hl_message *message, int n, hl_mirror **mirror);
void hl_mirror_free(hl_mirror *mirror);
halo_status hl_mirror_start(hl_program *p, hl_transfer *t, void *from, void *to);
halo_status hl_mirror_finish(hl_program *p, hl_transfer *t, void *to);

/* passage.c: a transfer over a link between devices, put on the device like an operation. */
typedef struct hl_passage hl_passage;
/* link NULL: by an MPI that reaches the device's memory; then all of the group make it together. */
halo_status hl_passage_make(hl_program *p, const hl_transfer *t, const hl_message *message, int n, halo_link *link, hl_passage **passage);
void hl_passage_free(hl_program *p, hl_passage *passage);
/* Whether the device does it all. */
bool hl_passage_on_device(const hl_passage *passage);
halo_status hl_passage_start(hl_program *p, const hl_transfer *t, void *from, void *to);
halo_status hl_passage_finish(hl_program *p, const hl_transfer *t, void *from, void *to);
void hl_passage_stats(const hl_passage *passage, hl_exchange_stats *stats);
/* node_sums.c: of links of nodes: the sum of the group that begins at element lo begins; all sums are there, on the default queue; sums of the step's numbers. */
typedef struct hl_node_sums hl_node_sums;
halo_status hl_node_sums_out(hl_program *p, int64_t lo);
halo_status hl_node_sums_in(hl_program *p);
halo_status hl_node_sums_numbers(hl_program *p);
void hl_node_sums_free(hl_program *p);
/* link.c: sums of the reducer's groups as steps of the program, once it is bound and `complete` is known: what `complete` says are numbers of steps before; and their run, for runs
 * that sum (summing). */
halo_status hl_sums_place(hl_program *p, const hl_reducer *r);
halo_status hl_sum_run(hl_program *p, const hl_step *s);
halo_status hl_sums_join(hl_program *p);

/* merge.c: the steps that merge, over ranks that devices link, what a bound step left (hl_statistics_after), appended. */
halo_status hl_merge_place(hl_program *p, const hl_step *of);

/* statistics.c: room for merging, once bound; after a step of a norm, what the next one uses is that of all ranks. */
halo_status hl_statistics_prepare(hl_program *p);
halo_status hl_statistics_merge(hl_program *p, hl_step *s);
/* The ranks whose statistics are merged, NULL: this one's alone; whether this one's gradients of a norm's parameters are those that count. */
halo_context *hl_statistics_scope(const hl_program *p, const hl_step *s);
bool hl_statistics_count(const hl_program *p, const hl_step *s);
/* Whether there is something to merge after this step; whether the host may do so. */
bool hl_statistics_after(const hl_step *s);
bool hl_statistics_wanted(const hl_program *p, const hl_step *s);

/* weigh.c: weights of cells in losses of classes. The values for them, at the end of `lower`; value of the sums of split samples; before a run with targets: what their labels say,
 * weight[N] the samples' own. */
halo_status hl_weigh_prepare(hl_program *p);
halo_status hl_weigh_sums(hl_program *p, int *value);
halo_status hl_weigh_labels(hl_program *p, const float *y, const double *weight);
bool hl_program_weighs(const hl_program *p);

/* -------------------------------------------------------------------------------------- building, in ir.c */

halo_status hl_value_new(hl_program *p, hl_value_kind kind, int layer, const char *suffix, int *value);
/* One more value like another (extents, dtype, class; no margins): a gradient, or a temporary. */
halo_status hl_value_like(hl_program *p, int like, hl_value_kind kind, int layer, const char *suffix,
                          int *value);
/* The value that stands for an array of a parameter. */
halo_status hl_param_value(hl_program *p, int param, int array, int *value);
/* The square sums of all gradients, as one. */
halo_status hl_norms_value(hl_program *p, int *value);
/* Appends a step; *step is valid until the next one is appended. */
halo_status hl_step_new(hl_program *p, hl_step_kind kind, hl_phase phase, int layer, hl_step **step);
halo_status hl_op_new(hl_program *p, halo_op_kind kind, hl_phase phase, int layer, hl_step **step);
/* p->phase, once all steps are there. */
void hl_find_phases(hl_program *p);
/* By phase; steps of a phase keep their order. */
halo_status hl_sort_steps(hl_program *p);
/* For passes that write the list anew: all *n steps, freed by the caller, after which the program has none; and one of them, appended as it is. */
hl_step *hl_take_steps(hl_program *p, int *n);
halo_status hl_step_again(hl_program *p, const hl_step *step);
hl_use hl_use_of(int value);
hl_use hl_use_flat(int value);
/* Whole samples of a layer whose samples are cut into rows (hl_layer.rows). */
hl_use hl_use_samples(const hl_program *p, int layer, int value);

/* The value of a layer's k-th input in the form in which the layer takes it, and that one's gradient. */
int hl_input(const hl_program *p, int layer, int k);
int hl_input_gradient(const hl_program *p, int layer, int k);

/* Index of the layer's parameter with this role (the first), or -1. */
int hl_layer_param(const hl_program *p, int layer, halo_role role);
/* Layer index of an input slot. */
static inline const hl_layer *hl_layer_of(const hl_program *p, int layer)
{
    return &p->net->layer[layer];
}

/* True when the op writes this role; and when it reads it. STAT of a loss, say, is both. */
bool hl_step_writes(const hl_step *s, halo_role role);
bool hl_step_reads(const hl_step *s, halo_role role);

/* The geometry of all values for one pair of layouts; an error names the layer whose tensor is too large to
 * index. */
halo_status hl_set_geometry(hl_program *p, halo_layout layout, halo_layout input_layout);
/* The input's box together with the margins that come from files and not from neighbours. */
halo_operand hl_input_operand(const hl_program *p);
/* desc.t[] of a step from the geometry of its values. */
void hl_step_operands(const hl_program *p, hl_step *s);
/* What an output of a forward window op sees of its input: desc.window or, of a convolution that pools, one window for all that is pooled into it. */
halo_window hl_desc_window(const halo_op_desc *d);
/* False when an operand is not valid, such as a channel range that begins inside a block. */
bool hl_step_valid(const hl_step *s);

/* memory_plan.c: whether a value's storage is its own at a step; the step at which most bytes are live, and how many. After `fit`. */
bool hl_value_live(const hl_value *v, int step);
int hl_program_peak(const hl_program *p, size_t *most);

/* The name under which a step is shown: its layer's or parameter's. */
const char *hl_step_name(const hl_program *p, const hl_step *s);
/* "conv-fwd"; "exchange" */
const char *hl_step_op_name(const hl_step *s);
const char *hl_phase_direction(hl_phase phase);
const char *hl_value_kind_name(hl_value_kind kind);

/* One chain of passes, whatever the memory limit says (but for what `fit` keeps apart); and hl_compile with passes left out. */
halo_status hl_compile_one(hl_model *model, const hl_compile_options *options, hl_compile_switches off, const hl_economy *economy, hl_program **program);
halo_status hl_compile_with(hl_model *model, const hl_compile_options *options, hl_compile_switches off,
                            hl_program **program);

#endif
