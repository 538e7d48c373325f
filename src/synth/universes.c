/* SPDX-License-Identifier: Apache-2.0 */
/*
 * universes.c -- many universes: parameters, files, resumption.
 *
 * Universe i of a part (train, val, test) has the number part * 2^40 + i. Its parameters and its initial
 * field are functions of (seed, number) alone, so a longer run contains a shorter one, and any rank or thread
 * can make any universe. Small universes are made one per thread, which needs no synchronisation at all;
 * large ones one at a time with all threads inside.
 */
#include "synth/universes.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "base/topology.h"
#include "io/universe.h"

enum { PARTS = 3, SMALL_SIDE = 128 };

static const char *const part_name[PARTS] = {"train", "val", "test"};

typedef struct making {
    halo_context *ctx;
    const hl_universes_settings *settings;
    const hl_universes_hooks *hooks;
    hl_simulation_options simulation;
    hl_prior prior;
    hl_prior_table table;
    int64_t parts[PARTS];
    bool box_scaled;
    int jobs;
    double begin;
    hl_universes_progress progress;
    halo_status status; /* the first failure; ends the others */
} making;

typedef struct task {
    int part;
    int64_t index;
    uint64_t number;
} task;

/* ---------------------------------------------------------------------------------------------- settings */

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
    return s->threads > 0 ? (int)s->threads : ctx && ctx->threads > 0 ? ctx->threads : hl_usable_cores();
}

halo_status hl_universes_simulation(halo_context *ctx, const hl_universes_settings *s,
                                    hl_simulation_options *options)
{
    HL_TRY(simulation_options(ctx, s, options));
    options->threads = all_threads(ctx, s);
    return HALO_OK;
}

static void share_threads(halo_context *ctx, const hl_universes_settings *s, making *m)
{
    int threads = all_threads(ctx, s);
    bool small = m->simulation.particles <= SMALL_SIDE && m->simulation.mesh <= SMALL_SIDE;

    m->jobs = s->jobs > 0 ? (int)s->jobs : small ? threads : 1;
    m->simulation.threads = threads > m->jobs ? threads / m->jobs : 1;
}

static halo_status prepare(halo_context *ctx, const hl_universes_settings *s, making *m)
{
    bool latest = s->prior == HL_PRIOR_2019, hubble = s->hubble == 2 || (s->hubble == 0 && latest);

    *m = (making){.ctx = ctx, .settings = s, .parts = {s->count, s->validation, s->test}, .begin = hl_now()};
    HL_TRY(simulation_options(ctx, s, &m->simulation));
    share_threads(ctx, s, m);
    m->prior = hl_prior_published((hl_prior_set)s->prior, hubble);
    m->box_scaled = s->box_scaled == 2 || (s->box_scaled == 0 && latest && hubble);
    if (s->table[0]) {
        HL_TRY(hl_prior_read_table(ctx, &m->prior, s->table, &m->table));
        if (s->count + s->validation + s->test > m->table.rows)
            return hl_fail(ctx, HALO_ERR_USAGE, "'%s' has %" PRId64 " rows for %" PRId64 " universes",
                           s->table, m->table.rows, s->count + s->validation + s->test);
    }
    for (int i = 0; i < PARTS; i++) m->progress.total += m->parts[i];
    if (m->progress.total == 0) return hl_fail(ctx, HALO_ERR_USAGE, "'count' is 0: no universe to make");
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------- tasks */

static task task_at(const making *m, int64_t i)
{
    task t = {.index = i};
    while (t.index >= m->parts[t.part]) t.index -= m->parts[t.part++];
    t.number = ((uint64_t)t.part << 40) + (uint64_t)t.index;
    return t;
}

static bool has_parts(const making *m)
{
    return m->parts[1] + m->parts[2] > 0;
}

static void file_of(const making *m, task t, char *out, size_t size)
{
    if (has_parts(m))
        snprintf(out, size, "%s/universe-%06" PRId64 ".hdf5", part_name[t.part], t.index);
    else
        snprintf(out, size, "universe-%06" PRId64 ".hdf5", t.index);
}

static hl_draw draw_of(const making *m, task t)
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

static double box_of(const making *m, const hl_draw *d)
{
    return m->box_scaled ? floor(m->settings->box * d->cosmology.h / 0.7) : m->settings->box;
}

/* ---------------------------------------------------------------------------------------------- one file */

static void describe(const making *m, const hl_draw *d, float *full, hl_universe_file *u)
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

static halo_status write_universe(const making *m, task t, const hl_draw *d, double box, float *full,
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

static void report(making *m, bool skipped, const hl_simulation_times *times)
{
#pragma omp critical(hl_universes_report)
    {
        m->progress.done++;
        m->progress.skipped += skipped;
        m->progress.simulated += times->seconds;
        m->progress.fft += times->fft_seconds;
        m->progress.seconds = hl_now() - m->begin;
        if (m->hooks && m->hooks->progress) m->hooks->progress(m->hooks->user, &m->progress);
    }
}

static halo_status make_one(making *m, task t, hl_simulation *simulation, float *full)
{
    const int64_t n = m->simulation.grid, ext[4] = {n, n, n, m->simulation.redshifts};
    hl_simulation_times times = {0};
    char name[64], *path;
    halo_status st = HALO_OK;

    file_of(m, t, name, sizeof(name));
    HL_TRY(hl_path_join(m->ctx, m->settings->out, name, &path));
    bool skip = hl_universe_is_complete(path, ext);
    if (!skip) {
        hl_draw d = draw_of(m, t);
        double box = box_of(m, &d);
        st = hl_simulate(simulation, &d.cosmology, box, (uint64_t)m->settings->seed, t.number, full, &times);
        if (st == HALO_OK) st = write_universe(m, t, &d, box, full, path);
    }
    free(path);
    if (st == HALO_OK) report(m, skip, &times);
    return st;
}

/* --------------------------------------------------------------------------------------------- directory */

/* What must not change between runs into one directory. */
static halo_status fixed_settings(halo_context *ctx, const hl_universes_settings *s, hl_str *out)
{
    hl_universes_settings *fixed;

    HL_TRY(hl_calloc(ctx, 1, sizeof(*fixed), "settings", &fixed));
    *fixed = *s;
    fixed->jobs = fixed->threads = -1;
    if (s->sampling == 0)
        fixed->count = fixed->validation = fixed->test = 0; /* a hypercube depends on its size */
    snprintf(fixed->out, sizeof(fixed->out), ".");
    hl_config_write(hl_universes_keys(), fixed, out);
    free(fixed);
    return out->failed ? hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: settings") : HALO_OK;
}

static halo_status refuse_difference(halo_context *ctx, const char *path, const char *was, const char *is)
{
    while (*was && *was == *is && strncmp(was, is, strcspn(was, "\n") + 1) == 0) {
        size_t line = strcspn(was, "\n") + 1;
        was += line;
        is += line;
    }
    return hl_fail(ctx, HALO_ERR_USAGE,
                   "'%s' was made with '%.*s', this run says '%.*s': choose another directory", path,
                   (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
}

/* universes.yaml holds the settings of a directory; equal ones continue it. */
static halo_status claim_directory(making *m)
{
    hl_str text = {0};
    char *path = NULL, *old = NULL;
    size_t bytes;
    halo_status st;

    HL_GOTO(st, hl_make_dirs(m->ctx, m->settings->out), done);
    HL_GOTO(st, fixed_settings(m->ctx, m->settings, &text), done);
    HL_GOTO(st, hl_path_join(m->ctx, m->settings->out, "universes.yaml", &path), done);
    if (hl_file_exists(path)) {
        HL_GOTO(st, hl_file_read(m->ctx, path, 1 << 20, &old, &bytes), done);
        if (strcmp(old, text.s) != 0) st = refuse_difference(m->ctx, m->settings->out, old, text.s);
    } else
        st = hl_file_write(m->ctx, path, text.s, text.len);
done:
    free(old);
    free(path);
    hl_str_free(&text);
    return st;
}

static halo_status make_parts(making *m)
{
    for (int i = 0; has_parts(m) && i < PARTS; i++) {
        char *path;
        if (m->parts[i] == 0) continue;
        HL_TRY(hl_path_join(m->ctx, m->settings->out, part_name[i], &path));
        halo_status st = hl_make_dirs(m->ctx, path);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

/* manifest.csv: what is in the directory, known before the first universe is made; readable as a table of a
 * later run. */
static halo_status write_manifest(const making *m)
{
    hl_str text = {0};
    char name[64], *path;

    hl_str_add(&text, "file,index,box");
    for (int i = 0; i < m->prior.n; i++) hl_str_addf(&text, ",%s", m->prior.parameter[i].name);
    hl_str_add(&text, "\n");
    for (int64_t i = 0; i < m->progress.total; i++) {
        task t = task_at(m, i);
        hl_draw d = draw_of(m, t);
        file_of(m, t, name, sizeof(name));
        hl_str_addf(&text, "%s,%" PRIu64 ",%g", name, t.number, box_of(m, &d));
        for (int p = 0; p < m->prior.n; p++) hl_str_addf(&text, ",%.17g", d.physical[p]);
        hl_str_add(&text, "\n");
    }
    halo_status st = text.failed ? hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: a manifest") : HALO_OK;
    if (st == HALO_OK) st = hl_path_join(m->ctx, m->settings->out, "manifest.csv", &path);
    if (st == HALO_OK) {
        st = hl_file_write(m->ctx, path, text.s, text.len);
        free(path);
    }
    hl_str_free(&text);
    return st;
}

/* --------------------------------------------------------------------------------------------- all files */

static bool must_end(making *m)
{
    if (__atomic_load_n(&m->status, __ATOMIC_RELAXED) != HALO_OK) return true;
    return m->hooks && m->hooks->stop && m->hooks->stop(m->hooks->user);
}

/* One thread's buffers and its share of the universes. */
static void work(making *m, int rank, int ranks)
{
    const hl_simulation_options *o = &m->simulation;
    hl_simulation *simulation = NULL;
    float *full = NULL;
    halo_status st = hl_simulation_create(m->ctx, o, &simulation);

    if (st == HALO_OK)
        st = hl_calloc(m->ctx, (size_t)(o->grid * o->grid * o->grid * o->redshifts), sizeof(*full),
                       "a universe", &full);
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t i = rank; i < m->progress.total; i += ranks) {
        if (st == HALO_OK && must_end(m)) continue;
        if (st == HALO_OK) st = make_one(m, task_at(m, i), simulation, full);
    }
    if (st != HALO_OK) __atomic_store_n(&m->status, st, __ATOMIC_RELAXED);
    free(full);
    hl_simulation_destroy(simulation);
}

halo_status hl_universes_make(halo_context *ctx, const hl_universes_settings *settings,
                              const hl_universes_hooks *hooks, hl_universes_progress *result)
{
    int rank = ctx ? ctx->rank : 0, ranks = ctx ? ctx->ranks : 1;
    making m;
    halo_status st;

    HL_GOTO(st, prepare(ctx, settings, &m), free_table);
    m.hooks = hooks;
    HL_GOTO(st, claim_directory(&m), free_table);
    HL_GOTO(st, make_parts(&m), free_table);
    if (rank == 0) HL_GOTO(st, write_manifest(&m), free_table);
#pragma omp parallel num_threads(m.jobs)
    work(&m, rank, ranks > 0 ? ranks : 1);
    st = m.status;
    if (st == HALO_OK && hooks && hooks->stop && hooks->stop(hooks->user))
        st = hl_fail(ctx, HALO_ERR_STOPPED,
                     "stopped after %" PRId64 " of %" PRId64 " universes; the same command continues",
                     m.progress.done, m.progress.total);
    if (result) *result = m.progress;
free_table:
    free(m.table.value);
    return st;
}

/* ---------------------------------------------------------------------------------------------- estimate */

/* Seconds per particle step of a 32^3 run; a transform's logarithm is the only thing that does not scale. */
static halo_status measure(const hl_simulation_options *target, double *seconds)
{
    hl_simulation_options o = *target;
    hl_cosmology c = hl_prior_published(HL_PRIOR_SC18, false).fixed;
    hl_simulation_times times;
    hl_simulation *s;
    float *full;

    o.grid = o.particles = o.mesh = 32;
    HL_TRY(hl_simulation_create(NULL, &o, &s));
    halo_status st =
        hl_calloc(NULL, (size_t)(32 * 32 * 32 * o.redshifts), sizeof(*full), "a universe", &full);
    for (int i = 0; st == HALO_OK && i < 2; i++)
        st = hl_simulate(s, &c, 512.0, 1, 0, full, &times); /* the first one touches the memory */
    if (st == HALO_OK) {
        double cells = (double)hl_max64(target->particles, target->mesh) / 32.0,
               grid = (double)target->grid / 32.0;
        double volume = fmax(cells * cells * cells, grid * grid * grid);
        *seconds = (times.seconds - times.fft_seconds) * volume +
                   times.fft_seconds * volume * (1.0 + log2(fmax(cells, 1.0)) / 5.0);
        free(full);
    }
    hl_simulation_destroy(s);
    return st;
}

halo_status hl_universes_estimate_run(halo_context *ctx, const hl_universes_settings *settings,
                                      hl_universes_estimate *estimate)
{
    making m;
    halo_status st = prepare(ctx, settings, &m);
    const hl_simulation_options *o = &m.simulation;

    if (st == HALO_OK) {
        hl_universes_estimate e = {
            .bytes = hl_simulation_bytes(o) * m.jobs, .jobs = m.jobs, .threads = o->threads};
        e.file_bytes = o->grid * o->grid * o->grid * o->redshifts * (o->scheme == HL_NGP ? 2 : 4);
        st = measure(o, &e.seconds);
        if (st == HALO_OK) *estimate = e;
    }
    free(m.table.value);
    return st;
}
