/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_pool.c -- y[n,o,p] = max or mean over k < side of z[n,o,p side + k], z = act(b + conv x): cuDNN writes the plain convolution into scratch, and
 * one kernel reads it once: bias, activation, pooling, and what backward needs. Next to separate operations two passes over z are
 * saved, and z exists for some samples at a time only.
 */
#include "conv.h"

enum { Z_BYTES = 256 << 20 }; /* of z at a time, unless one sample has more */

typedef struct conv_pool_plan {
    hl_conv_plan *conv; /* of `samples` */
    hl_cuda_plan super; /* of everything */
    hl_act_pooling pool;
    int64_t samples, x_step, y_step, aux_step;
    size_t z_bytes;
} conv_pool_plan;

static int64_t samples_of(int64_t n, int64_t bytes_each)
{
    int64_t m = n;
    while (m > 1 && (n % m != 0 || m * bytes_each > Z_BYTES)) m--;
    return m;
}

/* The convolution of some samples into a whole tensor; false when the description is none. */
static bool inner(const halo_op_desc *d, halo_op_desc *c)
{
    const halo_operand *y = &d->t[HALO_Y];
    int64_t ext[HALO_DIMS], side = 1, sample;
    if (!hl_cuda_activation(d, HALO_Y) || !hl_cuda_activation(d, HALO_X)) return false;
    sample = (int64_t)hl_dtype_size(y->dtype);
    memcpy(ext, y->ext, sizeof(ext));
    for (int k = 0; k < 3; k++) {
        if (d->pool_side[k] < 1 || !hl_mul64(side, d->pool_side[k], &side) || !hl_mul64(ext[HALO_D + k], d->pool_side[k], &ext[HALO_D + k])) return false;
    }
    if (side > 256) return false;
    for (int k = HALO_C; k < HALO_DIMS; k++)
        if (!hl_mul64(sample, ext[k], &sample)) return false;
    *c = *d;
    c->kind = HALO_OP_CONV_FWD;
    c->act = HALO_ACT_NONE;
    ext[HALO_N] = samples_of(ext[HALO_N], sample);
    c->t[HALO_X].ext[HALO_N] = ext[HALO_N];
    c->t[HALO_Y] = hl_operand_whole(y->dtype, d->t[HALO_X].layout, ext);
    c->t[HALO_AUX] = c->t[HALO_B] = (halo_operand){.dtype = HALO_NONE};
    return true;
}

static size_t z_bytes(const halo_op_desc *c)
{
    size_t bytes;
    HL_BUG_UNLESS(hl_operand_bytes(&c->t[HALO_Y], &bytes));
    return (bytes + 255) / 256 * 256;
}

static bool fits(const halo_op_desc *d)
{
    const halo_operand *aux = &d->t[HALO_AUX], *y = &d->t[HALO_Y];
    int64_t side = d->pool_side[0] * d->pool_side[1] * d->pool_side[2];
    if (d->t[HALO_X].ext[HALO_N] != y->ext[HALO_N] || y->dtype != d->t[HALO_X].dtype || !hl_cuda_vector(d, HALO_B, HALO_F32, true)) return false;
    if (aux->dtype == HALO_NONE) return true;
    return aux->dtype == HALO_U8 && hl_operand_valid(aux) && hl_layout_block(aux->layout) == 1 && hl_same_extents(aux, y) && (d->pool == HALO_POOL_MAX || side <= 8);
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    halo_op_desc c;
    if (!inner(d, &c) || !fits(d)) return 0;
    int n = hl_conv_forward_candidates(dev, &c, out);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(out[i].impl), room = sizeof(out[i].impl) - 1 - length;
        strncat(out[i].impl, ":pool", room);
        out[i].scratch += z_bytes(&c);
    }
    return n;
}

static void destroy(halo_plan *plan)
{
    conv_pool_plan *p = (conv_pool_plan *)plan;
    if (p) hl_conv_plan_free((halo_plan *)p->conv);
    free(p);
}

static int64_t sample_step(const halo_operand *op)
{
    int64_t s[HALO_DIMS] = {0};
    if (op->dtype != HALO_NONE) HL_BUG_UNLESS(hl_cuda_strides(op, s));
    return s[HALO_N];
}

static void prepare(conv_pool_plan *p, const halo_op_desc *d, const halo_op_desc *c)
{
    int64_t ext[HALO_DIMS];
    p->samples = c->t[HALO_Y].ext[HALO_N];
    p->z_bytes = z_bytes(c);
    p->x_step = sample_step(&d->t[HALO_X]), p->y_step = sample_step(&d->t[HALO_Y]), p->aux_step = sample_step(&d->t[HALO_AUX]);
    p->pool = (hl_act_pooling){.max = d->pool == HALO_POOL_MAX, .act = (int)d->act, .slope = (float)d->slope};
    memcpy(p->pool.side, d->pool_side, sizeof(p->pool.side));
    HL_BUG_UNLESS(hl_cuda_view(&c->t[HALO_Y], &p->pool.z) && hl_cuda_view(&d->t[HALO_Y], &p->pool.y));
    if (hl_has(d, HALO_AUX)) HL_BUG_UNLESS(hl_cuda_view(&d->t[HALO_AUX], &p->pool.aux));
    memcpy(ext, d->t[HALO_Y].ext, sizeof(ext));
    ext[HALO_N] = p->samples;
    hl_cuda_places(d->t[HALO_Y].layout, ext, &p->pool.places);
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    conv_pool_plan *p;
    halo_op_desc c;
    hl_cuda_plan *whole;
    halo_plan *conv = NULL;
    HL_BUG_UNLESS(inner(d, &c));
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "a plan", &p));
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_cuda_plan_new(dev, d, sizeof(*whole), &whole), free_plan);
    p->super = *whole;
    free(whole);
    HL_GOTO(st, hl_conv_forward_plan(dev, &c, choice, &conv), free_plan);
    p->conv = (hl_conv_plan *)conv;
    prepare(p, d, &c);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    destroy((halo_plan *)p);
    return st;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const conv_pool_plan *p = (const conv_pool_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    char *x = hl_cuda_ptr(s, args, HALO_X), *y = hl_cuda_ptr(s, args, HALO_Y), *z = args->scratch;
    char *w = hl_conv_weights(p->conv, args);
    const float *b = hl_cuda_ptr(s, args, HALO_B);
    uint8_t *aux = hl_cuda_ptr(s, args, HALO_AUX);
    for (int64_t n = 0; n < s->d.t[HALO_Y].ext[HALO_N]; n += p->samples) {
        HL_TRY(hl_conv_forward(p->conv, x + hl_conv_byte(p->conv, n * p->x_step), w, NULL, z, z + p->z_bytes));
        HL_CUDA(s->dev, hl_cuda_act_pool_forward(s->dev->compute, p->conv->type, &p->pool, z, b, y + hl_conv_byte(p->conv, n * p->y_step), aux ? aux + n * p->aux_step : NULL));
    }
    return HALO_OK;
}

const halo_op_class hl_cuda_conv_pool_fwd = {.kind = HALO_OP_CONV_POOL_FWD, .candidates = candidates, .plan = make, .run = run, .destroy = destroy};
