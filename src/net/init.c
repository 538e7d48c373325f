/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c -- first values of parameters, each a function of (seed, the parameter's name, the element's index)
 * alone: no order, thread, grid or other layer changes them.
 *
 * With fan_in = in * kernel cells and fan_out = out * kernel cells of weights (out, in, kernel):
 *     glorot   Var w = 2 / (fan_in + fan_out)     Glorot & Bengio, "Understanding the difficulty of training
 * deep feedforward networks", 2010 he       Var w = 2 / fan_in                 He, Zhang, Ren & Sun, "Delving
 * deep into rectifiers", 2015 uniform on (-a, a) has variance a^2 / 3, so a = sqrt(3 Var). Normal numbers are
 * not truncated. One block of random bits gives two elements.
 *
 * Weights of a transposed convolution are (in, out, kernel), and a tap meets an output cell only where the stride lets it: one in S, the stride's cells,
 * so that on the average fan_in = in * kernel cells / S. With kernel 2 and stride 2 each output is the sum over `in` channels alone.
 */
#include "base/hash.h"
#include "base/rng.h"
#include "net/graph.h"

/* Names to counters. */
static uint64_t name_hash(const char *name) { return hl_hash(HL_HASH_START, name, strlen(name)); }

static double weight_variance(const hl_layer *l, const hl_param_info *p)
{
    double cells = 1;
    for (int i = 2; i < p->ndim; i++) cells *= (double)p->dim[i];
    double fan_out = (double)p->dim[0] * cells, fan_in = (double)p->dim[1] * cells;
    if (l->kind == HL_LAYER_CONV_TRANSPOSE) {
        const int64_t *s = l->window.stride;
        fan_out = (double)p->dim[1] * cells;
        fan_in = (double)p->dim[0] * cells / ((double)s[0] * (double)s[1] * (double)s[2]);
    }
    bool glorot = l->init == HALO_INIT_GLOROT_UNIFORM || l->init == HALO_INIT_GLOROT_NORMAL;
    return 2.0 / (glorot ? fan_in + fan_out : fan_in);
}

static void random_pair(bool uniform, uint64_t seed, uint64_t pair, uint64_t hash, double out[2])
{
    if (!uniform) {
        hl_rng_normal2(seed, HL_STREAM_INIT, pair, hash, out);
        return;
    }
    hl_random r = hl_philox(seed, HL_STREAM_INIT, pair, hash);
    for (int i = 0; i < 2; i++) out[i] = 2 * hl_uniform53(r.v[2 * i], r.v[2 * i + 1]) - 1;
}

static void init_weights(const hl_layer *l, const hl_param_info *p, uint64_t seed, double *host)
{
    bool uniform = l->init == HALO_INIT_GLOROT_UNIFORM || l->init == HALO_INIT_HE_UNIFORM;
    double scale = sqrt((uniform ? 3 : 1) * weight_variance(l, p)), pair[2];
    uint64_t hash = name_hash(p->name);
    for (int64_t i = 0; i < p->count; i++) {
        if (i % 2 == 0) random_pair(uniform, seed, (uint64_t)i / 2, hash, pair);
        host[i] = scale * pair[i % 2];
    }
}

/* The variance is the second of a norm's two running statistics. */
static double constant_of(const hl_layer *l, const hl_param_info *p)
{
    if (p->role == HALO_RUN) return strstr(p->name, "/running_variance") ? 1 : 0;
    if (l->kind == HL_LAYER_NORM) return p->role == HALO_WT ? l->init_gamma : 0;
    return l->init_bias;
}

void hl_param_init(const struct halo_network *net, const hl_param_info *p, uint64_t seed, double *host)
{
    const hl_layer *l = &net->layer[p->layer];
    if (p->role == HALO_WT && l->kind != HL_LAYER_NORM) {
        init_weights(l, p, seed, host);
        return;
    }
    double value = constant_of(l, p);
    for (int64_t i = 0; i < p->count; i++) host[i] = value;
}
