/* SPDX-License-Identifier: Apache-2.0 */
/* make_windows.c -- see makers.h: trials of convolutions, pools and what is fused with them. */
#include "makers.h"

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

void make_conv(trial *t, rng *r)
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
void make_conv_pool(trial *t, rng *r)
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

void unpool_trial(trial *t, halo_device *oracle)
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
void make_act_pool(trial *t, rng *r)
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

void make_bias_bwd(trial *t, rng *r)
{
    int64_t e[HALO_DIMS];
    pointwise_extents(r, e);
    t->d.accumulate = rng_chance(r, 40);
    random_margin(r, use(t, HALO_DY, DRESS_PROGRAM, true, false, e), 30);
    use_flat(t, HALO_DB, DRESS_MASTER, t->d.accumulate, true, e[HALO_C]);
}

static halo_dtype aux_type(const halo_op_desc *d) { return product(d->window.kernel, 3) > 256 ? HALO_I32 : HALO_U8; }

void make_pool_fwd(trial *t, rng *r)
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
void make_pool_bwd(trial *t, rng *r, halo_device *oracle)
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
