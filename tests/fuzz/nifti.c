/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nifti.c -- fuzz target: any bytes as a NIfTI image of one file, gzipped or not. What opens is read whole and in a box, and the two agree. tests/fuzz/run builds and runs it.
 */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static halo_context *ctx;
    static int fd = -1;
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    char path[64];
    hl_array *a;
    o.log = ignore;
    if (!ctx && halo_context_create(&o, &ctx) != HALO_OK) return 0;
    if (fd < 0) fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, bytes, 0) != (ssize_t)bytes) return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (hl_nifti_array_open(ctx, path, "", NULL, &a) != HALO_OK) return 0;
    read_all(ctx, a);
    hl_array_close(a);
    return 0;
}
