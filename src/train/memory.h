/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h -- what a run will hold in memory, by kind, and whether that fits where its ranks are.
 */
#ifndef HL_TRAIN_MEMORY_H
#define HL_TRAIN_MEMORY_H

#include "base/limits.h"
#include "base/str.h"
#include "net/program.h"

struct hl_run;

typedef enum hl_memory_kind {
    HL_MEMORY_WEIGHTS = 0, /* master weights, gradients, and their images in the layouts that operations want */
    HL_MEMORY_OPTIMIZER,
    HL_MEMORY_ACTIVATIONS, /* and their gradients; evaluation lies in the same */
    HL_MEMORY_WORKSPACE,   /* of operations */
    HL_MEMORY_MESSAGES,    /* margins and gradients on their way to and from other ranks */
    HL_MEMORY_IO,          /* samples read ahead, checkpoints being written */
    HL_MEMORY_PROCESS,     /* the program, its libraries, threads, what the data's files keep open */
    HL_MEMORY_KINDS
} hl_memory_kind;
extern const char *const hl_memory_kind_name[HL_MEMORY_KINDS];

typedef struct hl_memory {
    size_t kind[HL_MEMORY_KINDS];
} hl_memory;
size_t hl_memory_total(const hl_memory *m);

/* What all ranks need; the same everywhere. */
typedef struct hl_forecast {
    hl_memory rank;          /* of the one that needs most */
    int worst;               /* its number */
    int locals;              /* ranks of the node that is nearest to its limit, or furthest beyond */
    size_t node;             /* what they need together */
    hl_memory_bound bound;   /* what they may have */
    char host[64];
    bool fits;
    char help[256];          /* where it does not: keys that would help, "batch, train.accumulate" */
} hl_forecast;

/* Of messages: what is sent and what is received is packed. */
size_t hl_message_bytes(const hl_traffic *t);
/* This rank's share, of its programs as they are, bound or not. Not collective. */
void hl_run_memory(struct hl_run *run, hl_memory *m);
/* Gathers that of all ranks, and judges. Collective. */
halo_status hl_run_forecast(struct hl_run *run, hl_forecast *f);
/* A 'memory.limit' with which it would fit, as the first thing that would help. */
void hl_forecast_help(hl_forecast *f, size_t limit);
/* HALO_ERR_USAGE on all ranks where it does not fit, unless `memory.check` is off. Not collective. */
halo_status hl_run_refuse(struct hl_run *run, const hl_forecast *f);

#endif
