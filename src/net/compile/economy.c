/* SPDX-License-Identifier: Apache-2.0 */
/*
 * economy.c -- a program that keeps to the memory limit: which values are not stored, and in how many slabs they are made anew (slabs.c).
 *
 * Compiling up to `fit` allocates nothing, so that ways are tried: round by round, from the program in which everything is stored, one more value of the largest
 * that are there at the moment of the peak is given up, or the number of slabs is doubled; the one of those that saves most bytes for the operations that it
 * adds. Of ways that fit the one with the fewest operations ends the search. Trials use the first implementation of each op and belong to this process alone;
 * the program itself is then compiled as it was asked for, and where measured implementations want more memory than the first ones the search goes on.
 */
#include "net/compile/compile.h"

#include "comm/comm.h"

#include <stdio.h>

enum { CANDIDATES = 5, ROUNDS = 48, CHEAPER_ROUNDS = 3, FIRST_SLABS = 4, LEAST_CELLS = 4, ATTEMPTS = 4 };

/* So many times the bytes are worth all operations of a step. */
#define DEAR 20.0

typedef struct search {
    hl_model *model;
    hl_compile_options opt; /* of trials */
    hl_compile_switches off;
    bool *may;
    hl_economy now;
    int slabs, most_slabs;
    bool any;
    size_t plain_bytes, plain_peak, bytes, limit;
    halo_layout layout; /* of the program in which everything is stored */
    double plain_flops, flops, over; /* over: as of candidates, now */
} search;

/* One thing to give up. */
typedef struct candidate {
    int value;      /* of the program now; -1: twice as many slabs */
    size_t peak;    /* bytes at the peak */
    size_t bytes;   /* of the program then */
    double flops, over;
} candidate;

/* With the many steps of many slabs. */
static size_t bytes_of(const search *s, const hl_program_info *info) { return info->peak_bytes + (s->off.free_records ? 0 : info->record_bytes); }

static halo_status compile_trial(const search *s, const char *after, const hl_economy *e, hl_program **p)
{
    hl_compile_options o = s->opt;
    o.after = after;
    return hl_compile_one(s->model, &o, s->off, e, p);
}

/* The program in which everything is stored. */
static halo_status look_at_plain(search *s)
{
    hl_program *p;
    hl_program_info info;
    HL_TRY(compile_trial(s, "fit", NULL, &p));
    hl_program_info_get(p, &info);
    s->bytes = s->plain_bytes = bytes_of(s, &info);
    s->flops = s->plain_flops = info.flops_step;
    s->plain_peak = info.peak_bytes;
    s->layout = info.layout;
    hl_program_destroy(p);
    return HALO_OK;
}

/* How far the program is from the limit: bytes beyond it, summed over steps, so that of two peaks of one height each that is taken away counts. */
static double over_limit(const search *s, const hl_program *p, const hl_program_info *info)
{
    const double rest = (double)bytes_of(s, info) - (double)info->activation_bytes, limit = (double)s->limit;
    double sum = fmax(0, rest + (double)info->activation_bytes - limit);
    for (int i = 0; i < p->steps; i++) sum += fmax(0, rest + (double)hl_program_live(p, i) - limit) / fmax(1, p->step[i].slabs);
    return sum;
}

static halo_status trial(const search *s, const hl_economy *e, candidate *c)
{
    hl_program *p;
    hl_program_info info;
    HL_TRY(compile_trial(s, "fit", e, &p));
    hl_program_info_get(p, &info);
    c->bytes = bytes_of(s, &info);
    c->flops = info.flops_step;
    c->over = over_limit(s, p, &info);
    hl_program_destroy(p);
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------------- candidates */

/* The value that lies where v does: others may have been merged into it. */
static int survivor(const hl_program *p, int v)
{
    while (p->value[v].into >= 0) v = p->value[v].into;
    return v;
}

static bool can_give_up(const search *s, const hl_program *p, int value)
{
    for (int v = 0; v < s->now.values; v++)
        if (survivor(p, v) == value && (s->now.parts[v] > 0 || !s->may[v])) return false;
    return value < s->now.values;
}

static void insert(candidate *list, int *n, candidate c)
{
    int at = *n < CANDIDATES ? (*n)++ : CANDIDATES;
    while (at > 0 && list[at - 1].peak < c.peak) {
        if (at < CANDIDATES) list[at] = list[at - 1];
        at--;
    }
    if (at < CANDIDATES) list[at] = c;
}

static int list_candidates(const search *s, const hl_program *p, candidate *list)
{
    size_t most;
    int n = 0, at = hl_program_peak(p, &most);
    for (int v = 0; v < s->now.values; v++)
        if ((hl_value_live(&p->value[v], at) || s->bytes <= s->limit) && can_give_up(s, p, v)) insert(list, &n, (candidate){.value = v, .peak = p->value[v].bytes});
    if (s->any && 2 * s->slabs <= s->most_slabs) list[n++] = (candidate){.value = -1};
    return n;
}

/* The parts of `now` with the candidate, into e. */
static void give_up(const search *s, const hl_program *p, const candidate *c, hl_economy *e)
{
    const int slabs = c->value < 0 ? 2 * s->slabs : s->slabs;
    for (int v = 0; v < e->values; v++) {
        bool more = c->value >= 0 && survivor(p, v) == c->value;
        e->parts[v] = more || s->now.parts[v] > 0 ? slabs : 0;
    }
}

/* -------------------------------------------------------------------------------------------------------- the search */

static double worth(const search *s, const candidate *c)
{
    double saved = s->over - c->over, added = fmax(0, c->flops - s->flops) / s->plain_flops;
    return saved / (1 + DEAR * added);
}

static const candidate *better(const search *s, const candidate *best, const candidate *c)
{
    if (c->over >= s->over) return best;
    if (!best) return c;
    const bool fits[2] = {best->bytes <= s->limit, c->bytes <= s->limit};
    if (fits[0] != fits[1]) return fits[1] ? c : best;
    if (fits[0]) return c->flops < best->flops ? c : best;
    return worth(s, c) > worth(s, best) ? c : best;
}

static halo_status take(search *s, const hl_program *p, const candidate *c)
{
    hl_economy e = {.values = s->now.values};
    HL_TRY(hl_calloc(s->model->ctx, (size_t)e.values, sizeof(*e.parts), "what is not stored", &e.parts));
    give_up(s, p, c, &e);
    free(s->now.parts);
    s->now = e;
    s->slabs = c->value < 0 ? 2 * s->slabs : s->slabs;
    s->any = true;
    s->bytes = c->bytes;
    s->flops = c->flops;
    s->over = c->over;
    return HALO_OK;
}

static halo_status try_all(search *s, const hl_program *p, candidate *list, int n, const candidate **best)
{
    hl_economy e = {.values = s->now.values};
    halo_status st = HALO_OK;
    *best = NULL;
    HL_TRY(hl_calloc(s->model->ctx, (size_t)e.values, sizeof(*e.parts), "what is not stored", &e.parts));
    for (int i = 0; i < n && st == HALO_OK; i++) {
        give_up(s, p, &list[i], &e);
        st = trial(s, &e, &list[i]);
        if (st == HALO_OK) *best = better(s, *best, &list[i]);
    }
    free(e.parts);
    return st;
}

/* Of ways that fit, one with fewer operations: what is stored for the next loop's sake can make it one loop more. */
static const candidate *cheaper(const search *s, const candidate *list, int n)
{
    const candidate *best = NULL;
    for (int i = 0; i < n; i++)
        if (list[i].bytes <= s->limit && list[i].flops < (best ? best->flops : s->flops)) best = &list[i];
    return best;
}

static halo_status one_round(search *s, bool *more)
{
    candidate list[CANDIDATES + 1];
    const candidate *best = NULL;
    hl_program *p;
    hl_program_info info;
    HL_TRY(compile_trial(s, "fit", &s->now, &p));
    hl_program_info_get(p, &info);
    s->over = over_limit(s, p, &info);
    const int n = list_candidates(s, p, list);
    const bool fits = s->bytes <= s->limit;
    halo_status st = try_all(s, p, list, n, &best);
    if (fits) best = cheaper(s, list, n);
    *more = best != NULL;
    if (st == HALO_OK && best) st = take(s, p, best);
    hl_program_destroy(p);
    return st;
}

static halo_status seek(search *s)
{
    bool more = true;
    for (int i = 0; i < ROUNDS && more && s->bytes > s->limit; i++) HL_TRY(one_round(s, &more));
    more = s->any && s->flops > s->plain_flops;
    for (int i = 0; i < CHEAPER_ROUNDS && more; i++) HL_TRY(one_round(s, &more));
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------- begin, end */

static halo_status list_values(search *s, const hl_program *lowered)
{
    const size_t n = (size_t)lowered->values;
    const int64_t cells = lowered->value[lowered->y[0]].ext[HALO_D + hl_slab_axis(lowered)];
    s->now.values = lowered->values;
    s->most_slabs = (int)hl_min64(INT32_MAX, s->opt.slabs > 0 ? hl_min64(s->opt.slabs, cells) : hl_max64(1, cells / LEAST_CELLS));
    if (s->slabs > s->most_slabs) s->slabs = s->most_slabs;
    HL_TRY(hl_calloc(s->model->ctx, n, sizeof(*s->may), "what may not be stored", &s->may));
    HL_TRY(hl_calloc(s->model->ctx, n, sizeof(*s->now.parts), "what is not stored", &s->now.parts));
    for (int v = 0; v < lowered->values; v++) s->may[v] = hl_may_be_transient(lowered, v);
    return HALO_OK;
}

/* What may be given up is seen from the steps as they are lowered. */
static halo_status begin(search *s)
{
    hl_program *lowered;
    HL_TRY(compile_trial(s, "slabs", NULL, &lowered));
    halo_status st = list_values(s, lowered);
    hl_program_destroy(lowered);
    return st;
}

static void end(search *s)
{
    free(s->may);
    free(s->now.parts);
}

/* The most that any of the processes that compile together has. */
static halo_status most_of_group(const hl_compile_options *o, double *x) { return o->team && hl_grid_split(&o->team->grid) ? hl_comm_max(o->team->group, x, 1) : HALO_OK; }

/* What a program needs beyond the limit. */
static halo_status excess_of(const search *s, const hl_compile_options *o, const hl_program *p, double *excess)
{
    hl_program_info info;
    hl_program_info_get(p, &info);
    const size_t bytes = bytes_of(s, &info);
    *excess = bytes > o->memory_limit ? (double)(bytes - o->memory_limit) : 0;
    return most_of_group(o, excess);
}

static halo_status too_large(const search *s, const hl_program *p)
{
    const double mib = 1048576;
    hl_program_info i;
    char beside[96] = "";
    hl_program_info_get(p, &i);
    if (s->opt.least) *s->opt.least = bytes_of(s, &i);
    if (s->opt.only_ask) return HALO_ERR_NOMEM;
    if (s->opt.memory_beside > 0) snprintf(beside, sizeof(beside), ", I/O, messages and the process %.1f", (double)s->opt.memory_beside / mib);
    return hl_fail(p->ctx, HALO_ERR_NOMEM,
                   "'%s' at batch %" PRId64 " needs %.1f MiB at least: weights %.1f, optimiser state %.1f, activations %.1f, scratch %.1f, steps %.1f%s; the limit is %.1f MiB", p->net->name,
                   p->opt.batch, (double)(bytes_of(s, &i) + s->opt.memory_beside) / mib, (double)i.weight_bytes / mib, (double)i.state_bytes / mib,
                   (double)i.activation_bytes / mib, (double)i.scratch_bytes / mib, (double)i.record_bytes / mib, beside, (double)(p->opt.memory_limit + s->opt.memory_beside) / mib);
}

/* Processes that hold a sample together give up the same values, so that what they send each other comes in one order: all that one of them gives up and
 * none must keep. Collective over the group where `o` has one. */
static halo_status agree(search *s, const hl_compile_options *o)
{
    double *x;
    if (!o->team || !hl_grid_split(&o->team->grid)) return HALO_OK;
    const size_t n = (size_t)s->now.values;
    HL_TRY(hl_calloc(s->model->ctx, 2 * n, sizeof(*x), "what is not stored", &x));
    for (size_t v = 0; v < n; v++) {
        x[v] = s->now.parts[v];
        x[n + v] = !s->may[v];
    }
    halo_status st = hl_comm_max(o->team->group, x, 2 * (int64_t)n);
    for (size_t v = 0; v < n && st == HALO_OK; v++) s->now.parts[v] = x[n + v] > 0 ? 0 : (int)x[v];
    free(x);
    return st;
}

static void forget(hl_program **p)
{
    hl_program_destroy(*p);
    *p = NULL;
}

/* The program as it was asked for, with what the search found, in the layout of the trials; measured implementations may need more than the first ones, then once
 * more with less. */
static halo_status compile_within(search *s, const hl_compile_options *o, hl_program **program)
{
    for (int i = 0;; i++) {
        double excess, stuck;
        HL_TRY(seek(s));
        HL_TRY(agree(s, o));
        HL_TRY(hl_compile_one(s->model, o, s->off, &s->now, program));
        halo_status st = excess_of(s, o, *program, &excess);
        if (st == HALO_OK && excess == 0) return HALO_OK;
        stuck = s->bytes > s->limit || i + 1 == ATTEMPTS;
        if (st == HALO_OK) st = most_of_group(o, &stuck);
        if (st == HALO_OK && stuck > 0) st = too_large(s, *program);
        forget(program);
        if (st != HALO_OK) return st;
        s->limit -= excess < (double)s->limit ? (size_t)excess : s->limit;
    }
}

/* Passes before those that know sizes have nothing to save. */
static bool sized(const char *after) { return !after || strcmp(after, "fit") == 0 || strcmp(after, "bind") == 0; }

static void everything(search *s)
{
    for (int v = 0; v < s->now.values; v++) s->now.parts[v] = s->may[v] ? s->off.slabs : 0;
}

/* Everything stored, where that fits on all processes that compile together. */
static halo_status compile_plain(search *s, const hl_compile_options *o, hl_program **program, bool *done)
{
    double over = s->plain_bytes > o->memory_limit;
    *done = false;
    HL_TRY(most_of_group(o, &over));
    if (over > 0) return HALO_OK;
    HL_TRY(hl_compile_one(s->model, o, s->off, NULL, program));
    halo_status st = excess_of(s, o, *program, &over);
    *done = st == HALO_OK && over == 0;
    if (!*done) forget(program);
    return st;
}

/* Trials and the program are in one layout: what is fused depends on it, and the numbers of values on that. */
static halo_status fix_layout(search *s, hl_compile_options *o)
{
    double layout = s->layout;
    HL_TRY(most_of_group(o, &layout));
    s->opt.layout = o->layout = (halo_layout)(int)layout;
    return HALO_OK;
}

static halo_status economise(search *s, hl_compile_options *o, hl_program **program)
{
    bool done = false;
    HL_TRY(look_at_plain(s));
    if (s->off.slabs == 0) HL_TRY(compile_plain(s, o, program, &done));
    if (done) return HALO_OK;
    HL_TRY(fix_layout(s, o));
    halo_status st = begin(s);
    if (st == HALO_OK && s->off.slabs > 0) {
        everything(s);
        st = agree(s, o);
        if (st == HALO_OK) st = hl_compile_one(s->model, o, s->off, &s->now, program);
    } else if (st == HALO_OK) {
        st = compile_within(s, o, program);
    }
    if (st == HALO_OK) {
        (*program)->plain_bytes = s->plain_peak;
        (*program)->plain_flops = s->plain_flops;
    }
    end(s);
    return st;
}

halo_status hl_compile_with(hl_model *model, const hl_compile_options *options, hl_compile_switches off, hl_program **program)
{
    search s = {.model = model, .opt = *options, .off = off, .slabs = options->slabs > 0 ? options->slabs : FIRST_SLABS, .limit = options->memory_limit};
    hl_compile_options o = *options;
    *program = NULL;
    if ((s.limit == 0 && off.slabs == 0) || !sized(options->after)) return hl_compile_one(model, options, off, NULL, program);
    s.opt.plan = HL_PLAN_FIXED;
    s.opt.plan_cache = s.opt.plan_shared = NULL;
    s.opt.beside = NULL;
    if (options->team) s.opt.grid = options->team->grid;
    s.opt.team = NULL;
    return economise(&s, &o, program);
}
