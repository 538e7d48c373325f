/* SPDX-License-Identifier: Apache-2.0 */
/* make_rows.c -- see makers.h: trials of dense layers, losses, and what a step does beside its network. */
#include "makers.h"

#include "tests/check.h"

void make_linear(trial *t, rng *r)
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

void make_loss_sums(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    random_extents(r, e, 5);
    if (rng_chance(r, 20)) e[HALO_W] = rng_int(r, 60, 140);
    make_cross_entropy(t, r, DRESS_PROGRAM, e);
    use_flat(t, HALO_STAT2, DRESS_STAT, false, true, e[HALO_N] * 2 * e[HALO_C]);
}

void make_loss(trial *t, rng *r)
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

void make_prepare(trial *t, rng *r)
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

void make_sumsq(trial *t, rng *r)
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

void make_update(trial *t, rng *r)
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
void make_norm_merge(trial *t, rng *r)
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
void make_decide(trial *t, rng *r)
{
    const int64_t n = rng_chance(r, 20) ? rng_int(r, 300, 900) : rng_int(r, 1, 12);
    operand *norm = use_flat(t, HALO_X, DRESS_STAT, true, false, 3 * n);
    fill_positive(r, norm);
    for (int64_t i = 0; i < n; i++) norm->value[3 * i + 1] = 0;
    if (rng_chance(r, 30)) norm->value[3 * rng_int(r, 0, n - 1) + 1] = 3;
    use_flat(t, HALO_NUM, DRESS_STAT, true, true, HALO_NUMBERS);
    t->d.clip_norm = rng_chance(r, 50) ? 0.5 : 0;
}
