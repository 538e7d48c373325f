/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c -- where every value lies in the arena: a value needs its storage from the first step that uses it to
 * the last, and values that are not needed at the same time share bytes.
 *
 * Greedy by size: the largest value first, each into the smallest gap that holds it between those already
 * placed that live when it does (Pisarchyk & Lee, "Efficient memory management for deep neural net
 * inference", 2020; offsets, not slots).
 *
 * Some values share with nobody (`alone`): what the host reads or fills, and those whose padding lanes of a
 * channel block must stay zero. A margin that holds only zeros can be kept that way too, which saves writing
 * it in every step: that is done for all such values, or for the activations alone (which live long anyway),
 * where it makes the arena at most a quarter larger and the memory limit allows it.
 */
#include "net/compile/compile.h"

enum { HL_ARENA_ALIGN = 64 };

static bool in_arena(const hl_value *v)
{
    return v->region == HL_REGION_ARENA && !v->dead && v->last >= 0;
}

static void find_lifetimes(hl_program *p)
{
    int last = p->steps;
    for (int i = 0; i < p->values; i++) {
        p->value[i].first = p->value[i].forever ? 0 : last;
        p->value[i].last = p->value[i].forever ? last : -1;
    }
    for (int i = 0; i < p->steps; i++)
        for (int r = 0; r < HALO_ROLES; r++) {
            if (p->step[i].use[r].value < 0) continue;
            hl_value *v = &p->value[p->step[i].use[r].value];
            if (i < v->first) v->first = i;
            if (i > v->last) v->last = i;
        }
    if (!p->opt.training) p->value[p->y[p->net->layers - 1]].last = last; /* the host reads the prediction */
}

static bool has_padding_lanes(const hl_value *v)
{
    return v->operand.alloc[HALO_C] % hl_layout_block(v->operand.layout) != 0;
}

static bool has_zero_margin(const hl_value *v)
{
    bool any = false;
    for (int a = 0; a < 3; a++) {
        bool here = v->mode[a] != HALO_MARGIN_KEEP && (v->margin[a][0] || v->margin[a][1]);
        if (here && v->mode[a] != HALO_MARGIN_ZERO) return false;
        any = any || here;
    }
    return any;
}

/* Whose margins of zeros are kept. */
typedef enum keep { KEEP_NONE = 0, KEEP_ACTIVATIONS, KEEP_ALL } keep;

static void find_alone(hl_program *p, keep k)
{
    for (int i = 0; i < p->values; i++) {
        hl_value *v = &p->value[i];
        bool kept =
            has_zero_margin(v) && (k == KEEP_ALL || (k == KEEP_ACTIVATIONS && v->kind != HL_VALUE_GRADIENT));
        v->alone = v->forever || has_padding_lanes(v) || kept || p->off.no_reuse;
    }
}

/* ------------------------------------------------------------------------------------------------ placing */

static bool meet(const hl_value *a, const hl_value *b)
{
    return a->alone || b->alone || (a->first <= b->last && b->first <= a->last);
}

/* The smallest gap of at least v->bytes below the highest end, else that end. `placed` is sorted by offset.
 */
static size_t best_gap(const hl_value *v, hl_value *const *placed, int n)
{
    size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        const hl_value *o = placed[i];
        if (!meet(v, o)) continue;
        if (o->offset >= end + v->bytes && o->offset - end < best_size) {
            best = end;
            best_size = o->offset - end;
        }
        size_t stop = (size_t)hl_round_up((int64_t)(o->offset + o->bytes), HL_ARENA_ALIGN);
        if (stop > end) end = stop;
    }
    return best != SIZE_MAX ? best : end;
}

static int larger_first(const void *a, const void *b)
{
    const hl_value *v = *(const hl_value *const *)a, *w = *(const hl_value *const *)b;
    if (v->bytes != w->bytes) return v->bytes > w->bytes ? -1 : 1;
    return v < w ? -1 : v > w;
}

static void insert(hl_value **placed, int n, hl_value *v)
{
    int at = n;
    while (at > 0 && placed[at - 1]->offset > v->offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    placed[at] = v;
}

static halo_status place(hl_program *p, size_t *bytes)
{
    hl_value **order, **placed;
    halo_status st;
    int n = 0;
    *bytes = 0;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->values, sizeof(hl_value *), "value order", &order));
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->values, sizeof(hl_value *), "placed values", &placed),
            free_order);
    for (int i = 0; i < p->values; i++)
        if (in_arena(&p->value[i])) order[n++] = &p->value[i];
    qsort(order, (size_t)n, sizeof(*order), larger_first);
    for (int i = 0; i < n; i++) {
        order[i]->offset = best_gap(order[i], placed, i);
        insert(placed, i, order[i]);
        *bytes = (size_t)hl_max64((int64_t)*bytes, (int64_t)(order[i]->offset + order[i]->bytes));
    }
    free(placed);
free_order:
    free(order);
    return st;
}

/* ----------------------------------------------------------------------------------------------- the pass */

static void place_images(hl_program *p)
{
    p->image_bytes = 0;
    for (int i = 0; i < p->values; i++) {
        hl_value *v = &p->value[i];
        if (v->region != HL_REGION_IMAGES) continue;
        v->offset = p->image_bytes;
        p->image_bytes += (size_t)hl_round_up((int64_t)v->bytes, HL_ARENA_ALIGN);
    }
}

static size_t total(const hl_program *p, size_t arena)
{
    return arena + p->image_bytes + p->scratch_bytes + hl_model_weight_bytes(p->model) +
           hl_model_state_bytes(p->model);
}

static bool over_limit(const hl_program *p, size_t arena)
{
    return p->opt.memory_limit > 0 && total(p, arena) > p->opt.memory_limit;
}

/* Margins that stay zero by themselves need no op. */
static void drop_margin_steps(hl_program *p)
{
    int kept = 0;
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        const hl_value *y = s->use[HALO_Y].value >= 0 ? &p->value[s->use[HALO_Y].value] : NULL;
        bool idle = s->kind == HL_STEP_OP && s->desc.kind == HALO_OP_MARGIN && !s->desc.reverse && y->alone && has_zero_margin(y);
        if (!idle) p->step[kept++] = *s;
    }
    p->steps = kept;
}

static halo_status try_keep(hl_program *p, keep k, size_t most, keep *best)
{
    size_t bytes;
    find_alone(p, k);
    HL_TRY(place(p, &bytes));
    if (bytes <= most && !over_limit(p, bytes)) *best = k;
    return HALO_OK;
}

halo_status hl_pass_fit(hl_program *p)
{
    size_t least;
    keep best = KEEP_NONE;
    place_images(p);
    find_lifetimes(p);
    find_alone(p, KEEP_NONE);
    HL_TRY(place(p, &least));
    for (int k = KEEP_ACTIVATIONS; k <= KEEP_ALL && !p->off.no_alone; k++)
        HL_TRY(try_keep(p, (keep)k, least + least / 4, &best));
    find_alone(p, best);
    drop_margin_steps(p);
    find_lifetimes(p);
    return place(p, &p->arena_bytes);
}
