/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transient.c -- which values can be made anew in slabs instead of being stored: those all of whose ops can be cut into parts along the axis of slabs, because it is known
 * which cells of one operand follow from which of another.
 */
#include "net/compile/slabs.h"

static const hl_relation relations[HALO_OP_KINDS] = {
    [HALO_OP_CONV_FWD] = {true, HALO_Y, HL_ROLE_BIT(HALO_AUX), HL_ROLE_BIT(HALO_X), 0},
    [HALO_OP_CONV_BWD_DATA] = {true, HALO_DX, 0, 0, HL_ROLE_BIT(HALO_DY)},
    [HALO_OP_CONV_BWD_WEIGHTS] = {true, HALO_DY, 0, HL_ROLE_BIT(HALO_X), 0},
    [HALO_OP_POOL_FWD] = {true, HALO_Y, HL_ROLE_BIT(HALO_AUX), HL_ROLE_BIT(HALO_X), 0},
    [HALO_OP_POOL_BWD] = {true, HALO_DX, 0, 0, HL_ROLE_BIT(HALO_DY) | HL_ROLE_BIT(HALO_AUX)},
    [HALO_OP_CONV_POOL_FWD] = {true, HALO_Y, HL_ROLE_BIT(HALO_AUX), HL_ROLE_BIT(HALO_X), 0},
    [HALO_OP_ACT_POOL_BWD] = {true, HALO_DX, 0, 0, HL_ROLE_BIT(HALO_DY) | HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_AUX)},
    [HALO_OP_NORM_STATS] = {true, HALO_X, 0, 0, 0},
    [HALO_OP_NORM_APPLY] = {true, HALO_Y, HL_ROLE_BIT(HALO_X), 0, 0},
    [HALO_OP_NORM_BWD_STATS] = {true, HALO_DY, HL_ROLE_BIT(HALO_X), 0, 0},
    [HALO_OP_NORM_BWD_APPLY] = {true, HALO_DX, HL_ROLE_BIT(HALO_X) | HL_ROLE_BIT(HALO_DY), 0, 0},
    [HALO_OP_ACT_FWD] = {true, HALO_Y, HL_ROLE_BIT(HALO_X), 0, 0},
    [HALO_OP_ACT_BWD] = {true, HALO_DX, HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_DY), 0, 0},
    [HALO_OP_ADD] = {true, HALO_Y, HL_ROLE_BIT(HALO_X) | HL_ROLE_BIT(HALO_X2), 0, 0},
    [HALO_OP_COPY] = {true, HALO_Y, HL_ROLE_BIT(HALO_X), 0, 0},
    [HALO_OP_DROPOUT] = {true, HALO_Y, HL_ROLE_BIT(HALO_X), 0, 0},
    [HALO_OP_BIAS_BWD] = {true, HALO_DY, 0, 0, 0},
};

unsigned hl_relation_roles(const hl_relation *k) { return HL_ROLE_BIT(k->drive) | k->same | k->need | k->reach; }

const hl_relation *hl_relation_of(const hl_step *s) { return &relations[s->desc.kind]; }

int hl_slab_axis(const hl_program *p) { return p->value[p->y[0]].whole[0] > 1 ? 0 : 1; }

hl_window1 hl_step_window(const hl_step *s, int a)
{
    const halo_window w = hl_desc_window(&s->desc);
    return (hl_window1){w.kernel[a], w.stride[a], w.pad_lo[a], w.dilation[a]};
}

/* The windows of a pool, one beside the other. Those of its backward have to be whole, as their cells are counted. */
static bool tiles(const hl_step *s, int a)
{
    const hl_window1 w = hl_step_window(s, a);
    return w.k == w.s && w.l == 1;
}

/* Backward of a pool whose windows have to be whole. */
bool hl_step_unpools(const hl_step *s, int a)
{
    return s->kind == HL_STEP_OP && (s->desc.kind == HALO_OP_POOL_BWD || (s->desc.kind == HALO_OP_ACT_POOL_BWD && !tiles(s, a)));
}

static bool can_cut(const hl_step *s, int a)
{
    const hl_relation *k = hl_relation_of(s);
    if (s->kind != HL_STEP_OP || (s->phase != HL_PHASE_FORWARD && s->phase != HL_PHASE_BACKWARD) || !k->known) return false;
    for EACH_ROLE(r) {
        const hl_use *u = &s->use[r];
        if (u->value < 0 || !(hl_relation_roles(k) & HL_ROLE_BIT(r))) continue;
        if (u->flat || u->rows > 1 || u->grow[a][0] || u->grow[a][1] || u->ext[a]) return false;
    }
    return true;
}

/* What it writes beside the value is none that is stored cell by cell: of that some cells might never be asked for. */
static bool writes_alone(const hl_step *s, halo_role role)
{
    const hl_relation *k = hl_relation_of(s);
    for EACH_ROLE(r)
        if (r != role && (hl_relation_roles(k) & HL_ROLE_BIT(r)) && hl_step_writes(s, r)) return false;
    return role == k->drive;
}

static bool may_be_used(const hl_step *s, int value, int a)
{
    for EACH_ROLE(r) {
        if (s->use[r].value != value) continue;
        if (!can_cut(s, a) || !(hl_relation_roles(hl_relation_of(s)) & HL_ROLE_BIT(r))) return false;
        if (hl_step_writes(s, r) && !writes_alone(s, r)) return false;
        if (hl_step_unpools(s, a) && r != HALO_DX && !tiles(s, a)) return false;
    }
    return true;
}

bool hl_may_be_transient(const hl_program *p, int value)
{
    const hl_value *v = &p->value[value];
    const int a = hl_slab_axis(p);
    if (v->dead || v->forever || (v->kind != HL_VALUE_ACTIVATION && v->kind != HL_VALUE_GRADIENT)) return false;
    if (value == p->y[0] || value == p->y[p->net->layers - 1] || v->ext[HALO_D + a] < 2) return false;
    if (v->near_any || ((v->margin[a][0] || v->margin[a][1]) && v->mode[a] != HALO_MARGIN_ZERO)) return false;
    int pools = 0, readers = 0;
    for (int i = 0; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        if (!may_be_used(s, value, a)) return false;
        pools += hl_step_unpools(s, a) && s->use[HALO_DX].value == value;
        for EACH_ROLE(r) readers += s->use[r].value == value && hl_step_reads(s, r);
    }
    return pools <= 1 && readers > 0; /* what nobody reads nobody asks for, and the rest of what its op writes would not come about */
}
