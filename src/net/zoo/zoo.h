/* SPDX-License-Identifier: Apache-2.0 */
/* zoo.h -- the named networks. Each is built by the public calls of halo.h alone: whatever it does, a user's
 * code or file can do. */
#ifndef HL_ZOO_H
#define HL_ZOO_H

#include "net/graph.h"

typedef struct hl_zoo_network {
    const char *name;
    const char *const *variants; /* NULL-ended, the default first */
    /* options->variant is one of variants. */
    halo_status (*build)(halo_context *ctx, const halo_zoo_options *options, halo_network **net);
} hl_zoo_network;

extern const hl_zoo_network hl_zoo_cosmoflow, hl_zoo_unet3d, hl_zoo_fcdensenet;

#endif
