/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_report.h"
#include "cli/progress.h"

static void add_row(hl_str *out, const char *name, size_t bytes, size_t total)
{
    char text[32];
    hl_bytes_text((double)bytes, text, sizeof(text));
    hl_str_addf(out, "    %-12s %10s  %3.0f %%\n", name, text, 100 * (double)bytes / (double)total);
}

static void add_memory(const hl_run *run, const hl_check *c, hl_str *out)
{
    const hl_forecast *m = &c->memory;
    const size_t total = hl_memory_total(&m->rank);
    char node[32], bound[32], most[32];
    hl_bytes_text((double)total, most, sizeof(most));
    hl_bytes_text((double)m->node, node, sizeof(node));
    hl_bytes_text((double)m->bound.bytes, bound, sizeof(bound));
    hl_str_addf(out, "memory    %s%s\n", most, run->ctx->ranks > 1 ? " on the rank that needs most" : "");
    for (int k = 0; k < HL_MEMORY_KINDS; k++) add_row(out, hl_memory_kind_name[k], m->rank.kind[k], total);
    hl_str_addf(out, "          %s for %d rank%s on '%s', which has %s (%s): %s\n", node, m->locals, HL_S(m->locals), m->host, bound, m->bound.what,
                m->fits ? "fits" : "does not fit");
    if (!m->fits) hl_str_addf(out, "          what would help: %s\n", m->help);
}

static void add_grid(const hl_run *run, const hl_check *c, hl_str *out)
{
    const hl_grid *g = &run->grid;
    hl_str_addf(out, "ranks     %d x %d thread%s", run->ctx->ranks, run->ctx->threads, HL_S(run->ctx->threads));
    if (hl_grid_split(g)) hl_str_addf(out, ", %" PRId64 " group%s of %" PRId64 " x %" PRId64 " x %" PRId64, g->data, HL_S(g->data), g->part[0], g->part[1], g->part[2]);
    hl_str_addf(out, "\nbatch     %" PRId64 " over all ranks, %" PRId64 " in each of %" PRId64 " part%s of a %s's\n", run->set.batch, hl_run_part(run), hl_run_parts(run),
                HL_S(hl_run_parts(run)), hl_grid_split(g) ? "group" : "rank");
    if (c->steps_epoch > 0) hl_str_addf(out, "steps     %" PRId64 " per epoch, %" PRId64 " to do\n", c->steps_epoch, c->steps);
}

static void add_times(const hl_run *run, const hl_check *c, hl_str *out)
{
    char step[32], read[32], validation[32], epoch[32], total[32], bytes[32], start[32];
    hl_duration(c->step, step, sizeof(step));
    hl_duration(c->read, read, sizeof(read));
    hl_duration(c->validation + c->norms, validation, sizeof(validation));
    hl_duration(c->epoch, epoch, sizeof(epoch));
    hl_duration(c->total, total, sizeof(total));
    hl_duration(c->start, start, sizeof(start));
    hl_str_addf(out, "time      %s to start, %s a step (reading a batch alone: %s)", start, step, read);
    if (run->source[HL_VALIDATION]) hl_str_addf(out, ", %s a validation", validation);
    hl_str_addf(out, "\n          %s an epoch, %s in all, %.3g core-hours", epoch, total, c->core_hours);
    hl_bytes_text((double)c->checkpoint_bytes, bytes, sizeof(bytes));
    if (c->checkpoint_bytes > 0) hl_str_addf(out, "; checkpoints of %s not counted", bytes);
    hl_str_add(out, "\n");
}

void hl_check_text(const hl_run *run, const hl_check *c, hl_str *out)
{
    halo_device_info device = {0};
    char resident[32], count[32];
    run->dev->ops->describe(run->dev, &device);
    for (int split = 0; split < HL_SPLITS; split++)
        if (run->source[split]) hl_str_addf(out, "%-9s %s\n", split ? "" : "data", run->source[split]->info.description);
    hl_count_text(hl_graph_param_count(run->net), count, sizeof(count));
    hl_str_addf(out, "network   %s, %s parameters\ndevice    %s\n", run->net->name, count, device.name);
    add_grid(run, c, out);
    add_memory(run, c, out);
    if (!c->memory.fits) return;
    hl_bytes_text((double)c->resident, resident, sizeof(resident));
    hl_str_addf(out, "          %s in use after the steps of this check\n", resident);
    add_times(run, c, out);
}

static void memory_json(const hl_forecast *m, hl_json *j)
{
    hl_json_object(j, "memory");
    for (int k = 0; k < HL_MEMORY_KINDS; k++) hl_json_int(j, hl_memory_kind_name[k], (int64_t)m->rank.kind[k]);
    hl_json_int(j, "total", (int64_t)hl_memory_total(&m->rank));
    hl_json_int(j, "rank", m->worst);
    hl_json_end_object(j);
    hl_json_object(j, "node");
    hl_json_string(j, "host", m->host);
    hl_json_int(j, "ranks", m->locals);
    hl_json_int(j, "bytes", (int64_t)m->node);
    hl_json_int(j, "limit", (int64_t)m->bound.bytes);
    hl_json_string(j, "limit_of", m->bound.what);
    hl_json_end_object(j);
    if (!m->fits) hl_json_string(j, "help", m->help);
}

static void times_json(const hl_check *c, hl_json *j)
{
    hl_json_int(j, "steps_per_epoch", c->steps_epoch);
    hl_json_int(j, "steps", c->steps);
    hl_json_int(j, "resident_bytes", (int64_t)c->resident);
    hl_json_int(j, "checkpoint_bytes", c->checkpoint_bytes);
    hl_json_object(j, "seconds");
    hl_json_number(j, "start", c->start);
    hl_json_number(j, "step", c->step);
    hl_json_number(j, "read", c->read);
    hl_json_number(j, "validation", c->validation);
    hl_json_number(j, "norms", c->norms);
    hl_json_number(j, "epoch", c->epoch);
    hl_json_number(j, "total", c->total);
    hl_json_end_object(j);
    hl_json_number(j, "core_hours", c->core_hours);
}

void hl_check_json(const hl_run *run, const hl_check *c, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_string(j, "status", c->memory.fits ? "fits" : "does not fit");
    hl_json_string(j, "network", run->net->name);
    hl_json_int(j, "ranks", run->ctx->ranks);
    hl_json_int(j, "threads", run->ctx->threads);
    hl_json_int(j, "batch", run->set.batch);
    hl_json_int(j, "samples_at_once", hl_run_part(run));
    hl_json_int(j, "parts", hl_run_parts(run));
    memory_json(&c->memory, j);
    if (c->memory.fits) times_json(c, j);
    hl_json_end_object(j);
}
