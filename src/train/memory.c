/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c -- what a run will hold at its peak, before anything is allocated: the sum of what its model, its programs for training and evaluation, its readers
 * of samples and its messages need is known from their shapes; what the program itself takes is measured.
 *
 *     weights      4 P (8 P with gradients), images of both programs       P parameters
 *     activations  the arena of training, in which evaluation lies too where it fits
 *     messages     margins twice (sent, received); segments of sums; a batch that is filled up
 *     I/O          (prefetch + 1) batches of training, and as many of validation, which is made while those wait; a sample as it is read; the largest tensor on
 *                  its way to a checkpoint
 *
 * Measuring implementations needs the operands of one operation at a time, before the arena is there: less than the arena. Pages of files that the kernel keeps
 * are not counted: it gives them up.
 */
#include "train/memory.h"
#include "base/topology.h"
#include "comm/comm.h"
#include "train/run.h"

#include <stdio.h>

const char *const hl_memory_kind_name[HL_MEMORY_KINDS] = {"weights", "optimizer", "activations", "workspace", "messages", "io", "process"};

/* What libraries come to hold after a run was opened: code that is touched, tables of BLAS, stacks of threads; of MPI; and
 * what HDF5 takes to write files. Measured (x86-64, OpenBLAS, Open MPI). */
static const size_t growth = 3 << 20, growth_thread = 1 << 19, growth_ranks = 8 << 20, growth_writer = 6 << 20;

size_t hl_memory_total(const hl_memory *m)
{
    size_t sum = 0;
    for (int k = 0; k < HL_MEMORY_KINDS; k++) sum += m->kind[k];
    return sum;
}

size_t hl_message_bytes(const hl_traffic *t) { return 2 * (size_t)(t->halo_bytes[0] + t->halo_bytes[1] + t->gather_bytes); }

/* Between ranks: segments of sums under way, remainders of narrow wires, the batch of hl_part. */
static size_t reducing_bytes(hl_run *run)
{
    const size_t segments = 16 * 65536 * sizeof(float);
    if (run->ctx->ranks == 1) return 0;
    bool narrow = run->set.reduce.wire >= 2;
    return segments + (narrow ? (size_t)hl_model_gradient_bytes(run->model) : 0) + (size_t)hl_run_batch_bytes(run);
}

/* A tensor as a checkpoint writes it. */
static size_t largest_tensor(const hl_run *run)
{
    const hl_param_info *list;
    int64_t most = 0;
    int n = hl_model_params(run->model, &list);
    for (int i = 0; i < n; i++) most = hl_max64(most, list[i].count);
    return (size_t)most * hl_dtype_size(hl_model_dtype(run->model));
}

static void add_evaluation(hl_run *run, const hl_program_info *train, hl_memory *m)
{
    hl_program_info eval;
    if (!run->eval) return;
    hl_program_info_get(run->eval, &eval);
    m->kind[HL_MEMORY_WEIGHTS] += eval.image_bytes;
    if (eval.activation_bytes > train->activation_bytes) m->kind[HL_MEMORY_ACTIVATIONS] += eval.activation_bytes;
    m->kind[HL_MEMORY_WORKSPACE] += eval.scratch_bytes - (eval.landing_bytes <= train->landing_bytes ? eval.landing_bytes : 0) + eval.record_bytes;
    m->kind[HL_MEMORY_MESSAGES] += hl_message_bytes(&eval.traffic);
}

void hl_run_memory(hl_run *run, hl_memory *m)
{
    hl_program_info info;
    hl_program_info_get(run->train, &info);
    *m = (hl_memory){.kind = {[HL_MEMORY_WEIGHTS] = info.weight_bytes, [HL_MEMORY_OPTIMIZER] = info.state_bytes, [HL_MEMORY_ACTIVATIONS] = info.activation_bytes,
                              [HL_MEMORY_WORKSPACE] = info.scratch_bytes + info.record_bytes, [HL_MEMORY_MESSAGES] = hl_message_bytes(&info.traffic) + reducing_bytes(run)}};
    add_evaluation(run, &info, m);
    bool writes = *run->set.output && run->ctx->rank == 0;
    m->kind[HL_MEMORY_IO] = (size_t)hl_run_io_bytes(run) + (writes ? largest_tensor(run) + growth_writer : 0);
    m->kind[HL_MEMORY_PROCESS] = run->resident + growth + growth_thread * (size_t)run->ctx->threads + (run->ctx->ranks > 1 ? growth_ranks : 0);
}

/* -------------------------------------------------------------------------------------------------------------- judge */

/* What a rank says of itself. */
typedef struct said {
    hl_memory memory;
    hl_memory_bound bound;
    char host[64];
    int node;
} said;

/* Bytes of a node's ranks, and the smallest limit that one of them sees. */
static size_t node_of(const said *all, int ranks, int node, int *locals, const said **tightest)
{
    size_t sum = 0;
    *locals = 0;
    *tightest = NULL;
    for (int r = 0; r < ranks; r++) {
        if (all[r].node != node) continue;
        sum += hl_memory_total(&all[r].memory);
        ++*locals;
        if (!*tightest || all[r].bound.bytes < (*tightest)->bound.bytes) *tightest = &all[r];
    }
    return sum;
}

static void judge(hl_run *run, const said *all, hl_forecast *f)
{
    const int ranks = run->ctx->ranks;
    double worst = -1;
    for (int r = 0; r < ranks; r++)
        if (hl_memory_total(&all[r].memory) > hl_memory_total(&all[f->worst].memory)) f->worst = r;
    f->rank = all[f->worst].memory;
    for (int r = 0; r < ranks; r++) {
        if (r > 0 && all[r].node == all[r - 1].node) continue;
        const said *tightest;
        int locals;
        size_t bytes = node_of(all, ranks, all[r].node, &locals, &tightest);
        double share = tightest->bound.bytes ? (double)bytes / (double)tightest->bound.bytes : 0;
        if (share <= worst) continue;
        worst = share;
        f->locals = locals;
        f->node = bytes;
        f->bound = tightest->bound;
        memcpy(f->host, tightest->host, sizeof(f->host));
    }
    f->fits = worst <= 1;
}

static void add_key(hl_forecast *f, const char *key)
{
    size_t n = strlen(f->help);
    snprintf(f->help + n, sizeof(f->help) - n, "%s%s", n ? ", " : "", key);
}

/* Keys that make the larger kinds smaller. */
static void find_help(const hl_run *run, hl_forecast *f)
{
    const hl_settings *s = &run->set;
    const size_t tenth = hl_memory_total(&f->rank) / 10;
    const size_t volumes = f->rank.kind[HL_MEMORY_ACTIVATIONS] + f->rank.kind[HL_MEMORY_WORKSPACE];
    if (volumes > tenth && hl_run_part(run) > 1) add_key(f, "train.accumulate");
    if (volumes + f->rank.kind[HL_MEMORY_IO] > tenth) {
        if (s->batch > run->grid.data) add_key(f, "batch");
        add_key(f, "parallel.spatial");
        if (s->data.patch[0] > 0) add_key(f, "data.patch");
        else if (!s->data.crop[0]) add_key(f, "data.crop");
    }
    if (f->rank.kind[HL_MEMORY_IO] > tenth && s->data.prefetch > 0) add_key(f, "data.prefetch");
    if (f->rank.kind[HL_MEMORY_OPTIMIZER] > tenth && s->optimizer.name >= 2) add_key(f, "optimizer.name");
    if (f->locals > 1) add_key(f, "fewer ranks on a node");
    if (!*f->help) add_key(f, "a smaller network");
}

void hl_forecast_help(hl_forecast *f, size_t limit)
{
    char others[sizeof(f->help)];
    memcpy(others, f->help, sizeof(others));
    snprintf(f->help, sizeof(f->help), "memory.limit=%.0fMiB, %.200s", (double)limit / 1048576, others);
}

halo_status hl_run_forecast(hl_run *run, hl_forecast *f)
{
    said mine = {.node = hl_comm_place(run->ctx).node}, *all;
    *f = (hl_forecast){.worst = 0};
    hl_run_memory(run, &mine.memory);
    hl_memory_bound_find("", &mine.bound);
    hl_host_name(mine.host, sizeof(mine.host));
    HL_AGREE(run->ctx, hl_calloc(run->ctx, (size_t)run->ctx->ranks, sizeof(mine), "what ranks need", &all));
    halo_status st = hl_comm_gather(run->ctx, &mine, sizeof(mine), all);
    if (st == HALO_OK) {
        judge(run, all, f);
        if (!f->fits) find_help(run, f);
    }
    free(all);
    return st;
}

halo_status hl_run_refuse(hl_run *run, const hl_forecast *f)
{
    const double mib = 1048576.0;
    const size_t *kind = f->rank.kind;
    if (f->fits || !run->set.memory_check) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_USAGE,
                   "this run needs %.0f MiB of memory on '%s' (%d rank%s), which has %.0f (%s); of a rank's %.0f MiB weights take %.0f, the optimiser %.0f, "
                   "activations %.0f, workspace %.0f, messages %.0f, I/O %.0f; what would help: %s; 'memory.check=false' tries all the same",
                   (double)f->node / mib, f->host, f->locals, HL_S(f->locals), (double)f->bound.bytes / mib, f->bound.what,
                   (double)hl_memory_total(&f->rank) / mib, (double)kind[HL_MEMORY_WEIGHTS] / mib, (double)kind[HL_MEMORY_OPTIMIZER] / mib,
                   (double)kind[HL_MEMORY_ACTIVATIONS] / mib, (double)kind[HL_MEMORY_WORKSPACE] / mib, (double)kind[HL_MEMORY_MESSAGES] / mib,
                   (double)kind[HL_MEMORY_IO] / mib, f->help);
}
