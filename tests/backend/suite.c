/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c -- see suite.h: what all trials are made of, and the oracle's run; makers.h has the kinds of operations. */
#include "makers.h"

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

int64_t pick(rng *r, const int64_t *from, size_t n) { return from[rng_int(r, 0, (int64_t)n - 1)]; }

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

operand *use(trial *t, halo_role role, dress how, bool in, bool out, const int64_t ext[HALO_DIMS])
{
    operand *o = &t->t[role];
    *o = (operand){.dress = how, .in = in, .out = out};
    memcpy(o->ext, ext, sizeof(o->ext));
    return o;
}

operand *use5(trial *t, halo_role role, dress how, bool in, bool out, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    return use(t, role, how, in, out, (const int64_t[]){n, c, d, h, w});
}

operand *use_flat(trial *t, halo_role role, dress how, bool in, bool out, int64_t n)
{
    return use5(t, role, how, in, out, 1, 1, 1, 1, n);
}

void random_margin(rng *r, operand *o, int percent)
{
    for (int k = 0; k < 3; k++)
        for (int side = 0; side < 2; side++) o->margin[k][side] = rng_chance(r, percent) ? rng_int(r, 0, 3) : 0;
}

void fill_normal(rng *r, operand *o)
{
    int64_t n = operand_cells(o);
    o->value = check_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n; i++) o->value[i] = (double)(float)rng_normal(r);
}

void fill_integers(rng *r, operand *o, int64_t lo, int64_t hi)
{
    int64_t n = operand_cells(o);
    o->value = check_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n; i++) o->value[i] = (double)rng_int(r, lo, hi);
}

void fill_positive(rng *r, operand *o)
{
    fill_normal(r, o);
    for (int64_t i = 0; i < operand_cells(o); i++) o->value[i] = fabs(o->value[i]) + 0.125;
}

void fill_rest(rng *r, trial *t)
{
    for (int i = 0; i < HALO_ROLES; i++)
        if (t->t[i].dress != DRESS_NONE && t->t[i].in && !t->t[i].value) fill_normal(r, &t->t[i]);
}

void random_extents(rng *r, int64_t ext[HALO_DIMS], int64_t most)
{
    ext[HALO_N] = rng_int(r, 1, 3);
    ext[HALO_C] = PICK(r, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 20, 24, 33);
    for (int k = HALO_D; k < HALO_DIMS; k++) ext[k] = rng_int(r, 1, k == HALO_W ? 2 * most : most);
    if (rng_chance(r, 15)) ext[HALO_D] = 1;
}

void pointwise_extents(rng *r, int64_t ext[HALO_DIMS])
{
    random_extents(r, ext, 6);
    if (!rng_chance(r, 10)) return;
    ext[HALO_C] = PICK(r, 5, 8, 17);
    ext[HALO_H] = rng_int(r, 9, 14);
    ext[HALO_W] = rng_int(r, 40, 90);
}

int64_t flat_length(rng *r) { return rng_chance(r, 20) ? rng_int(r, 20000, 60000) : rng_int(r, 1, 3000); }

void random_act(rng *r, halo_op_desc *d)
{
    d->act = (halo_act)rng_int(r, 0, HALO_ACT_SCALE);
    d->slope = d->act == HALO_ACT_SCALE ? -1.5 : 0.125;
}

int64_t product(const int64_t *e, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= e[i];
    return p;
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
