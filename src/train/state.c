/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c -- a run's state as a checkpoint file. Arrays carry the names of hl_graph_params below the name of what they are:
 * parameters/conv1/weights (out, in, kd, kh, kw), optimizer/m/conv1/weights; scalars are attributes of the root. doc/formats.md lists them.
 */
#include "base/file.h"
#include "train/run.h"

#include <stdio.h>

enum { FORMAT = 1 };

static void array_name(const hl_param_info *p, hl_array a, char *out, size_t size)
{
    if (a == HL_MASTER) snprintf(out, size, "parameters/%s", p->name);
    else snprintf(out, size, "optimizer/%s/%s", hl_array_name(a), p->name);
}

typedef halo_status (*array_action)(hl_ckpt *file, hl_model *model, int param, const hl_param_info *p, hl_array a, void *host);

static halo_status put_array(hl_ckpt *file, hl_model *model, int param, const hl_param_info *p, hl_array a, void *host)
{
    char name[HL_NAME_MAX * 3];
    array_name(p, a, name, sizeof(name));
    HL_TRY(hl_model_get_raw(model, param, a, host));
    return hl_ckpt_put(file, name, hl_model_dtype(model), p->ndim, p->dim, host);
}

static halo_status get_array(hl_ckpt *file, hl_model *model, int param, const hl_param_info *p, hl_array a, void *host)
{
    char name[HL_NAME_MAX * 3];
    array_name(p, a, name, sizeof(name));
    HL_TRY(hl_ckpt_get(file, name, hl_model_dtype(model), p->ndim, p->dim, host));
    return hl_model_set_raw(model, param, a, host);
}

/* Every parameter's value, and its optimiser state when `state`. */
static halo_status each_array(hl_run *run, hl_ckpt *file, bool state, array_action action)
{
    const hl_param_info *list;
    int n = hl_model_params(run->model, &list);
    int64_t most = 1;
    for (int i = 0; i < n; i++) most = hl_max64(most, list[i].count);
    void *host;
    halo_status st = HALO_OK;
    HL_TRY(hl_aligned(run->ctx, (size_t)most * hl_dtype_size(hl_model_dtype(run->model)), "a checkpoint's array", &host));
    for (int i = 0; i < n && st == HALO_OK; i++) {
        st = action(file, run->model, i, &list[i], HL_MASTER, host);
        for (hl_array a = HL_STATE1; a <= HL_STATE2 && st == HALO_OK && state; a++)
            if (hl_model_has(run->model, i, a)) st = action(file, run->model, i, &list[i], a, host);
    }
    free(host);
    return st;
}

static halo_status put_texts(hl_run *run, hl_ckpt *file)
{
    hl_str settings = {0};
    char *network = NULL;
    halo_status st;
    hl_config_write(hl_settings_keys(), &run->set, &settings);
    if (settings.failed) return hl_fail(run->ctx, HALO_ERR_NOMEM, "out of memory: a checkpoint's settings");
    HL_GOTO(st, halo_network_text(run->net, &network), free_settings);
    HL_GOTO(st, hl_ckpt_put_string(file, "settings", settings.s), free_network);
    HL_GOTO(st, hl_ckpt_put_string(file, "network", network), free_network);
    HL_GOTO(st, hl_ckpt_put_string(file, "version", halo_version()), free_network);
free_network:
    free(network);
free_settings:
    hl_str_free(&settings);
    return st;
}

/* targets: [T, 4] low, high, mean, std of each (NaN where it has none), and their names, a line each. */
static halo_status put_targets(hl_run *run, hl_ckpt *file)
{
    const hl_source_info *info = run->source[HL_TRAIN] ? &run->source[HL_TRAIN]->info : NULL;
    if (!info || info->targets == 0) return HALO_OK;
    double *range;
    hl_str names = {0};
    const int64_t dim[2] = {info->targets, 4};
    HL_TRY(hl_calloc(run->ctx, (size_t)info->targets * 4, sizeof(*range), "target ranges", &range));
    for (int t = 0; t < info->targets; t++) {
        const hl_target *x = &info->target[t];
        memcpy(range + 4 * t, (const double[4]){x->low, x->high, x->mean, x->std}, 4 * sizeof(*range));
        hl_str_addf(&names, "%s\n", x->name);
    }
    halo_status st = names.failed ? hl_fail(run->ctx, HALO_ERR_NOMEM, "out of memory: names of targets") : HALO_OK;
    if (st == HALO_OK) st = hl_ckpt_put_string(file, "target_names", names.s);
    if (st == HALO_OK) st = hl_ckpt_put(file, "targets", HALO_F64, 2, dim, range);
    hl_str_free(&names);
    free(range);
    return st;
}

/* From the lines of `names`. */
static halo_status get_ranges(halo_context *ctx, hl_ckpt *file, const char *names, int n, hl_target *target)
{
    double *range;
    const int64_t dim[2] = {n, 4};
    HL_TRY(hl_calloc(ctx, (size_t)n * 4, sizeof(*range), "target ranges", &range));
    halo_status st = hl_ckpt_get(file, "targets", HALO_F64, 2, dim, range);
    for (int t = 0; t < n && st == HALO_OK; t++) {
        size_t length = strcspn(names, "\n");
        target[t] = (hl_target){.low = range[4 * t], .high = range[4 * t + 1], .mean = range[4 * t + 2], .std = range[4 * t + 3]};
        snprintf(target[t].name, sizeof(target[t].name), "%.*s", (int)hl_min64((int64_t)length, (int64_t)sizeof(target[t].name) - 1), names);
        names += length + (names[length] == '\n');
    }
    free(range);
    return st;
}

halo_status hl_state_targets(halo_context *ctx, const char *path, hl_target **target, int *n)
{
    hl_ckpt *file;
    char *names = NULL;
    halo_status st = HALO_OK;
    *target = NULL;
    *n = 0;
    HL_TRY(hl_ckpt_open(ctx, path, &file));
    if (!hl_ckpt_has(file, "targets")) goto close_file; /* of an earlier version */
    HL_GOTO(st, hl_ckpt_get_string(file, "target_names", &names), close_file);
    for (const char *c = names; *c; c++) *n += *c == '\n';
    HL_GOTO(st, hl_calloc(ctx, (size_t)hl_max64(*n, 1), sizeof(**target), "targets", target), close_file);
    st = get_ranges(ctx, file, names, *n, *target);
close_file:
    free(names);
    (void)hl_ckpt_close(file, false);
    return st;
}

static halo_status put_progress(hl_ckpt *file, const hl_progress *at, int64_t t)
{
    HL_TRY(hl_ckpt_put_int(file, "format", FORMAT));
    HL_TRY(hl_ckpt_put_int(file, "epoch", at->epoch));
    HL_TRY(hl_ckpt_put_int(file, "step_in_epoch", at->step_in_epoch));
    HL_TRY(hl_ckpt_put_int(file, "step", at->step));
    HL_TRY(hl_ckpt_put_int(file, "optimizer_steps", t));
    HL_TRY(hl_ckpt_put_number(file, "best_loss", at->best));
    HL_TRY(hl_ckpt_put_int(file, "best_epoch", at->best_epoch));
    HL_TRY(hl_ckpt_put_int(file, "validations_without_improvement", at->waited));
    return hl_ckpt_put_number(file, "seconds", at->seconds);
}

static halo_status get_progress(hl_ckpt *file, hl_progress *at, int64_t *t)
{
    HL_TRY(hl_ckpt_get_int(file, "epoch", &at->epoch));
    HL_TRY(hl_ckpt_get_int(file, "step_in_epoch", &at->step_in_epoch));
    HL_TRY(hl_ckpt_get_int(file, "step", &at->step));
    HL_TRY(hl_ckpt_get_int(file, "optimizer_steps", t));
    HL_TRY(hl_ckpt_get_number(file, "best_loss", &at->best));
    HL_TRY(hl_ckpt_get_int(file, "best_epoch", &at->best_epoch));
    HL_TRY(hl_ckpt_get_int(file, "validations_without_improvement", &at->waited));
    return hl_ckpt_get_number(file, "seconds", &at->seconds);
}

/* Of loss scaling, hl_scaler as an array. */
static halo_status put_scaler(hl_run *run, hl_ckpt *file)
{
    const int64_t dim[1] = {HL_SCALER_NUMBERS};
    hl_scaler scaler = hl_model_scaler(run->model);
    if (hl_run_optim_spec(&run->set).scaling.rule == HL_SCALING_NONE) return HALO_OK;
    return hl_ckpt_put(file, "loss_scaling", HALO_F64, 1, dim, &scaler);
}

static halo_status get_scaler(hl_run *run, hl_ckpt *file)
{
    const int64_t dim[1] = {HL_SCALER_NUMBERS};
    hl_scaler scaler;
    if (hl_run_optim_spec(&run->set).scaling.rule == HL_SCALING_NONE || !hl_ckpt_has(file, "loss_scaling")) return HALO_OK;
    HL_TRY(hl_ckpt_get(file, "loss_scaling", HALO_F64, 1, dim, &scaler));
    hl_model_set_scaler(run->model, &scaler);
    return HALO_OK;
}

halo_status hl_state_save(hl_run *run, const char *path)
{
    hl_ckpt *file;
    HL_TRY(hl_ckpt_create(run->ctx, path, &file));
    halo_status st;
    HL_GOTO(st, put_progress(file, &run->at, hl_model_steps(run->model)), close_file);
    HL_GOTO(st, put_texts(run, file), close_file);
    HL_GOTO(st, put_targets(run, file), close_file);
    HL_GOTO(st, put_scaler(run, file), close_file);
    HL_GOTO(st, each_array(run, file, true, put_array), close_file);
close_file:;
    halo_status closed = hl_ckpt_close(file, st == HALO_OK);
    return st == HALO_OK ? closed : st;
}

static halo_status check_format(halo_context *ctx, hl_ckpt *file, const char *path)
{
    int64_t format;
    if (!hl_ckpt_has(file, "format")) return hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is not a halo checkpoint: no attribute 'format'", path);
    HL_TRY(hl_ckpt_get_int(file, "format", &format));
    if (format == FORMAT) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_FORMAT, "checkpoint '%s' has format %" PRId64 ", this program reads %d", path, format, FORMAT);
}

/* Same layers, else the first line in which the two network files differ. */
static halo_status compare_networks(hl_run *run, const char *path, const char *theirs, const char *ours)
{
    while (*theirs && *ours) {
        size_t na = strcspn(theirs, "\n"), nb = strcspn(ours, "\n");
        if (na != nb || strncmp(theirs, ours, na) != 0)
            return hl_fail(run->ctx, HALO_ERR_SHAPE, "checkpoint '%s' is of another network: it has '%.*s' where this one has '%.*s'%s", path, (int)na,
                           theirs, (int)nb, ours, hl_run_patches(&run->set) && strncmp(ours, "input:", 6) == 0 ? ", which is 'data.patch'" : "");
        theirs += na + (theirs[na] == '\n');
        ours += nb + (ours[nb] == '\n');
    }
    if (!*theirs && !*ours) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_SHAPE, "checkpoint '%s' is of another network: it has %s layers", path, *theirs ? "more" : "fewer");
}

static halo_status check_network(hl_run *run, hl_ckpt *file, const char *path)
{
    char *theirs, *ours;
    HL_TRY(hl_ckpt_get_string(file, "network", &theirs));
    halo_status st = halo_network_text(run->net, &ours);
    if (st == HALO_OK) {
        st = compare_networks(run, path, theirs, ours);
        free(ours);
    }
    free(theirs);
    return st;
}

/* Settings that decide the stream of samples and the schedule: another value would not continue the same run. */
static halo_status compare_settings(hl_run *run, const char *path, const hl_settings *then)
{
    static const char *const fixed[] = {"seed", "batch", "optimizer.name", "loss", "data.augment", "data.transform", "data.zscore", "data.crop", "data.patch", "data.patches", "data.foreground", "data.folds.count", "data.folds.use", "data.folds.patient", "data.spacing", "data.vary.rotate", "data.vary.scale", "data.vary.gamma", "data.vary.noise", "data.vary.share"};
    hl_keys keys = hl_settings_keys();
    halo_status st = HALO_OK;
    for (size_t i = 0; i < keys.n && st == HALO_OK; i++)
        for (size_t k = 0; k < HL_COUNT(fixed); k++) {
            if (strcmp(keys.key[i].name, fixed[k]) != 0) continue;
            hl_str a = {0}, b = {0};
            hl_config_value(&keys.key[i], then, &a);
            hl_config_value(&keys.key[i], &run->set, &b);
            if (a.s && b.s && strcmp(a.s, b.s) != 0)
                st = hl_fail(run->ctx, HALO_ERR_USAGE, "cannot resume from '%s': its '%s' is %s, now it is %s", path, fixed[k], a.s, b.s);
            hl_str_free(&a);
            hl_str_free(&b);
        }
    return st;
}

static halo_status check_settings(hl_run *run, hl_ckpt *file, const char *path)
{
    char *text;
    hl_settings *then;
    HL_TRY(hl_ckpt_get_string(file, "settings", &text));
    halo_status st = hl_calloc(run->ctx, 1, sizeof(*then), "settings", &then);
    if (st == HALO_OK) {
        st = hl_settings_parse(run->ctx, path, text, then);
        if (st == HALO_OK) st = compare_settings(run, path, then);
        free(then);
    }
    free(text);
    return st;
}

static halo_status load_progress(hl_run *run, hl_ckpt *file, const char *path, hl_progress *at, int64_t *t)
{
    HL_TRY(check_settings(run, file, path));
    return get_progress(file, at, t);
}

halo_status hl_state_load(hl_run *run, const char *path, bool with_progress)
{
    hl_ckpt *file;
    hl_progress at = run->at;
    int64_t t = 0;
    HL_TRY(hl_ckpt_open(run->ctx, path, &file));
    halo_status st;
    HL_GOTO(st, check_format(run->ctx, file, path), close_file);
    HL_GOTO(st, check_network(run, file, path), close_file);
    if (with_progress) HL_GOTO(st, load_progress(run, file, path, &at, &t), close_file);
    HL_GOTO(st, each_array(run, file, with_progress, get_array), close_file);
    if (with_progress) HL_GOTO(st, get_scaler(run, file), close_file);
    if (with_progress) {
        run->at = at;
        hl_model_set_steps(run->model, t);
    }
close_file:
    (void)hl_ckpt_close(file, false);
    return st;
}

halo_status hl_state_peek(halo_context *ctx, const char *path, char **settings, char **network)
{
    hl_ckpt *file;
    char *s = NULL, *n = NULL;
    HL_TRY(hl_ckpt_open(ctx, path, &file));
    halo_status st;
    HL_GOTO(st, check_format(ctx, file, path), close_file);
    HL_GOTO(st, hl_ckpt_get_string(file, "settings", &s), close_file);
    HL_GOTO(st, hl_ckpt_get_string(file, "network", &n), free_settings);
    *settings = s;
    *network = n;
    goto close_file;
free_settings:
    free(s);
close_file:
    (void)hl_ckpt_close(file, false);
    return st;
}
