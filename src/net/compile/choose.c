/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.c -- one layout for all activations of the program, and an implementation per op.
 *
 * Every layout that the device can use is tried on the whole program, so that nothing is reordered between
 * the first convolution and flatten; a network input of fewer channels than a block stays channels-last or
 * plain if it can (the first convolution reads it as it is). A layout in which an op has no candidate is out;
 * so is one that needs more reference implementations than another. Of those that are left the device's
 * favourite is taken (`fixed`, each op's first candidate), or the one whose ops take least time in all
 * (`measure`, each op's fastest).
 */
#include "net/compile/compile.h"

#include "comm/comm.h"
#include "cost/choices.h"

typedef struct pairing {
    halo_layout layout, input;
    int references;
    double seconds;
} pairing;

enum { MAX_PAIRINGS = HL_INPUT_LAYOUTS * HALO_LAYOUTS };

static int list_pairings(const hl_program *p, pairing out[MAX_PAIRINGS])
{
    halo_layout layouts[HALO_LAYOUTS], input[HL_INPUT_LAYOUTS];
    int n = hl_program_layouts(p, layouts), m = 0;
    for (int i = 0; i < n; i++) {
        int k = hl_input_layouts(p, layouts[i], input);
        for (int j = 0; j < k; j++) out[m++] = (pairing){.layout = layouts[i], .input = input[j]};
    }
    return m;
}

/* The first step without a candidate, or NULL; counts references among the first candidates that are not. */
static const hl_step *infeasible(hl_program *p, int *references)
{
    *references = 0;
    for (int i = 0; i < p->steps; i++) {
        halo_candidate c[HALO_MAX_CANDIDATES];
        hl_step *s = &p->step[i];
        if (s->kind != HL_STEP_OP) continue;
        hl_step_operands(p, s);
        int n = hl_step_valid(s) ? hl_op_candidates(p->dev, &s->desc, c) : 0;
        if (n == 0) return s;
        bool reference = true;
        for (int k = 0; k < n; k++) reference = reference && c[k].reference;
        *references += reference;
    }
    return NULL;
}

static halo_status no_way(hl_program *p, const hl_step *s)
{
    halo_device_info info = {.name = ""};
    p->dev->ops->describe(p->dev, &info);
    return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED,
                   "layer '%s': no implementation of %s for these shapes on '%s'", hl_step_name(p, s),
                   hl_op_kind_name(s->desc.kind), info.name);
}

/* Layouts are what neighbouring processes have to have in common: margins travel as they are stored. */
static bool together(const hl_program *p) { return p->opt.team && hl_grid_split(&p->grid); }

/* Pairings that every process of the group can use, references of all counted. */
static halo_status agree_on_pairings(hl_program *p, pairing *list, int n)
{
    double x[MAX_PAIRINGS];
    if (!together(p)) return HALO_OK;
    for (int i = 0; i < n; i++) x[i] = list[i].references;
    HL_TRY(hl_comm_max(p->opt.team->group, x, n));
    for (int i = 0; i < n; i++) list[i].references = (int)x[i];
    return HALO_OK;
}

static halo_status agree_on_best(hl_program *p, pairing *list, int n, int *best)
{
    double x[MAX_PAIRINGS];
    if (!together(p)) return HALO_OK;
    for (int i = 0; i < n; i++) x[i] = list[i].seconds;
    HL_TRY(hl_comm_sum(p->opt.team->group, x, n));
    for (int i = *best = 0; i < n; i++)
        if (x[i] < x[*best]) *best = i;
    return HALO_OK;
}

/* An input of few channels with lanes of zeros is for when nothing else works. */
static bool spare(const pairing *list, int i)
{
    for (int k = 0; k < i; k++)
        if (list[k].layout == list[i].layout && list[k].references < INT32_MAX)
            return list[i].input == list[i].layout;
    return false;
}

/* Keeps the pairings that work with the fewest references. */
static halo_status filter(hl_program *p, pairing *list, int *n)
{
    int kept = 0, least = INT32_MAX;
    const hl_step *bad = NULL;
    for (int i = 0; i < *n; i++) {
        if (!together(p) && spare(list, i)) {
            list[i].references = INT32_MAX;
            continue;
        }
        HL_TRY(hl_set_geometry(p, list[i].layout, list[i].input));
        const hl_step *s = infeasible(p, &list[i].references);
        if (s && !bad) bad = s;
        if (s)
            HL_DEBUG(p->ctx, "layout %s, input %s: no %s of layer '%s'", hl_layout_name(list[i].layout),
                     hl_layout_name(list[i].input), hl_op_kind_name(s->desc.kind), hl_step_name(p, s));
        if (s) list[i].references = INT32_MAX;
    }
    HL_TRY(agree_on_pairings(p, list, *n));
    for (int i = 0; i < *n; i++)
        if (list[i].references < least) least = list[i].references;
    for (int i = 0; i < *n; i++)
        if (list[i].references == least && least < INT32_MAX) list[kept++] = list[i];
    if (kept == 0 && !bad)
        return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "the backend has no layout '%s'",
                       hl_layout_name(p->opt.layout));
    if (kept == 0) return no_way(p, bad);
    *n = kept;
    return HALO_OK;
}

/* Gives up, with what it has, when the ops take longer than `enough`: another pairing is faster then. */
static halo_status choose_ops(hl_program *p, hl_choices *choices, pairing *k, bool measure, double enough)
{
    HL_TRY(hl_set_geometry(p, k->layout, k->input));
    k->seconds = 0;
    for (int i = 0; i < p->steps && k->seconds <= enough; i++) {
        hl_step *s = &p->step[i];
        double seconds;
        if (s->kind != HL_STEP_OP) continue;
        hl_step_operands(p, s);
        HL_TRY(hl_choices_pick(choices, &s->desc, measure, &s->choice, &seconds));
        k->seconds += seconds;
    }
    return HALO_OK;
}

static halo_status choose_pairing(hl_program *p, hl_choices *choices, pairing *list, int n)
{
    bool measure = p->opt.plan == HL_PLAN_MEASURE && n > 1;
    int best = 0;
    for (int i = 0; i < n && measure; i++) {
        bool all = i == 0 || together(p); /* processes of a group add up their seconds, so none may give up */
        HL_TRY(choose_ops(p, choices, &list[i], true, all ? INFINITY : list[best].seconds));
        HL_DEBUG(p->ctx, "layout %s, input %s: %.3g s a step", hl_layout_name(list[i].layout),
                 hl_layout_name(list[i].input), list[i].seconds);
        if (list[i].seconds < list[best].seconds) best = i;
    }
    if (measure) HL_TRY(agree_on_best(p, list, n, &best));
    HL_TRY(choose_ops(p, choices, &list[best], p->opt.plan == HL_PLAN_MEASURE, INFINITY));
    p->layout_seconds = list[best].seconds;
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------- images of weights */

static halo_status new_image(hl_program *p, const hl_step *user, int *value)
{
    int param = p->value[user->use[HALO_WT].value].param;
    halo_candidate c[HALO_MAX_CANDIDATES];
    hl_step *s;
    HL_TRY(hl_value_new(p, HL_VALUE_IMAGE, user->layer, ".image", value));
    hl_value *v = &p->value[*value];
    v->region = HL_REGION_IMAGES;
    v->param = param;
    v->image = user->choice.image;
    v->forever = true;
    v->dtype = HALO_U8;
    v->ext[HALO_W] = (int64_t)user->choice.image_bytes;
    v->operand = hl_operand_flat(HALO_U8, v->ext[HALO_W]);
    v->bytes = user->choice.image_bytes;
    halo_window window = user->desc.window;
    int master = user->use[HALO_WT].value;
    HL_TRY(hl_op_new(p, HALO_OP_CONV_IMAGE, HL_PHASE_IMAGES, user->layer, &s));
    s->use[HALO_X] = hl_use_of(master);
    s->use[HALO_Y] = hl_use_of(*value);
    s->desc.window = window;
    s->desc.image = v->image;
    hl_step_operands(p, s);
    if (hl_op_candidates(p->dev, &s->desc, c) == 0) return no_way(p, s);
    s->choice = c[0];
    return HALO_OK;
}

static int find_image(const hl_program *p, const hl_step *user)
{
    for (int i = 0; i < p->values; i++) {
        const hl_value *v = &p->value[i];
        if (v->kind == HL_VALUE_IMAGE && v->param == p->value[user->use[HALO_WT].value].param &&
            v->image == user->choice.image && v->bytes == user->choice.image_bytes)
            return i;
    }
    return -1;
}

/* Passes of one convolution may want the same image: it is made once. */
static halo_status make_images(hl_program *p)
{
    int n = p->steps;
    for (int i = 0; i < n; i++) {
        if (p->step[i].choice.image == 0 || p->step[i].use[HALO_WT].value < 0) continue;
        hl_step user = p->step[i];
        int value = find_image(p, &user);
        if (value < 0) HL_TRY(new_image(p, &user, &value));
        p->step[i].image = value;
    }
    return hl_sort_steps(p);
}

static halo_status count_costs(hl_program *p)
{
    p->scratch_bytes = 0;
    for (int i = 0; i < p->steps; i++) {
        if (p->step[i].kind != HL_STEP_OP) continue;
        hl_cost c = hl_op_cost(&p->step[i].desc);
        p->step[i].flops = c.flops;
        p->step[i].bytes = c.bytes;
        if (p->step[i].choice.scratch > p->scratch_bytes) p->scratch_bytes = p->step[i].choice.scratch;
    }
    p->scratch_bytes += hl_landing_bytes(p);
    for (int i = 0; i < p->transfers; i++) HL_TRY(hl_transfer_count(p, &p->transfer[i]));
    return HALO_OK;
}

halo_status hl_pass_choose(hl_program *p)
{
    pairing list[MAX_PAIRINGS];
    int n = list_pairings(p, list);
    hl_choices *choices;
    HL_TRY(filter(p, list, &n));
    HL_TRY(hl_choices_open(p->dev, p->opt.plan_cache, p->opt.plan_shared, &choices));
    halo_status st = choose_pairing(p, choices, list, n);
    if (st == HALO_OK) st = hl_choices_save(choices);
    hl_choices_close(choices);
    HL_TRY(st);
    HL_TRY(make_images(p));
    return count_costs(p);
}
