/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of universes: draws, files, resumption. */
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/context.h"
#include "base/file.h"
#include "io/universe.h"
#include "synth/universes.h"

static halo_context *ctx;
static char where[64];

static void open_context(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    o.threads = 2;
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("%s", halo_error_message(NULL));
    snprintf(where, sizeof(where), "synth-universes.%ld.d", (long)getpid());
}

static hl_universes_settings settings(const char *out)
{
    static const char *const set[] = {"count=3", "validation=1",     "grid=8",   "box=128",
                                      "steps=3", "redshifts=[0, 1]", "threads=2"};
    hl_universes_settings s;

    if (hl_config_defaults(ctx, hl_universes_keys(), &s) != HALO_OK) tap_bail("%s", halo_error_message(ctx));
    for (size_t i = 0; i < HL_COUNT(set); i++)
        if (hl_config_override(ctx, hl_universes_keys(), &s, set[i]) != HALO_OK)
            tap_bail("%s", halo_error_message(ctx));
    snprintf(s.out, sizeof(s.out), "%s/%s", where, out);
    return s;
}

static const char *in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", where, name);
    return path;
}

static void test_priors(void)
{
    enum { N = 40 };
    hl_prior p = hl_prior_published(HL_PRIOR_2019, true);
    bool inside = true, each = true;

    for (int d = 0; d < p.n; d++) {
        int hits[N] = {0};
        for (int i = 0; i < N; i++) {
            hl_draw draw = hl_prior_latin(&p, 9, 2, i, N);
            int part = (int)floor((draw.unit[d] + 1.0) / 2.0 * N);
            if (part >= 0 && part < N) hits[part]++;
            inside = inside && fabs(hl_prior_uniform(&p, 9, (uint64_t)i).unit[d]) <= 1.0;
        }
        for (int i = 0; i < N; i++) each = each && hits[i] == 1;
    }
    tap_ok(each, "a Latin hypercube of %d has one sample in each part of each range", N);
    tap_ok(inside, "uniform draws stay within -1 .. 1");
    hl_draw a = hl_prior_uniform(&p, 1, 7), b = hl_prior_at(&p, a.physical);
    tap_ok(memcmp(&a, &b, sizeof(a)) == 0 && a.cosmology.h == a.physical[3] * 0.01,
           "physical values give the draw back, and H_0 is 100 h");
}

static void test_first_run(void)
{
    hl_universes_settings s = settings("a");
    hl_universes_progress p;
    hl_universe_file u;
    double sum = 0.0;

    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK && p.done == 4 && p.skipped == 0,
           "four universes are made");
    if (hl_universe_read(ctx, in("a/train/universe-000002.hdf5"), &u) != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    for (int c = 0; c < 8 * 8 * 8 * 2; c++) sum += (double)u.full[c];
    tap_ok(u.ext[0] == 8 && u.ext[3] == 2 && u.integer && sum == 1024.0,
           "one holds 8^3 particles at two redshifts as whole counts");
    tap_ok(u.parameters == 3 && strcmp(u.parameter[1].name, "sigma_8") == 0 &&
               fabs(u.parameter[1].unit) <= 1.0 &&
               fabs(0.865 + 0.085 * u.parameter[1].unit - u.parameter[1].physical) <= 1e-6,
           "and its parameters, physical and scaled");
    tap_ok(u.redshifts == 2 && u.redshift[1] == 1.0 && u.box == 128.0 && u.particles == 8.0,
           "its redshifts, box and particles");
    free(u.full);
}

static bool same_file(const char *a, const char *b)
{
    hl_universe_file u, v;
    if (hl_universe_read(ctx, a, &u) != HALO_OK || hl_universe_read(ctx, b, &v) != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    bool same =
        memcmp(u.full, v.full, (size_t)(u.ext[0] * u.ext[1] * u.ext[2] * u.ext[3]) * sizeof(float)) == 0 &&
        u.parameter[0].physical == v.parameter[0].physical;
    free(u.full);
    free(v.full);
    return same;
}

static void test_resume(void)
{
    hl_universes_settings s = settings("a");
    hl_universes_progress p;
    char kept[1024], path[1024];

    snprintf(path, sizeof(path), "%s", in("a/train/universe-000001.hdf5"));
    snprintf(kept, sizeof(kept), "%s", in("kept.hdf5"));
    if (rename(path, kept) != 0) tap_bail("cannot rename '%s'", path);
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK && p.done == 4 && p.skipped == 3,
           "a second run makes only what is missing");
    tap_ok(same_file(path, kept), "and makes the same universe");
    if (truncate(path, 3000) != 0) tap_bail("cannot truncate '%s'", path);
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK && p.skipped == 3 && same_file(path, kept),
           "a truncated file is made again");
    s.count = 5;
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK && p.done == 6 && p.skipped == 4,
           "a longer run contains the shorter one");
    s.steps = 4;
    halo_status st = hl_universes_make(ctx, &s, NULL, &p);
    tap_ok(st == HALO_ERR_USAGE && strstr(halo_error_message(ctx), "steps: 3"),
           "other settings in the same directory are refused: %s", halo_error_message(ctx));
}

typedef struct stopper {
    int64_t done;
} stopper;

static void count_done(void *user, const hl_universes_progress *p)
{
    ((stopper *)user)->done = p->done;
}
static bool stop_after_two(void *user)
{
    return ((stopper *)user)->done >= 2;
}

static void test_stop(void)
{
    hl_universes_settings s = settings("b");
    stopper state = {0};
    hl_universes_hooks hooks = {.user = &state, .progress = count_done, .stop = stop_after_two};
    hl_universes_progress p;

    s.jobs = 1;
    tap_ok(hl_universes_make(ctx, &s, &hooks, &p) == HALO_ERR_STOPPED, "a run stops when asked: %s",
           halo_error_message(ctx));
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK && p.skipped == 2 && p.done == 4, "and continues");
    char other[1024];
    snprintf(other, sizeof(other), "%s", in("a/val/universe-000000.hdf5"));
    tap_ok(same_file(in("b/val/universe-000000.hdf5"), other), "one job and two make the same universes");
}

static void test_table(void)
{
    hl_universes_settings s = settings("c");
    hl_universes_progress p;
    hl_universe_file u, v;

    snprintf(s.table, sizeof(s.table), "%s", in("b/manifest.csv"));
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK, "a manifest is a table of parameters");
    if (hl_universe_read(ctx, in("b/val/universe-000000.hdf5"), &u) != HALO_OK ||
        hl_universe_read(ctx, in("c/val/universe-000000.hdf5"), &v) != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    tap_ok(u.parameter[2].physical == v.parameter[2].physical && u.parameter[0].unit == v.parameter[0].unit,
           "and gives the same universes");
    free(u.full);
    free(v.full);
    s.count = 2;
    s.validation = 2;
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_ERR_USAGE && strstr(halo_error_message(ctx), "count: 3"),
           "parts of other sizes, which other rows would belong to, are refused: %s", halo_error_message(ctx));
    s.validation = 1;
    s.count = 4;
    snprintf(s.out, sizeof(s.out), "%s", in("d"));
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_ERR_USAGE, "a table that is too short is refused: %s",
           halo_error_message(ctx));
    s = settings("e");
    static const char bad[] = "Omega_m,sigma_8,N_spec\n0.3,0.8,x\n";
    if (hl_file_write(ctx, in("bad.csv"), bad, sizeof(bad) - 1) != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    snprintf(s.table, sizeof(s.table), "%s", in("bad.csv"));
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_ERR_FORMAT &&
               strstr(halo_error_message(ctx), "bad.csv:2"),
           "and so is a wrong number: %s", halo_error_message(ctx));
}

static void test_scaled_box(void)
{
    hl_universes_settings s = settings("f");
    hl_universes_progress p;
    hl_universe_file u;

    if (hl_config_override(ctx, hl_universes_keys(), &s, "prior=2019") != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    s.count = 1;
    s.validation = 0;
    tap_ok(hl_universes_make(ctx, &s, NULL, &p) == HALO_OK, "the 2019 set is made");
    if (hl_universe_read(ctx, in("f/universe-000000.hdf5"), &u) != HALO_OK)
        tap_bail("%s", halo_error_message(ctx));
    tap_ok(u.parameters == 4 && u.box == floor(128.0 * u.parameter[3].physical / 70.0),
           "with H_0 and a box of int(128 H_0 / 70) = %g Mpc/h", u.box);
    free(u.full);
}

int main(void)
{
    char command[96];

    open_context();
    test_priors();
    test_first_run();
    test_resume();
    test_stop();
    test_table();
    test_scaled_box();
    hl_universes_settings s = settings("g");
    s.hubble = 0;
    s.grid = 7;
    tap_ok(hl_universes_make(ctx, &s, NULL, NULL) == HALO_ERR_USAGE, "an odd grid is refused: %s",
           halo_error_message(ctx));
    snprintf(command, sizeof(command), "rm -rf %s", where);
    if (system(command) != 0) tap_note("'%s' stays", where);
    halo_context_destroy(ctx);
    return tap_done();
}
