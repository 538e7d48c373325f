/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c -- see suite.h: the generator, one function per family of operations, and the oracle's run. */
#include "suite.h"

#include "tensor/upsample.h"
#include "tensor/half.h"
#include "tests/check.h"

/* -------------------------------------------------------------------------------------------------- random numbers */

uint64_t rng_next(rng *r) /* splitmix64 (Steele, Lea & Flood 2014) */
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int64_t rng_int(rng *r, int64_t lo, int64_t hi) { return lo + (int64_t)(rng_next(r) % (uint64_t)(hi - lo + 1)); }
bool rng_chance(rng *r, int percent) { return rng_int(r, 0, 99) < percent; }
double rng_uniform(rng *r, double lo, double hi) { return lo + (hi - lo) * (double)(rng_next(r) >> 11) * 0x1p-53; }

double rng_normal(rng *r) /* sum of uniforms: tails do not matter here */
{
    double s = 0;
    for (int i = 0; i < 4; i++) s += rng_uniform(r, -1, 1);
    return s * 0.866;
}

#define PICK(r, ...) pick(r, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
static int64_t pick(rng *r, const int64_t *from, size_t n) { return from[rng_int(r, 0, (int64_t)n - 1)]; }

/* --------------------------------------------------------------------------------------------------------- operands */

int64_t operand_cells(const operand *o)
{
    int64_t n = 1;
    for (int i = 0; i < HALO_DIMS; i++)
        n *= o->ext[i] + (i >= HALO_D ? o->margin[i - HALO_D][0] + o->margin[i - HALO_D][1] : 0);
    return n;
}

halo_operand operand_plain(const operand *o)
{
    bool real = o->type == HALO_NONE || o->type == HALO_F32 || o->type == HALO_F64;
    return hl_operand_margined(real ? HALO_F64 : o->type, HALO_NCDHW, o->ext, o->margin);
}

static operand *use(trial *t, halo_role role, dress how, bool in, bool out, const int64_t ext[HALO_DIMS])
{
    operand *o = &t->t[role];
    *o = (operand){.dress = how, .in = in, .out = out};
    memcpy(o->ext, ext, sizeof(o->ext));
    return o;
}

static operand *use5(trial *t, halo_role role, dress how, bool in, bool out, int64_t n, int64_t c, int64_t d,
                     int64_t h, int64_t w)
{
    return use(t, role, how, in, out, (const int64_t[]){n, c, d, h, w});
}

static operand *use_flat(trial *t, halo_role role, dress how, bool in, bool out, int64_t n)
{
    return use5(t, role, how, in, out, 1, 1, 1, 1, n);
}

static void random_margin(rng *r, operand *o, int percent)
{
    for (int k = 0; k < 3; k++)
        for (int side = 0; side < 2; side++) o->margin[k][side] = rng_chance(r, percent) ? rng_int(r, 0, 3) : 0;
}

/* Values an f32 holds exactly. */
static void fill_normal(rng *r, operand *o)
{
    int64_t n = operand_cells(o);
    o->value = check_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n; i++) o->value[i] = (double)(float)rng_normal(r);
}

static void fill_integers(rng *r, operand *o, int64_t lo, int64_t hi)
{
    int64_t n = operand_cells(o);
    o->value = check_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n; i++) o->value[i] = (double)rng_int(r, lo, hi);
}

static void fill_rest(rng *r, trial *t)
{
    for (int i = 0; i < HALO_ROLES; i++)
        if (t->t[i].dress != DRESS_NONE && t->t[i].in && !t->t[i].value) fill_normal(r, &t->t[i]);
}

static void random_extents(rng *r, int64_t ext[HALO_DIMS], int64_t most)
{
    ext[HALO_N] = rng_int(r, 1, 3);
    ext[HALO_C] = PICK(r, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 20, 24, 33);
    for (int k = HALO_D; k < HALO_DIMS; k++) ext[k] = rng_int(r, 1, k == HALO_W ? 2 * most : most);
    if (rng_chance(r, 15)) ext[HALO_D] = 1;
}

/* As random_extents; one in ten is large enough to be dealt to several threads. */
static void pointwise_extents(rng *r, int64_t ext[HALO_DIMS])
{
    random_extents(r, ext, 6);
    if (!rng_chance(r, 10)) return;
    ext[HALO_C] = PICK(r, 5, 8, 17);
    ext[HALO_H] = rng_int(r, 9, 14);
    ext[HALO_W] = rng_int(r, 40, 90);
}

static int64_t flat_length(rng *r) { return rng_chance(r, 20) ? rng_int(r, 20000, 60000) : rng_int(r, 1, 3000); }

static void random_act(rng *r, halo_op_desc *d)
{
    d->act = (halo_act)rng_int(r, 0, HALO_ACT_SCALE);
    d->slope = d->act == HALO_ACT_SCALE ? -1.5 : 0.125;
}

/* ---------------------------------------------------------------------------------------------------------- windows */

/* Sets window, output extents and input extents of a conv or pool; kernels up to `most`. */
static void random_window(rng *r, halo_op_desc *d, int64_t most, int64_t in[HALO_DIMS], int64_t out[HALO_DIMS])
{
    halo_window *w = &d->window;
    bool equal = rng_chance(r, 60), flat = rng_chance(r, 15);
    for (int k = 0; k < 3; k++) {
        if (k == 0 || !equal) {
            w->kernel[k] = rng_chance(r, 50) ? 3 : rng_int(r, 1, most);
            w->stride[k] = PICK(r, 1, 1, 1, 2, 2, 3);
            w->dilation[k] = PICK(r, 1, 1, 1, 1, 2, 3);
        } else {
            w->kernel[k] = w->kernel[0], w->stride[k] = w->stride[0], w->dilation[k] = w->dilation[0];
        }
        if (flat && k == 0) {
            w->kernel[0] = w->stride[0] = w->dilation[0] = 1;
            out[HALO_D] = 1;
            equal = false;
        }
        int64_t span = w->dilation[k] * (w->kernel[k] - 1) + 1, pad_hi = rng_int(r, 0, span / 2 + 1);
        w->pad_lo[k] = rng_chance(r, 8)    ? -rng_int(r, 1, 2)
                       : rng_chance(r, 50) ? (span - 1) / 2
                                           : rng_int(r, 0, span / 2 + 1);
        in[HALO_D + k] =
            (out[HALO_D + k] - 1) * w->stride[k] + span - w->pad_lo[k] - pad_hi + rng_int(r, 0, w->stride[k] - 1);
        in[HALO_D + k] = hl_max64(1, in[HALO_D + k]);
    }
}

static void three_window(rng *r, halo_op_desc *d, int64_t in[HALO_DIMS], const int64_t out[HALO_DIMS])
{
    halo_window *w = &d->window;
    for (int k = 0; k < 3; k++) {
        w->kernel[k] = 3, w->stride[k] = w->dilation[k] = 1;
        w->pad_lo[k] = rng_chance(r, 60) ? 1 : rng_int(r, -2, 3);
        in[HALO_D + k] = hl_max64(1, out[HALO_D + k] + 2 - w->pad_lo[k] - (rng_chance(r, 60) ? 1 : rng_int(r, -1, 3)));
    }
}

static int64_t product(const int64_t *e, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= e[i];
    return p;
}

/* Input x extents, output y extents of a convolution of bearable size. */
static void conv_shape(rng *r, halo_op_desc *d, int64_t x[HALO_DIMS], int64_t y[HALO_DIMS])
{
    int64_t work;
    bool three = rng_chance(r, 40); /* what most networks are made of, and Winograd is for */
    do {
        random_extents(r, x, 5);
        random_extents(r, y, 6);
        y[HALO_N] = x[HALO_N];
        if (rng_chance(r, 25)) x[HALO_C] = PICK(r, 1, 4);
        if (three)
            three_window(r, d, x, y);
        else
            random_window(r, d, rng_chance(r, 20) ? 7 : 4, x, y);
        work = product(y, 5) * x[HALO_C] * product(d->window.kernel, 3);
    } while (work > TRIAL_WORK || product(x, 5) > TRIAL_WORK);
}

static void make_conv(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t x[HALO_DIMS], y[HALO_DIMS];
    conv_shape(r, d, x, y);
    const int64_t w[HALO_DIMS] = {y[HALO_C], x[HALO_C], d->window.kernel[0], d->window.kernel[1], d->window.kernel[2]};
    bool bias = rng_chance(r, 70);
    if (d->kind == HALO_OP_CONV_FWD) {
        random_margin(r, use(t, HALO_X, DRESS_PROGRAM, true, false, x), 50);
        use(t, HALO_WT, DRESS_MASTER, true, false, w);
        if (bias) use_flat(t, HALO_B, DRESS_MASTER, true, false, y[HALO_C]);
        random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, y), 30);
        random_act(r, d);
    } else if (d->kind == HALO_OP_CONV_BWD_DATA) {
        d->accumulate = rng_chance(r, 40);
        random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, y), 40);
        use(t, HALO_WT, DRESS_MASTER, true, false, w);
        random_margin(r, use(t, HALO_DX, DRESS_PROGRAM, d->accumulate, true, x), 30);
        if (d->accumulate || rng_chance(r, 50)) return;
        if (bias) use_flat(t, HALO_B, DRESS_MASTER, true, false, x[HALO_C]); /* as a transposed convolution */
        random_act(r, d);
    } else {
        d->accumulate = rng_chance(r, 40);
        random_margin(r, use(t, HALO_X, DRESS_PROGRAM, true, false, x), 50);
        random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, y), 30);
        use(t, HALO_DW, DRESS_MASTER, d->accumulate, true, w);
        if (bias) use_flat(t, HALO_DB, DRESS_MASTER, d->accumulate, true, y[HALO_C]);
    }
}

/* A convolution whose outputs are pooled in windows side by side. */
static void make_conv_pool(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t x[HALO_DIMS], z[HALO_DIMS], y[HALO_DIMS];
    bool twos = rng_chance(r, 60);
    do {
        bool three = rng_chance(r, 50);
        random_extents(r, x, 5);
        random_extents(r, y, 4);
        y[HALO_N] = x[HALO_N];
        if (rng_chance(r, 25)) x[HALO_C] = PICK(r, 1, 4);
        memcpy(z, y, sizeof(z));
        for (int k = 0; k < 3; k++) {
            d->pool_side[k] = twos ? 2 : rng_int(r, 1, 3);
            if (y[HALO_D] == 1 && k == 0 && rng_chance(r, 50)) d->pool_side[k] = 1;
            z[HALO_D + k] *= d->pool_side[k];
        }
        if (three)
            three_window(r, d, x, z);
        else
            random_window(r, d, 3, x, z);
        for (int k = 0; k < 3; k++) y[HALO_D + k] = z[HALO_D + k] / d->pool_side[k]; /* a flat window sets z's depth to 1 */
        if (z[HALO_D] == 1) d->pool_side[0] = y[HALO_D] = 1;
    } while (product(z, 5) * x[HALO_C] * product(d->window.kernel, 3) > TRIAL_WORK || product(x, 5) > TRIAL_WORK);
    const int64_t w[HALO_DIMS] = {y[HALO_C], x[HALO_C], d->window.kernel[0], d->window.kernel[1], d->window.kernel[2]};
    d->pool = (halo_pool)rng_int(r, 0, 1);
    random_margin(r, use(t, HALO_X, DRESS_PROGRAM, true, false, x), 50);
    use(t, HALO_WT, DRESS_MASTER, true, false, w);
    if (rng_chance(r, 70)) use_flat(t, HALO_B, DRESS_MASTER, true, false, y[HALO_C]);
    random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, y), 30);
    random_act(r, d);
    if ((d->pool == HALO_POOL_AVG && product(d->pool_side, 3) > 8) || rng_chance(r, 20)) return;
    use(t, HALO_AUX, DRESS_AUX, false, true, y)->type = HALO_U8;
}

/* What a trial of the kind above computes before it pools. */
static void unpool_trial(trial *t, halo_device *oracle)
{
    trial f = *t;
    double *out[HALO_ROLES];
    f.d.kind = HALO_OP_CONV_FWD;
    f.t[HALO_AUX] = (operand){.dress = DRESS_NONE};
    memset(f.t[HALO_Y].margin, 0, sizeof(f.t[HALO_Y].margin));
    for (int k = 0; k < 3; k++) f.t[HALO_Y].ext[HALO_D + k] *= f.d.pool_side[k];
    trial_oracle(&f, oracle, false, out);
    t->z = out[HALO_Y];
}

/* Averages over windows that overlap. */
static void make_act_average(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t x[HALO_DIMS], y[HALO_DIMS];
    random_extents(r, y, 4);
    memcpy(x, y, sizeof(x));
    for (int k = 0; k < 3; k++) {
        int64_t kernel = rng_int(r, 1, 4), stride = rng_int(r, 1, 2);
        d->window.kernel[k] = kernel;
        d->window.stride[k] = stride;
        d->window.dilation[k] = 1;
        d->window.pad_lo[k] = rng_int(r, hl_max64(0, kernel - stride), hl_max64(0, kernel - stride) + 1);
        x[HALO_D + k] = hl_max64(1, y[HALO_D + k] * stride - rng_int(r, -1, stride - 1));
    }
    d->pool = HALO_POOL_AVG;
    d->count_pad = rng_chance(r, 50);
    d->act = rng_chance(r, 50) ? HALO_ACT_RELU : HALO_ACT_LEAKY_RELU;
    d->slope = 0.125;
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, y), 30);
    random_margin(r, use(t, HALO_DX, DRESS_PROGRAM, false, true, x), 30);
    operand *aux = use(t, HALO_AUX, DRESS_AUX, true, false, y);
    aux->type = HALO_U8;
    fill_integers(r, aux, 0, (1 << product(d->window.stride, 3)) - 1);
}

/* Windows that begin before dx's box or end behind it, or leave cells of it over. */
static void make_act_pool(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t x[HALO_DIMS], y[HALO_DIMS];
    bool twos = rng_chance(r, 60), whole = rng_chance(r, 50);
    if (rng_chance(r, 30)) {
        make_act_average(t, r);
        return;
    }
    random_extents(r, y, 4);
    memcpy(x, y, sizeof(x));
    for (int k = 0; k < 3; k++) {
        int64_t side = twos ? 2 : rng_int(r, 1, 3);
        d->window.kernel[k] = d->window.stride[k] = side;
        d->window.dilation[k] = 1;
        d->window.pad_lo[k] = whole ? 0 : rng_int(r, -2, side);
        x[HALO_D + k] = hl_max64(1, y[HALO_D + k] * side - d->window.pad_lo[k] + (whole ? rng_int(r, 0, side - 1) : rng_int(r, -2, 2)));
    }
    int64_t cells = product(d->window.kernel, 3);
    d->pool = (halo_pool)rng_int(r, 0, 1);
    random_act(r, d);
    bool max = d->pool == HALO_POOL_MAX, constant = d->act == HALO_ACT_NONE || d->act == HALO_ACT_SCALE;
    if (!max && !constant && (d->act != HALO_ACT_RELU || cells > 8)) d->act = cells > 8 ? HALO_ACT_SCALE : HALO_ACT_LEAKY_RELU, constant = cells > 8;
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, y), 30);
    random_margin(r, use(t, HALO_DX, DRESS_PROGRAM, false, true, x), 30);
    if (max) {
        operand *o = use(t, HALO_Y, DRESS_PROGRAM, true, false, y);
        if (rng_chance(r, 40)) fill_integers(r, o, -1, 1);
    }
    if (!max && constant) return;
    operand *aux = use(t, HALO_AUX, DRESS_AUX, true, false, y);
    aux->type = HALO_U8;
    fill_integers(r, aux, 0, max ? cells - 1 : (1 << cells) - 1);
}

static void make_bias_bwd(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    t->d.accumulate = rng_chance(r, 40);
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, e), 30);
    use_flat(t, HALO_DB, DRESS_MASTER, t->d.accumulate, true, e[HALO_C]);
}

static halo_dtype aux_type(const halo_op_desc *d) { return product(d->window.kernel, 3) > 256 ? HALO_I32 : HALO_U8; }

static void make_pool_fwd(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t x[HALO_DIMS], y[HALO_DIMS];
    do {
        random_extents(r, y, 5);
        memcpy(x, y, sizeof(x));
        random_window(r, d, rng_chance(r, 5) ? 7 : 4, x, y);
    } while (product(y, 5) * product(d->window.kernel, 3) > TRIAL_WORK || product(x, 5) > TRIAL_WORK);
    d->pool = (halo_pool)rng_int(r, 0, 1);
    d->count_pad = rng_chance(r, 50);
    operand *in = use(t, HALO_X, DRESS_PROGRAM, true, false, x);
    random_margin(r, in, 40);
    if (rng_chance(r, 50)) fill_integers(r, in, -2, 2); /* ties: the first wins */
    random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, y), 30);
    if (d->pool == HALO_POOL_MAX && rng_chance(r, 80)) {
        operand *aux = use(t, HALO_AUX, DRESS_AUX, false, true, y);
        aux->type = aux_type(d);
        aux->exact = true;
    }
    if (d->pool == HALO_POOL_AVG && product(d->window.stride, 3) <= 8 && rng_chance(r, 60)) {
        operand *aux = use(t, HALO_AUX, DRESS_AUX, false, true, y);
        aux->type = HALO_U8;
        aux->exact = true;
    }
}

/* The argmax of a backward trial is that of a forward one. */
static void make_pool_bwd(trial *t, rng *r, halo_device *oracle)
{
    trial f = {.seed = t->seed, .d = {.kind = HALO_OP_POOL_FWD}};
    double *out[HALO_ROLES];
    memset(f.alias, -1, sizeof(f.alias));
    make_pool_fwd(&f, r);
    if (f.d.pool == HALO_POOL_MAX && f.t[HALO_AUX].dress == DRESS_NONE) {
        use(&f, HALO_AUX, DRESS_AUX, false, true, f.t[HALO_Y].ext);
        f.t[HALO_AUX].type = aux_type(&f.d);
    }
    memset(f.t[HALO_Y].margin, 0, sizeof(f.t[HALO_Y].margin));
    fill_rest(r, &f);
    trial_oracle(&f, oracle, false, out);
    t->d = f.d;
    t->d.kind = HALO_OP_POOL_BWD;
    t->d.accumulate = rng_chance(r, 40);
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, f.t[HALO_Y].ext), 30);
    operand *dx = use(t, HALO_DX, DRESS_PROGRAM, t->d.accumulate, true, f.t[HALO_X].ext);
    memcpy(dx->margin, f.t[HALO_X].margin, sizeof(dx->margin));
    if (f.d.pool == HALO_POOL_MAX) {
        operand *aux = use(t, HALO_AUX, DRESS_AUX, true, false, f.t[HALO_Y].ext);
        aux->type = f.t[HALO_AUX].type;
        aux->value = out[HALO_AUX];
        out[HALO_AUX] = NULL;
    }
    for (int i = 0; i < HALO_ROLES; i++) free(out[i]);
    trial_free(&f);
}

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

static void fill_positive(rng *r, operand *o)
{
    fill_normal(r, o);
    for (int64_t i = 0; i < operand_cells(o); i++) o->value[i] = fabs(o->value[i]) + 0.125;
}

static void make_norm(trial *t, rng *r)
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

static void make_act(trial *t, rng *r)
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

static void make_add(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    random_margin(r, use(t, HALO_X, DRESS_PROGRAM, true, false, e), 30);
    random_margin(r, use(t, HALO_X2, DRESS_PROGRAM, true, false, e), 30);
    random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, e), 30);
    if (rng_chance(r, 30)) t->alias[HALO_Y] = rng_chance(r, 50) ? HALO_X : HALO_X2;
}

static void make_dropout(trial *t, rng *r)
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

static void make_copy(trial *t, rng *r)
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

static void make_margin(trial *t, rng *r)
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

static void make_flatten(trial *t, rng *r)
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
static void make_upsample(trial *t, rng *r)
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

/* ----------------------------------------------------------------------------------------------- linear, loss, update */

static void make_linear(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t n = rng_int(r, 1, 5), in = rng_chance(r, 20) ? rng_int(r, 100, 700) : rng_int(r, 1, 40),
            out = rng_int(r, 1, 70);
    bool bias = rng_chance(r, 70);
    d->accumulate = d->kind != HALO_OP_LINEAR_FWD && rng_chance(r, 40);
    if (d->kind == HALO_OP_LINEAR_FWD) {
        use5(t, HALO_X, DRESS_ROWS, true, false, n, in, 1, 1, 1);
        use5(t, HALO_WT, DRESS_MASTER, true, false, out, in, 1, 1, 1);
        if (bias) use_flat(t, HALO_B, DRESS_MASTER, true, false, out);
        use5(t, HALO_Y, DRESS_ROWS, false, true, n, out, 1, 1, 1);
        random_act(r, d);
    } else if (d->kind == HALO_OP_LINEAR_BWD_DATA) {
        use5(t, HALO_DY, DRESS_ROWS, true, false, n, out, 1, 1, 1);
        use5(t, HALO_WT, DRESS_MASTER, true, false, out, in, 1, 1, 1);
        use5(t, HALO_DX, DRESS_ROWS, d->accumulate, true, n, in, 1, 1, 1);
    } else {
        use5(t, HALO_X, DRESS_ROWS, true, false, n, in, 1, 1, 1);
        use5(t, HALO_DY, DRESS_ROWS, true, false, n, out, 1, 1, 1);
        use5(t, HALO_DW, DRESS_MASTER, d->accumulate, true, out, in, 1, 1, 1);
        if (bias) use_flat(t, HALO_DB, DRESS_MASTER, d->accumulate, true, out);
    }
}

/* Logits, some of them far apart, and class numbers. */
static void make_cross_entropy(trial *t, rng *r, dress how, const int64_t e[HALO_DIMS])
{
    int64_t one[HALO_DIMS] = {e[HALO_N], 1, e[HALO_D], e[HALO_H], e[HALO_W]};
    double spread = rng_chance(r, 30) ? 30 : 2;
    operand *x = use(t, HALO_X, how, true, false, e);
    fill_normal(r, x);
    for (int64_t i = 0; i < operand_cells(x); i++) x->value[i] = (double)(float)(spread * x->value[i]);
    operand *labels = use(t, HALO_T, how == DRESS_ROWS ? how : DRESS_ANY, true, false, one);
    fill_integers(r, labels, 0, e[HALO_C] - 1);
    t->d.ignores = rng_chance(r, 40);
    t->d.ignore = rng_chance(r, 50) ? rng_int(r, 0, e[HALO_C] - 1) : 255;
    for (int64_t i = 0; t->d.ignores && t->d.ignore == 255 && i < operand_cells(labels); i++)
        if (rng_chance(r, 30)) labels->value[i] = 255;
}

/* Weights of classes, the divisors of samples, and for dice the sums of other parts of the samples, which then are whole no more. */
static void weigh_classes(trial *t, rng *r, const int64_t e[HALO_DIMS])
{
    halo_op_desc *d = &t->d;
    if (rng_chance(r, 40)) {
        operand *w = use_flat(t, HALO_WT, DRESS_STAT, true, false, e[HALO_C]);
        fill_positive(r, w);
        if (e[HALO_C] > 2 && rng_chance(r, 30)) w->value[rng_int(r, 0, e[HALO_C] - 1)] = 0;
    }
    if (rng_chance(r, 30)) fill_positive(r, use_flat(t, HALO_X2, DRESS_STAT, true, false, e[HALO_N]));
    if (d->loss == HALO_LOSS_CROSS_ENTROPY || !rng_chance(r, 30)) return;
    fill_positive(r, use_flat(t, HALO_STAT2, DRESS_STAT, true, false, e[HALO_N] * 2 * e[HALO_C]));
    d->global_ext[HALO_C] = 1;
    for (int k = HALO_D; k < HALO_DIMS; k++) d->global_ext[k] = e[k] * 2;
}

static void make_loss_sums(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    random_extents(r, e, 5);
    if (rng_chance(r, 20)) e[HALO_W] = rng_int(r, 60, 140);
    make_cross_entropy(t, r, DRESS_PROGRAM, e);
    use_flat(t, HALO_STAT2, DRESS_STAT, false, true, e[HALO_N] * 2 * e[HALO_C]);
}

static void make_loss(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    int64_t e[HALO_DIMS];
    random_extents(r, e, 5);
    if (rng_chance(r, 20)) e[HALO_W] = rng_int(r, 60, 140); /* rows that are taken in pieces */
    dress how = rng_chance(r, 60) ? DRESS_ROWS : DRESS_PROGRAM;
    if (how == DRESS_ROWS) e[HALO_D] = e[HALO_H] = e[HALO_W] = 1;
    d->loss = (halo_loss)rng_int(r, 0, HALO_LOSS_RELATIVE_MSE);
    bool classes = hl_loss_of_classes(d->loss), whole = d->loss > HALO_LOSS_CROSS_ENTROPY;
    d->delta = 0.75;
    if (rng_chance(r, 20) && !whole)
        for (int k = 1; k < HALO_DIMS; k++) d->global_ext[k] = classes && k == HALO_C ? 1 : e[k] * 2;
    bool integers = rng_chance(r, 30);
    if (classes) {
        make_cross_entropy(t, r, how, e);
        weigh_classes(t, r, e);
    } else {
        operand *x = use(t, HALO_X, how, true, false, e), *target = use(t, HALO_T, how, true, false, e);
        if (integers) fill_integers(r, x, -2, 2), fill_integers(r, target, -2, 2);
    }
    if (rng_chance(r, 80)) fill_positive(r, use_flat(t, HALO_SW, DRESS_STAT, true, false, e[HALO_N]));
    use_flat(t, HALO_STAT, DRESS_STAT, true, true, 2);
    fill_positive(r, &t->t[HALO_STAT]);
    if (rng_chance(r, 80)) use(t, HALO_DX, how, false, true, e);
}

/* A sample that is turned, shifted and transformed in any way; what a transform is given stays where it is defined. */
static void random_sample(rng *r, const halo_op_desc *d, const int64_t ext[3], double *number)
{
    static const int axis[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int *a = axis[rng_chance(r, 30) ? 0 : rng_int(r, 0, 5)];
    number[HALO_SAMPLE_THERE] = !rng_chance(r, 15);
    for (int k = 0; k < 3; k++) {
        number[HALO_SAMPLE_AXIS + k] = a[k];
        number[HALO_SAMPLE_FLIP + k] = rng_chance(r, 50);
        number[HALO_SAMPLE_SHIFT + a[k]] = rng_chance(r, 50) ? (double)rng_int(r, 0, ext[k] - 1) : 0;
    }
    double least = 0; /* of the values so far, which are whole numbers from 0 to 120 first */
    for (int i = 0; i < HALO_MAX_TRANSFORMS; i++) {
        double *c = number + HALO_SAMPLE_CONSTANT + 2 * i;
        const bool window = d->transform[i] == HALO_TRANSFORM_WINDOW;
        c[0] = (double)(float)rng_uniform(r, least - 0.5, least + 0.4);
        c[1] = (double)(float)(window ? c[0] + rng_uniform(r, 1, 60) : rng_uniform(r, 0.8, 20));
        least = i >= d->transforms ? least : window ? 0 : d->transform[i] == HALO_TRANSFORM_STANDARD ? (least - c[0]) / c[1] : log1p(least);
    }
}

static void make_prepare(trial *t, rng *r)
{
    static const halo_dtype types[] = {HALO_I16, HALO_U8, HALO_I32, HALO_F32, HALO_F16, HALO_F64};
    halo_op_desc *d = &t->d;
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    d->transforms = (int)rng_int(r, 0, HALO_MAX_TRANSFORMS);
    for (int i = 0; i < d->transforms; i++) d->transform[i] = (halo_transform)rng_int(r, 0, HALO_TRANSFORMS - 1);
    operand *x = use5(t, HALO_X, DRESS_MASTER, true, false, e[HALO_N], e[HALO_C], e[HALO_D], e[HALO_H], e[HALO_W]);
    x->type = types[rng_int(r, 0, (int64_t)HL_COUNT(types) - 1)];
    fill_integers(r, x, 0, 120);
    operand *numbers = use_flat(t, HALO_STAT, DRESS_STAT, true, false, e[HALO_N] * HALO_SAMPLE_NUMBERS);
    numbers->value = check_alloc(e[HALO_N] * HALO_SAMPLE_NUMBERS, sizeof(double));
    for (int64_t n = 0; n < e[HALO_N]; n++) random_sample(r, d, e + HALO_D, numbers->value + n * HALO_SAMPLE_NUMBERS);
    random_margin(r, use(t, HALO_Y, DRESS_PROGRAM, false, true, e), 40);
}

static void make_sumsq(trial *t, rng *r)
{
    if (rng_chance(r, 70)) {
        use_flat(t, HALO_X, DRESS_MASTER, true, false, flat_length(r));
    } else {
        int64_t e[HALO_DIMS];
        pointwise_extents(r, e);
        use(t, HALO_X, DRESS_PROGRAM, true, false, e);
    }
    use_flat(t, HALO_STAT, DRESS_STAT, false, true, 3);
}

static void make_update(trial *t, rng *r)
{
    halo_op_desc *d = &t->d;
    halo_update_params *u = &d->update;
    int64_t n = flat_length(r);
    u->kind = (halo_optimizer)rng_int(r, 0, HALO_ADAMW);
    u->larc = (halo_larc)rng_int(r, 0, HALO_LARC_SCALE);
    bool adam = u->kind == HALO_ADAM || u->kind == HALO_ADAMW, plain = u->kind == HALO_SGD && rng_chance(r, 30);
    u->momentum = plain ? 0 : 0.875;
    u->beta1 = 0.9, u->beta2 = 0.99, u->eps = rng_chance(r, 50) ? 1e-8 : 1e-3;
    u->weight_decay = rng_chance(r, 50) ? 0.01 : 0;
    u->lr_factor = rng_chance(r, 30) ? 0.5 : 1;
    u->trust = rng_chance(r, 50) ? 0.002 : 2, u->larc_eps = 1e-6, u->larc_zero = 1.0 / 16000,
    u->larc_min = rng_chance(r, 20) ? 0.5 : 0;
    use_flat(t, HALO_WT, DRESS_MASTER, true, true, n);
    use_flat(t, HALO_DW, DRESS_MASTER, true, false, n);
    if (!plain) use_flat(t, HALO_M1, DRESS_MASTER, true, true, n);
    if (adam) fill_positive(r, use_flat(t, HALO_M2, DRESS_MASTER, true, true, n));
    if (u->larc || rng_chance(r, 50)) {
        fill_positive(r, use_flat(t, HALO_STAT, DRESS_STAT, true, false, 3));
        fill_positive(r, use_flat(t, HALO_STAT2, DRESS_STAT, true, true, 1));
        if (rng_chance(r, 10)) t->t[HALO_STAT].value[0] = 0;
        if (rng_chance(r, 10)) t->t[HALO_STAT2].value[0] = 0;
    }
    if (rng_chance(r, 50)) {
        operand *number = use_flat(t, HALO_NUM, DRESS_STAT, true, false, HALO_NUMBERS);
        fill_positive(r, number);
        number->value[HALO_NUM_FACTOR] = rng_chance(r, 50) ? 1 : 0.25;
        number->value[HALO_NUM_SKIP] = rng_chance(r, 20);
    }
}

/* A count may be 0, of a rank that has no sample. */
static void make_norm_merge(trial *t, rng *r)
{
    const int64_t n = rng_chance(r, 30) ? rng_int(r, 257, 700) : rng_int(r, 1, 24);
    operand *stat = use_flat(t, HALO_STAT, DRESS_STAT, true, true, 3 * n);
    t->d.reverse = rng_chance(r, 50);
    fill_normal(r, stat);
    for (int64_t i = 0; i < n; i++) {
        stat->value[3 * i] = rng_chance(r, 10) ? 0 : (double)rng_int(r, 1, 64);
        stat->value[3 * i + 2] = fabs(stat->value[3 * i + 2]) * 100;
    }
    if (rng_chance(r, 50)) use_flat(t, HALO_RUN, DRESS_MASTER, true, false, n);
}

/* Of a few tensors or of many, some with values that are not finite. */
static void make_decide(trial *t, rng *r)
{
    const int64_t n = rng_chance(r, 20) ? rng_int(r, 300, 900) : rng_int(r, 1, 12);
    operand *norm = use_flat(t, HALO_X, DRESS_STAT, true, false, 3 * n);
    fill_positive(r, norm);
    for (int64_t i = 0; i < n; i++) norm->value[3 * i + 1] = 0;
    if (rng_chance(r, 30)) norm->value[3 * rng_int(r, 0, n - 1) + 1] = 3;
    use_flat(t, HALO_NUM, DRESS_STAT, true, true, HALO_NUMBERS);
    t->d.clip_norm = rng_chance(r, 50) ? 0.5 : 0;
}

/* ------------------------------------------------------------------------------------------------------------ trials */

static void random_record(rng *r, halo_step_record *s)
{
    *s = (halo_step_record){.seed = rng_next(r), .step = (uint64_t)rng_int(r, 0, 100000), .t = rng_int(r, 1, 50)};
    s->first_sample = rng_int(r, 0, 9);
    s->lr = rng_uniform(r, 1e-3, 0.1);
    s->grad_scale = rng_chance(r, 50) ? 1 : 0.125;
    s->loss_scale = rng_chance(r, 50) ? 1 : 1024;
    s->weight_sum = rng_uniform(r, 1, 8);
    s->delta = rng_chance(r, 30) ? 0.5 : 0;
}

static void make(trial *t, rng *r, halo_device *oracle)
{
    switch (t->d.kind) {
    case HALO_OP_CONV_FWD:
    case HALO_OP_CONV_BWD_DATA:
    case HALO_OP_CONV_BWD_WEIGHTS: make_conv(t, r); break;
    case HALO_OP_CONV_POOL_FWD: make_conv_pool(t, r); break;
    case HALO_OP_ACT_POOL_BWD: make_act_pool(t, r); break;
    case HALO_OP_BIAS_BWD: make_bias_bwd(t, r); break;
    case HALO_OP_POOL_FWD: make_pool_fwd(t, r); break;
    case HALO_OP_POOL_BWD: make_pool_bwd(t, r, oracle); break;
    case HALO_OP_NORM_STATS:
    case HALO_OP_NORM_APPLY:
    case HALO_OP_NORM_BWD_STATS:
    case HALO_OP_NORM_BWD_APPLY: make_norm(t, r); break;
    case HALO_OP_ACT_FWD:
    case HALO_OP_ACT_BWD: make_act(t, r); break;
    case HALO_OP_ADD: make_add(t, r); break;
    case HALO_OP_CAST:
    case HALO_OP_COPY: make_copy(t, r); break;
    case HALO_OP_MARGIN: make_margin(t, r); break;
    case HALO_OP_FLATTEN:
    case HALO_OP_UNFLATTEN: make_flatten(t, r); break;
    case HALO_OP_LINEAR_FWD:
    case HALO_OP_LINEAR_BWD_DATA:
    case HALO_OP_LINEAR_BWD_WEIGHTS: make_linear(t, r); break;
    case HALO_OP_DROPOUT: make_dropout(t, r); break;
    case HALO_OP_LOSS: make_loss(t, r); break;
    case HALO_OP_LOSS_SUMS: make_loss_sums(t, r); break;
    case HALO_OP_UPSAMPLE_FWD:
    case HALO_OP_UPSAMPLE_BWD: make_upsample(t, r); break;
    case HALO_OP_SUMSQ: make_sumsq(t, r); break;
    case HALO_OP_DECIDE: make_decide(t, r); break;
    case HALO_OP_PREPARE: make_prepare(t, r); break;
    case HALO_OP_NORM_MERGE: make_norm_merge(t, r); break;
    case HALO_OP_UPDATE: make_update(t, r); break;
    case HALO_OP_CONV_IMAGE: /* through the convolutions that want one */
    case HALO_OP_KINDS: break;
    }
}

/* In place: the two operands are one, so they have one margin. Operands that have their values already keep their margins. */
static void settle_margins(trial *t)
{
    for (int i = 0; t->dense && i < HALO_ROLES; i++)
        if (!t->t[i].value) memset(t->t[i].margin, 0, sizeof(t->t[i].margin));
    for (int i = 0; i < HALO_ROLES; i++)
        if (t->alias[i] >= 0) memcpy(t->t[i].margin, t->t[t->alias[i]].margin, sizeof(t->t[i].margin));
}

bool trial_multiplies(halo_op_kind kind)
{
    return kind <= HALO_OP_CONV_BWD_WEIGHTS || kind == HALO_OP_CONV_POOL_FWD || kind == HALO_OP_LINEAR_FWD || kind == HALO_OP_LINEAR_BWD_DATA || kind == HALO_OP_LINEAR_BWD_WEIGHTS;
}

static void round_values(trial *t, halo_dtype grain)
{
    for (int i = 0; i < HALO_ROLES; i++) {
        const operand *o = &t->t[i];
        const bool activation = o->dress == DRESS_PROGRAM || o->dress == DRESS_ANY || o->dress == DRESS_ROWS, weights = i == HALO_WT && trial_multiplies(t->d.kind);
        if (o->type != HALO_NONE || !o->value || (!activation && !weights)) continue;
        for (int64_t k = 0; k < operand_cells(o); k++) {
            const float v = (float)o->value[k];
            o->value[k] = (double)(grain == HALO_F16 ? hl_f32_from_f16(hl_f16_from_f32(v)) : hl_f32_from_bf16(hl_bf16_from_f32(v)));
        }
    }
}

void trial_make(trial *t, halo_op_kind kind, uint64_t seed, halo_device *oracle) { trial_make_of(t, kind, seed, oracle, HALO_NONE); }

void trial_make_of(trial *t, halo_op_kind kind, uint64_t seed, halo_device *oracle, halo_dtype grain)
{
    rng r = {seed * 64 + (uint64_t)kind};
    double *out[HALO_ROLES];
    *t = (trial){.seed = seed, .d = {.kind = kind}};
    memset(t->alias, -1, sizeof(t->alias));
    random_record(&r, &t->record);
    t->dense = rng_chance(&r, 30);
    make(t, &r, oracle);
    settle_margins(t);
    fill_rest(&r, t);
    if (grain == HALO_F16 || grain == HALO_BF16) round_values(t, grain);
    trial_oracle(t, oracle, false, out);
    for (int i = 0; i < HALO_ROLES; i++) t->t[i].want = out[i];
    if (kind == HALO_OP_CONV_POOL_FWD) unpool_trial(t, oracle);
}

void trial_free(trial *t)
{
    for (int i = 0; i < HALO_ROLES; i++) {
        free(t->t[i].value);
        free(t->t[i].want);
    }
    free(t->z);
}

/* ----------------------------------------------------------------------------------------------------------- oracle */

/* The operand's values in memory of its plain type; outputs that are not read begin as 0. */
static void *oracle_input(const operand *o, halo_device *oracle, bool magnitude)
{
    halo_operand plain = operand_plain(o), all = hl_operand_whole(plain.dtype, HALO_NCDHW, plain.alloc);
    int64_t n = operand_cells(o);
    double *v = check_alloc(n, sizeof(*v));
    void *p = check_alloc(n, (int64_t)hl_dtype_size(plain.dtype));
    for (int64_t i = 0; o->value && i < n; i++)
        v[i] = magnitude && plain.dtype == HALO_F64 ? fabs(o->value[i]) : o->value[i];
    check_status(oracle->ctx, oracle->ops->upload(oracle, &all, p, HALO_F64, v), "upload");
    free(v);
    return p;
}

static double *oracle_output(const operand *o, halo_device *oracle, const void *p)
{
    halo_operand plain = operand_plain(o), all = hl_operand_whole(plain.dtype, HALO_NCDHW, plain.alloc);
    double *v = check_alloc(operand_cells(o), sizeof(*v));
    check_status(oracle->ctx, oracle->ops->download(oracle, &all, p, HALO_F64, v), "download");
    return v;
}

void trial_oracle(const trial *t, halo_device *oracle, bool magnitude, double *out[HALO_ROLES])
{
    halo_op_desc d = t->d;
    void *ptr[HALO_ROLES] = {NULL};
    for (int i = 0; i < HALO_ROLES; i++) {
        out[i] = NULL;
        if (t->t[i].dress == DRESS_NONE) continue;
        d.t[i] = operand_plain(&t->t[i]);
        ptr[i] = oracle_input(&t->t[i], oracle, magnitude); /* never in place: that is for the device under test to get right */
    }
    if (magnitude && d.act != HALO_ACT_SCALE && d.kind != HALO_OP_ACT_POOL_BWD) d.act = HALO_ACT_NONE; /* what rounding works on; the others' slopes are at most 1 */
    check_status(oracle->ctx, hl_op_run_once(oracle, &d, NULL, ptr, &t->record), hl_op_kind_name(d.kind));
    for (int i = 0; i < HALO_ROLES; i++) {
        if (t->t[i].out) out[i] = oracle_output(&t->t[i], oracle, ptr[i]);
        free(ptr[i]);
    }
}
