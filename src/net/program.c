/* SPDX-License-Identifier: Apache-2.0 */
/* program.c -- the chain of passes, and what a program says of itself. */
#include "net/compile/compile.h"

#include "base/clock.h"

#include <stdio.h>

static const struct {
    const char *name;
    halo_status (*run)(hl_program *p);
} passes[] = {
    {"shape", hl_pass_shape},         {"place", hl_pass_place},   {"differentiate", hl_pass_differentiate},
    {"precision", hl_pass_precision}, {"lower", hl_pass_lower},   {"slabs", hl_pass_slabs},
    {"inplace", hl_pass_inplace},     {"views", hl_pass_views},
    {"margins", hl_pass_margins},     {"overlap", hl_pass_overlap}, {"choose", hl_pass_choose},
    {"fit", hl_pass_fit},             {"bind", hl_pass_bind},
};

static halo_status int_array(halo_context *ctx, size_t n, int **out)
{
    HL_TRY(hl_calloc(ctx, n, sizeof(**out), "program indices", out));
    for (size_t i = 0; i < n; i++) (*out)[i] = -1;
    return HALO_OK;
}

static halo_status index_arrays(hl_program *p)
{
    size_t n = (size_t)p->net->layers;
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->live));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->needs));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->early));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->split));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->g_first));
    HL_TRY(hl_calloc(p->ctx, n * HL_INPUTS_MAX, sizeof(hl_edge), "program edges", &p->edge));
    HL_TRY(int_array(p->ctx, n, &p->y));
    HL_TRY(int_array(p->ctx, n, &p->g));
    HL_TRY(int_array(p->ctx, n, &p->other));
    HL_TRY(int_array(p->ctx, n, &p->g_other));
    HL_TRY(int_array(p->ctx, n, &p->aux));
    HL_TRY(int_array(p->ctx, n, &p->stat));
    HL_TRY(int_array(p->ctx, n, &p->stat2));
    HL_TRY(int_array(p->ctx, n, &p->fused));
    HL_TRY(int_array(p->ctx, n, &p->pooled));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(bool), "program flags", &p->unpools));
    return int_array(p->ctx, (size_t)p->model->params * HL_MODEL_ARRAYS, &p->param_value);
}

static halo_status check_options(const hl_model *m, const hl_compile_options *o)
{
    if (o->batch < 1) return hl_fail(m->ctx, HALO_ERR_USAGE, "a batch of %" PRId64 " samples", o->batch);
    if (o->training && !m->has_optim)
        return hl_fail(m->ctx, HALO_ERR_USAGE, "the model of '%s' was made for evaluation", m->net->name);
    if (m->net->layers < 2)
        return hl_fail(m->ctx, HALO_ERR_USAGE, "network '%s' has no layers", m->net->name);
    if (!o->after) return HALO_OK;
    for (size_t i = 0; i < HL_COUNT(passes); i++)
        if (strcmp(o->after, passes[i].name) == 0) return HALO_OK;
    return hl_fail(m->ctx, HALO_ERR_USAGE,
                   "no pass '%s'; they are shape, place, differentiate, precision, lower, slabs, inplace, views, margins, "
                   "overlap, choose, fit, bind",
                   o->after);
}

static halo_status run_passes(hl_program *p)
{
    for (size_t i = 0; i < HL_COUNT(passes); i++) {
        HL_TRY(passes[i].run(p));
        snprintf(p->after, sizeof(p->after), "%s", passes[i].name);
        if (p->opt.after && strcmp(p->opt.after, passes[i].name) == 0) break;
    }
    return HALO_OK;
}

halo_status hl_compile_one(hl_model *model, const hl_compile_options *options, hl_compile_switches off, const hl_economy *economy, hl_program **program)
{
    hl_program *p;
    halo_status st;
    HL_TRY(check_options(model, options));
    HL_TRY(hl_calloc(model->ctx, 1, sizeof(*p), "program", &p));
    p->ctx = model->ctx;
    p->dev = model->dev;
    p->model = model;
    p->net = model->net;
    p->opt = *options;
    p->grid = options->team ? options->team->grid : options->grid.data > 0 ? options->grid : hl_grid_one();
    p->off = off;
    p->economy = economy;
    p->layout = p->input_layout = HALO_LAYOUTS;
    HL_GOTO(st, index_arrays(p), destroy);
    HL_GOTO(st, run_passes(p), destroy);
    p->opt.after = p->opt.plan_cache = p->opt.plan_shared = NULL; /* the caller's strings */
    p->economy = NULL;
    *program = p;
    return HALO_OK;

destroy:
    hl_program_destroy(p);
    return st;
}

halo_status hl_program_bind(hl_program *p, hl_program *beside)
{
    HL_BUG_UNLESS(strcmp(p->after, "fit") == 0);
    p->opt.beside = beside;
    HL_TRY(hl_pass_bind(p));
    snprintf(p->after, sizeof(p->after), "%s", "bind");
    return HALO_OK;
}

halo_status hl_compile(hl_model *model, const hl_compile_options *options, hl_program **program)
{
    return hl_compile_with(model, options, (hl_compile_switches){0}, program);
}

void hl_program_destroy(hl_program *p)
{
    if (!p) return;
    for (int i = 0; i < p->steps; i++) {
        hl_step *s = &p->step[i];
        if (s->plan) hl_op_class(p->dev, s->desc.kind, &s->choice)->destroy(s->plan);
        free(s->times);
    }
    for (int i = 0; i < p->transfers; i++) {
        hl_exchange_destroy(p->transfer[i].exchange);
        hl_mirror_free(p->transfer[i].mirror);
        hl_passage_free(p, p->transfer[i].passage);
    }
    hl_recordings_free(p);
    hl_node_sums_free(p);
    hl_landing_free(p);
    hl_arena_close(p);
    if (p->images) p->dev->ops->release(p->dev, p->images);
    if (p->scratch) p->dev->ops->release(p->dev, p->scratch);
    void *const owned[] = {p->complete, p->class_weights, p->divisors, p->statistics, p->arrival, p->seconds, p->host, p->value, p->step,  p->live,  p->needs, p->y,    p->g,
                           p->aux,  p->stat,  p->stat2, p->early, p->fused, p->pooled, p->unpools, p->edge, p->param_value,
                           p->split, p->g_first, p->other, p->g_other, p->transfer};
    for (size_t i = 0; i < HL_COUNT(owned); i++) free(owned[i]);
    free(p);
}

/* ------------------------------------------------------------------------------------------------ explain */

static bool is_activation(const hl_program *p, int value)
{
    return value >= 0 && p->value[value].kind <= HL_VALUE_GRADIENT;
}

static bool reorders(const hl_program *p, const hl_step *s)
{
    return s->kind == HL_STEP_OP && s->desc.kind == HALO_OP_COPY && is_activation(p, s->use[HALO_X].value) &&
           is_activation(p, s->use[HALO_Y].value) && s->desc.t[HALO_X].layout != s->desc.t[HALO_Y].layout;
}

void hl_program_input_box(const hl_program *p, int64_t lo[3], int64_t ext[3])
{
    const halo_operand o = hl_input_operand(p);
    const hl_value *v = &p->value[p->y[0]];
    for (int a = 0; a < 3; a++) {
        lo[a] = v->lo[a] - (v->margin[a][0] - o.margin[a][0]);
        ext[a] = o.ext[HALO_D + a];
    }
}

void hl_program_output_box(const hl_program *p, int64_t lo[3], int64_t ext[3])
{
    const hl_value *v = &p->value[p->target];
    memcpy(lo, v->lo, sizeof(v->lo));
    memcpy(ext, v->ext + HALO_D, 3 * sizeof(*ext));
}

static void add_traffic(const hl_transfer *t, hl_phase phase, int64_t bytes, int64_t messages, hl_traffic *out)
{
    if (t->kind == HL_TRANSFER_GATHER) {
        out->gather_bytes += bytes;
        return;
    }
    out->halo_bytes[phase == HL_PHASE_BACKWARD] += bytes;
    out->halo_messages += messages;
}

hl_traffic hl_program_counted(const hl_program *p)
{
    hl_traffic out = {.runs = 0};
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        hl_exchange_stats stats = {.runs = 0};
        const hl_transfer *t = s->kind == HL_STEP_START ? &p->transfer[s->transfer] : NULL;
        if (!t || !(t->exchange || t->passage)) continue;
        if (t->passage)
            hl_passage_stats(t->passage, &stats);
        else
            hl_exchange_stats_get(t->exchange, &stats, false);
        const int64_t runs = hl_max64(1, stats.runs); /* each its own: forward ones run for the running statistics, too */
        add_traffic(&p->transfer[s->transfer], s->phase, stats.bytes / runs, stats.messages / runs, &out);
        out.runs = hl_max64(out.runs, stats.runs);
        out.exposed += stats.exposed;
    }
    return out;
}

void hl_program_info_get(const hl_program *p, hl_program_info *info)
{
    *info = (hl_program_info){.layout = p->layout, .input_layout = p->input_layout};
    for (int i = 0; i < p->steps; i++)
        if (p->step[i].kind == HL_STEP_START) {
            const hl_transfer *t = &p->transfer[p->step[i].transfer];
            add_traffic(t, p->step[i].phase, t->bytes, t->messages, &info->traffic);
        }
    info->parameters = hl_graph_param_count(p->net);
    for (int v = 0; v < p->lowered_values; v++)
        if (p->value[v].slabs > info->slabs) info->slabs = p->value[v].slabs;
    info->joined = p->joined;
    info->plain_bytes = p->plain_bytes;
    info->plain_flops = p->plain_flops;
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        if (s->kind != HL_STEP_OP) continue;
        info->ops++;
        info->references += s->choice.reference;
        info->copied += s->copied != NULL;
        info->reorders += reorders(p, s);
        info->flops_step += s->flops;
        if (s->phase == HL_PHASE_FORWARD) info->flops_forward += s->flops;
    }
    info->weight_bytes = hl_model_weight_bytes(p->model) + p->image_bytes;
    info->image_bytes = p->image_bytes;
    info->state_bytes = hl_model_state_bytes(p->model);
    info->activation_bytes = p->arena_bytes;
    info->scratch_bytes = p->scratch_bytes;
    info->landing_bytes = hl_landing_bytes(p);
    info->record_bytes = (size_t)p->steps * sizeof(hl_step) + (size_t)p->values * sizeof(hl_value);
    info->peak_bytes = info->weight_bytes + info->state_bytes + info->activation_bytes + info->scratch_bytes;
}

void hl_program_anew(const hl_program *p, int most, hl_str *out)
{
    int n = 0;
    for (int v = 0; v < p->lowered_values; v++)
        if (p->value[v].slabs > 0 && n++ < most) hl_str_addf(out, "%s%s", n > 1 ? ", " : "", p->value[v].name);
    if (n > most) hl_str_addf(out, " and %d more", n - most);
}

static double median_seconds(const hl_step *s, double *least)
{
    double sorted[HL_TIMES_MAX];
    size_t n = (size_t)hl_min64(s->timed, HL_TIMES_MAX);
    *least = NAN;
    if (n == 0) return NAN;
    memcpy(sorted, s->times, n * sizeof(*sorted));
    const double median = hl_median(sorted, n);
    *least = sorted[0];
    return median;
}

/* What a backend said, or else that of equal items dealt in turn. */
static double best_efficiency(const halo_candidate *c, int threads)
{
    if (c->efficiency > 0 || !(c->items > 0)) return c->efficiency > 0 ? c->efficiency : 1;
    return c->items / (ceil(c->items / threads) * threads);
}

void hl_program_op(const hl_program *p, int i, hl_op_info *info)
{
    HL_BUG_UNLESS(i >= 0 && i < p->steps);
    const hl_step *s = &p->step[i];
    double least, median = median_seconds(s, &least);
    *info = (hl_op_info){
        .name = hl_step_name(p, s),
        .kind = hl_step_op_name(s),
        .direction = hl_phase_direction(s->phase),
        .impl = s->choice.impl,
        .reference = s->choice.reference,
        .flops = s->flops,
        .bytes = s->kind == HL_STEP_START ? (double)p->transfer[s->transfer].bytes : s->bytes,
        .seconds = median,
        .seconds_least = least,
        .items = s->choice.items,
        .efficiency = best_efficiency(&s->choice, p->ctx->threads),
        .desc = &s->desc,
    };
}

halo_status hl_program_time(hl_program *p, bool on)
{
    for (int i = 0; i < p->steps && on; i++) {
        hl_step *s = &p->step[i];
        s->timed = 0;
        if (!s->times) HL_TRY(hl_calloc(p->ctx, HL_TIMES_MAX, sizeof(*s->times), "step times", &s->times));
    }
    p->timing = on;
    return HALO_OK;
}
