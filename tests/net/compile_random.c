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
#include "tests/net/random.h"
#include "tests/tap.h"

#include "base/rng.h"

enum { DENSE = 1000000 }; /* seeds beyond are dense blocks' */

static halo_context *ctx;
static halo_device *dev;

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
static double slope_error(uint64_t seed, hl_model *m, hl_program *p, const small_data *d, const outcome *o)
{
    const double e = 1e-6;
    double *dir = check_alloc(o->n, sizeof(double)), square = 0, dot = 0, size = 0;
    for (int64_t i = 0; i < o->n; i++) {
        dir[i] = hl_rng_normal(seed, HL_STREAM_TEST, (uint64_t)i, 5);
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

/* Nothing stored that can be made anew, in one to five slabs, in two layouts. */
static void check_slabs(uint64_t seed, hl_model *m, const small_data *d, const outcome *o, int64_t batch)
{
    double most = 0;
    for (int slabs = 1; slabs <= 5; slabs += slabs < 3 ? 1 : 2) {
        const hl_compile_switches off = {.slabs = slabs}, kept = {.slabs = slabs, .no_alone = true, .no_inplace = true};
        outcome plain = other_way(m, d, off, seed % 2, HALO_NCDHW, batch), blocked = other_way(m, d, kept, !(seed % 2), HALO_NCDHW8C, batch);
        most = fmax(most, fmax(distance(&plain, o), distance(&blocked, o)));
        if (!(distance(&plain, o) <= 1e-10 && distance(&blocked, o) <= 1e-10)) most = INFINITY;
        free(plain.gradient);
        free(blocked.gradient);
    }
    tap_ok(most <= 1e-10, "seed %d: made anew in 1, 2, 3 and 5 slabs, %.1e", (int)seed, most);
}

static void check_seed(uint64_t seed, bool print)
{
    static const hl_compile_switches all = {.no_fuse = true,
                                            .no_inplace = true,
                                            .no_views = true,
                                            .no_reuse = true,
                                            .no_alone = true},
                                     some = {.no_alone = true};
    halo_network *net = seed > DENSE ? random_dense_network(ctx, seed, 2) : random_network(ctx, seed, 2);
    hl_optim_spec sgd = small_sgd();
    hl_model *m;
    hl_program *p;
    const int64_t batch = 1 + random_below(3);
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
        double slope = slope_error(seed, m, p, &d, &o);
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
        check_slabs(seed, m, &d, &o, batch);
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
    const halo_device_options f64 = {.compute = HALO_F64};
    int first = argc > 2 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : 120;
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &dev), "device");
    for (int seed = first; seed <= last; seed++) check_seed((uint64_t)seed, argc > 2);
    for (int seed = 1; seed <= 40 && argc <= 2; seed++) check_seed((uint64_t)(DENSE + seed), false);
    dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
