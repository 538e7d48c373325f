/* SPDX-License-Identifier: Apache-2.0 */
/* halo synth: training data made from physics, and of shapes. */
#include "cli/commands.h"
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/context.h"
#include "base/topology.h"
#include "synth/baseline.h"
#include "synth/bench.h"
#include "synth/cbed/cbed.h"
#include "synth/pack.h"
#include "synth/phantom.h"
#include "synth/universes.h"

static const hl_option options[] = {
    {.name = "config",
     .letter = 'c',
     .type = HL_OPT_TEXT,
     .arg = "FILE",
     .help = "settings in YAML; key=value and options override it"},
    {.name = "count", .letter = 'n', .type = HL_OPT_TEXT, .arg = "N", .help = "universes, phantoms or crystals for training"},
    {.name = "validation", .type = HL_OPT_TEXT, .arg = "N", .help = "the same for validation"},
    {.name = "test", .type = HL_OPT_TEXT, .arg = "N", .help = "the same for the test"},
    {.name = "grid", .letter = 'g', .type = HL_OPT_TEXT, .arg = "G", .help = "cells per side; of diffraction, points of the box"},
    {.name = "particles", .type = HL_OPT_TEXT, .arg = "P", .help = "particles per side"},
    {.name = "box", .letter = 'b', .type = HL_OPT_TEXT, .arg = "L", .help = "side of the box in Mpc/h; of diffraction, in A"},
    {.name = "seed", .letter = 's', .type = HL_OPT_TEXT, .arg = "S", .help = "root of all random numbers"},
    {.name = "redshifts", .letter = 'z', .type = HL_OPT_TEXT, .arg = "[Z, ...]", .help = "one channel each"},
    {.name = "prior", .type = HL_OPT_TEXT, .arg = "SET", .help = "sc18 or 2019"},
    {.name = "steps", .type = HL_OPT_TEXT, .arg = "N", .help = "time steps"},
    {.name = "table",
     .letter = 't',
     .type = HL_OPT_TEXT,
     .arg = "FILE",
     .help = "a row of parameters per universe"},
    {.name = "jobs", .letter = 'j', .type = HL_OPT_TEXT, .arg = "N", .help = "universes at a time"},
    {.name = "out", .letter = 'o', .type = HL_OPT_TEXT, .arg = "DIR", .help = "directory to write"},
    {.name = "crop",
     .type = HL_OPT_INT,
     .arg = "N",
     .help = "baseline: side of the sub-volumes; whole universes without"},
    {.name = "size", .type = HL_OPT_TEXT, .arg = "N | [D,H,W]", .help = "voxels of a phantom, pixels of a diffraction pattern"},
    {.name = "crystals", .type = HL_OPT_TEXT, .arg = "FILE", .help = "of cbed: crystals, CIF or a table"},
    {.name = "dose", .type = HL_OPT_TEXT, .arg = "LIST", .help = "of cbed: electrons a pattern, 1000 or 100,1000; whole counts"},
    {.name = "thickness", .type = HL_OPT_TEXT, .arg = "LO:HI", .help = "of cbed: of the crystals, A"},
    {.name = "format", .type = HL_OPT_TEXT, .arg = "FORMAT", .help = "of phantoms: hdf5 or nifti"},
    {.name = "dry-run", .help = "print what it would take and stop"},
};

/* 0 when not given; the row's type is text because it is also a key of the settings. */
static int64_t option_number(const hl_invocation *inv, const char *name)
{
    const char *text = hl_option_text(inv, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

/* ---------------------------------------------------------------------------------------------- settings */

/* Whether a value must be quoted to be one of YAML's texts: "10:" is a map to it. */
static bool needs_quotes(hl_keys keys, const char *name, const char *value)
{
    for (size_t i = 0; i < keys.n; i++)
        if (strcmp(keys.key[i].name, name) == 0) return keys.key[i].type == HL_SETTING_TEXT && *value && !strpbrk(value, "'\"");
    return false;
}

/* An option is the key of its name. */
static halo_status apply_option(hl_invocation *inv, hl_keys keys, const char *name, void *s)
{
    hl_str text = {0};
    const char *value = hl_option_text(inv, name), *quote = needs_quotes(keys, name, value) ? "'" : "";
    hl_str_addf(&text, "%s=%s%s%s", name, quote, value, quote);
    halo_status st = text.failed ? hl_fail(inv->ctx, HALO_ERR_NOMEM, "out of memory: an option")
                                 : hl_config_override(inv->ctx, keys, s, text.s);
    hl_str_free(&text);
    return st;
}

static bool is_key(hl_keys keys, const char *name)
{
    for (size_t i = 0; i < keys.n; i++)
        if (strcmp(keys.key[i].name, name) == 0) return true;
    return false;
}

/* Options of other generators are refused: `keys` are this one's, `more` its options that are no keys. */
static halo_status check_options(hl_invocation *inv, const hl_keys *keys, const char *more)
{
    for (size_t i = 0; i < HL_COUNT(options); i++) {
        char word[32];
        bool known = keys && is_key(*keys, options[i].name);
        for (int k = 0; !known && hl_choice(more, k, word, sizeof(word)); k++) known = strcmp(word, options[i].name) == 0;
        if (!known && hl_given(inv, options[i].name)) return hl_fail(inv->ctx, HALO_ERR_USAGE, "'halo synth %s' has no option '--%s'", inv->arg[0], options[i].name);
    }
    return HALO_OK;
}

/* Defaults, the file of --config, options, key=value: each over those before. */
static halo_status read_settings(hl_invocation *inv, hl_keys keys, void *s)
{
    HL_TRY(hl_config_defaults(inv->ctx, keys, s));
    if (hl_given(inv, "config")) HL_TRY(hl_config_load(inv->ctx, keys, s, hl_option_text(inv, "config")));
    for (size_t i = 0; i < HL_COUNT(options); i++)
        if (is_key(keys, options[i].name) && hl_given(inv, options[i].name)) HL_TRY(apply_option(inv, keys, options[i].name, s));
    for (int i = 1; i < inv->args; i++) HL_TRY(hl_config_override(inv->ctx, keys, s, inv->arg[i]));
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------- universe */

static int64_t universes_of(const hl_universes_settings *s)
{
    return s->count + s->validation + s->test;
}

static int print_estimate(hl_invocation *inv, const hl_universes_settings *s, const hl_universes_estimate *e)
{
    hl_json j = {0};
    int64_t total = universes_of(s);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&j, NULL);
    hl_json_int(&j, "universes", total);
    hl_json_int(&j, "bytes", (int64_t)e->bytes);
    hl_json_int(&j, "jobs", e->jobs);
    hl_json_int(&j, "threads", e->threads);
    hl_json_number(&j, "seconds", e->seconds * (double)total / e->jobs);
    hl_json_int(&j, "file_bytes", (int64_t)e->file_bytes * total);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static void say_estimate(hl_invocation *inv, const hl_universes_settings *s, const hl_universes_estimate *e)
{
    int64_t total = universes_of(s);
    char time[32];
    hl_duration(e->seconds * (double)total / e->jobs, time, sizeof(time));

    HL_INFO(inv->ctx,
            "%" PRId64 " universe%s of %" PRId64
            "^3 cells, %g Mpc/h: %.4g GiB of memory, about %.2g s each, %d at a time with %d thread%s: "
            "about %s in all and at most %.2g GiB of files",
            total, HL_S(total), s->grid, s->box, (double)e->bytes / 1073741824.0, e->seconds, e->jobs, e->threads,
            e->threads > 1 ? "s" : "", time, (double)(e->file_bytes * total) / 1073741824.0);
}

/* A line that rewrites itself on a terminal; elsewhere a line every ten seconds. */
typedef struct progress_line {
    halo_context *ctx;
    bool terminal, quiet;
    double last;
} progress_line;

static void show_progress(void *user, const hl_universes_progress *p)
{
    progress_line *line = user;
    int64_t made = p->done - p->skipped;
    double left = made > 0 ? p->seconds / (double)made * (double)(p->total - p->done) : 0.0;

    if (line->quiet || (p->done < p->total && p->seconds - line->last < (line->terminal ? 0.2 : 10.0)))
        return;
    line->last = p->seconds;
    fprintf(stderr, "%shalo: %" PRId64 " of %" PRId64 " universe%s, %.2f s each, %.0f s left%s",
            line->terminal ? "\r\033[K" : "", p->done, p->total, HL_S(p->total), made > 0 ? p->seconds / (double)made : 0.0,
            left, line->terminal && p->done < p->total ? "" : "\n");
}

static bool stop_asked(void *user)
{
    (void)user;
    return hl_signal_caught() != 0;
}

static int print_result(hl_invocation *inv, const hl_universes_settings *s, const hl_universes_progress *p)
{
    hl_json json = {0};
    double fft = p->simulated > 0.0 ? p->fft / p->simulated : 0.0;

    if (!inv->json) {
        HL_INFO(inv->ctx,
                "%" PRId64 " universe%s in '%s', %" PRId64
                " of them from earlier; %.1f s, %.0f %% of the work in the FFT",
                p->done, HL_S(p->done), s->out, p->skipped, p->seconds, 100.0 * fft);
        return HL_EXIT_OK;
    }
    hl_json_object(&json, NULL);
    hl_json_string(&json, "out", s->out);
    hl_json_int(&json, "universes", p->done);
    hl_json_int(&json, "skipped", p->skipped);
    hl_json_number(&json, "seconds", p->seconds);
    hl_json_number(&json, "fft_share", fft);
    hl_json_end_object(&json);
    return hl_print_json(inv, &json);
}

static halo_status check_memory(halo_context *ctx, const hl_universes_estimate *e)
{
    size_t limit = hl_memory_limit();
    if (limit == 0 || (size_t)e->bytes <= limit) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_NOMEM, "these universes take %.1f GiB, this process may use %.1f GiB",
                   (double)e->bytes / 1073741824.0, (double)limit / 1073741824.0);
}

static int run_universe(hl_invocation *inv)
{
    progress_line line = {
        .ctx = inv->ctx, .terminal = isatty(STDERR_FILENO), .quiet = inv->quiet || inv->ctx->rank != 0};
    hl_universes_hooks hooks = {.user = &line, .progress = show_progress, .stop = stop_asked};
    hl_universes_settings *s;
    hl_universes_estimate estimate;
    hl_universes_progress result;
    int rc = HL_EXIT_OK;

    hl_catch_signals();
    halo_status st = hl_calloc(inv->ctx, 1, sizeof(*s), "settings", &s);
    if (st == HALO_OK) st = read_settings(inv, hl_universes_keys(), s);
    if (st == HALO_OK) st = hl_universes_estimate_run(inv->ctx, s, &estimate);
    if (st == HALO_OK && inv->ctx->rank == 0) say_estimate(inv, s, &estimate);
    if (st == HALO_OK && hl_given(inv, "dry-run")) rc = print_estimate(inv, s, &estimate);
    else if (st == HALO_OK) {
        st = check_memory(inv->ctx, &estimate);
        if (st == HALO_OK) st = hl_universes_make(inv->ctx, s, &hooks, &result);
        if (st == HALO_OK && inv->ctx->rank == 0) rc = print_result(inv, s, &result);
    }
    free(s);
    return st == HALO_OK ? rc : hl_exit_code(st);
}

/* ----------------------------------------------------------------------------------------------- phantom */

/* What a dry run tells of the files to come, in one line or one object. */
static int print_size(hl_invocation *inv, const char *what, int64_t n, double bytes)
{
    hl_json j = {0};
    HL_INFO(inv->ctx, "%" PRId64 " %s in files of about %.3g MiB before compression", n, what, bytes / 1048576);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&j, NULL);
    hl_json_int(&j, what, n);
    hl_json_number(&j, "file_bytes", bytes);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static int size_phantoms(hl_invocation *inv, const hl_phantom_settings *s)
{
    int64_t n = s->count + s->validation + s->test;
    if (hl_phantoms_check(inv->ctx, s) != HALO_OK) return HL_EXIT_USAGE;
    return print_size(inv, "phantoms", n, 3.0 * (double)n * (double)s->size[0] * (double)s->size[1] * (double)s->size[2]);
}

static int run_phantom(hl_invocation *inv)
{
    hl_phantom_settings *s;
    int rc = HL_EXIT_OK;
    if (inv->ctx->rank != 0) return rc;
    hl_catch_signals();
    halo_status st = hl_calloc(inv->ctx, 1, sizeof(*s), "settings", &s);
    if (st == HALO_OK) st = read_settings(inv, hl_phantom_keys(), s);
    bool dry = hl_given(inv, "dry-run");
    if (st == HALO_OK && dry) rc = size_phantoms(inv, s);
    else if (st == HALO_OK) st = hl_phantoms_make(inv->ctx, s, stop_asked, NULL);
    if (st == HALO_OK && !dry) {
        hl_json j = {0};
        int64_t n = s->count + s->validation + s->test;
        HL_INFO(inv->ctx, "%" PRId64 " phantom%s in '%s'", n, HL_S(n), s->out);
        hl_json_object(&j, NULL);
        hl_json_string(&j, "out", s->out);
        hl_json_int(&j, "phantoms", n);
        hl_json_end_object(&j);
        if (inv->json) rc = hl_print_json(inv, &j);
        else hl_json_free(&j);
    }
    free(s);
    return st == HALO_OK ? rc : hl_exit_code(st);
}

/* -------------------------------------------------------------------------------------------------- cbed */

static void show_crystals(void *user, int64_t done, int64_t total, double seconds)
{
    progress_line *line = user;
    if (line->quiet || (done < total && seconds - line->last < (line->terminal ? 0.2 : 10.0))) return;
    line->last = seconds;
    fprintf(stderr, "%shalo: %" PRId64 " of %" PRId64 " crystal%s, %.0f s left%s", line->terminal ? "\r\033[K" : "", done, total, HL_S(total), seconds / (double)done * (double)(total - done),
            line->terminal && done < total ? "" : "\n");
}

static int print_cbed(hl_invocation *inv, const hl_cbed_settings *s, const hl_cbed_result *r)
{
    hl_json j = {0};
    HL_INFO(inv->ctx, "%" PRId64 " crystal%s in '%s', %" PRId64 " of them from earlier; %.1f s", r->crystals, HL_S(r->crystals), s->out, r->skipped, r->seconds);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&j, NULL);
    hl_json_string(&j, "out", s->out);
    hl_json_int(&j, "crystals", r->crystals);
    hl_json_int(&j, "skipped", r->skipped);
    hl_json_number(&j, "seconds", r->seconds);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static halo_status size_crystals(hl_invocation *inv, const hl_cbed_settings *s, int *rc)
{
    hl_cbed c;
    halo_status st = hl_cbed_open(inv->ctx, s, &c);
    double pixels = (double)(s->size * s->size), x = (double)(s->scan * s->scan) * pixels * (c.doses ? 2 : 4);
    int64_t n = s->count + s->validation + s->test;
    if (st == HALO_OK && inv->ctx->rank == 0) *rc = print_size(inv, "crystals", n, (double)n * (double)hl_max64(1, c.doses) * (x + 4 * pixels));
    hl_cbed_close(&c);
    return st;
}

static int run_cbed(hl_invocation *inv)
{
    progress_line line = {.ctx = inv->ctx, .terminal = isatty(STDERR_FILENO), .quiet = inv->quiet || inv->ctx->rank != 0};
    hl_cbed_hooks hooks = {.user = &line, .progress = show_crystals, .stop = stop_asked};
    hl_cbed_settings *s;
    hl_cbed_result result;
    int rc = HL_EXIT_OK;
    hl_catch_signals();
    halo_status st = hl_calloc(inv->ctx, 1, sizeof(*s), "settings", &s);
    if (st == HALO_OK) st = read_settings(inv, hl_cbed_keys(), s);
    bool dry = hl_given(inv, "dry-run");
    if (st == HALO_OK) st = dry ? size_crystals(inv, s, &rc) : hl_cbeds_make(inv->ctx, s, &hooks, &result);
    if (st == HALO_OK && !dry && inv->ctx->rank == 0) rc = print_cbed(inv, s, &result);
    free(s);
    return st == HALO_OK ? rc : hl_exit_code(st);
}

/* ---------------------------------------------------------------------------------------------- baseline */

static int run_baseline(hl_invocation *inv)
{
    hl_baseline *b;
    hl_str text = {0};
    hl_json json = {0};
    int rc = HL_EXIT_OK;

    if (inv->args != 2) {
        (void)hl_fail(inv->ctx, HALO_ERR_USAGE, "'halo synth baseline' needs one directory or data set");
        return HL_EXIT_USAGE;
    }
    int64_t crop = option_number(inv, "crop");
    hl_baseline_data data = {.path = inv->arg[1], .crop = {crop, crop, crop}, .seed = (uint64_t)option_number(inv, "seed")};
    halo_status st = hl_calloc(inv->ctx, 1, sizeof(*b), "a baseline", &b);
    if (st == HALO_OK)
        st = hl_baseline_fit(inv->ctx, &data, b);
    if (st == HALO_OK && inv->json) {
        hl_baseline_json(b, &json);
        rc = hl_print_json(inv, &json);
    } else if (st == HALO_OK) {
        hl_baseline_table(b, &text);
        rc = hl_print(inv, &text);
    }
    free(b);
    return st == HALO_OK ? rc : hl_exit_code(st);
}

/* -------------------------------------------------------------------------------------------------- pack */

static int run_pack(hl_invocation *inv)
{
    hl_packed packed;
    hl_json json = {0};

    if (inv->args != 3) {
        (void)hl_fail(inv->ctx, HALO_ERR_USAGE, "'halo synth pack' needs a data set and a file to write");
        return HL_EXIT_USAGE;
    }
    halo_status st = hl_pack(inv->ctx, inv->arg[1], inv->arg[2], 9, &packed);
    if (st != HALO_OK) return hl_exit_code(st);
    HL_INFO(inv->ctx, "%" PRId64 " sample%s as %s in '%s', %.2f MiB", packed.samples, HL_S(packed.samples), packed.type, inv->arg[2],
            (double)packed.bytes / 1048576.0);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&json, NULL);
    hl_json_int(&json, "samples", packed.samples);
    hl_json_int(&json, "bytes", packed.bytes);
    hl_json_string(&json, "type", packed.type);
    hl_json_end_object(&json);
    return hl_print_json(inv, &json);
}

/* ------------------------------------------------------------------------------------------------- bench */

int hl_bench_synth(hl_invocation *inv)
{
    hl_universes_settings *s;
    hl_simulation_options o;
    hl_synth_bench b;
    hl_str text = {0};
    hl_json json = {0};
    int rc = HL_EXIT_OK;

    halo_status st = hl_calloc(inv->ctx, 1, sizeof(*s), "settings", &s);
    if (st == HALO_OK) st = hl_config_defaults(inv->ctx, hl_universes_keys(), s);
    for (int i = 1; st == HALO_OK && i < inv->args; i++)
        st = hl_config_override(inv->ctx, hl_universes_keys(), s, inv->arg[i]);
    if (st == HALO_OK) st = hl_universes_simulation(inv->ctx, s, &o);
    if (st == HALO_OK) st = hl_synth_bench_run(inv->ctx, &o, s->box, 3, &b);
    if (st == HALO_OK && inv->json) {
        hl_synth_bench_json(&b, &json);
        rc = hl_print_json(inv, &json);
    } else if (st == HALO_OK) {
        hl_synth_bench_table(&b, &text);
        rc = hl_print(inv, &text);
    }
    free(s);
    return st == HALO_OK ? rc : hl_exit_code(st);
}

/* ----------------------------------------------------------------------------------------------- command */

static int run_keys(hl_invocation *inv);

static const struct {
    const char *name;
    int (*run)(hl_invocation *inv);
    hl_keys (*keys)(void); /* NULL: none */
    const char *more;      /* options besides */
} kinds[] = {{"universe", run_universe, hl_universes_keys, "config|dry-run"},
             {"phantom", run_phantom, hl_phantom_keys, "config|dry-run"},
             {"cbed", run_cbed, hl_cbed_keys, "config|dry-run"},
             {"baseline", run_baseline, NULL, "crop|seed"},
             {"pack", run_pack, NULL, ""},
             {"bench", hl_bench_synth, NULL, ""},
             {"keys", run_keys, NULL, ""}};

static int run_keys(hl_invocation *inv)
{
    hl_str text = {0};
    hl_json json = {0};
    if (inv->json) {
        hl_json_object(&json, NULL);
        for (size_t i = 0; i < HL_COUNT(kinds); i++) {
            if (!kinds[i].keys) continue;
            hl_json_object(&json, kinds[i].name);
            hl_config_help_json(kinds[i].keys(), &json);
            hl_json_end_object(&json);
        }
        hl_json_end_object(&json);
        return hl_print_json(inv, &json);
    }
    hl_str_add(&text, "Settings of 'halo synth universe': in the file of --config, as key=value, or as --key "
                      "where there is such an option.\n\n");
    hl_config_help(hl_universes_keys(), &text);
    hl_str_add(&text, "\nSettings of 'halo synth phantom':\n\n");
    hl_config_help(hl_phantom_keys(), &text);
    hl_str_add(&text, "\nSettings of 'halo synth cbed':\n\n");
    hl_config_help(hl_cbed_keys(), &text);
    return hl_print(inv, &text);
}

static int run_kind(hl_invocation *inv, size_t i)
{
    hl_keys keys = {0};
    if (kinds[i].keys) keys = kinds[i].keys();
    halo_status st = check_options(inv, kinds[i].keys ? &keys : NULL, kinds[i].more);
    return st == HALO_OK ? kinds[i].run(inv) : hl_exit_code(st);
}

static int synth(hl_invocation *inv)
{
    const char *names[HL_COUNT(kinds)];

    for (size_t i = 0; i < HL_COUNT(kinds); i++) {
        if (strcmp(inv->arg[0], kinds[i].name) == 0) return run_kind(inv, i);
        names[i] = kinds[i].name;
    }
    const char *near = hl_nearest(inv->arg[0], names, HL_COUNT(kinds));
    (void)hl_fail(inv->ctx, HALO_ERR_USAGE, "nothing to make is called '%s'%s%s%s; see 'halo help synth'",
                  inv->arg[0], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return HL_EXIT_USAGE;
}

const hl_command hl_command_synth = {
    .name = "synth",
    .synopsis = "universe | phantom | cbed | baseline DIR | pack DIR FILE | bench | keys  [key=value ...]",
    .summary = "make training data from physics",
    .details =
        "'halo synth universe' makes universes from a seed: Gaussian initial conditions with the linear "
        "spectrum of Eisenstein and Hu, second order "
        "Lagrangian displacements, particle-mesh steps in the COLA frame, particle counts at one or more "
        "redshifts, in the published "
        "CosmoUniverse layout. Parameters are drawn from the published priors or taken from a table. A "
        "killed run continues with the next "
        "universe. 'halo synth keys' lists all settings.\n\n"
        "'halo synth phantom' makes CT-like volumes of ellipsoids with their exact masks, background 0, organ 1, lesion 2, as HDF5 or NIfTI files; "
        "phantoms.csv lists the size and place of each organ and lesion.\n\n"
        "'halo synth cbed' makes diffraction patterns of crystals, a scan of a convergent electron beam over each by the multislice method, and the projected potentials that they come from.\n\n"
        "'halo synth baseline DIR' fits what a network has to beat: ridge regression on power spectrum, "
        "variance and skewness.\n\n"
        "'halo synth pack DIR FILE' puts the universes of a directory into one file in halo's own layout.\n\n"
        "'halo synth bench', which 'halo bench synth' is too, times one universe.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = synth,
};
