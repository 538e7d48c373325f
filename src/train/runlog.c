/* SPDX-License-Identifier: Apache-2.0 */
/* runlog.c -- log.jsonl: one object per event, one line per object, flushed, so that a killed job loses nothing that was said. */
#include "base/clock.h"
#include "base/file.h"
#include "base/topology.h"
#include "train/run.h"

#include <errno.h>
#include <stdio.h>

struct hl_runlog {
    hl_run *run;
    FILE *file;
    char *path;
    bool warned;
};

halo_status hl_runlog_open(hl_run *run, hl_runlog **out)
{
    hl_runlog *log;
    HL_TRY(hl_make_dirs(run->ctx, run->set.output));
    HL_TRY(hl_calloc(run->ctx, 1, sizeof(*log), "the run log", &log));
    log->run = run;
    halo_status st;
    HL_GOTO(st, hl_path_join(run->ctx, run->set.output, "log.jsonl", &log->path), free_log);
    log->file = fopen(log->path, "a");
    if (!log->file) {
        st = hl_fail(run->ctx, HALO_ERR_IO, "cannot open '%s': %s", log->path, strerror(errno));
        goto free_path;
    }
    *out = log;
    return HALO_OK;
free_path:
    free(log->path);
free_log:
    free(log);
    return st;
}

void hl_runlog_close(hl_runlog *log)
{
    if (!log) return;
    fclose(log->file);
    free(log->path);
    free(log);
}

static void start_members(const hl_run *run, hl_json *j)
{
    char host[256];
    halo_device_info info = {0};
    hl_program_info program;
    hl_host_name(host, sizeof(host));
    run->dev->ops->describe(run->dev, &info);
    hl_program_info_get(run->train, &program);
    hl_json_string(j, "version", halo_version());
    hl_json_string(j, "host", host);
    hl_json_int(j, "ranks", run->ctx->ranks);
    hl_json_int(j, "threads", run->ctx->threads);
    hl_json_array(j, "hosts");
    hl_seats_json(run->seat, run->ctx->ranks, j);
    hl_json_end_array(j);
    hl_json_string(j, "device", info.name);
    hl_json_string(j, "isa", info.isa);
    hl_json_string(j, "libraries", info.details);
    hl_json_int(j, "seed", run->set.seed);
    hl_json_int(j, "global_batch", run->set.batch);
    hl_json_int(j, "parameters", program.parameters);
}

static void validation_members(const hl_event *e, hl_json *j)
{
    hl_json_number(j, "loss", e->loss);
    hl_json_bool(j, "best", e->best);
    hl_json_number(j, "seconds", e->seconds);
    hl_json_array(j, "targets");
    for (int i = 0; i < e->targets; i++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", e->target[i].name);
        hl_json_number(j, "error", e->group_score[i].error);
        hl_json_number(j, "constant_error", e->group_score[i].constant_error);
        hl_json_number(j, "correlation", e->group_score[i].correlation);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    if (e->classes > 0) hl_class_scores_json(e->classes, e->of_class, j);
}

/* Per step: transfers run once in each of its parts. */
static void sent_json(const hl_traffic *t, int64_t parts, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_int(j, "halo_bytes_forward", t->halo_bytes[0] * parts);
    hl_json_int(j, "halo_bytes_backward", t->halo_bytes[1] * parts);
    hl_json_int(j, "halo_messages", t->halo_messages * parts);
    hl_json_int(j, "gather_bytes", t->gather_bytes * parts);
    hl_json_number(j, "seconds_exposed", t->exposed * (double)parts / (double)hl_max64(1, t->runs));
    hl_json_end_object(j);
}

void hl_counted_json(const hl_run *run, hl_json *j)
{
    if (!run->counted) return;
    hl_json_array(j, "read_bytes");
    for (int r = 0; r < run->ctx->ranks; r++) hl_json_int(j, NULL, (int64_t)run->counted[r].read);
    hl_json_end_array(j);
    if (!hl_grid_split(&run->grid)) return;
    hl_json_array(j, "sent");
    for (int r = 0; r < run->ctx->ranks; r++) sent_json(&run->counted[r].sent, hl_run_parts(run), j);
    hl_json_end_array(j);
}

static void members(const hl_run *run, const hl_event *e, hl_json *j)
{
    switch (e->kind) {
    case HL_EVENT_START: start_members(run, j); break;
    case HL_EVENT_STEP:
        hl_json_number(j, "loss", e->loss);
        hl_json_number(j, "lr", e->lr);
        hl_json_number(j, "seconds", e->seconds);
        hl_json_number(j, "seconds_io", e->seconds_io);
        hl_json_number(j, "seconds_exposed", e->seconds_exposed);
        hl_json_number(j, "grad_norm", e->grad_norm);
        if (e->scaled) hl_json_number(j, "loss_scale", e->loss_scale);
        if (e->skipped) hl_json_bool(j, "skipped", true);
        break;
    case HL_EVENT_EPOCH:
        hl_json_number(j, "loss", e->loss);
        hl_json_number(j, "samples_per_second", e->samples_per_second);
        hl_json_number(j, "gflops", e->gflops);
        hl_json_int(j, "rss_bytes", (int64_t)hl_rss_bytes());
        break;
    case HL_EVENT_VALIDATION: validation_members(e, j); break;
    case HL_EVENT_CHECKPOINT: hl_json_string(j, "path", e->path); break;
    case HL_EVENT_STOP:
        hl_json_string(j, "status", e->status);
        hl_json_string(j, "reason", e->reason);
        hl_json_number(j, "seconds", e->elapsed);
        hl_counted_json(run, j);
        break;
    }
}

void hl_runlog_event(void *user, const hl_event *e)
{
    static const char *const names[] = {"start", "step", "epoch", "validation", "checkpoint", "stop"};
    hl_runlog *log = user;
    hl_json j = {0};
    char time[24];
    hl_timestamp(time);
    hl_json_object(&j, NULL);
    hl_json_string(&j, "event", names[e->kind]);
    hl_json_string(&j, "time", time);
    hl_json_int(&j, "step", e->step);
    hl_json_int(&j, "epoch", e->epoch);
    members(log->run, e, &j);
    hl_json_end_object(&j);
    hl_str_add(&j.out, "\n");
    bool good = !j.out.failed && fwrite(j.out.s, 1, j.out.len, log->file) == j.out.len && fflush(log->file) == 0;
    if (!good && !log->warned) HL_WARN(log->run->ctx, "cannot write '%s': %s", log->path, strerror(errno));
    log->warned = log->warned || !good;
    hl_json_free(&j);
}
