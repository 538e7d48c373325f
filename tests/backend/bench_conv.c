/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_conv.c -- how fast convolutions run on this machine, not a test:  bench_conv [threads] [isa] [network [layer]]
 *
 * For each convolution of the zoo networks and each pass: GF/s of the direct algorithm by each candidate on operands as the compiler plans them (with
 * margins) and without, Winograd's among them, and by each library candidate on dense operands in every layout it may take, beside an n = 2048 sgemm on the same threads. All
 * are timed in turn, several rounds, least time each; one thread by its processor time: a machine that others load too gives a fair ratio.
 */
#include "backends/cpu/classes.h"
#include "backends/cpu/conv.h"
#include "base/clock.h"

#include <cblas.h>
#include <stdio.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct layer {
    const char *network;
    int64_t in, out, x, k, s, p; /* cubes; x: input extent */
} layer;

static const layer layers[] = {
    {"mlperf", 4, 32, 128, 3, 1, 1},   {"mlperf", 32, 64, 64, 3, 1, 1},   {"mlperf", 64, 128, 32, 3, 1, 1},
    {"mlperf", 128, 256, 16, 3, 1, 1}, {"mlperf", 256, 512, 8, 3, 1, 1},  {"sc18", 1, 16, 128, 3, 1, 0},
    {"sc18", 16, 32, 63, 4, 1, 0},     {"sc18", 32, 64, 30, 4, 1, 0},     {"sc18", 64, 128, 13, 3, 2, 0},
    {"sc18", 128, 256, 6, 3, 1, 0},    {"sc18", 256, 256, 4, 2, 1, 0},    {"sc18", 256, 256, 3, 2, 1, 0},
    {"wide", 16, 32, 128, 3, 1, 1},    {"wide", 16, 32, 64, 3, 1, 1},    {"wide", 256, 256, 8, 3, 1, 1},
    {"hybrid", 4, 16, 128, 3, 1, 1},   {"hybrid", 16, 32, 64, 3, 1, 1},   {"hybrid", 32, 64, 32, 3, 1, 1},
    {"hybrid", 64, 128, 16, 3, 2, 1},  {"hybrid", 128, 256, 4, 3, 1, 1},  {"hybrid", 256, 256, 2, 3, 1, 1},
};

enum { ROUNDS = 5, MOST = 24, GEMM = 2048 };

/* One way to run one pass. */
typedef struct way {
    char name[80];
    const halo_op_class *class;
    halo_plan *plan;
    halo_op_args args;
    double best;
} way;

static void *memory(size_t bytes)
{
    float *p = NULL;
    if (hl_aligned(NULL, bytes + 64, "bench", &p) != HALO_OK) exit(1);
    for (size_t i = 0; i < bytes / 4; i++) p[i] = (float)(i % 17) * 0.01f - 0.08f;
    return p;
}

static void *operand_memory(const halo_operand *o)
{
    size_t bytes;
    if (o->dtype == HALO_NONE) return NULL;
    if (!hl_operand_bytes(o, &bytes)) exit(1);
    return memory(bytes);
}

static double now(int threads)
{
    struct timespec t;
    if (threads > 1) return hl_now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_once(const way *w, int threads)
{
    double t = now(threads);
    w->class->run(w->plan, &w->args);
    return now(threads) - t;
}

/* Adds the candidates for these operands; roles x and y as the pass names them. `library`: those of a library only, else our own only. */
static int add_ways(hl_cpu_device *dev, const halo_op_class *class, const halo_op_desc *d, const char *layout, bool library, way *out, int n)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    int count = class->candidates(&dev->super, d, c);
    for (int i = 0; i < count && n < MOST; i++) {
        if ((strncmp(c[i].impl, "onednn", 6) == 0) != library || c[i].reference) continue;
        way *w = &out[n];
        *w = (way){.class = class, .best = 1e30};
        if (class->plan(&dev->super, d, &c[i], &w->plan) != HALO_OK) continue;
        snprintf(w->name, sizeof(w->name), "%.47s %.30s", c[i].impl, layout);
        for (int r = 0; r < HALO_ROLES; r++) w->args.ptr[r] = operand_memory(&d->t[r]);
        if (c[i].image) w->args.ptr[HALO_WT] = memory(c[i].image_bytes);
        w->args.scratch = memory(c[i].scratch);
        n++;
    }
    return n;
}

static void drop_way(way *w)
{
    w->class->destroy(w->plan);
    for (int r = 0; r < HALO_ROLES; r++) free(w->args.ptr[r]);
    free(w->args.scratch);
}

static halo_op_desc describe(const layer *l, int pass, halo_layout x_layout, halo_layout y_layout, bool margins)
{
    int64_t y = (l->x + 2 * l->p - l->k) / l->s + 1, xm = margins ? l->p : 0, ym = margins && pass == 1 ? l->k - 1 - l->p : 0;
    const int64_t xe[5] = {1, l->in, l->x, l->x, l->x}, ye[5] = {1, l->out, y, y, y}, we[5] = {l->out, l->in, l->k, l->k, l->k};
    const int64_t xmargin[3][2] = {{xm, xm}, {xm, xm}, {xm, xm}}, ymargin[3][2] = {{ym, ym}, {ym, ym}, {ym, ym}};
    halo_op_desc d = {.kind = HALO_OP_CONV_FWD + pass, .act = pass == 0 ? HALO_ACT_LEAKY_RELU : HALO_ACT_NONE, .slope = 0.3};
    for (int i = 0; i < 3; i++) d.window.kernel[i] = l->k, d.window.stride[i] = l->s, d.window.dilation[i] = 1, d.window.pad_lo[i] = l->p;
    d.t[pass == 1 ? HALO_DX : HALO_X] = hl_operand_margined(HALO_F32, x_layout, xe, xmargin);
    d.t[pass == 0 ? HALO_Y : HALO_DY] = hl_operand_margined(HALO_F32, y_layout, ye, ymargin);
    if (pass == 0) d.t[HALO_B] = hl_operand_flat(HALO_F32, l->out);
    if (pass < 2) d.t[HALO_WT] = hl_operand_whole(HALO_F32, HALO_NCDHW, we);
    if (pass == 2) d.t[HALO_DW] = hl_operand_whole(HALO_F32, HALO_NCDHW, we), d.t[HALO_DB] = hl_operand_flat(HALO_F32, l->out);
    return d;
}

static void time_pass(hl_cpu_device *dev, const layer *l, int pass, const float *const gemm[2], float *gemm_out)
{
    static const halo_op_class *const classes[] = {&hl_cpu_conv_fwd, &hl_cpu_conv_bwd_data, &hl_cpu_conv_bwd_weights};
    static const char *const passes[] = {"fwd", "bwd_d", "bwd_w"};
    halo_layout blocked = dev->isa == HL_ISA_AVX512F ? HALO_NCDHW16C : HALO_NCDHW8C;
    way ways[MOST];
    bool first = l->in < 8;
    if (first && pass == 1) return;
    halo_op_desc d = describe(l, pass, first ? HALO_NDHWC : blocked, blocked, true);
    int own = add_ways(dev, classes[pass], &d, "margined", false, ways, 0), n = own;
    if (first) {
        d = describe(l, pass, HALO_NCDHW, blocked, true);
        own = n = add_ways(dev, classes[pass], &d, "plain margined", false, ways, n);
    }
    if (l->p > 0 || pass == 1) {
        d = describe(l, pass, first ? HALO_NDHWC : blocked, blocked, false);
        own = n = add_ways(dev, classes[pass], &d, "no margin", false, ways, n);
    }
    for (int layout = 0; layout < HALO_LAYOUTS; layout++) {
        for (int plain = 0; plain < (first ? 2 : 1); plain++) {
            halo_layout x = !first ? (halo_layout)layout : plain ? HALO_NCDHW : HALO_NDHWC;
            d = describe(l, pass, x, (halo_layout)layout, false);
            n = add_ways(dev, classes[pass], &d, hl_layout_name((halo_layout)layout), true, ways, n);
        }
    }
    double sgemm = 1e30, y = (double)((l->x + 2 * l->p - l->k) / l->s + 1), taps = (double)(l->k * l->k * l->k);
    double flops = 2.0 * (double)l->in * (double)l->out * taps * y * y * y;
    for (int i = 0; i < n; i++) run_once(&ways[i], dev->threads);
    for (int round = 0; round < ROUNDS; round++) {
        double t = now(dev->threads);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, gemm[0], GEMM, gemm[1], GEMM, 0, gemm_out, GEMM);
        sgemm = fmin(sgemm, now(dev->threads) - t);
        for (int i = 0; i < n; i++) {
            int repeat = flops < 1e9 ? 5 : 1;
            for (int k = 0; k < repeat; k++) ways[i].best = fmin(ways[i].best, run_once(&ways[i], dev->threads));
        }
    }
    sgemm = 2.0 * GEMM * GEMM * GEMM / sgemm;
    int ours = 0, theirs = own, winograd = -1;
    for (int i = 0; i < own; i++) {
        bool w = strncmp(ways[i].name, "winograd", 8) == 0;
        if (w && (winograd < 0 || ways[i].best < ways[winograd].best)) winograd = i;
        if (!w && (ways[i].best < ways[ours].best || strncmp(ways[ours].name, "winograd", 8) == 0)) ours = i;
    }
    for (int i = own; i < n; i++)
        if (ways[i].best < ways[theirs].best) theirs = i;
    printf("%-7s %3d->%3d @%3d %-5s", l->network, (int)l->in, (int)l->out, (int)l->x, passes[pass]);
    if (own) printf(" own %6.1f GF/s = %.2f sgemm", flops / ways[ours].best * 1e-9, flops / ways[ours].best / sgemm);
    if (winograd >= 0)
        printf(", winograd %.1f = %.2f sgemm, %.2f x direct", flops / ways[winograd].best * 1e-9, flops / ways[winograd].best / sgemm,
               ways[ours].best / ways[winograd].best);
    if (own && n > own) printf(", %.2f x %s %.1f", ways[theirs].best / ways[ours].best, ways[theirs].name, flops / ways[theirs].best * 1e-9);
    printf("  |");
    for (int i = 0; i < n; i++) printf(" %s %.1f", ways[i].name, flops / ways[i].best * 1e-9);
    printf("\n");
    fflush(stdout);
    for (int i = 0; i < n; i++) drop_way(&ways[i]);
}

int main(int argc, char **argv)
{
    hl_cpu_device dev = {.threads = argc > 1 ? atoi(argv[1]) : 2, .winograd = -4};
    if (hl_isa_choose(NULL, argc > 2 ? argv[2] : NULL, &dev.isa) != HALO_OK) return 1;
    dev.kern = hl_cpu_kern(dev.isa);
#ifdef _OPENMP
    omp_set_num_threads(dev.threads);
#endif
    const float *const gemm[2] = {memory(4l * GEMM * GEMM), memory(4l * GEMM * GEMM)};
    float *gemm_out = memory(4l * GEMM * GEMM);
    printf("%s, %d threads\n", hl_isa_name(dev.isa), dev.threads);
    int index = 0;
    for (size_t i = 0; i < HL_COUNT(layers); i++) {
        if (argc > 3 && strcmp(argv[3], layers[i].network) != 0) continue;
        index++;
        if (argc > 4 && atoi(argv[4]) != index) continue;
        for (int pass = 0; pass < 3; pass++) time_pass(&dev, &layers[i], pass, gemm, gemm_out);
    }
    free((void *)gemm[0]);
    free((void *)gemm[1]);
    free(gemm_out);
    return 0;
}
