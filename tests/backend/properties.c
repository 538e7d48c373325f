/* SPDX-License-Identifier: Apache-2.0 */
/*
 * properties.c -- what the reference backend must satisfy by itself, in double: gradients against central differences, adjoint identities
 * <Ax, y> = <x, A'y>, linearity, shift-equivariance of periodic convolution, and blocks that add up to the whole.
 *
 * Shapes, windows and margins are those of the conformance suite's random trials.
 */
#include "suite.h"

#include "tests/check.h"
#include "tests/tap.h"

static halo_device *dev; /* ref in f64 */

enum { TRIALS = 12, SAMPLES = 12 };

/* ------------------------------------------------------------------------------------------------------------ tools */

/* Index in the operand's array (box and margin) of the k-th cell of its box. */
static int64_t box_cell(const operand *o, int64_t k)
{
    int64_t index = 0, i[HALO_DIMS];
    for (int j = HALO_DIMS - 1; j >= 0; j--) {
        i[j] = k % o->ext[j];
        k /= o->ext[j];
    }
    for (int j = 0; j < HALO_DIMS; j++) {
        int64_t low = j >= HALO_D ? o->margin[j - HALO_D][0] : 0, high = j >= HALO_D ? o->margin[j - HALO_D][1] : 0;
        index = index * (low + o->ext[j] + high) + low + i[j];
    }
    return index;
}

static int64_t box_size(const operand *o)
{
    int64_t n = 1;
    for (int j = 0; j < HALO_DIMS; j++) n *= o->ext[j];
    return n;
}

static double dot(const operand *o, const double *a, const double *b)
{
    double s = 0;
    for (int64_t k = 0; k < box_size(o); k++) s += a[box_cell(o, k)] * b[box_cell(o, k)];
    return s;
}

static double *copy_of(const operand *o, const double *v)
{
    return memcpy(check_alloc(operand_cells(o), 8), v, (size_t)operand_cells(o) * 8);
}

static void refill(rng *r, operand *o)
{
    for (int64_t i = 0; i < operand_cells(o); i++) o->value[i] = rng_normal(r);
}

static double *random_like(rng *r, const operand *o)
{
    double *v = check_alloc(operand_cells(o), 8);
    for (int64_t i = 0; i < operand_cells(o); i++) v[i] = rng_normal(r);
    return v;
}

/* An operand with the shape of `like` and a copy of `value` (may be NULL). */
static operand *give(trial *t, halo_role role, const operand *like, const double *value)
{
    operand *o = &t->t[role];
    *o = *like;
    o->in = value != NULL;
    o->out = value == NULL;
    o->want = NULL;
    o->value = value ? copy_of(like, value) : NULL;
    return o;
}

static void drop(trial *t, halo_role role)
{
    free(t->t[role].value), free(t->t[role].want);
    t->t[role] = (operand){0};
}

/* Another operation with the parameters of t. */
static trial another(const trial *t, halo_op_kind kind)
{
    trial u = {.seed = t->seed, .d = t->d, .record = t->record};
    u.d.kind = kind;
    u.d.accumulate = false;
    memset(u.alias, -1, sizeof(u.alias));
    return u;
}

/* Runs and returns one output; the caller frees it. */
static double *result(const trial *t, halo_role role)
{
    double *out[HALO_ROLES];
    trial_oracle(t, dev, false, out);
    for (int i = 0; i < HALO_ROLES; i++)
        if (i != (int)role) free(out[i]);
    return out[role];
}

/* A function of everything it was given. */
typedef double (*objective)(const void *what);

/* Largest |difference quotient - gradient| over some cells of o's box, as a part of the largest |gradient| there. */
static double quotient_error(rng *r, operand *o, const double *gradient, objective f, const void *what)
{
    double error = 0, scale = 1e-12;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t at = box_cell(o, rng_int(r, 0, box_size(o) - 1));
        double old = o->value[at], h = 1e-5;
        o->value[at] = old + h;
        double up = f(what);
        o->value[at] = old - h;
        double down = f(what);
        o->value[at] = old;
        error = check_worse(error, fabs((up - down) / (2 * h) - gradient[at]));
        scale = fmax(scale, fabs(gradient[at]));
    }
    return error / fmax(scale, 0.01);
}

/* sum v * output */
typedef struct weighed { const trial *t; halo_role out; const double *v; } weighed;

static double weighed_sum(const void *what)
{
    const weighed *w = what;
    double *y = result(w->t, w->out), s = dot(&w->t->t[w->out], y, w->v);
    free(y);
    return s;
}

/* -------------------------------------------------------------------------------------------------------- gradients */

static void gradient_conv(double worst[3])
{
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_CONV_FWD, seed + 1000, dev);
        t.d.act = HALO_ACT_NONE;
        double *v = random_like(&r, &t.t[HALO_Y]);
        weighed f = {&t, HALO_Y, v};
        trial a = another(&t, HALO_OP_CONV_BWD_DATA), b = another(&t, HALO_OP_CONV_BWD_WEIGHTS);
        give(&a, HALO_DY, &t.t[HALO_Y], v);
        for (int64_t i = 0, n = operand_cells(&a.t[HALO_DY]); i < n; i++) a.t[HALO_DY].value[i] = 0; /* dy is zero in the margin */
        for (int64_t k = 0; k < box_size(&t.t[HALO_Y]); k++)
            a.t[HALO_DY].value[box_cell(&t.t[HALO_Y], k)] = v[box_cell(&t.t[HALO_Y], k)];
        give(&a, HALO_WT, &t.t[HALO_WT], t.t[HALO_WT].value);
        give(&a, HALO_DX, &t.t[HALO_X], NULL);
        give(&b, HALO_X, &t.t[HALO_X], t.t[HALO_X].value);
        give(&b, HALO_DY, &t.t[HALO_Y], v);
        give(&b, HALO_DW, &t.t[HALO_WT], NULL);
        if (t.t[HALO_B].value) give(&b, HALO_DB, &t.t[HALO_B], NULL);
        double *dx = result(&a, HALO_DX), *dw = result(&b, HALO_DW), *db = result(&b, HALO_DB);
        worst[0] = check_worse(worst[0], quotient_error(&r, &t.t[HALO_X], dx, weighed_sum, &f));
        worst[1] = check_worse(worst[1], quotient_error(&r, &t.t[HALO_WT], dw, weighed_sum, &f));
        if (db) worst[2] = check_worse(worst[2], quotient_error(&r, &t.t[HALO_B], db, weighed_sum, &f));
        free(dx), free(dw), free(db), free(v);
        trial_free(&a), trial_free(&b), trial_free(&t);
    }
}

static void test_conv_gradients(void)
{
    double worst[3] = {0, 0, 0};
    gradient_conv(worst);
    tap_ok(worst[0] <= 1e-8, "convolution: dx is the derivative (%.1e)", worst[0]);
    tap_ok(worst[1] <= 1e-8, "convolution: dw is the derivative (%.1e)", worst[1]);
    tap_ok(worst[2] <= 1e-8, "convolution: db is the derivative (%.1e)", worst[2]);
}

/* A transposed convolution is backward-data used forward; its three gradients come from the other passes with x and dy exchanged, and from a sum. */
static void test_transposed_gradients(void)
{
    double worst[3] = {0, 0, 0};
    for (uint64_t seed = 1; seed <= 2 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_CONV_BWD_DATA, seed + 1000, dev);
        operand *x = &t.t[HALO_DY], *y = &t.t[HALO_DX];
        t.d.act = HALO_ACT_NONE;
        if (!t.d.accumulate) {
            memset(x->margin, 0, sizeof(x->margin)); /* a map of boxes; the values stay more than enough */
            memset(y->margin, 0, sizeof(y->margin));
            double *v = random_like(&r, y);
            weighed f = {&t, HALO_DX, v};
            trial a = another(&t, HALO_OP_CONV_FWD), b = another(&t, HALO_OP_CONV_BWD_WEIGHTS), c = another(&t, HALO_OP_BIAS_BWD);
            give(&a, HALO_X, y, v);
            give(&a, HALO_WT, &t.t[HALO_WT], t.t[HALO_WT].value);
            give(&a, HALO_Y, x, NULL);
            give(&b, HALO_X, y, v);
            give(&b, HALO_DY, x, x->value);
            give(&b, HALO_DW, &t.t[HALO_WT], NULL);
            give(&c, HALO_DY, y, v);
            if (t.t[HALO_B].value) give(&c, HALO_DB, &t.t[HALO_B], NULL);
            double *dx = result(&a, HALO_Y), *dw = result(&b, HALO_DW), *db = t.t[HALO_B].value ? result(&c, HALO_DB) : NULL;
            worst[0] = check_worse(worst[0], quotient_error(&r, x, dx, weighed_sum, &f));
            worst[1] = check_worse(worst[1], quotient_error(&r, &t.t[HALO_WT], dw, weighed_sum, &f));
            if (db) worst[2] = check_worse(worst[2], quotient_error(&r, &t.t[HALO_B], db, weighed_sum, &f));
            free(dx), free(dw), free(db), free(v);
            trial_free(&a), trial_free(&b), trial_free(&c);
        }
        trial_free(&t);
    }
    tap_ok(worst[0] <= 1e-8 && worst[1] <= 1e-8 && worst[2] <= 1e-8,
           "transposed convolution: dx, dw, db are the derivatives (%.1e %.1e %.1e)", worst[0], worst[1], worst[2]);
}

static void test_pool_gradients(halo_pool pool)
{
    double worst = 0;
    for (uint64_t seed = 1; seed <= 4 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_POOL_FWD, seed + 1000, dev);
        if (t.d.pool != pool || (pool == HALO_POOL_MAX && t.t[HALO_AUX].dress == DRESS_NONE)) {
            trial_free(&t);
            continue;
        }
        refill(&r, &t.t[HALO_X]); /* no ties: there is no derivative there */
        double *v = random_like(&r, &t.t[HALO_Y]), *aux = pool == HALO_POOL_MAX ? result(&t, HALO_AUX) : NULL;
        trial b = another(&t, HALO_OP_POOL_BWD);
        weighed f = {&t, HALO_Y, v};
        give(&b, HALO_DY, &t.t[HALO_Y], v);
        give(&b, HALO_DX, &t.t[HALO_X], NULL);
        if (aux) give(&b, HALO_AUX, &t.t[HALO_AUX], aux);
        double *dx = result(&b, HALO_DX);
        worst = check_worse(worst, quotient_error(&r, &t.t[HALO_X], dx, weighed_sum, &f));
        free(dx), free(v), free(aux);
        trial_free(&b), trial_free(&t);
    }
    tap_ok(worst <= 1e-8, "%s pooling: dx is the derivative (%.1e)", pool == HALO_POOL_MAX ? "max" : "average", worst);
}

static void test_act_gradients(void)
{
    double worst[HALO_ACT_SCALE + 1] = {0};
    for (uint64_t seed = 1; seed <= 6 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_ACT_FWD, seed + 1000, dev);
        double *v = random_like(&r, &t.t[HALO_Y]), *y = result(&t, HALO_Y);
        trial b = another(&t, HALO_OP_ACT_BWD);
        weighed f = {&t, HALO_Y, v};
        give(&b, HALO_Y, &t.t[HALO_Y], y);
        give(&b, HALO_DY, &t.t[HALO_Y], v);
        give(&b, HALO_DX, &t.t[HALO_X], NULL);
        double *dx = result(&b, HALO_DX);
        worst[t.d.act] = check_worse(worst[t.d.act], quotient_error(&r, &t.t[HALO_X], dx, weighed_sum, &f));
        free(dx), free(v), free(y);
        trial_free(&b), trial_free(&t);
    }
    for (int a = 0; a <= HALO_ACT_SCALE; a++)
        tap_ok(worst[a] <= 1e-8, "%s: dx is the derivative (%.1e)", hl_act_name((halo_act)a), worst[a]);
}

static void test_linear_gradients(void)
{
    double worst[3] = {0, 0, 0};
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_LINEAR_FWD, seed + 1000, dev);
        t.d.act = HALO_ACT_NONE;
        double *v = random_like(&r, &t.t[HALO_Y]);
        weighed f = {&t, HALO_Y, v};
        trial a = another(&t, HALO_OP_LINEAR_BWD_DATA), b = another(&t, HALO_OP_LINEAR_BWD_WEIGHTS);
        give(&a, HALO_DY, &t.t[HALO_Y], v);
        give(&a, HALO_WT, &t.t[HALO_WT], t.t[HALO_WT].value);
        give(&a, HALO_DX, &t.t[HALO_X], NULL);
        give(&b, HALO_X, &t.t[HALO_X], t.t[HALO_X].value);
        give(&b, HALO_DY, &t.t[HALO_Y], v);
        give(&b, HALO_DW, &t.t[HALO_WT], NULL);
        if (t.t[HALO_B].value) give(&b, HALO_DB, &t.t[HALO_B], NULL);
        double *dx = result(&a, HALO_DX), *dw = result(&b, HALO_DW), *db = result(&b, HALO_DB);
        worst[0] = check_worse(worst[0], quotient_error(&r, &t.t[HALO_X], dx, weighed_sum, &f));
        worst[1] = check_worse(worst[1], quotient_error(&r, &t.t[HALO_WT], dw, weighed_sum, &f));
        if (db) worst[2] = check_worse(worst[2], quotient_error(&r, &t.t[HALO_B], db, weighed_sum, &f));
        free(dx), free(dw), free(db), free(v);
        trial_free(&a), trial_free(&b), trial_free(&t);
    }
    tap_ok(worst[0] <= 1e-8 && worst[1] <= 1e-8 && worst[2] <= 1e-8,
           "linear: dx, dw, db are the derivatives (%.1e %.1e %.1e)", worst[0], worst[1], worst[2]);
}

/* The loss as it enters the gradient: sum_n sw loss_n * loss_scale / weight_sum. */
static double loss_value(const void *what)
{
    const trial *t = what;
    double *stat = result(t, HALO_STAT), loss = stat[0] * t->record.loss_scale / t->record.weight_sum;
    free(stat);
    return loss;
}

static void test_loss_gradients(void)
{
    static const char *const names[] = {"mse", "mae", "huber", "cross entropy", "dice", "dice and cross entropy", "relative mse"};
    double worst[HALO_LOSS_RELATIVE_MSE + 1] = {0};
    for (uint64_t seed = 1; seed <= 4 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_LOSS, seed + 1000, dev);
        refill(&r, &t.t[HALO_X]);
        if (t.t[HALO_DX].dress != DRESS_NONE && t.t[HALO_STAT2].dress == DRESS_NONE) { /* of given sums it is a part of the derivative: test_dice_parts */
            double *dx = result(&t, HALO_DX);
            worst[t.d.loss] = check_worse(worst[t.d.loss], quotient_error(&r, &t.t[HALO_X], dx, loss_value, &t));
            free(dx);
        }
        trial_free(&t);
    }
    for (int i = 0; i <= HALO_LOSS_RELATIVE_MSE; i++)
        tap_ok(worst[i] <= 1e-5, "%s: dx is the derivative of the scaled loss (%.1e)", names[i], worst[i]);
}

/* Normalisation is two operations forward. */
typedef struct norm { trial stats, apply; const double *v; } norm;

static double norm_value(const void *what)
{
    const norm *m = what;
    trial stats = m->stats, apply = m->apply;
    stats.t[HALO_X].value = apply.t[HALO_X].value;
    double *stat = result(&stats, HALO_STAT);
    apply.t[HALO_STAT].value = stat;
    double *y = result(&apply, HALO_Y), s = dot(&apply.t[HALO_Y], y, m->v);
    free(stat), free(y);
    return s;
}

/* dx, dgamma, dbeta by the two backward operations; the caller frees them. */
static void norm_backward(const norm *m, double *out[3])
{
    const trial *t = &m->apply;
    trial s = m->stats, a = another(t, HALO_OP_NORM_BWD_STATS), b = another(t, HALO_OP_NORM_BWD_APPLY);
    s.t[HALO_X].value = t->t[HALO_X].value;
    double *stat = result(&s, HALO_STAT);
    int64_t groups = t->d.per_sample ? t->t[HALO_X].ext[HALO_N] : 1;
    operand sums = {.dress = DRESS_STAT, .ext = {1, 1, 1, 1, groups * t->t[HALO_X].ext[HALO_C] * 2}};
    give(&a, HALO_X, &t->t[HALO_X], t->t[HALO_X].value);
    give(&a, HALO_DY, &t->t[HALO_Y], m->v);
    give(&a, HALO_STAT, &t->t[HALO_STAT], stat);
    give(&a, HALO_STAT2, &sums, NULL);
    double *stat2 = result(&a, HALO_STAT2);
    give(&b, HALO_X, &t->t[HALO_X], t->t[HALO_X].value);
    give(&b, HALO_DY, &t->t[HALO_Y], m->v);
    give(&b, HALO_STAT, &t->t[HALO_STAT], stat);
    give(&b, HALO_STAT2, &sums, stat2);
    give(&b, HALO_WT, &t->t[HALO_WT], t->t[HALO_WT].value);
    give(&b, HALO_DX, &t->t[HALO_X], NULL);
    give(&b, HALO_DW, &t->t[HALO_WT], NULL);
    give(&b, HALO_DB, &t->t[HALO_B], NULL);
    out[0] = result(&b, HALO_DX), out[1] = result(&b, HALO_DW), out[2] = result(&b, HALO_DB);
    free(stat), free(stat2);
    trial_free(&a), trial_free(&b);
}

static void norm_trial(uint64_t seed, double worst[3])
{
    rng r = {seed};
    norm m;
    double *grad[3];
    trial_make(&m.apply, HALO_OP_NORM_APPLY, seed + 1000, dev);
    trial *t = &m.apply;
    t->d.act = HALO_ACT_NONE;
    t->d.inference = false;
    drop(t, HALO_RUN);
    m.stats = another(t, HALO_OP_NORM_STATS);
    give(&m.stats, HALO_X, &t->t[HALO_X], t->t[HALO_X].value);
    give(&m.stats, HALO_STAT, &t->t[HALO_STAT], NULL);
    double *v = random_like(&r, &t->t[HALO_Y]), *own = m.stats.t[HALO_X].value;
    m.v = v;
    norm_backward(&m, grad);
    worst[0] = check_worse(worst[0], quotient_error(&r, &t->t[HALO_X], grad[0], norm_value, &m));
    worst[1] = check_worse(worst[1], quotient_error(&r, &t->t[HALO_WT], grad[1], norm_value, &m));
    worst[2] = check_worse(worst[2], quotient_error(&r, &t->t[HALO_B], grad[2], norm_value, &m));
    for (int i = 0; i < 3; i++) free(grad[i]);
    free(v);
    m.stats.t[HALO_X].value = own;
    trial_free(&m.stats), trial_free(t);
}

static void test_norm_gradients(void)
{
    double worst[3] = {0, 0, 0};
    for (uint64_t seed = 1; seed <= 2 * TRIALS; seed++) norm_trial(seed, worst);
    tap_ok(worst[0] <= 1e-6, "norms: dx is the derivative through the statistics (%.1e)", worst[0]);
    tap_ok(worst[1] <= 1e-7 && worst[2] <= 1e-7, "norms: dgamma, dbeta are the derivatives (%.1e %.1e)", worst[1],
           worst[2]);
}

/* --------------------------------------------------------------------------------------------------------- adjoints */

/* |<Ax, y> - <x, A'y>| relative to the larger, where `forward` maps in -> out and `backward` (in the roles dout -> din) is its adjoint. */
typedef struct pair { halo_op_kind forward, backward; halo_role in, out, dout, din, keep; } pair;

static double adjoint_error(const pair *p, uint64_t seed)
{
    rng r = {seed};
    trial t;
    trial_make(&t, p->forward, seed + 2000, dev);
    operand *x = &t.t[p->in];
    t.d.act = HALO_ACT_NONE;
    t.d.pool = HALO_POOL_AVG;
    if (t.t[HALO_B].value) memset(t.t[HALO_B].value, 0, (size_t)operand_cells(&t.t[HALO_B]) * 8);
    memset(x->margin, 0, sizeof(x->margin)); /* A is a map of boxes; the values stay more than enough */
    memset(t.t[p->out].margin, 0, sizeof(t.t[p->out].margin));
    drop(&t, HALO_AUX);
    trial b = another(&t, p->backward);
    double *y = random_like(&r, &t.t[p->out]), *ax = result(&t, p->out);
    give(&b, p->dout, &t.t[p->out], y);
    give(&b, p->din, x, NULL);
    if (p->keep != HALO_ROLES) give(&b, p->keep, &t.t[p->keep], t.t[p->keep].value);
    double *ay = result(&b, p->din), left = dot(&t.t[p->out], ax, y), right = dot(x, x->value, ay);
    double scale = sqrt(dot(&t.t[p->out], ax, ax) * dot(&t.t[p->out], y, y)) + 1e-30;
    free(y), free(ax), free(ay);
    trial_free(&b), trial_free(&t);
    return fabs(left - right) / scale;
}

static void test_adjoints(void)
{
    static const pair pairs[] = {
        {HALO_OP_CONV_FWD, HALO_OP_CONV_BWD_DATA, HALO_X, HALO_Y, HALO_DY, HALO_DX, HALO_WT},
        {HALO_OP_CONV_FWD, HALO_OP_CONV_BWD_WEIGHTS, HALO_WT, HALO_Y, HALO_DY, HALO_DW, HALO_X},
        {HALO_OP_LINEAR_FWD, HALO_OP_LINEAR_BWD_DATA, HALO_X, HALO_Y, HALO_DY, HALO_DX, HALO_WT},
        {HALO_OP_LINEAR_FWD, HALO_OP_LINEAR_BWD_WEIGHTS, HALO_WT, HALO_Y, HALO_DY, HALO_DW, HALO_X},
        {HALO_OP_POOL_FWD, HALO_OP_POOL_BWD, HALO_X, HALO_Y, HALO_DY, HALO_DX, HALO_ROLES},
        {HALO_OP_FLATTEN, HALO_OP_UNFLATTEN, HALO_X, HALO_Y, HALO_DY, HALO_DX, HALO_ROLES},
        {HALO_OP_DROPOUT, HALO_OP_DROPOUT, HALO_X, HALO_Y, HALO_X, HALO_Y, HALO_ROLES},
    };
    for (size_t i = 0; i < HL_COUNT(pairs); i++) {
        double worst = 0;
        for (uint64_t seed = 1; seed <= 3 * TRIALS; seed++) worst = check_worse(worst, adjoint_error(&pairs[i], seed));
        tap_ok(worst <= 1e-13, "<Ax, y> = <x, A'y> for %s and %s (%.1e)", hl_op_kind_name(pairs[i].forward),
               hl_op_kind_name(pairs[i].backward), worst);
    }
}

/* The margin operation maps box and margin to box and margin; `reverse` is its adjoint there. */
static void test_margin_adjoint(void)
{
    double worst = 0;
    for (uint64_t seed = 1; seed <= 4 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_MARGIN, seed + 2000, dev);
        operand *o = &t.t[HALO_Y];
        double *x = random_like(&r, o), *y = random_like(&r, o), left = 0, right = 0;
        memcpy(o->value, x, (size_t)operand_cells(o) * 8);
        t.d.reverse = false;
        double *ax = result(&t, HALO_Y);
        memcpy(o->value, y, (size_t)operand_cells(o) * 8);
        t.d.reverse = true;
        double *ay = result(&t, HALO_Y);
        for (int64_t i = 0; i < operand_cells(o); i++) left += ax[i] * y[i], right += x[i] * ay[i];
        worst = check_worse(worst, fabs(left - right) / (double)operand_cells(o));
        free(x), free(y), free(ax), free(ay);
        trial_free(&t);
    }
    tap_ok(worst <= 1e-13, "<Mx, y> = <x, M'y> for the margin operation and its reverse (%.1e)", worst);
}

/* ------------------------------------------------------------------------------------------ linearity, shifts, blocks */

static void test_linearity(void)
{
    double worst = 0;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_CONV_FWD, seed + 3000, dev);
        t.d.act = HALO_ACT_NONE;
        drop(&t, HALO_B);
        operand *x = &t.t[HALO_X], *y = &t.t[HALO_Y];
        int64_t n = operand_cells(x);
        double *first = copy_of(x, x->value), *second = random_like(&r, x), *ya = result(&t, HALO_Y);
        memcpy(x->value, second, (size_t)n * 8);
        double *yb = result(&t, HALO_Y);
        for (int64_t i = 0; i < n; i++) x->value[i] = 2 * first[i] - 3 * second[i];
        double *yc = result(&t, HALO_Y), scale = 1e-30, error = 0;
        for (int64_t i = 0; i < operand_cells(y); i++) {
            error = check_worse(error, fabs(yc[i] - 2 * ya[i] + 3 * yb[i]));
            scale = fmax(scale, fabs(yc[i]));
        }
        worst = check_worse(worst, error / scale);
        free(first), free(second), free(ya), free(yb), free(yc);
        trial_free(&t);
    }
    tap_ok(worst <= 1e-13, "convolution is linear in x (%.1e)", worst);
}

/* A volume with a margin of 2, filled periodically by the margin operation, then convolved to the same extent. */
static double *periodic_conv(const double *cells, const int64_t e[3], const trial *weights, halo_window w,
                             int64_t stride)
{
    trial m = {.d = {.kind = HALO_OP_MARGIN}}, c = {.d = {.kind = HALO_OP_CONV_FWD, .window = w}};
    operand x = {.dress = DRESS_PROGRAM, .in = true, .out = true, .any_margin = true, .ext = {1, 2, e[0], e[1], e[2]}};
    operand y = {.dress = DRESS_PROGRAM, .ext = {1, 3, e[0] / stride, e[1] / stride, e[2] / stride}};
    memset(m.alias, -1, sizeof(m.alias));
    memset(c.alias, -1, sizeof(c.alias));
    for (int k = 0; k < 3; k++)
        for (int s = 0; s < 2; s++) x.margin[k][s] = 2, m.d.margin_mode[k][s] = HALO_MARGIN_WRAP;
    x.value = check_alloc(operand_cells(&x), 8);
    for (int64_t k = 0; k < box_size(&x); k++) x.value[box_cell(&x, k)] = cells[k];
    m.t[HALO_Y] = x;
    double *filled = result(&m, HALO_Y);
    give(&c, HALO_X, &x, filled);
    give(&c, HALO_WT, &weights->t[HALO_WT], weights->t[HALO_WT].value);
    give(&c, HALO_Y, &y, NULL);
    double *out = result(&c, HALO_Y);
    free(filled);
    trial_free(&m), trial_free(&c);
    return out;
}

/* out[c][d][h][w] = in shifted cyclically */
static double *shifted(const double *in, int64_t channels, const int64_t e[3], const int64_t by[3])
{
    double *out = check_alloc(channels * e[0] * e[1] * e[2], 8);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t d = 0; d < e[0]; d++)
            for (int64_t h = 0; h < e[1]; h++)
                for (int64_t w = 0; w < e[2]; w++)
                    out[((c * e[0] + (d + by[0]) % e[0]) * e[1] + (h + by[1]) % e[1]) * e[2] + (w + by[2]) % e[2]] =
                        in[((c * e[0] + d) * e[1] + h) * e[2] + w];
    return out;
}

static void test_shift(int64_t stride)
{
    rng r = {77};
    const int64_t e[3] = {4, 6, 8}, small[3] = {4 / stride, 6 / stride, 8 / stride}, by[3] = {1, 2, 3};
    const int64_t by_in[3] = {by[0] * stride, by[1] * stride, by[2] * stride};
    trial weights = {.t[HALO_WT] = {.dress = DRESS_MASTER, .in = true, .ext = {3, 2, 3, 5, 2}}};
    halo_window w = {
        .kernel = {3, 5, 2}, .stride = {stride, stride, stride}, .dilation = {1, 1, 2}, .pad_lo = {1, 2, 0}};
    weights.t[HALO_WT].value = random_like(&r, &weights.t[HALO_WT]);
    double *x = check_alloc(2 * 4 * 6 * 8, 8), error = 0;
    for (int i = 0; i < 2 * 4 * 6 * 8; i++) x[i] = rng_normal(&r);
    double *xs = shifted(x, 2, e, by_in), *y = periodic_conv(x, e, &weights, w, stride),
           *ys = periodic_conv(xs, e, &weights, w, stride);
    double *want = shifted(y, 3, small, by);
    for (int64_t i = 0; i < 3 * small[0] * small[1] * small[2]; i++) error = check_worse(error, fabs(ys[i] - want[i]));
    tap_ok(error <= 1e-13, "periodic convolution of stride %d commutes with shifts (%.1e)", (int)stride, error);
    free(x), free(xs), free(y), free(ys), free(want);
    free(weights.t[HALO_WT].value);
}

/* Convolution of a whole volume, and of its two halves along each dimension with the other half's cells as margin. */
static void test_halves(int dim)
{
    rng r = {99};
    double error = 0;
    trial t = {.d = {.kind = HALO_OP_CONV_FWD, .window = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}}};
    operand x = {.dress = DRESS_PROGRAM, .in = true, .ext = {2, 3, 6, 6, 6}},
            y = {.dress = DRESS_PROGRAM, .out = true, .ext = {2, 4, 6, 6, 6}};
    operand w = {.dress = DRESS_MASTER, .in = true, .ext = {4, 3, 3, 3, 3}};
    memset(t.alias, -1, sizeof(t.alias));
    double *xv = random_like(&r, &x), *wv = random_like(&r, &w);
    give(&t, HALO_X, &x, xv), give(&t, HALO_WT, &w, wv), give(&t, HALO_Y, &y, NULL);
    double *whole = result(&t, HALO_Y), *halves = check_alloc(operand_cells(&y), 8);
    for (int half = 0; half < 2; half++) {
        halo_op_desc d = t.d;
        void *ptr[HALO_ROLES] = {[HALO_X] = xv, [HALO_WT] = wv, [HALO_Y] = halves};
        d.t[HALO_X] = operand_plain(&x), d.t[HALO_WT] = operand_plain(&w), d.t[HALO_Y] = operand_plain(&y);
        d.t[HALO_X].ext[HALO_D + dim] = d.t[HALO_Y].ext[HALO_D + dim] = 3;
        d.t[HALO_X].lo[HALO_D + dim] = d.t[HALO_Y].lo[HALO_D + dim] = 3 * half;
        d.t[HALO_X].margin[dim][1 - half] = 1;
        check_status(dev->ctx, hl_op_run_once(dev, &d, "ref", ptr, &t.record), "conv");
    }
    for (int64_t i = 0; i < operand_cells(&y); i++) error = check_worse(error, fabs(whole[i] - halves[i]));
    tap_ok(error == 0, "two halves along %c with margins equal the whole", "DHW"[dim]);
    free(xv), free(wv), free(whole), free(halves);
    trial_free(&t);
}

/* A piece of a dropped-out tensor is what it is in the whole; about `keep` of it stays. */
static void test_dropout(void)
{
    const int64_t e[HALO_DIMS] = {4, 3, 6, 8, 10}, n = 4 * 3 * 6 * 8 * 10;
    halo_operand whole = hl_operand_whole(HALO_F64, HALO_NCDHW, e), part = whole;
    halo_op_desc d = {.kind = HALO_OP_DROPOUT, .keep = 0.7, .layer = 5};
    halo_step_record record = {.seed = 3, .step = 9};
    double *x = check_alloc(n, 8), *y = check_alloc(n, 8), *z = check_alloc(n, 8), kept = 0;
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_Y] = y};
    for (int64_t i = 0; i < n; i++) x[i] = 1, z[i] = -1;
    d.t[HALO_X] = d.t[HALO_Y] = whole;
    memcpy(d.global_ext, e, sizeof(e));
    check_status(dev->ctx, hl_op_run_once(dev, &d, NULL, ptr, &record), "dropout");
    for (int64_t i = 0; i < n; i++) kept += y[i] != 0;
    tap_ok(fabs(kept / (double)n - 0.7) < 0.02, "dropout keeps %.3f of 0.7", kept / (double)n);
    for (int half = 0; half < 2; half++) { /* two ranks: half of the samples each, and of these half the width */
        part.ext[HALO_N] = 2, part.lo[HALO_N] = 2 * half;
        record.first_sample = 2 * half;
        for (int side = 0; side < 2; side++) {
            part.ext[HALO_W] = 5, part.lo[HALO_W] = d.global_lo[HALO_W] = 5 * side;
            d.t[HALO_X] = d.t[HALO_Y] = part;
            ptr[HALO_Y] = z;
            check_status(dev->ctx, hl_op_run_once(dev, &d, NULL, ptr, &record), "dropout");
        }
    }
    tap_ok(memcmp(y, z, (size_t)n * 8) == 0, "dropout does not depend on how the tensor is split");
    free(x), free(y), free(z);
}

/* Equal values: the first cell of the window that is inside wins, also where the window begins on padding. */
static void test_pool_ties(void)
{
    double x[9] = {5, 5, 5, 5, 5, 5, 5, 5, 5}, y[9], aux[9], wrong = 0;
    uint8_t arg[9];
    halo_op_desc d = {
        .kind = HALO_OP_POOL_FWD, .pool = HALO_POOL_MAX, .window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}}};
    const int64_t e[HALO_DIMS] = {1, 1, 1, 3, 3};
    static const double first[9] = {4, 3, 3, 1, 0, 0, 1, 0, 0}; /* row above or column before missing: 3 or 1 cells later */
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_Y] = y, [HALO_AUX] = arg};
    d.t[HALO_X] = d.t[HALO_Y] = hl_operand_whole(HALO_F64, HALO_NCDHW, e);
    d.t[HALO_AUX] = hl_operand_whole(HALO_U8, HALO_NCDHW, e);
    check_status(dev->ctx, hl_op_run_once(dev, &d, NULL, ptr, NULL), "pool");
    check_status(dev->ctx, dev->ops->download(dev, &d.t[HALO_AUX], arg, HALO_F64, aux), "download");
    for (int i = 0; i < 9; i++) wrong += aux[i] != first[i] || y[i] != 5;
    tap_ok(wrong == 0, "max pooling of equal values takes the first cell inside");
}

/* Values that are not finite are counted. */
/* Labels that are no class spoil the loss and their own cell's gradient, and no other's. */
static void test_labels(halo_device *on)
{
    float x[6] = {1, -2, 100, 0, 3, -100}, dx[6], t[3] = {0, 1, 0}; /* [2 classes][3 cells] */
    double stat[2] = {0, 0};
    halo_op_desc d = {.kind = HALO_OP_LOSS, .loss = HALO_LOSS_CROSS_ENTROPY};
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_T] = t, [HALO_STAT] = stat, [HALO_DX] = dx};
    const halo_step_record record = {.loss_scale = 1, .weight_sum = 1};
    const int64_t two[HALO_DIMS] = {1, 2, 1, 1, 3}, one[HALO_DIMS] = {1, 1, 1, 1, 3};
    d.t[HALO_X] = d.t[HALO_DX] = hl_operand_whole(HALO_F32, HALO_NCDHW, two);
    d.t[HALO_T] = hl_operand_whole(HALO_F32, HALO_NCDHW, one);
    d.t[HALO_STAT] = hl_operand_flat(HALO_F64, 2);
    check_status(on->ctx, hl_op_run_once(on, &d, NULL, ptr, &record), "loss");
    double want = (log1p(exp(-1)) + log1p(exp(-5)) + 0) / 3;
    tap_ok(fabs(stat[0] - want) <= 1e-6 && fabs(dx[2]) <= 1e-30, "cross entropy of logits 200 apart is %.7g, no exponential overflows", stat[0]);
    static const float bad[] = {-1, 2, 0.5f, NAN, INFINITY};
    int seen = 0;
    for (size_t i = 0; i < HL_COUNT(bad); i++) {
        t[1] = bad[i];
        stat[0] = 0;
        check_status(on->ctx, hl_op_run_once(on, &d, NULL, ptr, &record), "loss");
        seen += isnan(stat[0]) && isnan(dx[1]) && isnan(dx[4]) && isfinite(dx[0]) && isfinite(dx[5]);
    }
    tap_ok(seen == (int)HL_COUNT(bad), "a label that is no class makes the loss NaN");
}

/* Dice of two classes by hand; a network that is sure and right has none to lose; a part of a sample is refused. */
static void test_dice(halo_device *on)
{
    float x[4] = {0, 0, 0, 0}, t[2] = {0, 1}; /* [2 classes][2 cells] */
    double stat[2] = {0, 0};
    halo_candidate c[HALO_MAX_CANDIDATES];
    halo_op_desc d = {.kind = HALO_OP_LOSS, .loss = HALO_LOSS_DICE};
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_T] = t, [HALO_STAT] = stat};
    const halo_step_record record = {.loss_scale = 1, .weight_sum = 1};
    const int64_t two[HALO_DIMS] = {1, 2, 1, 1, 2}, one[HALO_DIMS] = {1, 1, 1, 1, 2};
    d.t[HALO_X] = hl_operand_whole(HALO_F32, HALO_NCDHW, two);
    d.t[HALO_T] = hl_operand_whole(HALO_F32, HALO_NCDHW, one);
    d.t[HALO_STAT] = hl_operand_flat(HALO_F64, 2);
    if (hl_op_candidates(on, &d, c) == 0) {
        tap_skip("no dice on this backend");
        return;
    }
    check_status(on->ctx, hl_op_run_once(on, &d, NULL, ptr, &record), "dice");
    tap_ok(fabs(stat[0] - (1 - (2 * 0.5 + 1) / 3)) <= 1e-6, "dice of two cells and one half each: %.7g", stat[0]);
    x[0] = x[3] = 50;
    stat[0] = 0;
    check_status(on->ctx, hl_op_run_once(on, &d, NULL, ptr, &record), "dice");
    tap_ok(fabs(stat[0]) <= 1e-6, "of what is sure and right 0: %.2g", stat[0]);
    for (int k = 1; k < HALO_DIMS; k++) d.global_ext[k] = one[k] * 2;
    tap_ok(hl_op_candidates(on, &d, c) == 0, "a part of a sample is declined");
}

/* Two samples of three classes, cut into two parts of unequal size: sums of the parts, added, then loss and gradient of each part are those of the whole; class weights, an ignored label and
 * divisors with it. */
static void test_dice_parts(halo_device *on, halo_loss loss)
{
    enum { N = 2, C = 3, W = 7, CUT = 3 };
    float x[N * C * W], t[N * W], dx[2][N * C * W] = {{0}};
    double stat[2][2] = {{0}}, sums[2][2 * N * C], weight[C] = {1, 0.5, 3}, divisor[N] = {4, 5};
    const halo_step_record record = {.loss_scale = 2, .weight_sum = 3};
    const int64_t lo[3] = {0, 0, CUT}, ext[3] = {W, CUT, W - CUT};
    const int64_t all[HALO_DIMS] = {N, C, 1, 1, W}, one[HALO_DIMS] = {N, 1, 1, 1, W};
    rng r = {17};
    halo_candidate c[HALO_MAX_CANDIDATES];
    halo_op_desc d = {.kind = HALO_OP_LOSS, .loss = loss, .ignores = true, .ignore = 9};
    for (int i = 0; i < N * C * W; i++) x[i] = (float)rng_normal(&r);
    for (int i = 0; i < N * W; i++) t[i] = rng_chance(&r, 20) ? 9 : (float)rng_int(&r, 0, C - 1);
    d.t[HALO_X] = d.t[HALO_DX] = hl_operand_whole(HALO_F32, HALO_NCDHW, all);
    d.t[HALO_T] = hl_operand_whole(HALO_F32, HALO_NCDHW, one);
    d.t[HALO_STAT] = hl_operand_flat(HALO_F64, 2);
    d.t[HALO_WT] = hl_operand_flat(HALO_F64, C);
    d.t[HALO_X2] = hl_operand_flat(HALO_F64, N);
    if (hl_op_candidates(on, &d, c) == 0) {
        tap_skip("no weighted dice on this backend");
        return;
    }
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_T] = t, [HALO_STAT] = stat[0], [HALO_DX] = dx[0], [HALO_WT] = weight, [HALO_X2] = divisor};
    check_status(on->ctx, hl_op_run_once(on, &d, NULL, ptr, &record), "loss");
    memcpy(d.global_ext, one, sizeof(d.global_ext));
    ptr[HALO_STAT] = stat[1], ptr[HALO_DX] = dx[1];
    for (int pass = 0; pass < 2; pass++)
        for (int part = 1; part < 3; part++) {
            const halo_role cut[] = {HALO_X, HALO_T, HALO_DX};
            halo_op_desc p = d;
            p.t[HALO_STAT2] = hl_operand_flat(HALO_F64, 2 * N * C);
            for (int k = 0; k < 3; k++) p.t[cut[k]].lo[HALO_W] = lo[part], p.t[cut[k]].ext[HALO_W] = ext[part];
            if (pass == 0) {
                p.kind = HALO_OP_LOSS_SUMS;
                p.t[HALO_STAT].dtype = p.t[HALO_DX].dtype = HALO_NONE;
            }
            ptr[HALO_STAT2] = sums[pass == 0 ? part - 1 : 0];
            check_status(on->ctx, hl_op_run_once(on, &p, NULL, ptr, &record), "a part");
            for (int i = 0; pass == 0 && part == 2 && i < 2 * N * C; i++) sums[0][i] += sums[1][i];
        }
    double error = fabs(stat[0][0] - stat[1][0]) / stat[0][0], worst = 0;
    for (int i = 0; i < N * C * W; i++) worst = check_worse(worst, (double)fabsf(dx[0][i] - dx[1][i]));
    tap_ok(error <= 1e-6 && worst <= 1e-6 && stat[1][1] == 2 * N, "%s in two parts is that of the whole: %.7g, %.1e, dx %.1e", loss == HALO_LOSS_DICE ? "dice" : "dice with cross entropy",
           stat[0][0], error, worst);
}

/* <up x, v> = <x, up' v>, of a volume; and constants stay constants. */
static void test_upsample(void)
{
    double worst = 0, rough = 0;
    for (uint64_t seed = 1; seed <= 4 * TRIALS; seed++) {
        rng r = {seed};
        trial t;
        trial_make(&t, HALO_OP_UPSAMPLE_FWD, seed + 3000, dev);
        if (t.d.global_ext[HALO_W] == 0) {
            trial b = another(&t, HALO_OP_UPSAMPLE_BWD);
            double *v = random_like(&r, &t.t[HALO_Y]), *y = result(&t, HALO_Y);
            give(&b, HALO_DY, &t.t[HALO_Y], v);
            give(&b, HALO_DX, &t.t[HALO_X], NULL);
            double *dx = result(&b, HALO_DX), one = dot(&t.t[HALO_Y], y, v);
            worst = check_worse(worst, fabs(one - dot(&t.t[HALO_X], t.t[HALO_X].value, dx)) / fmax(fabs(one), 1));
            free(v), free(y), free(dx);
            trial_free(&b);
        }
        for (int64_t i = 0; i < operand_cells(&t.t[HALO_X]); i++) t.t[HALO_X].value[i] = 3;
        double *y = result(&t, HALO_Y);
        for (int64_t i = 0; i < box_size(&t.t[HALO_Y]); i++) rough = check_worse(rough, fabs(y[box_cell(&t.t[HALO_Y], i)] - 3));
        free(y);
        trial_free(&t);
    }
    tap_ok(worst <= 1e-12, "upsampling backward is the adjoint of forward (%.1e)", worst);
    double three[3] = {1, 2, 3}, six[6] = {0}, error = 0;
    static const double want[6] = {1, 1.25, 1.75, 2.25, 2.75, 3}; /* PyTorch's interpolate, align_corners = false */
    halo_op_desc d = {.kind = HALO_OP_UPSAMPLE_FWD, .window = {.kernel = {1, 1, 4}, .stride = {1, 1, 2}, .dilation = {1, 1, 1}, .pad_lo = {0, 0, 1}}};
    d.t[HALO_X] = hl_operand_flat(HALO_F64, 3);
    d.t[HALO_Y] = hl_operand_flat(HALO_F64, 6);
    check_status(dev->ctx, hl_op_run_once(dev, &d, NULL, (void *[HALO_ROLES]){[HALO_X] = three, [HALO_Y] = six}, NULL), "upsampling");
    for (int i = 0; i < 6; i++) error = check_worse(error, fabs(six[i] - want[i]));
    tap_ok(error <= 1e-15, "1 2 3 becomes 1 1.25 1.75 2.25 2.75 3 (%.1e)", error);
    tap_ok(rough <= 1e-12, "a constant stays one, to the volume's ends (%.1e)", rough);
}

static void test_sumsq(void)
{
    double x[5] = {3, NAN, -INFINITY, -4, INFINITY}, stat[3];
    halo_op_desc d = {.kind = HALO_OP_SUMSQ};
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_STAT] = stat};
    d.t[HALO_X] = hl_operand_flat(HALO_F64, 5);
    d.t[HALO_STAT] = hl_operand_flat(HALO_F64, 3);
    check_status(dev->ctx, hl_op_run_once(dev, &d, NULL, ptr, NULL), "sumsq");
    tap_ok(stat[1] == 3, "sumsq counts 3 values that are not finite");
    tap_ok(stat[2] == 4, "and finds the largest of the others");
}

int main(void)
{
    halo_context *ctx;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &(halo_device_options){.compute = HALO_F64}, &dev), "ref");
    test_conv_gradients();
    test_transposed_gradients();
    test_pool_gradients(HALO_POOL_MAX);
    test_pool_gradients(HALO_POOL_AVG);
    test_norm_gradients();
    test_act_gradients();
    test_linear_gradients();
    test_loss_gradients();
    test_adjoints();
    test_margin_adjoint();
    test_linearity();
    test_shift(1);
    test_shift(2);
    for (int k = 0; k < 3; k++) test_halves(k);
    test_pool_ties();
    test_dropout();
    test_upsample();
    test_sumsq();
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        halo_device *on;
        if (hl_device_open(ctx, (*b)->name, NULL, &on) != HALO_OK) continue;
        tap_note("labels on %s", (*b)->name);
        test_labels(on);
        test_dice(on);
        test_dice_parts(on, HALO_LOSS_DICE);
        test_dice_parts(on, HALO_LOSS_DICE_CE);
        on->ops->close(on);
    }
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
