/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_plan.c -- what of a program's values is live when: bytes per step, and what there is at the peak. Storage is shared by values that are not live at the
 * same time; what shares with nobody is live throughout. The arena can be a little larger than the most that is live: values have fixed places.
 */
#include "net/ir.h"

#include <stdio.h>

enum { BAR = 40, SHOWN = 12 };

bool hl_value_live(const hl_value *v, int step)
{
    return v->region == HL_REGION_ARENA && !v->dead && v->last >= 0 && (v->alone || (v->first <= step && step <= v->last));
}

size_t hl_program_live(const hl_program *p, int step)
{
    size_t sum = 0;
    for (int v = 0; v < p->values; v++) sum += hl_value_live(&p->value[v], step) ? p->value[v].bytes : 0;
    return sum;
}

int hl_program_steps(const hl_program *p) { return p->steps; }

int hl_program_peak(const hl_program *p, size_t *most)
{
    int at = 0;
    *most = 0;
    for (int i = 0; i < p->steps; i++) {
        size_t bytes = hl_program_live(p, i);
        if (bytes <= *most) continue;
        *most = bytes;
        at = i;
    }
    return at;
}

static bool computes(const hl_step *s) { return s->phase >= HL_PHASE_FORWARD && s->phase <= HL_PHASE_BACKWARD; }

static void print_step(const hl_program *p, int i, size_t most, hl_str *out)
{
    const hl_step *s = &p->step[i];
    const size_t bytes = hl_program_live(p, i);
    char turn[32] = "";
    int bar = most > 0 ? (int)((double)bytes / (double)most * BAR + 0.5) : 0;
    if (s->slabs > 0) snprintf(turn, sizeof(turn), "%d/%d", s->slab + 1, s->slabs);
    hl_str_addf(out, "%-5d %-9s %-24s %-18s %7s %10.1f  %.*s\n", i, hl_phase_direction(s->phase), hl_step_name(p, s), hl_step_op_name(s), turn,
                (double)bytes / 1048576, bar, "########################################");
}

/* The largest value at the step that is smaller than `below`, or the next of the same size; -1: none. */
static int next_largest(const hl_program *p, int step, int before)
{
    int best = -1;
    for (int v = 0; v < p->values; v++) {
        const hl_value *w = &p->value[v];
        if (!hl_value_live(w, step)) continue;
        bool later = before < 0 || w->bytes < p->value[before].bytes || (w->bytes == p->value[before].bytes && v > before);
        if (later && (best < 0 || w->bytes > p->value[best].bytes)) best = v;
    }
    return best;
}

static void print_peak(const hl_program *p, int step, size_t most, hl_str *out)
{
    const hl_step *s = &p->step[step];
    size_t rest = most;
    hl_str_addf(out, "\nmost is live at step %d, %s of %s: %.1f MiB\n", step, hl_step_op_name(s), hl_step_name(p, s), (double)most / 1048576);
    int v = next_largest(p, step, -1);
    for (int n = 0; n < SHOWN && v >= 0; n++, v = next_largest(p, step, v)) {
        const hl_value *w = &p->value[v];
        hl_str_addf(out, "    %-28s %-10s %10.1f MiB  %s\n", w->name, hl_value_kind_name(w->kind), (double)w->bytes / 1048576, w->alone ? "throughout" : "");
        rest -= w->bytes;
    }
    if (v >= 0) hl_str_addf(out, "    %-39s %10.1f MiB\n", "all others", (double)rest / 1048576);
}

halo_status hl_program_print_memory(const hl_program *p, hl_str *out)
{
    size_t most;
    const int peak = hl_program_peak(p, &most);
    hl_str_addf(out, "%s, batch %" PRId64 ", %s: what is live when\n\n%-5s %-9s %-24s %-18s %7s %10s\n", p->net->name, p->opt.batch,
                p->opt.training ? "training" : "evaluation", "step", "phase", "layer", "op", "slab", "MiB");
    for (int i = 0; i < p->steps; i++)
        if (computes(&p->step[i])) print_step(p, i, most, out);
    print_peak(p, peak, most, out);
    return out->failed ? hl_fail(p->ctx, HALO_ERR_NOMEM, "out of memory for the text of a program") : HALO_OK;
}
