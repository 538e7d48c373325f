/* SPDX-License-Identifier: Apache-2.0 */
/* halo predict */
#include "cli/commands.h"
#include "cli/restore.h"
#include "base/file.h"

static const hl_option options[] = {
    HL_RESTORE_OPTIONS,
    {.name = "out", .letter = 'o', .type = HL_OPT_TEXT, .arg = "FILE", .help = "where to write; default: predictions.csv in the run directory or here"},
};

typedef struct csv { hl_str text; } csv;

/* RFC 4180: quoted, quotes doubled. */
static void quoted(csv *c, const char *text, const char *tail)
{
    hl_str_add(&c->text, "\"");
    for (; *text; text++) hl_str_addn(&c->text, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    hl_str_addf(&c->text, "%s\"", tail);
}

static void header(csv *c, const hl_source *source)
{
    hl_str_add(&c->text, "id,group");
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < source->info.targets; i++) {
            hl_str_add(&c->text, ",");
            quoted(c, source->info.target[i].name, part ? "_predicted" : "");
        }
    hl_str_add(&c->text, "\n");
}

static halo_status row(void *user, hl_source *source, int64_t sample, const float *truth, const float *prediction)
{
    csv *c = user;
    char id[512];
    source->ops->id_of(source, sample, id, sizeof(id));
    quoted(c, id, "");
    hl_str_addf(&c->text, ",%" PRId64, source->ops->group_of(source, sample));
    for (int i = 0; i < source->info.targets; i++) hl_str_addf(&c->text, ",%.8g", hl_physical(&source->info.target[i], (double)truth[i]));
    for (int i = 0; i < source->info.targets; i++) hl_str_addf(&c->text, ",%.8g", hl_physical(&source->info.target[i], (double)prediction[i]));
    hl_str_add(&c->text, "\n");
    return c->text.failed ? hl_fail(source->ctx, HALO_ERR_NOMEM, "out of memory: predictions") : HALO_OK;
}

static halo_status out_path(hl_invocation *inv, const hl_run *run, char **path)
{
    const char *given = hl_option_text(inv, "out");
    if (given) return hl_strdup(inv->ctx, given, path);
    return *run->set.output ? hl_path_join(inv->ctx, run->set.output, "predictions.csv", path) : hl_strdup(inv->ctx, "predictions.csv", path);
}

static halo_status predict_run(hl_invocation *inv, hl_run *run, hl_split split)
{
    csv c = {{0}};
    char *path = NULL;
    hl_evaluation e = {0};
    halo_status st;
    header(&c, run->source[split]);
    HL_GOTO(st, hl_run_evaluate(run, split, row, &c, &e), free_text);
    HL_GOTO(st, hl_agree(inv->ctx, out_path(inv, run, &path)), free_text);
    HL_GOTO(st, hl_agree(inv->ctx, inv->ctx->rank == 0 ? hl_file_write(inv->ctx, path, c.text.s, c.text.len) : HALO_OK), free_path);
    HL_INFO(inv->ctx, "%" PRId64 " predictions written to '%s'", e.items, path);
    if (inv->json) {
        hl_json j = {0};
        hl_json_object(&j, NULL);
        hl_json_string(&j, "path", path);
        hl_json_int(&j, "samples", e.items);
        hl_json_end_object(&j);
        if (hl_print_json(inv, &j) != HL_EXIT_OK) st = HALO_ERR_IO;
    }
free_path:
    free(path);
free_text:
    hl_evaluation_free(&e);
    hl_str_free(&c.text);
    return st;
}

static int predict(hl_invocation *inv)
{
    hl_run *run;
    hl_split split;
    halo_status st = hl_restore(inv, &split, &run);
    if (st != HALO_OK) return hl_exit_code(st);
    st = predict_run(inv, run, split);
    hl_run_destroy(run);
    return hl_exit_code(st);
}

const hl_command hl_command_predict = {
    .name = "predict",
    .synopsis = "CONFIG | RUN | CHECKPOINT [key=value ...]",
    .summary = "write a trained network's predictions",
    .details = "Writes predictions.csv: sample id, group (universe), true targets and predicted ones, in physical units.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = predict,
};
