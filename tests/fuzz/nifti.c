/* SPDX-License-Identifier: Apache-2.0 */
/* nifti.c -- fuzz target: any bytes as a NIfTI image of one file, gzipped or not. tests/fuzz/run builds and runs it. */
#include "tests/fuzz/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    halo_context *ctx;
    char path[64];
    hl_array *a;
    if (!store(data, bytes, &ctx, path)) return 0;
    if (hl_nifti_array_open(ctx, path, "", NULL, &a) != HALO_OK) return 0;
    read_all(ctx, a);
    hl_array_close(a);
    return 0;
}
