/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks: layers of every kind with random windows and paddings on random earlier values, joined
 * where shapes allow. In double on the reference backend, for each: the slope of the loss along a random
 * direction in all weights equals <dw, d>; and with nothing fused, in place or shared, with and without
 * written margins, in another layout and in a blocked one, loss and gradients are the same. A failure prints
 * the seed. compile_random.test FIRST LAST      runs those seeds, printing the programs (Some seeds far from
 * the first ones have a norm over one or two cells in front of an activation: its output stands on the kink,
 * and the slope is neither side's.)
 */
#include "tests/net/small.h"
#include "tests/tap.h"

#include "base/rng.h"

static halo_context *ctx;
static halo_device *dev;

static uint64_t seed_now, draws;

static int64_t below(int64_t n)
{
    return (int64_t)hl_rng_below(seed_now, HL_STREAM_TEST, draws++, 77, (uint64_t)n);
}

static halo_padding random_padding(void)
{
    return (halo_padding)below(4);
}

/* --------------------------------------------------------------------------------------------- adding layers
 */

static halo_status try_conv(halo_network *net, int x)
{
    halo_conv_options o = HALO_CONV_OPTIONS_INIT;
    o.filters = 1 + below(10);
    o.bias = below(4) > 0;
    o.bias_init = 0.1; /* a window of padding alone must not stand on a kink */
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + below(4);
        o.stride[a] = 1 + (below(3) == 0);
        o.dilation[a] = 1 + (below(4) == 0);
        o.padding[a] = random_padding();
        o.pad[a][0] = o.padding[a] == HALO_PAD_EXPLICIT ? below(3) : 0;
        o.pad[a][1] = o.padding[a] == HALO_PAD_EXPLICIT ? below(3) : 0;
    }
    return halo_network_conv(net, x, NULL, &o, NULL);
}

static halo_status try_pool(halo_network *net, int x)
{
    halo_pool_options o = HALO_POOL_OPTIONS_INIT;
    o.kind = (halo_pool)below(2);
    o.count_pad = below(2);
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + below(3);
        o.stride[a] = 1 + below(2);
        o.padding[a] = random_padding();
        o.pad[a][0] = o.padding[a] == HALO_PAD_EXPLICIT ? below(o.kernel[a]) : 0;
    }
    return halo_network_pool(net, x, NULL, &o, NULL);
}

static halo_status try_norm(halo_network *net, int x)
{
    halo_norm_options o = HALO_NORM_OPTIONS_INIT;
    o.scope = (halo_norm_scope)below(3);
    if (o.scope == HALO_NORM_GROUP) o.groups = 1 + below(3);
    return halo_network_norm(net, x, NULL, &o, NULL);
}

static halo_status try_transposed(halo_network *net, int x)
{
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    o.filters = 1 + below(10);
    o.bias = below(4) > 0;
    o.bias_init = 0.1;
    for (int a = 0; a < 3; a++) {
        o.kernel[a] = 1 + below(4);
        o.stride[a] = 1 + below(3);
        o.dilation[a] = 1 + (below(4) == 0);
        o.padding[a] = (halo_padding)below(3);
        for (int side = 0; side < 2; side++) o.pad[a][side] = o.padding[a] == HALO_PAD_EXPLICIT ? below(3) : 0;
        if (o.padding[a] != HALO_PAD_SAME) o.output_padding[a] = below(o.stride[a]);
    }
    if (net->layer[x].out[1] * net->layer[x].out[2] * net->layer[x].out[3] > 400) return HALO_ERR_USAGE; /* seconds */
    return halo_network_conv_transpose(net, x, NULL, &o, NULL);
}

static halo_status try_crop(halo_network *net, int x)
{
    int64_t cells[3][2];
    if (below(2)) return halo_network_crop_like(net, x, (int)below(net->layers), NULL, NULL);
    for (int i = 0; i < 6; i++) cells[i / 2][i % 2] = below(3);
    return halo_network_crop(net, x, NULL, (const int64_t(*)[2])cells, NULL);
}

static halo_status try_act(halo_network *net, int x)
{
    halo_act act = (halo_act)(1 + below(5));
    return halo_network_activation(net, x, NULL, act, act == HALO_ACT_SCALE ? 1.3 : 0.2, NULL);
}

static halo_status try_join(halo_network *net, bool concat)
{
    int in[4], n = 2 + (int)below(3), first = (int)below(net->layers);
    const int64_t *shape = net->layer[first].out;
    in[0] = first;
    for (int k = 1; k < n; k++) {
        int tries = 0;
        do {
            in[k] = (int)below(net->layers);
            const int64_t *s = net->layer[in[k]].out;
            if (memcmp(s + 1, shape + 1, 3 * sizeof(*s)) == 0 && (concat || s[0] == shape[0])) break;
        } while (++tries < 50);
        if (tries == 50) in[k] = first;
    }
    return concat ? halo_network_concat(net, in, n, NULL, NULL) : halo_network_add(net, in, n, NULL, NULL);
}

/* May fail: then the network is as before. */
static void try_layer(halo_network *net)
{
    int x = below(3) ? net->layers - 1 : (int)below(net->layers);
    switch (below(12)) {
    case 0:
    case 1:
    case 2:
        (void)try_conv(net, x);
        return;
    case 3:
        (void)try_pool(net, x);
        return;
    case 4:
    case 5:
        (void)try_act(net, x);
        return;
    case 6:
        (void)try_norm(net, x);
        return;
    case 7:
        (void)halo_network_dropout(net, x, NULL, 0.7, NULL);
        return;
    case 8:
    case 9:
        (void)try_transposed(net, x);
        return;
    case 10:
        (void)try_crop(net, x);
        return;
    default:
        (void)try_join(net, below(2));
        return;
    }
}

static halo_network *random_network(uint64_t seed)
{
    halo_network *net;
    char name[32];
    seed_now = seed;
    draws = 0;
    snprintf(name, sizeof(name), "random-%d", (int)seed);
    const int64_t extents[3] = {2 + below(5), 2 + below(5), 2 + below(5)};
    check_status(ctx, halo_network_create(ctx, name, 1 + below(9), extents, &net), name);
    for (int n = 4 + (int)below(9); n > 0; n--) try_layer(net);
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    dense.outputs = 2;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    flatten.channels_last = below(2);
    if (below(4)) {
        check_status(ctx, halo_network_flatten(net, net->layers - 1, NULL, &flatten, NULL), name);
        check_status(ctx, halo_network_dense(net, net->layers - 1, NULL, &dense, NULL), name);
    } else if (try_conv(net, net->layers - 1) != HALO_OK) {
        check_status(ctx, try_norm(net, net->layers - 1), name);
    }
    return net;
}

/* --------------------------------------------------------------------------------------------------
 * comparing */

/* Loss and all gradients, one after the other. */
typedef struct outcome {
    double loss, *gradient;
    int64_t n;
} outcome;

static int64_t total(const hl_model *m)
{
    int64_t n = 0;
    for (int i = 0; i < m->params; i++) n += m->param[i].trainable ? m->param[i].count : 0;
    return n;
}

static outcome step(hl_model *m, hl_program *p, const small_data *d)
{
    outcome o = {.loss = small_step(ctx, p, d), .n = total(m)};
    o.gradient = check_alloc(o.n, sizeof(double));
    int64_t at = 0;
    for (int i = 0; i < m->params; i++) {
        if (!m->param[i].trainable) continue;
        check_status(ctx, hl_model_get(m, i, HL_GRADIENT, o.gradient + at), "gradient");
        at += m->param[i].count;
    }
    return o;
}

static bool same_bits(const outcome *a, const outcome *b)
{
    return a->loss == b->loss && memcmp(a->gradient, b->gradient, (size_t)a->n * sizeof(double)) == 0;
}

/* Distance between two outcomes, relative to the largest gradient. */
static double distance(const outcome *a, const outcome *b)
{
    return fmax(fabs(a->loss - b->loss) / fabs(b->loss), small_distance(a->gradient, b->gradient, a->n));
}

static outcome other_way(hl_model *m, const small_data *d, hl_compile_switches off, bool margins,
                         halo_layout layout, int64_t batch)
{
    const halo_layout layouts[] = {layout, HALO_LAYOUTS}, *own = dev->layouts;
    const bool wanted = dev->wants_margins;
    hl_compile_options options = small_options(batch);
    hl_program *p;
    dev->layouts = layouts;
    dev->wants_margins = margins;
    check_status(ctx, hl_compile_with(m, &options, off, &p), "another way");
    outcome twice = step(m, p, d);
    free(twice.gradient);
    outcome o = step(m, p, d);
    hl_program_destroy(p);
    dev->layouts = own;
    dev->wants_margins = wanted;
    return o;
}

static void move(hl_model *m, const double *by, double factor)
{
    for (int i = 0; i < m->params; i++) {
        if (!m->param[i].trainable) continue;
        double *w = small_get(ctx, m, i, HL_MASTER);
        for (int64_t k = 0; k < m->param[i].count; k++) w[k] += factor * *by++;
        check_status(ctx, hl_model_set(m, i, HL_MASTER, w), "move");
        free(w);
    }
}

/* |slope - <dw, d>| relative to |dw|, d of length 1. */
static double slope_error(hl_model *m, hl_program *p, const small_data *d, const outcome *o)
{
    const double e = 1e-6;
    double *dir = check_alloc(o->n, sizeof(double)), square = 0, dot = 0, size = 0;
    for (int64_t i = 0; i < o->n; i++) {
        dir[i] = hl_rng_normal(seed_now, HL_STREAM_TEST, (uint64_t)i, 5);
        square += dir[i] * dir[i];
    }
    for (int64_t i = 0; i < o->n; i++) {
        dir[i] /= sqrt(square);
        dot += dir[i] * o->gradient[i];
        size += o->gradient[i] * o->gradient[i];
    }
    move(m, dir, e);
    double up = small_step(ctx, p, d);
    move(m, dir, -2 * e);
    double down = small_step(ctx, p, d);
    move(m, dir, e);
    free(dir);
    return fabs((up - down) / (2 * e) - dot) / fmax(sqrt(size), 1e-2);
}

static void check_seed(uint64_t seed, bool print)
{
    static const hl_compile_switches all = {.no_fuse = true,
                                            .no_inplace = true,
                                            .no_reuse = true,
                                            .no_alone = true},
                                     some = {.no_alone = true};
    halo_network *net = random_network(seed);
    hl_optim_spec sgd = small_sgd();
    hl_model *m;
    hl_program *p;
    const int64_t batch = 1 + below(3);
    hl_compile_options options = small_options(batch);
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &m), net->name);
    check_status(ctx, hl_compile(m, &options, &p), net->name);
    if (print) {
        hl_str text = {0};
        check_status(ctx, hl_program_print(p, &text), net->name);
        printf("%s", text.s);
        hl_str_free(&text);
    }
    small_data d = small_fill(net, batch, seed);
    outcome o = step(m, p, &d);
    if (o.n > 0 && isfinite(o.loss)) {
        double slope = slope_error(m, p, &d, &o);
        outcome off = other_way(m, &d, all, false, HALO_NCDHW, batch),
                margins = other_way(m, &d, some, true, HALO_NCDHW, batch);
        outcome kept = other_way(m, &d, (hl_compile_switches){0}, true, HALO_NCDHW, batch);
        outcome last = other_way(m, &d, (hl_compile_switches){0}, true, HALO_NDHWC, batch),
                blocked = other_way(m, &d, some, true, HALO_NCDHW8C, batch);
        double e = fmax(distance(&last, &o), distance(&blocked, &o));
        /* moving there and back may change a last bit of a weight */
        double bits = fmax(distance(&off, &o), fmax(distance(&margins, &o), distance(&kept, &o)));
        tap_ok(slope <= 1e-6 && bits <= 1e-10 && same_bits(&off, &margins) && same_bits(&off, &kept) &&
                   e <= 1e-10,
               "seed %d, %d layers: slope %.1e, rearranged %.1e%s, other layouts %.1e", (int)seed,
               net->layers, slope, bits,
               same_bits(&off, &margins) && same_bits(&off, &kept) ? "" : " (bits differ)", e);
        free(off.gradient);
        free(margins.gradient);
        free(kept.gradient);
        free(last.gradient);
        free(blocked.gradient);
    }
    free(o.gradient);
    small_free(&d);
    hl_program_destroy(p);
    hl_model_destroy(m);
    halo_network_destroy(net);
}

int main(int argc, char **argv)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    const halo_device_options f64 = {.f64 = true};
    int first = argc > 2 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : 120;
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &dev), "device");
    for (int seed = first; seed <= last; seed++) check_seed((uint64_t)seed, argc > 2);
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
