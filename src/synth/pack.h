/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h -- any data set into one file of halo's own layout: `halo synth pack`. */
#ifndef HL_SYNTH_PACK_H
#define HL_SYNTH_PACK_H

#include "base/base.h"

typedef struct hl_packed {
    int64_t samples, bytes; /* bytes of the file */
    const char *type;       /* of x: "uint8", "int16" or "float32" */
} hl_packed;

/*
 * Writes the data set at `from` to `path`, x in the smallest type that holds every value exactly, a deflated
 * chunk per sample (level 1-9). The file appears complete or not at all. Reads the data set twice. Not
 * collective.
 */
halo_status hl_pack(halo_context *ctx, const char *from, const char *path, int level, hl_packed *result);

#endif
