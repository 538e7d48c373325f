/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts.c -- a guest in somebody's program: two contexts train side by side as each does alone, a hundred that come and go leave no memory behind (and nothing
 * that the leak sanitizer finds), and the caller's affinity, locale, floating-point mode and signal dispositions are what they were.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <halo/halo.h>

#include "base/topology.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

enum { SIDE = 8, CELLS = SIDE * SIDE * SIDE, BATCH = 2, TARGETS = 2 };

typedef struct guest {
    halo_context *ctx;
    halo_network *net;
    halo_trainer *t;
} guest;

static void come(guest *g, uint64_t seed)
{
    static const char text[] = "name: small\ninput: {channels: 1, size: 8}\nlayers:\n  - conv: {filters: 4, padding: same}\n  - leaky_relu: {}\n"
                               "  - average_pool: {}\n  - flatten: {}\n  - dense: {outputs: 2}\n";
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_trainer_options to = HALO_TRAINER_OPTIONS_INIT;
    o.threads = 2;
    o.seed = seed;
    to.batch = BATCH;
    check_status(NULL, halo_context_create(&o, &g->ctx), "context");
    check_status(g->ctx, halo_network_parse(g->ctx, "small.yaml", text, sizeof(text) - 1, 0, NULL, &g->net), "network");
    check_status(g->ctx, halo_trainer_create(g->ctx, g->net, &to, &g->t), "trainer");
}

static void leave(guest *g)
{
    halo_trainer_destroy(g->t);
    halo_network_destroy(g->net);
    halo_context_destroy(g->ctx);
}

static double step(guest *g, int number)
{
    float x[BATCH * CELLS], y[BATCH * TARGETS] = {0.5f, -0.25f, 0.75f, 0};
    double loss = NAN;
    for (int i = 0; i < BATCH * CELLS; i++) x[i] = (float)sin(0.1 * i + number);
    check_status(g->ctx, halo_trainer_step(g->t, x, y, 0, &loss), "step");
    return loss;
}

static void two_at_once(void)
{
    enum { STEPS = 6 };
    double alone[2][STEPS];
    guest g[2];
    bool same = true;
    for (int k = 0; k < 2; k++) {
        come(&g[k], 7 + (uint64_t)k);
        for (int i = 0; i < STEPS; i++) alone[k][i] = step(&g[k], i);
        leave(&g[k]);
    }
    for (int k = 0; k < 2; k++) come(&g[k], 7 + (uint64_t)k);
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < 2; k++) same = same && step(&g[k], i) == alone[k][i];
    leave(&g[0]);
    tap_ok(same, "two contexts train in turns with the losses that each has alone");
    tap_ok(isfinite(step(&g[1], STEPS)), "and one goes on when the other is gone");
    leave(&g[1]);
}

static void come_and_go(void)
{
    size_t before = 0;
    for (int i = 0; i < 120; i++) {
        guest g;
        if (i == 20) before = hl_rss_bytes();
        come(&g, 1);
        (void)step(&g, i);
        leave(&g);
    }
    double grown = (double)hl_rss_bytes() - (double)before;
    const char *sanitizer = getenv("HALO_SANITIZER"); /* which keeps what was freed for a while, and looks for leaks itself */
    if (before == 0) tap_skip("this system does not say what is resident");
    else if (sanitizer && *sanitizer) tap_skip("resident memory of an instrumented program");
    else tap_ok(grown <= 1 << 20, "a hundred contexts that trained leave %.0f KiB behind", grown / 1024);
}

typedef struct mode {
    cpu_set_t cores;
    int rounding;
    char locale[256];
    void (*signal[NSIG])(int);
} mode;

static void look(mode *m)
{
    memset(m, 0, sizeof(*m));
    if (sched_getaffinity(0, sizeof(m->cores), &m->cores) != 0) CPU_ZERO(&m->cores);
    m->rounding = fegetround();
    snprintf(m->locale, sizeof(m->locale), "%s", setlocale(LC_ALL, NULL));
    for (int s = 1; s < NSIG; s++) {
        struct sigaction a;
        if (sigaction(s, NULL, &a) == 0) m->signal[s] = a.sa_handler;
    }
}

/* 2^-1074 * 1: 0 where denormal numbers are flushed. */
static bool keeps_denormals(void)
{
    volatile double least = 4.9406564584124654e-324, one = 1;
    volatile float small = 1e-40f, onef = 1;
    return least * one > 0 && small * onef > 0;
}

static void on_usr2(int number) { (void)number; }

static void leaves_no_trace(void)
{
    mode before, after;
    guest g;
    signal(SIGUSR2, on_usr2);
    signal(SIGPIPE, SIG_IGN);
    bool denormals = keeps_denormals();
    fesetround(FE_UPWARD); /* to be found again, and no hindrance */
    look(&before);
    come(&g, 1);
    (void)step(&g, 0);
    look(&after);
    bool kept = keeps_denormals();
    leave(&g);
    tap_ok(CPU_EQUAL(&before.cores, &after.cores), "the caller may run on the same cores after a step");
    tap_ok(strcmp(before.locale, after.locale) == 0, "its locale is '%s' still", after.locale);
    tap_ok(before.rounding == FE_UPWARD && after.rounding == FE_UPWARD, "it still rounds upward");
    tap_ok(denormals == kept, "denormal numbers are %s as before", kept ? "kept" : "flushed");
    tap_ok(memcmp(before.signal, after.signal, sizeof(before.signal)) == 0, "signals go where they went");
    look(&after);
    tap_ok(memcmp(&before, &after, sizeof(before)) == 0, "all of it also when the context is gone");
    fesetround(FE_TONEAREST);
}

int main(void)
{
    two_at_once();
    come_and_go();
    leaves_no_trace();
    return tap_done();
}
