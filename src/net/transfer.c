/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c -- which cells of a value go to which process of the spatial group, as messages between strided parts of memory (comm/exchange.h).
 *
 * MARGINS, axis after axis, d, h, w, a stage each: a process sends the cells at the ends of its block, with the margins of the axes before, which have come by
 * then, so that corners arrive though only neighbours talk:
 *
 *     low cells  -> the process before, its high margin         high cells -> the one behind, its low margin
 *
 * FOLD is the adjoint: w, h, d; margins are sent to where their cells are and added there. GATHER: each block to everybody.
 */
#include "net/ir.h"

/* Cells [lo, lo + ext) of D H W, counted from the value's box; all samples and channels, padding lanes included. */
typedef struct cells {
    int64_t lo[3], ext[3];
} cells;

static cells box_of(const hl_value *v)
{
    cells c = {{0}, {v->ext[HALO_D], v->ext[HALO_H], v->ext[HALO_W]}};
    return c;
}

static hl_region region_of(const hl_value *v, const cells *c)
{
    const halo_operand *o = &v->operand;
    hl_strides t = hl_operand_strides(o);
    int64_t at[3];
    for (int a = 0; a < 3; a++) at[a] = o->lo[HALO_D + a] + c->lo[a];
    return (hl_region){
        .offset = hl_offset(&t, o->lo[HALO_N], 0, at[0], at[1], at[2]),
        .run = c->ext[2] * t.s[HALO_W],
        .count = {o->ext[HALO_N], hl_div_up(o->alloc[HALO_C], t.block), c->ext[0], c->ext[1], 1},
        .stride = {t.s[HALO_N], t.s[HALO_C], t.s[HALO_D], t.s[HALO_H], 0},
    };
}

typedef struct list {
    hl_message *message;
    int n;
} list;

static void add(list *l, const hl_value *v, const cells *c, bool send, bool sum, int stage, int64_t peer, int tag)
{
    l->message[l->n++] = (hl_message){.send = send, .add = sum, .stage = stage, .peer = (int)peer, .tag = tag, .region = region_of(v, c)};
}

static cells slab(const cells *of, int axis, int64_t lo, int64_t n)
{
    cells c = *of;
    c.lo[axis] = lo;
    c.ext[axis] = n;
    return c;
}

/* The process `step` places further along an axis; neighbours across the border of a periodic axis too. */
static int64_t neighbour(const hl_program *p, int axis, int step)
{
    int64_t at[3];
    memcpy(at, p->grid.at, sizeof(at));
    at[axis] += step;
    return hl_grid_number_at(&p->grid, at);
}

/* Both directions of one axis. Downwards: low cells become, or come from, the high margin of the process before; upwards the mirror image. */
static void axis_messages(const hl_program *p, const hl_transfer *t, const hl_value *v, int axis, const cells *reach, int stage, list *l)
{
    const bool fold = t->kind == HL_TRANSFER_FOLD;
    const int64_t n = v->ext[HALO_D + axis], *margin = t->margin[axis], *near = t->near[axis];
    const int64_t before = neighbour(p, axis, -1), behind = neighbour(p, axis, 1);
    const int down = 2 * axis, up = 2 * axis + 1;
    const cells low = slab(reach, axis, 0, near[0]), high_margin = slab(reach, axis, n, margin[1]);
    const cells high = slab(reach, axis, n - near[1], near[1]), low_margin = slab(reach, axis, -margin[0], margin[0]);
    if (near[0]) add(l, v, &low, !fold, fold, stage, before, fold ? up : down);
    if (margin[1]) add(l, v, &high_margin, fold, false, stage, behind, fold ? up : down);
    if (near[1]) add(l, v, &high, !fold, fold, stage, behind, fold ? down : up);
    if (margin[0]) add(l, v, &low_margin, fold, false, stage, before, fold ? down : up);
}

static void border_messages(const hl_program *p, const hl_transfer *t, list *l)
{
    const hl_value *v = &p->value[t->to];
    const bool fold = t->kind == HL_TRANSFER_FOLD;
    for (int axis = 0; axis < 3; axis++) {
        cells reach = box_of(v);
        for (int a = 0; a < axis; a++) {
            reach.lo[a] -= t->margin[a][0];
            reach.ext[a] += t->margin[a][0] + t->margin[a][1];
        }
        axis_messages(p, t, v, axis, &reach, fold ? 2 - axis : axis, l);
    }
}

/* Of the whole, the block of process `number` along an axis. */
static cells block_of(const hl_program *p, const hl_value *whole, int64_t number)
{
    hl_grid g = hl_grid_peer(&p->grid, number);
    cells c;
    for (int a = 0; a < 3; a++) {
        hl_range r = hl_grid_range(&g, a, whole->whole[a]);
        c.lo[a] = r.lo;
        c.ext[a] = hl_range_len(r);
    }
    return c;
}

static void gather_messages(const hl_program *p, const hl_transfer *t, list *l)
{
    const hl_value *block = &p->value[t->from], *whole = &p->value[t->to];
    const cells mine = box_of(block);
    for (int64_t i = 0; i < hl_grid_group(&p->grid); i++) {
        if (i == hl_grid_number(&p->grid)) continue;
        const cells theirs = block_of(p, whole, i);
        add(l, block, &mine, true, false, 0, i, 0);
        add(l, whole, &theirs, false, t->add, 0, i, 0);
    }
}

/* KEEP margins are those of the value, as wide as all its readers made them. */
static hl_transfer settled(const hl_program *p, const hl_transfer *t)
{
    hl_transfer s = *t;
    const hl_value *v = &p->value[t->to];
    for (int a = 0; a < 3; a++) {
        bool keep = v->mode[a] == HALO_MARGIN_KEEP && p->grid.part[a] > 1;
        if (t->kind == HL_TRANSFER_MARGINS && keep) {
            memcpy(s.margin[a], v->margin[a], sizeof(s.margin[a]));
            memcpy(s.near[a], v->near[a], sizeof(s.near[a]));
        } else if (!keep) {
            memset(s.margin[a], 0, sizeof(s.margin[a]));
            memset(s.near[a], 0, sizeof(s.near[a]));
        }
    }
    return s;
}

halo_status hl_transfer_messages(const hl_program *p, const hl_transfer *t, hl_message **message, int *n)
{
    list l = {.n = 0};
    size_t most = t->kind == HL_TRANSFER_GATHER ? 2 * (size_t)hl_grid_group(&p->grid) : 12;
    const hl_transfer s = settled(p, t);
    HL_TRY(hl_calloc(p->ctx, most, sizeof(*l.message), "messages of a transfer", &l.message));
    if (t->kind == HL_TRANSFER_GATHER)
        gather_messages(p, &s, &l);
    else
        border_messages(p, &s, &l);
    *message = l.message;
    *n = l.n;
    return HALO_OK;
}

halo_status hl_transfer_count(hl_program *p, hl_transfer *t)
{
    hl_message *message;
    int n;
    HL_TRY(hl_transfer_messages(p, t, &message, &n));
    t->bytes = t->messages = 0;
    for (int i = 0; i < n; i++) {
        if (!message[i].send || message[i].peer == (int)hl_grid_number(&p->grid)) continue;
        t->messages++;
        t->bytes += hl_region_elements(&message[i].region) * (int64_t)hl_dtype_size(p->value[t->to].dtype);
    }
    free(message);
    return HALO_OK;
}

halo_status hl_transfer_new(hl_program *p, const hl_transfer *t, hl_phase phase)
{
    HL_TRY(hl_grow(p->ctx, &p->transfer, &p->transfer_cap, (size_t)p->transfers + 1, sizeof(*p->transfer), "transfers between ranks"));
    p->transfer[p->transfers] = *t;
    for (int k = 0; k < 2; k++) {
        hl_step *s;
        HL_TRY(hl_step_new(p, k == 0 ? HL_STEP_START : HL_STEP_FINISH, phase, t->layer, &s));
        s->transfer = p->transfers;
        s->use[HALO_X] = hl_use_of(t->from);
        s->use[HALO_Y] = hl_use_of(t->to);
    }
    p->transfers++;
    return HALO_OK;
}
