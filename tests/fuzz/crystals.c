/* SPDX-License-Identifier: Apache-2.0 */
/* crystals.c -- fuzz target: any bytes as a file of crystals, CIF or a table. What is read has a cell, elements that exist and atoms within it. tests/fuzz/run builds and runs it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "synth/cbed/crystal.h"
#include "synth/cbed/kirkland.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void ignore(void *user, halo_log_level level, const char *message) { (void)user, (void)level, (void)message; }

static void check(const hl_crystal *c)
{
    HL_BUG_UNLESS(c->sites > 0 && hl_cell_volume(c->cell) > 0);
    for (int64_t i = 0; i < c->sites; i++) {
        HL_BUG_UNLESS(c->site[i].z >= 1 && c->site[i].z <= HL_ELEMENTS && c->site[i].occupancy > 0);
        for (int k = 0; k < 3; k++) HL_BUG_UNLESS(c->site[i].at[k] >= 0 && c->site[i].at[k] <= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static halo_context *ctx;
    static int fd = -1;
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    char path[64];
    hl_crystal *c = NULL;
    int64_t n = 0;
    o.log = ignore;
    if (!ctx && halo_context_create(&o, &ctx) != HALO_OK) return 0;
    if (fd < 0) fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, bytes, 0) != (ssize_t)bytes) return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    halo_status st = hl_crystals_read(ctx, path, &c, &n);
    for (int64_t i = 0; i < n; i++) {
        if (st == HALO_OK) check(&c[i]);
        hl_crystal_free(&c[i]);
    }
    free(c);
    return 0;
}
