/* SPDX-License-Identifier: Apache-2.0 */
/* halo bench */
#include "cli/commands.h"
#include "cli/ops_json.h"
#include "cli/progress.h"
#include "halo_build.h"
#include "perf/scaling.h"

static const hl_option options[] = {
    {.name = "steps", .letter = 'n', .type = HL_OPT_INT, .arg = "N", .help = "timed steps (default 5)", .low = 1, .high = 1000000000},
    {.name = "warmup", .letter = 'w', .type = HL_OPT_INT, .arg = "N", .help = "steps before them (default 2)", .high = 1000000000},
    {.name = "ranks", .type = HL_OPT_TEXT, .arg = "LIST", .help = "weak and strong scaling over these numbers of ranks, such as 1,2,4"},
    {.name = "quick", .help = "leave the machine's own limits out, which take some seconds to measure"},
    {.name = "trace", .type = HL_OPT_TEXT, .arg = "FILE", .help = "write what every thread of every rank did, for chrome://tracing or Perfetto"},
};

/* The time that this operation would need at the rate of sgemm or of the triad, whichever is longer, over the time it takes: a roofline of its own. */
static double of_limit(const hl_op_info *op, const hl_bench *b)
{
    return fmax(op->flops / (b->sgemm_gflops * 1e9), op->bytes / (b->stream_gbs * 1e9)) / op->seconds;
}

static void op_json(hl_json *j, const hl_op_info *op, const hl_bench *timed)
{
    hl_json_object(j, NULL);
    hl_json_string(j, "name", op->name);
    hl_json_string(j, "kind", op->kind);
    hl_json_string(j, "direction", op->direction);
    hl_json_string(j, "impl", op->impl);
    hl_json_number(j, "flops", op->flops);
    hl_json_number(j, "bytes", op->bytes);
    hl_json_number(j, "work_items", op->items);
    hl_json_number(j, "efficiency", op->efficiency);
    if (timed) {
        hl_json_number(j, "seconds", op->seconds);
        hl_json_number(j, "seconds_least", op->seconds_least);
        hl_json_number(j, "gflops", op->flops / op->seconds * 1e-9);
        hl_json_number(j, "gbs", op->bytes / op->seconds * 1e-9);
        hl_json_number(j, "fraction_of_sgemm", op->flops / op->seconds * 1e-9 / timed->sgemm_gflops);
        hl_json_number(j, "fraction_of_limit", of_limit(op, timed));
    }
    hl_json_end_object(j);
}

void hl_ops_json(const hl_program *program, const hl_bench *timed, hl_json *j)
{
    hl_program_info info;
    hl_program_info_get(program, &info);
    hl_json_array(j, "ops");
    for (int i = 0; i < info.ops; i++) {
        hl_op_info op;
        hl_program_op(program, i, &op);
        op_json(j, &op, timed);
    }
    hl_json_end_array(j);
}

/* Sums of the last step; start and end in seconds after its backward pass began. */
static void communication_json(const hl_run *run, const hl_bench *b, hl_json *j)
{
    hl_json_int(j, "ranks", run->ctx->ranks);
    hl_json_number(j, "samples_per_second", b->samples_per_second);
    hl_json_number(j, "comm_seconds", b->comm_seconds);
    hl_json_number(j, "comm_exposed_seconds", b->comm_exposed_seconds);
    hl_json_number(j, "io_exposed_seconds", 0); /* a bench reads nothing */
    hl_json_array(j, "groups");
    int n = run->reducer ? hl_reducer_groups(run->reducer) : 0;
    hl_group_times *times = n > 0 ? calloc((size_t)n, sizeof(*times)) : NULL;
    hl_reducer_stats stats;
    if (times) hl_reducer_stats_get(run->reducer, &stats, times);
    for (int g = 0; times && g < n; g++) {
        hl_json_object(j, NULL);
        hl_json_int(j, "bytes", times[g].bytes);
        hl_json_number(j, "start", times[g].start - stats.begin);
        hl_json_number(j, "end", times[g].end - stats.begin);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    free(times);
}

static int print_json(hl_invocation *inv, const hl_run *run, const hl_bench *b)
{
    hl_json j = {0};
    hl_json_object(&j, NULL);
    hl_json_string(&j, "network", run->net->name);
    hl_json_int(&j, "threads", run->ctx->threads);
    hl_json_number(&j, "step_seconds", b->step_seconds);
    hl_json_number(&j, "step_seconds_least", b->step_least);
    hl_json_number(&j, "gflops", b->gflops);
    hl_json_number(&j, "sgemm_gflops", b->sgemm_gflops);
    hl_json_number(&j, "stream_gbs", b->stream_gbs);
    hl_json_number(&j, "fraction_of_sgemm", b->fraction_of_sgemm);
    hl_json_int(&j, "peak_rss_bytes", (int64_t)b->peak_rss_bytes);
    if (b->device_bytes > 0) hl_json_int(&j, "device_bytes", (int64_t)b->device_bytes);
    hl_json_number(&j, "flops_step", b->flops_step);
    communication_json(run, b, &j);
    hl_ops_json(run->train, b, &j);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

/* A ratio that was not measured is a dash. */
static void cell(hl_str *t, int width, int digits, double x)
{
    if (isfinite(x)) hl_str_addf(t, " %*.*f", width, digits, x);
    else hl_str_addf(t, " %*s", width, "-");
}

static void op_row(hl_str *t, const hl_op_info *op, const hl_bench *b)
{
    double gflops = op->flops / op->seconds * 1e-9;
    hl_str_addf(t, "%-18s %-18s %-28s", op->name, op->kind, op->impl);
    cell(t, 9, 3, op->seconds * 1e3);
    cell(t, 9, 3, op->seconds_least * 1e3);
    cell(t, 7, 1, 100 * op->seconds / b->step_seconds);
    cell(t, 8, 1, gflops);
    cell(t, 8, 2, gflops / b->sgemm_gflops);
    cell(t, 8, 1, op->bytes / op->seconds * 1e-9);
    cell(t, 8, 2, of_limit(op, b));
    hl_str_add(t, "\n");
}

/* What takes more than 5 % of a step and runs below half of what the machine's limits allow it. */
static void slow_ops(hl_str *t, const hl_program *program, int ops, const hl_bench *b)
{
    int n = 0;
    for (int i = 0; i < ops; i++) {
        hl_op_info op;
        hl_program_op(program, i, &op);
        if (!(op.seconds > 0.05 * b->step_seconds) || !(of_limit(&op, b) < 0.5)) continue;
        hl_str_addf(t, "%s%s %s (%.1f %% of the step, %.2f of its limit)", n++ ? ", " : "slow     ", op.name, op.kind, 100 * op.seconds / b->step_seconds,
                    of_limit(&op, b));
    }
    if (isfinite(b->sgemm_gflops)) hl_str_add(t, n ? "\n" : "slow     no operation above 5 % of the step runs below half of its own limit\n");
}

static int print_text(hl_invocation *inv, const hl_run *run, const hl_bench *b)
{
    hl_str t = {0};
    hl_program_info info;
    char memory[32];
    hl_program_info_get(run->train, &info);
    hl_str_addf(&t, "%-18s %-18s %-28s %9s %9s %7s %8s %8s %8s %8s\n", "layer", "operation", "implementation", "ms", "least", "%", "GF/s", "of sgemm",
                "GB/s", "of limit");
    for (int i = 0; i < info.ops; i++) {
        hl_op_info op;
        hl_program_op(run->train, i, &op);
        op_row(&t, &op, b);
    }
    hl_bytes_text((double)b->peak_rss_bytes, memory, sizeof(memory));
    hl_str_addf(&t, "\nstep     %.2f ms (median), %.2f ms (least); %.1f GF, %.1f GF/s\n", b->step_seconds * 1e3, b->step_least * 1e3,
                b->flops_step * 1e-9, b->gflops);
    if (isfinite(b->sgemm_gflops))
        hl_str_addf(&t, "machine  sgemm %.1f GF/s, memory %.1f GB/s, %d threads: the step runs at %.2f of sgemm\n", b->sgemm_gflops,
                    b->stream_gbs, run->ctx->threads, b->fraction_of_sgemm);
    slow_ops(&t, run->train, info.ops, b);
    hl_str_addf(&t, "memory   %s resident at most", memory);
    hl_bytes_text((double)b->device_bytes, memory, sizeof(memory));
    if (b->device_bytes > 0) hl_str_addf(&t, ", %s of the device", memory);
    hl_str_add(&t, "\n");
    if (run->reducer)
        hl_str_addf(&t, "ranks    %d, %.2f samples/s; sums of gradients %.2f ms a step in %d group%s, %.2f ms exposed\n", run->ctx->ranks, b->samples_per_second,
                    b->comm_seconds * 1e3, hl_reducer_groups(run->reducer), HL_S(hl_reducer_groups(run->reducer)), b->comm_exposed_seconds * 1e3);
    return hl_print(inv, &t);
}

/* ---------------------------------------------------------------------------------------------------------- scaling */

/* "1,2,4": rising, from 1 to the number of ranks. */
static halo_status parse_ranks(halo_context *ctx, const char *text, int *ranks, int *n)
{
    *n = 0;
    for (const char *p = text; *n < HL_SCALING_MAX; p++) {
        char *end;
        long x = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || x < 1 || (*n > 0 && x <= ranks[*n - 1])) break;
        if (x > ctx->ranks) return hl_fail(ctx, HALO_ERR_USAGE, "'--ranks' has %ld, but only %d %s started", x, ctx->ranks, ctx->ranks == 1 ? "rank was" : "ranks were");
        ranks[(*n)++] = (int)x;
        if (!*end) return HALO_OK;
        p = end;
    }
    return hl_fail(ctx, HALO_ERR_USAGE, "'--ranks' must be rising numbers such as 1,2,4, not '%s'", text);
}

static void scaling_json(const char *name, const hl_scaling_row *row, int n, hl_json *j)
{
    hl_json_array(j, name);
    for (int i = 0; i < n; i++) {
        hl_json_object(j, NULL);
        hl_json_int(j, "ranks", row[i].ranks);
        hl_json_int(j, "batch", row[i].batch);
        hl_json_number(j, "step_seconds", row[i].step);
        hl_json_number(j, "predicted_seconds", row[i].predicted);
        hl_json_number(j, "samples_per_second", row[i].batch ? row[i].samples_per_second : NAN);
        hl_json_number(j, "efficiency", row[i].batch ? row[i].efficiency : NAN);
        hl_json_number(j, "comm_exposed_seconds", row[i].batch ? row[i].exposed : NAN);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

static void scaling_text(const char *name, const hl_scaling_row *row, int n, hl_str *t)
{
    hl_str_addf(t, "%-7s %6s %8s %12s %12s %12s %11s %12s\n", name, "ranks", "batch", "step ms", "predicted", "samples/s", "efficiency", "exposed ms");
    for (int i = 0; i < n; i++) {
        hl_str_addf(t, "%-7s %6d ", "", row[i].ranks);
        if (row[i].batch == 0) {
            hl_str_add(t, "fewer samples than ranks\n");
            continue;
        }
        hl_str_addf(t, "%8" PRId64, row[i].batch);
        cell(t, 12, 2, row[i].step * 1e3);
        cell(t, 12, 2, row[i].predicted * 1e3);
        cell(t, 12, 2, row[i].samples_per_second);
        cell(t, 11, 3, row[i].efficiency);
        cell(t, 12, 2, row[i].exposed * 1e3);
        hl_str_add(t, "\n");
    }
}

static int scale(hl_invocation *inv, const hl_settings *set, hl_bench_options o)
{
    int ranks[HL_SCALING_MAX], n;
    hl_scaling_row weak[HL_SCALING_MAX], strong[HL_SCALING_MAX];
    hl_json j = {0};
    hl_str t = {0};
    o.steps_only = true;
    halo_status st = parse_ranks(inv->ctx, hl_option_text(inv, "ranks"), ranks, &n);
    if (st == HALO_OK) st = hl_bench_scaling(inv->ctx, set, &o, ranks, n, weak, strong);
    if (st != HALO_OK) return hl_exit_code(st);
    if (!inv->json) {
        scaling_text("weak", weak, n, &t);
        hl_str_add(&t, "\n");
        scaling_text("strong", strong, n, &t);
        return hl_print(inv, &t);
    }
    hl_json_object(&j, NULL);
    scaling_json("weak", weak, n, &j);
    scaling_json("strong", strong, n, &j);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static int bench(hl_invocation *inv)
{
    hl_settings set;
    hl_run *run;
    hl_bench b;
#ifdef HAVE_FFTW
    if (strcmp(inv->arg[0], "synth") == 0) return hl_bench_synth(inv);
#endif
    hl_bench_options o = {.warmup = hl_given(inv, "warmup") ? (int)inv->number[1] : 2, .steps = hl_given(inv, "steps") ? (int)inv->number[0] : 5};
    if (o.steps < 1 || o.steps > 1000000 || o.warmup < 0 || o.warmup > 1000000) {
        (void)hl_fail(inv->ctx, HALO_ERR_USAGE, "'--steps' must be from 1 and '--warmup' from 0 to 1000000");
        return HL_EXIT_USAGE;
    }
    halo_status st = hl_agree(inv->ctx, hl_settings_load(inv->ctx, inv->arg[0], inv->args - 1, inv->arg + 1, &set));
    if (st != HALO_OK) return hl_exit_code(st);
    set.output[0] = '\0'; /* a bench leaves nothing behind */
    if (hl_given(inv, "ranks")) return scale(inv, &set, o);
    o.trace = hl_given(inv, "trace");
    o.steps_only = hl_given(inv, "quick");
    st = hl_run_create(inv->ctx, &set, HL_NEED_TRAINING, 0, &run);
    if (st != HALO_OK) return hl_exit_code(st);
    if (o.trace) st = hl_trace_try(inv->ctx, hl_option_text(inv, "trace"));
    if (st == HALO_OK) st = hl_bench_step(run, &o, &b);
    if (st == HALO_OK && o.trace) st = hl_trace_save(inv->ctx, hl_option_text(inv, "trace"));
    int rc = hl_exit_code(st);
    if (st == HALO_OK) rc = inv->json ? print_json(inv, run, &b) : print_text(inv, run, &b);
    hl_run_destroy(run);
    return rc;
}

const hl_command hl_command_bench = {
    .name = "bench",
    .synopsis = "CONFIG | synth [key=value ...]",
    .summary = "time a training step, op by op, beside the machine's limits",
    .details = "Runs training steps on generated input (no data is read) and prints time, GF/s and GB/s of every operation, and the step as a fraction "
               "of the sgemm rate measured in the same run with the same threads. Example: halo bench cosmoflow variant=mlperf batch=1\n\n"
               "'halo bench synth grid=64' times the making of a universe; its keys are those of 'halo synth keys'.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = bench,
};
