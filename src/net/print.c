/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c -- a program as text: a table of values, a table of steps. Columns that a pass has not filled yet
 * are empty.
 */
#include "net/ir.h"

#include <stdio.h>

static void text_of_extents(const int64_t ext[HALO_DIMS], char *out, size_t size)
{
    snprintf(out, size, "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, ext[0], ext[1], ext[2],
             ext[3], ext[4]);
}

/* "1,1 1,1 1,1 zero", or nothing. */
static void text_of_margin(const hl_value *v, char *out, size_t size)
{
    int at = 0;
    out[0] = '\0';
    for (int a = 0; a < 3; a++) {
        if (!v->margin[a][0] && !v->margin[a][1]) continue;
        at += snprintf(out + at, size - (size_t)at, "%s%c%" PRId64 ",%" PRId64 "%s", at ? " " : "", "dhw"[a],
                       v->margin[a][0], v->margin[a][1], v->mode[a] == HALO_MARGIN_WRAP ? "~" : v->mode[a] == HALO_MARGIN_KEEP ? "<>" : "");
    }
}

static bool shown(const hl_value *v)
{
    return !v->dead && v->kind != HL_VALUE_PARAMETER;
}

static void print_values(const hl_program *p, hl_str *out)
{
    bool placed = strcmp(p->after, "fit") == 0 || strcmp(p->after, "bind") == 0;
    hl_str_addf(out, "%-5s %-24s %-10s %-5s %-9s %-22s %-22s %12s %6s %s\n", "value", "name", "kind", "type",
                "layout", "n x c x d x h x w", "margin", "bytes", "steps", placed ? "      offset" : "");
    for (int i = 0; i < p->values; i++) {
        const hl_value *v = &p->value[i];
        char ext[80], margin[80], life[32] = "", offset[32] = "";
        if (!shown(v) || (placed && v->last < 0 && v->region == HL_REGION_ARENA)) continue;
        text_of_extents(v->ext, ext, sizeof(ext));
        text_of_margin(v, margin, sizeof(margin));
        if (placed && v->region == HL_REGION_ARENA) {
            if (v->alone)
                snprintf(life, sizeof(life), "alone");
            else
                snprintf(life, sizeof(life), "%d-%d", v->first, v->last);
            snprintf(offset, sizeof(offset), "%12zu", v->offset);
        }
        hl_str_addf(out, "%-5d %-24s %-10s %-5s %-9s %-22s %-22s %12zu %6s %s\n", i, v->name,
                    hl_value_kind_name(v->kind), hl_dtype_name(v->dtype),
                    v->operand.dtype ? hl_layout_name(v->operand.layout) : "", ext, margin, v->bytes, life,
                    offset);
    }
}

/* What travels; bytes stand in their column. */
static void add_transfer(const hl_transfer *t, hl_str *out)
{
    static const char *const kinds[] = {"margins", "margins back", "all blocks"};
    hl_str_addf(out, " %s, %d message%s", kinds[t->kind], t->messages, HL_S(t->messages));
}

/* "x=3 wt=conv1/weights y=4". Parameters by name, the rest by number. */
static void add_uses(const hl_program *p, const hl_step *s, hl_str *out)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        int value = s->use[r].value;
        if (value < 0) continue;
        const hl_value *v = &p->value[value];
        if (v->kind == HL_VALUE_PARAMETER)
            hl_str_addf(out, " %s=%s", hl_role_name((halo_role)r), v->name);
        else
            hl_str_addf(out, " %s=%d", hl_role_name((halo_role)r), value);
        if (s->use[r].c_ext > 0)
            hl_str_addf(out, "[c %" PRId64 "+%" PRId64 "]", s->use[r].c_lo, s->use[r].c_ext);
        for (int a = 0; a < 3; a++)
            if (s->use[r].ext[a] > 0) hl_str_addf(out, "[%c %" PRId64 "+%" PRId64 "]", "dhw"[a], s->use[r].lo[a], s->use[r].ext[a]);
    }
    if (s->image >= 0) hl_str_addf(out, " image=%d", s->image);
    if (s->kind == HL_STEP_START) add_transfer(&p->transfer[s->transfer], out);
    if (s->desc.accumulate) hl_str_add(out, " +=");
    if (s->copied) hl_str_addf(out, "  (copied: %s)", s->copied);
}

/* Before lower: the values that the layer reads and writes. */
static void add_layer(const hl_program *p, const hl_step *s, hl_str *out)
{
    if (s->layer < 0) return;
    const hl_layer *l = hl_layer_of(p, s->layer);
    const int *of = s->phase == HL_PHASE_BACKWARD ? p->g : p->y;
    hl_str_addf(out, s->phase == HL_PHASE_BACKWARD ? " dy=%d dx=" : " y=%d x=", of[s->layer]);
    for (int k = 0; k < l->inputs; k++) {
        hl_edge e = p->edge[s->layer * HL_INPUTS_MAX + k];
        if (s->phase != HL_PHASE_BACKWARD)
            hl_str_addf(out, "%s%d", k ? "," : "", of[l->input[k]]);
        else if (e != HL_EDGE_NONE)
            hl_str_addf(out, "%s%d%s", k ? "," : "", of[l->input[k]],
                        e == HL_EDGE_ADD     ? "+"
                        : e == HL_EDGE_ALIAS ? "="
                                             : "");
    }
}

static void print_steps(const hl_program *p, hl_str *out)
{
    static const char *const phases[HL_PHASES] = {"norms", "images", "forward", "loss", "backward", "norms", "decide", "update"};
    hl_str_addf(out, "\n%-5s %-9s %-24s %-18s %-22s %10s %10s %8s %5s  %s\n", "step", "phase", "layer", "op",
                "implementation", "Mflop", "MiB", "items", "best", "values");
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        hl_op_info op;
        hl_program_op(p, i, &op);
        hl_str_addf(out, "%-5d %-9s %-24s %-18s %-22s %10.3f %10.3f ", i, phases[s->phase],
                    op.name, op.kind, op.impl, op.flops * 1e-6, op.bytes / 1048576.0);
        if (op.items > 0) /* chosen */
            hl_str_addf(out, "%8.0f %5.2f ", op.items, op.efficiency);
        else
            hl_str_addf(out, "%8s %5s ", "", "");
        if (s->kind != HL_STEP_LAYER)
            add_uses(p, s, out);
        else
            add_layer(p, s, out);
        hl_str_add(out, "\n");
    }
}

static void print_totals(const hl_program *p, hl_str *out)
{
    const double mib = 1048576.0;
    hl_program_info info;
    hl_program_info_get(p, &info);
    hl_str_addf(out,
                "\n%" PRId64 " parameters, %.3f Gflop forward, %.3f Gflop a step, %d activation reorders, %d "
                             "reference implementations\n",
                info.parameters, info.flops_forward * 1e-9, info.flops_step * 1e-9, info.reorders,
                info.references);
    hl_str_addf(out, "%.1f MiB: weights %.1f, optimiser state %.1f, activations %.1f, scratch %.1f, steps and values themselves %.1f\n",
                (double)info.peak_bytes / mib, (double)info.weight_bytes / mib,
                (double)info.state_bytes / mib, (double)info.activation_bytes / mib,
                (double)info.scratch_bytes / mib, (double)info.record_bytes / mib);
    if (info.joined + info.copied > 0)
        hl_str_addf(out, "concatenations: %d piece%s written where %s joined, %d copied\n", info.joined, HL_S(info.joined), info.joined == 1 ? "it is" : "they are", info.copied);
    if (info.slabs > 0) {
        hl_str_addf(out, "made anew in %d slab%s instead of being stored: ", info.slabs, HL_S(info.slabs));
        hl_program_anew(p, 100, out);
        hl_str_addf(out, "; all stored it would be %.1f MiB and %.3f Gflop a step\n", (double)info.plain_bytes / mib, info.plain_flops * 1e-9);
    }
    if (hl_grid_split(&p->grid))
        hl_str_addf(out, "%.3f MiB of margins sent forward, %.3f backward, in %" PRId64 " messages; %.3f MiB of blocks sent to all of the group\n",
                    (double)info.traffic.halo_bytes[0] / mib, (double)info.traffic.halo_bytes[1] / mib, info.traffic.halo_messages, (double)info.traffic.gather_bytes / mib);
    hl_str_addf(out, "items: independent pieces of work, as dealt to %d thread%s; best: the part of these that they can keep busy\n",
                p->ctx->threads, HL_S(p->ctx->threads));
}

halo_status hl_program_print(const hl_program *p, hl_str *out)
{
    hl_str_addf(out, "%s, batch %" PRId64 ", %s, after %s", p->net->name, p->opt.batch,
                p->opt.training ? "training" : "evaluation", p->after);
    if (p->layout != HALO_LAYOUTS)
        hl_str_addf(out, ", layout %s, input %s", hl_layout_name(p->layout), hl_layout_name(p->input_layout));
    hl_str_add(out, "\n\n");
    print_values(p, out);
    print_steps(p, out);
    if (strcmp(p->after, "fit") == 0 || strcmp(p->after, "bind") == 0) print_totals(p, out);
    return out->failed ? hl_fail(p->ctx, HALO_ERR_NOMEM, "out of memory for the text of a program") : HALO_OK;
}
