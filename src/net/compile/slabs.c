/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.c -- values that are never there as a whole. Which they are `economise` decides (economy.c), when the memory limit asks for it.
 *
 * Steps that make such a *transient* value alone are taken out of the program. A step that reads one and leaves something that stays (a *sink*: what is stored,
 * sums over the volume, gradients of weights) becomes a loop over slabs of the volume, virtual ranks in time: each turn first makes the parts of transient
 * values that the sink's slab needs, margins included, by the steps that were taken out, cut to those cells:
 *
 *     conv1 -> act -> pool   |   pool' -> act' -> conv1 weights'      become, with a and a's gradient transient,
 *     for each slab { a = conv1(x); p[slab] = pool(a) }   |   for each slab { a = conv1(x); g = pool'(dp); g = act'(a, g); dw += conv1 weights'(x, g) }
 *
 * One slab of all is recomputation (Griewank & Walther 2000; Chen et al., "Training deep nets with sublinear memory cost", 2016). Sinks side by side share a
 * loop unless one needs all of what another leaves, as the application of a batch norm needs its statistics. The loops are unrolled: every turn has steps and
 * values of its own, which `fit` lays into the same bytes.
 *
 * Cells are counted within this process's block. A part's window is the layer's with the padding moved by where its operands begin: pad + x.lo - stride y.lo.
 */
#include "net/compile/slabs.h"

/* -------------------------------------------------------------------------------------------------- the rewriting */

typedef struct slabs {
    hl_program *p;
    int axis;
    const hl_step *step; /* as they were lowered */
    int n;
    const int *parts;   /* [values]: 0 = stored */
    int values;
    const hl_step **pool; /* [values]: the backward of a pool that writes it; NULL: none */
    hl_range *wanted;   /* [values]: cells of a transient value in this turn */
    hl_range *core;     /* [values]: those of them that are read; the others fill up windows of a pool's backward, and lack what other windows add */
    int *copy;          /* [values]: and the value that holds them */
    bool *told;         /* [n]: what the step does once in all is done */
    bool *in_turn;      /* [n] */
} slabs;

static bool transient(const slabs *b, int value) { return value >= 0 && value < b->values && b->parts[value] > 0; }

static bool touches(const slabs *b, const hl_step *s, bool writing)
{
    for EACH_ROLE(r)
        if (transient(b, s->use[r].value) && (writing ? hl_step_writes(s, r) : hl_step_reads(s, r))) return true;
    return false;
}

static bool makes_transient(const slabs *b, const hl_step *s) { return touches(b, s, true); }
static bool is_sink(const slabs *b, const hl_step *s) { return !makes_transient(b, s) && touches(b, s, false); }

static int64_t extent(const slabs *b, int value) { return b->p->value[value].ext[HALO_D + b->axis]; }

/* Where a use of stored or transient cells ends, margins that are true included. */
static hl_range readable(const slabs *b, const hl_use *u) { return (hl_range){-u->margin[b->axis][0], extent(b, u->value) + u->margin[b->axis][1]}; }

static int64_t floor_to(int64_t x, int64_t tile)
{
    int64_t at = x % tile;
    return x - (at < 0 ? at + tile : at);
}

/* Windows that hold one of the cells; those that do not exist may be margin. */
static hl_range reach(hl_range in, hl_window1 w)
{
    int64_t first = in.lo + w.p - w.l * (w.k - 1), last = in.hi - 1 + w.p;
    return (hl_range){-floor_to(-first, w.s) / w.s, floor_to(last, w.s) / w.s + 1};
}

static hl_range hull(hl_range a, hl_range b)
{
    if (hl_range_len(a) == 0) return b;
    return hl_range_len(b) == 0 ? a : (hl_range){hl_min64(a.lo, b.lo), hl_max64(a.hi, b.hi)};
}

/* The windows of a pool's backward that reach the cells. */
static hl_range windows_of(const slabs *b, const hl_step *pool, hl_range cells)
{
    return hl_range_meet(reach(cells, hl_step_window(pool, b->axis)), (hl_range){0, extent(b, pool->use[HALO_DY].value)});
}

/* What is formed so that some cells come out right: all of their windows; with signs, all cells that belong to a window's bits. */
static hl_range whole_windows(const slabs *b, const hl_step *pool, hl_range cells)
{
    const hl_window1 w = hl_step_window(pool, b->axis);
    const hl_range all = {0, extent(b, pool->use[HALO_DX].value)};
    hl_range r = hull(cells, hl_range_meet(hl_window_need(windows_of(b, pool, cells), w), all));
    if (pool->desc.kind == HALO_OP_ACT_POOL_BWD) r = (hl_range){floor_to(r.lo, w.s), hl_min64(all.hi, floor_to(r.hi + w.s - 1, w.s))};
    return r;
}

static hl_range windows_formed(const slabs *b, const hl_step *pool)
{
    const int value = pool->use[HALO_DX].value;
    const int64_t s = hl_step_window(pool, b->axis).s;
    if (pool->desc.kind == HALO_OP_POOL_BWD) return windows_of(b, pool, b->core[value]);
    return hl_range_meet((hl_range){b->wanted[value].lo / s, hl_div_up(b->wanted[value].hi, s)}, (hl_range){0, extent(b, pool->use[HALO_DY].value)});
}

static void want(slabs *b, int value, hl_range r)
{
    const hl_range all = {0, extent(b, value)};
    const hl_step *pool = b->pool[value];
    r = b->core[value] = hull(b->core[value], hl_range_meet(r, all));
    b->wanted[value] = pool && hl_range_len(r) > 0 ? whole_windows(b, pool, r) : r;
}

/* With one cell of the value at least: an op whose windows lie wholly in margin or padding gets one that it does not look at. */
static hl_range some(hl_range r, hl_range within, int64_t n)
{
    r = hl_range_meet(r, within);
    if (hl_range_len(r) == 0) r.lo = r.hi = hl_min64(hl_max64(r.lo, 0), n - 1);
    return (hl_range){hl_min64(r.lo, n - 1), hl_max64(r.hi, hl_max64(r.lo, 0) + 1)};
}

/* Signs of what an average pools are those of the cells from window times stride on, counted from the beginning of x's box: it has to begin with a window's. */
static bool signs(const hl_step *s) { return s->desc.kind == HALO_OP_POOL_FWD && s->desc.pool == HALO_POOL_AVG && s->use[HALO_AUX].value >= 0; }

static hl_range signed_cells(const slabs *b, const hl_step *s, hl_range windows)
{
    const int64_t stride = hl_step_window(s, b->axis).s;
    return hl_range_meet((hl_range){windows.lo * stride, windows.hi * stride}, (hl_range){0, extent(b, s->use[HALO_X].value)});
}

/* The cells of each operand for the part of a step that is about `drive`. */
static void ranges_of(const slabs *b, const hl_step *s, hl_range drive, hl_range out[HALO_ROLES])
{
    const hl_relation *k = hl_relation_of(s);
    const hl_window1 w = hl_step_window(s, b->axis);
    for EACH_ROLE(r) {
        const hl_use *u = &s->use[r];
        if (u->value < 0 || !(hl_relation_roles(k) & HL_ROLE_BIT(r))) continue;
        hl_range want = k->need & HL_ROLE_BIT(r) ? hl_window_need(drive, w) : k->reach & HL_ROLE_BIT(r) ? reach(drive, w) : drive;
        if (hl_step_unpools(s, b->axis) && transient(b, s->use[HALO_DX].value) && r != HALO_DX) want = windows_formed(b, s);
        if (signs(s) && r == HALO_X) want = hull(want, signed_cells(b, s, drive));
        out[r] = r == k->drive ? drive : some(want, readable(b, u), extent(b, u->value));
    }
}

/* Where a part begins: of a pool's backward, with a window. */
static int64_t begin_of(const slabs *b, const hl_step *s, int part, int parts)
{
    const int64_t n = extent(b, s->use[hl_relation_of(s)->drive].value), at = n * part / parts;
    const hl_window1 w = hl_step_window(s, b->axis);
    return hl_step_unpools(s, b->axis) && part > 0 && part < parts ? hl_max64(0, floor_to(at + w.p, w.s) - w.p) : at;
}

static hl_range drive_of(const slabs *b, const hl_step *s, int part, int parts)
{
    return (hl_range){begin_of(b, s, part, parts), begin_of(b, s, part + 1, parts)};
}

static void want_inputs(slabs *b, const hl_step *s, hl_range drive)
{
    hl_range range[HALO_ROLES];
    ranges_of(b, s, drive, range);
    for EACH_ROLE(r)
        if (transient(b, s->use[r].value) && (hl_relation_roles(hl_relation_of(s)) & HL_ROLE_BIT(r))) want(b, s->use[r].value, range[r]);
}

/* ---------------------------------------------------------------------------------------------- one part of a step */

static halo_status new_copy(slabs *b, int value)
{
    const hl_range r = b->wanted[value];
    int at;
    HL_TRY(hl_value_like(b->p, value, b->p->value[value].kind, b->p->value[value].layer, "", &at));
    hl_value *v = &b->p->value[at];
    const hl_value *of = &b->p->value[value];
    memcpy(v->name, of->name, sizeof(v->name));
    memcpy(v->margin, of->margin, sizeof(v->margin));
    memcpy(v->mode, of->mode, sizeof(v->mode));
    if (r.lo > 0) v->margin[b->axis][0] = 0;
    if (r.hi < extent(b, value)) v->margin[b->axis][1] = 0;
    v->lo[b->axis] += r.lo;
    v->ext[HALO_D + b->axis] = hl_range_len(r);
    b->copy[value] = at;
    return HALO_OK;
}

/* A value has the cells `has`; the use is about `box`, and may read all of r. */
static void cut_use(hl_use *u, int axis, hl_range r, hl_range box, hl_range has)
{
    u->margin[axis][0] = box.lo - r.lo;
    u->margin[axis][1] = r.hi - box.hi;
    u->lo[axis] = box.lo - has.lo;
    u->ext[axis] = hl_range_len(box);
    if (u->ext[axis] == hl_range_len(has)) u->lo[axis] = u->ext[axis] = 0;
}

/* What a step does for all parts at once: running statistics; of a norm, gradients that were summed before. */
static bool once(const hl_step *s, halo_role r)
{
    if (r == HALO_RUN) return !s->desc.inference;
    return s->desc.kind == HALO_OP_NORM_BWD_APPLY && (r == HALO_DW || r == HALO_DB);
}

/* What parts add up to. */
static bool adds_up(halo_op_kind kind)
{
    return kind == HALO_OP_CONV_BWD_WEIGHTS || kind == HALO_OP_BIAS_BWD || kind == HALO_OP_NORM_STATS || kind == HALO_OP_NORM_BWD_STATS;
}

static halo_status add_part(slabs *b, int i, hl_range drive, hl_phase phase, int part, int parts)
{
    hl_range range[HALO_ROLES];
    HL_TRY(hl_step_again(b->p, &b->step[i]));
    hl_step *s = &b->p->step[b->p->steps - 1];
    const hl_relation *k = hl_relation_of(s);
    int64_t begins[2] = {0, 0}; /* of the operand that windows lie on, and of their own */
    ranges_of(b, s, drive, range);
    for EACH_ROLE(r) {
        hl_use *u = &s->use[r];
        if (once(s, r) && b->told[i]) u->value = -1;
        if (u->value < 0 || !(hl_relation_roles(k) & HL_ROLE_BIT(r))) continue;
        const bool moved = transient(b, u->value);
        const hl_range all = moved ? b->wanted[u->value] : (hl_range){0, extent(b, u->value)};
        const hl_range box = signs(s) && r == HALO_X ? signed_cells(b, s, drive) : hl_range_meet(range[r], all);
        if (r == HALO_X || r == HALO_DX) begins[0] = box.lo;
        if (r == HALO_Y || r == HALO_DY) begins[1] = box.lo;
        if (moved) u->value = b->copy[u->value];
        cut_use(u, b->axis, range[r], box, all);
    }
    if (k->need | k->reach) s->desc.window.pad_lo[b->axis] += begins[0] - begins[1] * hl_step_window(s, b->axis).s;
    if (s->desc.kind == HALO_OP_DROPOUT) s->desc.global_lo[HALO_D + b->axis] += drive.lo;
    s->phase = phase;
    s->slab = part;
    s->slabs = parts;
    if (adds_up(s->desc.kind)) s->desc.accumulate = s->desc.accumulate || part > 0;
    b->told[i] = true;
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------ sinks that share a loop */

/* Marks the steps before `sink` that make what it reads, and what makes what these read... */
static void mark_makers(slabs *b, int sink)
{
    memset(b->in_turn, 0, (size_t)b->n * sizeof(*b->in_turn));
    for (int v = 0; v < b->values; v++) b->wanted[v] = (hl_range){0, 0};
    for (int i = sink; i >= 0; i--) {
        const hl_step *s = &b->step[i];
        bool needed = i == sink;
        for EACH_ROLE(r)
            if (i != sink && transient(b, s->use[r].value) && hl_step_writes(s, r)) needed = needed || b->wanted[s->use[r].value].hi > 0;
        if (!needed) continue;
        b->in_turn[i] = true;
        for EACH_ROLE(r)
            if (transient(b, s->use[r].value)) b->wanted[s->use[r].value].hi = 1;
    }
}

/* Whether a step reads something stored that `by` writes. */
static bool reads_from(const slabs *b, const hl_step *s, const hl_step *by)
{
    for EACH_ROLE(r)
        for EACH_ROLE(q)
            if (hl_step_writes(by, q) && s->use[r].value == by->use[q].value && !transient(b, by->use[q].value) && hl_step_reads(s, r)) return true;
    return false;
}

/* Sinks first to last share a loop; may this one, too? */
static bool may_join(slabs *b, int first, int last, int sink)
{
    if (b->step[sink].phase != b->step[first].phase) return false;
    mark_makers(b, sink);
    for (int i = 0; i <= sink; i++)
        for (int k = first; k <= last && b->in_turn[i]; k++)
            if (is_sink(b, &b->step[k]) && reads_from(b, &b->step[i], &b->step[k])) return false;
    return true;
}

/* The last sink of the loop that begins with `first`. */
static int last_of_loop(slabs *b, int first)
{
    int last = first;
    for (int i = first + 1; i < b->n; i++) {
        if (makes_transient(b, &b->step[i])) continue;
        if (!is_sink(b, &b->step[i]) || !may_join(b, first, last, i)) break;
        last = i;
    }
    return last;
}

/* So many that none is empty. */
static int64_t most_parts(const slabs *b, const hl_step *s)
{
    const int64_t n = extent(b, s->use[hl_relation_of(s)->drive].value);
    return hl_step_unpools(s, b->axis) ? hl_max64(1, n / s->desc.window.stride[b->axis] - 1) : n;
}

static int parts_of_loop(slabs *b, int first, int last)
{
    int parts = 1;
    for (int i = first; i <= last; i++) {
        if (!is_sink(b, &b->step[i])) continue;
        mark_makers(b, i);
        for (int v = 0; v < b->values; v++)
            if (b->wanted[v].hi > 0) parts = b->parts[v] > parts ? b->parts[v] : parts;
    }
    for (int i = first; i <= last; i++)
        if (is_sink(b, &b->step[i])) parts = (int)hl_min64(parts, most_parts(b, &b->step[i]));
    return parts;
}

/* Which cells of which values a turn needs: backwards, from the sinks. */
static void plan_turn(slabs *b, int first, int last, int part, int parts)
{
    memset(b->in_turn, 0, (size_t)b->n * sizeof(*b->in_turn));
    for (int v = 0; v < b->values; v++) b->wanted[v] = b->core[v] = (hl_range){0, 0};
    for (int i = last; i >= 0; i--) {
        const hl_step *s = &b->step[i];
        if (i >= first && is_sink(b, s)) {
            b->in_turn[i] = true;
            want_inputs(b, s, drive_of(b, s, part, parts));
        } else if (makes_transient(b, s)) {
            const hl_range r = b->wanted[s->use[hl_relation_of(s)->drive].value];
            if (hl_range_len(r) == 0) continue;
            b->in_turn[i] = true;
            want_inputs(b, s, r);
        }
    }
}

static halo_status add_turn(slabs *b, int first, int last, int part, int parts)
{
    const hl_phase phase = b->step[first].phase;
    plan_turn(b, first, last, part, parts);
    for (int v = 0; v < b->values; v++)
        if (hl_range_len(b->wanted[v]) > 0) HL_TRY(new_copy(b, v));
    for (int i = 0; i <= last; i++) {
        const hl_step *s = &b->step[i];
        if (!b->in_turn[i]) continue;
        const hl_range drive = makes_transient(b, s) ? b->wanted[s->use[hl_relation_of(s)->drive].value] : drive_of(b, s, part, parts);
        HL_TRY(add_part(b, i, drive, phase, part, parts));
    }
    return HALO_OK;
}

static halo_status rewrite(slabs *b)
{
    for (int i = 0; i < b->n; i++) {
        const hl_step *s = &b->step[i];
        if (makes_transient(b, s)) continue;
        if (!is_sink(b, s)) {
            HL_TRY(hl_step_again(b->p, s));
            continue;
        }
        const int last = last_of_loop(b, i), parts = parts_of_loop(b, i, last);
        for (int part = 0; part < parts; part++) HL_TRY(add_turn(b, i, last, part, parts));
        i = last;
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------- the pass */

static void find_pools(slabs *b)
{
    for (int i = 0; i < b->n; i++)
        if (hl_step_unpools(&b->step[i], b->axis)) b->pool[b->step[i].use[HALO_DX].value] = &b->step[i];
}

static void forget_values(slabs *b)
{
    for (int v = 0; v < b->values; v++) {
        if (!transient(b, v)) continue;
        b->p->value[v].dead = true;
        b->p->value[v].slabs = b->parts[v];
    }
}

halo_status hl_pass_slabs(hl_program *p)
{
    const hl_economy *e = p->economy;
    bool any = false;
    for (int v = 0; e && v < e->values; v++) any = any || e->parts[v] > 0;
    p->lowered_values = p->values;
    if (!any) return HALO_OK;
    HL_BUG_UNLESS(e->values == p->values);
    slabs b = {.p = p, .axis = hl_slab_axis(p), .parts = e->parts, .values = p->values};
    const size_t values = (size_t)p->values, steps = (size_t)p->steps;
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_calloc(p->ctx, values, sizeof(*b.pool), "slabs of values", &b.pool), done);
    HL_GOTO(st, hl_calloc(p->ctx, 2 * values, sizeof(*b.wanted), "slabs of values", &b.wanted), done);
    HL_GOTO(st, hl_calloc(p->ctx, values, sizeof(*b.copy), "slabs of values", &b.copy), done);
    HL_GOTO(st, hl_calloc(p->ctx, 2 * steps, sizeof(*b.told), "slabs of steps", &b.told), done);
    b.core = b.wanted + values;
    b.in_turn = b.told + steps;
    b.step = hl_take_steps(p, &b.n);
    find_pools(&b);
    st = rewrite(&b);
    if (st == HALO_OK) forget_values(&b);
done:
    free((void *)b.step);
    free(b.told);
    free(b.copy);
    free(b.wanted);
    free(b.pool);
    return st;
}
