/* SPDX-License-Identifier: Apache-2.0 */
/* A universe made by several ranks together is the one that each of them makes alone. Started with a
 * launcher. */
#include "tests/tap.h"

#include "comm/comm.h"
#include "io/universe.h"
#include "synth/universes.h"

static const hl_cosmology model = {
    .omega_m = 0.3, .omega_b = 0.045, .h = 0.7, .n_s = 0.96, .sigma_8 = 0.9, .t_cmb = 2.7255};

static halo_context *ctx;

static void must(halo_status st)
{
    if (st == HALO_OK) return;
    fprintf(stderr, "rank %d: %s\n", ctx ? ctx->rank : 0, halo_error_message(ctx));
    hl_comm_abort(ctx, 1);
}

static float *make(const hl_simulation_options *o, hl_slabs *slabs, uint64_t universe)
{
    hl_simulation *s;
    float *part;

    must(hl_simulation_create(ctx, o, slabs, &s));
    must(hl_calloc(ctx, (size_t)hl_simulation_values(s), sizeof(*part), "counts", &part));
    must(hl_simulate(s, &model, 100.0, 3, universe + 1, part,
                     NULL)); /* a second universe finds the particles of the first */
    must(hl_simulate(s, &model, 100.0, 3, universe, part, NULL));
    hl_simulation_destroy(s);
    return part;
}

/* Largest difference of the gathered parts from the universe made alone; on rank 0. */
static double difference(const hl_simulation_options *o, hl_slabs *slabs)
{
    size_t values = (size_t)(o->grid * o->grid * o->grid * o->redshifts),
           share = values / (size_t)hl_slabs_ranks(slabs);
    float *alone = make(o, NULL, 1), *part = make(o, slabs, 1), *all;
    double most = 0.0;

    must(hl_calloc(ctx, values, sizeof(*all), "counts", &all));
    must(hl_slabs_gather(slabs, part, share * sizeof(*part), all));
    for (size_t i = 0; i < values && ctx->rank == 0; i++)
        most = fmax(most, fabs((double)(all[i] - alone[i])));
    free(alone);
    free(part);
    free(all);
    return most;
}

/* Makes two universes in `out`; together: 1 no, 2 yes. */
static void make_directory(halo_context *c, const char *out, int together)
{
    static const char *const set[] = {"count=3", "grid=8", "box=100", "steps=2", "threads=1"};
    hl_universes_settings *s;

    must(hl_calloc(c, 1, sizeof(*s), "settings", &s));
    must(hl_config_defaults(c, hl_universes_keys(), s));
    for (size_t i = 0; i < HL_COUNT(set); i++) must(hl_config_override(c, hl_universes_keys(), s, set[i]));
    snprintf(s->out, sizeof(s->out), "%s", out);
    s->together = together;
    must(hl_universes_make(c, s, NULL, NULL));
    free(s);
}

static bool same_universe(const char *a, const char *b, int i)
{
    hl_universe_file u, v;
    char path[2][128];

    snprintf(path[0], sizeof(path[0]), "%s/universe-%06d.hdf5", a, i);
    snprintf(path[1], sizeof(path[1]), "%s/universe-%06d.hdf5", b, i);
    must(hl_universe_read(ctx, path[0], &u));
    must(hl_universe_read(ctx, path[1], &v));
    bool same = memcmp(u.full, v.full, 512 * sizeof(float)) == 0;
    free(u.full);
    free(v.full);
    return same;
}

static void test_directories(void)
{
    char out[3][64], command[256];
    halo_context *own;
    bool same = true;

    for (int i = 0; i < 3; i++) snprintf(out[i], sizeof(out[i]), "synth-slabs%d-%d.d", ctx->ranks, i);
    make_directory(ctx, out[0], 1);
    make_directory(ctx, out[1], 2);
    if (ctx->rank == 0) {
        must(halo_context_create(NULL, &own));
        make_directory(own, out[2], 0);
        halo_context_destroy(own);
        for (int i = 0; i < 3; i++)
            same = same && same_universe(out[0], out[2], i) && same_universe(out[1], out[2], i);
        tap_ok(same, "ranks that make universes apart or together write what one rank writes");
        snprintf(command, sizeof(command), "rm -rf %s %s %s", out[0], out[1], out[2]);
        if (system(command) != 0) tap_note("some directories stay");
    }
}

int main(void)
{
    halo_context_options options = HALO_CONTEXT_OPTIONS_INIT;
    hl_simulation_options o = {.grid = 16,
                               .particles = 16,
                               .mesh = 32,
                               .steps = 4,
                               .start = 9,
                               .scheme = HL_NGP,
                               .wiggles = true,
                               .redshifts = 2,
                               .redshift = {0, 1},
                               .threads = 1};
    hl_slabs *slabs;
    double d;

    if (hl_world_create(&options, &ctx) != HALO_OK) tap_bail("%s", halo_error_message(NULL));
    must(hl_slabs_open(ctx, &slabs));
    if (ctx->ranks == 1) tap_note("one rank: nothing is shared");
    for (int rsd = 0; rsd < 2 && slabs; rsd++) {
        o.rsd = rsd == 1;
        o.scheme = HL_NGP;
        d = difference(&o, slabs);
        if (ctx->rank == 0)
            tap_ok(d == 0.0, "%d ranks give the same counts as one%s", ctx->ranks,
                   rsd ? ", in redshift space too" : "");
        o.scheme = HL_TSC;
        d = difference(&o, slabs);
        if (ctx->rank == 0) tap_ok(d <= 1e-4, "and the same clouds within rounding: %.1e", d);
    }
    o.grid = 2 * ctx->ranks + (ctx->ranks == 2 ? 1 : 2); /* odd, or not a multiple of the ranks */
    hl_simulation *s;
    halo_status st = hl_simulation_create(ctx, &o, slabs, &s);
    if (ctx->rank == 0)
        tap_ok(st == HALO_ERR_USAGE, "a grid that cannot be cut evenly is refused: %s",
               halo_error_message(ctx));
    hl_slabs_close(slabs);
    test_directories();
    int rc = ctx->rank == 0 ? tap_done() : 0;
    halo_context_destroy(ctx);
    return rc;
}
