/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c -- what a run would take, found by doing a little of it: a sample of every file is read, two steps and two batches of validation are timed after one
 * of each that is not, and
 *
 *     epoch = steps step + (validation steps + statistics of norms) / validate_every,     total = start + epochs epoch
 *
 * Writing checkpoints is not timed, since nothing is written; their size is told.
 */
#include "train/check.h"
#include "base/clock.h"
#include "base/topology.h"
#include "tensor/block.h"

#include <errno.h>
#include <unistd.h>

/* The directory, or the nearest one above that is there, can be written to. */
static halo_status check_output(hl_run *run)
{
    char path[HL_TEXT_MAX];
    if (!*run->set.output) return HALO_OK;
    memcpy(path, run->set.output, sizeof(path));
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash) memcpy(path, ".", 2);
        else slash[slash == path] = '\0';
    }
    if (access(path, W_OK | X_OK) == 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "cannot write 'output' to '%s': '%s': %s", run->set.output, path, strerror(errno));
}

/* One cell of the first sample of each universe, which for compressed files inflates a chunk; ranks share them. */
static halo_status touch_source(hl_run *run, hl_source *s, int64_t *files)
{
    const hl_source_info *info = &s->info;
    const hl_cells one = {.ext = {1, 1, 1}};
    char *x = NULL;
    float *y = NULL;
    int64_t before = -1, here = 0;
    halo_status st = hl_calloc(run->ctx, (size_t)info->ext[0], hl_dtype_size(info->dtype), "a cell", &x);
    if (st == HALO_OK) st = hl_calloc(run->ctx, (size_t)hl_max64(info->targets, 1), sizeof(float), "a cell's targets", &y);
    for (int64_t i = 0; i < info->samples && st == HALO_OK; i++) {
        int64_t group = s->ops->group_of(s, i);
        if (group == before) continue;
        before = group;
        if (here++ % run->ctx->ranks == run->ctx->rank) st = hl_source_read(s, i, &one, x, &one, y);
    }
    *files += here;
    free(x);
    free(y);
    return st;
}

static halo_status touch_sources(hl_run *run, int64_t *files)
{
    for (int split = 0; split < HL_SPLITS; split++)
        if (run->source[split] && !run->set.data.synthetic) HL_TRY(touch_source(run, run->source[split], files));
    return HALO_OK;
}

/* A step on weights as they begin; what it makes of them does not matter. */
static halo_status rehearse(hl_run *run, hl_check *c)
{
    hl_rehearsal r;
    double step = 0;
    int64_t steps = 0;
    HL_TRY(hl_run_rehearse(run, &r));
    if (run->source[HL_VALIDATION]) HL_TRY(hl_run_rehearse_validation(run, &step, &steps));
    c->step = r.step;
    c->read = r.read;
    c->steps_epoch = r.steps_epoch;
    c->steps = r.steps;
    c->validation = step * (double)steps;
    if (run->source[HL_VALIDATION] && hl_program_has_running(run->train)) /* forward passes, which cost what those of validation do */
        c->norms = step * (double)(hl_div_up(run->set.train.norm_samples, run->set.batch) * hl_run_parts(run));
    return HALO_OK;
}

/* Of all ranks the slowest, and all threads. */
static halo_status add_up(hl_run *run, hl_check *c)
{
    double slowest[] = {c->start, c->step, c->read, c->validation, c->norms, (double)hl_rss_bytes()}, threads = run->ctx->threads;
    const double every = (double)run->set.train.validate_every;
    HL_TRY(hl_comm_max(run->ctx, slowest, HL_COUNT(slowest)));
    HL_TRY(hl_comm_sum(run->ctx, &threads, 1));
    c->start = slowest[0];
    c->step = slowest[1];
    c->read = slowest[2];
    c->validation = slowest[3];
    c->norms = slowest[4];
    c->resident = (size_t)slowest[5];
    c->threads = (int64_t)threads;
    c->epoch = (double)c->steps_epoch * c->step + (c->validation + c->norms) / every;
    double epochs = (double)c->steps / (double)c->steps_epoch, validations = ceil(epochs / every);
    c->total = c->start + (double)c->steps * c->step + validations * (c->validation + c->norms);
    c->core_hours = c->total * threads / 3600;
    return HALO_OK;
}

static int64_t checkpoint_bytes(const hl_run *run)
{
    hl_program_info info;
    hl_program_info_get(run->train, &info);
    int64_t values = info.parameters * (int64_t)hl_dtype_size(hl_model_dtype(run->model));
    return *run->set.output ? values + (int64_t)info.state_bytes : 0;
}

halo_status hl_run_check(hl_run *run, double began, hl_check *c)
{
    *c = (hl_check){.memory = run->forecast};
    if (!run->forecast.fits) return HALO_OK;
    HL_AGREE(run->ctx, run->ctx->rank == 0 ? check_output(run) : HALO_OK);
    HL_AGREE(run->ctx, touch_sources(run, &c->files));
    HL_TRY(hl_rundir_resume(run));
    HL_TRY(hl_run_start_from(run));
    HL_TRY(hl_run_forecast(run, &c->memory));
    c->checkpoint_bytes = checkpoint_bytes(run);
    c->start = hl_now() - began;
    HL_TRY(rehearse(run, c));
    return add_up(run, c);
}
