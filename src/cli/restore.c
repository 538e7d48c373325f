/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/restore.h"
#include "base/file.h"

#include <stdio.h>

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

/* The settings that a checkpoint carries, then the overrides. */
static halo_status settings_of_checkpoint(hl_invocation *inv, const char *path, hl_settings *set)
{
    char *text, *network;
    HL_TRY(hl_state_peek(inv->ctx, path, &text, &network));
    free(network);
    halo_status st = hl_settings_parse(inv->ctx, path, text, set);
    free(text);
    return st == HALO_OK ? hl_settings_override(inv->ctx, inv->args - 1, inv->arg + 1, false, set) : st;
}

static halo_status load_settings(hl_invocation *inv, hl_settings *set, char **checkpoint)
{
    const char *config = inv->arg[0], *given = hl_option_text(inv, "checkpoint");
    if (given) HL_TRY(hl_strdup(inv->ctx, given, checkpoint));
    if (hl_is_directory(config)) {
        char *path;
        HL_TRY(hl_path_join(inv->ctx, config, "config.yaml", &path));
        halo_status st = hl_config_defaults(inv->ctx, hl_settings_keys(), set);
        if (st == HALO_OK) st = hl_config_load(inv->ctx, hl_settings_keys(), set, path);
        if (st == HALO_OK) st = hl_settings_override(inv->ctx, inv->args - 1, inv->arg + 1, true, set); /* which tells of these keys only: of the others the run was told */
        free(path);
        if (st == HALO_OK && strlen(config) >= sizeof(set->output)) st = hl_fail(inv->ctx, HALO_ERR_USAGE, "the path '%.100s...' is too long", config);
        if (st == HALO_OK) memcpy(set->output, config, strlen(config) + 1); /* it may have been moved since */
        return st;
    }
    if (!hl_file_exists(config) && !strchr(config, '.') && !hl_is_zoo_name(config))
        return hl_fail(inv->ctx, HALO_ERR_USAGE, "'%.200s' is no run directory, checkpoint, configuration or network of the zoo", config);
    if (!ends_with(config, ".h5") && !ends_with(config, ".hdf5")) return hl_settings_load(inv->ctx, config, inv->args - 1, inv->arg + 1, set);
    HL_TRY(settings_of_checkpoint(inv, config, set));
    return *checkpoint ? HALO_OK : hl_strdup(inv->ctx, config, checkpoint);
}

/* How many ranks trained says nothing of how many evaluate; and one rank takes whole samples, unless it is told not to. */
static void choose_parts(const hl_invocation *inv, hl_settings *set)
{
    bool told = false;
    for (int i = 1; i < inv->args; i++) told = told || strncmp(inv->arg[i], "parallel.spatial", 16) == 0;
    set->parallel.ranks = -1;
    for (int k = 0; k < 3 && inv->ctx->ranks == 1 && !told; k++) set->parallel.spatial[k] = 1;
}

static halo_status choose_split(hl_invocation *inv, const hl_settings *set, hl_split *split)
{
    static const char *const names[] = {"train", "validation", "test"};
    const char *given = hl_option_text(inv, "split");
    if (!given) {
        *split = *set->data.test || set->data.synthetic || set->data.split.n > 2 ? HL_TEST : *set->data.validation || set->data.split.n > 0 || set->data.folds.count > 0 ? HL_VALIDATION : HL_TRAIN;
        return HALO_OK;
    }
    for (int i = 0; i < HL_SPLITS; i++)
        if (strcmp(given, names[i]) == 0) {
            *split = (hl_split)i;
            return HALO_OK;
        }
    return hl_fail(inv->ctx, HALO_ERR_USAGE, "unknown split '%s'; train, validation or test", given);
}

static halo_status load_weights(hl_run *run, const char *checkpoint)
{
    char best[HL_TEXT_MAX + 32];
    if (checkpoint) return hl_agree(run->ctx, hl_state_load(run, checkpoint, false));
    if (!*run->set.output) return hl_fail(run->ctx, HALO_ERR_USAGE, "no weights: give --checkpoint FILE, or a configuration with 'output'");
    snprintf(best, sizeof(best), "%s/checkpoints/best.h5", run->set.output);
    bool has = hl_file_exists(best);
    HL_TRY(hl_comm_broadcast(run->ctx, &has, sizeof(has), 0)); /* as rank 0 sees it */
    if (has) return hl_agree(run->ctx, hl_state_load(run, best, false));
    return hl_rundir_newest(run);
}

/* What training measured on its data and a CONFIG cannot know. */
static halo_status take_measured(hl_invocation *inv, const char *path, const char *settings, hl_settings *set)
{
    hl_settings *then;
    if (hl_settings_zscore(set) != HL_ZSCORE_OF_SET) return HALO_OK;
    HL_TRY(hl_calloc(inv->ctx, 1, sizeof(*then), "settings", &then));
    halo_status st = hl_settings_parse(inv->ctx, path, settings, then);
    if (st == HALO_OK) set->data.zscore = then->data.zscore;
    free(then);
    return st;
}

/* What a checkpoint carries, so that nothing else is needed. Freed by the caller; NULL where there is no checkpoint that says. */
typedef struct carried {
    char *network;
    hl_target *label;
    int labels;
} carried;

static halo_status read_carried(hl_invocation *inv, hl_settings *set, const char *checkpoint, carried *c)
{
    char *path = NULL, *settings;
    if (checkpoint) HL_TRY(hl_strdup(inv->ctx, checkpoint, &path));
    else if (*set->output) HL_TRY(hl_rundir_find(inv->ctx, set->output, &path));
    if (!path) return HALO_OK;
    halo_status st = hl_state_peek(inv->ctx, path, &settings, &c->network);
    if (st == HALO_OK) {
        st = take_measured(inv, path, settings, set);
        free(settings);
    }
    if (st == HALO_OK) st = hl_state_targets(inv->ctx, path, &c->label, &c->labels);
    free(path);
    return st;
}

halo_status hl_restore(hl_invocation *inv, bool label, hl_split *split, hl_run **out)
{
    hl_settings *set;
    char *checkpoint = NULL;
    carried c = {0};
    hl_run *run = NULL;
    halo_status st;
    HL_TRY(hl_calloc(inv->ctx, 1, sizeof(*set), "settings", &set));
    HL_GOTO(st, hl_agree(inv->ctx, load_settings(inv, set, &checkpoint)), free_set);
    choose_parts(inv, set);
    HL_GOTO(st, choose_split(inv, set, split), free_set);
    HL_GOTO(st, hl_agree(inv->ctx, read_carried(inv, set, checkpoint, &c)), free_set);
    set->network_text = c.network;
    set->like = c.label;
    set->likes = c.labels;
    set->label = label ? c.label : NULL;
    set->labels = label ? c.labels : 0;
    HL_GOTO(st, hl_run_create(inv->ctx, set, HL_NEED_EVALUATION, 1u << *split, &run), free_set);
    run->set.network_text = NULL;
    run->set.label = run->set.like = NULL;
    run->set.likes = 0;
    HL_GOTO(st, load_weights(run, checkpoint), destroy_run);
    *out = run;
    goto free_set;
destroy_run:
    hl_run_destroy(run);
free_set:
    free(c.network);
    free(c.label);
    free(checkpoint);
    free(set);
    return st;
}
