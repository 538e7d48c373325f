/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c -- the public trainer on a network that ends in a volume: shapes of targets and predictions, learning, partial batches. */
#include <halo/halo.h>

#include "tests/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 6, CELLS = SIDE * SIDE * SIDE, BATCH = 2, SAMPLES = 5 };

static halo_status make_network(halo_context *ctx, halo_network **net)
{
    static const char text[] = "name: map\ninput: {channels: 1, size: 6}\nlayers:\n  - conv: {name: c, filters: 2, kernel: 1}\n";
    return halo_network_parse(ctx, "map.yaml", text, sizeof(text) - 1, 0, NULL, net);
}

/* Channel 0 is 2 x - 1, channel 1 is -x. */
static void fill(float *x, float *y)
{
    uint64_t state = 5;
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < CELLS; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            float v = (float)(state >> 40) / 16777216.0f;
            x[s * CELLS + i] = v;
            y[(s * 2) * CELLS + i] = 2 * v - 1;
            y[(s * 2 + 1) * CELLS + i] = -v;
        }
}

static void train(halo_trainer *t, const float *x, const float *y)
{
    static float guess[SAMPLES * 2 * CELLS];
    double first = NAN, last = NAN, mean = NAN, sum = 0;
    for (int step = 0; step < 60; step++) {
        int at = step % 2 * BATCH;
        if (halo_trainer_step(t, x + at * CELLS, y + at * 2 * CELLS, 0, step == 0 ? &first : &last) != HALO_OK) break;
    }
    tap_ok(last < 0.1 * first, "the loss of a volume falls from %g to %g", first, last);
    bool good = halo_trainer_predict(t, SAMPLES, x, guess) == HALO_OK && halo_trainer_evaluate(t, SAMPLES, x, y, &mean) == HALO_OK;
    for (int i = 0; i < SAMPLES * 2 * CELLS; i++) sum += ((double)guess[i] - (double)y[i]) * ((double)guess[i] - (double)y[i]);
    sum /= SAMPLES * 2 * CELLS;
    tap_ok(good && fabs(mean - sum) <= 1e-4 * sum, "5 samples in batches of 2: the loss %g is the mean square over all voxels, %g", mean, sum);
}

/* Two classes of cells, told apart by one channel; 5 samples in batches of 2. */
static void train_classes(halo_context *ctx, const halo_network *net, const float *x)
{
    static float label[SAMPLES * CELLS], logit[SAMPLES * 2 * CELLS];
    halo_trainer *t;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    double first = NAN, last = NAN, mean = NAN, sum = 0;
    int right = 0;
    o.batch = BATCH, o.loss = HALO_LOSS_CROSS_ENTROPY, o.lr = 0.3;
    for (int i = 0; i < SAMPLES * CELLS; i++) label[i] = x[i] > 0.5f;
    if (halo_trainer_create(ctx, net, &o, &t) != HALO_OK) tap_bail("trainer: %s", halo_error_message(ctx));
    for (int step = 0; step < 60; step++) {
        int at = step % 2 * BATCH;
        if (halo_trainer_step(t, x + at * CELLS, label + at * CELLS, 0, step == 0 ? &first : &last) != HALO_OK) break;
    }
    tap_ok(last < 0.5 * first, "the cross entropy of cells falls from %g to %g", first, last);
    bool good = halo_trainer_predict(t, SAMPLES, x, logit) == HALO_OK && halo_trainer_evaluate(t, SAMPLES, x, label, &mean) == HALO_OK;
    for (int s = 0; s < SAMPLES; s++)
        for (int i = 0; i < CELLS; i++) {
            double a = (double)logit[2 * s * CELLS + i], b = (double)logit[(2 * s + 1) * CELLS + i];
            bool one = label[s * CELLS + i] > 0;
            sum += log1p(exp(one ? a - b : b - a)) / (SAMPLES * CELLS);
            right += (b > a) == one;
        }
    tap_ok(good && fabs(mean - sum) <= 1e-5 * sum, "predictions are logits: their loss is %g, as evaluated: %g", sum, mean);
    tap_ok(right > 0.95 * SAMPLES * CELLS, "%d of %d cells have their class", right, SAMPLES * CELLS);
    label[7] = 2;
    halo_status st = halo_trainer_step(t, x, label, 0, NULL);
    tap_ok(st == HALO_ERR_NONFINITE && strstr(halo_error_message(ctx), "a target is no class number from 0 to 1"), "refused: %s", halo_error_message(ctx));
    halo_trainer_destroy(t);
}

/* The same network with activations of 16 bits: it learns. */
static void refused(const halo_context *ctx, halo_status st, const char *words)
{
    const char *said = st == HALO_OK ? "(accepted)" : halo_error_message(ctx);
    tap_ok(st == HALO_ERR_USAGE && strstr(said, words), "refused (%s): %s", words, said);
}

/* sum w loss / sum w over the cells [from, to) of samples, of logits [samples, 2, CELLS]; label 7 is none. */
static double weighted_mean(const float *logit, const float *label, const double w[2], int from, int to)
{
    double sum = 0, weights = 0;
    for (int s = from; s < to; s++)
        for (int i = 0; i < CELLS; i++) {
            int t = (int)label[s * CELLS + i];
            double a = (double)logit[2 * s * CELLS + i], b = (double)logit[(2 * s + 1) * CELLS + i], own = t ? b : a;
            if (t == 7) continue;
            sum += w[t] * (log(exp(a) + exp(b)) - own);
            weights += w[t];
        }
    return sum / weights;
}

/* A step's loss is the weighted mean over all its cells, an evaluation's the mean of those of samples. */
static void weigh_classes(halo_context *ctx, const halo_network *net, const float *x)
{
    static float label[SAMPLES * CELLS], logit[SAMPLES * 2 * CELLS];
    const double w[2] = {0.25, 3};
    halo_trainer *t;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    double step = NAN, mean = NAN, apart = 0;
    o.batch = BATCH, o.loss = HALO_LOSS_CROSS_ENTROPY;
    o.class_weights = w, o.classes = 2, o.ignore = true, o.ignore_label = 7;
    for (int i = 0; i < SAMPLES * CELLS; i++) label[i] = i % 5 == i / CELLS ? 7 : x[i] > 0.3f + 0.1f * (float)(i / CELLS);
    if (halo_trainer_create(ctx, net, &o, &t) != HALO_OK) tap_bail("trainer: %s", halo_error_message(ctx));
    bool good = halo_trainer_predict(t, SAMPLES, x, logit) == HALO_OK && halo_trainer_evaluate(t, SAMPLES, x, label, &mean) == HALO_OK &&
                halo_trainer_step(t, x, label, 0, &step) == HALO_OK;
    double want = weighted_mean(logit, label, w, 0, BATCH);
    for (int s = 0; s < SAMPLES; s++) apart += weighted_mean(logit, label, w, s, s + 1) / SAMPLES;
    tap_ok(good && fabs(step - want) <= 1e-6 * want, "classes weighted, a label left out: the loss of a step is the weighted mean over its cells, %g", step);
    tap_ok(good && fabs(mean - apart) <= 1e-6 * apart, "and that of an evaluation the mean of the samples' own, %g", mean);
    halo_trainer_destroy(t);
    o.classes = 1;
    refused(ctx, halo_trainer_create(ctx, net, &o, &t), "'classes' is 1");
    o.classes = 2, o.loss = HALO_LOSS_MSE;
    refused(ctx, halo_trainer_create(ctx, net, &o, &t), "'class_weights' has no use");
}

static void train_short(halo_dtype type, const float *x, const float *y)
{
    halo_context_options c = HALO_CONTEXT_OPTIONS_INIT;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_context *ctx = NULL;
    halo_network *net = NULL;
    halo_trainer *t = NULL;
    double first = 0, last = 0;
    c.compute = type;
    o.batch = BATCH;
    o.lr = 0.05;
    halo_status st = halo_context_create(&c, &ctx);
    if (st == HALO_OK) st = make_network(ctx, &net);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, &o, &t);
    for (int step = 0; step < 100 && st == HALO_OK; step++) {
        int at = step % 2 * BATCH;
        st = halo_trainer_step(t, x + at * CELLS, y + 2 * at * CELLS, 0, step == 0 ? &first : &last);
    }
    tap_ok(st == HALO_OK && last < 0.5 * first, "in %s the loss falls from %g to %g", type == HALO_F16 ? "f16" : "bf16", first, last);
    int64_t made = halo_trainer_steps(t); /* but for those that overflowed on the way to a scale that fits */
    tap_ok(made <= 100 && made > (type == HALO_F16 ? 70 : 99), "%d of 100 steps were made", (int)made);
    halo_trainer_destroy(t);
    halo_network_destroy(net);
    halo_context_destroy(ctx);
}

/* USAGE, and the message has `words`. */
static void check_null(halo_context *ctx, const halo_network *net, halo_trainer *t, const float *x, const float *y)
{
    static float out[SAMPLES * 2 * CELLS];
    double loss = -7;
    halo_trainer *other = NULL;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    refused(NULL, halo_trainer_create(NULL, net, &o, &other), "'ctx' must not be NULL");
    refused(ctx, halo_trainer_create(ctx, NULL, &o, &other), "'net' must not be NULL");
    refused(ctx, halo_trainer_create(ctx, net, &o, NULL), "'trainer' must not be NULL");
    refused(NULL, halo_trainer_step(NULL, x, y, 0, NULL), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_step(t, NULL, y, 0, NULL), "'x' must not be NULL");
    refused(ctx, halo_trainer_step(t, x, NULL, 0, NULL), "'y' must not be NULL");
    refused(NULL, halo_trainer_predict(NULL, 1, x, out), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_predict(t, 1, NULL, out), "'x' must not be NULL");
    refused(ctx, halo_trainer_predict(t, 1, x, NULL), "'prediction' must not be NULL");
    refused(NULL, halo_trainer_evaluate(NULL, 1, x, y, &loss), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_evaluate(t, 1, NULL, y, &loss), "'x' must not be NULL");
    refused(ctx, halo_trainer_evaluate(t, 1, x, NULL, &loss), "'y' must not be NULL");
    refused(ctx, halo_trainer_evaluate(t, 1, x, y, NULL), "'loss' must not be NULL");
    refused(NULL, halo_trainer_get(NULL, "c/weights", out, 2), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_get(t, NULL, out, 2), "'name' must not be NULL");
    refused(ctx, halo_trainer_get(t, "c/weights", NULL, 2), "'values' must not be NULL");
    refused(NULL, halo_trainer_set(NULL, "c/weights", out, 2), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_set(t, NULL, out, 2), "'name' must not be NULL");
    refused(ctx, halo_trainer_set(t, "c/weights", NULL, 2), "'values' must not be NULL");
    refused(NULL, halo_trainer_save(NULL, "x.h5"), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_save(t, NULL), "'path' must not be NULL");
    refused(NULL, halo_trainer_load(NULL, "x.h5"), "'trainer' must not be NULL");
    refused(ctx, halo_trainer_load(t, NULL), "'path' must not be NULL");
    tap_ok(halo_trainer_steps(NULL) == 0 && !other && loss == -7, "no trainer has made 0 steps, and outputs of refused calls are left alone");
    tap_ok(halo_trainer_create(ctx, net, NULL, &other) == HALO_OK && halo_trainer_step(other, x, y, 0, NULL) == HALO_OK,
           "without options a trainer has the defaults");
    halo_trainer_destroy(other);
}

static void check_lr(const halo_context *ctx, halo_trainer *t, const float *x, const float *y)
{
    const double bad[] = {-1, -1e-300, INFINITY, -INFINITY, NAN};
    float before[2] = {0}, after[2] = {1};
    int64_t steps = halo_trainer_steps(t);
    halo_status got = halo_trainer_get(t, "c/weights", before, 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) refused(ctx, halo_trainer_step(t, x, y, bad[i], NULL), "'lr' is");
    if (got == HALO_OK) got = halo_trainer_get(t, "c/weights", after, 2);
    tap_ok(got == HALO_OK && memcmp(before, after, sizeof(before)) == 0 && halo_trainer_steps(t) == steps, "no step was made with them");
}

/* Options that no configuration file could say are not taken from a program either. */
#define REFUSED(field, value)                                                                                \
    do {                                                                                                     \
        halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;                                                  \
        halo_trainer *made = NULL;                                                                           \
        o.field = (value);                                                                                   \
        refused(ctx, halo_trainer_create(ctx, net, &o, &made), #field);                                      \
        halo_trainer_destroy(made);                                                                          \
    } while (0)

static void check_options(halo_context *ctx, const halo_network *net)
{
    REFUSED(size, 8);
    REFUSED(batch, 0);
    REFUSED(batch, -3);
    REFUSED(loss, (halo_loss)9);
    REFUSED(loss, (halo_loss)-1);
    REFUSED(optimizer, (halo_optimizer)9);
    REFUSED(larc, (halo_larc)9);
    REFUSED(huber_delta, 0);
    REFUSED(huber_delta, NAN);
    REFUSED(lr, -1);
    REFUSED(lr, INFINITY);
    REFUSED(lr, NAN);
    REFUSED(momentum, 1.5);
    REFUSED(beta1, 2);
    REFUSED(beta2, NAN);
    REFUSED(epsilon, -1);
    REFUSED(trust, -1);
    REFUSED(weight_decay, -1);
    REFUSED(weight_decay, INFINITY);
    REFUSED(clip_norm, -1);
    REFUSED(clip_norm, NAN);
    REFUSED(clip_norm, INFINITY);
}

/* The last of every choice, and clipping: what is accepted is saved and loaded again. */
static void check_saved(halo_context *ctx, const halo_network *net, const float *x, const float *y)
{
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t = NULL, *again = NULL;
    float a[2] = {0}, b[2] = {1};
    char path[64];
    snprintf(path, sizeof(path), "trainer-test-%ld.h5", (long)getpid());
    o.batch = BATCH, o.loss = HALO_LOSS_HUBER, o.optimizer = HALO_ADAMW, o.larc = HALO_LARC_SCALE, o.clip_norm = 0.5, o.weight_decay = 0.25;
    halo_status st = halo_trainer_create(ctx, net, &o, &t);
    if (st == HALO_OK) st = halo_trainer_step(t, x, y, 0, NULL);
    if (st == HALO_OK) st = halo_trainer_save(t, path);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, &o, &again);
    if (st == HALO_OK) st = halo_trainer_load(again, path);
    if (st == HALO_OK) st = halo_trainer_get(t, "c/weights", a, 2);
    if (st == HALO_OK) st = halo_trainer_get(again, "c/weights", b, 2);
    tap_ok(st == HALO_OK && memcmp(a, b, sizeof(a)) == 0 && halo_trainer_steps(again) == 1, "accepted options are saved and loaded: %s",
           st == HALO_OK ? "equal" : halo_error_message(ctx));
    halo_trainer_destroy(again);
    halo_trainer_destroy(t);
    remove(path);
}

int main(void)
{
    static float x[SAMPLES * CELLS], y[SAMPLES * 2 * CELLS];
    halo_context *ctx;
    halo_network *net = NULL;
    halo_trainer *t = NULL;
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    o.batch = BATCH;
    o.lr = 0.05;
    if (halo_context_create(NULL, &ctx) != HALO_OK) return 1;
    fill(x, y);
    halo_status st = make_network(ctx, &net);
    if (st == HALO_OK) st = halo_trainer_create(ctx, net, &o, &t);
    tap_ok(st == HALO_OK, "a trainer of a network that ends in a volume: %s", st == HALO_OK ? "made" : halo_error_message(ctx));
    if (t) {
        train(t, x, y);
        train_classes(ctx, net, x);
        weigh_classes(ctx, net, x);
        train_short(HALO_F16, x, y);
        train_short(HALO_BF16, x, y);
        check_null(ctx, net, t, x, y);
        check_lr(ctx, t, x, y);
        check_options(ctx, net);
        check_saved(ctx, net, x, y);
    }
    halo_trainer_destroy(t);
    halo_network_destroy(net);
    halo_context_destroy(ctx);
    return tap_done();
}
