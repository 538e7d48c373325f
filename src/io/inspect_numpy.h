/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_numpy.h -- part of hl_data_inspect (io.h). */
#ifndef HL_IO_INSPECT_NUMPY_H
#define HL_IO_INSPECT_NUMPY_H

#include "base/context.h"
#include "io/array_files.h"

/* Of files that begin with one of NumPy's. Text, and members of the open object of `json`. */
halo_status hl_numpy_inspect(halo_context *ctx, const char *path, const hl_files *files, hl_str *text, hl_json *json);

#endif
