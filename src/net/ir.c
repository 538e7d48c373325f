/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ir.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------------------------- values */

static halo_status value_slot(hl_program *p, hl_value **v)
{
    HL_TRY(hl_grow(p->ctx, &p->value, &p->value_cap, (size_t)p->values + 1, sizeof(*p->value),
                   "program values"));
    *v = &p->value[p->values++];
    memset(*v, 0, sizeof(**v));
    (*v)->layer = (*v)->param = (*v)->into = -1;
    return HALO_OK;
}

halo_status hl_value_new(hl_program *p, hl_value_kind kind, int layer, const char *suffix, int *value)
{
    hl_value *v;
    HL_TRY(value_slot(p, &v));
    v->kind = kind;
    v->layer = layer;
    for (int i = 0; i < HALO_DIMS; i++) v->ext[i] = 1;
    snprintf(v->name, sizeof(v->name), "%s%s", layer >= 0 ? hl_layer_of(p, layer)->name : "", suffix);
    *value = p->values - 1;
    return HALO_OK;
}

halo_status hl_value_like(hl_program *p, int like, hl_value_kind kind, int layer, const char *suffix,
                          int *value)
{
    HL_TRY(hl_value_new(p, kind, layer, suffix, value));
    hl_value *v = &p->value[*value];
    const hl_value *of = &p->value[like];
    memcpy(v->ext, of->ext, sizeof(v->ext));
    memcpy(v->lo, of->lo, sizeof(v->lo));
    memcpy(v->whole, of->whole, sizeof(v->whole));
    v->split = of->split;
    v->dtype = of->dtype;
    v->cls = of->cls;
    return HALO_OK;
}

/* Weights keep their dims as n c d h w; vectors are flat. */
static void parameter_extents(const hl_param_info *info, int array, int64_t ext[HALO_DIMS])
{
    for (int i = 0; i < HALO_DIMS; i++) ext[i] = 1;
    if (array >= HL_ARRAYS)
        ext[HALO_W] = HL_NORM_NUMBERS;
    else if (info->role == HALO_RUN)
        ext[HALO_W] = 2 * info->count; /* mean, then variance */
    else if (info->ndim == 1)
        ext[HALO_W] = info->count;
    else
        for (int i = 0; i < info->ndim; i++) ext[i] = info->dim[i];
}

/* A value that lies in the model, from where an array of a parameter begins. */
static halo_status model_value(hl_program *p, int param, int array, hl_value **v)
{
    HL_TRY(value_slot(p, v));
    (*v)->kind = HL_VALUE_PARAMETER;
    (*v)->region = HL_REGION_MODEL;
    (*v)->param = param;
    (*v)->array = array;
    (*v)->dtype = hl_model_array_dtype(p->model, param, array);
    (*v)->forever = true;
    return HALO_OK;
}

halo_status hl_param_value(hl_program *p, int param, int array, int *value)
{
    int *known = &p->param_value[param * HL_MODEL_ARRAYS + array];
    if (*known < 0) {
        static const char *const names[HL_MODEL_ARRAYS] = {"",   ".gradient",      ".m",
                                                           ".v", ".gradient_norm", ".norm"};
        const hl_param_info *info = &p->model->param[param];
        hl_value *v;
        HL_TRY(model_value(p, param, array, &v));
        v->layer = info->layer;
        parameter_extents(info, array, v->ext);
        snprintf(v->name, sizeof(v->name), "%.60s%s", info->name, names[array]);
        *known = p->values - 1;
    }
    *value = *known;
    return HALO_OK;
}

halo_status hl_norms_value(hl_program *p, int *value)
{
    hl_value *v;
    HL_TRY(model_value(p, 0, HL_MODEL_GRADIENT_NORM, &v));
    for (int i = 0; i < HALO_DIMS; i++) v->ext[i] = 1;
    v->ext[HALO_W] = HL_NORM_NUMBERS * (int64_t)p->model->params;
    snprintf(v->name, sizeof(v->name), "gradient_norms");
    *value = p->values - 1;
    return HALO_OK;
}

static const char *too_large(hl_program *p, const hl_value *v)
{
    return v->layer >= 0 ? hl_layer_of(p, v->layer)->name : v->name;
}

halo_status hl_set_geometry(hl_program *p, halo_layout layout, halo_layout input_layout)
{
    const halo_layout of[HL_CLASSES] = {HALO_NCDHW, input_layout, layout};
    p->layout = layout;
    p->input_layout = input_layout;
    for (int i = 0; i < p->values; i++) {
        hl_value *v = &p->value[i];
        if (v->dead || v->kind == HL_VALUE_IMAGE) continue;
        v->operand = hl_operand_margined(v->dtype, of[v->cls], v->ext, v->margin);
        if (!hl_operand_bytes(&v->operand, &v->bytes))
            return hl_fail(p->ctx, HALO_ERR_SHAPE,
                           "layer '%s': a tensor of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                           " x %" PRId64 " is too large to index",
                           too_large(p, v), v->ext[0], v->ext[1], v->ext[2], v->ext[3], v->ext[4]);
    }
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------- steps */

hl_use hl_use_of(int value)
{
    return (hl_use){.value = value};
}
hl_use hl_use_flat(int value)
{
    return (hl_use){.value = value, .flat = true};
}
hl_use hl_use_samples(const hl_program *p, int layer, int value)
{
    return (hl_use){.value = value, .rows = hl_layer_of(p, layer)->rows};
}

halo_status hl_step_new(hl_program *p, hl_step_kind kind, hl_phase phase, int layer, hl_step **step)
{
    HL_TRY(hl_grow(p->ctx, &p->step, &p->step_cap, (size_t)p->steps + 1, sizeof(*p->step), "program steps"));
    hl_step *s = &p->step[p->steps++];
    memset(s, 0, sizeof(*s));
    s->kind = kind;
    s->phase = phase;
    s->layer = layer;
    s->param = s->image = s->transfer = -1;
    for (int r = 0; r < HALO_ROLES; r++) s->use[r].value = -1;
    *step = s;
    return HALO_OK;
}

halo_status hl_op_new(hl_program *p, halo_op_kind kind, hl_phase phase, int layer, hl_step **step)
{
    HL_TRY(hl_step_new(p, HL_STEP_OP, phase, layer, step));
    (*step)->desc.kind = kind;
    return HALO_OK;
}

hl_step *hl_take_steps(hl_program *p, int *n)
{
    hl_step *steps = p->step;
    *n = p->steps;
    p->step = NULL;
    p->steps = 0;
    p->step_cap = 0;
    return steps;
}

halo_status hl_step_again(hl_program *p, const hl_step *step)
{
    hl_step *s;
    HL_TRY(hl_step_new(p, step->kind, step->phase, step->layer, &s));
    *s = *step;
    return HALO_OK;
}

int hl_input(const hl_program *p, int layer, int k)
{
    int x = hl_layer_of(p, layer)->input[k];
    return p->split[x] == p->split[layer] ? p->y[x] : p->other[x];
}

int hl_input_gradient(const hl_program *p, int layer, int k)
{
    int x = hl_layer_of(p, layer)->input[k];
    return p->split[x] == p->split[layer] ? p->g[x] : p->g_other[x];
}

int hl_layer_param(const hl_program *p, int layer, halo_role role)
{
    for (int i = 0; i < p->model->params; i++)
        if (p->model->param[i].layer == layer && p->model->param[i].role == role) return i;
    return -1;
}

bool hl_step_writes(const hl_step *s, halo_role role)
{
    if (s->use[role].value < 0) return false;
    if (s->kind != HL_STEP_OP) return role == HALO_Y && s->kind != HL_STEP_LAYER;
    return hl_op_writes(s->desc.kind, role);
}

bool hl_step_reads(const hl_step *s, halo_role role)
{
    if (s->kind == HL_STEP_LAYER || s->use[role].value < 0) return false;
    if (s->kind != HL_STEP_OP) return s->kind != HL_STEP_CLEAR;
    return hl_op_reads(&s->desc, role);
}

static int by_phase(const void *a, const void *b)
{
    const hl_step *s = *(const hl_step *const *)a, *t = *(const hl_step *const *)b;
    if (s->phase != t->phase) return (int)s->phase - (int)t->phase;
    return s < t ? -1 : s > t;
}

halo_status hl_sort_steps(hl_program *p)
{
    hl_step **order, *sorted;
    halo_status st;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->steps, sizeof(hl_step *), "step order", &order));
    HL_GOTO(st, hl_calloc(p->ctx, p->step_cap, sizeof(*sorted), "program steps", &sorted), free_order);
    for (int i = 0; i < p->steps; i++) order[i] = &p->step[i];
    qsort(order, (size_t)p->steps, sizeof(*order), by_phase);
    for (int i = 0; i < p->steps; i++) sorted[i] = *order[i];
    free(p->step);
    p->step = sorted;
free_order:
    free(order);
    return st;
}

void hl_find_phases(hl_program *p)
{
    for (int i = 0, f = 0; f <= HL_PHASES; f++) {
        while (i < p->steps && (int)p->step[i].phase < f) i++;
        p->phase[f] = i;
    }
}

halo_operand hl_input_operand(const hl_program *p)
{
    const hl_value *v = &p->value[p->y[0]];
    halo_operand o = v->operand;
    for (int a = 0; a < 3; a++) {
        if (v->mode[a] != HALO_MARGIN_KEEP) continue;
        o.lo[HALO_D + a] -= v->margin[a][0];
        o.ext[HALO_D + a] += v->margin[a][0] + v->margin[a][1];
        o.margin[a][0] = o.margin[a][1] = 0;
    }
    return o;
}

static halo_operand operand_of_use(const hl_program *p, const hl_use *u)
{
    const hl_value *v = &p->value[u->value];
    halo_operand o = v->operand;
    if (u->flat)
        return hl_operand_flat(o.dtype, o.alloc[0] * o.alloc[1] * o.alloc[2] * o.alloc[3] * o.alloc[4]);
    if (u->rows > 1) {
        const int64_t ext[HALO_DIMS] = {o.ext[HALO_N] / u->rows, o.ext[HALO_C] * u->rows, 1, 1, 1};
        return hl_operand_whole(o.dtype, o.layout, ext);
    }
    memcpy(o.margin, u->margin, sizeof(o.margin));
    for (int a = 0; a < 3; a++) {
        o.lo[HALO_D + a] += u->lo[a] - u->grow[a][0];
        o.ext[HALO_D + a] = (u->ext[a] > 0 ? u->ext[a] : o.ext[HALO_D + a]) + u->grow[a][0] + u->grow[a][1];
    }
    if (u->c_ext > 0) {
        o.lo[HALO_C] = u->c_lo;
        o.ext[HALO_C] = u->c_ext;
    }
    return o;
}

void hl_step_operands(const hl_program *p, hl_step *s)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        if (s->use[r].value < 0)
            s->desc.t[r].dtype = HALO_NONE;
        else
            s->desc.t[r] = operand_of_use(p, &s->use[r]);
    }
}

halo_window hl_desc_window(const halo_op_desc *d)
{
    halo_window w = d->window;
    for (int a = 0; d->kind == HALO_OP_CONV_POOL_FWD && a < 3; a++) {
        w.kernel[a] = (d->pool_side[a] - 1) * d->window.stride[a] + (d->window.kernel[a] - 1) * d->window.dilation[a] + 1;
        w.stride[a] = d->window.stride[a] * d->pool_side[a];
        w.dilation[a] = 1;
    }
    return w;
}

bool hl_step_valid(const hl_step *s)
{
    for (int r = 0; r < HALO_ROLES; r++)
        if (s->use[r].value >= 0 && !hl_operand_valid(&s->desc.t[r])) return false;
    return true;
}

/* -------------------------------------------------------------------------------------------------- names */

const char *hl_step_name(const hl_program *p, const hl_step *s)
{
    if (s->param >= 0) return p->model->param[s->param].name;
    return s->layer >= 0 ? hl_layer_of(p, s->layer)->name : s->phase == HL_PHASE_LOSS ? "loss" : s->phase == HL_PHASE_DECIDE ? "step" : "";
}

const char *hl_step_op_name(const hl_step *s)
{
    static const char *const names[] = {"layer", "", "send", "receive", "clear", "sum", "join", "add"};
    return s->kind == HL_STEP_OP ? hl_op_kind_name(s->desc.kind) : names[s->kind];
}

const char *hl_phase_direction(hl_phase phase)
{
    static const char *const names[HL_PHASES] = {"update", "update", "forward", "forward", "backward", "update", "update", "update"};
    return names[phase];
}

const char *hl_value_kind_name(hl_value_kind kind)
{
    static const char *const names[HL_VALUE_KINDS] = {"input",      "activation", "gradient",  "saved",
                                                      "statistics", "target",     "parameter", "image"};
    return names[kind];
}
