/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribute.c -- which layers are computed on blocks, each process of a spatial group its own, and which by all of them on the whole tensor.
 *
 * The input is cut. A window layer stays cut as long as no process needs, forward or backward, more cells than its neighbours hold; the first that would
 * works on the whole tensor, gathered to all, and so does what follows: such tensors are small. Layers that enlarge a tensor cut it again where that fits,
 * and a sum or concatenation of cut and whole inputs cuts the whole ones. Dense layers see all features and are whole. A value that is wanted in both
 * forms has two.
 *
 * All of it follows from extents and the grid alone, so every process decides the same.
 */
#include "net/compile/compile.h"

#include "tensor/block.h"

static bool cut_into(const hl_program *p, const int64_t ext[3])
{
    for (int a = 0; a < 3; a++)
        if (ext[a] < p->grid.part[a]) return false;
    return true;
}

static bool window_fits(const hl_program *p, int layer)
{
    for (int a = 0; a < 3; a++) {
        hl_sweep s = hl_layer_sweep(p, layer, a, 1, 0);
        if (!hl_sweep_fits(s.w, s.n, s.m, s.wraps, p->grid.part[a], p->opt.training || hl_is_transposed(hl_layer_of(p, layer)))) return false;
    }
    return true;
}

static bool enlarges(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer), *x = hl_layer_of(p, l->input[0]);
    for (int a = 1; a < 4; a++)
        if (l->out[a] > x->out[a]) return true;
    return false;
}

static bool any_input_split(const hl_program *p, const hl_layer *l)
{
    bool any = false;
    for (int k = 0; k < l->inputs; k++) any = any || p->split[l->input[k]];
    return any;
}

static bool splits(const hl_program *p, int layer)
{
    const hl_layer *l = hl_layer_of(p, layer);
    switch (l->kind) {
    case HL_LAYER_INPUT: return cut_into(p, l->out + 1);
    case HL_LAYER_FLATTEN:
    case HL_LAYER_DENSE: return false;
    default: break;
    }
    if (!hl_has_window(l)) return any_input_split(p, l);
    return (any_input_split(p, l) || enlarges(p, layer)) && window_fits(p, layer);
}

/* The layer behind which nothing is split; the last one where none is named. */
static halo_status find_end(hl_program *p, int *end)
{
    const char *name = p->opt.split_until;
    *end = p->net->layers - 1;
    if (!name || !*name) return HALO_OK;
    for (*end = 0; *end < p->net->layers; ++*end)
        if (strcmp(hl_layer_of(p, *end)->name, name) == 0) return HALO_OK;
    return hl_fail(p->ctx, HALO_ERR_USAGE, "'parallel.spatial_until': network '%s' has no layer '%s'", p->net->name, name);
}

static halo_status too_thin(hl_program *p, int layer, const int64_t ext[3])
{
    const int64_t *part = p->grid.part;
    return hl_fail(p->ctx, HALO_ERR_SHAPE,
                   "layer '%s': %" PRId64 " x %" PRId64 " x %" PRId64 " cells (D H W) cannot be split over %" PRId64 " x %" PRId64 " x %" PRId64 " ranks",
                   hl_layer_of(p, layer)->name, ext[0], ext[1], ext[2], part[0], part[1], part[2]);
}

/* A dropout that is left out has its input's value. */
static bool shares(const hl_program *p, int layer) { return p->live[layer] && layer > 0 && p->value[p->y[layer]].layer != layer; }

static halo_status decide(hl_program *p)
{
    int end;
    bool used = false;
    HL_TRY(find_end(p, &end));
    for (int i = 0; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        p->split[i] = p->live[i] && (shares(p, i) ? p->split[l->input[0]] : i <= end && splits(p, i));
        for (int k = 0; k < l->inputs; k++) used = used || (l->input[k] == 0 && p->split[i]);
        if (i == 0 && !p->split[0]) return too_thin(p, 0, l->out + 1);
    }
    if (p->opt.split_until && *p->opt.split_until && !p->split[end]) return too_thin(p, end, hl_layer_of(p, end)->out + 1);
    p->split[0] = used;
    return HALO_OK;
}

/* Relative mse has sums over a whole sample before any gradient. */
static halo_status check_loss(hl_program *p)
{
    if (p->opt.loss != HALO_LOSS_RELATIVE_MSE || !p->split[p->net->layers - 1]) return HALO_OK;
    return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "relative mse is a loss of whole samples, and 'parallel.spatial' cuts the output of network '%s'; 'loss: mse' may be cut", p->net->name);
}

/* The block of this process, or all. */
static void set_form(const hl_program *p, hl_value *v, bool split)
{
    v->split = split;
    for (int a = 0; a < 3; a++) {
        hl_range r = split ? hl_grid_range(&p->grid, a, v->whole[a]) : (hl_range){0, v->whole[a]};
        v->lo[a] = r.lo;
        v->ext[HALO_D + a] = hl_range_len(r);
    }
}

static bool wanted_other(const hl_program *p, int layer)
{
    for (int i = layer + 1; i < p->net->layers; i++) {
        const hl_layer *l = hl_layer_of(p, i);
        for (int k = 0; k < l->inputs && p->live[i]; k++)
            if (l->input[k] == layer && p->split[i] != p->split[layer]) return true;
    }
    return false;
}

static halo_status make_other(hl_program *p, int layer)
{
    int owner = p->value[p->y[layer]].layer;
    if (shares(p, layer)) {
        if (p->other[owner] < 0) HL_TRY(make_other(p, owner));
        p->other[layer] = p->other[owner];
        return HALO_OK;
    }
    HL_TRY(hl_value_like(p, p->y[layer], HL_VALUE_ACTIVATION, layer, p->split[layer] ? ".whole" : ".block", &p->other[layer]));
    set_form(p, &p->value[p->other[layer]], !p->split[layer]);
    return HALO_OK;
}

halo_status hl_distribute(hl_program *p)
{
    for (int v = 0; v < p->values; v++) memcpy(p->value[v].whole, p->value[v].ext + HALO_D, sizeof(p->value[v].whole));
    if (!hl_grid_split(&p->grid)) return HALO_OK;
    HL_TRY(decide(p));
    HL_TRY(check_loss(p));
    for (int v = 0, layer; v < p->values; v++)
        if ((layer = v == p->target ? p->net->layers - 1 : p->value[v].layer) >= 0) set_form(p, &p->value[v], p->split[layer]);
    for (int i = 0; i < p->net->layers; i++)
        if (p->live[i] && wanted_other(p, i)) HL_TRY(make_other(p, i));
    return HALO_OK;
}
