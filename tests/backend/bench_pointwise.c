/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_pointwise.c -- how near to the machine's memory the operations beside convolution run, not a test:  bench_pointwise [threads] [isa] [layout]
 *
 * For each operation on tensors as the zoo networks have them: GB/s of the least bytes it must move (hl_op_cost), beside the triad on the same threads.
 * All are timed in turn, several rounds, least time each; one thread by its processor time: a machine that others load too gives a fair ratio.
 */
#include "backend/backend.h"
#include "base/clock.h"
#include "tests/check.h"

#include <time.h>

enum { ROUNDS = 7, MOST = 64 };

typedef struct bench {
    char name[64];
    halo_op_desc d;
    halo_op_args args;
    const halo_op_class *class;
    halo_plan *plan;
    char impl[48];
    double best, bytes;
} bench;

static halo_device *dev;
static halo_layout layout;
static int threads = 1;
static bench list[MOST];
static int count;
static halo_step_record record = {.seed = 1, .step = 3, .t = 2, .lr = 1e-9, .grad_scale = 1, .loss_scale = 1, .weight_sum = 1};

static double now(void)
{
    struct timespec t;
    if (threads > 1) return hl_now();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *memory(const halo_operand *o)
{
    size_t bytes;
    void *p;
    HL_BUG_UNLESS(hl_operand_bytes(o, &bytes));
    check_status(NULL, dev->ops->alloc(dev, bytes, &p), "memory");
    memset(p, 0, bytes);
    if (o->dtype == HALO_F32)
        for (size_t i = 0; i < bytes / 4; i++) ((float *)p)[i] = (float)((int64_t)(i * 7 % 31) - 15) * 0.01f;
    if (o->dtype == HALO_F64)
        for (size_t i = 0; i < bytes / 8; i++) ((double *)p)[i] = 1;
    return p;
}

static halo_operand volume(int64_t c, int64_t edge, int64_t margin)
{
    const int64_t ext[HALO_DIMS] = {1, c, edge, edge, edge}, m[3][2] = {{margin, margin}, {margin, margin}, {margin, margin}};
    return hl_operand_margined(HALO_F32, layout, ext, m);
}

static halo_operand vector(int64_t n, int64_t f)
{
    const int64_t ext[HALO_DIMS] = {n, f, 1, 1, 1};
    return hl_operand_whole(HALO_F32, HALO_NCDHW, ext);
}

static void add(const char *name, halo_op_desc d)
{
    bench *b = &list[count];
    halo_candidate c[HALO_MAX_CANDIDATES];
    HL_BUG_UNLESS(count < MOST);
    snprintf(b->name, sizeof(b->name), "%s", name);
    b->d = d;
    if (hl_op_candidates(dev, &d, c) == 0) {
        printf("%-34s not applicable\n", name);
        return;
    }
    b->class = dev->classes[d.kind];
    memcpy(b->impl, c[0].impl, sizeof(b->impl));
    check_status(NULL, b->class->plan(dev, &b->d, &c[0], &b->plan), name);
    for (int i = 0; i < HALO_ROLES; i++)
        if (d.t[i].dtype != HALO_NONE) b->args.ptr[i] = memory(&d.t[i]);
    b->args.record = &record;
    b->bytes = hl_op_cost(&d).bytes;
    b->best = INFINITY;
    count++;
}

static halo_operand as(halo_operand o, halo_dtype type)
{
    o.dtype = type;
    return o;
}

static void pools(const char *name, int64_t c, int64_t edge, int64_t margin, halo_pool kind)
{
    char full[64];
    halo_operand x = volume(c, edge, margin), y = volume(c, edge / 2, 1);
    halo_op_desc d = {.kind = HALO_OP_POOL_FWD, .pool = kind, .window = {.kernel = {2, 2, 2}, .stride = {2, 2, 2}, .dilation = {1, 1, 1}}};
    d.t[HALO_X] = x;
    d.t[HALO_Y] = y;
    if (kind == HALO_POOL_MAX) d.t[HALO_AUX] = as(volume(c, edge / 2, 0), HALO_U8);
    snprintf(full, sizeof(full), "pool-fwd %s", name);
    add(full, d);
    d.kind = HALO_OP_POOL_BWD;
    d.t[HALO_DX] = x;
    d.t[HALO_DY] = y;
    d.t[HALO_X] = d.t[HALO_Y] = (halo_operand){0};
    snprintf(full, sizeof(full), "pool-bwd %s", name);
    add(full, d);
}

static void norms(int64_t c, int64_t edge, int64_t margin)
{
    halo_operand x = volume(c, edge, margin), w = hl_operand_flat(HALO_F32, c), stat = hl_operand_flat(HALO_F64, 3 * c);
    halo_op_desc d = {.kind = HALO_OP_NORM_STATS, .eps = 1e-5, .act = HALO_ACT_LEAKY_RELU, .slope = 0.3};
    d.t[HALO_X] = x;
    d.t[HALO_STAT] = stat;
    add("norm-stats", d);
    d.kind = HALO_OP_NORM_APPLY;
    d.t[HALO_Y] = x;
    d.t[HALO_WT] = d.t[HALO_B] = w;
    add("norm-apply + leaky relu", d);
    d.kind = HALO_OP_NORM_BWD_STATS;
    d.t[HALO_Y] = (halo_operand){0};
    d.t[HALO_DY] = x;
    d.t[HALO_STAT2] = hl_operand_flat(HALO_F64, 2 * c);
    add("norm-bwd-stats", d);
    d.kind = HALO_OP_NORM_BWD_APPLY;
    d.t[HALO_DX] = x;
    add("norm-bwd-apply", d);
}

static void pointwise(const char *name, halo_op_kind kind, halo_act act, int64_t c, int64_t edge, int64_t margin)
{
    halo_operand x = volume(c, edge, margin);
    halo_op_desc d = {.kind = kind, .act = act, .slope = 0.3, .keep = 0.5, .layer = 3, .global_ext = {1, c, edge, edge, edge}};
    if (kind != HALO_OP_ACT_BWD && kind != HALO_OP_MARGIN) d.t[HALO_X] = x;
    if (kind == HALO_OP_ADD) d.t[HALO_X2] = x;
    d.t[HALO_Y] = x;
    if (kind == HALO_OP_ACT_BWD) d.t[HALO_DY] = d.t[HALO_DX] = x;
    for (int k = 0; k < 3; k++) d.margin_mode[k][0] = d.margin_mode[k][1] = HALO_MARGIN_WRAP;
    add(name, d);
}

static void copies(int64_t c, int64_t edge)
{
    halo_op_desc d = {.kind = HALO_OP_COPY};
    d.t[HALO_X] = d.t[HALO_Y] = volume(c, edge, 1);
    add("copy", d);
    d.accumulate = true;
    add("copy, accumulating", d);
    d.accumulate = false;
    d.t[HALO_Y].dtype = HALO_BF16;
    add("copy to bf16", d);
    d.t[HALO_Y].dtype = HALO_F16;
    add("copy to f16", d);
    d.t[HALO_Y] = d.t[HALO_X];
    d.t[HALO_X].dtype = HALO_F16;
    add("copy from f16", d);
    d.t[HALO_X] = volume(c, edge, 1);
    d.t[HALO_Y].layout = layout == HALO_NDHWC ? HALO_NCDHW : HALO_NDHWC;
    add("copy to another layout", d);
}

static void dense(int64_t n, int64_t in, int64_t out)
{
    char name[64];
    halo_op_desc d = {.kind = HALO_OP_LINEAR_FWD, .act = HALO_ACT_LEAKY_RELU, .slope = 0.3};
    halo_operand x = vector(n, in), y = vector(n, out), w = hl_operand_flat(HALO_F32, in * out), b = hl_operand_flat(HALO_F32, out);
    d.t[HALO_X] = x;
    d.t[HALO_Y] = y;
    d.t[HALO_WT] = w;
    d.t[HALO_B] = b;
    snprintf(name, sizeof(name), "linear-fwd %d x %d -> %d", (int)n, (int)in, (int)out);
    add(name, d);
    halo_op_desc e = {.kind = HALO_OP_LINEAR_BWD_DATA};
    e.t[HALO_DY] = y;
    e.t[HALO_DX] = x;
    e.t[HALO_WT] = w;
    snprintf(name, sizeof(name), "linear-bwd-data %d x %d -> %d", (int)n, (int)in, (int)out);
    add(name, e);
    halo_op_desc g = {.kind = HALO_OP_LINEAR_BWD_WEIGHTS};
    g.t[HALO_X] = x;
    g.t[HALO_DY] = y;
    g.t[HALO_DW] = w;
    g.t[HALO_DB] = b;
    snprintf(name, sizeof(name), "linear-bwd-weights %d x %d -> %d", (int)n, (int)in, (int)out);
    add(name, g);
}

static void optimiser(int64_t n)
{
    halo_op_desc d = {.kind = HALO_OP_UPDATE, .update = {.kind = HALO_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum = 0.9, .lr_factor = 1}};
    d.t[HALO_WT] = d.t[HALO_DW] = d.t[HALO_M1] = d.t[HALO_M2] = hl_operand_flat(HALO_F32, n);
    d.t[HALO_STAT2] = hl_operand_flat(HALO_F64, 2);
    add("update adam", d);
    d.update.kind = HALO_SGD;
    d.t[HALO_M2] = (halo_operand){0};
    add("update sgd with momentum", d);
    halo_op_desc s = {.kind = HALO_OP_SUMSQ};
    s.t[HALO_X] = hl_operand_flat(HALO_F32, n);
    s.t[HALO_STAT] = hl_operand_flat(HALO_F64, 3);
    add("sumsq", s);
    halo_op_desc l = {.kind = HALO_OP_LOSS, .loss = HALO_LOSS_MSE};
    l.t[HALO_X] = l.t[HALO_T] = l.t[HALO_DX] = hl_operand_flat(HALO_F32, n);
    l.t[HALO_STAT] = hl_operand_flat(HALO_F64, 2);
    add("loss mse", l);
}

static void time_all(double *stream)
{
    *stream = 0;
    for (int r = 0; r < ROUNDS; r++) {
        double gemm, gbs;
        check_status(NULL, dev->ops->limits(dev, 16, 3, &gemm, &gbs), "limits");
        *stream = fmax(*stream, gbs);
        for (int i = 0; i < count; i++) {
            dev->ops->enter(dev);
            double start = now();
            check_status(NULL, list[i].class->run(list[i].plan, &list[i].args), list[i].name);
            list[i].best = fmin(list[i].best, now() - start);
            dev->ops->leave(dev);
        }
    }
}

int main(int argc, char **argv)
{
    halo_context *ctx;
    halo_device_info info;
    threads = argc > 1 ? atoi(argv[1]) : 1;
    halo_device_options options = {.threads = threads, .isa = argc > 2 && *argv[2] ? argv[2] : NULL};
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "cpu", &options, &dev), "device");
    layout = dev->layouts[0];
    for (int i = 0; argc > 3 && i < HALO_LAYOUTS; i++)
        if (strcmp(argv[3], hl_layout_name((halo_layout)i)) == 0) layout = (halo_layout)i;
    dev->ops->describe(dev, &info);
    pointwise("add, no margin (a triad)", HALO_OP_ADD, HALO_ACT_NONE, 32, 64, 0);
    pointwise("act-fwd leaky relu, no margin", HALO_OP_ACT_FWD, HALO_ACT_LEAKY_RELU, 32, 128, 0);
    pointwise("act-fwd leaky relu 64^3", HALO_OP_ACT_FWD, HALO_ACT_LEAKY_RELU, 64, 64, 1);
    pointwise("act-fwd tanh 64^3", HALO_OP_ACT_FWD, HALO_ACT_TANH, 64, 64, 1);
    pointwise("act-bwd leaky relu 64^3", HALO_OP_ACT_BWD, HALO_ACT_LEAKY_RELU, 64, 64, 1);
    pointwise("add 64^3", HALO_OP_ADD, HALO_ACT_NONE, 64, 64, 1);
    pointwise("dropout 64^3", HALO_OP_DROPOUT, HALO_ACT_NONE, 64, 64, 1);
    halo_op_desc flat = {.kind = HALO_OP_DROPOUT, .keep = 0.5, .layer = 3, .global_ext = {1, 4000000, 1, 1, 1}};
    flat.t[HALO_X] = flat.t[HALO_Y] = vector(1, 4000000);
    add("dropout, vector", flat);
    pointwise("margin, periodic 64^3", HALO_OP_MARGIN, HALO_ACT_NONE, 64, 64, 1);
    pools("max 32 x 128^3", 32, 128, 0, HALO_POOL_MAX);
    pools("max 128 x 32^3", 128, 32, 0, HALO_POOL_MAX);
    pools("max 512 x 8^3", 512, 8, 0, HALO_POOL_MAX);
    pools("avg 32 x 64^3", 32, 64, 1, HALO_POOL_AVG);
    norms(32, 64, 1);
    copies(32, 64);
    dense(1, 32768, 128);
    dense(4, 32768, 128);
    dense(16, 32768, 128);
    dense(64, 32768, 128);
    optimiser(9000000);
    double stream;
    time_all(&stream);
    printf("%s, %s: triad %.1f GB/s\n", info.name, hl_layout_name(layout), stream);
    for (int i = 0; i < count; i++) {
        double gbs = list[i].bytes / list[i].best * 1e-9;
        printf("%-36s %-14s %8.3f ms %7.1f GB/s %5.2f\n", list[i].name, list[i].impl, list[i].best * 1e3, gbs, gbs / stream);
    }
    return 0;
}
