/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c -- how the work of a training step is dealt to many threads, from the plans alone: no operation that matters may leave threads without work.
 *
 * What matters is a matter of time, here that of a roofline at BALANCE flops a byte, as processors with 64 cores have it; an operation that only some of
 * the threads can work on takes longer by as much.
 */
#include "tests/check.h"
#include "tests/tap.h"
#include "train/run.h"

enum { BALANCE = 20 };

static const double LARGE = 0.05, GOOD = 0.8;

static double work_of(const hl_op_info *op) { return fmax(op->flops / BALANCE, op->bytes); }

/* Sum of work, and of work as stretched by idle threads. */
static void sum_up(const hl_program *program, int ops, double *work, double *stretched)
{
    *work = *stretched = 0;
    for (int i = 0; i < ops; i++) {
        hl_op_info op;
        hl_program_op(program, i, &op);
        *work += work_of(&op);
        *stretched += work_of(&op) / op.efficiency;
    }
}

static void check_program(const char *name, const hl_program *program, int threads)
{
    hl_program_info info;
    double work, stretched;
    int low = 0, impossible = 0;
    hl_program_info_get(program, &info);
    sum_up(program, info.ops, &work, &stretched);
    for (int i = 0; i < info.ops; i++) {
        hl_op_info op;
        hl_program_op(program, i, &op);
        if (!(op.efficiency > 0 && op.efficiency <= 1 + 1e-9 && op.items >= 1)) impossible++;
        if (op.efficiency >= GOOD || work_of(&op) / op.efficiency < LARGE * stretched) continue;
        low++;
        tap_note("%s: %s %s %s: %.1f %% of the step, %.0f items, efficiency %.2f", name, op.name, op.kind, op.impl,
                 100 * work_of(&op) / op.efficiency / stretched, op.items, op.efficiency);
    }
    tap_ok(impossible == 0 && info.ops > 10, "%s, %d threads: every operation has items, and an efficiency in (0, 1]", name, threads);
    tap_ok(low == 0, "%s, %d threads: no operation above 5 %% of the step can use less than 0.8 of them", name, threads);
    tap_ok(work / stretched >= GOOD, "%s, %d threads: the step as a whole can use %.2f of them", name, threads, work / stretched);
}

static void check_network(const char *variant, int threads)
{
    char words[4][32];
    char *args[4] = {words[0], words[1], words[2], words[3]};
    halo_context *ctx;
    hl_settings set;
    hl_run *run;
    snprintf(words[0], sizeof(words[0]), "variant=%s", variant);
    snprintf(words[1], sizeof(words[1]), "size=128");
    snprintf(words[2], sizeof(words[2]), "batch=1");
    snprintf(words[3], sizeof(words[3]), "threads=%d", threads);
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_settings_load(ctx, "cosmoflow", 4, args, &set), variant);
    set.plan = HL_SET_PLAN_FIXED;
    set.output[0] = '\0';
    check_status(ctx, hl_run_explain(ctx, &set, "fit", &run), variant);
    check_program(variant, run->train, threads);
    hl_run_destroy(run);
    halo_context_destroy(ctx);
}

int main(void)
{
    static const char *const variants[] = {"mlperf", "sc18", "hybrid"};
    static const int threads[] = {1, 2, 64};
    for (size_t i = 0; i < HL_COUNT(variants); i++)
        for (size_t k = 0; k < HL_COUNT(threads); k++) check_network(variants[i], threads[k]);
    return tap_done();
}
