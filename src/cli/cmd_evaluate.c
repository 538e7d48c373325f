/* SPDX-License-Identifier: Apache-2.0 */
/* halo evaluate */
#include "cli/commands.h"
#include "cli/evaluate_by.h"
#include "cli/progress.h"
#include "cli/restore.h"

#include <stdio.h>

#ifdef HAVE_FFTW
#include "synth/baseline.h"
#endif

static const hl_option options[] = {
    HL_RESTORE_OPTIONS,
    {.name = "by", .type = HL_OPT_TEXT, .arg = "NAME", .help = "a table, too, by a number that samples have: a dataset beside x and y, such as dose"},
    {.name = "baseline", .letter = 'b', .help = "beside it: ridge regression on power spectrum, variance and skewness of the same data"},
};

/* The errors of the baseline, [targets], where --baseline asks for it, else NULL; freed by the caller. Not collective: only the rank that prints has use
 * for it. */
static halo_status fit_baseline(hl_invocation *inv, const hl_run *run, hl_split split, const hl_evaluation *e, double **error)
{
    *error = NULL;
    if (!hl_given(inv, "baseline")) return HALO_OK;
#ifdef HAVE_FFTW
    const hl_settings *set = &run->set;
    hl_baseline_data data = {.part = {set->data.train, set->data.validation, set->data.test}};
    for (int d = 0; d < 3; d++) data.crop[d] = set->data.crop[d] > 0 ? set->data.crop[d] : 0;
    if (split != HL_TEST || !*set->data.train || !*set->data.validation || !*set->data.test)
        return hl_fail(inv->ctx, HALO_ERR_USAGE, "'--baseline' compares on the test split, and needs data.train, data.validation and data.test");
    if (inv->ctx->rank != 0) return HALO_OK;
    hl_baseline *b;
    HL_TRY(hl_calloc(inv->ctx, 1, sizeof(*b), "a baseline", &b));
    halo_status st = hl_baseline_fit(inv->ctx, &data, b);
    if (st == HALO_OK) st = hl_calloc(inv->ctx, (size_t)e->targets, sizeof(**error), "a baseline", error);
    for (int t = 0; st == HALO_OK && t < e->targets; t++) (*error)[t] = b->target[t].error;
    free(b);
    return st;
#else
    (void)run, (void)split, (void)e;
    return hl_fail(inv->ctx, HALO_ERR_USAGE, "'--baseline' needs a build with FFTW");
#endif
}

static void json_baseline(hl_json *j, const hl_evaluation *e, const double *error)
{
    hl_json_array(j, "baseline");
    for (int t = 0; t < e->targets; t++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", e->target[t].name);
        hl_json_number(j, "error", error[t]);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

static int print(hl_invocation *inv, hl_split split, const hl_evaluation *e, const double *baseline, const hl_by *by)
{
    static const char *const names[] = {"training", "validation", "test"};
    hl_str text = {0};
    char caption[128];
    if (inv->json) {
        hl_json j = {0};
        hl_json_object(&j, NULL);
        hl_json_string(&j, "split", names[split]);
        hl_evaluation_json(e, &j);
        hl_cases_json(e, &j);
        if (baseline) json_baseline(&j, e, baseline);
        if (by) hl_by_json(by, e, &j);
        hl_json_end_object(&j);
        return hl_print_json(inv, &j);
    }
    hl_str_addf(&text, "loss %.6g\n\n", e->loss);
    snprintf(caption, sizeof(caption), "%s over %s%" PRId64 " %s sample%s", e->classes ? "share of wrong classes" : "mean absolute error",
             e->voxels > 1 ? "the voxels of " : "", e->items, names[split],
             HL_S(e->items));
    hl_score_table(e->targets, e->target, e->score, baseline, caption, &text);
    if (e->classes) hl_class_table(e->classes, e->of_class, e->cases, &text);
    if (e->classes) hl_confusion_table(e, &text);
    if (e->groups != e->items) {
        snprintf(caption, sizeof(caption), "\naveraged per universe (%" PRId64 ")", e->groups);
        hl_score_table(e->targets, e->target, e->group_score, NULL, caption, &text);
    }
    if (by) hl_by_table(by, e, &text);
    return hl_print(inv, &text);
}

static int evaluate(hl_invocation *inv)
{
    hl_run *run;
    hl_split split;
    hl_evaluation e;
    halo_status st = hl_restore(inv, false, &split, &run);
    if (st != HALO_OK) return hl_exit_code(st);
    hl_by *by = NULL;
    if (hl_given(inv, "by")) st = hl_agree(inv->ctx, hl_by_open(inv->ctx, run->source[split], hl_option_text(inv, "by"), &by));
    if (st == HALO_OK) st = hl_run_evaluate(run, split, hl_by_parts(by), NULL, NULL, &e);
    int rc = hl_exit_code(st);
    if (st == HALO_OK) {
        double *baseline;
        st = fit_baseline(inv, run, split, &e, &baseline);
        rc = st == HALO_OK ? print(inv, split, &e, baseline, by) : hl_exit_code(st);
        free(baseline);
        hl_evaluation_free(&e);
    }
    hl_by_close(by);
    hl_run_destroy(run);
    return rc;
}

const hl_command hl_command_evaluate = {
    .name = "evaluate",
    .synopsis = "CONFIG | RUN | CHECKPOINT [key=value ...]",
    .summary = "measure a trained network on held-out data",
    .details = "Prints each target's mean absolute error in physical units beside that of the best constant predictor, and the correlation, per "
               "sample and averaged per universe; of class numbers the share of wrong ones, the confusion matrix (of more than 8 classes with --json alone), and each class's Dice coefficient, intersection over union and relative error of its volume, over all voxels and as means over "
               "cases (volumes); with --json of each case, too. CONFIG is what the network was trained with, RUN its output directory, CHECKPOINT a file.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = evaluate,
};
