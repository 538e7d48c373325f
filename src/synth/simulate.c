/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c -- one universe: linear field, Lagrangian displacements, particle-mesh steps, counts.
 *
 * Memory of N^3 particles on a force mesh of M^3 cells: 96 N^3 bytes of particles and two fields of 8 max(N,
 * M, grid)^3 bytes; everything is allocated once and reused for the next universe.
 */
#include "synth/simulate.h"

#include "base/clock.h"
#include "synth/cola.h"
#include "synth/ic.h"
#include "synth/lpt.h"
#include "synth/pm.h"

#define CHUNK 1024

struct hl_simulation {
    halo_context *ctx;
    hl_slabs *slabs; /* NULL: one rank; not owned */
    hl_simulation_options o;
    hl_mesh *lattice, *mesh; /* of particles and of the force; the same object when they are equal */
    hl_mesh counts;
    hl_particles particles;
    double *field[2];
    hl_pm pm;
    int order[HL_REDSHIFTS_MAX];    /* channel of the i-th output in order of time */
    double scale[HL_REDSHIFTS_MAX]; /* its scale factor */
    float *result;
};

static halo_status check_side(halo_context *ctx, const char *what, int64_t n)
{
    if (n >= 4 && n % 2 == 0 && n <= 16384) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'%s' is %" PRId64 ": must be even, from 4 to 16384", what, n);
}

halo_status hl_simulation_check(halo_context *ctx, const hl_simulation_options *o)
{
    HL_TRY(check_side(ctx, "grid", o->grid));
    HL_TRY(check_side(ctx, "particles", o->particles));
    HL_TRY(check_side(ctx, "mesh", o->mesh));
    if (o->steps < 0 || o->steps > 10000)
        return hl_fail(ctx, HALO_ERR_USAGE, "'steps' is %d: must be from 0 to 10000", o->steps);
    if (!(o->start > 0.0 && o->start <= 1000.0))
        return hl_fail(ctx, HALO_ERR_USAGE, "'start' is %g: a redshift from 0 to 1000", o->start);
    if (o->redshifts < 1 || o->redshifts > HL_REDSHIFTS_MAX)
        return hl_fail(ctx, HALO_ERR_USAGE, "%d redshifts: from 1 to %d", o->redshifts, HL_REDSHIFTS_MAX);
    for (int i = 0; i < o->redshifts; i++)
        if (!(o->redshift[i] >= 0.0 && o->redshift[i] <= 1000.0))
            return hl_fail(ctx, HALO_ERR_USAGE, "redshift %g: must be from 0 to 1000", o->redshift[i]);
    return HALO_OK;
}

static size_t field_values(const hl_simulation_options *o)
{
    size_t most = (size_t)(o->grid * o->grid * o->grid), n = (size_t)hl_max64(o->particles, o->mesh);
    size_t padded = n * n * (n + 2);
    return padded > most ? padded : most;
}

int64_t hl_simulation_bytes(const hl_simulation_options *o, int ranks)
{
    int64_t particles = o->particles * o->particles * o->particles, cells = o->grid * o->grid * o->grid;
    int64_t fields = ranks == 1                ? 2
                     : o->mesh == o->particles ? 3
                                               : 4; /* meshes need one more each to exchange */
    int64_t all = particles * 12 * 8 + (int64_t)field_values(o) * fields * 8 + cells * o->redshifts * 4;
    return all / ranks;
}

/* Outputs in order of time, oldest first; equal redshifts keep their order. */
static void sort_outputs(hl_simulation *s)
{
    for (int i = 0; i < s->o.redshifts; i++) {
        double a = 1.0 / (1.0 + s->o.redshift[i]);
        int j = i;
        for (; j > 0 && s->scale[j - 1] > a; j--) {
            s->scale[j] = s->scale[j - 1];
            s->order[j] = s->order[j - 1];
        }
        s->scale[j] = a;
        s->order[j] = i;
    }
}

static halo_status allocate(hl_simulation *s)
{
    const hl_simulation_options *o = &s->o;
    halo_status st;

    HL_TRY(hl_mesh_create(s->ctx, o->particles, o->threads, s->slabs, &s->lattice));
    if (o->mesh == o->particles)
        s->mesh = s->lattice;
    else
        HL_TRY(hl_mesh_create(s->ctx, o->mesh, o->threads, s->slabs, &s->mesh));
    size_t values = s->lattice->values > s->mesh->values ? s->lattice->values : s->mesh->values;
    if (values < s->counts.values) values = s->counts.values;
    st = hl_particles_alloc(s->ctx, o->particles, s->lattice->first, s->lattice->planes, 1.0, &s->particles);
    for (int i = 0; i < 2 && st == HALO_OK; i++)
        st = hl_aligned(s->ctx, values * sizeof(double), "a mesh field", &s->field[i]);
    if (st == HALO_OK) st = hl_pm_init(s->ctx, s->mesh, o->particles, s->field[0], s->field[1], &s->pm);
    return hl_slabs_agree(s->slabs, st);
}

halo_status hl_simulation_create(halo_context *ctx, const hl_simulation_options *options, hl_slabs *slabs,
                                 hl_simulation **out)
{
    hl_simulation *s;
    halo_status st;

    HL_TRY(hl_simulation_check(ctx, options));
    if (options->grid % hl_slabs_ranks(slabs))
        return hl_fail(ctx, HALO_ERR_USAGE, "'grid' is %" PRId64 ": cannot be cut into %d equal slabs",
                       options->grid, hl_slabs_ranks(slabs));
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "a simulation", &s));
    s->ctx = ctx;
    s->o = *options;
    s->slabs = slabs;
    s->counts = hl_mesh_plain(options->grid, options->threads, slabs);
    sort_outputs(s);
    st = allocate(s);
    if (st == HALO_OK)
        *out = s;
    else
        hl_simulation_destroy(s);
    return st;
}

void hl_simulation_destroy(hl_simulation *s)
{
    if (!s) return;
    hl_pm_free(&s->pm);
    free(s->field[0]);
    free(s->field[1]);
    hl_particles_free(&s->particles);
    if (s->mesh != s->lattice) hl_mesh_destroy(s->mesh);
    hl_mesh_destroy(s->lattice);
    free(s);
}

/* Positions of particles from .. from + n at a moment, into x[3][CHUNK]. */
static void positions(const hl_particles *p, const hl_cola_moment *m, bool rsd, int64_t from, int64_t n,
                      double x[3][CHUNK])
{
    for (int d = 0; d < 3; d++) {
        bool sight = rsd && d == 2; /* the line of sight is the last axis */
        double cp = m->drift + (sight ? m->slip : 0.0), c1 = m->d1 + (sight ? m->s1 : 0.0),
               c2 = m->d2 + (sight ? m->s2 : 0.0);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = from + i;
            x[d][i] = hl_wrap(p->x[d][c] + cp * p->p[d][c] + c1 * p->psi1[d][c] + c2 * p->psi2[d][c], p->box);
        }
    }
}

static void count_here(const hl_simulation *s, const hl_particles *p, const hl_cola_moment *m,
                       int64_t *masses)
{
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (int64_t c = 0; c < p->count; c += CHUNK) {
        double x[3][CHUNK];
        int64_t n = hl_min64(CHUNK, p->count - c);
        positions(p, m, s->o.rsd, c, n, x);
        hl_assign(s->o.scheme, &s->counts, hl_scale_of(&s->counts, p->box, 0.0), x[0], x[1], x[2], n,
                  s->o.threads > 1, masses);
    }
}

/* On several ranks an output's positions go to the ranks of their cells; the particles stay. */
static halo_status count_across(hl_simulation *s, const hl_particles *p, const hl_cola_moment *m,
                                int64_t *masses)
{
    hl_particles q = {.components = 3, .side = p->side, .box = p->box};
    halo_status st = hl_particles_reserve(s->ctx, p->count, &q);

    for (int64_t c = 0; st == HALO_OK && c < p->count; c += CHUNK) {
        double x[3][CHUNK];
        int64_t n = hl_min64(CHUNK, p->count - c);
        positions(p, m, s->o.rsd, c, n, x);
        for (int d = 0; d < 3; d++) memcpy(q.x[d] + c, x[d], (size_t)n * sizeof(double));
    }
    q.count = p->count;
    st = hl_slabs_agree(s->slabs, st);
    if (st == HALO_OK) st = hl_particles_settle(s->ctx, &s->counts, &q);
    if (st == HALO_OK)
        hl_assign(s->o.scheme, &s->counts, hl_scale_of(&s->counts, p->box, 0.0), q.x[0], q.x[1], q.x[2],
                  q.count, false, masses);
    hl_particles_free(&q);
    return st;
}

/* One channel of the result. Between steps both fields are free: one holds the masses, the other margins. */
static halo_status count_particles(void *arg, const hl_particles *p, const hl_cola_moment *m)
{
    hl_simulation *s = arg;
    int64_t *masses = (int64_t *)s->field[1], cells = hl_simulation_values(s) / s->o.redshifts;
    int channel = s->order[m->index], channels = s->o.redshifts;

    memset(masses, 0, s->counts.values * sizeof(*masses));
    if (s->slabs)
        HL_TRY(count_across(s, p, m, masses));
    else
        count_here(s, p, m, masses);
    HL_TRY(hl_mesh_add_margins(&s->counts, masses, (int64_t *)s->field[0]));
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (int64_t c = 0; c < cells; c++)
        s->result[c * channels + channel] = (float)((double)masses[c] / HL_MASS_UNIT);
    return HALO_OK;
}

int64_t hl_simulation_values(const hl_simulation *s)
{
    return s->counts.planes * s->counts.n * s->counts.n * s->o.redshifts;
}

static double fft_seconds(const hl_simulation *s)
{
    return s->lattice->fft_seconds + (s->mesh != s->lattice ? s->mesh->fft_seconds : 0.0);
}

halo_status hl_simulate(hl_simulation *s, const hl_cosmology *cosmology, double box, uint64_t seed,
                        uint64_t universe, float *counts, hl_simulation_times *times)
{
    double begin = hl_now(), fft = fft_seconds(s);
    hl_power power = hl_power_prepare(cosmology, s->o.wiggles);
    hl_cola cola = {.ctx = s->ctx,
                    .steps = s->o.steps,
                    .start = 1.0 / (1.0 + s->o.start),
                    .outputs = s->scale,
                    .count = s->o.redshifts,
                    .output = count_particles,
                    .arg = s};

    s->particles.box = box;
    s->result = counts;
    HL_TRY(hl_ic_modes(s->ctx, s->lattice, &power, box, seed, universe, s->field[0]));
    s->particles.count =
        s->lattice->planes * s->lattice->n * s->lattice->n; /* the lattice again, whoever moved */
    HL_TRY(hl_lpt(s->lattice, s->field[0], s->field[1], &s->particles));
    HL_TRY(hl_cola_run(cosmology, &cola, &s->pm, &s->particles));
    if (times) *times = (hl_simulation_times){hl_now() - begin, fft_seconds(s) - fft};
    return HALO_OK;
}
