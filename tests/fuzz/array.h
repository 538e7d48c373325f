/* SPDX-License-Identifier: Apache-2.0 */
/* array.h -- fuzz targets of files of arrays: bytes as a file that has a path; what opens is read whole and in a box, and the two agree. */
#ifndef HL_FUZZ_ARRAY_H
#define HL_FUZZ_ARRAY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "base/base.h"
#include "io/array.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void ignore(void *user, halo_log_level level, const char *message) { (void)user, (void)level, (void)message; }

/* The element in the middle, as all give it and as it is read alone. */
static void compare(hl_array *a, const char *all)
{
    int64_t start[HL_ARRAY_RANK], count[HL_ARRAY_RANK], at = 0;
    char one[16];
    if (a->elements == 0) return;
    for (int i = 0; i < a->ndim; i++) {
        start[i] = a->dim[i] / 2;
        count[i] = 1;
        at = at * a->dim[i] + start[i];
    }
    HL_BUG_UNLESS(hl_array_read(a, start, count, one, sizeof(one)) == HALO_OK);
    HL_BUG_UNLESS(memcmp(one, all + at * a->type.bytes, (size_t)a->type.bytes) == 0);
}

static void read_all(halo_context *ctx, hl_array *a)
{
    int64_t start[HL_ARRAY_RANK] = {0};
    char *all;
    if (a->bytes > INT64_C(16) << 20 || hl_aligned(ctx, (size_t)a->bytes + 1, "an array", &all) != HALO_OK) return;
    if (hl_array_read(a, start, a->dim, all, (size_t)a->bytes) == HALO_OK) compare(a, all);
    free(all);
}

/* The bytes as a file, and a context without a log, the same in all calls. False: there is none. */
static bool store(const uint8_t *data, size_t bytes, halo_context **ctx, char path[64])
{
    static halo_context *made;
    static int fd = -1;
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    o.log = ignore;
    if (!made && halo_context_create(&o, &made) != HALO_OK) return false;
    if (fd < 0) fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, bytes, 0) != (ssize_t)bytes) return false;
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    *ctx = made;
    return true;
}

#endif
