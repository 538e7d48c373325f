/* SPDX-License-Identifier: Apache-2.0 */
/* halo explain */
#include "cli/commands.h"
#include "cli/ops_json.h"
#include "train/run.h"

enum { YAML, AFTER, MEASURE, MEMORY };
static const hl_option options[] = {
    [YAML] = {.name = "yaml", .help = "print the network as a network file and stop"},
    [AFTER] = {.name = "after", .letter = 'a', .type = HL_OPT_TEXT, .arg = "PASS", .help = "print the program as it is after this pass (shape ... bind)"},
    [MEMORY] = {.name = "memory", .help = "print the memory plan instead: what is live at each step, and what limits would cost"},
    [MEASURE] = {.name = "measure", .help = "time the implementations as training does; default: the fixed order"},
};

static int print_yaml(hl_invocation *inv, const hl_settings *set)
{
    const int64_t unknown[4] = {0, 0, 0, 0};
    struct halo_network *net;
    char *text;
    halo_status st = hl_run_network(inv->ctx, set, unknown, 0, &net);
    if (st != HALO_OK) return hl_exit_code(st);
    st = halo_network_text(net, &text);
    halo_network_destroy(net);
    if (st != HALO_OK) return hl_exit_code(st);
    hl_str out = {0};
    hl_str_add(&out, text);
    free(text);
    return hl_print(inv, &out);
}

/* Of the rank that has most of each; with `group`, of all that hold a sample together. */
static void add_figures(hl_json *j, const hl_figures *f)
{
    hl_json_int(j, "ranks", f->ranks);
    hl_json_int(j, "peak_bytes_rank", (int64_t)f->peak_bytes_rank);
    hl_json_int(j, "halo_bytes_forward", f->halo_bytes[0]);
    hl_json_int(j, "halo_bytes_backward", f->halo_bytes[1]);
    hl_json_int(j, "halo_bytes_forward_group", f->halo_bytes_group[0]);
    hl_json_int(j, "halo_bytes_backward_group", f->halo_bytes_group[1]);
    hl_json_int(j, "halo_messages", f->halo_messages);
    hl_json_int(j, "gather_bytes", f->gather_bytes);
    hl_json_int(j, "reduce_bytes", f->reduce_bytes);
    hl_json_int(j, "read_bytes_sample", f->read_bytes_sample);
}

static void add_memory(hl_json *j, const hl_program *p)
{
    hl_json_array(j, "memory_plan");
    for (int i = 0; i < hl_program_steps(p); i++) {
        hl_op_info op;
        hl_program_op(p, i, &op);
        hl_json_object(j, NULL);
        hl_json_int(j, "step", i);
        hl_json_string(j, "layer", op.name);
        hl_json_string(j, "op", op.kind);
        hl_json_int(j, "live_bytes", (int64_t)hl_program_live(p, i));
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

static int print_json(hl_invocation *inv, hl_run *run, const hl_figures *figures)
{
    hl_program_info info;
    hl_json j = {0};
    hl_program_info_get(run->train, &info);
    hl_json_object(&j, NULL);
    hl_json_string(&j, "network", run->net->name);
    hl_json_string(&j, "layout", hl_layout_name(info.layout));
    hl_json_int(&j, "parameters", info.parameters);
    hl_json_number(&j, "flops_forward", info.flops_forward);
    hl_json_number(&j, "flops_step", info.flops_step);
    hl_json_int(&j, "peak_bytes", (int64_t)info.peak_bytes);
    hl_json_int(&j, "weight_bytes", (int64_t)info.weight_bytes);
    hl_json_int(&j, "state_bytes", (int64_t)info.state_bytes);
    hl_json_int(&j, "activation_bytes", (int64_t)info.activation_bytes);
    hl_json_int(&j, "scratch_bytes", (int64_t)info.scratch_bytes);
    hl_json_int(&j, "record_bytes", (int64_t)info.record_bytes);
    hl_json_int(&j, "slabs", info.slabs);
    if (info.slabs > 0) {
        hl_json_int(&j, "stored_peak_bytes", (int64_t)info.plain_bytes);
        hl_json_number(&j, "stored_flops_step", info.plain_flops);
    }
    add_figures(&j, figures);
    hl_json_int(&j, "loader_bytes", hl_run_loader_bytes(run));
    hl_json_int(&j, "reorders", info.reorders);
    hl_json_int(&j, "references", info.references);
    hl_json_int(&j, "concat_joined", info.joined);
    hl_json_int(&j, "concat_copied", info.copied);
    if (inv->given[MEMORY]) add_memory(&j, run->train);
    hl_ops_json(run->train, NULL, &j);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static void print_figures(const hl_figures *f, hl_str *text)
{
    const double mib = 1048576.0;
    hl_str_addf(text,
                "\n%" PRId64 " ranks, the most of any: %.1f MiB of memory, with messages and samples read ahead; %.3f MiB of margins sent forward, %.3f backward, in %" PRId64 " messages;\n"
                "%.3f MiB of blocks sent to the whole group; %.3f MiB of gradients summed; %.3f MiB read of each sample\n"
                "all ranks of a group together: %.3f MiB of margins forward, %.3f backward\n",
                f->ranks, (double)f->peak_bytes_rank / mib, (double)f->halo_bytes[0] / mib, (double)f->halo_bytes[1] / mib, f->halo_messages, (double)f->gather_bytes / mib,
                (double)f->reduce_bytes / mib, (double)f->read_bytes_sample / mib, (double)f->halo_bytes_group[0] / mib, (double)f->halo_bytes_group[1] / mib);
}

/* What a limit costs: values are made anew instead of stored, which takes operations. Sixteenths of what the program needs without one. */
static halo_status print_limits(hl_run *run, hl_str *text)
{
    const size_t own = run->program_limit[0];
    const double mib = 1048576;
    hl_program_info plain, i;
    hl_program *p;
    run->program_limit[0] = 0;
    run->only_ask = true;
    halo_status st = hl_run_outline(run, &p);
    if (st != HALO_OK) return st;
    hl_program_info_get(p, &plain);
    hl_program_destroy(p);
    hl_str_addf(text, "\nwithout a limit: %.1f MiB, %.3f Gflop a step. Within so many MiB for weights, values and workspace (a run's 'memory.limit' is for\n"
                "I/O, messages and the process as well: 'halo train --check' says what these need):\n%12s %12s %7s %12s\n",
                (double)plain.peak_bytes / mib, plain.flops_step * 1e-9, "MiB", "needs", "slabs", "operations");
    for (int share = 15; share > 3 && st == HALO_OK; share -= share > 12 ? 1 : 2) {
        run->program_limit[0] = plain.peak_bytes / 16 * (size_t)share;
        st = hl_run_outline(run, &p);
        if (st != HALO_OK) break;
        hl_program_info_get(p, &i);
        hl_str_addf(text, "%12.1f %12.1f %7d %+11.1f%%\n", (double)run->program_limit[0] / mib, (double)i.peak_bytes / mib, i.slabs, 100 * (i.flops_step / plain.flops_step - 1));
        hl_program_destroy(p);
    }
    if (st == HALO_ERR_NOMEM) hl_str_addf(text, "%12.1f is not enough: %.1f is the least\n", (double)run->program_limit[0] / mib, (double)run->least / mib);
    run->program_limit[0] = own;
    run->only_ask = false;
    return st == HALO_ERR_NOMEM ? HALO_OK : st;
}

static halo_status memory_text(hl_run *run, hl_str *text)
{
    halo_status st = hl_program_print_memory(run->train, text);
    return st == HALO_OK ? print_limits(run, text) : st;
}

static int explain(hl_invocation *inv)
{
    hl_settings set;
    hl_run *run;
    halo_status st = hl_settings_load(inv->ctx, inv->arg[0], inv->args - 1, inv->arg + 1, &set);
    if (st != HALO_OK) return hl_exit_code(st);
    if (inv->given[YAML]) return print_yaml(inv, &set);
    set.plan = inv->given[MEASURE] ? HL_SET_PLAN_MEASURE : HL_SET_PLAN_FIXED;
    set.output[0] = '\0';
    st = hl_run_explain(inv->ctx, &set, inv->text[AFTER] ? inv->text[AFTER] : "fit", &run); /* nothing of its size is allocated */
    if (st != HALO_OK) return hl_exit_code(st);
    int rc;
    hl_figures figures = {.ranks = 1};
    if (!inv->text[AFTER]) st = hl_run_figures(run, &figures);
    if (st != HALO_OK) rc = hl_exit_code(st);
    else if (inv->json) rc = print_json(inv, run, &figures);
    else {
        hl_str text = {0};
        st = inv->given[MEMORY] ? memory_text(run, &text) : hl_program_print(run->train, &text);
        if (figures.ranks > 1) print_figures(&figures, &text);
        rc = st == HALO_OK ? hl_print(inv, &text) : hl_exit_code(st);
    }
    hl_run_destroy(run);
    return rc;
}

const hl_command hl_command_explain = {
    .name = "explain",
    .synopsis = "CONFIG [key=value ...]",
    .summary = "show the program that a network becomes",
    .details = "Compiles the training step and prints its values and operations in order: layer, operation, implementation, shapes, flops, bytes; then "
               "parameters, memory by kind and the number of activation reorders. --memory shows what of it is live when, and what a 'memory.limit' costs. Nothing is trained; of data that there are only shapes are looked at, where neither 'size' nor 'channels' is set.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .run = explain,
};
