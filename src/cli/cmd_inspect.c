/* SPDX-License-Identifier: Apache-2.0 */
/* halo inspect */
#include "cli/commands.h"
#include "cli/progress.h"
#include "base/file.h"
#include "io/verify.h"
#include "halo_build.h"
#ifdef HAVE_FFTW
#include "synth/inspect.h"
#endif

static const hl_option options[] = {
    {.name = "verify", .help = "read every byte of data or checkpoints; a line for each bad file, exit code 1 if there is any"},
    {.name = "plot", .letter = 'p', .type = HL_OPT_TEXT, .arg = "FILE.png", .help = "draw a slice and the power spectrum of a universe"},
};

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

static bool is_yaml(const char *path) { return ends_with(path, ".yaml") || ends_with(path, ".yml"); }

/* A configuration: resolved, with what its network is. */
static int inspect_config(hl_invocation *inv, const char *path)
{
    hl_settings set;
    hl_str text = {0};
    halo_status st = hl_settings_load(inv->ctx, path, 0, NULL, &set);
    if (st != HALO_OK) return hl_exit_code(st);
    if (inv->json) {
        hl_json j = {0};
        hl_keys keys = hl_settings_keys();
        hl_json_object(&j, NULL);
        hl_json_string(&j, "kind", "configuration");
        for (size_t i = 0; i < keys.n; i++) {
            hl_str value = {0};
            hl_config_value(&keys.key[i], &set, &value);
            hl_json_string(&j, keys.key[i].name, value.s ? value.s : "");
            hl_str_free(&value);
        }
        hl_json_end_object(&j);
        return hl_print_json(inv, &j);
    }
    hl_config_write(hl_settings_keys(), &set, &text);
    return hl_print(inv, &text);
}

typedef struct listing { hl_str *text; hl_json *json; int64_t total; } listing;

static halo_status visit(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim)
{
    listing *l = user;
    hl_str shape = {0};
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) {
        hl_str_addf(&shape, "%s%" PRId64, i ? " x " : "", dim[i]);
        count *= dim[i];
    }
    l->total += count * (int64_t)hl_dtype_size(type);
    hl_str_addf(l->text, "  %-40s %-4s %s\n", name, hl_dtype_name(type), shape.s ? shape.s : "");
    hl_json_object(l->json, NULL);
    hl_json_string(l->json, "name", name);
    hl_json_string(l->json, "type", hl_dtype_name(type));
    hl_json_string(l->json, "shape", shape.s ? shape.s : "");
    hl_json_end_object(l->json);
    hl_str_free(&shape);
    return HALO_OK;
}

static halo_status checkpoint_head(hl_ckpt *file, hl_str *text, hl_json *json)
{
    static const char *const names[] = {"epoch", "step", "step_in_epoch", "optimizer_steps"};
    double best;
    for (size_t i = 0; i < HL_COUNT(names); i++) {
        int64_t value;
        HL_TRY(hl_ckpt_get_int(file, names[i], &value));
        hl_str_addf(text, "  %-16s %" PRId64 "\n", names[i], value);
        hl_json_int(json, names[i], value);
    }
    HL_TRY(hl_ckpt_get_number(file, "best_loss", &best));
    hl_str_addf(text, "  %-16s %.6g\n", "best_loss", best);
    hl_json_number(json, "best_loss", best);
    return HALO_OK;
}

/* A checkpoint: position, then every array. `taken` is false when the file is something else. */
static halo_status inspect_checkpoint(hl_invocation *inv, const char *path, hl_str *text, hl_json *json, bool *taken)
{
    hl_ckpt *file;
    listing l = {text, json, 0};
    if (!hl_ckpt_is(path)) return HALO_OK;
    HL_TRY(hl_ckpt_open(inv->ctx, path, &file));
    *taken = hl_ckpt_has(file, "format") && hl_ckpt_has(file, "network");
    halo_status st = HALO_OK;
    if (*taken) {
        char bytes[32];
        hl_str_addf(text, "checkpoint '%s'\n", path);
        hl_json_string(json, "kind", "checkpoint");
        hl_json_string(json, "path", path);
        st = checkpoint_head(file, text, json);
        hl_json_array(json, "arrays");
        if (st == HALO_OK) st = hl_ckpt_list(file, visit, &l);
        hl_json_end_array(json);
        hl_bytes_text((double)l.total, bytes, sizeof(bytes));
        hl_str_addf(text, "  %s in all\n", bytes);
    }
    (void)hl_ckpt_close(file, false);
    return st;
}

/* Whole universes are also compared with theory, where the generators are built in. */
static halo_status inspect_universe(hl_invocation *inv, const char *path, hl_str *text, hl_json *json)
{
    const char *plot = hl_option_text(inv, "plot");
#ifdef HAVE_FFTW
    if (!hl_is_directory(path) && hl_is_universe(path)) {
        hl_str_add(text, "\n");
        return hl_universe_inspect(inv->ctx, path, plot, text, json);
    }
#else
    (void)text;
    (void)json;
#endif
    if (!plot) return HALO_OK;
    return hl_fail(inv->ctx, HALO_ERR_USAGE, "'%s': only a universe can be drawn, by a build with FFTW", path);
}

/* A run directory is the configuration in it; true when `path` is one. */
static bool inspect_run(hl_invocation *inv, const char *path, int *rc)
{
    char *config, *checkpoints;
    bool is_run = false;
    if (!hl_is_directory(path) || hl_path_join(inv->ctx, path, "config.yaml", &config) != HALO_OK) return false;
    if (hl_path_join(inv->ctx, path, "checkpoints", &checkpoints) == HALO_OK) {
        is_run = hl_file_exists(config) && hl_is_directory(checkpoints);
        free(checkpoints);
    }
    if (is_run) *rc = inspect_config(inv, config);
    free(config);
    return is_run;
}

static void sum_up(const hl_verified *v, hl_str *text)
{
    char bytes[32];
    hl_bytes_text((double)v->bytes, bytes, sizeof(bytes));
    hl_str_addf(text, "%" PRId64 " file%s", v->files, HL_S(v->files));
    if (v->samples > 0) hl_str_addf(text, ", %" PRId64 " sample%s, %s", v->samples, HL_S(v->samples), bytes);
    hl_str_addf(text, v->bad ? ": %" PRId64 " bad\n" : ": all good\n", v->bad);
}

/* --verify; of a run its checkpoints. */
static int verify(hl_invocation *inv, const char *path)
{
    hl_str text = {0};
    hl_json json = {0};
    hl_verified v = {0};
    char *checkpoints;
    halo_status st = !is_yaml(path) ? hl_path_join(inv->ctx, path, "checkpoints", &checkpoints)
                                    : hl_fail(inv->ctx, HALO_ERR_USAGE, "'--verify' reads data and checkpoints, '%s' is neither", path);
    if (st != HALO_OK) return hl_exit_code(st);
    hl_json_object(&json, NULL);
    hl_json_string(&json, "kind", "verification");
    hl_json_string(&json, "path", path);
    st = hl_data_verify(inv->ctx, hl_is_directory(checkpoints) ? checkpoints : path, &text, &json, &v);
    hl_json_end_object(&json);
    free(checkpoints);
    int rc = hl_exit_code(st);
    if (st == HALO_OK) {
        sum_up(&v, &text);
        rc = inv->json ? hl_print_json(inv, &json) : hl_print(inv, &text);
        if (rc == HL_EXIT_OK && v.bad > 0) rc = HL_EXIT_FAILED;
    }
    if (st != HALO_OK || inv->json) hl_str_free(&text);
    if (st != HALO_OK || !inv->json) hl_json_free(&json);
    return rc;
}

static int inspect(hl_invocation *inv)
{
    const char *path = inv->arg[0];
    int rc = HL_EXIT_OK;
    hl_str text = {0};
    hl_json json = {0};
    bool taken = false;
    if (hl_given(inv, "verify")) return verify(inv, path);
    if (is_yaml(path)) return inspect_config(inv, path);
    if (inspect_run(inv, path, &rc)) return rc;
    hl_json_object(&json, NULL);
    halo_status st = hl_is_directory(path) ? HALO_OK : inspect_checkpoint(inv, path, &text, &json, &taken);
    if (st == HALO_OK && !taken) st = hl_data_inspect(inv->ctx, path, &text, &json);
    if (st == HALO_OK && !taken) st = inspect_universe(inv, path, &text, &json);
    hl_json_end_object(&json);
    rc = hl_exit_code(st);
    if (st == HALO_OK) rc = inv->json ? hl_print_json(inv, &json) : hl_print(inv, &text);
    if (st == HALO_OK && !inv->json) hl_json_free(&json);
    else hl_str_free(&text);
    if (st != HALO_OK) hl_json_free(&json);
    return rc;
}

const hl_command hl_command_inspect = {
    .name = "inspect",
    .synopsis = "FILE",
    .summary = "show what a data set, checkpoint or configuration holds",
    .details = "FILE is a data file or a directory of them, a checkpoint, a configuration, or the directory of a run. Of a universe (a CosmoUniverse "
               "file) it also shows the measured power spectrum beside linear theory.\n\n"
               "--verify looks for what would end a run or spoil it: files that are truncated, damaged or not written as a whole, filters that are missing, "
               "values that are not finite or out of the range that the file states, volumes of one value, samples that are not like those of the first file, and "
               "volumes that are there twice. Of a run it takes the checkpoints and compares their checksums.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = 1,
    .json = true,
    .run = inspect,
};
