/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c -- optimisers and LARC on every backend against closed forms worked out by hand, not by the formula that the backends run:
 * with a constant gradient g, momentum mu, after T steps
 *
 *   v_T = -lr g (1 - mu^T)/(1 - mu)                  w_T = w_0 + sum v_t                     (SGD)
 *                                                    w_T = w_0 + sum (mu v_t - lr g)         (Nesterov)
 *   m_T = g (1 - b1^T),  s_T = g^2 (1 - b2^T)        w_T = w_0 - sum lr g r_t/(|g| r_t + eps), r_t = sqrt(1 - b2^t)    (Adam: m's correction cancels)
 */
#include "backend/backend.h"

#include "tests/check.h"
#include "tests/tap.h"

enum { N = 5 };

/* A device and the five arrays of an update on it. */
typedef struct bench {
    halo_device *dev;
    const char *name;
    double tolerance;
    halo_op_desc d;
    halo_step_record record;
    void *ptr[HALO_ROLES];
} bench;

static void add(bench *b, halo_role role, halo_dtype type, int64_t n, const double *values)
{
    b->d.t[role] = hl_operand_flat(type, n);
    check_status(b->dev->ctx, b->dev->ops->alloc(b->dev, 8 * (size_t)n, &b->ptr[role]), "alloc");
    check_status(b->dev->ctx, b->dev->ops->upload(b->dev, &b->d.t[role], b->ptr[role], HALO_F64, values), "upload");
}

static void get(const bench *b, halo_role role, double *out)
{
    check_status(b->dev->ctx, b->dev->ops->download(b->dev, &b->d.t[role], b->ptr[role], HALO_F64, out), "download");
}

static bench open_bench(halo_device *dev, const char *name, double tolerance, halo_update_params u, const double w[N],
                        const double g[N])
{
    static const double zero[N];
    bench b = {.dev = dev, .name = name, .tolerance = tolerance, .d = {.kind = HALO_OP_UPDATE, .update = u}};
    double stat[2] = {0, 0}, w2 = 0;
    b.record = (halo_step_record){.t = 1, .lr = 0.25, .grad_scale = 1, .loss_scale = 1, .weight_sum = 1};
    for (int i = 0; i < N; i++) stat[0] += g[i] * g[i], w2 += w[i] * w[i];
    add(&b, HALO_WT, dev->master, N, w);
    add(&b, HALO_DW, dev->master, N, g);
    add(&b, HALO_M1, dev->master, N, zero);
    add(&b, HALO_M2, dev->master, N, zero);
    add(&b, HALO_STAT, HALO_F64, 2, stat);
    add(&b, HALO_STAT2, HALO_F64, 1, &w2);
    return b;
}

static void close_bench(bench *b)
{
    for (int i = 0; i < HALO_ROLES; i++)
        if (b->ptr[i]) b->dev->ops->release(b->dev, b->ptr[i]);
}

static void step(bench *b)
{
    check_status(b->dev->ctx, hl_op_run_once(b->dev, &b->d, NULL, b->ptr, &b->record), "update");
    b->record.t++;
}

/* Weights now against `want`. */
static void expect(const bench *b, const double want[N], const char *what)
{
    double w[N], error = 0, norm = 0, stored;
    get(b, HALO_WT, w);
    get(b, HALO_STAT2, &stored);
    for (int i = 0; i < N; i++) {
        error = check_worse(error, fabs(w[i] - want[i]) / fmax(1, fabs(want[i])));
        norm += want[i] * want[i];
    }
    tap_ok(error <= b->tolerance && fabs(stored - norm) <= 10 * b->tolerance * norm, "%s: %s (%.1e)", b->name, what,
           error);
}

static const double w0[N] = {1, -2, 0.5, 0, 3}, g0[N] = {0.5, 0.25, -1, 2, -0.125};

static void test_momentum(halo_device *dev, const char *name, double tol)
{
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        halo_update_params u = {.kind = nesterov ? HALO_NESTEROV : HALO_SGD, .momentum = 0.5, .lr_factor = 2};
        double lr = 0.5, want[N];
        bench b = open_bench(dev, name, tol, u, w0, g0);
        for (int t = 0; t < 3; t++) step(&b);
        /* v in units of -lr g: 1, 1.5, 1.75; their sum 4.25; Nesterov: (0.5+1) + (0.75+1) + (0.875+1) = 5.125 */
        for (int i = 0; i < N; i++) want[i] = w0[i] - lr * g0[i] * (nesterov ? 5.125 : 4.25);
        expect(&b, want, nesterov ? "Nesterov, three steps" : "SGD with momentum as Keras, three steps");
        close_bench(&b);
    }
}

static void test_decay(halo_device *dev, const char *name, double tol)
{
    halo_update_params u = {.kind = HALO_SGD, .lr_factor = 1, .weight_decay = 0.5};
    double want[N];
    bench b = open_bench(dev, name, tol, u, w0, g0);
    b.record.grad_scale = 0.5;
    step(&b);
    for (int i = 0; i < N; i++) want[i] = 0.875 * w0[i] - 0.125 * g0[i]; /* w - 1/4 (g/2 + w/2) */
    expect(&b, want, "SGD with weight decay and scaled gradient");
    add(&b, HALO_NUM, HALO_F64, HALO_NUMBERS, (const double[HALO_NUMBERS]){[HALO_NUM_FACTOR] = 1, [HALO_NUM_SKIP] = 1});
    step(&b);
    expect(&b, want, "a skipped step changes nothing");
    close_bench(&b);
    b = open_bench(dev, name, tol, u, w0, g0);
    b.record.grad_scale = 2;
    add(&b, HALO_NUM, HALO_F64, HALO_NUMBERS, (const double[HALO_NUMBERS]){[HALO_NUM_FACTOR] = 0.25});
    step(&b);
    expect(&b, want, "a factor of the step multiplies the scale");
    close_bench(&b);
}

static void test_adam(halo_device *dev, const char *name, double tol, halo_optimizer kind)
{
    halo_update_params u = {.kind = kind, .beta1 = 0.9, .beta2 = 0.99, .eps = 0.125, .lr_factor = 1};
    double want[N], m[N], error = 0;
    if (kind == HALO_ADAMW) u.weight_decay = 0.5;
    memcpy(want, w0, sizeof(want));
    bench b = open_bench(dev, name, tol, u, w0, g0);
    for (int t = 1; t <= 4; t++) {
        double r = sqrt(1 - pow(0.99, t));
        step(&b);
        for (int i = 0; i < N; i++)
            want[i] = want[i] * (kind == HALO_ADAMW ? 0.875 : 1) - 0.25 * g0[i] * r / (fabs(g0[i]) * r + 0.125);
    }
    expect(&b, want,
           kind == HALO_ADAM ? "Adam, epsilon hat, four steps" : "AdamW, decay apart from the gradient, four steps");
    get(&b, HALO_M1, m);
    for (int i = 0; i < N; i++) error = check_worse(error, fabs(m[i] - g0[i] * (1 - pow(0.9, 4))));
    get(&b, HALO_M2, m);
    for (int i = 0; i < N; i++) error = check_worse(error, fabs(m[i] - g0[i] * g0[i] * (1 - pow(0.99, 4))));
    tap_ok(error <= 2 * tol, "%s: first and second moment (%.1e)", name, error);
    close_bench(&b);
}

/* |w| = 5, |g| = 2 after the scale of 2. */
static void larc_case(halo_device *dev, const char *name, double tol, halo_update_params u, double factor,
                      const char *what)
{
    static const double w[N] = {3, 0, -4, 0, 0}, g[N] = {0.6, 0.8, 0, 0, 0};
    double want[N];
    u.kind = HALO_SGD;
    u.lr_factor = 1;
    bench b = open_bench(dev, name, tol, u, w, g);
    b.record.grad_scale = 2;
    step(&b);
    for (int i = 0; i < N; i++) want[i] = w[i] - 0.25 * 2 * g[i] * factor;
    expect(&b, want, what);
    close_bench(&b);
}

static void test_larc(halo_device *dev, const char *name, double tol)
{
    static const double zero[N];
    larc_case(dev, name, tol, (halo_update_params){.larc = HALO_LARC_CLIP, .trust = 0.02}, 0.05, "LARC: 0.02 * 5 / 2");
    larc_case(dev, name, tol, (halo_update_params){.larc = HALO_LARC_CLIP, .trust = 0.8}, 1, "LARC clips at 1");
    larc_case(dev, name, tol, (halo_update_params){.larc = HALO_LARC_SCALE, .trust = 0.8}, 2, "LARC scales past 1");
    larc_case(dev, name, tol, (halo_update_params){.larc = HALO_LARC_SCALE, .trust = 1, .larc_eps = 0.5}, 2,
              "LARC: epsilon beside |g|");
    larc_case(dev, name, tol, (halo_update_params){.larc = HALO_LARC_CLIP, .trust = 0.02, .larc_min = 0.25}, 0.25,
              "LARC not below its least");
    /* |w| = 0: the factor is larc_zero */
    halo_update_params u = {.kind = HALO_SGD, .lr_factor = 1, .larc = HALO_LARC_CLIP, .trust = 1, .larc_zero = 0.125};
    double want[N];
    bench b = open_bench(dev, name, tol, u, zero, g0);
    step(&b);
    for (int i = 0; i < N; i++) want[i] = -0.25 * 0.125 * g0[i];
    expect(&b, want, "LARC on zero weights");
    step(&b); /* now |w| is what the first step stored: 1/32 |g|, so trust |w| / |g| = 1/32 */
    for (int i = 0; i < N; i++) want[i] -= 0.25 / 32 * g0[i];
    expect(&b, want, "LARC reads the norm that the step before wrote");
    close_bench(&b);
}

/* What DECIDE makes of two tensors' square sums 9 and 16, whose gradients are still twice what they should be. */
static void decide_case(halo_device *dev, const char *name, double clip, double loss, double bad, double square, const double want[HALO_NUMBERS], const char *what)
{
    const double norms[6] = {9, 0, 2.5, square, bad, 3}, before[HALO_NUMBERS] = {loss, 7, 1, 2, 3, 9, 9, 9, 9, 9};
    double got[HALO_NUMBERS];
    bool good = true;
    bench b = {.dev = dev, .name = name, .d = {.kind = HALO_OP_DECIDE, .clip_norm = clip}, .record = {.grad_scale = 0.5}};
    add(&b, HALO_X, HALO_F64, 6, norms);
    add(&b, HALO_NUM, HALO_F64, HALO_NUMBERS, before);
    step(&b);
    get(&b, HALO_NUM, got);
    for (int i = 0; i < HALO_NUMBERS; i++) good = good && (i < HALO_NUM_FACTOR ? memcmp(&got[i], &before[i], sizeof(double)) == 0 : got[i] == want[i]);
    tap_ok(good, "%s: %s", name, what);
    close_bench(&b);
}

static void test_decide(halo_device *dev, const char *name)
{
    const double none[HALO_NUMBERS] = {[HALO_NUM_FACTOR] = 1, [HALO_NUM_SQUARES] = 25, [HALO_NUM_LARGEST] = 3};
    double want[HALO_NUMBERS];
    memcpy(want, none, sizeof(want));
    decide_case(dev, name, 0, 0.5, 0, 16, want, "a step with finite gradients, not clipped");
    decide_case(dev, name, 3, 0.5, 0, 16, want, "a norm of 2.5 where 3 is allowed");
    want[HALO_NUM_FACTOR] = 0.5;
    decide_case(dev, name, 1.25, 0.5, 0, 16, want, "a norm of 2.5 where half of it is allowed");
    memcpy(want, none, sizeof(want));
    want[HALO_NUM_SKIP] = 1;
    decide_case(dev, name, 0, NAN, 0, 16, want, "no update of a loss that is not a number");
    decide_case(dev, name, 0, -INFINITY, 0, 16, want, "no update of an infinite loss");
    want[HALO_NUM_BAD] = 4;
    decide_case(dev, name, 0, 0.5, 4, 16, want, "no update of gradients with 4 values that are not finite");
    want[HALO_NUM_BAD] = 0;
    want[HALO_NUM_SQUARES] = INFINITY;
    decide_case(dev, name, 0, 0.5, 0, INFINITY, want, "no update where squares overflow");
}

static void test_device(halo_device *dev, const char *name, double tol)
{
    test_momentum(dev, name, tol);
    test_decay(dev, name, tol);
    test_adam(dev, name, tol, HALO_ADAM);
    test_adam(dev, name, tol, HALO_ADAMW);
    test_larc(dev, name, tol);
    test_decide(dev, name);
}

int main(void)
{
    halo_context *ctx;
    halo_device *dev;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    for (const halo_backend *const *b = hl_backends(); *b; b++)
        for (int f64 = 0; f64 < (strcmp((*b)->name, "ref") == 0 ? 2 : 1); f64++) {
            char name[32];
            snprintf(name, sizeof(name), "%s%s", (*b)->name, f64 ? " f64" : "");
            if (hl_device_open(ctx, (*b)->name, &(halo_device_options){.compute = f64 ? HALO_F64 : HALO_F32}, &dev) != HALO_OK) {
                tap_skip("%s: %s", name, halo_error_message(ctx));
                continue;
            }
            test_device(dev, name, f64 ? 1e-14 : 5e-7);
            dev->ops->close(dev);
        }
    halo_context_destroy(ctx);
    return tap_done();
}
