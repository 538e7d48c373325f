/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

void hl_duration(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds)) snprintf(out, size, "?");
    else if (seconds >= 3600) snprintf(out, size, "%.0fh %02.0fm", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60));
    else if (seconds >= 60) snprintf(out, size, "%.0fm %02.0fs", floor(seconds / 60), floor(fmod(seconds, 60)));
    else snprintf(out, size, "%.*fs", seconds < 10 ? 1 : 0, seconds);
}

void hl_bytes_text(double bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (bytes >= 1024 && i + 1 < HL_COUNT(units)) {
        bytes /= 1024;
        i++;
    }
    snprintf(out, size, "%.*f %s", i == 0 ? 0 : bytes < 10 ? 2 : bytes < 100 ? 1 : 0, bytes, units[i]);
}

void hl_count_text(int64_t n, char *out, size_t size)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%" PRId64, n);
    size_t k = 0;
    for (int i = 0; i < len && k + 2 < size; i++) {
        if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-') out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = '\0';
}

void hl_progress_init(hl_progress_line *p, const hl_run *run, bool quiet)
{
    const char *term = getenv("TERM");
    *p = (hl_progress_line){.run = run, .quiet = quiet, .terminal = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0)};
}

static void start(const hl_progress_line *p)
{
    halo_device_info device = {0};
    hl_program_info program;
    char count[32], memory[32];
    const hl_run *run = p->run;
    run->dev->ops->describe(run->dev, &device);
    hl_program_info_get(run->train, &program);
    hl_count_text(program.parameters, count, sizeof(count));
    hl_bytes_text((double)program.peak_bytes, memory, sizeof(memory));
    fprintf(stderr, "data      %s\n", run->source[HL_TRAIN]->info.description);
    if (run->source[HL_VALIDATION]) fprintf(stderr, "          %s (validation)\n", run->source[HL_VALIDATION]->info.description);
    fprintf(stderr, "network   %s, %s parameters, %.1f GF a step, %s\n", run->net->name, count,
            program.flops_step * (double)run->set.train.accumulate * 1e-9, memory);
    fprintf(stderr, "device    %s\n", device.name);
    fprintf(stderr, "training  batch %" PRId64 ", %" PRId64 " epoch%s, %s, seed %" PRId64 "%s%s\n", run->set.batch, run->set.train.epochs,
            HL_S(run->set.train.epochs),
            run->set.optimizer.name == HALO_SGD ? "sgd" : run->set.optimizer.name == HALO_NESTEROV ? "nesterov" :
            run->set.optimizer.name == HALO_ADAM ? "adam" : "adamw", run->set.seed, *run->set.output ? ", into " : "", run->set.output);
    if (run->at.step > 0) fprintf(stderr, "resumed   at step %" PRId64 ", epoch %" PRId64 "\n", run->at.step, run->at.epoch + 1);
}

static void step(hl_progress_line *p, const hl_event *e)
{
    char left[32];
    bool due = p->terminal ? hl_now() - p->last > 0.1 : e->step % p->run->set.train.log_every == 0;
    if (!due) return;
    p->last = hl_now();
    hl_duration(e->left, left, sizeof(left));
    fprintf(stderr, "%sepoch %" PRId64 "/%" PRId64 "  step %" PRId64 "  %3.0f %%  loss %.5f  lr %.2g  %.1f samples/s  %.0f GF/s  %s left%s",
            p->terminal ? "\r\033[K" : "", e->epoch, p->run->set.train.epochs, e->step, 100 * e->fraction, e->loss, e->lr,
            e->samples_per_second, e->gflops, left, p->terminal ? "" : "\n");
    fflush(stderr);
}

static void validation(const hl_progress_line *p, const hl_event *e)
{
    fprintf(stderr, "%sepoch %" PRId64 "  validation loss %.5f%s  %s", p->terminal ? "\r\033[K" : "", e->epoch, e->loss, e->best ? " (best)" : "",
            e->classes ? "dice" : "error/constant");
    for (int k = 1; k < e->classes; k++) fprintf(stderr, "  %s %.3f", e->of_class[k].name, e->of_class[k].global.dice);
    for (int i = 0; i < e->targets && !e->classes; i++)
        fprintf(stderr, "  %s %.2f", e->target[i].name, e->group_score[i].error / e->group_score[i].constant_error);
    fprintf(stderr, "\n");
}

/* What ranks read from files; nothing of synthetic data. */
static void read_bytes(const hl_run *run)
{
    double sum = 0, most = 0;
    char all[32], one[32];
    for (int r = 0; run->counted && r < run->ctx->ranks; r++) {
        sum += run->counted[r].read;
        most = fmax(most, run->counted[r].read);
    }
    if (!(sum > 0)) return;
    hl_bytes_text(sum, all, sizeof(all));
    hl_bytes_text(most, one, sizeof(one));
    fprintf(stderr, "read      %s from files", all);
    if (run->ctx->ranks > 1) fprintf(stderr, ", a rank at most %s", one);
    fprintf(stderr, "\n");
}

/* Margins between ranks that hold samples together. */
static void sent_bytes(const hl_run *run)
{
    double most = 0, exposed = 0;
    char text[32];
    if (!run->counted || !hl_grid_split(&run->grid)) return;
    for (int r = 0; r < run->ctx->ranks; r++) {
        const hl_traffic *t = &run->counted[r].sent;
        double parts = (double)hl_run_parts(run);
        most = fmax(most, (double)(t->halo_bytes[0] + t->halo_bytes[1]) * parts);
        exposed = fmax(exposed, t->exposed * parts / (double)hl_max64(1, t->runs));
    }
    hl_bytes_text(most, text, sizeof(text));
    fprintf(stderr, "sent      %s of margins in a step, by the rank that sent most; a rank waited at most %.2g ms a step for those of others\n", text, exposed * 1e3);
}

void hl_progress_event(void *user, const hl_event *e)
{
    hl_progress_line *p = user;
    char spent[32];
    if (p->quiet) return;
    switch (e->kind) {
    case HL_EVENT_START: start(p); break;
    case HL_EVENT_STEP: step(p, e); break;
    case HL_EVENT_EPOCH:
        if (!p->run->source[HL_VALIDATION])
            fprintf(stderr, "%sepoch %" PRId64 "  loss %.5f  %.1f samples/s  %.0f GF/s\n", p->terminal ? "\r\033[K" : "", e->epoch, e->loss,
                    e->samples_per_second, e->gflops);
        break;
    case HL_EVENT_VALIDATION: validation(p, e); break;
    case HL_EVENT_CHECKPOINT: break;
    case HL_EVENT_STOP:
        hl_duration(e->elapsed, spent, sizeof(spent));
        if (strcmp(e->status, "failed") != 0)
            fprintf(stderr, "%s%s after %s at step %" PRId64 " (%s)\n", p->terminal ? "\r\033[K" : "", e->status, spent, e->step, e->reason);
        read_bytes(p->run);
        sent_bytes(p->run);
        break;
    }
}

/* A dash where there is no such number, as of targets that do not vary. */
static void number(hl_str *out, int width, int digits, double x)
{
    if (isfinite(x)) hl_str_addf(out, "%*.*f", width, digits, x);
    else hl_str_addf(out, "%*s", width, "-");
}

static void overlap(hl_str *out, const hl_overlap *o)
{
    number(out, 9, 3, o->dice);
    number(out, 8, 3, o->iou);
    if (isfinite(o->volume_error)) hl_str_addf(out, "%+8.1f %%", 100 * o->volume_error);
    else hl_str_addf(out, "%10s", "-");
}

void hl_class_table(int classes, const hl_class_score *s, int64_t cases, hl_str *out)
{
    hl_str_addf(out, "\n  %-16s %8s %7s %9s", "class", "dice", "iou", "volume");
    if (cases > 0) hl_str_addf(out, "   per case: %8s %7s %9s %8s", "dice", "iou", "volume", "cases");
    hl_str_add(out, "\n");
    for (int k = 0; k < classes; k++) {
        hl_str_addf(out, "  %-16s", s[k].name);
        overlap(out, &s[k].global);
        if (cases > 0) {
            hl_str_addf(out, "%12s", "");
            overlap(out, &s[k].per_case);
            hl_str_addf(out, "%9" PRId64, s[k].cases);
        }
        hl_str_add(out, "\n");
    }
    hl_str_addf(out, "  %-16s", "mean of 1 on");
    number(out, 9, 3, hl_foreground_dice(s, classes, false));
    if (cases > 0) number(out, 39, 3, hl_foreground_dice(s, classes, true));
    hl_str_add(out, "\n");
}

void hl_confusion_table(const hl_evaluation *e, hl_str *out)
{
    if (e->classes > 8) return; /* --json has it */
    hl_str_addf(out, "\n  %-16s", "true \\ found");
    for (int p = 0; p < e->classes; p++) hl_str_addf(out, " %12.12s", e->of_class[p].name);
    hl_str_add(out, "\n");
    for (int t = 0; t < e->classes; t++) {
        hl_str_addf(out, "  %-16s", e->of_class[t].name);
        for (int p = 0; p < e->classes; p++) hl_str_addf(out, " %12.0f", hl_class_metrics_confused(e->counted, t, p));
        hl_str_add(out, "\n");
    }
}

void hl_score_table(int targets, const hl_target *target, const hl_score *score, const double *baseline, const char *caption, hl_str *out)
{
    hl_str_addf(out, "%s\n  %-12s %12s", caption, "parameter", "network");
    if (baseline) hl_str_addf(out, " %12s", "baseline");
    hl_str_addf(out, " %12s %8s %12s\n", "constant", "ratio", "correlation");
    for (int i = 0; i < targets; i++) {
        hl_str_addf(out, "  %-12s %12.5g", target[i].name, score[i].error);
        if (baseline) hl_str_addf(out, " %12.5g", baseline[i]);
        hl_str_addf(out, " %12.5g", score[i].constant_error);
        number(out, 9, 2, score[i].error / score[i].constant_error);
        number(out, 13, 3, score[i].correlation);
        hl_str_addf(out, "%s\n", hl_unconstrained(&score[i]) ? "  not constrained" : "");
    }
}
