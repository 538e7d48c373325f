/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h -- tests that speak TAP, the Test Anything Protocol, which Automake's driver reads: one line "ok N - sentence" per claim.
 *
 *     int main(void)
 *     {
 *         tap_ok(halo_version()[0] != 0, "the version is not empty");
 *         tap_ok(err <= tol, "dw of %s agrees: %.1e <= %.1e", name, err, tol);
 *         return tap_done();
 *     }
 *
 * A program is one test file: the counters are static, include this from one source only. Compare as err <= tol, never !(err > tol): NaN fails.
 * Of several ranks only rank 0 calls these.
 */
#ifndef HL_TESTS_TAP_H
#define HL_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__GNUC__)
#define HL_TAP_PRINTF(f, a) __attribute__((format(printf, f, a), unused))
#else
#define HL_TAP_PRINTF(f, a)
#endif

static int tap_count, tap_failed, tap_planned = -1;

static inline void tap_line_(const char *head, const char *fmt, va_list args)
{
    printf("%s", head);
    vprintf(fmt, args);
    putchar('\n');
    fflush(stdout); /* a crash later must not lose what was said */
}

/* Announces exactly n claims; without it tap_done() prints the plan that was kept. */
static inline void tap_plan(int n)
{
    tap_planned = n;
    printf("1..%d\n", n);
    fflush(stdout);
}

/* A remark in the log: the figures behind a claim. */
HL_TAP_PRINTF(1, 2) static void tap_note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tap_line_("# ", fmt, args);
    va_end(args);
}

/* One claim; returns whether it held. */
HL_TAP_PRINTF(2, 3) static bool tap_ok(bool holds, const char *fmt, ...)
{
    char head[40];
    va_list args;
    tap_count++;
    if (!holds) tap_failed++;
    snprintf(head, sizeof(head), "%s %d - ", holds ? "ok" : "not ok", tap_count);
    va_start(args, fmt);
    tap_line_(head, fmt, args);
    va_end(args);
    return holds;
}

/* A claim that cannot be tested here, with the reason. */
HL_TAP_PRINTF(1, 2) static void tap_skip(const char *fmt, ...)
{
    char head[48];
    va_list args;
    tap_count++;
    snprintf(head, sizeof(head), "ok %d # SKIP ", tap_count);
    va_start(args, fmt);
    tap_line_(head, fmt, args);
    va_end(args);
}

/* The whole program cannot run here. Call it before any claim; it does not return. */
HL_TAP_PRINTF(1, 2) static void tap_skip_all(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tap_line_("1..0 # SKIP ", fmt, args);
    va_end(args);
    exit(0);
}

/* Nothing after this makes sense, such as when the set-up failed: ends the run as an error. */
HL_TAP_PRINTF(1, 2) static void tap_bail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tap_line_("Bail out! ", fmt, args);
    va_end(args);
    exit(1);
}

/* Prints the plan if it was not announced; the exit status of main: 0 only if every claim held and the plan was kept. */
static inline int tap_done(void)
{
    if (tap_planned < 0) tap_plan(tap_count);
    if (tap_failed) tap_note("%d of %d failed", tap_failed, tap_count);
    return tap_failed != 0 || tap_count != tap_planned;
}

#endif
