/* SPDX-License-Identifier: Apache-2.0 */
/* file.h -- network files: reading is halo_network_load and halo_network_parse of halo.h. */
#ifndef HL_NET_FILE_H
#define HL_NET_FILE_H

#include "base/str.h"
#include "net/graph.h"

/* Any graph as a network file from which halo_network_parse makes an equal one. */
halo_status hl_network_to_yaml(const struct halo_network *net, hl_str *out);

#endif
