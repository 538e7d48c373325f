/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inplace.c -- which outputs overwrite an input of the same extents: the two become one value, with the wider
 * of their margins.
 *
 * Legal where the op allows it (activation, add and dropout forward; activation and norm backward on dy),
 * nobody uses the old content later and the op is the first to write the new. A max pool or a norm behind a
 * convolution does not need its own output in backward, an activation does: liveness decides all of it.
 */
#include "net/compile/compile.h"

typedef struct pair {
    halo_op_kind kind;
    halo_role from, to;
} pair;

static const pair allowed[] = {
    {HALO_OP_ACT_FWD, HALO_X, HALO_Y},   {HALO_OP_ADD, HALO_X, HALO_Y},
    {HALO_OP_ADD, HALO_X2, HALO_Y},      {HALO_OP_DROPOUT, HALO_X, HALO_Y},
    {HALO_OP_ACT_BWD, HALO_DY, HALO_DX}, {HALO_OP_NORM_BWD_APPLY, HALO_DY, HALO_DX},
};

static bool plain(const hl_use *u)
{
    for (int i = 0; i < 6; i++)
        if (u->grow[i / 2][i % 2]) return false;
    return u->c_ext == 0;
}

/* The same cells of both: all of them or, in a loop over slabs, those of one turn. */
static bool same_cells(const hl_step *s, const pair *k)
{
    const hl_use *from = &s->use[k->from], *to = &s->use[k->to];
    const int64_t none[3] = {0, 0, 0};
    if (!plain(from) || !plain(to) || memcmp(from->ext, to->ext, sizeof(none)) != 0 || memcmp(from->lo, to->lo, sizeof(none)) != 0) return false;
    return s->slabs > 0 || memcmp(from->ext, none, sizeof(none)) == 0;
}

/* Another turn of the same op, on other cells. */
static bool is_turn_of(const hl_step *s, const hl_step *of, const pair *k)
{
    return s->slabs > 0 && s->slabs == of->slabs && s->slab > of->slab && s->layer == of->layer && s->desc.kind == of->desc.kind &&
           s->use[k->from].value == of->use[k->from].value && s->use[k->to].value == of->use[k->to].value && same_cells(s, k);
}

static bool used_between(const hl_program *p, int value, int first, int last, int at, const pair *k)
{
    for (int i = first; i < last; i++)
        for (int r = 0; r < HALO_ROLES; r++)
            if (p->step[i].use[r].value == value && !is_turn_of(&p->step[i], &p->step[at], k)) return true;
    return false;
}

static int roles_of(const hl_step *s, int value)
{
    int n = 0;
    for (int r = 0; r < HALO_ROLES; r++) n += s->use[r].value == value;
    return n;
}

static bool legal(const hl_program *p, int at, int from, int to, const pair *k)
{
    const hl_value *x = &p->value[from], *y = &p->value[to];
    if (from == to || x->forever || y->forever || x->kind == HL_VALUE_PARAMETER) return false;
    if (x->dtype != y->dtype || x->cls != y->cls || memcmp(x->ext, y->ext, sizeof(x->ext)) != 0) return false;
    if (x->split != y->split || memcmp(x->whole, y->whole, sizeof(x->whole)) != 0) return false; /* the same on all processes */
    if (from == p->y[p->net->layers - 1]) return false; /* the host reads it at the end */
    if (roles_of(&p->step[at], from) != 1) return false;
    return !used_between(p, from, at + 1, p->steps, at, k) && !used_between(p, to, 0, at, at, k);
}

static void rename_value(hl_program *p, int from, int to)
{
    for (int i = 0; i < p->steps; i++)
        for (int r = 0; r < HALO_ROLES; r++)
            if (p->step[i].use[r].value == from) p->step[i].use[r].value = to;
    for (int i = 0; i < p->net->layers; i++) {
        if (p->y[i] == from) p->y[i] = to;
        if (p->g[i] == from) p->g[i] = to;
        if (p->other[i] == from) p->other[i] = to;
        if (p->g_other[i] == from) p->g_other[i] = to;
    }
    for (int i = 0; i < p->transfers; i++) {
        if (p->transfer[i].from == from) p->transfer[i].from = to;
        if (p->transfer[i].to == from) p->transfer[i].to = to;
    }
    p->value[from].dead = true;
    p->value[from].into = to;
}

static void try_pair(hl_program *p, int at, const pair *k)
{
    hl_step *s = &p->step[at];
    int from = s->use[k->from].value, to = s->use[k->to].value;
    if (s->kind != HL_STEP_OP || s->desc.kind != k->kind || from < 0 || to < 0 || !same_cells(s, k))
        return;
    if (k->kind == HALO_OP_ACT_BWD && s->desc.accumulate) return;
    if (!legal(p, at, from, to, k)) return;
    const hl_border b = hl_border_of(&p->value[to]);
    if (hl_widen_margin(&p->value[from], &b)) rename_value(p, to, from);
}

halo_status hl_pass_inplace(hl_program *p)
{
    for (int i = 0; i < p->steps && !p->off.no_inplace; i++)
        for (size_t k = 0; k < HL_COUNT(allowed); k++) try_pair(p, i, &allowed[k]);
    return HALO_OK;
}
