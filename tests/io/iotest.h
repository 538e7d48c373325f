/* SPDX-License-Identifier: Apache-2.0 */
/* iotest.h -- what the tests of io share: a directory of their own, a context that keeps its messages quiet,
 * and small numbers that are no accident. */
#ifndef HL_TESTS_IOTEST_H
#define HL_TESTS_IOTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw, memmem: this header comes first */
#endif

#include "base/base.h"
#include "base/rng.h"
#include "io/io.h"
#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char iotest_dir[512];

/* "DIR/name"; four may be in use at once. */
static inline const char *in_dir(const char *name)
{
    static char path[4][1024];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof(path[at]), "%s/%s", iotest_dir, name);
    return path[at];
}

static inline int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Files in the directory whose name begins with a dot: temporary ones that should be gone. */
static inline int leftovers(void)
{
    int n = 0;
    DIR *dir = opendir(iotest_dir);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (dir) closedir(dir);
    return n;
}

static int iotest_errors; /* messages of level error since the last reset */
static void iotest_log(void *user, halo_log_level level, const char *message)
{
    (void)user;
    if (level == HALO_LOG_ERROR) iotest_errors++;
    tap_note("log: %s", message);
}

/* Makes the directory TMPDIR/halo-NAME.PID and a context. */
static inline halo_context *iotest_begin(const char *name)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(iotest_dir, sizeof(iotest_dir), "%s/halo-%s.%ld", tmp && *tmp ? tmp : "/tmp", name,
             (long)getpid());
    if (mkdir(iotest_dir, 0777) != 0) tap_bail("cannot make '%s': %s", iotest_dir, strerror(errno));
    hl_io_own_process();
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx = NULL;
    o.log = iotest_log;
    o.threads = 1;
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("no context: %s", halo_error_message(NULL));
    return ctx;
}

static inline int iotest_end(halo_context *ctx)
{
    halo_context_destroy(ctx);
    remove_tree(iotest_dir);
    return tap_done();
}

/* The call must fail with this status and one message that holds both texts. */
static inline void fails_with(halo_context *ctx, halo_status got, halo_status want, const char *text,
                              const char *text2, const char *what)
{
    const char *message = halo_error_message(ctx);
    bool good = got == want && strstr(message, text) && strstr(message, text2) && iotest_errors == 1 &&
                !strchr(message, '\n');
    tap_ok(good, "%s: '%s'", what, message);
    if (!good)
        tap_note("status %d, expected %d; %d messages; expected '%s' and '%s'", (int)got, (int)want,
                 iotest_errors, text, text2);
    iotest_errors = 0;
}

#define MUST(expr)                                                                                           \
    do {                                                                                                     \
        halo_status must_ = (expr);                                                                          \
        if (must_ != HALO_OK) tap_bail("%s:%d: %s: %s", __FILE__, __LINE__, #expr, halo_error_message(ctx)); \
    } while (0)

/* What a child that reads a stranger's file is held to: a minute, and 2 GiB, but for sanitizers, which need more addresses than that. */
static inline void io_confine(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit = {INT64_C(2) << 30, INT64_C(2) << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
    alarm(60);
}

#endif
