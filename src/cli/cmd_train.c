/* SPDX-License-Identifier: Apache-2.0 */
/* halo train */
#include "cli/commands.h"
#include "cli/progress.h"
#include "base/file.h"
#include "base/trace.h"
#include "comm/comm.h"

static const hl_option options[] = {
    {.name = "trace", .type = HL_OPT_TEXT, .arg = "FILE", .help = "write what every thread of every rank did, for chrome://tracing or Perfetto"},
};

static unsigned splits_of(const hl_settings *set)
{
    bool validates = set->data.synthetic || *set->data.validation || set->data.split.n > 0;
    return 1u << HL_TRAIN | (validates ? 1u << HL_VALIDATION : 0);
}

/* The trace's file may be in the run's directory, which is there by now. */
static halo_status start_trace(hl_invocation *inv)
{
    if (!hl_given(inv, "trace")) return HALO_OK;
    HL_TRY(hl_trace_try(inv->ctx, hl_option_text(inv, "trace")));
    return hl_trace_start(inv->ctx);
}

static halo_status train_run(hl_invocation *inv, hl_run *run)
{
    hl_progress_line progress;
    hl_runlog *log = NULL;
    hl_progress_init(&progress, run, inv->quiet);
    HL_AGREE(inv->ctx, *run->set.output && inv->ctx->rank == 0 ? hl_runlog_open(run, &log) : HALO_OK);
    if (log) (void)hl_run_observe(run, hl_runlog_event, log);
    (void)hl_run_observe(run, hl_progress_event, &progress);
    run->stop_requested = hl_signal_caught;
    run->stop_reached = hl_stop_reached;
    halo_status st = start_trace(inv);
    if (st == HALO_OK) st = hl_run_train(run);
    hl_runlog_close(log);
    return st;
}

static int report(hl_invocation *inv, const hl_run *run, halo_status st)
{
    hl_json j = {0};
    hl_json_object(&j, NULL);
    hl_json_string(&j, "status", st == HALO_OK ? "done" : "stopped");
    hl_json_int(&j, "steps", run->at.step);
    hl_json_int(&j, "epochs", run->at.epoch);
    hl_json_number(&j, "best_loss", run->at.best);
    hl_json_number(&j, "seconds", run->at.seconds);
    hl_json_string(&j, "output", run->set.output);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static int train(hl_invocation *inv)
{
    hl_settings set;
    hl_run *run;
    hl_catch_signals();
    halo_status st = hl_agree(inv->ctx, hl_settings_load(inv->ctx, inv->arg[0], inv->args - 1, inv->arg + 1, &set));
    bool there = st != HALO_OK || !*set.output || hl_file_exists(set.output);
    if (st == HALO_OK && set.stop_grace > 0) hl_stop_within(set.stop_grace);
    if (st == HALO_OK) st = hl_run_create(inv->ctx, &set, HL_NEED_TRAINING, splits_of(&set), &run);
    if (st != HALO_OK) return hl_exit_code(st);
    st = train_run(inv, run);
    if (st == HALO_ERR_IO && !there && inv->ctx->rank == 0 && !run->lost) hl_rundir_forget(set.output);
    if (run->lost) hl_exit_all(inv, st);
    if (hl_traced(inv->ctx)) {
        halo_status saved = hl_trace_save(inv->ctx, hl_option_text(inv, "trace"));
        if (st == HALO_OK) st = saved;
    }
    int rc = hl_exit_code(st);
    if (inv->json && (st == HALO_OK || st == HALO_ERR_STOPPED)) {
        int printed = report(inv, run, st);
        if (printed != HL_EXIT_OK) rc = printed;
    }
    hl_run_destroy(run);
    return rc;
}

const hl_command hl_command_train = {
    .name = "train",
    .synopsis = "CONFIG [key=value ...]",
    .summary = "train a network",
    .details = "CONFIG is a YAML file or the name of a zoo network; key=value overrides any key ('halo help config' lists them). With 'output: DIR' "
               "the run's configuration, log, checkpoints and summary go there; 'resume=auto' continues. SIGTERM, SIGINT or SIGUSR1 stop at the next "
               "step, with a checkpoint where there is an 'output', and exit code 3. Where no step ends within 'stop_grace' of a SIGTERM, the process "
               "ends without one.\n\n"
               "'mpiexec -n P halo train ...' and 'srun --mpi=pmix halo train ...' train the same network on P ranks with the same losses: 'batch' is what they "
               "take together in a step, and a signal to one of them stops all.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = train,
};
