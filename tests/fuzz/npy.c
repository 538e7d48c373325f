/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c -- fuzz target: any bytes as an NPY or NPZ file. tests/fuzz/run builds and runs it. */
#include "tests/fuzz/array.h"

static halo_status visit(void *user, const char *name)
{
    hl_array *a;
    if (hl_numpy_open(NULL, user, name, NULL, &a) == HALO_OK) hl_array_close(a);
    return HALO_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    halo_context *ctx;
    char path[64];
    hl_array *a;
    if (!store(data, bytes, &ctx, path)) return 0;
    (void)hl_numpy_list(ctx, path, visit, path);
    if (hl_numpy_open(ctx, path, "", NULL, &a) != HALO_OK) return 0;
    read_all(ctx, a);
    hl_array_close(a);
    return 0;
}
