/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: shares for any number of ranks, padding, prefetch, resume, errors, and being shut down at any
 * time. */
#include "tests/io/iotest.h"
#include "io/io.h"
#include "io/writer.h"

static hl_source *open_synthetic(halo_context *ctx, int64_t samples, int64_t size)
{
    hl_source *s = NULL;
    hl_source_options o = {.synthetic = true,
                           .synthetic_samples = samples,
                           .seed = 5,
                           .channels = 2,
                           .size = {size, size, size},
                           .outputs = 4};
    MUST(hl_source_open(ctx, &o, &s));
    return s;
}

static hl_loader *create(halo_context *ctx, hl_source *s, hl_loader_options o)
{
    hl_loader *l = NULL;
    if (o.ranks == 0) o.ranks = 1;
    MUST(hl_loader_create(ctx, s, &o, &l));
    return l;
}

/* A number that stands for all bits of a batch. */
static uint64_t digest(const hl_loaded *b, int64_t cells, int64_t targets)
{
    uint64_t h = 1469598103934665603u;
    const unsigned char *part[4] = {(const void *)b->x, (const void *)b->y, (const void *)b->weight,
                                    (const void *)b->id};
    size_t bytes[4] = {(size_t)(b->samples * cells) * 4, (size_t)(b->samples * targets) * 4,
                       (size_t)b->samples * 8, (size_t)b->samples * 8};
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < bytes[k]; i++) h = (h ^ part[k][i]) * 1099511628211u;
    return h;
}

static int read_epoch(halo_context *ctx, hl_loader *l, const hl_source *s, int64_t epoch, int64_t step,
                      uint64_t *out)
{
    const int64_t *e = s->info.ext;
    int n = 0;
    MUST(hl_loader_start(l, epoch, step));
    for (;;) {
        const hl_loaded *b = NULL;
        MUST(hl_loader_next(l, &b));
        if (!b) return n;
        out[n++] = digest(b, e[0] * e[1] * e[2] * e[3], s->info.targets);
    }
}

static void ranks_share(halo_context *ctx, hl_source *s)
{
    bool union_good = true, steps_equal = true, order_equal = true, blocks = true;
    for (int ranks = 1; ranks <= 7; ranks++) {
        int64_t ids[64], count = 0;
        for (int rank = 0; rank < ranks; rank++) {
            hl_loader *l = create(
                ctx, s,
                (hl_loader_options){
                    .batch = 5, .rank = rank, .ranks = ranks, .shuffle = true, .seed = 3, .drop_last = true});
            steps_equal = steps_equal && hl_loader_steps(l) == s->info.samples / 5;
            MUST(hl_loader_start(l, 2, 0));
            int64_t order[64];
            hl_permutation(3, 2, s->info.samples, order);
            const hl_loaded *b = NULL;
            for (int64_t step = 0; step < hl_loader_steps(l); step++) {
                MUST(hl_loader_next(l, &b));
                blocks = blocks && b->samples == 5 / ranks + (rank < 5 % ranks) && b->weight_sum == 5 &&
                         b->last == (step == hl_loader_steps(l) - 1);
                for (int64_t i = 0; i < b->samples; i++) {
                    order_equal = order_equal && b->id[i] == order[step * 5 + b->first_sample + i];
                    ids[count++] = b->id[i];
                }
            }
            MUST(hl_loader_next(l, &b));
            steps_equal = steps_equal && b == NULL;
            hl_loader_destroy(l);
        }
        bool seen[64] = {false};
        union_good = union_good && count == s->info.samples / 5 * 5;
        for (int64_t i = 0; i < count; i++) {
            union_good = union_good && !seen[ids[i]];
            seen[ids[i]] = true;
        }
    }
    tap_ok(steps_equal, "every rank makes the same number of steps, 1 to 7 ranks");
    tap_ok(blocks, "shares are blocks, the first ones larger, also when there are more ranks than samples");
    tap_ok(union_good, "together they see each sample once");
    tap_ok(order_equal, "and the global order does not depend on the number of ranks");
}

static void evaluation(halo_context *ctx, hl_source *s)
{
    bool once = true;
    for (int ranks = 1; ranks <= 4; ranks++) {
        double weight = 0, sums = 0;
        int seen[64] = {0};
        for (int rank = 0; rank < ranks; rank++) {
            hl_loader *l = create(
                ctx, s,
                (hl_loader_options){.batch = 8, .rank = rank, .ranks = ranks, .first = 3, .count = 13});
            MUST(hl_loader_start(l, 0, 0));
            for (const hl_loaded *b = NULL; hl_loader_next(l, &b) == HALO_OK && b;) {
                if (rank == 0) sums += b->weight_sum;
                for (int64_t i = 0; i < b->samples; i++) {
                    weight += b->weight[i];
                    once = once && (b->id[i] < 0) == (b->weight[i] == 0);
                    if (b->id[i] >= 0) seen[b->id[i]]++;
                }
            }
            hl_loader_destroy(l);
        }
        once = once && weight == 13 && sums == 13;
        for (int i = 0; i < 64; i++) once = once && seen[i] == (i >= 3 && i < 16);
    }
    tap_ok(once, "13 samples in batches of 8, on 1 to 4 ranks: every sample weighs 1 once, the padding 0");
}

static void reading_ahead(halo_context *ctx, hl_source *s)
{
    enum { most = 16 };
    hl_loader_options o = {.batch = 3,
                           .shuffle = true,
                           .drop_last = true,
                           .seed = 9,
                           .cube = true,
                           .shift = true,
                           .transform = {HL_LOG1P, HL_ZSCORE},
                           .transforms = 2};
    uint64_t plain[2][most], ahead[2][most], again[most];
    hl_loader *l = create(ctx, s, o);
    int n = read_epoch(ctx, l, s, 0, 0, plain[0]);
    read_epoch(ctx, l, s, 1, 0, plain[1]);
    hl_loader_destroy(l);
    for (int prefetch = 1; prefetch <= 4; prefetch += 3) {
        o.prefetch = prefetch;
        l = create(ctx, s, o);
        int m = read_epoch(ctx, l, s, 0, 0, ahead[0]);
        read_epoch(ctx, l, s, 1, 0, ahead[1]);
        tap_ok(n == m && memcmp(plain, ahead, sizeof(**plain) * (size_t)n) == 0 &&
                   memcmp(plain[1], ahead[1], sizeof(**plain) * (size_t)n) == 0,
               "reading %d ahead gives the same bits as reading when asked", prefetch);
        m = read_epoch(ctx, l, s, 1, 3, again);
        tap_ok(m == n - 3 && memcmp(again, plain[1] + 3, sizeof(*again) * (size_t)m) == 0,
               "an epoch resumed at step 3 is the rest of that epoch");
        hl_loader_destroy(l);
    }
    tap_ok(memcmp(plain[0], plain[1], sizeof(plain[0])) != 0, "two epochs are not the same");
}

static void giving_up(halo_context *ctx, hl_source *s)
{
    hl_loader_options o = {.batch = 2, .shuffle = true, .drop_last = true, .seed = 1, .prefetch = 3};
    uint64_t want[32], got[32];
    hl_loader *l = create(ctx, s, o);
    int n = read_epoch(ctx, l, s, 4, 0, want);
    bool same = true;
    for (int taken = 0; taken < 8;
         taken++) { /* an epoch given up after a few batches, at every phase of the ring */
        const hl_loaded *b = NULL;
        MUST(hl_loader_start(l, taken, 0));
        for (int i = 0; i < taken; i++) MUST(hl_loader_next(l, &b));
        same = same && read_epoch(ctx, l, s, 4, 0, got) == n &&
               memcmp(want, got, sizeof(*want) * (size_t)n) == 0;
    }
    tap_ok(same, "an epoch given up at any batch leaves nothing behind for the next");
    hl_loader_destroy(l);
    for (int i = 0; i < 40; i++) {
        l = create(ctx, s, o);
        if (i % 4) MUST(hl_loader_start(l, i, 0));
        for (int k = 0; k < i % 5 && i % 4; k++) {
            const hl_loaded *b = NULL;
            MUST(hl_loader_next(l, &b));
        }
        if (i % 3 == 0) usleep((useconds_t)(i * 50));
        hl_loader_destroy(l);
    }
    tap_ok(true, "destroyed 40 times at various moments");
}

static void write_with_nan(halo_context *ctx, const char *path, int bad)
{
    hl_writer *w = NULL;
    float x[2 * 27];
    MUST(hl_writer_create(ctx, path,
                          &(hl_writer_options){.ext = {2, 3, 3, 3}, .dtype = HALO_F32, .targets = 1}, &w));
    for (int s = 0; s < 6; s++) {
        for (int i = 0; i < 54; i++) x[i] = (float)(i + s);
        if (s == bad) x[27 + 9 + 3 * 2 + 1] = NAN; /* c 1, d 1, h 2, w 1 */
        MUST(hl_writer_add(w, x, &(float){(float)s}, -1));
    }
    MUST(hl_writer_close(w, true));
}

static void bad_data(halo_context *ctx)
{
    const char *path = in_dir("nan.h5");
    hl_source *s = NULL;
    write_with_nan(ctx, path, 4);
    MUST(hl_source_open(ctx, &(hl_source_options){.path = path}, &s));
    for (int prefetch = 0; prefetch < 3; prefetch += 2) {
        hl_loader *l = create(ctx, s, (hl_loader_options){.batch = 1, .prefetch = prefetch});
        const hl_loaded *b = NULL;
        MUST(hl_loader_start(l, 0, 0));
        for (int i = 0; i < 4; i++) MUST(hl_loader_next(l, &b));
        usleep(2000);
        hl_set_error(ctx, "another failure in between");
        halo_status st = hl_loader_next(l, &b);
        fails_with(ctx, st, HALO_ERR_NONFINITE, "nan.h5#4", "[c 1, d 1, h 2, w 1]",
                   "a NaN names file, sample and voxel, after the good batches");
        tap_ok(hl_loader_next(l, &b) == HALO_ERR_NONFINITE && strstr(halo_error_message(ctx), "nan.h5#4"),
               "and stays known");
        iotest_errors = 0;
        MUST(hl_loader_start(l, 0, 5));
        MUST(hl_loader_next(l, &b));
        tap_ok(b && b->id[0] == 5, "a new start goes on after it");
        hl_loader_destroy(l);
    }
    hl_source_close(s);
}

/* y is x and its negative: whatever is done to one must be done to the other. */
static void target_volumes(halo_context *ctx)
{
    enum { cells = 64, samples = 6 };
    const char *path = in_dir("twin.h5");
    hl_writer *w = NULL;
    hl_source *s = NULL;
    float x[cells], y[2 * cells];
    hl_writer_options o = {.ext = {1, 4, 4, 4}, .dtype = HALO_F32, .targets = 2, .target_ext = {4, 4, 4}, .periodic = true};
    MUST(hl_writer_create(ctx, path, &o, &w));
    for (int i = 0; i < samples; i++) {
        for (int k = 0; k < cells; k++) {
            x[k] = y[k] = (float)(i * cells + k + 1);
            y[cells + k] = -x[k];
        }
        MUST(hl_writer_add(w, x, y, -1));
    }
    MUST(hl_writer_close(w, true));
    for (int side = 4; side >= 2; side -= 2) {
        bool same = true, moved = false;
        int64_t n = (int64_t)side * side * side, seen = 0;
        hl_loader_options lo = {.batch = 4, .cube = true, .shift = side == 4, .seed = 3, .shuffle = true};
        MUST(hl_source_open(ctx, &(hl_source_options){.path = path, .crop = {side, side, side}}, &s));
        hl_loader *l = create(ctx, s, lo);
        MUST(hl_loader_start(l, 0, 0));
        for (const hl_loaded *b = NULL; hl_loader_next(l, &b) == HALO_OK && b;)
            for (int64_t i = 0; i < b->samples; i++) {
                const float *bx = b->x + i * n, *by = b->y + i * 2 * n;
                seen += b->id[i] >= 0;
                for (int64_t k = 0; k < n; k++) {
                    same = same && by[k] == bx[k] && by[n + k] == -bx[k];
                    moved = moved || (k > 0 && b->id[i] >= 0 && bx[k] < bx[k - 1]);
                }
            }
        tap_ok(same && moved && seen == s->info.samples && hl_target_values(&s->info) == 2 * n,
               "target volumes of side %d are cut, turned and shifted as their samples are", side);
        hl_loader_destroy(l);
        hl_source_close(s);
    }
}

static void standard(halo_context *ctx, hl_source *s)
{
    const hl_loaded *a = NULL, *b = NULL;
    hl_loader_options o = {.batch = 4};
    hl_loader *plain = create(ctx, s, o), *l;
    o.transform[0] = HL_STANDARD;
    o.transforms = 1;
    o.mean = 2;
    o.std = 0.5;
    l = create(ctx, s, o);
    MUST(hl_loader_start(plain, 0, 0));
    MUST(hl_loader_start(l, 0, 0));
    MUST(hl_loader_next(plain, &a));
    MUST(hl_loader_next(l, &b));
    bool good = true;
    for (int i = 0; i < 4 * 2 * 216; i++) good = good && b->x[i] == (float)(((double)a->x[i] - 2) / 0.5);
    tap_ok(good, "a z-score with a given mean and deviation");
    hl_loader_destroy(l);
    o.transform[0] = HL_CLIP;
    o.window[0] = -1;
    o.window[1] = 3;
    l = create(ctx, s, o);
    MUST(hl_loader_start(l, 0, 0));
    MUST(hl_loader_next(l, &b));
    good = true;
    for (int i = 0; i < 4 * 2 * 216; i++) good = good && fabs((double)b->x[i] - (fmin(fmax((double)a->x[i], -1), 3) + 1) / 4) <= 1e-6;
    tap_ok(good, "a window clips and scales");
    hl_loader_destroy(plain);
    hl_loader_destroy(l);
    o.window[1] = -1;
    o.ranks = 1;
    fails_with(ctx, hl_loader_create(ctx, s, &o, &l), HALO_ERR_USAGE, "the window is -1 to -1", "must rise", "but not one without width");
    o.transform[0] = HL_STANDARD;
    o.std = 0;
    o.ranks = 1;
    fails_with(ctx, hl_loader_create(ctx, s, &o, &l), HALO_ERR_USAGE, "standard deviation", "above 0", "but not with a deviation of 0");
}

static void bad_options(halo_context *ctx, hl_source *s)
{
    hl_loader *l = NULL;
    fails_with(ctx,
               hl_loader_create(ctx, s, &(hl_loader_options){.batch = 64, .ranks = 1, .drop_last = true}, &l),
               HALO_ERR_USAGE, "64", "32", "a batch larger than the set");
    fails_with(
        ctx,
        hl_loader_create(ctx, s, &(hl_loader_options){.batch = 4, .ranks = 1, .first = 30, .count = 5}, &l),
        HALO_ERR_USAGE, "30", "32", "samples beyond the set");
    hl_source *flat = NULL;
    MUST(hl_source_open(ctx, &(hl_source_options){.synthetic = true, .size = {4, 4, 2}}, &flat));
    fails_with(ctx,
               hl_loader_create(ctx, flat, &(hl_loader_options){.batch = 4, .ranks = 1, .cube = true}, &l),
               HALO_ERR_SHAPE, "[4, 4, 2]", "cube", "symmetries of what is no cube");
    hl_source_close(flat);
}

int main(void)
{
    halo_context *ctx = iotest_begin("loader");
    hl_source *s = open_synthetic(ctx, 32, 6);
    ranks_share(ctx, s);
    evaluation(ctx, s);
    reading_ahead(ctx, s);
    giving_up(ctx, s);
    bad_data(ctx);
    target_volumes(ctx);
    standard(ctx, s);
    bad_options(ctx, s);
    hl_source_close(s);
    return iotest_end(ctx);
}
