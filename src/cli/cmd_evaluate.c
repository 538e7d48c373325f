/* SPDX-License-Identifier: Apache-2.0 */
/* halo evaluate */
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/restore.h"

#include <stdio.h>

static const hl_option options[] = {HL_RESTORE_OPTIONS};

static int print(hl_invocation *inv, hl_split split, const hl_evaluation *e)
{
    static const char *const names[] = {"training", "validation", "test"};
    hl_str text = {0};
    char caption[128];
    if (inv->json) {
        hl_json j = {0};
        hl_json_object(&j, NULL);
        hl_json_string(&j, "split", names[split]);
        hl_evaluation_json(e, &j);
        hl_json_end_object(&j);
        return hl_print_json(inv, &j);
    }
    hl_str_addf(&text, "loss %.6g\n\n", e->loss);
    snprintf(caption, sizeof(caption), "mean absolute error over %s%" PRId64 " %s sample%s", e->voxels > 1 ? "the voxels of " : "", e->items, names[split],
             e->items == 1 ? "" : "s");
    hl_score_table(e->targets, e->target, e->score, caption, &text);
    if (e->groups != e->items) {
        snprintf(caption, sizeof(caption), "\naveraged per universe (%" PRId64 ")", e->groups);
        hl_score_table(e->targets, e->target, e->group_score, caption, &text);
    }
    return hl_print(inv, &text);
}

static int evaluate(hl_invocation *inv)
{
    hl_run *run;
    hl_split split;
    hl_evaluation e;
    halo_status st = hl_restore(inv, &split, &run);
    if (st != HALO_OK) return hl_exit_code(st);
    st = hl_run_evaluate(run, split, NULL, NULL, &e);
    int rc = hl_exit_code(st);
    if (st == HALO_OK) {
        rc = print(inv, split, &e);
        hl_evaluation_free(&e);
    }
    hl_run_destroy(run);
    return rc;
}

const hl_command hl_command_evaluate = {
    .name = "evaluate",
    .synopsis = "CONFIG | RUN | CHECKPOINT [key=value ...]",
    .summary = "measure a trained network on held-out data",
    .details = "Prints each target's mean absolute error in physical units beside that of the best constant predictor, and the correlation, per "
               "sample and averaged per universe. CONFIG is what the network was trained with, RUN its output directory, CHECKPOINT a file.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = evaluate,
};
