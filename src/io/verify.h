/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h -- every byte of a data set or of checkpoints, read and judged. */
#ifndef HL_IO_VERIFY_H
#define HL_IO_VERIFY_H

#include "base/json.h"
#include "base/str.h"

typedef struct hl_verified {
    int64_t files, bad; /* bad: files with anything wrong */
    int64_t samples, bytes;
} hl_verified;

/*
 * Files as for hl_source_open (a file, a directory, a list of paths). A line of `text` for each bad file, and the same as members of the open object of
 * `json`. A bad file is no error here; HALO_ERR_IO when there is none at all. Not collective.
 */
halo_status hl_data_verify(halo_context *ctx, const char *path, hl_str *text, hl_json *json, hl_verified *out);

#endif
