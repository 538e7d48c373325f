/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h -- what a universe holds, its power spectrum beside linear theory: `halo inspect` of a
 * CosmoUniverse file. */
#ifndef HL_SYNTH_INSPECT_H
#define HL_SYNTH_INSPECT_H

#include "base/json.h"
#include "base/str.h"

/* A CosmoUniverse file? Reports nothing. */
bool hl_is_universe(const char *path);

/* Appends to text and adds keys to the open object of json; either may be NULL. plot: a PNG file to write, or
 * NULL. Not collective. */
halo_status hl_universe_inspect(halo_context *ctx, const char *path, const char *plot, hl_str *text,
                                hl_json *json);

#endif
