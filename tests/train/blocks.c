/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c -- trainers on several ranks, which hand over their blocks of the samples, cut and laid out at random, in every type: losses, weights and predictions against
 * those of a trainer on one rank that has all. As many ranks as the launcher started. Argument
 * "funneled": MPI gives no MPI_THREAD_MULTIPLE.
 */
#include "base/rng.h"
#include "comm/comm.h"
#include "halo/halo_mpi.h"
#include "tensor/cuboid.h"
#include "tensor/operand.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <unistd.h>

enum { BATCH = 4, C = 2, D = 8, H = 6, W = 5, CELLS = C * D * H * W, OUT = 3 };

static halo_context *ctx, *self;
static uint64_t drawn;

static int64_t draw(int64_t n) { return (int64_t)(hl_rng_uniform(31, HL_STREAM_TEST, drawn++, 0) * (double)n); }

static void claim(bool holds, const char *sentence, double figure)
{
    double bad = holds ? 0 : 1;
    check_status(ctx, hl_comm_max(ctx, &bad, 1), "max");
    if (ctx->rank == 0) tap_ok(bad == 0, "%s [%.3g]", sentence, figure);
}

/* conv 3^3 periodic -> leaky relu, then either numbers or a volume of one channel. */
static halo_network *network(halo_context *c, bool volume)
{
    const int64_t extents[3] = {D, H, W};
    halo_network *net;
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_pool_options pool = HALO_POOL_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    int last = 0;
    check_status(c, halo_network_create(c, "blocks", C, extents, &net), "network");
    conv.filters = 4;
    for (int i = 0; i < 3; i++) conv.padding[i] = HALO_PAD_PERIODIC;
    check_status(c, halo_network_conv(net, last, NULL, &conv, &last), "conv");
    check_status(c, halo_network_activation(net, last, NULL, HALO_ACT_LEAKY_RELU, 0.1, &last), "activation");
    if (volume) {
        conv.filters = 1;
        check_status(c, halo_network_conv(net, last, NULL, &conv, &last), "conv");
        return net;
    }
    pool.kind = HALO_POOL_AVG;
    check_status(c, halo_network_pool(net, last, NULL, &pool, &last), "pool");
    check_status(c, halo_network_flatten(net, last, NULL, &flatten, &last), "flatten");
    dense.outputs = OUT;
    check_status(c, halo_network_dense(net, last, NULL, &dense, &last), "dense");
    return net;
}

static halo_trainer *trainer(halo_context *c, bool volume, const int64_t spatial[3])
{
    halo_network *net = network(c, volume);
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t;
    o.batch = BATCH;
    o.optimizer = HALO_SGD;
    o.lr = 1e-3;
    memcpy(o.spatial, spatial, sizeof(o.spatial));
    check_status(c, halo_trainer_create(c, net, &o, &t), "trainer");
    halo_network_destroy(net);
    return t;
}

/* ------------------------------------------------------------------------------------------------------------- blocks */

/* Small whole numbers, which every type has. */
static double value(int64_t i, int64_t salt) { return (double)(hl_philox(11, HL_STREAM_TEST, (uint64_t)i, (uint64_t)salt).v[0] % 4); }

static void put(void *p, halo_dtype type, int64_t i, double v)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200};
    switch (type) {
    case HALO_F64: ((double *)p)[i] = v; break;
    case HALO_F16: ((uint16_t *)p)[i] = halves[(int)v]; break;
    case HALO_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case HALO_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case HALO_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    default: ((float *)p)[i] = (float)v;
    }
}

static void cut(const int64_t extent[HALO_DIMS], hl_cuboid *list, int n)
{
    list[0] = hl_cuboid_whole(extent);
    for (int i = 1; i < n; i++) {
        int k = (int)draw(i), a = (int)draw(HALO_DIMS);
        int64_t at = list[k].axis[a].lo + draw(hl_range_len(list[k].axis[a]) + 1);
        list[i] = list[k];
        list[k].axis[a].hi = list[i].axis[a].lo = at;
    }
}

/* This rank's of the boxes, axes in an order of its own, gaps between rows; freed by the caller. */
static halo_block block_of(const hl_cuboid *box, const int64_t extent[HALO_DIMS], halo_dtype type, int64_t salt)
{
    halo_block b = HALO_BLOCK_INIT;
    int64_t n = 1, turn = draw(HALO_DIMS), gap = draw(3);
    b.type = type;
    for (int k = 0; k < HALO_DIMS; k++) {
        int a = (int)((k + turn + ctx->rank) % HALO_DIMS);
        b.lo[a] = box->axis[a].lo;
        b.extents[a] = hl_range_len(box->axis[a]);
        b.stride[a] = n;
        n = n * b.extents[a] + gap;
    }
    char *data = check_alloc(n, 8);
    int64_t c[HALO_DIMS];
    for (c[0] = 0; c[0] < b.extents[0]; c[0]++)
        for (c[1] = 0; c[1] < b.extents[1]; c[1]++)
            for (c[2] = 0; c[2] < b.extents[2]; c[2]++)
                for (c[3] = 0; c[3] < b.extents[3]; c[3]++)
                    for (c[4] = 0; c[4] < b.extents[4]; c[4]++) {
                        int64_t global = 0, local = 0;
                        for (int a = 0; a < HALO_DIMS; a++) {
                            global = global * extent[a] + b.lo[a] + c[a];
                            local += c[a] * b.stride[a];
                        }
                        put(data, type, local, value(global, salt));
                    }
    b.data = data;
    return b;
}

/* ---------------------------------------------------------------------------------------------------------- training */

static double apart(double a, double b) { return fabs(a - b) / fmax(fabs(b), 1e-3); }

/* Steps from blocks that change now and then, beside one rank that has all. */
static double compare(halo_trainer *t, halo_trainer *one, bool volume, halo_dtype type, int64_t steps)
{
    const int64_t xe[HALO_DIMS] = {BATCH, C, D, H, W}, ye[HALO_DIMS] = {BATCH, 1, D, H, W};
    int64_t ny = volume ? BATCH * D * H * W : BATCH * OUT;
    float *x = check_alloc(BATCH * CELLS, 4), *y = check_alloc(ny, 4);
    hl_cuboid *xs = check_alloc(ctx->ranks, sizeof(*xs)), *ys = check_alloc(ctx->ranks, sizeof(*ys));
    double worst = 0;
    for (int64_t s = 0; s < steps; s++) {
        double loss, want;
        if (s % 2 == 0) {
            cut(xe, xs, ctx->ranks);
            cut(ye, ys, ctx->ranks);
        }
        for (int64_t i = 0; i < BATCH * CELLS; i++) x[i] = (float)value(i, s);
        for (int64_t i = 0; i < ny; i++) y[i] = (float)value(i, 100 + s);
        halo_block xb = block_of(&xs[ctx->rank], xe, type, s), yb = block_of(&ys[ctx->rank], ye, type, 100 + s);
        check_status(ctx, halo_trainer_step_blocks(t, &xb, volume ? NULL : y, volume ? &yb : NULL, 0, &loss), "step");
        check_status(self, halo_trainer_step(one, x, y, 0, &want), "step");
        worst = check_worse(worst, apart(loss, want));
        free((void *)(uintptr_t)xb.data);
        free((void *)(uintptr_t)yb.data);
    }
    free(x), free(y), free(xs), free(ys);
    return worst;
}

static double weights_apart(halo_trainer *t, halo_trainer *one)
{
    float a[4 * C * 27], b[4 * C * 27];
    double worst = 0;
    check_status(ctx, halo_trainer_get(t, "conv1/weights", a, 4 * C * 27), "get");
    check_status(self, halo_trainer_get(one, "conv1/weights", b, 4 * C * 27), "get");
    for (int i = 0; i < 4 * C * 27; i++) worst = check_worse(worst, apart((double)a[i], (double)b[i]));
    return worst;
}

/* Predictions of blocks into random boxes, beside those of one rank. */
static double predict(halo_trainer *t, halo_trainer *one, bool volume)
{
    const int64_t xe[HALO_DIMS] = {BATCH, C, D, H, W}, ye[HALO_DIMS] = {BATCH, volume ? 1 : OUT, volume ? D : 1, volume ? H : 1, volume ? W : 1};
    int64_t ny = ye[0] * ye[1] * ye[2] * ye[3] * ye[4];
    float *x = check_alloc(BATCH * CELLS, 4), *want = check_alloc(ny, 4);
    hl_cuboid *xs = check_alloc(ctx->ranks, sizeof(*xs)), mine;
    double worst = 0;
    for (int64_t i = 0; i < BATCH * CELLS; i++) x[i] = (float)value(i, 55);
    check_status(self, halo_trainer_predict(one, BATCH, x, want), "predict");
    for (int k = 0; k < 4; k++) {
        cut(xe, xs, ctx->ranks);
        for (int r = 0; r < ctx->ranks; r++) /* the last time everything to all */
            for (int a = 0; a < HALO_DIMS; a++) {
                int64_t lo = k == 3 ? 0 : draw(ye[a]), hi = k == 3 ? ye[a] : lo + draw(ye[a] - lo + 1);
                if (r == ctx->rank) mine.axis[a] = (hl_range){lo, hi};
            }
        halo_block xb = block_of(&xs[ctx->rank], xe, HALO_I16, 55), yb = block_of(&mine, ye, HALO_F32, 0);
        check_status(ctx, halo_trainer_predict_blocks(t, &xb, &yb), "predict");
        int64_t c[HALO_DIMS];
        for (c[0] = 0; c[0] < yb.extents[0]; c[0]++)
            for (c[1] = 0; c[1] < yb.extents[1]; c[1]++)
                for (c[2] = 0; c[2] < yb.extents[2]; c[2]++)
                    for (c[3] = 0; c[3] < yb.extents[3]; c[3]++)
                        for (c[4] = 0; c[4] < yb.extents[4]; c[4]++) {
                            int64_t global = 0, local = 0;
                            for (int a = 0; a < HALO_DIMS; a++) {
                                global = global * ye[a] + yb.lo[a] + c[a];
                                local += c[a] * yb.stride[a];
                            }
                            worst = check_worse(worst, apart((double)((const float *)yb.data)[local], (double)want[global]));
                        }
        free((void *)(uintptr_t)xb.data);
        free((void *)(uintptr_t)yb.data);
    }
    free(x), free(want), free(xs);
    return worst;
}

static void train(bool volume, const int64_t spatial[3])
{
    static const halo_dtype types[] = {HALO_F32, HALO_F64, HALO_F16, HALO_U8, HALO_I16, HALO_I32};
    static const int64_t whole[3] = {1, 1, 1};
    halo_trainer *t = trainer(ctx, volume, spatial), *one = trainer(self, volume, whole);
    double worst = 0;
    for (size_t k = 0; k < HL_COUNT(types); k++) worst = check_worse(worst, compare(t, one, volume, types[k], 3));
    char sentence[160];
    snprintf(sentence, sizeof(sentence), "%s, samples cut into %d x %d x %d: losses of blocks of any type are those of one rank", volume ? "volumes" : "numbers", (int)spatial[0],
             (int)spatial[1], (int)spatial[2]);
    claim(worst <= 1e-4, sentence, worst);
    worst = weights_apart(t, one);
    claim(worst <= 1e-3 && halo_trainer_steps(t) == 18, "and so are the weights", worst);
    worst = predict(t, one, volume);
    claim(worst <= 1e-3, "and predictions, into boxes of their own", worst);
    halo_trainer_destroy(t);
    halo_trainer_destroy(one);
}

/* Whole batches on each rank: steps, predictions, losses, a checkpoint. */
static void whole(const int64_t spatial[3])
{
    static const int64_t uncut[3] = {1, 1, 1};
    enum { SAMPLES = 7 };
    halo_trainer *t = trainer(ctx, false, spatial), *one = trainer(self, false, uncut);
    float *x = check_alloc(SAMPLES * CELLS, 4), y[SAMPLES * OUT], guess[SAMPLES * OUT], want[SAMPLES * OUT];
    double worst = 0, loss[2];
    for (int i = 0; i < SAMPLES * CELLS; i++) x[i] = (float)value(i, 7);
    for (int i = 0; i < SAMPLES * OUT; i++) y[i] = (float)value(i, 8);
    for (int s = 0; s < 3; s++) {
        check_status(ctx, halo_trainer_step(t, x, y, 0, &loss[0]), "step");
        check_status(self, halo_trainer_step(one, x, y, 0, &loss[1]), "step");
        worst = check_worse(worst, apart(loss[0], loss[1]));
    }
    check_status(ctx, halo_trainer_predict(t, SAMPLES, x, guess), "predict");
    check_status(self, halo_trainer_predict(one, SAMPLES, x, want), "predict");
    for (int i = 0; i < SAMPLES * OUT; i++) worst = check_worse(worst, apart((double)guess[i], (double)want[i]));
    check_status(ctx, halo_trainer_evaluate(t, SAMPLES, x, y, &loss[0]), "evaluate");
    check_status(self, halo_trainer_evaluate(one, SAMPLES, x, y, &loss[1]), "evaluate");
    worst = check_worse(worst, apart(loss[0], loss[1]));
    claim(worst <= 1e-4, "whole batches: steps, predictions and losses are those of one rank", worst);
    int64_t process = getpid(); /* rank 0's: the same test on other numbers of ranks may run beside this one */
    check_status(ctx, hl_comm_broadcast(ctx, &process, sizeof(process), 0), "broadcast");
    char path[64];
    snprintf(path, sizeof(path), "tests/train/blocks-%" PRId64 ".h5", process);
    check_status(ctx, halo_trainer_save(t, path), "save");
    check_status(ctx, halo_trainer_step(t, x, y, 0, &loss[0]), "step");
    check_status(ctx, halo_trainer_load(t, path), "load");
    worst = weights_apart(t, one);
    claim(worst <= 1e-3 && halo_trainer_steps(t) == 3, "a checkpoint is saved once and loaded by all", worst);
    check_status(ctx, hl_comm_barrier(ctx), "barrier");
    if (ctx->rank == 0) remove(path);
    free(x);
    halo_trainer_destroy(t);
    halo_trainer_destroy(one);
}

/* ---------------------------------------------------------------------------------------------------------- mistakes */

static void refuse(halo_trainer *t, const halo_block *b, const float *y, const halo_block *y_block, const char *words)
{
    halo_status st = halo_trainer_step_blocks(t, b, y, y_block, 0, NULL);
    bool good = st == HALO_ERR_USAGE && strstr(halo_error_message(ctx), words);
    if (!good) fprintf(stderr, "# %s, not '%s'\n", halo_error_message(ctx), words);
    claim(good, words, 0);
}

static void mistakes(void)
{
    static const int64_t spatial[3] = {1, 1, 1};
    const int64_t xe[HALO_DIMS] = {BATCH, C, D, H, W};
    halo_trainer *t = trainer(ctx, false, spatial);
    float y[BATCH * OUT] = {0};
    hl_cuboid box = hl_cuboid_whole(xe);
    box.axis[HALO_D] = hl_block_range(D, ctx->ranks, ctx->rank);
    halo_block good = block_of(&box, xe, HALO_F32, 0), bad = good;
    bool last = ctx->rank == ctx->ranks - 1;
    if (last) bad.extents[HALO_W]--;
    refuse(t, &bad, y, NULL, "no rank has the cell [0, 0, ");
    bad = good;
    if (last) bad.lo[HALO_H]++;
    refuse(t, &bad, y, NULL, "has the cell [0, 0, ");
    bad = good;
    if (last) bad.type = HALO_BF16;
    refuse(t, &bad, y, NULL, "'x': type 4 is not one that blocks can have");
    bad = good;
    if (last) bad.data = NULL;
    refuse(t, &bad, y, NULL, "'x': 'data' must not be NULL");
    bad = good;
    if (last) bad.size = 3;
    refuse(t, &bad, y, NULL, "halo_block has size 3");
    refuse(t, last ? NULL : &good, y, NULL, "'x' must not be NULL");
    refuse(t, &good, last ? NULL : y, NULL, "'y' must not be NULL");
    refuse(t, &good, y, last ? &good : NULL, "the network ends in numbers");
    double loss = NAN;
    check_status(ctx, halo_trainer_step_blocks(t, &good, y, NULL, 0, &loss), "step");
    claim(isfinite(loss) && halo_trainer_steps(t) == 1, "after all that a step is made", loss);
    free((void *)(uintptr_t)good.data);
    halo_trainer_destroy(t);
}

/* Ranks that do not make the same trainer. */
static void differ(void)
{
    bool last = ctx->rank == ctx->ranks - 1;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_network *net = network(ctx, false), *other = network(ctx, true);
    halo_trainer *t = NULL;
    o.batch = BATCH;
    if (last) o.lr = 0.25;
    halo_status st = halo_trainer_create(ctx, net, &o, &t);
    claim(st == HALO_ERR_USAGE && !t && strstr(halo_error_message(ctx), "options of rank 0 and of rank") && strstr(halo_error_message(ctx), "and 'lr: 0.25'"),
          "options that differ between ranks are refused", 0);
    o.lr = 1e-3;
    st = halo_trainer_create(ctx, last ? other : net, &o, &t);
    claim(st == HALO_ERR_USAGE && !t && strstr(halo_error_message(ctx), "the networks of rank 0 and of rank"), "and so are networks", 0);
    halo_network_destroy(net);
    halo_network_destroy(other);
}

int main(int argc, char **argv)
{
    int level;
    bool funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    check_status(NULL, halo_mpi_context_create(MPI_COMM_SELF, NULL, &self), "context");
    for (int64_t d = 1; d <= ctx->ranks; d *= 2)
        for (int64_t w = 1; d * w <= ctx->ranks; w *= 2) {
            const int64_t spatial[3] = {d, 1, w};
            train(false, spatial);
            train(true, spatial);
            whole(spatial);
        }
    mistakes();
    if (ctx->ranks > 1) differ();
    int rank = ctx->rank;
    halo_context_destroy(self);
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
