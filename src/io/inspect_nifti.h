/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_nifti.h -- part of hl_data_inspect (io.h). */
#ifndef HL_IO_INSPECT_NIFTI_H
#define HL_IO_INSPECT_NIFTI_H

#include "base/str.h"
#include "io/files.h"

/* Of NIfTI images: text, and members of the open object of `json`. */
halo_status hl_nifti_inspect(halo_context *ctx, const char *path, const hl_files *files, hl_str *text, hl_json *json);

#endif
