/* SPDX-License-Identifier: Apache-2.0 */
/*
 * universes.c -- makes and writes many universes.
 *
 * Small universes are made one per thread and rank, which needs no synchronisation at all; large ones one at
 * a time with all threads, and with all ranks, inside.
 */
#include "synth/universes.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "comm/comm.h"
#include "io/universe.h"
#include "synth/making.h"

static void describe(const hl_making *m, const hl_draw *d, float *full, hl_universe_file *u)
{
    const hl_simulation_options *o = &m->simulation;

    *u = (hl_universe_file){.ext = {o->grid, o->grid, o->grid, o->redshifts},
                            .integer = o->scheme == HL_NGP,
                            .full = full,
                            .parameters = m->prior.n,
                            .redshifts = o->redshifts};
    for (int i = 0; i < m->prior.n; i++) {
        const hl_prior_parameter *p = &m->prior.parameter[i];
        u->parameter[i] = (hl_universe_parameter){
            .physical = d->physical[i], .unit = d->unit[i], .low = p->low, .high = p->high};
        snprintf(u->parameter[i].name, sizeof(u->parameter[i].name), "%s", p->name);
    }
    memcpy(u->redshift, o->redshift, (size_t)o->redshifts * sizeof(double));
}

static halo_status write_universe(const hl_making *m, hl_task t, const hl_draw *d, double box, float *full,
                                  const char *path)
{
    const hl_simulation_options *o = &m->simulation;
    const hl_cosmology *c = &d->cosmology;
    hl_universe_file u;
    const hl_universe_note notes[] = {
        {"generator", 0.0, "halo synth universe"},
        {"assignment", 0.0, hl_scheme_name(o->scheme)},
        {"box", box, NULL},
        {"particles", (double)o->particles, NULL},
        {"mesh", (double)o->mesh, NULL},
        {"steps", o->steps, NULL},
        {"start", o->start, NULL},
        {"rsd", o->rsd, NULL},
        {"wiggles", o->wiggles, NULL},
        {"omega_m", c->omega_m, NULL},
        {"omega_b", c->omega_b, NULL},
        {"h", c->h, NULL},
        {"n_s", c->n_s, NULL},
        {"sigma_8", c->sigma_8, NULL},
        {"seed", (double)m->settings->seed, NULL},
        {"universe", (double)t.number, NULL},
    };

    describe(m, d, full, &u);
    u.note = notes;
    u.notes = (int)HL_COUNT(notes);
    return hl_universe_write(m->ctx, path, &u);
}

/* Universes of this rank when each makes its own. */
static int64_t share_of(const hl_making *m)
{
    return (m->progress.total - m->ctx->rank + m->ctx->ranks - 1) / m->ctx->ranks;
}

static void report(hl_making *m, bool skipped, const hl_simulation_times *times)
{
#pragma omp critical(hl_universes_report)
    {
        m->progress.done++;
        m->progress.skipped += skipped;
        m->progress.simulated += times->seconds;
        m->progress.fft += times->fft_seconds;
        m->progress.seconds = hl_now() - m->begin;
        hl_universes_progress shown = m->progress;
        if (!m->together) shown.total = share_of(m);
        if (m->hooks && m->hooks->progress) m->hooks->progress(m->hooks->user, &shown);
    }
}

static halo_status make_one(hl_making *m, hl_task t, hl_simulation *simulation, float *full)
{
    const int64_t n = m->simulation.grid, ext[4] = {n, n, n, m->simulation.redshifts};
    hl_simulation_times times = {0};
    char name[64], *path;
    halo_status st = HALO_OK;

    hl_making_file(m, t, name, sizeof(name));
    HL_TRY(hl_path_join(m->ctx, m->settings->out, name, &path));
    bool skip = hl_universe_is_complete(path, ext);
    if (!skip) {
        hl_draw d = hl_making_draw(m, t);
        double box = hl_making_box(m, &d);
        st = hl_simulate(simulation, &d.cosmology, box, (uint64_t)m->settings->seed, t.number, full, &times);
        if (st == HALO_OK) st = write_universe(m, t, &d, box, full, path);
    }
    free(path);
    if (st == HALO_OK) report(m, skip, &times);
    return st;
}

/* --------------------------------------------------------------------------------------------- all files */

static bool stop_asked(const hl_making *m)
{
    return m->hooks && m->hooks->stop && m->hooks->stop(m->hooks->user);
}

static bool must_end(hl_making *m)
{
    return __atomic_load_n(&m->status, __ATOMIC_RELAXED) != HALO_OK || stop_asked(m);
}

/* One thread's buffers and its share of the universes. */
static void work(hl_making *m, int rank, int ranks)
{
    hl_simulation *simulation = NULL;
    float *full = NULL;
    halo_status st = hl_simulation_create(m->ctx, &m->simulation, NULL, &simulation);

    if (st == HALO_OK)
        st = hl_calloc(m->ctx, (size_t)hl_simulation_values(simulation), sizeof(*full), "a universe", &full);
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t i = rank; i < m->progress.total; i += ranks) {
        if (st == HALO_OK && must_end(m)) continue;
        if (st == HALO_OK) st = make_one(m, hl_making_task(m, i), simulation, full);
    }
    if (st != HALO_OK) __atomic_store_n(&m->status, st, __ATOMIC_RELAXED);
    free(full);
    hl_simulation_destroy(simulation);
}

/* Each rank its own universes; then all know of all. */
static halo_status make_apart(hl_making *m, int rank, int ranks)
{
#pragma omp parallel num_threads(m->jobs)
    work(m, rank, ranks);
    HL_AGREE(m->ctx, m->status);
    double sum[4] = {(double)m->progress.done, (double)m->progress.skipped, m->progress.simulated,
                     m->progress.fft};
    HL_TRY(hl_comm_sum(m->ctx, sum, 4));
    m->progress.done = (int64_t)sum[0];
    m->progress.skipped = (int64_t)sum[1];
    m->progress.simulated = sum[2];
    m->progress.fft = sum[3];
    return HALO_OK;
}

/* Rank 0 decides for all: 0 make it, 1 it is there, 2 stop. */
static halo_status decide(const hl_making *m, hl_task t, int *decision)
{
    const int64_t n = m->simulation.grid, ext[4] = {n, n, n, m->simulation.redshifts};
    char name[64], *path;
    halo_status st = HALO_OK;

    *decision = stop_asked(m) ? 2 : 0;
    hl_making_file(m, t, name, sizeof(name));
    if (m->ctx->rank == 0) st = hl_path_join(m->ctx, m->settings->out, name, &path);
    HL_AGREE(m->ctx, st);
    if (m->ctx->rank == 0) {
        if (*decision == 0 && hl_universe_is_complete(path, ext)) *decision = 1;
        free(path);
    }
    return hl_comm_broadcast(m->ctx, decision, sizeof(*decision), 0);
}

typedef struct sharing { /* what the ranks need to make universes together */
    hl_slabs *slabs;
    hl_simulation *simulation;
    float *part, *full; /* this rank's planes; all of them on rank 0 */
} sharing;

static halo_status make_shared(hl_making *m, hl_task t, sharing *s)
{
    hl_simulation_times times;
    hl_draw d = hl_making_draw(m, t);
    double box = hl_making_box(m, &d);
    uint64_t seed = (uint64_t)m->settings->seed;
    size_t bytes = (size_t)hl_simulation_values(s->simulation) * sizeof(float);
    char name[64], *path = NULL;
    halo_status st = HALO_OK;

    HL_TRY(hl_simulate(s->simulation, &d.cosmology, box, seed, t.number, s->part, &times));
    HL_TRY(hl_slabs_gather(s->slabs, s->part, bytes, s->full));
    hl_making_file(m, t, name, sizeof(name));
    if (m->ctx->rank == 0) st = hl_path_join(m->ctx, m->settings->out, name, &path);
    if (m->ctx->rank == 0 && st == HALO_OK) st = write_universe(m, t, &d, box, s->full, path);
    free(path);
    HL_AGREE(m->ctx, st);
    report(m, false, &times);
    return HALO_OK;
}

static halo_status share_all(hl_making *m, sharing *s)
{
    const hl_simulation_times none = {0};

    for (int64_t i = 0; i < m->progress.total; i++) {
        hl_task t = hl_making_task(m, i);
        int decision;
        HL_TRY(decide(m, t, &decision));
        if (decision == 2) break;
        if (decision == 1)
            report(m, true, &none);
        else
            HL_TRY(make_shared(m, t, s));
    }
    return HALO_OK;
}

static halo_status make_together(hl_making *m)
{
    sharing s = {0};
    halo_status st;

    HL_TRY(hl_slabs_open(m->ctx, &s.slabs));
    HL_GOTO(st, hl_simulation_create(m->ctx, &m->simulation, s.slabs, &s.simulation), close_slabs);
    size_t values = (size_t)hl_simulation_values(s.simulation),
           all = m->ctx->rank == 0 ? values * (size_t)m->ctx->ranks : 0;
    st = hl_calloc(m->ctx, values, sizeof(float), "a universe", &s.part);
    if (st == HALO_OK) st = hl_calloc(m->ctx, all, sizeof(float), "a universe", &s.full);
    HL_GOTO(st, hl_agree(m->ctx, st), close_slabs);
    st = share_all(m, &s);
close_slabs:
    free(s.part);
    free(s.full);
    hl_simulation_destroy(s.simulation);
    hl_slabs_close(s.slabs);
    return st;
}

static halo_status make_all(hl_making *m)
{
    int rank = m->ctx ? m->ctx->rank : 0, ranks = m->ctx ? m->ctx->ranks : 1;

    HL_AGREE(m->ctx, rank == 0 ? hl_making_claim(m) : HALO_OK);
    HL_TRY(m->together ? make_together(m) : make_apart(m, rank, ranks));
    if (!stop_asked(m)) return HALO_OK;
    return hl_fail(m->ctx, HALO_ERR_STOPPED,
                   "stopped after %" PRId64 " of %" PRId64 " universes; the same command continues",
                   m->progress.done, m->progress.total);
}

halo_status hl_universes_make(halo_context *ctx, const hl_universes_settings *settings,
                              const hl_universes_hooks *hooks, hl_universes_progress *result)
{
    hl_making m;
    halo_status st = hl_making_prepare(ctx, settings, &m);

    m.hooks = hooks;
    if (st == HALO_OK) st = make_all(&m);
    hl_making_leave_directory(m.lock);
    if (result) *result = m.progress;
    free(m.table.value);
    return st;
}
