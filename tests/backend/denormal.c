/* SPDX-License-Identifier: Apache-2.0 */
/*
 * denormal.c -- denormal numbers: slow on many processors, so the cpu backend flushes them in all its threads while computing (between enter and leave),
 * and only then: the caller's mode and its threads' modes are as they were.
 */
#include "backend/backend.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum { THREADS = 2, N = 1 << 16 };

#if defined(__SSE2__)
static unsigned mode(void) { return _mm_getcsr() & ~0x3fu; } /* without the exception flags */
static void set_mode(unsigned m) { _mm_setcsr(m); }
#else
static unsigned mode(void) { return 0; }
static void set_mode(unsigned m) { (void)m; }
#endif

static void modes_of_team(unsigned out[THREADS])
{
    for (int i = 0; i < THREADS; i++) out[i] = mode();
#ifdef _OPENMP
#pragma omp parallel num_threads(THREADS)
    out[omp_get_thread_num()] = mode();
#endif
}

/* A denormal operand scaled up to a normal product; all volatile, or the compiler multiplies where the mode is another. */
static bool denormals_live(void)
{
    volatile float tiny = 1e-40f, big = 1e30f, product = tiny * big;
    return product > 0;
}

static void test_modes(halo_device *dev)
{
    unsigned before[THREADS], inside[THREADS], after[THREADS];
    bool all = true, none = true;
    modes_of_team(before);
    dev->ops->enter(dev);
    dev->ops->enter(dev);
    bool flushed = !denormals_live();
    modes_of_team(inside);
    dev->ops->leave(dev);
    bool still = !denormals_live();
    dev->ops->leave(dev);
    modes_of_team(after);
    for (int i = 0; i < THREADS; i++) {
        all = all && (inside[i] & 0x8040u) == 0x8040u;
        none = none && before[i] == after[i];
    }
    tap_ok(flushed && still, "inside, also after an inner leave, a denormal operand counts as zero");
    tap_ok(all, "every thread of the team flushes inside");
    tap_ok(none && denormals_live(), "every thread has its own mode back outside");
}

/* A caller with another rounding mode and FTZ set: it is his, and stays. */
static void test_callers_own(halo_device *dev)
{
    unsigned own = mode(), odd = own | 0x8000u | 0x2000u; /* flush to zero, round down */
    set_mode(odd);
    dev->ops->enter(dev);
    bool rounding = (mode() & 0x6000u) == 0x2000u;
    dev->ops->leave(dev);
    tap_ok(rounding && mode() == (odd & ~0x3fu), "a caller's rounding and flush modes are kept");
    set_mode(own);
}

/* Of this thread: other programs do not count. */
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one dense layer whose weights are `w`, least of several. */
static double layer_seconds(halo_device *dev, float w, bool enter)
{
    const int64_t ext[HALO_DIMS] = {1, N, 1, 1, 1}, out[HALO_DIMS] = {1, 8, 1, 1, 1};
    halo_op_desc d = {.kind = HALO_OP_LINEAR_FWD};
    d.t[HALO_X] = hl_operand_whole(HALO_F32, HALO_NCDHW, ext);
    d.t[HALO_Y] = hl_operand_whole(HALO_F32, HALO_NCDHW, out);
    d.t[HALO_WT] = hl_operand_flat(HALO_F32, 8 * N);
    void *ptr[HALO_ROLES] = {[HALO_X] = check_alloc(N, 4), [HALO_Y] = check_alloc(8, 4), [HALO_WT] = check_alloc(8 * N, 4)};
    for (int i = 0; i < N; i++) ((float *)ptr[HALO_X])[i] = 0.5f;
    for (int i = 0; i < 8 * N; i++) ((float *)ptr[HALO_WT])[i] = w;
    halo_step_record record = {0};
    double best = INFINITY;
    for (int k = 0; k < 20; k++) {
        if (enter) dev->ops->enter(dev);
        double start = processor_seconds();
        check_status(NULL, hl_op_run_once(dev, &d, NULL, ptr, &record), "a dense layer");
        best = fmin(best, processor_seconds() - start);
        if (enter) dev->ops->leave(dev);
    }
    for (int i = 0; i < HALO_ROLES; i++) free(ptr[i]);
    return best;
}

static void test_speed(halo_context *ctx)
{
    halo_device *dev;
    check_status(ctx, hl_device_open(ctx, "cpu", &(halo_device_options){.threads = 1}, &dev), "device");
    double normal = layer_seconds(dev, 1e-2f, true), tiny = layer_seconds(dev, 1e-40f, true), slow = layer_seconds(dev, 1e-40f, false);
    tap_note("dense layer: normal weights %.3g s, denormal ones %.3g s, without flushing %.3g s", normal, tiny, slow);
    tap_ok(tiny <= 3 * normal, "denormal weights cost what normal ones do");
    dev->ops->close(dev);
}

int main(void)
{
    halo_context *ctx;
    halo_device *dev = NULL;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    if (hl_device_open(ctx, "cpu", &(halo_device_options){.threads = THREADS}, &dev) != HALO_OK) {
        tap_skip("no cpu backend: %s", halo_error_message(ctx));
    } else if (mode() == 0) {
        tap_skip("this processor's denormal mode is not known to halo");
    } else {
        test_modes(dev);
        test_callers_own(dev);
        test_speed(ctx);
    }
    if (dev) dev->ops->close(dev);
    halo_context_destroy(ctx);
    return tap_done();
}
