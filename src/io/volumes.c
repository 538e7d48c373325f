/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c -- predicted volumes as one HDF5 dataset [sample, C, D, H, W] of float32. */
#include "io/h5out.h"
#include "io/io.h"

#include <stdio.h>

halo_status hl_volumes_write(halo_context *ctx, const char *path, const char *name, const int64_t ext[5],
                             const float *data)
{
    hl_h5_out *out = NULL;
    char absolute[512];
    if ((size_t)snprintf(absolute, sizeof(absolute), "%s%s", name[0] == '/' ? "" : "/", name) >=
        sizeof(absolute))
        return hl_fail(ctx, HALO_ERR_USAGE, "'%.80s' is too long for the name of a dataset", name);
    HL_TRY(hl_h5_create(ctx, path, &out));
    halo_status st = hl_h5_put(out, absolute, (hl_number){'f', 4}, 5, ext, data),
                st2 = hl_h5_finish(out, st == HALO_OK);
    return st != HALO_OK ? st : st2;
}
