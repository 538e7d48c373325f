/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rundir.c -- a run's directory: config.yaml (resolved), log.jsonl, summary.json, checkpoints/step-NNNNNNNNNN.h5 (the last `keep`) and
 * checkpoints/best.h5. Files appear whole or not at all.
 */
#include "base/file.h"
#include "base/topology.h"
#include "train/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static halo_status in_checkpoints(halo_context *ctx, const char *output, const char *name, char **out)
{
    char *dir;
    HL_TRY(hl_path_join(ctx, output, "checkpoints", &dir));
    halo_status st = hl_path_join(ctx, dir, name, out);
    free(dir);
    return st;
}

/* "step-0000000123.h5" -> 123; -1 for any other name. */
static int64_t step_of(const char *name)
{
    int64_t step;
    int used = 0;
    if (sscanf(name, "step-%" SCNd64 ".h5%n", &step, &used) != 1 || used == 0 || name[used]) return -1;
    return step;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Steps of the checkpoints present, newest first; freed by the caller. */
static halo_status list_steps(halo_context *ctx, const char *output, int64_t **steps, size_t *n)
{
    char *path;
    int64_t *list = NULL;
    size_t count = 0, cap = 0;
    halo_status st = HALO_OK;
    HL_TRY(in_checkpoints(ctx, output, "", &path));
    DIR *dir = opendir(path);
    if (!dir && errno != ENOENT) st = hl_fail(ctx, HALO_ERR_IO, "cannot read directory '%s': %s", path, strerror(errno));
    for (struct dirent *e; dir && st == HALO_OK && (e = readdir(dir));) {
        if (step_of(e->d_name) < 0) continue;
        st = hl_grow(ctx, &list, &cap, count + 1, sizeof(*list), "checkpoint names");
        if (st == HALO_OK) list[count++] = step_of(e->d_name);
    }
    if (dir) closedir(dir);
    free(path);
    if (st != HALO_OK) {
        free(list);
        return st;
    }
    if (count) qsort(list, count, sizeof(*list), descending);
    *steps = list;
    *n = count;
    return HALO_OK;
}

static halo_status step_path(halo_context *ctx, const char *output, int64_t step, char **path)
{
    char name[64];
    snprintf(name, sizeof(name), "step-%010" PRId64 ".h5", step);
    return in_checkpoints(ctx, output, name, path);
}

static halo_status write_config(hl_run *run)
{
    hl_str text = {0};
    char *path;
    hl_config_write(hl_settings_keys(), &run->set, &text);
    if (text.failed) return hl_fail(run->ctx, HALO_ERR_NOMEM, "out of memory: the configuration's text");
    halo_status st;
    HL_GOTO(st, hl_path_join(run->ctx, run->set.output, "config.yaml", &path), free_text);
    st = hl_file_write(run->ctx, path, text.s, text.len);
    free(path);
free_text:
    hl_str_free(&text);
    return st;
}

/* What writers that were killed left behind; nobody else writes here while the lock is held. */
static halo_status remove_temporaries(hl_run *run)
{
    char *path;
    HL_TRY(in_checkpoints(run->ctx, run->set.output, "", &path));
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' && n > 4 && strcmp(e->d_name + n - 4, ".tmp") == 0) unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir) closedir(dir);
    free(path);
    return HALO_OK;
}

halo_status hl_rundir_begin(hl_run *run)
{
    if (!*run->set.output) return HALO_OK;
    char *path;
    int64_t *steps = NULL;
    size_t n = 0;
    HL_TRY(in_checkpoints(run->ctx, run->set.output, "", &path));
    halo_status st = hl_make_dirs(run->ctx, path);
    free(path);
    if (st != HALO_OK) return st;
    HL_TRY(list_steps(run->ctx, run->set.output, &steps, &n));
    free(steps);
    if (n > 0 && !*run->set.resume)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'%s' holds the checkpoints of an earlier run; continue it with resume=auto or choose another output",
                       run->set.output);
    HL_TRY(hl_directory_lock(run->ctx, run->set.output, &run->lock));
    return remove_temporaries(run);
}

void hl_rundir_forget(const char *output)
{
    static const char *const part[] = {"log.jsonl", ".lock", "checkpoints", ""};
    struct stat about;
    for (size_t i = 0; i < HL_COUNT(part); i++) {
        char *path;
        if (hl_path_join(NULL, output, part[i], &path) != HALO_OK) return;
        bool said = i == 0 && (stat(path, &about) != 0 || about.st_size != 0);
        if (!said) (void)(i < 2 ? unlink(path) : rmdir(path)); /* directories that hold anything stay */
        free(path);
        if (said) return;
    }
}

halo_status hl_rundir_write_config(hl_run *run) { return *run->set.output ? write_config(run) : HALO_OK; }

static halo_status remove_old(hl_run *run)
{
    int64_t *steps;
    size_t n;
    HL_TRY(list_steps(run->ctx, run->set.output, &steps, &n));
    halo_status st = HALO_OK;
    for (size_t i = (size_t)run->set.checkpoint.keep; i < n && st == HALO_OK; i++) {
        char *path;
        HL_GOTO(st, step_path(run->ctx, run->set.output, steps[i], &path), free_steps);
        if (unlink(path) != 0 && errno != ENOENT) HL_WARN(run->ctx, "cannot remove '%s': %s", path, strerror(errno));
        free(path);
    }
free_steps:
    free(steps);
    return st;
}

static halo_status save_as(hl_run *run, char *path)
{
    halo_status st = hl_state_save(run, path);
    hl_event e = {.kind = HL_EVENT_CHECKPOINT, .step = run->at.step, .epoch = hl_run_epoch(run), .path = path};
    if (st == HALO_OK) hl_run_tell(run, &e);
    free(path);
    return st;
}

static halo_status save_best(hl_run *run)
{
    char *path;
    HL_TRY(in_checkpoints(run->ctx, run->set.output, "best.h5", &path));
    return save_as(run, path);
}

halo_status hl_rundir_checkpoint(hl_run *run, bool *best)
{
    char *path;
    halo_status st = *best ? save_best(run) : HALO_OK; /* first: the other one already says that this loss was reached */
    if (st != HALO_OK) {
        *best = false;
        return st;
    }
    HL_TRY(step_path(run->ctx, run->set.output, run->at.step, &path));
    HL_TRY(save_as(run, path));
    return remove_old(run);
}

halo_status hl_rundir_find(halo_context *ctx, const char *output, char **found)
{
    int64_t *steps;
    size_t n;
    char *path;
    *found = NULL;
    HL_TRY(in_checkpoints(ctx, output, "best.h5", &path));
    if (hl_file_exists(path)) {
        *found = path;
        return HALO_OK;
    }
    free(path);
    HL_TRY(list_steps(ctx, output, &steps, &n));
    halo_status st = HALO_OK;
    for (size_t i = 0; i < n && st == HALO_OK && !*found; i++) {
        st = step_path(ctx, output, steps[i], &path);
        if (st != HALO_OK) break;
        if (hl_ckpt_is(path)) *found = path;
        else free(path);
    }
    free(steps);
    return st;
}

/* A broken checkpoint is a warning while there are others to try; another failure is one. */
static halo_status try_load(hl_run *run, const char *path, bool with_progress, bool *broken)
{
    halo_context *ctx = run->ctx;
    void (*log)(void *, halo_log_level, const char *) = ctx->log;
    ctx->log = NULL;
    halo_status st = hl_state_load(run, path, with_progress);
    ctx->log = log;
    *broken = st == HALO_ERR_FORMAT || st == HALO_ERR_IO;
    if (*broken) HL_WARN(ctx, "%s: '%s' is not whole; trying the one before", halo_error_message(ctx), path);
    else if (st != HALO_OK) hl_log(ctx, HALO_LOG_ERROR, "%s", halo_error_message(ctx));
    return st;
}

static halo_status all_broken(const hl_run *run, size_t n, bool with_progress)
{
    const char *dir = run->set.output;
    if (!with_progress)
        return hl_fail(run->ctx, HALO_ERR_IO, "no checkpoint in '%s/checkpoints' is whole (%zu tried); '--checkpoint FILE' names another", dir, n);
    return hl_fail(run->ctx, HALO_ERR_IO,
                   "no checkpoint in '%s/checkpoints' is whole (%zu tried): go on from another with resume=FILE, such as its best.h5, or begin anew in another "
                   "output",
                   dir, n);
}

/* *chosen: the step of the one that was loaded, -1 if there is none. Of one rank. */
static halo_status try_newest(hl_run *run, bool with_progress, int64_t *chosen)
{
    int64_t *steps;
    size_t n;
    HL_TRY(list_steps(run->ctx, run->set.output, &steps, &n));
    halo_status st = HALO_OK;
    bool broken = n > 0;
    for (size_t i = 0; i < n && broken; i++) {
        char *path;
        *chosen = steps[i];
        HL_GOTO(st, step_path(run->ctx, run->set.output, steps[i], &path), free_steps);
        st = try_load(run, path, with_progress, &broken);
        if (st == HALO_OK && with_progress) HL_INFO(run->ctx, "resuming from '%s' at step %" PRId64, path, run->at.step);
        free(path);
    }
    if (broken) st = all_broken(run, n, with_progress);
free_steps:
    free(steps);
    return st;
}

static halo_status load_step(hl_run *run, bool with_progress, int64_t step)
{
    char *path;
    HL_TRY(step_path(run->ctx, run->set.output, step, &path));
    halo_status st = hl_state_load(run, path, with_progress);
    free(path);
    return st;
}

/* Rank 0 looks and decides; all others read the same file. */
static halo_status load_newest(hl_run *run, bool with_progress, bool *loaded)
{
    int64_t chosen = -1;
    HL_AGREE(run->ctx, run->ctx->rank == 0 ? try_newest(run, with_progress, &chosen) : HALO_OK);
    HL_TRY(hl_comm_broadcast(run->ctx, &chosen, sizeof(chosen), 0));
    *loaded = chosen >= 0;
    return hl_agree(run->ctx, *loaded && run->ctx->rank != 0 ? load_step(run, with_progress, chosen) : HALO_OK);
}

halo_status hl_rundir_resume(hl_run *run)
{
    if (!*run->set.resume) return HALO_OK;
    if (strcmp(run->set.resume, "auto") != 0) {
        HL_AGREE(run->ctx, hl_state_load(run, run->set.resume, true));
        HL_INFO(run->ctx, "resuming from '%s' at step %" PRId64, run->set.resume, run->at.step);
        return HALO_OK;
    }
    if (!*run->set.output) return hl_fail(run->ctx, HALO_ERR_USAGE, "'resume: auto' needs 'output'");
    bool loaded;
    return load_newest(run, true, &loaded);
}

halo_status hl_rundir_newest(hl_run *run)
{
    bool loaded;
    HL_TRY(load_newest(run, false, &loaded));
    return loaded ? HALO_OK : hl_fail(run->ctx, HALO_ERR_IO, "no checkpoint in '%s/checkpoints'", run->set.output);
}

static void summary_json(hl_run *run, const char *status, const hl_evaluation *last, double samples_per_second, double gflops, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_string(j, "status", status);
    hl_json_int(j, "epochs", run->at.epoch);
    hl_json_int(j, "steps", run->at.step);
    if (isfinite(run->at.best)) {
        hl_json_object(j, "best");
        hl_json_number(j, "loss", run->at.best);
        hl_json_int(j, "epoch", run->at.best_epoch);
        hl_json_end_object(j);
    } else hl_json_null(j, "best");
    if (last) {
        hl_json_object(j, "validation");
        hl_evaluation_json(last, j);
        hl_json_end_object(j);
    }
    hl_json_array(j, "targets");
    for (int i = 0; last && i < last->targets; i++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", last->target[i].name);
        hl_json_number(j, "error", last->group_score[i].error);
        hl_json_number(j, "constant_error", last->group_score[i].constant_error);
        hl_json_number(j, "correlation", last->group_score[i].correlation);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    hl_json_number(j, "seconds", run->at.seconds);
    hl_json_number(j, "core_hours", run->at.seconds * run->ctx->threads * run->ctx->ranks / 3600);
    hl_json_number(j, "samples_per_second", samples_per_second);
    hl_json_number(j, "gflops", gflops);
    hl_json_int(j, "peak_rss_bytes", (int64_t)hl_peak_rss_bytes());
    hl_counted_json(run, j);
    hl_json_end_object(j);
}

halo_status hl_rundir_summary(hl_run *run, const char *status, const hl_evaluation *last, double samples_per_second, double gflops)
{
    if (!*run->set.output) return HALO_OK;
    hl_json j = {0};
    char *path;
    summary_json(run, status, last, samples_per_second, gflops, &j);
    hl_str_add(&j.out, "\n");
    halo_status st = j.out.failed ? hl_fail(run->ctx, HALO_ERR_NOMEM, "out of memory: the summary") : HALO_OK;
    if (st == HALO_OK) st = hl_path_join(run->ctx, run->set.output, "summary.json", &path);
    if (st == HALO_OK) {
        st = hl_file_write(run->ctx, path, j.out.s, j.out.len);
        free(path);
    }
    hl_json_free(&j);
    return st;
}
