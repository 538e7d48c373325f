/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h -- public files against a manifest made by another reader, each in a process of its own, with 2 GiB of address space, or with allocations of at most 2 GiB where a sanitizer needs more.
 */
#ifndef HL_TESTS_MANIFEST_H
#define HL_TESTS_MANIFEST_H

#include "tests/io/iotest.h"
#include "base/yaml.h"

#include <sys/wait.h>

#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "max_allocation_size_mb=2048:allocator_may_return_null=1"; }
#endif

enum outcome { EQUAL = 0, REFUSED, WRONG, SILENT, OUTCOMES };

typedef enum outcome (*reader)(halo_context *ctx, const char *path, const hl_yaml *entry);

/* How it ended; a signal or status of the child is WRONG. */
static enum outcome in_a_child(halo_context *ctx, reader read, const char *path, const hl_yaml *entry)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        io_confine();
        enum outcome o = read(ctx, path, entry);
        if (o >= WRONG) tap_note("%s: %s: %s", path, o == WRONG ? "not as in the manifest" : "no message that names it", halo_error_message(ctx));
        fflush(stdout);
        _exit((int)o);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) < OUTCOMES) return (enum outcome)WEXITSTATUS(status);
    tap_note("%s: status %d", path, status);
    return WRONG;
}

static void counting(void *user, halo_log_level level, const char *message)
{
    (void)user, (void)message;
    if (level == HALO_LOG_ERROR) iotest_errors++;
}

/* Path of the manifest in HALO_TESTDATA, and a context whose errors are counted; skips all where there is none. Returns HALO_TESTDATA. */
static const char *begin(const char *name, char path[1200], halo_context **ctx)
{
    const char *root = getenv("HALO_TESTDATA");
    if (!root || !*root) tap_skip_all("HALO_TESTDATA is not set");
    snprintf(path, 1200, "%s/%s", root, name);
    if (access(path, R_OK) != 0) tap_skip_all("no %s in HALO_TESTDATA", name);
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    hl_io_own_process();
    o.log = counting;
    o.threads = 1;
    if (halo_context_create(&o, ctx) != HALO_OK) tap_bail("no context");
    return root;
}

/* All files of a manifest: those named by its keys, or by "file" of its entries. At least so many as in the manifest, the others refused. */
static void all_files(halo_context *ctx, const char *root, const hl_yaml *list, reader read, int least, const char *what)
{
    char path[1200];
    int count[OUTCOMES] = {0};
    for (size_t i = 0; i < list->items; i++) {
        const hl_yaml *e = list->item[i], *file = hl_yaml_find(e, "file");
        snprintf(path, sizeof(path), "%s/%s", root, file ? file->text : e->key);
        count[in_a_child(ctx, read, path, e)]++;
    }
    tap_ok(count[WRONG] + count[SILENT] == 0 && count[EQUAL] >= least, "%zu %s: %d as in the manifest, %d refused as they should be, %d neither", list->items, what, count[EQUAL], count[REFUSED],
           count[WRONG] + count[SILENT]);
}

#endif
