/* SPDX-License-Identifier: Apache-2.0 */
/* halo train */
#include "cli/check_report.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/trace.h"
#include "comm/comm.h"

static const hl_option options[] = {
    {.name = "check", .help = "do all but train: open the data, compile, time two steps, and say what time and memory the run would take; nothing is written"},
    {.name = "trace", .type = HL_OPT_TEXT, .arg = "FILE", .help = "write what every thread of every rank did, for chrome://tracing or Perfetto"},
};

static unsigned splits_of(const hl_settings *set)
{
    bool validates = set->data.synthetic || *set->data.validation || set->data.split.n > 0 || set->data.folds.count > 0;
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

/* What does not fit is told with all that is known of it, and is then an error of the configuration. */
static int report_check(hl_invocation *inv, const hl_run *run, const hl_check *c)
{
    int rc;
    if (inv->json) {
        hl_json j = {0};
        hl_check_json(run, c, &j);
        rc = hl_print_json(inv, &j);
    } else {
        hl_str text = {0};
        hl_check_text(run, c, &text);
        rc = hl_print(inv, &text);
    }
    if (rc != HL_EXIT_OK || c->memory.fits) return rc;
    return hl_exit_code(hl_fail(inv->ctx, HALO_ERR_USAGE, "not enough memory on '%s'; what would help: %s", c->memory.host, c->memory.help));
}

static int check(hl_invocation *inv, hl_settings *set)
{
    const double began = hl_now();
    hl_run *run;
    hl_check c;
    set->check = true;
    halo_status st = hl_run_create(inv->ctx, set, HL_NEED_TRAINING, splits_of(set), &run);
    if (st != HALO_OK) return st == HALO_ERR_NOMEM ? HL_EXIT_USAGE : hl_exit_code(st);
    run->stop_requested = hl_signal_caught;
    st = hl_run_check(run, began, &c);
    if (run->lost) hl_exit_all(inv, st);
    int rc = st == HALO_OK ? report_check(inv, run, &c) : hl_exit_code(st);
    hl_run_destroy(run);
    return rc;
}

static int train(hl_invocation *inv)
{
    hl_settings set;
    hl_run *run;
    hl_catch_signals();
    halo_status st = hl_agree(inv->ctx, hl_settings_load(inv->ctx, inv->arg[0], inv->args - 1, inv->arg + 1, &set));
    bool there = st != HALO_OK || !*set.output || hl_file_exists(set.output);
    if (st == HALO_OK && hl_given(inv, "check")) return check(inv, &set);
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
               "take together in a step, and a signal to one of them stops all.\n\n"
               "Where the ranks of a node need more memory than there is, or than a control group or Slurm allows, the run is refused before its first step "
               "('memory.check=false' tries all the same). --check tells that and more without training; exit code 2 where something does not fit.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = train,
};
