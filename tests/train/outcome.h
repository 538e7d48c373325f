/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.h -- what a training leaves, for tests that compare trainings: losses, all parameters, and all gradients of the last step. */
#ifndef HL_TEST_OUTCOME_H
#define HL_TEST_OUTCOME_H

#include "comm/comm.h"
#include "tests/check.h"
#include "tests/tap.h"
#include "train/run.h"

enum { OUTCOME_STEPS = 16, OUTCOME_KEYS = 40 };

typedef struct outcome {
    int losses;
    double loss[OUTCOME_STEPS]; /* rank 0 */
    int64_t n;
    double *parameters, *gradients; /* [n] */
    int params;
    int64_t *at; /* [params + 1] */
} outcome;

/* A claim of all ranks, which rank 0 writes. */
static inline void outcome_claim(halo_context *ctx, bool holds, const char *sentence, double figure)
{
    double bad = holds ? 0 : 1;
    check_status(ctx, hl_comm_max(ctx, &bad, 1), "max");
    if (ctx->rank == 0) tap_ok(bad == 0, "%d ranks, %s [%.3g]", ctx->ranks, sentence, figure);
}

static inline void outcome_loss(void *user, const hl_event *e)
{
    outcome *o = user;
    if (e->kind == HL_EVENT_STEP && o->losses < OUTCOME_STEPS) o->loss[o->losses++] = e->loss;
}

static inline void outcome_arrays(const hl_run *run, outcome *o)
{
    const hl_param_info *list;
    o->params = hl_model_params(run->model, &list);
    o->at = check_alloc(o->params + 1, sizeof(*o->at));
    for (int i = 0; i < o->params; i++) o->at[i + 1] = o->at[i] + list[i].count;
    o->n = o->at[o->params];
    o->parameters = check_alloc(o->n, sizeof(double));
    o->gradients = check_alloc(o->n, sizeof(double));
    for (int i = 0; i < o->params; i++) {
        check_status(run->ctx, hl_model_get(run->model, i, HL_MASTER, o->parameters + o->at[i]), list[i].name);
        if (hl_model_has(run->model, i, HL_GRADIENT)) check_status(run->ctx, hl_model_get(run->model, i, HL_GRADIENT, o->gradients + o->at[i]), list[i].name);
    }
}

/* keys: "a=1 b=2", which are taken apart. The caller destroys the run. */
static inline hl_run *outcome_train(halo_context *ctx, char *keys, outcome *o)
{
    char *word[OUTCOME_KEYS];
    int n = 0;
    hl_settings *set = check_alloc(1, sizeof(*set));
    hl_run *run;
    for (char *p = strtok(keys, " "); p && n < OUTCOME_KEYS; p = strtok(NULL, " ")) word[n++] = p;
    check_status(ctx, hl_settings_load(ctx, "cosmoflow", n, word, set), "settings");
    check_status(ctx, hl_run_create(ctx, set, HL_NEED_TRAINING, 1u << HL_TRAIN, &run), "a run");
    check_status(ctx, hl_run_observe(run, outcome_loss, o), "its events");
    check_status(ctx, hl_run_train(run), "training");
    outcome_arrays(run, o);
    free(set);
    return run;
}

static inline void outcome_done(outcome *o)
{
    free(o->parameters);
    free(o->gradients);
    free(o->at);
}

/* Rank 0's bits on all ranks. */
static inline bool outcome_everywhere(halo_context *ctx, const double *x, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(double);
    double *first = check_alloc(n, sizeof(double));
    memcpy(first, x, bytes);
    check_status(ctx, hl_comm_broadcast(ctx, first, bytes, 0), "broadcast");
    bool same = memcmp(first, x, bytes) == 0;
    free(first);
    return same;
}

static inline bool outcome_equal(const outcome *a, const outcome *b)
{
    return a->n == b->n && memcmp(a->parameters, b->parameters, (size_t)a->n * sizeof(double)) == 0;
}

#endif
