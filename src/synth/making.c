/* SPDX-License-Identifier: Apache-2.0 */
/*
 * making.c -- from settings to universes.
 *
 * Universe i of a part (train, val, test) has the number part * 2^40 + i. Its parameters and its initial
 * field are functions of (seed, number) alone, so a longer run contains a shorter one, and any rank or thread
 * can make any universe.
 */
#include "synth/making.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/topology.h"

/* Particles or force cells per side up to which a universe is made by one thread, and by one rank. */
enum { ONE_THREAD_SIDE = 128, ONE_RANK_SIDE = 256 };

static halo_status read_redshifts(halo_context *ctx, const hl_words *words, hl_simulation_options *o)
{
    o->redshifts = words->n;
    for (int i = 0; i < words->n; i++) {
        char *end;
        o->redshift[i] = strtod(words->word[i], &end);
        if (*end != '\0' || end == words->word[i])
            return hl_fail(ctx, HALO_ERR_USAGE, "'%s' is no redshift", words->word[i]);
    }
    return HALO_OK;
}

static halo_status simulation_options(halo_context *ctx, const hl_universes_settings *s,
                                      hl_simulation_options *out)
{
    hl_simulation_options o = {.grid = s->grid,
                               .particles = s->particles > 0 ? s->particles : s->grid,
                               .steps = (int)s->steps,
                               .start = s->start,
                               .scheme = (hl_scheme)(HL_NGP + s->assignment),
                               .wiggles = s->wiggles,
                               .rsd = s->rsd};

    o.mesh = s->mesh > 0 ? s->mesh : o.particles;
    HL_TRY(read_redshifts(ctx, &s->redshifts, &o));
    HL_TRY(hl_simulation_check(ctx, &o));
    *out = o;
    return HALO_OK;
}

static int all_threads(halo_context *ctx, const hl_universes_settings *s)
{
    return s->threads > 0 ? (int)s->threads : ctx && ctx->threads > 0 ? ctx->threads : hl_default_threads();
}

halo_status hl_universes_simulation(halo_context *ctx, const hl_universes_settings *s,
                                    hl_simulation_options *options)
{
    HL_TRY(simulation_options(ctx, s, options));
    options->threads = all_threads(ctx, s);
    return HALO_OK;
}

static void share_work(halo_context *ctx, const hl_universes_settings *s, hl_making *m)
{
    int threads = all_threads(ctx, s);
    int64_t side = hl_max64(m->simulation.particles, m->simulation.mesh);

    m->together = ctx && ctx->ranks > 1 && (s->together == 2 || (s->together == 0 && side > ONE_RANK_SIDE));
    m->jobs = m->together ? 1 : s->jobs > 0 ? (int)s->jobs : side <= ONE_THREAD_SIDE ? threads : 1;
    m->simulation.threads = threads > m->jobs ? threads / m->jobs : 1;
}

halo_status hl_making_prepare(halo_context *ctx, const hl_universes_settings *s, hl_making *m)
{
    bool latest = s->prior == HL_PRIOR_2019, hubble = s->hubble == 2 || (s->hubble == 0 && latest);

    *m = (hl_making){
        .ctx = ctx, .settings = s, .parts = {s->count, s->validation, s->test}, .begin = hl_now(), .lock = -1};
    HL_TRY(simulation_options(ctx, s, &m->simulation));
    share_work(ctx, s, m);
    m->prior = hl_prior_published((hl_prior_set)s->prior, hubble);
    m->box_scaled = s->box_scaled == 2 || (s->box_scaled == 0 && latest && hubble);
    if (s->table[0]) {
        HL_TRY(hl_prior_read_table(ctx, &m->prior, s->table, &m->table));
        if (s->count + s->validation + s->test > m->table.rows)
            return hl_fail(ctx, HALO_ERR_USAGE, "'%s' has %" PRId64 " rows for %" PRId64 " universes",
                           s->table, m->table.rows, s->count + s->validation + s->test);
    }
    for (int i = 0; i < HL_PARTS; i++) m->progress.total += m->parts[i];
    if (m->progress.total == 0) return hl_fail(ctx, HALO_ERR_USAGE, "'count' is 0: no universe to make");
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------- tasks */

hl_task hl_making_task(const hl_making *m, int64_t i)
{
    hl_task t = {.index = i};
    while (t.index >= m->parts[t.part]) t.index -= m->parts[t.part++];
    t.number = ((uint64_t)t.part << 40) + (uint64_t)t.index;
    return t;
}

const char *hl_making_part(int part)
{
    static const char *const name[HL_PARTS] = {"train", "val", "test"};
    return name[part];
}

bool hl_making_has_parts(const hl_making *m)
{
    return m->parts[1] + m->parts[2] > 0;
}

void hl_making_file(const hl_making *m, hl_task t, char *out, size_t size)
{
    if (hl_making_has_parts(m))
        snprintf(out, size, "%s/universe-%06" PRId64 ".hdf5", hl_making_part(t.part), t.index);
    else
        snprintf(out, size, "universe-%06" PRId64 ".hdf5", t.index);
}

hl_draw hl_making_draw(const hl_making *m, hl_task t)
{
    uint64_t seed = (uint64_t)m->settings->seed;

    if (m->table.rows > 0) {
        int64_t row = t.index;
        for (int i = 0; i < t.part; i++) row += m->parts[i];
        return hl_prior_at(&m->prior, m->table.value + row * m->prior.n);
    }
    if (m->settings->sampling == 1)
        return hl_prior_latin(&m->prior, seed, (uint64_t)t.part, t.index, m->parts[t.part]);
    return hl_prior_uniform(&m->prior, seed, t.number);
}

double hl_making_box(const hl_making *m, const hl_draw *d)
{
    return m->box_scaled ? floor(m->settings->box * d->cosmology.h / 0.7) : m->settings->box;
}
