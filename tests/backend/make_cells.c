/* SPDX-License-Identifier: Apache-2.0 */
/* make_cells.c -- see makers.h: trials of norms, operations on each cell alone, copies. */
#include "makers.h"

#include "tensor/upsample.h"
#include "tests/check.h"

/* ------------------------------------------------------------------------------------------------------------ norms */

static void fill_moments(rng *r, operand *o, double count)
{
    o->value = check_alloc(operand_cells(o), sizeof(double));
    for (int64_t i = 0; i + 2 < operand_cells(o); i += 3) {
        o->value[i] = count;
        o->value[i + 1] = rng_normal(r);
        o->value[i + 2] = count * rng_uniform(r, 0.5, 2);
    }
}

void make_norm(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    if (rng_chance(r, 30)) e[HALO_C] = PICK(r, 4, 8, 12, 16, 24);
    d->per_sample = rng_chance(r, 40);
    if (rng_chance(r, 40)) d->groups = e[HALO_C] % 4 == 0 ? 4 : 1;
    d->eps = 1e-3;
    d->momentum = 0.75;
    d->unbiased = rng_chance(r, 50);
    int64_t g = d->per_sample ? e[HALO_N] : 1, f = d->groups ? d->groups : e[HALO_C];
    double count = (double)(product(e, 5) / g / f);
    halo_op_kind k = d->kind;
    operand *x = use(t, HALO_X, DRESS_PROGRAM, true, false, e),
            *stat = use_flat(t, HALO_STAT, DRESS_STAT, k != HALO_OP_NORM_STATS, k == HALO_OP_NORM_STATS, g * f * 3);
    random_margin(r, x, 30);
    if (k == HALO_OP_NORM_STATS) {
        fill_normal(r, x);
        double shift = rng_chance(r, 30) ? 100 : 0; /* a running sum of squares would lose five digits here */
        for (int64_t i = 0; i < operand_cells(x); i++) x->value[i] = (double)(float)(x->value[i] + shift);
        return;
    }
    fill_moments(r, stat, count);
    if (k == HALO_OP_NORM_APPLY) {
        bool batch = !d->per_sample && d->groups == 0;
        d->inference = batch && rng_chance(r, 30);
        if (batch && (d->inference || rng_chance(r, 60)))
            fill_positive(r, use5(t, HALO_RUN, DRESS_MASTER, true, !d->inference, 1, 1, 1, 2, e[HALO_C]));
        random_act(r, d);
        use_flat(t, HALO_WT, DRESS_MASTER, true, false, e[HALO_C]);
        use_flat(t, HALO_B, DRESS_MASTER, true, false, e[HALO_C]);
        random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, e), 30);
        if (rng_chance(r, 20)) t->alias[HALO_Y] = HALO_X;
        return;
    }
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, e), 30);
    use_flat(t, HALO_STAT2, DRESS_STAT, k == HALO_OP_NORM_BWD_APPLY, k == HALO_OP_NORM_BWD_STATS, g * e[HALO_C] * 2);
    if (k == HALO_OP_NORM_BWD_STATS) return;
    d->accumulate = rng_chance(r, 40);
    use_flat(t, HALO_WT, DRESS_MASTER, true, false, e[HALO_C]);
    random_margin(r, use(t, HALO_DX, DRESS_PROGRAM, false, true, e), 30);
    if (rng_chance(r, 20)) t->alias[HALO_DX] = HALO_DY;
    use_flat(t, HALO_DW, DRESS_MASTER, d->accumulate, true, e[HALO_C]);
    use_flat(t, HALO_DB, DRESS_MASTER, d->accumulate, true, e[HALO_C]);
}

/* -------------------------------------------------------------------------------------------------------- pointwise */

void make_act(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    random_act(r, d);
    bool forward = d->kind == HALO_OP_ACT_FWD;
    halo_role in = forward ? HALO_X : HALO_DY, out = forward ? HALO_Y : HALO_DX;
    dress how = rng_chance(r, 15) ? DRESS_ROWS : DRESS_PROGRAM;
    if (how == DRESS_ROWS) e[HALO_D] = e[HALO_H] = e[HALO_W] = 1;
    bool in_place = rng_chance(r, 30);
    d->accumulate = !forward && !in_place && rng_chance(r, 40);
    use(t, in, how, true, false, e);
    if (!forward) {
        operand *y = use(t, HALO_Y, how, true, false, e);
        if (rng_chance(r, 40)) fill_integers(r, y, -1, 1);
    }
    use(t, out, how, d->accumulate, true, e);
    if (in_place) t->alias[out] = in;
}

void make_add(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    random_margin(r, use(t, HALO_X, DRESS_PROGRAM, true, false, e), 30);
    random_margin(r, use(t, HALO_X2, DRESS_PROGRAM, true, false, e), 30);
    random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, e), 30);
    if (rng_chance(r, 30)) t->alias[HALO_Y] = rng_chance(r, 50) ? HALO_X : HALO_X2;
}

void make_dropout(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    dress how = rng_chance(r, 40) ? DRESS_ROWS : DRESS_PROGRAM;
    if (how == DRESS_ROWS) e[HALO_D] = e[HALO_H] = e[HALO_W] = 1;
    d->keep = rng_uniform(r, 0.2, 0.9);
    d->layer = (uint64_t)rng_int(r, 0, 1000);
    for (int k = 0; k < HALO_DIMS; k++) {
        d->global_lo[k] = rng_int(r, 0, 3);
        d->global_ext[k] = d->global_lo[k] + e[k] + rng_int(r, 0, 3);
    }
    use(t, HALO_X, how, true, false, e);
    use(t, HALO_Y, how, false, true, e);
    if (rng_chance(r, 30)) t->alias[HALO_Y] = HALO_X;
}

/* ----------------------------------------------------------------------------------------------------------- moving */

void make_copy(trial *t, rng *r)
{
    static const halo_dtype types[] = {HALO_NONE, HALO_NONE, HALO_NONE, HALO_F64, HALO_F16, HALO_BF16};
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    t->d.accumulate = t->d.kind == HALO_OP_COPY && rng_chance(r, 30);
    dress how = t->d.kind == HALO_OP_COPY ? DRESS_ANY : DRESS_MASTER;
    operand *x = use(t, HALO_X, how, true, false, e), *y = use(t, HALO_Y, how, t->d.accumulate, true, e);
    if (how == DRESS_ANY) random_margin(r, x, 30);
    if (how == DRESS_ANY) random_margin(r, y, 30);
    if (t->d.accumulate) return;
    x->type = types[rng_int(r, 0, 5)];
    y->type = types[rng_int(r, 0, 5)];
    const bool narrows = how == DRESS_ANY && x->type == HALO_F64 && y->type == HALO_NONE; /* to a type that the oracle does not know, of 16 bits perhaps */
    if (narrows || x->type == HALO_F16 || x->type == HALO_BF16) fill_integers(r, x, -128, 128); /* exact in every type */
    y->exact = true;
}

void make_margin(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    random_extents(r, e, 4);
    if (rng_chance(r, 70))
        for (int k = HALO_D; k < HALO_DIMS; k++) e[k] += 3; /* else margins may be wider than the box */
    operand *y = use(t, HALO_Y, DRESS_PROGRAM, true, true, e);
    random_margin(r, y, 80);
    for (int k = 0; k < 3; k++)
        for (int side = 0; side < 2; side++) t->d.margin_mode[k][side] = (halo_margin_mode)rng_int(r, 0, 2);
    t->d.reverse = rng_chance(r, 50);
    y->any_margin = true;
}

void make_flatten(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    random_extents(r, e, 5);
    bool forward = t->d.kind == HALO_OP_FLATTEN;
    t->d.channels_last = rng_chance(r, 50);
    t->d.accumulate = !forward && rng_chance(r, 40);
    int64_t f[HALO_DIMS] = {e[HALO_N], product(e + 1, 4), 1, 1, 1};
    use(t, forward ? HALO_X : HALO_DY, forward ? DRESS_PROGRAM : DRESS_ROWS, true, false, forward ? e : f);
    use(t, forward ? HALO_Y : HALO_DX, forward ? DRESS_ROWS : DRESS_PROGRAM, t->d.accumulate, true, forward ? f : e);
}

/* Twice as many cells; of a volume, or of parts of it that need not go together. X must have the margin that its taps reach into, and so must DY. */
void make_upsample(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    const bool forward = d->kind == HALO_OP_UPSAMPLE_FWD, whole = rng_chance(r, 40);
    int64_t x[HALO_DIMS], y[HALO_DIMS], need[3][2] = {{0}};
    random_extents(r, x, 5);
    memcpy(y, x, sizeof(y));
    for (int a = 0; a < 3; a++) {
        int64_t stride = rng_chance(r, 80) ? 2 : 1, n = x[HALO_D + a], x_lo = whole ? 0 : rng_int(r, 0, n - 1), x_hi = whole ? n : rng_int(r, x_lo + 1, n);
        int64_t y_lo = whole ? 0 : rng_int(r, 0, stride * n - 1), y_hi = whole ? stride * n : rng_int(r, y_lo + 1, stride * n);
        hl_upsample s;
        d->window.kernel[a] = stride == 2 ? 4 : 1;
        d->window.stride[a] = stride;
        d->window.dilation[a] = 1;
        d->window.pad_lo[a] = y_lo - stride * x_lo + (stride == 2);
        d->global_lo[HALO_D + a] = x_lo;
        d->global_ext[HALO_D + a] = whole && rng_chance(r, 50) ? 0 : n;
        x[HALO_D + a] = x_hi - x_lo;
        y[HALO_D + a] = y_hi - y_lo;
        HL_BUG_UNLESS(hl_upsample_axis(d, a, x[HALO_D + a], y[HALO_D + a], &s));
        for (int64_t q = -y_lo; q < stride * n - y_lo; q++) {
            hl_upsample_taps at = hl_upsample_at(&s, q);
            for (int k = 0; k < 2; k++) {
                bool takes = at.weight[k] > 0 && (forward ? q >= 0 && q < y[HALO_D + a] : at.cell[k] >= 0 && at.cell[k] < x[HALO_D + a]);
                int64_t cell = forward ? at.cell[k] : q, ext = forward ? x[HALO_D + a] : y[HALO_D + a];
                if (!takes) continue;
                need[a][0] = hl_max64(need[a][0], -cell);
                need[a][1] = hl_max64(need[a][1], cell - ext + 1);
            }
        }
    }
    d->accumulate = !forward && rng_chance(r, 40);
    operand *in = use(t, forward ? HALO_X : HALO_DY, DRESS_PROGRAM, true, false, forward ? x : y);
    memcpy(in->margin, need, sizeof(in->margin));
    fill_normal(r, in); /* so that it keeps the margin */
    random_margin(r, use(t, forward ? HALO_Y : HALO_DX, DRESS_PROGRAM, d->accumulate, true, forward ? y : x), 30);
}
