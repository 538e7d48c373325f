/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.c -- transfers begin as early and end as late as their data allow, and what waits for one is made smaller.
 *
 * Backward-weights needs no margin of dy, so the margin that backward-data will read travels meanwhile. Forward there is nothing between a layer and the next:
 * a convolution or pool whose input's margins are on their way is cut into its interior, the outputs whose windows hold cells of the block alone, which is
 * computed first, and up to six slabs of border:
 *
 *     start, interior, finish, border           border: low and high slab of d, of the rest along h, of the rest along w
 *
 * Not where that is too little to pay for, and not where cells of a periodic axis that is not cut have to be copied in between.
 */
#include "net/compile/compile.h"

/* Below this a slab's call costs as much as the message that it hides. */
#define LEAST_FLOPS 2e8
#define LEAST_SHARE 0.5

/* ------------------------------------------------------------------------------------------------------ order of steps */

static void move(hl_program *p, int from, int to)
{
    const hl_step s = p->step[from];
    if (to < from) memmove(&p->step[to + 1], &p->step[to], (size_t)(from - to) * sizeof(s));
    if (to > from) memmove(&p->step[from], &p->step[from + 1], (size_t)(to - from) * sizeof(s));
    p->step[to] = s;
}

static bool uses(const hl_step *s, int value)
{
    for (int r = 0; r < HALO_ROLES; r++)
        if (s->use[r].value == value) return true;
    return false;
}

/* A step behind which margins of the value may leave: one that writes it, or belongs to another transfer of it. */
static bool holds_back(const hl_step *s, int value)
{
    for (int r = 0; r < HALO_ROLES; r++)
        if (s->use[r].value == value && (s->kind != HL_STEP_OP || hl_step_writes(s, r))) return true;
    return false;
}

static void start_early(hl_program *p, int i)
{
    const hl_transfer *t = &p->transfer[p->step[i].transfer];
    if (t->kind != HL_TRANSFER_MARGINS) return;
    int to = i;
    while (to > 0 && p->step[to - 1].phase == p->step[i].phase && !holds_back(&p->step[to - 1], t->from)) to--;
    move(p, i, to);
}

static void finish_late(hl_program *p, int i)
{
    const hl_transfer *t = &p->transfer[p->step[i].transfer];
    int to = i;
    while (to + 1 < p->steps && p->step[to + 1].phase == p->step[i].phase && !uses(&p->step[to + 1], t->from) && !uses(&p->step[to + 1], t->to)) to++;
    move(p, i, to);
}

/* ---------------------------------------------------------------------------------------------------- interior, border */

static bool can_cut(const hl_step *s, int value)
{
    if (s->kind != HL_STEP_OP || s->phase != HL_PHASE_FORWARD || s->use[HALO_X].value != value || !s->use[HALO_X].near) return false;
    return s->slabs == 0 && (s->desc.kind == HALO_OP_CONV_FWD || s->desc.kind == HALO_OP_CONV_POOL_FWD || s->desc.kind == HALO_OP_POOL_FWD);
}

/* Outputs along an axis whose windows need no margin. */
static hl_range inner(const hl_program *p, const hl_step *s, int axis)
{
    const hl_use *x = &s->use[HALO_X];
    const halo_window whole = hl_desc_window(&s->desc), *w = &whole;
    int64_t n = p->value[x->value].ext[HALO_D + axis], m = p->value[s->use[HALO_Y].value].ext[HALO_D + axis];
    int64_t stride = w->stride[axis], pad = w->pad_lo[axis], last = n - w->dilation[axis] * (w->kernel[axis] - 1) - 1 + pad;
    hl_range r = {0, m};
    if (p->value[x->value].mode[axis] != HALO_MARGIN_KEEP) return r;
    if (x->margin[axis][0] && pad > 0) r.lo = hl_min64(m, hl_div_up(pad, stride));
    if (x->margin[axis][1]) r.hi = hl_max64(r.lo, hl_min64(m, last < 0 ? 0 : last / stride + 1));
    return r;
}

static double flops_of(const hl_program *p, const hl_step *s)
{
    const halo_window *w = &s->desc.window;
    const int64_t *y = p->value[s->use[HALO_Y].value].ext;
    const int64_t *side = s->desc.pool_side;
    bool pooled = s->desc.kind == HALO_OP_CONV_POOL_FWD;
    double taps = (double)(w->kernel[0] * w->kernel[1] * w->kernel[2]), in = (double)p->value[s->use[HALO_X].value].ext[HALO_C];
    if (pooled) taps *= (double)(side[0] * side[1] * side[2]);
    return 2 * taps * (s->desc.kind == HALO_OP_POOL_FWD ? 1 : in) * (double)(y[0] * y[1] * y[2] * y[3] * y[4]);
}

static bool worth(const hl_program *p, const hl_step *s, const hl_range r[3])
{
    double share = 1;
    for (int a = 0; a < 3; a++) share *= (double)hl_range_len(r[a]) / (double)p->value[s->use[HALO_Y].value].ext[HALO_D + a];
    return share > 0 && share < 1 && (p->off.cut_all || (share >= LEAST_SHARE && flops_of(p, s) >= LEAST_FLOPS));
}

/* The op for outputs [lo, hi) of each axis alone. */
static halo_status add_part(hl_program *p, const hl_step *of, const hl_range r[3])
{
    static const halo_role written[] = {HALO_Y, HALO_AUX};
    for (int a = 0; a < 3; a++)
        if (hl_range_len(r[a]) == 0) return HALO_OK;
    HL_TRY(hl_step_again(p, of));
    hl_step *s = &p->step[p->steps - 1];
    for (int a = 0; a < 3; a++) {
        for (size_t k = 0; k < HL_COUNT(written); k++) {
            s->use[written[k]].lo[a] = r[a].lo;
            s->use[written[k]].ext[a] = hl_range_len(r[a]);
        }
        s->desc.window.pad_lo[a] -= r[a].lo * hl_desc_window(&s->desc).stride[a];
    }
    return HALO_OK;
}

static halo_status add_border(hl_program *p, const hl_step *of, const hl_range inside[3])
{
    const int64_t *ext = p->value[of->use[HALO_Y].value].ext + HALO_D;
    for (int a = 0; a < 3; a++) {
        hl_range r[3];
        for (int b = 0; b < 3; b++) r[b] = b < a ? inside[b] : (hl_range){0, ext[b]};
        r[a] = (hl_range){0, inside[a].lo};
        HL_TRY(add_part(p, of, r));
        r[a] = (hl_range){inside[a].hi, ext[a]};
        HL_TRY(add_part(p, of, r));
    }
    return HALO_OK;
}

/* `finish` and the step behind it. */
static halo_status cut(hl_program *p, const hl_step *finish, const hl_step *reader, bool *done)
{
    hl_range inside[3];
    *done = false;
    if (finish->kind != HL_STEP_FINISH || !can_cut(reader, p->transfer[finish->transfer].to)) return HALO_OK;
    for (int a = 0; a < 3; a++) inside[a] = inner(p, reader, a);
    if (!worth(p, reader, inside)) return HALO_OK;
    *done = true;
    HL_TRY(add_part(p, reader, inside));
    for (int a = 0; a < 3; a++)
        if (p->value[reader->use[HALO_X].value].mode[a] == HALO_MARGIN_KEEP) memset(p->step[p->steps - 1].use[HALO_X].margin[a], 0, sizeof(int64_t[2]));
    HL_TRY(hl_step_again(p, finish));
    return add_border(p, reader, inside);
}

static halo_status cut_all(hl_program *p, const hl_step *old, int n)
{
    for (int i = 0; i < n; i++) {
        bool done = false;
        if (i + 1 < n) HL_TRY(cut(p, &old[i], &old[i + 1], &done));
        if (done)
            i++;
        else
            HL_TRY(hl_step_again(p, &old[i]));
    }
    return HALO_OK;
}

halo_status hl_pass_overlap(hl_program *p)
{
    if (p->transfers == 0 || p->off.no_overlap) return HALO_OK;
    for (int i = 0; i < p->steps; i++)
        if (p->step[i].kind == HL_STEP_START) start_early(p, i);
    for (int i = p->steps - 1; i >= 0; i--)
        if (p->step[i].kind == HL_STEP_FINISH) finish_late(p, i);
    int n;
    hl_step *old = hl_take_steps(p, &n);
    halo_status st = cut_all(p, old, n);
    free(old);
    return st;
}
