/* SPDX-License-Identifier: Apache-2.0 */
/*
 * views.c -- concatenations without copies: a piece lies in a range of channels of what it is joined into, and the steps that had it as a value of its own use that range. A stack to which
 * layer after layer adds is one buffer then, of which each layer reads a longer beginning, and what was a copy per piece and layer, forward and backward (quadratic in the layers of a
 * dense block: Pleiss et al., "Memory-efficient implementation of DenseNets", 2017), is nothing.
 *
 *   forward    copy piece -> range     the piece's makers write into the range
 *   backward   copy range -> piece     the first gradient of a piece is a range of the stack's, to which its other consumers add
 *
 * Of a copy at step t both sides are one when nobody uses the copy's target before t, and afterwards nobody who changes one of them is followed by somebody (or is one) who uses the other.
 * Where pieces are joined again that holds for the whole, so that views are made one after the other in the order of the steps.
 *
 * A copy stays where a view would not do: in layouts with blocks of channels ranges begin and end with a block; margins are written for whole values; what the host reads, what ranks
 * exchange as a value and what is made in slabs are values of their own. And where the device has no (fast) way for an operation on such a range, in the layout that it likes best.
 */
#include "net/compile/compile.h"

/* Channels of a value. */
typedef struct range {
    int value;
    int64_t lo, hi;
} range;

typedef struct views {
    hl_program *p;
    hl_step *before; /* [steps] as they came */
    bool *refused;   /* [values] the device cannot do with it as a view */
    int *into;       /* [values] whose view it is; -1: nobody's */
    int *alone;      /* [steps] ways of the device without views, in its favourite layout */
    hl_step *asked;  /* [steps] as it was asked about last, and what it said: most steps are the same in the next round */
    int *answer;
} views;

static int64_t channels_of(const hl_program *p, int value) { return p->value[value].ext[HALO_C]; }

static range range_of(const hl_program *p, const hl_use *u)
{
    const bool all = u->c_ext == 0 || u->flat;
    return (range){u->value, all ? 0 : u->c_lo, all ? channels_of(p, u->value) : u->c_lo + u->c_ext};
}

static bool meets(const range *a, const range *b) { return a->value == b->value && a->lo < b->hi && b->lo < a->hi; }

/* ------------------------------------------------------------------------------------------------------- what a step does to a range */

static bool uses(const hl_program *p, const hl_step *s, const range *r)
{
    for (int role = 0; role < HALO_ROLES; role++) {
        if (s->use[role].value != r->value) continue;
        const range u = range_of(p, &s->use[role]);
        if (meets(&u, r)) return true;
    }
    return false;
}

static bool changes(const hl_program *p, const hl_step *s, const range *r)
{
    for (int role = 0; role < HALO_ROLES; role++) {
        if (s->use[role].value != r->value || !hl_step_writes(s, (halo_role)role)) continue;
        const range u = range_of(p, &s->use[role]);
        if (meets(&u, r)) return true;
    }
    return false;
}

/* Steps that change one and use the other, from step `first` on: in one step, or the use behind the change. */
static bool disagree(const hl_program *p, int first, const range *a, const range *b)
{
    bool changed[2] = {false, false};
    for (int i = first; i < p->steps; i++) {
        const hl_step *s = &p->step[i];
        changed[0] = changed[0] || changes(p, s, a);
        changed[1] = changed[1] || changes(p, s, b);
        if ((changed[0] && uses(p, s, b)) || (changed[1] && uses(p, s, a))) return true;
    }
    return false;
}

static bool used_before(const hl_program *p, int at, const range *r)
{
    for (int i = 0; i < at; i++)
        if (uses(p, &p->step[i], r)) return true;
    return false;
}

/* ----------------------------------------------------------------------------------------------------------------- which copies */

static bool is_join(const hl_program *p, const hl_step *s)
{
    return s->kind == HL_STEP_OP && s->desc.kind == HALO_OP_COPY && s->layer >= 0 && hl_layer_of(p, s->layer)->kind == HL_LAYER_CONCAT;
}

/* All cells of the value, none beyond. */
static bool all_cells(const hl_use *u)
{
    for (int a = 0; a < 3; a++)
        if (u->ext[a] || u->lo[a] || u->grow[a][0] || u->grow[a][1] || u->margin[a][0] || u->margin[a][1]) return false;
    return !u->flat && u->rows <= 1;
}

static bool has_margin(const hl_value *v)
{
    for (int a = 0; a < 3; a++)
        if (v->margin[a][0] || v->margin[a][1]) return true;
    return v->near_any;
}

static bool travels(const hl_program *p, int value)
{
    for (int i = 0; i < p->transfers; i++)
        if (p->transfer[i].from == value || p->transfer[i].to == value) return true;
    return false;
}

static bool same_place(const hl_value *v, const hl_value *w)
{
    return v->ext[HALO_N] == w->ext[HALO_N] && memcmp(v->ext + HALO_D, w->ext + HALO_D, 3 * sizeof(int64_t)) == 0 && v->split == w->split && memcmp(v->lo, w->lo, sizeof(v->lo)) == 0 &&
           memcmp(v->whole, w->whole, sizeof(v->whole)) == 0;
}

/* Seen as a vector, which a part of a tensor is not. */
static bool seen_flat(const hl_program *p, int value)
{
    for (int i = 0; i < p->steps; i++)
        for (int r = 0; r < HALO_ROLES; r++)
            if (p->step[i].use[r].value == value && (p->step[i].use[r].flat || p->step[i].use[r].rows > 1)) return true;
    return false;
}

/* Why values cannot be a piece and its whole; NULL: they can. */
static const char *unlike(const hl_program *p, int piece, const range *whole)
{
    const hl_value *v = &p->value[piece], *w = &p->value[whole->value];
    if (v->cls != w->cls) return "it begins inside a block of channels";
    if (v->dtype != w->dtype) return "it is of another type";
    if (v->forever || w->forever || piece == p->y[p->net->layers - 1]) return "the host reads or writes it";
    if (has_margin(v) || has_margin(w)) return "there is a margin around it";
    if (seen_flat(p, piece)) return "it is used as a vector";
    if (!same_place(v, w) || travels(p, piece) || travels(p, whole->value)) return "ranks exchange it";
    const bool aligned = hl_aligned_channels(p, w->cls, whole->lo) && (whole->hi == channels_of(p, whole->value) || hl_aligned_channels(p, w->cls, whole->hi));
    return aligned ? NULL : "it begins or ends inside a block of channels";
}

/* The two sides of a copy: a value, and the channels of another. */
static bool sides_of(const hl_program *p, const hl_step *s, range *piece, range *whole)
{
    const hl_use *x = &s->use[HALO_X], *y = &s->use[HALO_Y];
    const bool out = y->c_ext > 0; /* forward, that is */
    if ((x->c_ext > 0) == out || !all_cells(x) || !all_cells(y)) return false;
    *piece = range_of(p, out ? x : y);
    *whole = range_of(p, out ? y : x);
    return piece->value != whole->value;
}

/* Why a copy has to be made; NULL: it has not. */
static const char *need_of(const views *b, int at, range *piece, range *whole)
{
    const hl_program *p = b->p;
    const hl_step *s = &p->step[at];
    if (s->slabs > 0) return "it is made in slabs";
    if (s->desc.accumulate) return "it is added to another gradient";
    if (!sides_of(p, s, piece, whole)) return "it begins inside a block of channels";
    const char *why = unlike(p, piece->value, whole);
    if (why) return why;
    if (b->refused[piece->value]) return "the device has no way for a part of a tensor there";
    const range *to = s->use[HALO_Y].value == piece->value ? piece : whole;
    return used_before(p, at, to) || disagree(p, at + 1, piece, whole) ? "it is needed on its own" : NULL;
}

/* ------------------------------------------------------------------------------------------------------------------ making views */

/* From now on the piece is those channels. Its copy becomes one of the channels to themselves. */
static void make_view(views *b, int piece, const range *whole)
{
    hl_program *p = b->p;
    const int64_t channels = channels_of(p, piece);
    for (int i = 0; i < p->steps; i++)
        for (int r = 0; r < HALO_ROLES; r++) {
            hl_use *u = &p->step[i].use[r];
            if (u->value != piece) continue;
            u->value = whole->value;
            u->c_lo += whole->lo;
            if (u->c_ext == 0) u->c_ext = channels;
        }
    b->into[piece] = whole->value;
}

static void make_views(views *b)
{
    hl_program *p = b->p;
    range piece, whole;
    memcpy(p->step, b->before, (size_t)p->steps * sizeof(*p->step));
    for (int v = 0; v < p->values; v++) b->into[v] = -1;
    for (int i = 0; i < p->steps; i++) {
        if (!is_join(p, &p->step[i])) continue;
        p->step[i].copied = need_of(b, i, &piece, &whole);
        if (!p->step[i].copied) make_view(b, piece.value, &whole);
    }
}

/* ---------------------------------------------------------------------------------------------------------------- asking the device */

/* 0: no way; 1: a reference implementation; 2: a better one. */
static int ways(const hl_program *p, hl_step *s)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    hl_step_operands(p, s);
    const int n = hl_step_valid(s) ? hl_op_candidates(p->dev, &s->desc, c) : 0;
    int best = 0;
    for (int i = 0; i < n; i++) best = c[i].reference && best < 2 ? 1 : 2;
    return best;
}

/* With views as they are now. */
static int ways_now(views *b, int at)
{
    hl_step now = b->p->step[at];
    if (b->answer[at] >= 0 && memcmp(now.use, b->asked[at].use, sizeof(now.use)) == 0) return b->answer[at];
    b->asked[at] = now;
    return b->answer[at] = ways(b->p, &now);
}

/* Refuses the pieces that a step uses and the device cannot do as it could when they were values of their own. */
static bool refuse(views *b, int at)
{
    const hl_step now = b->p->step[at], before = b->before[at];
    bool any = false;
    for (int r = 0; r < HALO_ROLES; r++) any = any || now.use[r].value != before.use[r].value;
    if (now.kind != HL_STEP_OP || !any || (is_join(b->p, &now) && !now.copied) || ways_now(b, at) >= b->alone[at]) return false;
    HL_DEBUG(b->p->ctx, "layout %s: no %s of layer '%s' in a part of a tensor", hl_layout_name(b->p->layout), hl_op_kind_name(now.desc.kind), hl_step_name(b->p, &now));
    for (int r = 0; r < HALO_ROLES; r++)
        if (now.use[r].value != before.use[r].value) b->refused[before.use[r].value] = true;
    return true;
}

/* The device's favourite among the layouts in which it has a way for everything without views: its geometry is set. Others may fall out of the choice by views. */
static halo_status set_favourite(views *b, bool *found)
{
    halo_layout layouts[HALO_LAYOUTS], input[HL_INPUT_LAYOUTS];
    const int n = hl_program_layouts(b->p, layouts);
    *found = false;
    for (int i = 0; i < n && !*found; i++) {
        hl_input_layouts(b->p, layouts[i], input);
        HL_TRY(hl_set_geometry(b->p, layouts[i], input[0]));
        *found = true;
        for (int k = 0; k < b->p->steps && *found; k++) {
            hl_step s = b->before[k];
            b->alone[k] = s.kind == HL_STEP_OP ? ways(b->p, &s) : 1;
            *found = b->alone[k] > 0;
        }
    }
    return HALO_OK;
}

static bool device_can(views *b)
{
    bool all = true;
    for (int k = 0; k < b->p->steps; k++)
        if (refuse(b, k)) all = false;
    return all;
}

/* ------------------------------------------------------------------------------------------------------------------------ the pass */

/* Copies of channels to themselves go; what became a view is no value any more. */
static void conclude(views *b)
{
    hl_program *p = b->p;
    int kept = 0;
    for (int i = 0; i < p->steps; i++)
        if (!is_join(p, &p->step[i]) || p->step[i].copied) p->step[kept++] = p->step[i];
    p->joined += p->steps - kept;
    p->steps = kept;
    for (int v = 0; v < p->values; v++) {
        if (b->into[v] < 0) continue;
        p->value[v].dead = true;
        p->value[v].into = b->into[v];
    }
}

halo_status hl_pass_views(hl_program *p)
{
    views b = {.p = p};
    bool any = false, found;
    halo_status st;
    for (int i = 0; i < p->steps; i++) any = any || is_join(p, &p->step[i]);
    if (!any || p->off.no_views) return HALO_OK;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->steps, sizeof(*b.before), "steps without views", &b.before));
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->values, sizeof(*b.refused), "views", &b.refused), done);
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->values, sizeof(*b.into), "views", &b.into), done);
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->steps, sizeof(*b.alone), "ways of steps", &b.alone), done);
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->steps, sizeof(*b.asked), "ways of steps", &b.asked), done);
    HL_GOTO(st, hl_calloc(p->ctx, (size_t)p->steps, sizeof(*b.answer), "ways of steps", &b.answer), done);
    memcpy(b.before, p->step, (size_t)p->steps * sizeof(*b.before));
    for (int i = 0; i < p->steps; i++) b.answer[i] = -1;
    HL_GOTO(st, set_favourite(&b, &found), done);
    if (!found) goto done; /* choose says what is missing */
    do make_views(&b);
    while (!device_can(&b));
    conclude(&b);
done:
    free(b.answer);
    free(b.asked);
    free(b.alone);
    free(b.into);
    free(b.refused);
    free(b.before);
    return st;
}
